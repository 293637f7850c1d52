"""Compilation of kernels, and definitions shared by all of them."""

import contextlib
import functools
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from truthcal.kernels import notice

F = TypeVar("F", bound=Callable[..., Any])
Rows = NDArray[Any]
# Two sums, each as a pair of a rounded number and the rounding error.
Pairs: TypeAlias = tuple[float, float, float, float]

# Long sums of non-negative terms are added in blocks of this many rows: the rounding error is then about BLOCK times,
# not n times, the machine epsilon, at the same speed.
BLOCK = 4096
# Elements that a kernel visits in a process before it is compiled. Interpreting them takes 0.1 to 0.5 s, compiling a
# kernel 0.1 to 1 s. Until then numba is not imported, which takes another 0.5 s, or 1 s if it has to compile.
INTERPRETED = 1 << 16


class Kernel:
    """A loop that is compiled when it is first needed, and may run in Python before; numba is imported only then.

    The same source runs both ways, and gives the same numbers: kernels do not rely on integers that overflow.
    """

    def __init__(self, function: Callable[..., Any], interpreted: int) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._left = interpreted  # elements to visit in Python
        self._in_use: Callable[..., Any] | None = None  # the compiled loop, once it is preferred

    def __call__(self, *args: Any) -> Any:
        """Run the loop."""
        if self._in_use is not None:
            return self._in_use(*args)
        size = max((arg.size for arg in args if isinstance(arg, np.ndarray)), default=1)
        if size <= self._left and not _settings.compile_at_once and not (_settings.numba_in_use and self._is_cached):
            self._left -= size
            with np.errstate(all="ignore"):  # as in compiled code
                return _as_compiled(self.plain(*args))
        self._in_use, _settings.numba_in_use = self.compiled, True
        return self._in_use(*args)

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The loop in Python, which calls other kernels in the same way."""
        return self._with_helpers("plain")

    @property
    def compiled(self) -> Callable[..., Any]:
        """The loop as numba's dispatcher, which compiles it for each new combination of types."""
        with _settings.lock:  # two threads must not compile the same kernel twice
            return self._dispatcher

    @functools.cached_property
    def _dispatcher(self) -> Callable[..., Any]:
        return _make_dispatcher(self._with_helpers("compiled"))

    @functools.cached_property
    def _is_cached(self) -> bool:
        """Whether machine code is on disk: then it takes 10 ms to load, if numba has been imported."""
        cache: Any = getattr(self.compiled, "_cache", None)
        with contextlib.suppress(Exception):  # a damaged cache, or another version of numba
            return bool(cache._cache_file._load_index())
        return False

    @property
    def cache_folder(self) -> str | None:
        """Folder with the machine code of this kernel; None if it is not cached."""
        return str(getattr(self.compiled, "_cache").cache_path) if self._is_cached else None  # noqa: B009

    def _with_helpers(self, attribute: str) -> Callable[..., Any]:
        """Copy the function; kernels that it calls become their attribute of this name."""
        function: Any = self._function
        used = {
            name: value
            for name in function.__code__.co_names
            if isinstance(value := function.__globals__.get(name), Kernel)
        }
        helpers = {name: getattr(kernel, attribute) for name, kernel in used.items()}
        copy = types.FunctionType(function.__code__, {**function.__globals__, **helpers}, function.__name__)
        return functools.update_wrapper(copy, function)

    def __reduce__(self) -> str:
        return self._function.__qualname__  # pickled by name, like a function


def _as_compiled(result: Any) -> Any:
    """Convert numpy's numbers to those of Python, which compiled loops return."""
    if isinstance(result, tuple):
        return tuple(map(_as_compiled, result))
    return result.item() if isinstance(result, np.generic) else result


class _Settings:
    """State of this process: whether kernels must be compiled, whether some are, and whether this is announced."""

    lock = threading.RLock()
    compile_at_once = False
    numba_in_use = False
    listening = False


_settings = _Settings()


def kernels() -> list[Kernel]:
    """Return the kernels of all modules that were imported."""
    modules = [module for name, module in sys.modules.items() if name.startswith("truthcal.kernels.")]
    found = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Kernel)}
    return list(found.values())


def compiled(function: F) -> F:
    """Make a kernel that is compiled at its first call."""
    return cast(F, Kernel(function, 0))


def interpreted_first(function: F) -> F:
    """Make a kernel that runs in Python until it has visited 2^16 elements in this process, and is then compiled.

    Its time must be linear in the size of its largest array, up to a factor of about 10.
    """
    return cast(F, Kernel(function, INTERPRETED))


def interpreted_briefly(function: F) -> F:
    """Make a kernel that runs in Python until it has visited 2^13 elements: each takes several microseconds there."""
    return cast(F, Kernel(function, INTERPRETED >> 3))


def load_cached() -> None:
    """Load kernels that were compiled before, instead of interpreting them first: numba will be needed anyway."""
    _settings.numba_in_use = True


@contextlib.contextmanager
def compile_at_once() -> Iterator[None]:
    """Interpret no kernels within this context."""
    before, _settings.compile_at_once = _settings.compile_at_once, True
    try:
        yield
    finally:
        _settings.compile_at_once = before


def _make_dispatcher(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the GIL, and cache the machine code on disk if there is a writable directory."""
    import numba

    _listen()
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # no writable cache directory: compile once per process
        return cast(Callable[..., Any], numba.njit(nogil=True, error_model="numpy")(function))
    if not hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT it is the plain function
        return cast(Callable[..., Any], dispatcher)
    save = dispatcher._cache.save_overload

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:  # a full disk must not stop the computation
            warnings.warn(f"truthcal could not cache compiled code: {error}", RuntimeWarning, stacklevel=2)

    dispatcher._cache.save_overload = save_if_possible
    return cast(Callable[..., Any], dispatcher)


def _listen() -> None:
    """Call `notice.on_compile` when numba compiles a kernel."""
    from numba.core import event

    if _settings.listening:
        return

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if notice.on_compile is not None and event.data["dispatcher"].py_func.__module__.startswith("truthcal."):
                notice.on_compile()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
    _settings.listening = True


@compiled
def two_sum(high: float, low: float, x: float) -> tuple[float, float]:
    """Add x to (high, low), keeping the rounding error of the addition in low."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


@compiled
def two_product(x: float, y: float) -> tuple[float, float]:
    """Product of x and y, and its rounding error: both are split into halves whose products are exact."""
    product = x * y
    xs, ys = 134217729.0 * x, 134217729.0 * y  # 2^27 + 1
    xh, yh = xs - (xs - x), ys - (ys - y)
    xl, yl = x - xh, y - yh
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
