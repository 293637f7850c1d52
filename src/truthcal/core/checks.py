"""Checks of rows: outcomes, predictions and weights become valid arrays, or one clear error.

`invalid` builds all errors that name a parameter. Parameters are checked in `params.py`, columns of files and frames in
`io`.

Checked arrays are contiguous, in native byte order and read-only views: kernels see one layout, and the user's data
cannot be changed. Numpy arrays of a suitable type are never copied.
"""

import itertools
import math
import numbers
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import parts_of, run_tasks
from truthcal.kernels import rows as kernel

# A sketch adds fourth powers of raw weights, so these bounds keep every sum finite and nothing from vanishing.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-70, 1e70
# Elsewhere only the ratio of weights matters, and this is the smallest allowed.
WIDEST_WEIGHT = 1e-90
# Text labels that probably are the positive one.
_POSITIVE_WORDS = ("1", "true", "t", "yes", "y", "positive", "pos")
_PASS_NUMBERS = "Pass numbers."
# Parameters that hold outcomes, here and for torch.
_OUTCOMES = ("y_true", "y", "target")


def invalid(
    parameter: str,
    problem: str,
    kind: type[Exception] = ValueError,
    *,
    subject: str | None = None,
    fix: tuple[object, ...] = (),
    cause: Literal["", "missing", "fractional", "too few groups", "percent"] = "",
) -> Exception:
    """Build the error of a failed check: "`parameter` problem".

    The parts are attributes of the error, so that the command line can name its flag in place of the parameter.
    `subject` replaces the parameter's name at the start of the message. `fix` is another parameter to name or set, as
    ``(name,)`` or ``(name, value)``; it ends the message. `cause` is the reason why rows cannot be used, if the command
    line has an option to leave out such rows, or an exit status for it.
    """
    end = "" if not fix else f" `{fix[0]}`." if len(fix) == 1 else f" {fix[0]}={fix[1]!r}."
    error = kind(f"{subject or f'`{parameter}`'} {problem}{end}")
    error.__dict__.update(parameter=parameter, problem=problem, subject=subject, fix=fix, cause=cause)
    return error


class Checked(NamedTuple):
    """Rows fit for use. `p`: float32 or float64 in [0, 1]. `y`: uint8 (0/1) or float64 in [0, 1]. `w`: > 0, or None."""

    p: NDArray[Any]
    y: NDArray[Any]
    w: NDArray[np.float64] | None


def check_rows(
    y_true: object,
    y_proba: object,
    sample_weight: object = None,
    pos_label: object = None,
    *,
    part: bool = False,
    name: str = "y_proba",
) -> Checked:
    """Check outcomes, predictions (parameter `name`) and weights together.

    With `part`, these are only some of the user's rows, which may all have weight 0 or predictions of 0 and 1.
    """
    truth, proba, *weight = as_columns(y_true=y_true, **{name: y_proba}, sample_weight=sample_weight)
    _refuse_text_as_proba(truth, proba, name)
    y, p = _check_outcomes(truth, pos_label), _check_probabilities(proba, name)
    if not part and y.dtype != np.uint8:
        refuse_swapped(bool(((p == 0) | (p == 1)).all()))
    return _with_weight(p, y, weight, not part)


def check_report(report: object, truth: object, sample_weight: object = None, *, name: str = "report") -> Checked:
    """Check a report (parameter `name`) and true probabilities, which take the place of outcomes."""
    reported, true, *weight = as_columns(**{name: report}, truth=truth, sample_weight=sample_weight)
    p, y = _check_probabilities(reported, name), _check_probabilities(true, "truth")
    return _with_weight(p, read_only(y.astype(np.float64)), weight, True)


def _with_weight(p: NDArray[Any], y: NDArray[Any], weight: list[NDArray[Any]], some_weight: bool) -> Checked:
    """Add checked weights to checked rows, if there are any, and drop rows of weight 0."""
    if not weight:
        return Checked(p, y, None)
    w = check_weights(weight[0])
    if w.min() > 0:
        return Checked(p, y, w)
    positive = w > 0
    if some_weight:
        refuse_no_weight(int(positive.sum()))
    return Checked(read_only(p[positive]), read_only(y[positive]), read_only(w[positive]))


# --- containers -------------------------------------------------------------------------------------------------------


def as_columns(**columns: object) -> list[NDArray[Any]]:
    """Check columns and return them as arrays of the same length, without `sample_weight` if it is None."""
    columns = {name: values for name, values in columns.items() if values is not None or name != "sample_weight"}
    arrays = {name: as_vector(values, name) for name, values in columns.items()}
    for first, second in itertools.combinations(columns, 2):
        refuse_unlike(columns[first], arrays[first], first, arrays[second], second, columns[second])
    return list(arrays.values())


def refuse_unlike(
    values: object, array: NDArray[Any], name: str, other: NDArray[Any], other_name: str, other_values: object
) -> None:
    """Reject columns of different lengths, or pandas columns whose index labels say that rows do not match."""
    if len(array) != len(other):
        problem = f"has {len(array)} rows but `{other_name}` has {len(other)}"
        raise invalid(name, f"{problem}; they must match row by row.")
    refuse_other_order(values, other_values, (name, other_name))


def as_vector(values: object, name: str) -> NDArray[Any]:
    """Check a column-like object and convert it to a one-dimensional numpy array of its type."""
    array = values if type(values) is np.ndarray else _column_to_numpy(values, name)
    if array.ndim != 1:
        raise invalid(name, f"must be one-dimensional; got {_describe_shape(values, array, name)}")
    if array.size == 0:
        raise invalid(name, "is empty; at least one row is needed.")
    # numpy's own strings may hold missing values, which cannot be compared; as objects they are detected
    return array.astype(object) if array.dtype.kind == "T" else array


def _column_to_numpy(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        refuse_missing_values(np.ma.getmaskarray(values).ravel(), name, "masked")
    arrow = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    if arrow and not hasattr(values, "__array__"):
        values = _column_from_arrow(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "U" and isinstance(values, list | tuple) and any(value != value for value in values):
            return np.fromiter(values, object, len(values))  # numpy makes the text 'nan' of a missing value
        return array
    except Exception as error:
        cure = "Pass a flat list or array; for a torch tensor, .detach().cpu().float()."
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")
        raise invalid(name, f"could not be read as an array ({cause}). {cure}", TypeError) from error


def _column_from_arrow(values: object, name: str) -> object:
    try:
        import pyarrow
    except ImportError:
        problem = f"is an Arrow object ({type(values).__name__}); reading it needs pyarrow: pip install pyarrow."
        raise invalid(name, problem, TypeError) from None
    return pyarrow.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pyarrow.array(values)


def _describe_shape(values: object, array: NDArray[Any], name: str) -> str:
    if isinstance(values, Mapping):
        return "a mapping. Pass one column; for several models use compare_models or report, for classes an array."
    if array.ndim == 0:
        return f"{type(values).__name__}. Pass a list, an array or a column of a data frame."
    if name == "y_proba" and array.ndim == 2 and array.shape[1] == 2:
        return f"shape {array.shape}. Output of predict_proba? Pass the positive class's column, [:, 1]."
    if array.ndim == 2 and array.shape[1] == 1:
        return f'shape {array.shape}. Pass the column itself: frame["name"], or array.ravel().'
    if name == "y_true":
        return (
            f"shape {array.shape}. Pass one column; if these are predictions, the arguments are swapped: y_true first."
        )
    several = " For a column per class use assess or multiclass_atb." if name == "y_proba" and array.ndim == 2 else ""
    return f"shape {array.shape}. Pass one column.{several}"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of a checked column; booleans as bytes, so that kernels see one type."""
    view = array.view(np.uint8) if array.dtype == np.bool_ else array.view()
    view.flags.writeable = False
    return view


def is_plain(array: NDArray[Any]) -> bool:
    """Check whether a kernel can read a column without conversion."""
    kind = array.dtype
    return kind.kind in "biuf" and kind != np.float16 and kind.itemsize <= 8 and kind.isnative


# --- how columns fit together -----------------------------------------------------------------------------------------


def refuse_other_order(first: object, second: object, names: tuple[str, str], *, other_rows: bool = True) -> None:
    """Reject pandas objects whose index labels are the same in another order; with `other_rows`, without common labels.

    A transformer that returns a new frame numbers its rows anew, so features and outcomes may have no label in common.
    """
    one: Any = getattr(first, "index", None)
    two: Any = getattr(second, "index", None)
    if not (hasattr(one, "equals") and hasattr(two, "equals")) or one.equals(two) or len(one) != len(two):
        return
    try:
        same_labels = one.sort_values().equals(two.sort_values())
    except TypeError:  # labels of mixed types cannot be sorted
        same_labels = Counter(one) == Counter(two)
    if same_labels or (other_rows and _share_no_label(one, two)):
        how = "the same index labels in a different order" if same_labels else "no index label in common"
        problem = f"and `{names[1]}` have {how}."
        raise invalid(names[0], f"{problem} Align them first, or pass .to_numpy() of both to pair them by position.")


def _share_no_label(one: Any, two: Any) -> bool:
    """Whether columns have indexes of one kind without a common label. Row numbers beside other labels say nothing."""
    kinds = {getattr(index.dtype, "kind", "O").replace("u", "i") for index in (one, two)}
    return len(kinds) == 1 and not bool(one.isin(two).any())


def refuse_fractional(y: NDArray[Any] | None) -> None:
    """Reject fractional outcomes. Pass None if there are some in unknown rows."""
    fractions = None if y is None or y.dtype == np.uint8 else (y != 0) & (y != 1)
    if y is None or (fractions is not None and fractions.any()):
        example = f"; found {where_found(y, fractions)}" if y is not None and fractions is not None else ""
        reason = "Fractions are treated as true probabilities, which have no sampling noise to test."
        raise invalid("y_true", f"must contain only 0 and 1 here{example}. {reason}", cause="fractional")


def refuse_swapped(predictions_are_certain: bool) -> None:
    """Reject fractional outcomes with predictions of 0 and 1 only."""
    if predictions_are_certain:
        problem = "has only 0 and 1, but the outcomes are fractions: the arguments look swapped. Outcomes belong in"
        raise invalid("y_proba", problem, fix=("y_true",))


def _refuse_text_as_proba(truth: NDArray[Any], proba: NDArray[Any], name: str) -> None:
    """Reject words as predictions of fractional outcomes: the columns are probably swapped."""
    if truth.dtype.kind == "f" and _is_text_column(proba) and _cure_text(_as_text(proba[0])) == _PASS_NUMBERS:
        problem = f"contains text labels ({_examples(proba)}), and `y_true` has numbers: the arguments look swapped."
        raise invalid(name, f"{problem} Outcomes belong in", TypeError, fix=("y_true",))


# --- predictions ------------------------------------------------------------------------------------------------------


def check_proba(y_proba: object, name: str) -> NDArray[Any]:
    """Check predictions alone."""
    return _check_probabilities(as_vector(y_proba, name), name)


def _check_probabilities(raw: NDArray[Any], name: str) -> NDArray[Any]:
    _refuse_other_kind(raw, name, "probabilities")
    small = raw.dtype.kind == "f" and raw.dtype.itemsize <= 4
    p = read_only(np.ascontiguousarray(raw, dtype=np.float32 if small else np.float64))
    if _count_in_parts(kernel.count_outside_unit, p):
        refuse_missing_values(np.isnan(p), name, "nan")
        found, cure = where_found(p, ~((p >= 0) & (p <= 1))), cure_outside_unit(float(p.min()), float(p.max()))
        raise invalid(name, f"must lie in [0, 1]; found {found}. {cure}")
    return p


def _count_in_parts(count: Callable[..., int], *columns: NDArray[Any]) -> int:
    """Count rows with a kernel, on all cores; a check takes a sixteenth of the time of sorting."""
    rows = len(columns[0])
    return sum(run_tasks([partial(count, *(column[a:b] for column in columns)) for a, b in parts_of(rows)], rows // 16))


def _refuse_other_kind(raw: NDArray[Any], name: str, wanted: str) -> None:
    if raw.dtype.kind in "biuf":
        return
    if raw.dtype.kind == "O":
        refuse_missing_values(is_missing_object(raw), name, "None or NA")
    cure, example = _PASS_NUMBERS, f"first value {_python_value(raw[0])!r}"
    if _is_text_column(raw):
        cure = _cure_text(_as_text(raw[0]))
    elif raw.dtype.kind == "O":
        odd = next((row for row, value in enumerate(raw) if not isinstance(value, numbers.Number | np.generic)), None)
        cure = "Convert with .astype(float)." if odd is None else cure
        example = f"{raw[odd]!r} at row {odd}, beside numbers" if odd else example
    raise invalid(name, f"must contain {wanted}; got dtype {raw.dtype} ({example}). {cure}", TypeError)


def _cure_text(first: str) -> str:
    """Suggest how to convert a column of text to numbers, by its first value."""
    try:
        float(first.strip().removesuffix("%"))
    except ValueError:
        return _PASS_NUMBERS
    if first.strip().endswith("%"):
        return 'Percentages written as text? Remove "%", convert with .astype(float), and divide by 100.'
    return "Numbers written as text? Convert with .astype(float)."


def cure_outside_unit(low: float, high: float) -> str:
    """Suggest what numbers from `low` to `high` are, and how to turn them into probabilities."""
    if math.isinf(low) or math.isinf(high):
        return "Log-odds of certain events? Apply the sigmoid first."
    if low >= -1e-6 and high <= 1 + 1e-6:
        return "Rounding error? Clip with np.clip(..., 0, 1)."
    if low >= 0 and high < 2:
        return "Scores, or output of a regression? Convert them to probabilities first."
    if low >= 0 and high <= 100:
        return "Percentages? Divide by 100."
    if low >= 0:
        return "Another column, or scores? Pass predicted probabilities."
    if high <= 0:
        return "Log-probabilities? Apply np.exp first."
    return "Logits or scores? Apply the sigmoid (or softmax) first."


def refuse_missing_values(
    missing: NDArray[np.bool_], name: str, what: str, cure: str = "Drop those rows, or impute the values."
) -> None:
    """Reject a column with missing values, described by `what`. Outcomes must not be imputed: they are the evidence."""
    if missing.any():
        cure = "Drop those rows." if name in _OUTCOMES else cure
        raise invalid(name, f"has a missing value ({what}) {row_of_first(missing)}. {cure}")


def where_found(values: NDArray[Any], bad: NDArray[np.bool_]) -> str:
    """Return the first bad value and its position, for the error of a check."""
    return f"{values[bad.argmax()].item()!r} {row_of_first(bad)}"


def row_of_first(bad: NDArray[np.bool_]) -> str:
    """Row of the first bad value, and their number, for an error. Rows are counted from 0, as by numpy and pandas."""
    return f"at row {int(bad.argmax())} ({int(bad.sum())} of {len(bad)} rows)"


def is_missing_object(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an object array holds None, NA, NaT or nan."""

    def is_missing(value: object) -> bool:
        nan = isinstance(value, float) and math.isnan(value)
        return nan or value is None or type(value).__name__ in ("NAType", "NaTType")

    return np.fromiter((is_missing(value) for value in raw), np.bool_, len(raw))


def _python_value(value: object) -> object:
    """Convert a numpy scalar to a Python value, for the error of a check: it prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


def _as_text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _is_text_column(raw: NDArray[Any]) -> bool:
    if raw.dtype.kind != "O":
        return raw.dtype.kind in "US"
    return all(isinstance(value, str) for value in raw) or all(isinstance(value, bytes) for value in raw)


# --- outcomes ---------------------------------------------------------------------------------------------------------


def _check_outcomes(raw: NDArray[Any], pos_label: object) -> NDArray[Any]:
    """Check outcomes; return 0/1 as bytes, fractional ones as float64."""
    if pos_label is not None:
        raw = positive_labels(raw, pos_label)
    if _is_text_column(raw):
        if len(found := np.unique(raw)) > 2:
            problem = f"contains {len(found):,} labels ({_examples(raw)}), and `y_proba` is one column"
            example = _python_value(raw[0])
            cure = f"Pass a column for each class, shape (n, {len(found)}), or one class against the rest"
            raise invalid("y_true", f"{problem}. {cure}: y_true == {example!r} and the probability of {example!r}.")
        problem = f"contains text labels ({_examples(raw)}); name the positive one, for example"
        likely = (label for label in np.unique(raw) if _as_text(label).strip().lower() in _POSITIVE_WORDS)
        raise invalid("y_true", problem, fix=("pos_label", _python_value(next(likely, raw[0]))))
    _refuse_other_kind(raw, "y_true", "0/1, True/False or probabilities")
    if raw.dtype.itemsize == 1:
        labels = np.ascontiguousarray(raw).view(np.uint8)
        if labels.max() <= 1:
            return read_only(labels)
        if raw.dtype.kind == "b":  # bytes other than 0 and 1, viewed as booleans
            return read_only(labels != 0)
    values = _readable(raw)
    labels = np.empty(len(values), np.uint8)
    if not _count_in_parts(kernel.binary_labels, values, labels):
        return read_only(labels)
    if raw.dtype.kind != "f" or kernel.count_outside_unit(values):
        _refuse_labels(values)
    return read_only(values.astype(np.float64, copy=False))


def _readable(raw: NDArray[Any]) -> NDArray[Any]:
    """Convert a checked column to a type and layout that a kernel can read."""
    if raw.dtype.kind == "f" and raw.dtype.itemsize not in (4, 8):
        raw = raw.astype(np.float32 if raw.dtype.itemsize < 4 else np.float64)
    return read_only(np.ascontiguousarray(raw, dtype=raw.dtype.newbyteorder("=")))


def _refuse_labels(values: NDArray[Any]) -> NoReturn:
    if values.dtype.kind == "f":
        refuse_missing_values(np.isnan(values), "y_true", "nan")
    example = where_found(values, ~((values >= 0) & (values <= 1)))
    rule = f"must contain 0/1, True/False or probabilities in [0, 1]; found {example}."
    labels = np.unique(values).tolist()
    if len(labels) == 1:
        raise invalid("y_true", f"{rule} If {labels[0]!r} is the positive label, pass", fix=("pos_label", labels[0]))
    if len(labels) == 2:
        cure = f"For the labels {labels[0]!r} and {labels[1]!r}, name the positive one:"
        raise invalid("y_true", f"{rule} {cure}", fix=("pos_label", labels[1]))
    classes = f"There are {len(labels)} different values ({_examples(values)}), so these are not binary outcomes"
    if any(label % 1 for label in labels if math.isfinite(label)):
        raise invalid("y_true", f"{rule} {classes}; for amounts, pass whether a threshold is exceeded: `y_true > t`.")
    raise invalid("y_true", f"{rule} {classes}; for one class against the rest pass `y_true == that_class`.")


def positive_labels(raw: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Return which rows of `y_true` have the label `pos_label`; the others must have one other label."""
    if np.ndim(pos_label) != 0 or pos_label != pos_label:
        raise invalid("pos_label", f"must be a single label; got {pos_label!r}.", TypeError)
    if raw.dtype.kind == "O":
        refuse_missing_values(is_missing_object(raw), "y_true", "None or NA")
    if raw.dtype.kind == "f":
        refuse_missing_values(np.isnan(raw), "y_true", "nan")
    text = _is_text_column(raw)
    if not text:
        _refuse_other_kind(raw, "y_true", "labels (numbers, True/False or text)")
    if text != isinstance(pos_label, str | bytes):
        rule = f"must have the same type as the labels in `y_true` ({_examples(raw)})"
        raise invalid("pos_label", f"{rule}; got {pos_label!r}.")
    positive: NDArray[np.bool_] = np.asarray(raw == pos_label, dtype=np.bool_)
    others = raw[~positive]
    if others.size and bool((others != others[0]).any()):
        if not positive.any():
            raise invalid("pos_label", f"must be one of the labels in `y_true` ({_examples(raw)}); got {pos_label!r}.")
        cure = f"for one class against the rest pass `y_true == {pos_label!r}`"
        raise invalid("y_true", f"has more than two different labels ({_examples(raw)}); {cure}.")
    return positive


def _examples(raw: NDArray[Any]) -> str:
    """List up to four different values of a column, for the error of a check."""
    seen = dict.fromkeys(raw[:1000].tolist()) | dict.fromkeys(np.unique(raw)[:4].tolist())
    return ", ".join([repr(value) for value in seen][:4]) + (", ..." if len(seen) > 4 else "")


# --- weights ----------------------------------------------------------------------------------------------------------


def check_weights(raw: NDArray[Any]) -> NDArray[np.float64]:
    """Check weights; return them as float64."""
    _refuse_other_kind(raw, "sample_weight", "numbers")
    w = np.ascontiguousarray(raw, dtype=np.float64)
    low, high = float(w.min()), float(w.max())
    if not (low >= 0 and high < math.inf):
        refuse_missing_values(np.isnan(w), "sample_weight", "nan")
        bad = ~((w >= 0) & np.isfinite(w))
        problem = f"must be finite and not negative; found {where_found(w, bad)}. Drop or correct these rows."
        raise invalid("sample_weight", problem)
    return read_only(w)


def refuse_no_weight(rows_with_weight: int) -> None:
    """Reject rows whose weights are all zero."""
    if rows_with_weight == 0:
        raise invalid("sample_weight", "is zero in every row; at least one weight must be positive.")


def refuse_weights_between(low: float, high: float, subject: str | None = None) -> NoReturn:
    """Reject weights from `low` to `high`, which are beyond what a sketch can add up."""
    rule = f"must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g} for a sketch; found {low:g} to {high:g}"
    cure = "Only ratios matter, so multiply the weights of all updates by the same number."
    raise invalid("sample_weight", f"{rule}. {cure}", subject=subject)


def refuse_wide_weight(w: NDArray[np.float64]) -> None:
    """Reject a range of weights so wide that squares underflow: the smallest weights would be lost silently."""
    if w.min() < w.max() * WIDEST_WEIGHT:
        cure = "The smallest weights are lost next to the largest; set them to 0, or correct the weights."
        raise invalid("sample_weight", f"has too wide a range: {w.min():g} to {w.max():g}. {cure}")
