"""Columns of a data frame by name: `function(frame, "y", "p", groups="patient")` beside `function(y, p, groups=g)`.

`named_columns` gives a public function both forms. Frames are recognised by their methods, so that no library of
frames is imported here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import CO_VARKEYWORDS, unwrap
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid
from truthcal.core.params import closest_name, list_shown, refuse_unknown_options, shown

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

# Parameters that hold a column: with a frame, its name. Some may hold several.
_ONE = ("y_true", "y_proba", "y_proba_a", "y_proba_b", "sample_weight", "groups", "time")
_SEVERAL = ("y_true", "y_proba", "y_proba_a", "y_proba_b", "by", "segments")
_SEVERAL_MODELS = " To compare more than two models, use compare_models(y_true, {'name': y_proba, ...})."
# Libraries whose frames have their rows elsewhere: a query for each column might return the rows in another order.
_ELSEWHERE = ("pyspark", "dask", "ibis", "sqlframe", "snowflake")


class TakesFrame(Protocol[P, R_co]):
    """A function of columns that also takes a data frame, followed by the names of columns in their place."""

    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, frame: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


def named_columns(function: Callable[P, R_co]) -> TakesFrame[P, R_co]:
    """Let a function of columns also take a data frame first, and then names of its columns in place of columns."""
    return cast(TakesFrame[P, R_co], _with_frame(function, 0))


def named_columns_of_method(method: F) -> F:
    """Let a method, or a class method under its decorator, take a data frame as functions with `named_columns` do."""
    return cast(F, _with_frame(method, 1))


def _with_frame(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """Wrap a function whose columns start at the argument of number `first`."""
    code = unwrap(function).__code__
    names = code.co_varnames[first : code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # in pytest
        if len(args) > first and _is_frame(args[first]):
            owner, (frame, *columns) = args[:first], args[first:]
            if _names_columns(names, columns, options):
                options = _with_model_names(dict(zip(names, columns, strict=False)), options, keywords)
                _refuse_extra(function, names, columns, keywords)
                given = dict(zip(names, columns, strict=False)) | options
                values = _resolve(frame, given)
                # By position: an argument that is given twice is an error of the function itself.
                by_position = [values[name] for name in names[: len(columns)]]
                return function(*owner, *by_position, **{name: values[name] for name in options})
            _refuse_frame_alone(frame, names, columns, options)
        _refuse_extra(function, names, args[first:], keywords)
        _refuse_one_model(function, len(args) + len(options.keys() & names))
        if not code.co_flags & CO_VARKEYWORDS:
            refuse_unknown_options(function.__name__, options, (*names, *keywords))
        return function(*args, **options)

    return wrapper


def _refuse_extra(function: Any, names: Sequence[str], given: Sequence[Any], keywords: Sequence[str]) -> None:
    """Reject more columns by position than a function has, and say what takes them instead."""
    if len(given) <= len(names):
        return
    hint = f" Pass the others by name, such as {keywords[0]}=..." if keywords else ""
    if function.__name__ == "compare":
        hint = _SEVERAL_MODELS
    if hasattr(given[0], "predict_proba"):
        hint = " To assess an estimator, use truthcal.sklearn.assess_estimator(estimator, X, y)."
    taken = f"takes at most {len(names)} positional arguments ({', '.join(names)}), but {len(given)} were given."
    raise TypeError(f"{function.__name__}() {taken}{hint}")


def _refuse_one_model(function: Any, columns: int) -> None:
    """Reject a comparison of one column of predictions, or of several models at once."""
    if function.__name__ == "compare" and columns == 2:
        raise TypeError(f"compare() needs a third column, `y_proba_b`.{_SEVERAL_MODELS}")


def _with_model_names(columns: Mapping[str, Any], options: dict[str, Any], keywords: Sequence[str]) -> dict[str, Any]:
    """Add the names of the two compared columns to the options of a function that takes `names` of models."""
    given = {**columns, **options}
    compared = [given.get(role) for role in ("y_proba_a", "y_proba_b")]
    if "names" not in keywords or given.get("names") is not None or not all(map(_is_name, compared)):
        return options
    return {**options, "names": tuple(map(str, compared))} if compared[0] != compared[1] else options


# --- is it a frame, and are these names? ------------------------------------------------------------------------------


def _is_frame(value: object) -> bool:
    """Whether a value has columns with names: a data frame, a mapping, or a structured array."""
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None
    kind = type(value)  # whose attributes compute nothing: lazy frames warn at `columns`
    return isinstance(value, Mapping) or hasattr(kind, "columns") or hasattr(kind, "column_names")


def _names_columns(names: Sequence[str], columns: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether the argument after the frame names a column, or is one too many without a frame."""
    if len(columns) >= len(names) and names:
        return True
    following = columns[0] if columns else options.get(names[0]) if names else None
    return _is_name(following) or _is_list_of_names(following)


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(_is_name, value))


def _refuse_frame_alone(frame: Any, names: Sequence[str], columns: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Reject a frame without names of columns. A mapping may be a `SketchTable`, which is accepted alone."""
    if columns or isinstance(frame, Mapping) or any(name in options for name in names):
        return
    example = ", ".join(f'"{name}"' for name in ("y", "p")[-len(names) :])
    problem = f"is a data frame; name the columns after it, as in (frame, {example})."
    raise invalid(names[0], f"{problem} It has {list_shown(_column_names(frame))}.", TypeError)


# --- columns ----------------------------------------------------------------------------------------------------------


def _resolve(frame: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Replace names of columns by the columns, for the arguments that are columns."""
    wanted = [(role, name) for role, value in given.items() for name in _listed_names(role, value)]
    require_columns(wanted, _column_names(frame), "the frame")
    read = _read_columns(frame, [name for _, name in wanted], given)
    return {role: _column_of(role, value, read) for role, value in given.items()}


def _listed_names(role: str, value: Any) -> list[Any]:
    """Names of columns in an argument; none if it holds a column itself, or is no column."""
    if role in (*_ONE, *_SEVERAL) and _is_name(value):
        return [value]
    if role == "y_proba" and isinstance(value, Mapping) and all(map(_is_name, value.values())):  # several models
        return list(value.values())
    if _is_list_of_names(value) and role in (*_ONE, *_SEVERAL):
        if role not in _SEVERAL:
            raise invalid(role, f"must name one column of the frame; got {shown(value)}.", TypeError)
        return list(value)
    return []


def _column_of(role: str, value: Any, read: Mapping[Any, Any]) -> Any:
    names = _listed_names(role, value)
    if not names:
        return value
    if role == "segments":
        return [read[name] for name in names] if len(names) > 1 else read[names[0]]
    if role == "by":
        return {str(name): read[name] for name in names}
    if isinstance(value, Mapping):
        return {model: read[name] for model, name in value.items()}
    if not isinstance(value, list | tuple):
        return read[value]
    # Several outcomes are in the order of the predictions, whatever their names are.
    matrix = np.column_stack([as_vector(read[name], role) for name in names])
    return matrix if role == "y_true" else ColumnMatrix(matrix, names)


class ColumnMatrix:
    """Columns of a frame side by side, with their names: an array of shape (n, k) that knows the names of classes."""

    def __init__(self, values: NDArray[Any], columns: list[Any]) -> None:
        self._values, self.columns = values, columns

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and of columns."""
        return self._values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._values if dtype is None else self._values.astype(dtype)


def columns_by_name(frame: Any, name: str) -> dict[str, Any] | None:
    """Return the columns of a frame in memory (parameter `name`) by their names; None if it is not a frame."""
    if isinstance(frame, ColumnMatrix):
        names, columns = frame.columns, list(np.asarray(frame).T)
    elif _is_frame(frame):
        names = _column_names(frame)
        columns = list(_read_columns(frame, names, {}).values())
    else:
        return None
    repeated = [column for column, times in Counter(map(str, names)).items() if times > 1]
    if repeated:
        raise invalid(name, f"has more than one column {repeated[0]!r}; each model needs its own name.")
    return dict(zip(map(str, names), columns, strict=True))


def _column_names(frame: Any) -> list[Any]:
    """Names of the columns of a frame, as its library spells them."""
    if isinstance(frame, np.ndarray):
        return list(frame.dtype.names or ())
    if isinstance(frame, Mapping):
        return list(frame)
    if hasattr(frame, "collect_schema"):  # polars, whose lazy frames warn at `columns`
        return list(frame.collect_schema().names())
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _read_columns(frame: Any, names: Sequence[Any], given: Mapping[str, Any]) -> Mapping[Any, Any]:
    """Columns of a frame by name. Lazy frames in this process are collected, without their other columns."""
    distinct = list(dict.fromkeys(names))
    library = type(frame).__module__.partition(".")[0]
    if library in _ELSEWHERE:
        _refuse_elsewhere(frame, given)
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):  # polars
        frame = frame.select(distinct).collect()
    elif library in ("duckdb", "_duckdb"):
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in distinct)
        frame = frame.project(quoted).fetchnumpy()
    return {name: frame[name] for name in distinct}


def _refuse_elsewhere(frame: Any, given: Mapping[str, Any]) -> None:
    """Reject a frame whose rows are not in this process, with the call that reduces them where they are."""
    options = [f"{name}={given[name]!r}" for name in ("y_true", "y_proba", "sample_weight", "groups", "by")
               if given.get(name) is not None]  # fmt: skip
    library = type(frame).__module__.partition(".")[0]
    cure = f"Reduce it there, and pass the result: sketch_frame(frame, {', '.join(options)})."
    raise invalid("frame", f"of {library} has its rows outside of this process. {cure}", TypeError, subject="the frame")


def require_columns(named: Iterable[tuple[str, Any]], available: Iterable[Any], where: str) -> None:
    """Check that all columns with a role, pairs of the role and the name, exist once; raise if not."""
    columns = list(available)
    counts = Counter(columns)  # one pass: a file may have 100,000 columns
    for role, name in named:
        if name not in counts:
            close = closest_name(name, columns)
            suggestion = f" Did you mean {shown(close)}?" if close != "" else ""
            by = role if role.startswith("--") else f"`{role}`"
            start, end = f"{where} has no column {name!r} (named by ", f"); it has {list_shown(columns)}.{suggestion}"
            error = ValueError(f"{start}{by}{end}")
            error.__dict__["around_role"] = start, role, end  # so that the command line can name its flag
            raise error
        if counts[name] > 1:
            raise ValueError(f"{where} has {counts[name]} columns named {name!r}; rename all but one.")
