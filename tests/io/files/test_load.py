"""Rows as they are in the files while they are few, and always the sketch that `scan` makes."""

import hashlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import truthcal as tc
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files import parquet_arrow
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source

TRUE = [0, 1, 1, 0, 1]
PROBA = [0.1, 0.8, 0.65, 0.3, 0.9]
WEIGHT = [1.0, 2.0, 0.0, 0.5, 3.0]
SITE = ["a", "b", "a", "b", "a"]
ROLES = ColumnRoles.of("y", "p", None, None, None)


def files(folder, ending, **more):
    """Two files of three and of two rows."""
    columns = {"y": TRUE, "p": PROBA, "w": WEIGHT, "g": SITE, **more}
    for name, rows in (("1", slice(0, 3)), ("2", slice(3, None))):
        part = {column: values[rows] for column, values in columns.items()}
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table(part), path)
        else:
            lines = [",".join(part), *(",".join(map(str, row)) for row in zip(*part.values(), strict=True))]
            path.write_text("\n".join(lines) + "\n")
    return find_sources(str(folder / f"*.{ending}"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("batch", [1 << 20, 2])
def test_rows_are_kept_in_the_order_of_the_files(tmp_path, monkeypatch, ending, batch):
    monkeypatch.setattr(parquet_arrow, "BATCH", batch)
    loaded = load(files(tmp_path, ending), ColumnRoles.of("y", "p", "w", None, None))["p"]
    assert loaded.exact
    assert loaded.n == 5
    assert loaded.y.tolist() == TRUE
    assert loaded.p.tolist() == PROBA
    assert loaded.w.tolist() == WEIGHT
    assert (loaded.sketch, loaded.table) == (None, None)
    loaded = load(files(tmp_path, ending), ColumnRoles.of("y", "p", "w", None, None), exact_rows=4)["p"]
    assert loaded.sketch.n == 4  # one has no weight
    expected = tc.scan(tmp_path / f"*.{ending}", y_true="y", y_proba="p", sample_weight="w", n_buckets=16384)
    assert loaded.sketch.to_bytes() == expected.to_bytes()


class Opens:
    """Counts how often files are opened, by Python and by pyarrow."""

    def __init__(self, monkeypatch):
        self.paths = []
        for name in ("OSFile", "memory_map"):
            monkeypatch.setattr(pa, name, self.counted(getattr(pa, name)))
        monkeypatch.setattr(pq, "ParquetFile", self.counted(pq.ParquetFile))
        monkeypatch.setattr("builtins.open", self.counted(open))

    def counted(self, function):
        def wrapper(file, *args, **options):
            if isinstance(file, str | os.PathLike):
                self.paths.append(os.fspath(file))
            return function(file, *args, **options)

        return wrapper


WRITERS = {
    "csv": lambda table, path: pyarrow.csv.write_csv(table, path),
    "csv.gz": lambda table, path: pyarrow.csv.write_csv(table, pa.CompressedOutputStream(str(path), "gzip")),
    "jsonl": lambda table, path: path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist())),
    "parquet": lambda table, path: pq.write_table(table, path),
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path),
}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("block", [Source.BLOCK, 64])
def test_several_models_are_read_in_one_pass(tmp_path, monkeypatch, ending, block):
    monkeypatch.setattr(Source, "BLOCK", block)
    path = tmp_path / f"f.{ending}"
    table = pa.table({"y": TRUE, "a": PROBA, "b": PROBA[::-1], "w": WEIGHT, "g": SITE})
    WRITERS[ending](table, path)
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    checksum, opens = hashlib.sha256(), Opens(monkeypatch)
    preview = preview_columns(find_sources(path)[0], ["a", "b"])
    models = load([preview.source], ColumnRoles.of_models("y", ["a", "b"], "w", "g", None), checksum=checksum)
    assert opens.paths.count(str(path)) == 2  # preview and read
    assert checksum.hexdigest() == expected
    assert list(models) == ["a", "b"]
    for name, proba in (("a", PROBA), ("b", PROBA[::-1])):
        assert models[name].p.tolist() == proba
        by_group = tc.scan(path, y_true="y", y_proba=name, sample_weight="w", by="g")
        assert models[name].table.to_bytes() == by_group.to_bytes()
    assert models["a"].y is models["b"].y
    assert models["a"].w is models["b"].w


def test_the_error_names_the_model_with_the_bad_row(tmp_path):
    sources = files(tmp_path, "csv", q=[0.1, 0.2, 0.3, 0.4, 7.5])
    with pytest.raises(ValueError, match=r"`q` \(y_proba\) must lie in \[0, 1\]; found 7\.5 at row 1 of .*2\.csv"):
        load(sources, ColumnRoles.of_models("y", ["p", "q"], None, None, None))
    sources = files(tmp_path, "csv", q=[0.1, 0.2, 0.3, 0.4, "NA"])
    with pytest.raises(ValueError, match=r"`q` \(y_proba\) has a missing value \(null or nan\) at row 1 of .*2\.csv"):
        load(sources, ColumnRoles.of_models("y", ["p", "q"], None, None, None))


@pytest.mark.parametrize(("most", "exact"), [(5, True), (4, False), (3, False), (None, True)])
def test_of_too_many_rows_the_sketch_is_left(tmp_path, most, exact):
    loaded = load(files(tmp_path, "csv"), ROLES, exact_rows=most, n_buckets=64)["p"]
    assert loaded.exact is exact
    assert (loaded.y is None, loaded.p is None) == (not exact, not exact)
    assert loaded.w is None
    assert loaded.n == 5
    assert (loaded.sketch is None) is exact
    if not exact:
        assert (loaded.sketch.n, loaded.sketch.n_buckets) == (5, 64)


def test_labels_become_0_and_1(tmp_path):
    loaded = load(
        files(tmp_path, "csv", y=["no", "yes", "yes", "no", "yes"]), ColumnRoles.of("y", "p", None, None, "yes")
    )["p"]
    assert loaded.y.tolist() == TRUE


@pytest.mark.parametrize(("n_buckets", "kept"), [(None, 4096), (16384, 16384), (256, 256)])
def test_groups_come_with_their_total(tmp_path, n_buckets, kept):
    sources, roles = files(tmp_path, "parquet"), ColumnRoles.of("y", "p", None, "g", None)
    assert load(sources, roles)["p"].p.tolist() == PROBA
    loaded = load(sources, roles, n_buckets=n_buckets, exact_rows=4)["p"]
    assert list(loaded.table) == ["a", "b"]
    assert loaded.table.n.tolist() == [3, 2]
    assert loaded.table.n_buckets == loaded.sketch.n_buckets == kept
    assert loaded.sketch.brier() == pytest.approx(np.mean((np.array(PROBA) - TRUE) ** 2), rel=1e-12)


def test_rows_of_files_with_other_types_are_put_together(tmp_path):
    pq.write_table(pa.table({"y": [True, False], "p": pa.array([0.5, 0.25], pa.float32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"y": [0.5, 1.0], "p": [0.1, 0.2]}), tmp_path / "2.parquet")
    loaded = load(find_sources(tmp_path), ROLES)["p"]
    assert loaded.y.tolist() == [1, 0, 0.5, 1]
    assert loaded.p.tolist() == [0.5, 0.25, 0.1, 0.2]


def test_bad_rows_are_named_as_scan_names_them(tmp_path):
    sources = files(tmp_path, "csv", p=[0.1, 0.2, 0.3, 0.4, 74.5])
    with pytest.raises(
        ValueError, match=r"`p` \(y_proba\) must lie in \[0, 1\]; found 74\.5 at row 1 of .*2\.csv \(1 of 2 rows"
    ):
        load(sources, ROLES)
    (tmp_path / "none.csv").write_text("y,p\n")
    with pytest.raises(ValueError, match=r"none\.csv has no rows; at least one is needed"):
        load(find_sources(tmp_path / "none.csv"), ROLES)


@pytest.mark.parametrize("exact_rows", [None, 4])
def test_rows_that_are_valid_only_alone_are_rejected_with_and_without_a_sketch(tmp_path, exact_rows):
    sources = files(
        tmp_path, "csv", w=[1, 2, 0, -1, 1], z=[0.0] * 5, half=[0.5] * 5, sure=[0, 1, 1, 0, 1], label=list("abcab")
    )

    def refused(message, *roles):
        with pytest.raises(ValueError, match=message):
            load(sources, ColumnRoles.of(*roles), exact_rows=exact_rows)

    refused("is zero in every row; at least one weight must be positive", "y", "p", "z", None, None)
    refused("the arguments look swapped", "half", "sure", None, None, None)
    refused(r"has more than two different labels \('a', 'b', 'c'\)", "label", "p", None, None, "a")
    refused("must be one of the labels in `label`", "label", "p", None, None, "d")
    refused(r"`w` \(sample_weight\) must not be negative; found -1\.0 at row 0 of .*2", "y", "p", "w", None, None)
