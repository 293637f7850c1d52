"""Rows in memory by segment: the same table as `sketch_frame` builds, and one sketch of the rows of each segment."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

import truthcal as tc
from truthcal.core import segment_rows as module
from truthcal.core.segment_rows import segment_rows

N = 900
rng = np.random.default_rng(4)
P = rng.uniform(0.02, 0.98, N)
Y = rng.random(N) < P
W = rng.uniform(0.0, 2.0, N)
REGION = np.array(["west", "north", "south"])[rng.integers(0, 3, N)]
YEAR = rng.integers(2020, 2023, N)
PATIENT = rng.integers(0, 100, N)


def same(table, expected):
    assert list(table) == list(expected)
    found, wanted = table.table(), expected.table()
    for name, column in wanted.items():
        if isinstance(column, list):
            assert found[name] == column
        else:
            np.testing.assert_allclose(found[name], column, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
@pytest.mark.parametrize("by", ["region", "year", ["year", "region"]], ids=str)
def test_the_table_of_sketch_frame(by, weights):
    columns = {"region": REGION, "year": YEAR}
    named = {by: columns[by]} if isinstance(by, str) else {name: columns[name] for name in by}
    frame = pd.DataFrame({"y": Y, "p": P, **columns} | ({} if weights is None else {"w": weights}))
    options = {} if weights is None else {"sample_weight": "w"}
    expected = tc.sketch_frame(frame, y_true="y", y_proba="p", by=by, **options)
    table = segment_rows(Y, P, named, sample_weight=weights)
    same(table, expected)
    assert table.neighbour_z == pytest.approx(expected.neighbour_z, rel=1e-9)


def test_each_segment_is_a_sketch_of_its_rows():
    table = segment_rows(Y, P, REGION, sample_weight=W)
    for name in ("north", "south", "west"):
        rows = name == REGION
        assert table[name].to_bytes() == tc.Sketch().update(Y[rows], P[rows], W[rows]).to_bytes()


def test_names_of_columns():
    assert segment_rows(Y, P, REGION).by == ("segment",)
    assert segment_rows(Y, P, pd.Series(REGION, name="region")).by == ("region",)
    assert segment_rows(Y, P, [REGION, pd.Series(YEAR, name="year")]).by == ("segment 1", "year")
    assert segment_rows(Y, P, pd.DataFrame({"a": REGION, "b": YEAR})).by == ("a", "b")
    assert segment_rows(Y, P, REGION.tolist()).by == ("segment",)


def test_missing_values_are_a_segment():
    missing = np.arange(N) % 9 == 0
    values = pd.Series(REGION).where(~missing)
    masked = np.ma.MaskedArray(REGION.astype(object), missing)
    for by in (
        values,
        values.astype("string"),
        masked,
        [None if m else r for m, r in zip(missing, REGION, strict=True)],
    ):
        table = segment_rows(Y, P, by)
        assert list(table) == ["north", "south", "west", None]
        assert table[None].n == 100
    years = segment_rows(Y, P, np.where(missing, np.nan, YEAR))
    assert list(years) == [2020.0, 2021.0, 2022.0, None]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_integers_with_missing_values_remain_integers(library):
    module = pytest.importorskip(library)
    listed = [None if k % 9 == 0 else int(year) for k, year in enumerate(YEAR)]
    column = {"pandas": lambda: module.Series(listed, dtype="Int64"), "polars": lambda: module.Series(listed)}
    table = segment_rows(Y, P, column.get(library, lambda: module.array(listed))())
    assert [(key, type(key)) for key in table] == [(2020, int), (2021, int), (2022, int), (None, type(None))]


def test_dates_and_categories():
    days = np.array(["2025-01-02", "2025-01-01"], "datetime64[D]")[YEAR % 2]
    assert list(segment_rows(Y, P, days)) == [date(2025, 1, 1), date(2025, 1, 2)]
    categories = pd.Series(REGION).astype(pd.CategoricalDtype(["north", "south", "west", "nowhere"]))
    assert list(segment_rows(Y, P, categories)) == ["north", "south", "west"]


def test_segments_without_weight_are_left_out():
    table = segment_rows(Y, P, REGION, sample_weight=np.where(REGION == "west", 0.0, 1.0))
    assert list(table) == ["north", "south"]


def test_labels():
    table = segment_rows(np.where(Y, "yes", "no"), P, REGION, pos_label="yes")
    same(table, segment_rows(Y, P, REGION))


def test_groups_of_a_segment_are_those_of_its_rows():
    found = tc.assess_segments(Y, P, REGION, groups=PATIENT, sample_weight=W)
    for name in ("north", "south", "west"):
        rows = name == REGION
        alone = tc.calibration_test(Y[rows], P[rows], groups=PATIENT[rows], sample_weight=W[rows])
        assert found[name].pvalue == pytest.approx(alone.greater, rel=1e-6)


def test_many_segments_join_one_table():
    """More than one block of sketches."""
    numbers = rng.permutation(N) % 300
    table = segment_rows(Y, P, numbers)
    assert list(table) == list(range(300))
    assert table.n.tolist() == [3] * 300
    np.testing.assert_allclose(table.bias(), [np.mean(P[numbers == k] - Y[numbers == k]) for k in range(300)])


@pytest.mark.parametrize(
    ("by", "error", "match"),
    [
        ("region", ValueError, r"`by` is 'region', but only a data frame has columns with names\. Pass the frame first"),
        (REGION[:-1], ValueError, r"`by` has 899 rows but `y_proba` has 900; they must match row by row\."),
        (np.array([{} for _ in range(N)]), TypeError, r"`by` must hold values that can be compared, .*; found {} at row 0"),
        ({"n": REGION}, ValueError, "`by` must not name a column 'n': a table has a statistic of that name"),
        ([1j] * N, TypeError, "values of the grouping column 'segment' must be None, bool, int, float"),
    ],
)  # fmt: skip
def test_what_cannot_define_segments(by, error, match):
    with pytest.raises(error, match=match):
        segment_rows(Y, P, by)


def test_too_many_segments(monkeypatch):
    monkeypatch.setattr(module, "_MOST_SEGMENTS", 100)
    with pytest.raises(ValueError, match=r"`by` divides the rows into 900 segments; the limit is 100\. Use fewer"):
        segment_rows(Y, P, P)


def test_invalid_rows_are_named_by_their_place():
    p = P.copy()
    p[700] = 1.5
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 1.5 at row 700"):
        segment_rows(Y, p, REGION)
