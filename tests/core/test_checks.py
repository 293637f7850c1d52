"""Checks of rows: which containers are accepted, and the message for everything else."""

import decimal
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truthcal as tc
from truthcal.core.checks import invalid

Y, P = [0, 1, 1, 0], [0.25, 0.75, 0.5, 0.125]
VALUE = tc.atb(Y, P)


class WithArray:
    """Something foreign that only speaks numpy's protocol."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class WithArrowStream:
    """Something foreign that only speaks the Arrow C stream interface."""

    def __init__(self, values):
        self.inner = pa.chunked_array([values[:1], values[1:]])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.inner.__arrow_c_stream__(requested_schema)


class WithArrowArray:
    """The same for the Arrow C array interface."""

    def __init__(self, values):
        self.inner = pa.array(values)

    def __arrow_c_array__(self, requested_schema=None):
        return self.inner.__arrow_c_array__(requested_schema)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy float32": lambda x: np.array(x, np.float32),
    "numpy float16": lambda x: np.array(x, np.float16),
    "numpy longdouble": lambda x: np.array(x, np.longdouble),
    "big-endian": lambda x: np.array(x, ">f8"),
    "strided": lambda x: np.repeat(np.array(x, float), 3)[::3],
    "reversed view": lambda x: np.array(x, float)[::-1].copy()[::-1],
    "column of a table": lambda x: np.column_stack([x, x])[:, 1],
    "pandas": pd.Series,
    "pandas nullable": lambda x: pd.Series(x, dtype="Float64"),
    "pandas arrow": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.float64())),
    "pandas index": pd.Index,
    "polars": lambda x: pl.Series([float(v) for v in x]),
    "polars chunked": lambda x: pl.concat([pl.Series([float(v)]) for v in x], rechunk=False),
    "pyarrow": lambda x: pa.array([float(v) for v in x]),
    "pyarrow chunked": lambda x: pa.chunked_array([[float(v)] for v in x]),
    "__array__": WithArray,
    "arrow stream": lambda x: WithArrowStream([float(v) for v in x]),
    "arrow array": lambda x: WithArrowArray([float(v) for v in x]),
    "masked without a mask": np.ma.MaskedArray,
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_containers_give_the_same_number(container):
    assert tc.atb(container(Y), container(P)) == VALUE
    assert tc.atb(container([float(y) for y in Y]), P) == VALUE
    assert tc.Sketch().update(container(Y), container(P)).atb() == tc.Sketch().update(Y, P).atb()
    weighted = tc.atb(Y, P, sample_weight=[1, 2, 3, 4])
    assert tc.atb(container(Y), P, sample_weight=container([1, 2, 3, 4])) == weighted


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">i4", ">f4"])
def test_label_types_give_the_same_number(dtype):
    assert tc.atb(np.array(Y, dtype), P) == VALUE
    assert tc.Sketch().update(np.array(Y, dtype), P).brier() == tc.Sketch().update(Y, P).brier()


@pytest.mark.parametrize("container", [pl.Series, pa.array, pd.Series, lambda x: pd.Series(x, dtype="boolean"), list])
def test_boolean_columns_are_labels(container):
    assert tc.atb(container([bool(y) for y in Y]), P) == VALUE


@pytest.mark.parametrize(
    "container", [list, pl.Series, pa.array, pd.Series, lambda x: pd.Series(x, dtype="category"), np.array]
)
def test_text_columns_need_a_pos_label(container):
    words = container(["spam" if y else "ham" for y in Y])
    assert tc.atb(words, P, pos_label="spam") == VALUE
    with pytest.raises(
        ValueError, match=r"contains text labels \('ham', 'spam'\); name the positive one, .* pos_label='ham'"
    ):
        tc.atb(words, P)


@pytest.mark.parametrize("labels", [("False", "True"), ("no", "yes"), (b"0", b"1"), ("negative", "Positive")])
def test_suggested_pos_label_is_the_positive_word(labels):
    for order in (labels, labels[::-1]):
        with pytest.raises(ValueError, match=f"for example pos_label={labels[1]!r}"):
            tc.atb([order[0], order[1], order[0], order[0]], P)


@pytest.mark.peers
def test_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert tc.atb(torch.tensor(Y), torch.tensor(P, dtype=torch.float64)) == VALUE
    assert tc.atb(torch.tensor(Y) == 1, torch.tensor(P, dtype=torch.float32)) == VALUE
    cure = r"`y_proba` could not be read as an array .*\.detach\(\)\.cpu\(\)\.float\(\)"
    with pytest.raises(TypeError, match=cure):
        tc.atb(Y, torch.tensor(P, requires_grad=True))
    with pytest.raises(TypeError, match=cure):
        tc.atb(Y, torch.tensor(P, dtype=torch.bfloat16))


def test_arrow_without_pyarrow_names_the_cure(monkeypatch):
    column = WithArrowArray(P)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TypeError, match=r"`y_proba` is an Arrow object \(WithArrowArray\); .* pip install pyarrow"):
        tc.atb(Y, column)


def test_inputs_are_never_modified_and_may_be_read_only():
    y, p, w = np.array(Y), np.array([-0.0, 0.75, 0.5, 0.125]), np.array([1.0, 0.0, 2.0, 1e80])
    for array in (y, p, w):
        array.flags.writeable = False
    before = [array.tobytes() for array in (y, p, w)]
    for measure in tc.MEASURES.values():
        measure.function(y, p, sample_weight=None)
    tc.atb(y, p, sample_weight=w)
    tc.atb_approx(y, p, tolerance=0.1, sample_weight=w)
    tc.Sketch().update(y, p)
    assert [array.tobytes() for array in (y, p, w)] == before
    assert p.flags.writeable is False
    y = np.array(Y)
    tc.atb(y, P)
    assert y.flags.writeable


def test_float32_is_read_as_the_numbers_it_holds():
    p = np.array([0.1, 0.7, 0.3, 0.2], np.float32)
    assert tc.atb(Y, p) == tc.atb(Y, p.astype(float))


def test_minus_zero_is_zero():
    expected = tc.atb([0, 1, 1], [0.0, 0.0, 0.5])
    for dtype in (np.float32, np.float64):
        assert tc.atb([0, 1, 1], np.array([-0.0, 0.0, 0.5], dtype)) == expected
        assert tc.atb([1, 0, 1], np.array([-0.0, 0.0, 0.5], dtype)) == expected
    assert tc.atb([0, 1, 1], [-0.0, 0.0, 0.5], sample_weight=[1, 1, 1]) == expected
    assert tc.Sketch().update([0, 1, 1], [-0.0, 0.0, 0.5]).table()["min"].tolist() == [0.0, 0.5]


# --- one message for everything else ----------------------------------------------------------------------------------

nan, inf = float("nan"), float("inf")

REFUSED = {
    # missing
    "nan": (
        Y,
        [0.1, nan, 0.2, nan],
        ValueError,
        r"`y_proba` has a missing value \(nan\) at row 1 \(2 of 4 rows\)\. Drop",
    ),
    "None": (
        Y,
        [0.1, None, 0.2, 0.3],
        ValueError,
        r"`y_proba` has a missing value \(None or NA\) at row 1 \(1 of 4 rows\)",
    ),
    "pandas NA": (
        pd.Series([0, 1, None, 1], dtype="Int64"),
        P,
        ValueError,
        r"`y_true` has a missing value .* at row 2",
    ),
    "polars null": (pl.Series([0, None, 1, 1]), P, ValueError, r"`y_true` has a missing value .* at row 1"),
    "arrow null": (Y, pa.array([0.1, 0.2, None, 0.4]), ValueError, r"`y_proba` has a missing value .* at row 2"),
    "masked": (Y, np.ma.array(P, mask=[0, 0, 0, 1]), ValueError, r"`y_proba` has a missing value \(masked\) at row 3"),
    "nan label": (
        [0, nan, 1, 0],
        P,
        ValueError,
        r"`y_true` has a missing value \(nan\) at row 1 \(1 of 4 rows\)\. Drop those rows\.$",
    ),
    "inf": (
        Y,
        [0.1, inf, 0.2, 0.3],
        ValueError,
        r"must lie in \[0, 1\]; found inf at row 1 \(1 of 4 rows\)\. Log-odds",
    ),
    # out of range
    "percent": (
        Y,
        [5, 0.2, 74.5, 100],
        ValueError,
        r"found 5\.0 at row 0 \(3 of 4 rows\)\. Percentages\? Divide by 100",
    ),
    "logits": (
        Y,
        [0.1, -2.5, 3, 0.4],
        ValueError,
        r"found -2\.5 at row 1 \(2 of 4 rows\)\. Logits or scores\? Apply the",
    ),
    "rounding": (Y, [0.1, 0.2, 1.0000001, 0.4], ValueError, r"found 1\.0000001 at row 2 .* Clip with np\.clip"),
    "float32": (Y, np.array([0, 0, 2, 0], "f4"), ValueError, r"found 2\.0 at row 2 \(1 of 4 rows\)\. Percentages"),
    "ints": (Y, [0, 1, 2, 1], ValueError, r"`y_proba` must lie in \[0, 1\]; found 2\.0 at row 2"),
    "slightly above 1": (
        Y,
        [0, 1.2, 0.5, 1],
        ValueError,
        r"found 1\.2 at row 1 \(1 of 4 rows\)\. Scores, or output of",
    ),
    # shape
    "length": (Y, P[:3], ValueError, "`y_true` has 4 rows but `y_proba` has 3; they must match row by row"),
    "empty": ([], [], ValueError, "`y_true` is empty; at least one row is needed"),
    "two columns": (Y, np.ones((4, 2)), ValueError, r"got shape \(4, 2\)\. Output of predict_proba\? .* \[:, 1\]"),
    "one column": (
        Y,
        np.ones((4, 1)),
        ValueError,
        r"got shape \(4, 1\)\. Pass the column itself: frame\[.name.\], or array\.ravel",
    ),
    "one-hot": (np.eye(2), P, ValueError, r"`y_true` must be one-dimensional; got shape \(2, 2\)\. Pass one column"),
    "cube": (Y, np.ones((2, 2, 2)), ValueError, r"`y_proba` must be one-dimensional; got shape \(2, 2, 2\)\. Pass one"),
    "frame": (Y, pd.DataFrame({"a": P, "b": P, "c": P}), ValueError, r"must be one-dimensional; got shape \(4, 3\)"),
    "number": (Y, 0.5, ValueError, "`y_proba` must be one-dimensional; got float. Pass a list, an array or a column"),
    "generator": (Y, (x for x in P), ValueError, "`y_proba` must be one-dimensional; got generator"),
    "mapping": (Y, {"a": P}, ValueError, "got a mapping. Pass one column; for several models use compare_models"),
    "classes": (
        Y,
        np.ones((4, 3)),
        ValueError,
        r"Pass one column\. For a column per class use assess or multiclass_atb",
    ),
    "nothing": (None, P, ValueError, "`y_true` must be one-dimensional; got NoneType"),
    "ragged": (
        Y,
        [[0.1], [0.2, 0.3]],
        TypeError,
        r"`y_proba` could not be read as an array \(ValueError: .*Pass a flat",
    ),
    # type
    "complex": (Y, [0.1j] * 4, TypeError, r"`y_proba` must contain probabilities; got dtype complex128 .*Pass numbers"),
    "text": (
        Y,
        ["0.1"] * 4,
        TypeError,
        r"`y_proba` must contain probabilities; got dtype <U3 .*Numbers written as text\?",
    ),
    "percent text": (Y, ["50%"] * 4, TypeError, r"\. Percentages written as text\? Remove \"%\", convert .* divide by"),
    "words": (Y, ["high"] * 4, TypeError, r"\(first value 'high'\)\. Pass numbers\.$"),
    "bytes": (Y, [b"0.1"] * 4, TypeError, r"Numbers written as text\? Convert with \.astype\(float\)\."),
    "object": (Y, [decimal.Decimal("0.1")] * 4, TypeError, r"`y_proba` must contain probabilities; got dtype object"),
    "one odd value": (
        np.array([False, "yes", "no", 1], dtype=object),
        P,
        TypeError,
        r"\('yes' at row 1, beside numbers\)\. Pass numbers\.",
    ),
    "dates": (
        np.array(["2024-01-01"] * 4, "M8[D]"),
        P,
        TypeError,
        r"`y_true` must contain 0/1, .* got dtype datetime64",
    ),
    "complex label": (
        [1j] * 4,
        P,
        TypeError,
        "`y_true` must contain 0/1, True/False or probabilities; got dtype complex128",
    ),
    "mixed label": ([0, "a", 1, None], P, ValueError, r"`y_true` has a missing value \(None or NA\) at row 3"),
    "object label": ([0, "a", 1, {}], P, TypeError, "`y_true` must contain 0/1, .* got dtype object"),
    # labels
    "minus one": (
        [-1, 1, 1, -1],
        P,
        ValueError,
        r"found -1 at row 0 \(2 of 4 rows\)\. For the labels -1 and 1, .*: pos_label=1\.",
    ),
    "one and two": (
        [1, 2, 2, 1],
        P,
        ValueError,
        r"found 2 at row 1 \(2 of 4 rows\)\. For the labels 1 and 2, .*pos_label=2",
    ),
    "single label": ([2, 2, 2, 2], P, ValueError, r"found 2 at row 0 .* If 2 is the positive label, pass pos_label=2"),
    "small ints": (
        np.array([0, 1, 3, 0], "u1"),
        P,
        ValueError,
        r"found 3 at row 2 \(1 of 4 rows\)\. There are 3 different",
    ),
    "many labels": (
        [0, 1, 2, 3],
        P,
        ValueError,
        r"There are 4 different values \(0, 1, 2, 3\), .* `y_true == that_class`",
    ),
    "float labels": (
        [0.5, 1.5, 0, 1],
        P,
        ValueError,
        r"`y_true` must contain 0/1, .* found 1\.5 at row 1 \(1 of 4 rows\)",
    ),
    "infinite label": ([0, inf, 0, 1], P, ValueError, r"`y_true` must contain 0/1, .* found inf at row 1"),
    # swapped
    "swapped": (P, Y, ValueError, r"the arguments look swapped\. Outcomes belong in `y_true`\."),
}


@pytest.mark.parametrize(("y", "p", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(y, p, error, message):
    if not hasattr(p, "__next__"):  # a generator is spent after one try
        with pytest.raises(error, match=message):
            tc.Sketch().update(y, p)
    with pytest.raises(error, match=message):
        tc.atb(y, p)


WEIGHTS_REFUSED = {
    "negative": ([1, -2, 1, 1], ValueError, r"`sample_weight` must be finite and not negative; found -2\.0 at row 1"),
    "inf": ([1, 2, inf, 1], ValueError, r"`sample_weight` must be finite and not negative; found inf at row 2"),
    "nan": ([1, 2, nan, 1], ValueError, r"`sample_weight` has a missing value \(nan\) at row 2 \(1 of 4 rows\)"),
    "zeros": ([0, 0, 0, 0], ValueError, "`sample_weight` is zero in every row; at least one weight must be positive"),
    "length": ([1, 1], ValueError, "`y_true` has 4 rows but `sample_weight` has 2; they must match row by row"),
    "text": (["1"] * 4, TypeError, "`sample_weight` must contain numbers; got dtype <U1"),
    "table": ([[1], [1], [1], [1]], ValueError, r"`sample_weight` must be one-dimensional; got shape \(4, 1\)"),
}


@pytest.mark.parametrize(("w", "error", "message"), WEIGHTS_REFUSED.values(), ids=WEIGHTS_REFUSED)
def test_weights_refused(w, error, message):
    for call in (tc.atb, tc.quantile_ece, tc.atb_summary):
        with pytest.raises(error, match=message):
            call(Y, P, sample_weight=w)
    with pytest.raises(error, match=message):
        tc.atb_approx(Y, P, tolerance=0.1, sample_weight=w)
    with pytest.raises(error, match=message):
        tc.Sketch().update(Y, P, w)


POS_LABEL_REFUSED = {
    "absent": (["a", "b", "a", "b"], "c", r"`pos_label` must be one of the labels in `y_true` \('a', 'b'\); got 'c'"),
    "three": (["a", "b", "c", "b"], "a", r"more than two different labels \('a', 'b', 'c'\); .* `y_true == 'a'`"),
    "number for text": (
        ["a", "b", "a", "b"],
        1,
        r"`pos_label` must have the same type as the labels in `y_true` \('a', 'b'\); got 1",
    ),
    "text for number": (
        [0, 1, 1, 0],
        "1",
        r"`pos_label` must have the same type as the labels in `y_true` \(0, 1\); got '1'",
    ),
    "null": (["a", None, "b", "a"], "a", r"`y_true` has a missing value \(None or NA\) at row 1"),
    "nan": ([1.0, nan, 0.0, 1.0], 1, r"`y_true` has a missing value \(nan\) at row 1"),
    "numpy text null": (
        np.array(["a", None, "b", "a"], dtype=np.dtypes.StringDType(na_object=None)),
        "a",
        "missing value",
    ),
}


@pytest.mark.parametrize("pos_label", [[1], np.array([0, 1, 1, 0]), nan])
def test_pos_label_must_be_one_label(pos_label):
    with pytest.raises(TypeError, match="`pos_label` must be a single label; got"):
        tc.atb(Y, P, pos_label=pos_label)


def test_booleans_made_of_other_bytes_are_true():
    y = np.array([0, 2, 255, 0], np.uint8).view(bool)
    assert tc.atb(y, P) == VALUE
    assert tc.Sketch().update(y, P).atb() == tc.Sketch().update(Y, P).atb()


@pytest.mark.parametrize(("y", "pos_label", "message"), POS_LABEL_REFUSED.values(), ids=POS_LABEL_REFUSED)
def test_pos_label_refused(y, pos_label, message):
    for call in (tc.atb, tc.Sketch().update):
        with pytest.raises(ValueError, match=message):
            call(y, P, pos_label=pos_label)


@pytest.mark.parametrize("convert", [list, tuple, lambda x: np.array(x, object)])
def test_nan_in_a_list_of_text_is_missing(convert):
    """Numpy makes the text 'nan' of it."""
    with pytest.raises(ValueError, match=r"`y_true` has a missing value \(None or NA\) at row 1"):
        tc.atb(convert(["yes", float("nan"), "no"]), [0.5] * 3, pos_label="yes")
    with pytest.raises(ValueError, match="`groups` has a missing value"):
        tc.assess([0, 1] * 20, [0.5] * 40, groups=convert([float("nan"), *[f"g{i}" for i in range(39)]]))


def test_pos_label_may_be_absent_from_a_batch_of_one_class():
    assert tc.atb(["no"] * 4, P, pos_label="yes") == tc.atb([0] * 4, P)


def test_pandas_columns_in_another_order_are_refused():
    y, p = pd.Series(Y, index=[0, 1, 2, 3]), pd.Series(P, index=[3, 2, 1, 0])
    message = "`y_true` and `y_proba` have the same index labels in a different order"
    for call in (tc.atb, tc.Sketch().update):
        with pytest.raises(ValueError, match=message):
            call(y, p)
    with pytest.raises(ValueError, match="`y_true` and `sample_weight` have the same index labels"):
        tc.atb(y, P, sample_weight=p)
    with pytest.raises(ValueError, match="`y_proba` and `sample_weight` have the same index labels"):
        tc.atb(Y, p, sample_weight=y)
    assert tc.atb(y.to_numpy(), p.to_numpy()) == VALUE
    with pytest.raises(ValueError, match=r"`y_true` and `y_proba` have no index label in common\. Align them first"):
        tc.atb(y, pd.Series(P, index=[7, 8, 9, 10]))
    assert tc.atb(y, pd.Series(P, index=list("abcd"))) == VALUE  # numbers of rows beside names: by position
    assert tc.atb(y, pd.Series(P, index=[3, 7, 8, 9])) == VALUE
    mixed = pd.Series(Y, index=["a", 1, "b", None])  # labels that cannot be sorted
    with pytest.raises(ValueError, match=message):
        tc.atb(mixed, pd.Series(P, index=[1, "a", None, "b"]))
    assert tc.atb(mixed, pd.Series(P, index=mixed.index)) == VALUE
    assert tc.atb(mixed, pd.Series(P, index=[1, "a", None, "c"])) == VALUE


def test_a_row_number_counts_from_the_start_of_what_was_passed():
    y, p = np.zeros(200_000), np.full(200_000, 0.5)
    p[150_000] = 7
    for call in (tc.atb, tc.Sketch().update):
        with pytest.raises(ValueError, match=r"found 7\.0 at row 150000 \(1 of 200000 rows\)"):
            call(y, p)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors_carry_the_parameter_and_the_problem():
    with pytest.raises(ValueError, match=r"^`y_proba` must lie in \[0, 1\]") as caught:
        tc.atb([0, 1], [0.5, 1.5])
    assert caught.value.parameter == "y_proba"
    assert str(caught.value) == f"`y_proba` {caught.value.problem}"
    assert (caught.value.subject, caught.value.fix) == (None, ())
    assert type(caught.value).__module__ == "builtins"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.parameter, str(again)) == ("y_proba", str(caught.value))


def test_errors_carry_the_parameter_that_would_help():
    with pytest.raises(ValueError, match=r"for example pos_label='a'\.$") as caught:
        tc.atb(["a", "b"], [0.5, 0.5])
    assert (caught.value.parameter, caught.value.fix) == ("y_true", ("pos_label", "a"))


def test_an_error_about_a_column_starts_with_the_column():
    error = invalid("y_proba", "must contain numbers; use", TypeError, subject="`p` (y_proba)", fix=("pos_label",))
    assert str(error) == "`p` (y_proba) must contain numbers; use `pos_label`."
    assert (type(error), error.parameter) == (TypeError, "y_proba")


def test_labels_of_several_classes_beside_one_column():
    message = (
        r"`y_true` contains 3 labels \('b', 'a', 'c'\), and `y_proba` is one column\. Pass a column for each class, "
        r"shape \(n, 3\), or one class against the rest: y_true == 'b' and the probability of 'b'\."
    )
    with pytest.raises(ValueError, match=message):
        tc.atb(["b", "a", "c"], [0.1, 0.2, 0.3])


def test_predictions_in_place_of_outcomes():
    with pytest.raises(
        ValueError, match=r"`y_true` must be one-dimensional; got shape \(2, 3\)\. .* arguments are swapped"
    ):
        tc.atb(np.full((2, 3), 1 / 3), [0, 1])


def test_log_probabilities():
    with pytest.raises(
        ValueError, match=r"`y_proba` must lie in \[0, 1\]; .* Log-probabilities\? Apply np\.exp first\."
    ):
        tc.atb([0, 1], [-0.1, -2.3])
