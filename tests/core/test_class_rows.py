"""Rows with many classes: what is accepted, which class a column has, and every error."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truthcal as tc
from truthcal.core.class_rows import MOST_CLASSES, check_class_rows, has_classes

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
Y = [0, 1, 2, 1]
NAMES = ["cat", "dog", "owl"]


def tensor(values):
    return pytest.importorskip("torch").tensor(np.asarray(values))


def fails(match, y=Y, p=P, error=ValueError, **options):
    """The error of both entry points: that of the measure, and that of the functions that also take one event."""
    for function in (tc.multiclass_atb, tc.calibration_test):
        with pytest.raises(error, match=re.escape(match)):
            function(y, p, **options)


# --- containers -------------------------------------------------------------------------------------------------------

MATRICES = {
    "list": lambda p: p.tolist(),
    "tuples": lambda p: tuple(map(tuple, p.tolist())),
    "list of arrays": list,
    "object": lambda p: p.astype(object),
    "float32": lambda p: p.astype(np.float32),
    "fortran": np.asfortranarray,
    "big endian": lambda p: p.astype(">f8"),
    "read-only": lambda p: np.lib.stride_tricks.as_strided(p, writeable=False),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda p: pd.DataFrame(p).convert_dtypes(),
    "polars": lambda p: pl.DataFrame(p, schema=["0", "1", "2"]),
    "pyarrow": lambda p: pa.table({str(k): column for k, column in enumerate(p.T)}),
    "torch": tensor,
}


@pytest.mark.parametrize("name", MATRICES)
def test_containers_of_probabilities(name):
    p = MATRICES[name](P)
    assert has_classes(p)
    tolerance = 1e-6 if name == "float32" else 1e-15
    assert tc.multiclass_atb(Y, p) == pytest.approx(tc.multiclass_atb(Y, P), rel=tolerance)
    assert tc.assess(Y, p, labels=[0, 1, 2]).n == 4


LABELS = {
    "list": list,
    "int8": lambda y: np.array(y, np.int8),
    "float": lambda y: np.array(y, float),
    "object": lambda y: np.array(y, object),
    "column": lambda y: pd.Series(y),
    "category": lambda y: pd.Series(y).astype("category"),
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "torch": tensor,
}


@pytest.mark.parametrize("name", LABELS)
def test_containers_of_labels(name):
    assert tc.multiclass_atb(LABELS[name](Y), P) == tc.multiclass_atb(Y, P)


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (P, True),
        (P[:, :1], False),
        (P[:, 0], False),
        (P[:, 0].tolist(), False),
        ([], False),
        ([[0.5]], False),
        (["a", "b"], False),
        (P[None], False),
        (pd.DataFrame(P), True),
        (None, False),
        (tc.Sketch(), False),
    ],
)
def test_what_has_classes(p, expected):
    assert has_classes(p) is expected


# --- which class a column has -----------------------------------------------------------------------------------------


def codes(y, p=P, labels=None):
    rows = check_class_rows(y, p, None, labels)
    return rows.labels, rows.y.tolist()


def test_labels_in_increasing_order():
    assert codes(["owl", "cat", "dog", "cat"]) == (("cat", "dog", "owl"), [2, 0, 1, 0])
    assert codes([30, 10, 20, 10]) == ((10, 20, 30), [2, 0, 1, 0])
    assert codes([1, 2, 3, 2]) == ((1, 2, 3), [0, 1, 2, 1])
    assert codes([1.0, 2.0, 3.0, 2.0]) == ((1, 2, 3), [0, 1, 2, 1])


def test_numbers_from_0_with_absent_classes():
    assert codes([0, 0, 1, 0]) == ((0, 1, 2), [0, 0, 1, 0])
    assert codes([0, 0, 0, 2]) == ((0, 1, 2), [0, 0, 0, 2])
    assert codes([False, True, False, True]) == ((0, 1, 2), [0, 1, 0, 1])


def test_labels_that_are_passed():
    assert codes(["b", "a", "b", "b"], labels=["c", "b", "a"]) == (("c", "b", "a"), [1, 2, 1, 1])
    assert codes([1, 2, 1, 1], labels=[3, 2, 1]) == ((3, 2, 1), [2, 1, 2, 2])
    assert codes([1.0, 2.0, 1.0, 1.0], labels=np.array([1, 2, 3])) == ((1, 2, 3), [0, 1, 0, 0])
    assert codes([True, False, True, True], P[:, :2] / P[:, :2].sum(1, keepdims=True), [False, True])[1] == [1, 0, 1, 1]
    assert codes(np.array(["b", "a", "b", "b"]), labels=pd.Index(["a", "b", "c"]))[1] == [1, 0, 1, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda p, columns: pl.DataFrame(p, schema=columns)])
def test_names_of_columns_are_labels(frame):
    swapped = ["owl", "cat", "dog"]
    assert codes(["cat", "dog", "cat", "cat"], frame(P, columns=swapped)) == (tuple(swapped), [1, 2, 1, 1])
    # As text, for example from a CSV file, where "10" is before "2".
    assert codes([1, 2, 10, 2], frame(P, columns=["1", "10", "2"])) == ((1, 10, 2), [0, 2, 1, 2])


def test_names_of_columns_are_not_matched_by_position():
    fails(
        "`labels` is needed: `y_true` has the labels 'a', 'b', 'c', but `y_proba` has the columns 'p_c', 'q_b', 'p_a'",
        ["a", "b", "c", "a"],
        pd.DataFrame(P, columns=["p_c", "q_b", "p_a"]),
    )
    fails(
        "`y_true` has the label 'fish' at row 2 (1 of 4 rows), but `y_proba` has columns for 'cat', 'dog', 'owl' only.",
        ["cat", "dog", "fish", "cat"],
        pd.DataFrame(P, columns=NAMES),
    )
    named = pd.DataFrame(P, columns=["p_c", "p_b", "p_a"])
    assert codes(["a", "b", "c", "a"], named, ["c", "b", "a"])[1] == [2, 1, 0, 2]


def test_names_of_columns_may_be_labels_after_a_prefix():
    named = pd.DataFrame(P, columns=["p_c", "p_b", "p_a"])
    assert codes(["a", "b", "c", "a"], named)[1] == [2, 1, 0, 2]
    # a class without rows, and labels of which one ends as another does
    assert codes([1, 11, 11, 1], pd.DataFrame(P, columns=["p_11", "p_2", "p_1"])) == ((11, "2", 1), [2, 0, 0, 2])


def test_default_numbers_of_pandas_are_no_names():
    fails("`labels` is needed: `y_true` has 2 different labels (1, 2)", [1, 2, 1, 2], pd.DataFrame(P))
    assert codes([1, 2, 1, 2], pd.DataFrame(P, columns=[0, 1, 2]))[1] == [1, 2, 1, 2]


@pytest.mark.parametrize("y", [[1, 2, 1, 1], [0, 3, 0, 0], [-1, 0, -1, 0], ["b", "a", "b", "b"], [0, 1, 2, 3]])
def test_labels_that_are_not_clear(y):
    present = sorted(set(y))
    shown = ", ".join(map(repr, present))
    end = f"has {len(present)} different labels ({shown}), but `y_proba` has 3 columns. Name the class of each column"
    fails(f"`labels` is needed: `y_true` {end}", y)


def test_many_labels_are_listed_in_part():
    with pytest.raises(ValueError, match=re.escape("12 different labels (10, 11, 12, 13, 14, 15, ...)")):
        tc.multiclass_atb(range(10, 22), np.full((12, 13), 1 / 13))


def test_errors_of_labels():
    fails("`labels` must be different from each other; got 'a', 'a', 'b'.", labels=["a", "a", "b"])
    fails("`labels` has 2 labels, but `y_proba` has 3 columns.", labels=["a", "b"])
    fails(
        "`y_true` has the label 'x' at row 2 (1 of 4 rows), but `y_proba` has columns for 'cat', 'dog', 'owl' only. Add "
        "its column, drop these rows, or pass `labels` in the order of the columns.",
        ["cat", "dog", "x", "owl"],
        labels=NAMES,
    )


# --- errors of y_true -------------------------------------------------------------------------------------------------


def test_errors_of_classes():
    fails("`y_true` must contain the class of each row; found 0.5 at row 0 (1 of 4 rows).", [0.5, 1, 2, 0])
    fails("`y_true` must contain the class of each row; found inf at row 1 (1 of 4 rows).", [0, np.inf, 2, 0])
    fails("`y_true` has a missing value (nan) at row 3 (1 of 4 rows).", [0, 1, 2, np.nan])
    fails("`y_true` has a missing value (None or NA) at row 0", [None, "a", "b", "c"])
    fails(
        "`y_true` has labels of different types, which cannot be ordered.",
        np.array([1, "a", 2, 3], object),
        error=TypeError,
    )
    fails("`y_true` has 3 rows but `y_proba` has 4; they must match row by row.", [0, 1, 2])


@pytest.mark.parametrize("y", [np.eye(3)[Y], pd.DataFrame(np.eye(3)[Y])])
def test_one_hot_classes(y):
    fails("`y_true` must be one-dimensional; got shape (4, 3). Pass the class of each row, np.asarray", y)


def test_one_hot_classes_in_lists():
    fails("`y_true` must be one-dimensional; got shape (4, 3).", np.eye(3)[Y].tolist())


def test_index_that_is_not_aligned():
    y, w = pd.Series(Y, index=[3, 2, 1, 0]), pd.Series([1.0] * 4, index=[3, 2, 1, 0])
    fails("`y_true` and `y_proba` have the same index labels in a different order.", y, pd.DataFrame(P))
    fails(
        "`sample_weight` and `y_proba` have the same index labels in a different order.",
        pd.Series(Y),
        pd.DataFrame(P),
        sample_weight=w,
    )


# --- errors of y_proba ------------------------------------------------------------------------------------------------


def test_scores_that_are_no_probabilities():
    logits = "Logits or scores? Apply the softmax first: scipy.special.softmax(..., axis=1)."
    fails(f"`y_proba` must lie in [0, 1]; found -1.0 at row 0, column 1. {logits}", p=[[0.5, -1.0, 3.0]] * 4)
    fails(f"found 3.0 at row 1, column 0. {logits}", p=[[0.5, 0.25, 0.25], [3.0, 2.0, 0.5]] * 2)
    fails(f"found inf at row 0, column 0. {logits}", p=[[np.inf, 0.0, 0.0]] * 4)
    fails(f"found inf at row 0, column 0. {logits}", p=[[np.inf, -np.inf, 0.0]] * 4)
    fails("found -0.3", p=np.log(P))
    fails("Log-probabilities? Apply np.exp first.", p=np.log(P))
    with np.errstate(divide="ignore"):
        fails("Log-probabilities? Apply np.exp first.", p=np.log([[0.5, 0.5, 0.0]] * 4))
    fails("found 70.0 at row 0, column 0. Percentages? Divide by 100.", p=100 * P)
    fails("Rounding error? Clip with np.clip(..., 0, 1).", p=[[1.0 + 1e-9, -1e-9, 0.0]] * 4)


def test_rows_that_do_not_add_up_to_1():
    start = "`y_proba` must add up to 1 in each row (within 0.001); found"
    rounded = f"{start} 0.99 at row 0 (4 of 4 rows). Rounded probabilities? Divide each row by its sum: y_proba"
    fails(f"{rounded} / y_proba.sum(axis=1, keepdims=True).", p=[[0.33] * 3] * 4)
    frame = pd.DataFrame([[0.33] * 3] * 4)
    fails(f"{rounded}.div(y_proba.sum(axis=1), axis=0).", p=frame)
    np.testing.assert_allclose(frame.div(frame.sum(axis=1), axis=0), 1 / 3)
    missing = (
        "Are columns missing? If columns are independent events, use assess(..., multilabel=True); if they are models of "
        "one event, name them: report(y_true, {'name': column, ...}), or use compare_models."
    )
    fails(f"{start} 0.6 at row 1 (1 of 4 rows). {missing}", p=[P[0], [0.2, 0.3, 0.1], P[1], P[2]])
    fails(f"{start} 1.5 at row 0 (4 of 4 rows). {missing}", p=[[0.5, 0.5, 0.5]] * 4)
    tc.multiclass_atb(Y, P.round(3))
    tc.multiclass_atb(Y, P + np.array([0.0009, 0.0, 0.0]))


def test_values_that_are_no_numbers():
    numbers = "`y_proba` must contain probabilities"
    fails(f"{numbers}; got dtype <U3. Pass numbers.", p=np.array([["0.5", "0.3", "0.2"]] * 4), error=TypeError)
    fails(f"{numbers}; got dtype complex128", p=P.astype(complex), error=TypeError)
    fails(
        f"{numbers}, but has values that are not numbers.", p=np.array([[0.5, 0.3, "x"]] * 4, object), error=TypeError
    )
    fails("`y_proba` has a missing value (None or NA) at row 1 (1 of 4 rows).", p=[P[0], [0.5, 0.5, None], P[1], P[2]])
    fails("`y_proba` has a missing value (nan) at row 1 (1 of 4 rows).", p=[P[0], [0.5, 0.5, np.nan], P[1], P[2]])


def test_shapes():
    with pytest.raises(TypeError, match=r"could not be read as a matrix .* Pass an array of shape"):
        tc.multiclass_atb(Y, [[0.5, 0.5], [1.0], [0.2, 0.8], [0.5, 0.5]])
    for p, match in (
        (P[:, 0], "must have shape (n, k), a column for each class; got shape (4,)."),
        (P[None], "must have shape (n, k), a column for each class; got shape (1, 4, 3)."),
        (np.empty((0, 3)), "is empty; at least one row is needed."),
        (P[:, :1], "has shape (4, 1); at least two columns are needed. For one event, pass its column."),
    ):
        with pytest.raises(ValueError, match=re.escape(f"`y_proba` {match}")):
            tc.multiclass_atb(Y, p)
    with pytest.raises(
        ValueError, match=r"`y_proba` must be one-dimensional; got shape \(4, 1\). Pass the column itself"
    ):
        tc.assess([0, 1, 1, 0], P[:, :1])


def test_too_many_classes():
    k = MOST_CLASSES + 1
    match = "has 1,001 columns; at most 1,000 classes are possible: a test would need 128 MB. Assess the classes that"
    fails(f"`y_proba` {match}", [0, 1], np.full((2, k), 1 / k))


def test_errors_of_weights():
    fails("`sample_weight` has 2 rows but `y_proba` has 4", sample_weight=[1, 1])
    fails("`sample_weight` must be finite and not negative; found -1.0 at row 1", sample_weight=[1, -1, 1, 1])
    fails("`sample_weight` is zero in every row; at least one weight must be positive.", sample_weight=[0] * 4)
    fails("`sample_weight` has too wide a range: 1e-200 to 1.", sample_weight=[1, 1e-200, 1, 1])


# --- the rows ---------------------------------------------------------------------------------------------------------


def test_rows_with_zero_weight_are_dropped():
    rows = check_class_rows(Y, P, [1.0, 0.0, 3.0, 2.0])
    assert rows.n == 3
    assert rows.kept.tolist() == [True, False, True, True]
    assert rows.total * rows.one_row == pytest.approx(np.sum(rows.w**2) / rows.total)
    np.testing.assert_allclose(rows.w / rows.w[0], [1, 3, 2])
    assert check_class_rows(Y, P).kept is None


def test_parts_of_rows():
    rows = check_class_rows(Y, P, [1.0, 2.0, 3.0, 4.0])
    part = rows.take(np.array([1, 3]))
    np.testing.assert_array_equal(part.w, rows.w[[1, 3]])  # the same scale
    np.testing.assert_array_equal(part.p, P[[1, 3]])
    assert rows.sampled(10).tolist() == [0, 1, 2, 3]
    some = rows.sampled(2)
    assert len(some) == 2
    assert some.tolist() == rows.sampled(2).tolist()
    other = rows.with_proba(P[:, ::-1])
    np.testing.assert_array_equal(other.w, rows.w)
    one = rows.one_against_rest(1)
    assert one.y.tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(one.p, P[:, 1])
    np.testing.assert_allclose(rows.errors(), P - np.eye(3)[Y])
    for k, order in enumerate(rows.orders):
        assert (np.diff(P[order, k]) <= 0).all()
