"""How the command line behaves among other programs: pipes, terminals, interrupts, full disks, missing libraries."""

import ctypes
import io
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest
from support.cli import COMMAND

import truthcal as tc
from truthcal.cli.main import main


@pytest.fixture
def file(write, events):
    return write(score=events["score"], hit=events["hit"])


def test_answers_go_to_stdout_and_messages_to_stderr(process, file, events):
    done = process("assess", file, check=0)
    assert done.out == f"{tc.assess(events['hit'], events['score'])}\n"
    assert "\x1b" not in done.out  # a pipe gets no colour
    assert done.err.startswith("truthcal: ")


def test_standard_input_is_read_as_a_process(process, quick, file):
    want = quick("assess", file, "-q", check=0).out
    assert process("assess", "-", "-q", stdin=file.read_bytes(), check=0).out == want


def test_a_terminal_gets_colour(terminal, file):
    shown = terminal("assess", file)
    assert shown.status == 0
    assert "\x1b[1;32mCalibrated" in shown.out


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_no_colour_where_none_is_wanted(quick, file, env, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1;32mCalibrated" in quick("assess", file, check=0).out
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert "\x1b[" not in quick("assess", file, check=0).out


def test_a_terminal_as_standard_input_is_an_error_and_does_not_wait(terminal):
    shown = terminal("assess", "-", seconds=60)
    assert shown.status == 2
    assert "which is a terminal. Pipe a file" in shown.out


def test_a_closed_pipe_is_quiet(file):
    """As in `truthcal measures --list | head -1`."""
    reader, writer = os.pipe()
    child = subprocess.Popen([*COMMAND, "measures", "--list"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    os.close(reader)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 141
    assert err == b""


def test_a_closed_standard_output_is_quiet_too(file):
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m truthcal measures --list >&-"], capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [(signal.SIGINT, 130, ["truthcal: interrupted; no file was left half-written."]), (signal.SIGTERM, 143, [])],
    ids=["Ctrl-C", "kill"],
)
def test_an_interrupt_leaves_nothing(tmp_path, sent, status, words):
    """A pipe that never ends is being read; then a signal comes."""
    before = set(os.listdir(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    child = subprocess.Popen(
        [*COMMAND, "sketch", "-", "-o", "out.sketch", "--label", "y", "--proba", "p"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    child.stdin.write(b"y,p\n" + b"1,0.5\n" * 100_000)
    child.stdin.flush()
    deadline = time.monotonic() + 60
    while not any(scratch.iterdir()) and time.monotonic() < deadline:  # it has begun to read
        time.sleep(0.05)
    child.send_signal(sent)
    _, err = child.communicate(timeout=60)
    assert child.returncode == status
    assert err.decode().splitlines() == words
    assert set(os.listdir(tmp_path)) == before | {"scratch"}
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--nonsense"], 2), (["--version"], 0), (["assess", "none.csv"], 2)]
)
def test_the_process_ends_at_once_although_a_thread_runs(arguments, status):
    """The shutdown of the interpreter would wait for this thread, and abort threads of C++ that need the GIL."""
    code = (
        "import atexit, sys, threading, time; atexit.register(print, 'removed'); "
        "threading.Thread(target=time.sleep, args=(100,)).start(); "
        f"sys.argv = ['truthcal', *{arguments}]; from truthcal.cli.main import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == status, done.stderr
    assert done.stdout.endswith("removed\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_help_that_cannot_be_written_is_no_success():
    with open("/dev/full", "w") as full:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, env=env, check=False)
    assert done.returncode == 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("assess f.csv --lable y", "--lable y; did you mean --label? (see truthcal assess --help)"),
        ("assess f.csv --lable=y", "--lable=y; did you mean --label? (see truthcal assess --help)"),
        ("compare f.csv --wieght w", "--wieght w; did you mean --weight? (see truthcal compare --help)"),
        ("assess f.csv --nonsense", "--nonsense (see truthcal assess --help)"),
        ("--versoin assess f.csv", "--versoin; did you mean --version? (see truthcal --help)"),
    ],
)
def test_an_unknown_option_is_told_with_the_most_similar_one(quick, arguments, message):
    assert f": unrecognized arguments: {message}\n" in quick(*arguments.split(), check=2).err


def test_errors_are_one_line_and_debug_shows_more(quick, process, tmp_path):
    done = process("assess", "nowhere.csv", check=2)
    assert done.err == "truthcal: nowhere.csv: no such file.\n"
    assert done.out == ""
    assert "Traceback" in quick("assess", "nowhere.csv", "--debug", check=2).err


def test_an_error_inside_truthcal_asks_for_a_report(quick, file, monkeypatch):
    def fail(*_, **__):
        raise KeyError("boom\nbang")

    monkeypatch.setattr(tc, "assess", fail)
    done = quick("assess", file, check=2)
    assert "internal error (KeyError" in done.err
    assert "--debug" in done.err
    assert "Traceback" in quick("assess", file, "--debug", check=2).err


def test_missing_libraries_are_named_with_the_cure(process, file):
    """Python is told that they are not there."""
    code = "import sys; sys.modules['{name}'] = None; from truthcal.cli.main import main; sys.exit(main(sys.argv[1:]))"

    def without(name, *arguments):
        return subprocess.run(
            [sys.executable, "-c", code.format(name=name), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )

    done = without("pyarrow", "assess", file)
    assert done.returncode == 2
    assert done.stderr == "truthcal: reading files needs pyarrow: pip install 'truthcal[files]'.\n"
    for name in ("jinja2", "matplotlib"):
        done = without(name, "assess", file, "--report", file.parent / "r.html")
        assert done.returncode == 2
        assert "pip install 'truthcal[report]'" in done.stderr
        assert done.stdout == ""
        assert not (file.parent / "r.html").exists()


def test_progress_shows_to_a_person_on_long_work_only(terminal, tmp_path):
    """A million lines take longer than the second after which a line appears, or else there is none."""
    path = tmp_path / "long.csv"
    path.write_text("y,p\n" + "1,0.75\n0,0.25\n" * 300_000)
    code = "import truthcal.core.progress as p; p._PATIENCE = 0.0; p._PAUSE = 0.0; import sys; from truthcal.cli.main import main; sys.exit(main(sys.argv[1:]))"
    import pty

    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", code, "sketch", str(path), "-o", str(tmp_path / "o.sketch")])
    text = b""
    try:
        while part := os.read(master, 65536):
            text += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(master)
    assert b"reading [" in text
    assert b"%" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--report", "nowhere/r.html"], "there is no folder"), (["--report", "."], "is a folder; name a file in it")],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_work(quick, file, arguments, message):
    done = quick("assess", file, *arguments, check=2)
    assert message in done.err
    assert done.out == ""


def test_a_folder_that_is_read_only_is_refused(quick, file, tmp_path, monkeypatch):
    """Root may write everywhere, so the system is told to say no."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    done = quick("sketch", file, "-o", "x.sketch", check=2)
    assert "is not writable; name another folder" in done.err


@pytest.fixture
def full_disk(tmp_path):
    """A file system of two pages, if this machine lets us make one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        yield "/dev/full"
        return
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_loses_nothing(process, file, full_disk, tmp_path):
    if full_disk == "/dev/full":  # a device that is always full stands for the disk
        done = process("sketch", file, "-o", "/dev/full", check=2)
        assert "no space left on device" in done.err
        return
    kept = full_disk / "o.sketch"
    kept.write_bytes(b"before")
    done = process("sketch", file, "-o", kept, "-q", check=2)
    assert re.fullmatch(r"truthcal: .*o\.sketch: no space left on device\.\n", done.err)
    assert kept.read_bytes() == b"before"
    assert os.listdir(full_disk) == ["o.sketch"]


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["report", "-o"], ["sketch", "-o"], ["assess", "--report"], ["check", "--summary"], ["check", "--report"]],
)
def test_what_is_read_is_never_overwritten(quick, file, arguments):
    command, *flags = arguments
    before = file.read_bytes()
    for name in (file.name, f"./{file.name}"):
        done = quick(command, file, *flags, name, check=2)
        assert "is an input and would be overwritten; choose another output file" in done.err
    assert file.read_bytes() == before


def test_a_merged_sketch_may_replace_one_of_its_parts(quick, file, tmp_path):
    """As in a running total."""
    for name in ("total", "today"):
        quick("sketch", file, "-o", f"{name}.sketch", check=0)
    quick("merge", "total.sketch", "today.sketch", "-o", "total.sketch", check=0)
    assert tc.Sketch.load(tmp_path / "total.sketch").n == 1800


def test_standard_output_is_a_file_too(process, quick, file):
    page = quick("report", file, "-o", "-", "-q", check=0).out
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert process("report", file, "-o", "/dev/stdout", "-q", check=0).out.startswith("<!DOCTYPE html>")


@pytest.fixture
def polish(write, events):
    return write("n.csv", hit=events["hit"], score=events["score"], who=["Łódź"] * 900)


def test_letters_that_cannot_be_written_are_escaped(process, polish):
    done = process("check", polish, "--by", "who", "--markdown", env={"PYTHONIOENCODING": "ascii"}, check=0)
    assert "\\u2705 Calibration" in done.out
    assert "\\u0141\\xf3d\\u017a" in done.out


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_letters_that_an_encoding_lacks_are_escaped(polish, encoding, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["check", str(polish), "--by", "who", "--markdown"]) == 0
    sys.stdout.flush()
    assert "\\u2705 Calibration" in written.getvalue().decode(encoding)
    assert "\\u0141ód" in written.getvalue().decode(encoding)


def test_names_of_files_cannot_command_a_terminal(quick, tmp_path):
    (tmp_path / "a\x1b[31mb.csv").write_text("label,prob\n")
    err = quick("assess", "a\x1b[31mb.csv", check=2).err
    assert "\x1b" not in err
    assert "a\\x1b[31mb.csv" in err


def test_a_name_that_is_not_utf8_has_a_cure(process, tmp_path):
    path = os.fsencode(tmp_path) + b"/lat\xe9in.csv"
    with open(path, "wb") as file:
        file.write(b"label,prob\n1,0.5\n")
    done = process("assess", os.fsdecode(path), check=2)
    assert "not in UTF-8" in done.err
    assert "- < FILE" in done.err


# --- completion -------------------------------------------------------------------------------------------------------


def complete(script, *words):
    """Return the words that bash offers for the last of these words."""
    code = (
        f"{script}\nCOMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}\n"
        f"_shtab_truthcal\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(quick):
    script = quick("completion", "bash", check=0).out
    assert complete(script, "truthcal", "a") == ["assess", "audit"]
    assert complete(script, "truthcal", "check", "--max") == ["--max-error"]
    assert complete(script, "truthcal", "compare", "--proba-") == ["--proba-prefix"]
    assert complete(script, "truthcal", "assess", "--adjust", "h") == ["holm"]
    assert complete(script, "truthcal", "assess", "--format", "l") == ["lm-eval"]
    assert complete(script, "truthcal", "test", "--hor") == ["--horizon"]
    assert complete(script, "truthcal", "completion", "z") == ["zsh"]


def test_bash_completes_files(quick, file):
    script = quick("completion", "bash", check=0).out
    assert complete(script, "truthcal", "assess", "pred") == ["predictions.csv"]
    assert complete(script, "truthcal", "assess", "predictions.csv", "--report", "pred") == ["predictions.csv"]
    assert complete(script, "truthcal", "assess", "x") == []


def test_zsh_gets_all_commands(quick):
    from truthcal.cli.command_table import COMMANDS

    script = quick("completion", "zsh", check=0).out
    assert all(command.name in script for command in COMMANDS)
    assert "max-error" in script


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_loads_the_script(quick, tmp_path):
    (tmp_path / "script").write_text(quick("completion", "zsh", check=0).out)
    code = 'eval "$(cat script)"; print ${+functions[_shtab_truthcal]} $_comps[truthcal]'
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "_shtab_truthcal"]), done


def test_completion_without_shtab_has_a_cure(quick, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = quick("completion", "bash", check=2)
    assert done.err == "truthcal: completion needs shtab: pip install 'truthcal[completion]'.\n"


# --- one pass ---------------------------------------------------------------------------------------------------------

IN_OPEN, IN_ALL_EVENTS, IN_IGNORED = 0x20, 0xFFF, 0x8000


def count_opens(path, run):
    """Call a function, and count how often it opens a file. Python's audit hook does not see files that pyarrow opens."""
    libc, masks = ctypes.CDLL(None), []
    watcher = libc.inotify_init1(0)
    watch = libc.inotify_add_watch(watcher, os.fsencode(path), IN_ALL_EVENTS)

    def collect():
        while not masks or not masks[-1] & IN_IGNORED:
            events, start = os.read(watcher, 1 << 16), 0
            while start < len(events):
                _, mask, _, length = struct.unpack_from("iIII", events, start)
                masks.append(mask)
                start += 16 + length

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        run()
    finally:
        libc.inotify_rm_watch(watcher, watch)
        collector.join()
        os.close(watcher)
    return sum(bool(mask & IN_OPEN) for mask in masks)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is part of Linux")
def test_a_file_is_opened_at_most_twice(quick, write, events):
    """Once for the preview, and once to read all models, segments and the checksum."""
    path = write(**{name: events[name] for name in ("score", "sure", "hit", "region")})
    assert count_opens(path, path.read_bytes) == 1
    models = ["--proba", "score", "--proba", "sure", "--label", "hit", "--by", "region"]

    def run():
        quick("assess", path, *models, "--report", "r.html", check=0)

    assert 1 <= count_opens(path, run) <= 2


def test_errors_of_the_library_name_the_flag(quick, file):
    done = quick("sketch", file, "-o", "x.sketch", "--buckets", "100", check=2)
    assert done.err.splitlines()[-1] == "truthcal: --buckets must be a power of two; got 100. Try 64 or 128."


def test_errors_of_the_library_name_the_flag_that_would_help():
    from truthcal.cli.main import error_text
    from truthcal.core.checks import invalid

    error = invalid("y_true", "holds text labels; name the positive one, for example", fix=("pos_label", "a b"))
    assert error_text(error) == "--label holds text labels; name the positive one, for example --pos-label 'a b'."
    error = invalid("y_proba", "holds outcomes. They belong in", subject="`p` (y_proba)", fix=("y_true",))
    assert error_text(error) == "`p` (y_proba) holds outcomes. They belong in --label."
    assert error_text(invalid("edges", "must increase.")) == "`edges` must increase."
