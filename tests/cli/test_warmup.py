"""`truthcal warmup` compiles every kernel, and a terminal shows that code is compiled."""

from truthcal.kernels import jit


def test_warmup_compiles_every_kernel(quick):
    done = quick("warmup", check=0)
    assert "functions are compiled and cached in" in done.out
    assert "compiling; this takes about two minutes" in done.err
    helpers = {name for kernel in jit.kernels() for name in kernel._function.__code__.co_names}
    called_by_users = [kernel for kernel in jit.kernels() if kernel.__name__ not in helpers]
    assert len(called_by_users) > 40
    assert [kernel.__name__ for kernel in called_by_users if not kernel.compiled.overloads] == []


def test_compiling_is_announced_on_a_terminal_alone(terminal, process, tmp_path, write):
    path = write(y=[0, 1, 1, 0] * 10, p=[0.2, 0.9, 0.6, 0.3] * 10)
    arguments = "sketch", path, "-o", "out.sketch"
    empty = {"NUMBA_CACHE_DIR": str(tmp_path / "a")}
    message = "compiling (first run only; `truthcal warmup` does it in advance)"
    assert message in terminal(*arguments, env=empty).out
    assert message not in terminal(*arguments, env=empty).out  # it is cached
    assert message not in process(*arguments, env={"NUMBA_CACHE_DIR": str(tmp_path / "b")}, check=0).err
