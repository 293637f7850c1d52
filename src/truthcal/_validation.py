"""Every check and every error message. User input comes in; valid arrays or one clear error go out.

Checked arrays are contiguous, in native byte order and read-only views: a kernel sees one layout, and nothing can
change what the user passed in. Numpy arrays of a fitting type are never copied.
"""

import math
import operator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal._kernels import prepare
from truthcal._threads import both

# A sketch adds squares of raw weights, so these bounds keep every sum finite and nothing from vanishing.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100


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
    first_row: int | None = None,
    names: tuple[str, str] = ("y_true", "y_proba"),
) -> Checked:
    """Check outcomes, predictions and weights together.

    With `first_row` these are only a part of the user's rows, starting there: messages count from it, and the part may
    be without any weight.
    """
    start = first_row or 0
    truth, proba, *weight = as_columns(y_true, y_proba, sample_weight, names)
    y, p = both(
        lambda: _outcomes(truth, names[0], pos_label, start),
        lambda: _probabilities(proba, names[1], start),
        len(proba),
    )
    if names == ("y_true", "y_proba"):
        _refuse_swapped(y, p)
    if not weight:
        return Checked(p, y, None)
    w = _weights(weight[0], start)
    if w.min() > 0:
        return Checked(p, y, w)
    kept = w > 0
    if first_row is None:
        refuse_no_weight(int(kept.sum()))
    return Checked(read_only(p[kept]), read_only(y[kept]), read_only(w[kept]))


# --- containers -------------------------------------------------------------------------------------------------------


def as_columns(
    y_true: object, y_proba: object, sample_weight: object, names: tuple[str, str] = ("y_true", "y_proba")
) -> list[NDArray[Any]]:
    """Outcomes, predictions and, where given, weights as arrays that belong together row by row."""
    given = {names[0]: y_true, names[1]: y_proba}
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    columns = {name: as_vector(values, name) for name, values in given.items()}
    first = names[0]
    for name in list(given)[1:]:
        if len(columns[name]) != len(columns[first]):
            raise ValueError(
                f"`{first}` has {len(columns[first])} rows but `{name}` has {len(columns[name])}; "
                "they must match row by row."
            )
        _refuse_other_order(given[first], given[name], (first, name))
    return list(columns.values())


def as_vector(values: object, name: str) -> NDArray[Any]:
    """Any column-like thing as a one-dimensional numpy array of its own type."""
    array = values if type(values) is np.ndarray else _to_numpy(values, name)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional; got {_shape_and_cure(values, array)}")
    if array.size == 0:
        raise ValueError(f"`{name}` is empty; at least one row is needed.")
    return array


def _to_numpy(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        _refuse_missing(np.ma.getmaskarray(values).ravel(), name, "masked", 0)
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


def _shape_and_cure(values: object, array: NDArray[Any]) -> str:
    if array.ndim == 0:
        return f"{type(values).__name__}. Pass a list, an array or a column of a data frame."
    if array.ndim == 2 and array.shape[1] == 2:
        return f"shape {array.shape}. Output of predict_proba? Pass the positive class's column, [:, 1]."
    if array.ndim == 2 and array.shape[1] == 1:
        return f"shape {array.shape}. Pass the single column flat, for example with .ravel()."
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


def _refuse_swapped(y: NDArray[Any], p: NDArray[Any]) -> None:
    if y.dtype == np.uint8 or not ((p == 0) | (p == 1)).all():
        return
    raise ValueError(
        "`y_proba` holds only 0 and 1 while `y_true` holds fractions: the arguments look swapped. "
        "The order is (y_true, y_proba), outcomes first."
    )


# --- predictions ------------------------------------------------------------------------------------------------------


def check_proba(y_proba: object, name: str) -> NDArray[Any]:
    """Check predictions alone."""
    return _probabilities(as_vector(y_proba, name), name, 0)


def _probabilities(raw: NDArray[Any], name: str, first_row: int) -> NDArray[Any]:
    _refuse_other_kind(raw, name, "probabilities", first_row)
    small = raw.dtype.kind == "f" and raw.dtype.itemsize <= 4
    p = read_only(np.ascontiguousarray(raw, dtype=np.float32 if small else np.float64))
    if prepare.count_outside_unit(p):
        _refuse_outside_unit(p, name, first_row)
    return p


def _refuse_other_kind(raw: NDArray[Any], name: str, wanted: str, first_row: int) -> None:
    if raw.dtype.kind in "biuf":
        return
    if raw.dtype.kind == "O":
        _refuse_missing(_missing_objects(raw), name, "None or NA", first_row)
    cure = "Numbers written as text? Convert with .astype(float)." if _is_text(raw) else "Convert with .astype(float)."
    raise TypeError(f"`{name}` must hold {wanted}; got dtype {raw.dtype} (first value {raw[0]!r}). {cure}")


def _refuse_outside_unit(p: NDArray[Any], name: str, first_row: int) -> NoReturn:
    _refuse_missing(np.isnan(p), name, "nan", first_row)
    bad = ~((p >= 0) & (p <= 1))
    low, high = float(p.min()), float(p.max())
    if math.isinf(low) or math.isinf(high):
        cure = "Log-odds of certain events? Apply the sigmoid first."
    elif low >= -1e-6 and high <= 1 + 1e-6:
        cure = "Rounding? Clip it with np.clip(..., 0, 1)."
    elif low >= 0 and high <= 100:
        cure = "Percentages? Divide by 100."
    else:
        cure = "Logits or scores? Apply the sigmoid (or softmax) first."
    raise ValueError(f"`{name}` must lie in [0, 1]; found {_where(p, bad, first_row)}. {cure}")


def _refuse_missing(missing: NDArray[np.bool_], name: str, what: str, first_row: int) -> None:
    if missing.any():
        raise ValueError(
            f"`{name}` has a missing value ({what}) at row {first_row + int(missing.argmax())}, "
            f"{_rows(int(missing.sum()))} in all. Drop those rows, or fill them deliberately."
        )


def _where(values: NDArray[Any], bad: NDArray[np.bool_], first_row: int) -> str:
    row = int(bad.argmax())
    return f"{values[row].item()!r} at row {first_row + row}, {_rows(int(bad.sum()))} in all"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _missing_objects(raw: NDArray[Any]) -> NDArray[np.bool_]:
    def is_missing(value: object) -> bool:
        return value is None or type(value).__name__ in ("NAType", "NaTType") or _is_nan(value)

    return np.fromiter((is_missing(value) for value in raw), np.bool_, len(raw))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_text(raw: NDArray[Any]) -> bool:
    return raw.dtype.kind in "UST" or (raw.dtype.kind == "O" and all(isinstance(v, str | bytes) for v in raw))


# --- outcomes ---------------------------------------------------------------------------------------------------------


def _outcomes(raw: NDArray[Any], name: str, pos_label: object, first_row: int) -> NDArray[Any]:
    """Bytes for 0/1 outcomes, float64 for fractional ones."""
    if pos_label is not None:
        raw = positive_labels(raw, name, pos_label, first_row)
    if raw.dtype.kind == "b":
        return read_only(np.ascontiguousarray(raw))
    if _is_text(raw):
        raise ValueError(f"`{name}` holds text labels ({_examples(raw)}); name the positive one with pos_label=...")
    if raw.dtype.itemsize == 1 and raw.dtype.kind in "iu":
        labels = np.ascontiguousarray(raw).view(np.uint8)
        if labels.max() <= 1:
            return read_only(labels)
    _refuse_other_kind(raw, name, "0/1, True/False or probabilities", first_row)
    plain = np.float32 if raw.dtype == np.float16 else raw.dtype.newbyteorder("=")
    values = read_only(np.ascontiguousarray(raw, dtype=np.float64 if raw.dtype.itemsize > 8 else plain))
    labels = np.empty(len(values), np.uint8)
    if not prepare.binary_labels(values, labels):
        return read_only(labels)
    if raw.dtype.kind != "f" or prepare.count_outside_unit(values):
        _refuse_labels(values, name, first_row)
    return read_only(values.astype(np.float64, copy=False))


def _refuse_labels(values: NDArray[Any], name: str, first_row: int) -> NoReturn:
    if values.dtype.kind == "f":
        _refuse_missing(np.isnan(values), name, "nan", first_row)
    found = _where(values, ~((values >= 0) & (values <= 1)), first_row)
    labels = np.unique(values)
    if len(labels) == 1:
        cure = f"If {labels[0].item()!r} is the positive label, pass pos_label={labels[0].item()!r}."
    elif len(labels) == 2:
        low, high = labels.tolist()
        cure = f"For the labels {low!r} and {high!r}, name the positive one: pos_label={high!r}."
    else:
        cure = (
            f"There are {len(labels)} different values ({_examples(values)}), so these are not binary outcomes; "
            f"for one class against the rest pass `{name} == that_class`."
        )
    raise ValueError(f"`{name}` must hold 0/1, True/False or probabilities in [0, 1]; found {found}. {cure}")


def positive_labels(raw: NDArray[Any], name: str, pos_label: object, first_row: int = 0) -> NDArray[np.bool_]:
    """Which rows carry `pos_label`; all the others must agree on one other label."""
    if raw.dtype.kind == "O":
        _refuse_missing(_missing_objects(raw), name, "None or NA", first_row)
    if raw.dtype.kind == "f":
        _refuse_missing(np.isnan(raw), name, "nan", first_row)
    text = _is_text(raw)
    if not text:
        _refuse_other_kind(raw, name, "labels (numbers, True/False or text)", first_row)
    if text != isinstance(pos_label, str | bytes):
        raise ValueError(f"pos_label={pos_label!r} is not of the kind of the labels in `{name}` ({_examples(raw)}).")
    positive: NDArray[np.bool_] = np.asarray(raw == pos_label, dtype=np.bool_)
    others = raw[~positive]
    if others.size and bool((others != others[0]).any()):
        if not positive.any():
            raise ValueError(f"pos_label={pos_label!r} is not among the labels in `{name}` ({_examples(raw)}).")
        raise ValueError(
            f"`{name}` has more than two different labels ({_examples(raw)}); for one class against the rest pass "
            f"`{name} == {pos_label!r}`."
        )
    return positive


def _examples(raw: NDArray[Any]) -> str:
    """Up to four different values, enough to recognise a column by."""
    seen = dict.fromkeys(raw[:1000].tolist()) | dict.fromkeys(np.unique(raw)[:4].tolist())
    shown = [repr(value) for value in seen][:4]
    return ", ".join(shown) + (", ..." if len(seen) > 4 else "")


# --- weights ----------------------------------------------------------------------------------------------------------


def _weights(raw: NDArray[Any], first_row: int) -> NDArray[np.float64]:
    _refuse_other_kind(raw, "sample_weight", "numbers", first_row)
    w = np.ascontiguousarray(raw, dtype=np.float64)
    low, high = float(w.min()), float(w.max())
    if not (low >= 0 and high < math.inf):
        _refuse_missing(np.isnan(w), "sample_weight", "nan", first_row)
        bad = ~((w >= 0) & np.isfinite(w))
        raise ValueError(
            f"`sample_weight` must be finite and not negative; found {_where(w, bad, first_row)}. "
            "Drop or mend these rows."
        )
    return read_only(w)


def refuse_no_weight(rows_with_weight: int) -> None:
    """A set of rows whose weights are all zero says nothing."""
    if rows_with_weight == 0:
        raise ValueError("`sample_weight` is zero in every row; at least one row must count.")


def refuse_extreme_weight(w: NDArray[np.float64] | None) -> None:
    """Raw weights are added up in a sketch over its whole life, so they cannot be rescaled on the way in."""
    if w is None or w.size == 0 or (w.min() >= SMALLEST_WEIGHT and w.max() <= LARGEST_WEIGHT):
        return
    raise ValueError(
        f"`sample_weight` must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g} for a sketch; found "
        f"{w.min():g} to {w.max():g}. Only ratios matter: multiply all weights of all updates by one number."
    )


def check_counts(w: NDArray[np.float64], what: str) -> None:
    """Weights that stand for repetitions must be whole numbers."""
    whole = w == np.floor(w)
    if not whole.all():
        raise ValueError(
            f"{what} counts rows, so `sample_weight` must hold whole numbers of repetitions; found {w[~whole][0]:g}. "
            "For fractional weights use another measure, for example multiscale_atb."
        )


def check_draw(labels: object, rows: int) -> NDArray[Any]:
    """One draw of a user's binning: a label for each prediction."""
    array = as_vector(labels, "binning(p)")
    if len(array) != rows:
        raise ValueError(f"`binning` returned {len(array)} labels for {rows} predictions; it must label each of them.")
    if array.dtype.kind == "f":
        _refuse_missing(np.isnan(array), "binning(p)", "nan", 0)
    return array


# --- parameters -------------------------------------------------------------------------------------------------------


def check_whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """An integer in [low, high]; numpy's integers are fine, True and 3.0 are not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if number < low or (high is not None and number > high):
        upto = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"`{name}` must be {upto}; got {number}.")
    return number


def check_power_of_two(value: object, name: str, high: int) -> int:
    """A power of two in [1, high]."""
    number = check_whole(value, name, 1, high)
    if number & (number - 1):
        below = 1 << (number.bit_length() - 1)
        raise ValueError(f"`{name}` must be a power of two; got {number}. Try {below} or {2 * below}.")
    return number


def check_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number; got {value!r}.") from None
    if not 0 < number < math.inf:
        raise ValueError(f"`{name}` must be finite and greater than 0; got {number!r}.")
    return number
