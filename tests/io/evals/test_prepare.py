"""Evaluation files recognised by content, and their tables."""

import gzip
import hashlib
import json

import pytest
from support.evaluations import samples, write_lines

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.evals.options import EvalOptions
from truthcal.io.evals.prepare import prepare_sources, recognise
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.preview import preview_columns

ROLES = ColumnRoles.of("correct", "probability", None, None, None, "question")


def prepared(*paths, **options):
    return prepare_sources(find_sources(list(paths)), EvalOptions(**options))


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        (json.dumps(samples(1)[0]), "lm-eval"),
        ('{"confidence": 0.5, "correct": 1}', "confidence"),
        ('{"id": 1}\n{"id": 2, "stated_conf": null}', "confidence"),
        ('{\n  "version": 2,\n  "status": "success",\n  "eval": {}\n}', "inspect"),
        ('{"version": 2, "status": "started"}', "inspect"),
        ('{"p": 0.5, "y": 1}', None),
        ('[{"confidence": 1}]', None),
        ("not json", None),
        ("", None),
        ("[1]", None),
        ('{"doc_id": 1, "doc": {}}', None),
    ],
)
def test_recognised_by_content(tmp_path, text, format_):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    (source,) = find_sources(path)
    assert recognise(source) == format_


def test_other_formats_are_not_opened(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("confidence,correct\n0.5,1\n")
    result = prepared(path)
    assert result.format is None
    assert result.sources == find_sources(path)


def test_compressed_samples_are_loaded_with_their_checksum(tmp_path):
    path, lines = tmp_path / "samples.jsonl.gz", samples(30)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    result, checksum = prepared(path), hashlib.sha256()
    loaded = load(result.sources, ROLES, checksum=checksum)["probability"]
    assert (loaded.n, loaded.y.sum()) == (120, 30)
    assert len(set(loaded.groups.tolist())) == 30
    assert checksum.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_notes_of_several_files_name_the_file(tmp_path):
    paths = [write_lines(tmp_path / f"{name}.jsonl", samples(2, seed=seed)) for seed, name in enumerate("ab")]
    notes = prepared(*paths).notes
    assert notes[0].startswith("a.jsonl: lm-eval samples: 2 questions")
    assert notes[2].startswith("b.jsonl: lm-eval samples")


def test_columns_of_mixed_types_become_text(tmp_path):
    rows = [{"confidence": 0.5, "correct": 1, "x": 1}, {"confidence": 0.5, "correct": 1, "x": "one"}]
    (source,) = prepared(write_lines(tmp_path / "a.jsonl", rows)).sources
    assert source.table.column("x").to_pylist() == ["1", "one"]
    assert [column.name for column in preview_columns(source).columns] == ["confidence", "correct", "x"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "softmax"}, "--rule applies only to --format lm-eval; these files are not of it. Omit it"),
        ({"answers": "top"}, "--answers applies only to --format lm-eval"),
        ({"percent": True, "format": "lm-eval"}, "--percent applies only to --format confidence and inspect"),
    ],
)
def test_options_of_other_formats_are_refused(tmp_path, options, message):
    path = write_lines(tmp_path / "a.jsonl", [{"confidence": 0.5, "correct": 1}])
    with pytest.raises(ValueError, match=message):
        prepared(path, **options)


def test_files_of_different_formats_are_refused(tmp_path):
    a = write_lines(tmp_path / "a.jsonl", samples(1))
    b = write_lines(tmp_path / "b.jsonl", [{"confidence": 0.5, "correct": 1}])
    with pytest.raises(
        ValueError, match=r"these files have different formats \(confidence, lm-eval\); pass those of one"
    ):
        prepared(a, b)
