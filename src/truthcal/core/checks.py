"""Every check and every error message. User input comes in; valid arrays or one clear error go out.

Checked arrays are contiguous, in native byte order and read-only views: a kernel sees one layout, and nothing can
change what the user passed in. Numpy arrays of a fitting type are never copied.
"""

import itertools
import math
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import run_parts
from truthcal.kernels import prepare

# A sketch adds squares of raw weights, so these bounds keep every sum finite and nothing from vanishing.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
# Elsewhere only the ratio of weights matters, and this is the smallest allowed.
WIDEST_WEIGHT = 1e-90


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
    """Check outcomes, predictions (under their name) and weights together.

    With `part` these are only some of the user's rows, which may all have weight 0 or predictions of 0 and 1.
    """
    truth, proba, *weight = as_columns(y_true=y_true, **{name: y_proba}, sample_weight=sample_weight)
    y, p = run_parts(lambda: _outcomes(truth, pos_label), lambda: _probabilities(proba, name), len(proba))
    if not part and y.dtype != np.uint8:
        refuse_swapped(bool(((p == 0) | (p == 1)).all()))
    return _with_weight(p, y, weight, not part)


def check_report(report: object, truth: object, sample_weight: object = None, *, name: str = "report") -> Checked:
    """Check a report, under its name, against true probabilities, which take the place of outcomes."""
    reported, true, *weight = as_columns(**{name: report}, truth=truth, sample_weight=sample_weight)
    p, y = _probabilities(reported, name), _probabilities(true, "truth")
    return _with_weight(p, read_only(y.astype(np.float64)), weight, True)


def _with_weight(p: NDArray[Any], y: NDArray[Any], weight: list[NDArray[Any]], some_weight: bool) -> Checked:
    if not weight:
        return Checked(p, y, None)
    w = _weights(weight[0])
    if w.min() > 0:
        return Checked(p, y, w)
    kept = w > 0
    if some_weight:
        refuse_no_weight(int(kept.sum()))
    return Checked(read_only(p[kept]), read_only(y[kept]), read_only(w[kept]))


# --- containers -------------------------------------------------------------------------------------------------------


def as_columns(**given: object) -> list[NDArray[Any]]:
    """The columns that are given (not None) as arrays that belong together row by row."""
    given = {name: values for name, values in given.items() if values is not None or name != "sample_weight"}
    columns = {name: as_vector(values, name) for name, values in given.items()}
    for first, second in itertools.combinations(given, 2):
        if len(columns[first]) != len(columns[second]):
            raise ValueError(
                f"`{first}` has {len(columns[first])} rows but `{second}` has {len(columns[second])}; "
                "they must match row by row."
            )
        _refuse_other_order(given[first], given[second], (first, second))
    return list(columns.values())


def as_vector(values: object, name: str) -> NDArray[Any]:
    """Any column-like thing as a one-dimensional numpy array of its own type."""
    array = values if type(values) is np.ndarray else _to_numpy(values, name)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional; got {_shape_and_cure(values, array, name)}")
    if array.size == 0:
        raise ValueError(f"`{name}` is empty; at least one row is needed.")
    # numpy's own strings may hold missing values that cannot be compared: as objects they are found and named
    return array.astype(object) if array.dtype.kind == "T" else array


def _to_numpy(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        _refuse_missing(np.ma.getmaskarray(values).ravel(), name, "masked")
    if not hasattr(values, "__array__") and (
        hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    ):
        values = _from_arrow(values, name)
    try:
        return np.asarray(values)
    except Exception as error:
        raise TypeError(
            f"`{name}` could not be read as an array ({_one_line(error)}). "
            "Pass a flat list or array; for a torch tensor, .detach().cpu().float()."
        ) from error


def _from_arrow(values: object, name: str) -> object:
    try:
        import pyarrow
    except ImportError:
        raise TypeError(
            f"`{name}` is an Arrow object ({type(values).__name__}); reading it needs pyarrow: pip install pyarrow."
        ) from None
    if hasattr(values, "__arrow_c_stream__"):
        return pyarrow.chunked_array(values)
    return pyarrow.array(values)


def _shape_and_cure(values: object, array: NDArray[Any], name: str) -> str:
    if array.ndim == 0:
        return f"{type(values).__name__}. Pass a list, an array or a column of a data frame."
    if name == "y_proba" and array.ndim == 2 and array.shape[1] == 2:
        return f"shape {array.shape}. Output of predict_proba? Pass the positive class's column, [:, 1]."
    if array.ndim == 2 and array.shape[1] == 1:
        return f'shape {array.shape}. Pass the column itself: frame["name"], or array.ravel().'
    return f"shape {array.shape}. Pass one column."


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through; booleans as the bytes they are, so that kernels see one type."""
    view = array.view(np.uint8) if array.dtype == np.bool_ else array.view()
    view.flags.writeable = False
    return view


def is_plain(array: NDArray[Any]) -> bool:
    """Whether a kernel can read the array as it is."""
    return (
        array.dtype.kind in "biuf" and array.dtype != np.float16 and array.dtype.itemsize <= 8 and array.dtype.isnative
    )


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")


# --- how columns fit together -----------------------------------------------------------------------------------------


def _refuse_other_order(first: object, second: object, names: tuple[str, str]) -> None:
    """Two pandas columns with the same index labels in another order were meant to be paired by label."""
    one: Any = getattr(first, "index", None)
    two: Any = getattr(second, "index", None)
    if not (hasattr(one, "equals") and hasattr(two, "equals")) or one.equals(two) or len(one) != len(two):
        return
    try:
        same_labels = one.sort_values().equals(two.sort_values())
    except TypeError:  # labels of mixed types have no order; nothing can be said about them
        return
    if same_labels:
        raise ValueError(
            f"`{names[0]}` and `{names[1]}` have the same index labels in a different order. Align them first, or pass "
            ".to_numpy() of both to pair them by position."
        )


def refuse_apart(a: object, b: object) -> None:
    """Two columns of predictions of the same rows: as long as one another, and in the same order."""
    as_columns(y_proba_a=a, y_proba_b=b)


def refuse_fractional(y: NDArray[Any] | None) -> None:
    """What is said of chance needs outcomes that happened. None: fractions are known to be there, but not where."""
    fractions = None if y is None or y.dtype == np.uint8 else (y != 0) & (y != 1)
    if y is None or (fractions is not None and fractions.any()):
        found = f"; found {where_found(y, fractions)}" if y is not None and fractions is not None else ""
        raise ValueError(
            f"`y_true` must hold outcomes, 0 or 1, here{found}. Fractions are taken for true probabilities, of which "
            "nothing is left to chance."
        )


def refuse_swapped(predictions_are_certain: bool) -> None:
    """Fractional outcomes beside predictions of nothing but 0 and 1."""
    if predictions_are_certain:
        raise ValueError(
            "`y_proba` holds only 0 and 1 while `y_true` holds fractions: the arguments look swapped. "
            "The order is (y_true, y_proba), outcomes first."
        )


# --- predictions ------------------------------------------------------------------------------------------------------


def check_proba(y_proba: object, name: str) -> NDArray[Any]:
    """Check predictions alone."""
    return _probabilities(as_vector(y_proba, name), name)


def _probabilities(raw: NDArray[Any], name: str) -> NDArray[Any]:
    _refuse_other_kind(raw, name, "probabilities")
    small = raw.dtype.kind == "f" and raw.dtype.itemsize <= 4
    p = read_only(np.ascontiguousarray(raw, dtype=np.float32 if small else np.float64))
    if prepare.count_outside_unit(p):
        _refuse_outside_unit(p, name)
    return p


def _refuse_other_kind(raw: NDArray[Any], name: str, wanted: str) -> None:
    if raw.dtype.kind in "biuf":
        return
    if raw.dtype.kind == "O":
        _refuse_missing(is_missing_object(raw), name, "None or NA")
    cure = "Convert with .astype(float)." if raw.dtype.kind == "O" else "Pass numbers."
    if _is_text(raw):
        cure = "Numbers written as text? Convert with .astype(float)."
    raise TypeError(f"`{name}` must hold {wanted}; got dtype {raw.dtype} (first value {_plain(raw[0])!r}). {cure}")


def _refuse_outside_unit(p: NDArray[Any], name: str) -> NoReturn:
    _refuse_missing(np.isnan(p), name, "nan")
    bad = ~((p >= 0) & (p <= 1))
    cure = cure_outside_unit(float(p.min()), float(p.max()))
    raise ValueError(f"`{name}` must lie in [0, 1]; found {where_found(p, bad)}. {cure}")


def cure_outside_unit(low: float, high: float) -> str:
    """What numbers from `low` to `high` may be, if they are not the probabilities they should be."""
    if math.isinf(low) or math.isinf(high):
        return "Log-odds of certain events? Apply the sigmoid first."
    if low >= -1e-6 and high <= 1 + 1e-6:
        return "Rounding? Clip it with np.clip(..., 0, 1)."
    if low >= 0 and high <= 100:
        return "Percentages? Divide by 100."
    return "Logits or scores? Apply the sigmoid (or softmax) first."


def _refuse_missing(missing: NDArray[np.bool_], name: str, what: str) -> None:
    if missing.any():
        raise ValueError(
            f"`{name}` has a missing value ({what}) {_at(missing)}. Drop those rows, or fill them deliberately."
        )


def where_found(values: NDArray[Any], bad: NDArray[np.bool_]) -> str:
    """Return the first bad value and its position, for an error."""
    return f"{values[bad.argmax()].item()!r} {_at(bad)}"


def _at(bad: NDArray[np.bool_]) -> str:
    """Where the first of them is, and how many there are. Rows are counted from 0, as by numpy and pandas."""
    return f"at row {int(bad.argmax())} ({int(bad.sum())} of {len(bad)} rows)"


def is_missing_object(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an object array holds None, NA, NaT or nan."""

    def is_missing(value: object) -> bool:
        return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_nan(value)

    return np.fromiter((is_missing(value) for value in raw), np.bool_, len(raw))


def _plain(value: object) -> object:
    """A numpy scalar as the Python value that prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_text(raw: NDArray[Any]) -> bool:
    if raw.dtype.kind != "O":
        return raw.dtype.kind in "US"
    return all(isinstance(value, str) for value in raw) or all(isinstance(value, bytes) for value in raw)


# --- outcomes ---------------------------------------------------------------------------------------------------------


def _outcomes(raw: NDArray[Any], pos_label: object) -> NDArray[Any]:
    """Bytes for 0/1 outcomes, float64 for fractional ones."""
    if pos_label is not None:
        raw = positive_labels(raw, pos_label)
    if _is_text(raw):
        raise ValueError(
            f"`y_true` holds text labels ({_examples(raw)}); name the positive one, for example "
            f"pos_label={_plain(raw[0])!r}."
        )
    _refuse_other_kind(raw, "y_true", "0/1, True/False or probabilities")
    if raw.dtype.itemsize == 1:
        labels = np.ascontiguousarray(raw).view(np.uint8)
        if labels.max() <= 1:
            return read_only(labels)
        if raw.dtype.kind == "b":  # bytes that were declared to be booleans
            return read_only(labels != 0)
    values = _readable(raw)
    labels = np.empty(len(values), np.uint8)
    if not prepare.binary_labels(values, labels):
        return read_only(labels)
    if raw.dtype.kind != "f" or prepare.count_outside_unit(values):
        _refuse_labels(values)
    return read_only(values.astype(np.float64, copy=False))


def _readable(raw: NDArray[Any]) -> NDArray[Any]:
    """The numbers in a type and layout that a kernel can read."""
    if raw.dtype.kind == "f" and raw.dtype.itemsize not in (4, 8):
        raw = raw.astype(np.float32 if raw.dtype.itemsize < 4 else np.float64)
    return read_only(np.ascontiguousarray(raw, dtype=raw.dtype.newbyteorder("=")))


def _refuse_labels(values: NDArray[Any]) -> NoReturn:
    if values.dtype.kind == "f":
        _refuse_missing(np.isnan(values), "y_true", "nan")
    found = where_found(values, ~((values >= 0) & (values <= 1)))
    labels = np.unique(values)
    if len(labels) == 1:
        cure = f"If {labels[0].item()!r} is the positive label, pass pos_label={labels[0].item()!r}."
    elif len(labels) == 2:
        low, high = labels.tolist()
        cure = f"For the labels {low!r} and {high!r}, name the positive one: pos_label={high!r}."
    else:
        cure = (
            f"There are {len(labels)} different values ({_examples(values)}), so these are not binary outcomes; "
            "for one class against the rest pass `y_true == that_class`."
        )
    raise ValueError(f"`y_true` must hold 0/1, True/False or probabilities in [0, 1]; found {found}. {cure}")


def positive_labels(raw: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Which rows of `y_true` carry `pos_label`; all the others must agree on one other label."""
    if np.ndim(pos_label) != 0 or pos_label != pos_label:
        raise TypeError(f"`pos_label` must be a single label; got {pos_label!r}.")
    if raw.dtype.kind == "O":
        _refuse_missing(is_missing_object(raw), "y_true", "None or NA")
    if raw.dtype.kind == "f":
        _refuse_missing(np.isnan(raw), "y_true", "nan")
    text = _is_text(raw)
    if not text:
        _refuse_other_kind(raw, "y_true", "labels (numbers, True/False or text)")
    if text != isinstance(pos_label, str | bytes):
        raise ValueError(f"pos_label={pos_label!r} is not of the kind of the labels in `y_true` ({_examples(raw)}).")
    positive: NDArray[np.bool_] = np.asarray(raw == pos_label, dtype=np.bool_)
    others = raw[~positive]
    if others.size and bool((others != others[0]).any()):
        if not positive.any():
            raise ValueError(f"pos_label={pos_label!r} is not among the labels in `y_true` ({_examples(raw)}).")
        raise ValueError(
            f"`y_true` has more than two different labels ({_examples(raw)}); for one class against the rest pass "
            f"`y_true == {pos_label!r}`."
        )
    return positive


def _examples(raw: NDArray[Any]) -> str:
    """Up to four different values, enough to recognise a column by."""
    seen = dict.fromkeys(raw[:1000].tolist()) | dict.fromkeys(np.unique(raw)[:4].tolist())
    shown = [repr(value) for value in seen][:4]
    return ", ".join(shown) + (", ..." if len(seen) > 4 else "")


# --- weights ----------------------------------------------------------------------------------------------------------


def _weights(raw: NDArray[Any]) -> NDArray[np.float64]:
    _refuse_other_kind(raw, "sample_weight", "numbers")
    w = np.ascontiguousarray(raw, dtype=np.float64)
    low, high = float(w.min()), float(w.max())
    if not (low >= 0 and high < math.inf):
        _refuse_missing(np.isnan(w), "sample_weight", "nan")
        bad = ~((w >= 0) & np.isfinite(w))
        raise ValueError(
            f"`sample_weight` must be finite and not negative; found {where_found(w, bad)}. Drop or mend these rows."
        )
    return read_only(w)


def refuse_no_weight(rows_with_weight: int) -> None:
    """A set of rows whose weights are all zero says nothing."""
    if rows_with_weight == 0:
        raise ValueError("`sample_weight` is zero in every row; at least one row must count.")


def refuse_extreme_weight(w: NDArray[np.float64] | None) -> None:
    """Raw weights are added up in a sketch over its whole life, so they cannot be rescaled on the way in."""
    if w is not None and w.size and not (w.min() >= SMALLEST_WEIGHT and w.max() <= LARGEST_WEIGHT):
        refuse_weights_between(float(w.min()), float(w.max()), "`sample_weight`")


def refuse_weights_between(low: float, high: float, name: str) -> NoReturn:
    """Weights from `low` to `high` are beyond what a sketch can add up."""
    raise ValueError(
        f"{name} must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g} for a sketch; found {low:g} to "
        f"{high:g}. Only ratios matter: multiply all weights of all updates by one number."
    )


def refuse_wide_weight(w: NDArray[np.float64]) -> None:
    """Squares of weights this far apart would underflow, and the lightest rows vanish without a word."""
    if w.min() < w.max() * WIDEST_WEIGHT:
        raise ValueError(
            f"`sample_weight` spans too much: {w.min():g} to {w.max():g}. A row that light cannot count beside the "
            "heaviest; give it weight 0, or mend the weights."
        )
