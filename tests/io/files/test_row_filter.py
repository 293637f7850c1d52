"""Rows left out and counted: missing and void outcomes, fractions, in all formats and over batches."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.evals.options import EvalOptions
from truthcal.io.evals.prepare import prepare_sources
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.row_filter import RowFilter
from truthcal.io.files.windows import TimeOptions

ROLES = ColumnRoles.of("y", "p", None, None, None)


def read(path, roles=ROLES, **options):
    """Load a file with a filter; return the rows and the filter."""
    row_filter = RowFilter(**options)
    sources = prepare_sources(find_sources(path), EvalOptions(missing=row_filter.missing)).sources
    return load(sources, roles, row_filter=row_filter)[roles.y_proba], row_filter


@pytest.fixture
def csv(tmp_path):
    """Write a CSV file of outcomes and predictions."""

    def run(*rows, header="y,p", name="rows.csv"):
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return run


def test_void_and_missing_values_in_csv(csv):
    path = csv("1,0.5", "void,0.5", ",0.5", "N/A,0.25", "0,0.75", "1,", "0,n/a", "0.5,0.125", "true,1.0")
    rows, counts = read(path, missing=True)
    assert rows.y.tolist() == [1, 0, 0.5, 1]
    assert rows.p.tolist() == [0.5, 0.75, 0.125, 1.0]
    assert (counts.n_rows, counts.n_missing_outcomes, counts.n_missing_probabilities) == (9, 3, 2)
    assert (counts.n_fractional, rows.n) == (1, 4)


def test_decimal_commas_beside_void(csv):
    rows, _ = read(csv("1;0,5", "void;0,5", "0;0,25", header="y;p"), missing=True)
    assert rows.p.tolist() == [0.5, 0.25]


def test_text_labels_beside_void(csv):
    roles = ColumnRoles.of("y", "p", None, None, "yes")
    rows, counts = read(csv("yes,0.5", "annulled,0.5", "no,0.25"), roles, missing=True)
    assert rows.y.tolist() == [1, 0]
    assert counts.n_missing_outcomes == 1


def test_json_lines_of_mixed_types(tmp_path):
    path = tmp_path / "rows.jsonl"
    values = [(1, 0.5), ("void", 0.5), (None, 0.5), (0, "0.25"), (0, None), (True, 0.75)]
    path.write_text("".join(json.dumps({"y": y, "p": p}) + "\n" for y, p in values))
    rows, counts = read(path, missing=True)
    assert (rows.y.tolist(), rows.p.tolist()) == ([1, 0, 1], [0.5, 0.25, 0.75])
    assert (counts.n_missing_outcomes, counts.n_missing_probabilities) == (2, 1)


@pytest.mark.parametrize("text", [False, True])
def test_parquet_in_batches_with_segments_groups_and_weights(tmp_path, text):
    n, rng = 5000, np.random.default_rng(0)
    y = rng.choice([0.0, 1.0, 0.5, np.nan], n)
    p, w, g = rng.random(n), rng.random(n) + 0.5, rng.integers(0, 40, n)
    outcome = pa.array(["void" if np.isnan(x) else f"{x:g}" for x in y]) if text else pa.array(y, from_pandas=True)
    table = pa.table({"y": outcome, "p": p, "w": w, "g": g, "s": g % 3})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    roles = ColumnRoles.of("y", "p", "w", ["s"], None, "g")
    rows, counts = read(tmp_path / "rows.parquet", roles, missing=True, fractional="drop")
    keep = (y == 0) | (y == 1)
    for found, expected in ((rows.y, y), (rows.p, p), (rows.w, w)):
        assert found.tolist() == expected[keep].tolist()
    assert len(rows.groups) == keep.sum()
    assert sum(rows.table[key].n for key in rows.table) == keep.sum()
    assert (counts.n_missing_outcomes, counts.n_fractional) == (np.isnan(y).sum(), (y == 0.5).sum())


def test_windows_of_time_see_the_same_rows(csv):
    path = csv("1,0.5,2026-01-01", "0.5,0.5,2026-01-01", "0,0.5,2026-01-02", header="y,p,day")
    row_filter = RowFilter(fractional="drop")
    loaded = load(find_sources(path), ROLES, time=TimeOptions("day", "day"), row_filter=row_filter)["p"]
    assert loaded.n == 2
    assert [loaded.windows.table[key].n for key in loaded.windows.table] == [1, 1]


def test_fractions_are_kept_and_counted(csv):
    rows, counts = read(csv("1,0.5", "0.5,0.5"), fractional="keep")
    assert (rows.n, counts.n_fractional) == (2, 1)


def test_errors_name_the_row_of_the_file(csv):
    path = csv("void,0.5", "1,0.5", "0,1.5")
    with pytest.raises(ValueError, match=r"`p` \(y_proba\) must lie in \[0, 1\]; found 1.5 at row 2 of .*rows.csv"):
        read(path, missing=True)
    path = csv("0.5,7", "2,0.5")
    with pytest.raises(ValueError, match=r"found 2.0 at row 1 of"):
        read(path, fractional="drop")


def test_other_words_are_refused(csv):
    with pytest.raises(
        TypeError, match=r"`y` \(y_true\) must contain numbers; its type is text in .* \('maybe' at row 1\)"
    ):
        read(csv("void,0.5", "maybe,0.5"), missing=True)
    with pytest.raises(TypeError, match=r"`p` \(y_proba\) must contain numbers; .* \('high' at row 0\)"):
        read(csv("1,high", "0,0.5"), missing=True)


def test_no_rows_are_left(csv):
    with pytest.raises(ValueError, match=r"rows.csv, without the rows left out, has no rows"):
        read(csv("void,0.5", ",0.5"), missing=True)


def test_without_a_filter_void_is_an_error_with_its_cause(csv):
    with pytest.raises(TypeError, match=r"\('void' at row 1\). Words for a missing value\? Drop those rows") as caught:
        load(find_sources(csv("1,0.5", "void,0.5")), ROLES)
    assert caught.value.cause == "missing"
    with pytest.raises(ValueError, match="has a missing value") as caught:
        load(find_sources(csv("1,0.5", ",0.5")), ROLES)
    assert caught.value.cause == "missing"
