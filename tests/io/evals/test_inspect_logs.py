"""Logs of Inspect, written and read by inspect_ai itself."""

import builtins
import warnings

import pytest

from truthcal.io.evals import inspect_logs
from truthcal.io.evals.inspect_logs import read_inspect
from truthcal.io.evals.options import EvalOptions
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.scan import scan


@pytest.fixture
def write(tmp_path):
    """Write a log with the real library, whose import emits warnings."""
    reason = "inspect_ai is not installed (dependency group language-models)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = pytest.importorskip("inspect_ai.log", reason=reason)
        scorer = pytest.importorskip("inspect_ai.scorer", reason=reason)
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="t", dataset=log.EvalDataset(), model="m", config=log.EvalConfig()
    )

    def sample(scores, **row):
        found = {name: scorer.Score(**score) for name, score in scores.items()}
        return log.EvalSample(input="?", target="a", scores=found or None, **row)

    def run(*rows, name="log.eval"):
        samples = [sample(**row) for row in rows]
        log.write_eval_log(log.EvalLog(eval=spec, samples=samples, status="success"), str(tmp_path / name))
        return tmp_path / name

    return run


def row(i, epoch=1, value="C", confidence=0.75, **more):
    scores = {"grader": {"value": value, "answer": "a", "metadata": {"confidence": confidence, "other": {"a": 1}}}}
    return {"id": i, "epoch": epoch, "scores": scores, **more}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_confidence_in_the_metadata_of_a_score(write, name):
    rows = [row(1), row(2, value="I", confidence="25%"), row(3, confidence=None), row(1, 2, value="I"), row(4)]
    rows[-1]["scores"] = {}
    (found,) = read_inspect(find_sources(write(*rows, name=name)), EvalOptions())
    proba = "score_grader_metadata.confidence"
    assert (found.proba, found.label, found.group, found.missing) == ((proba,), "score_grader", "id", 1)
    assert found.columns[proba] == [0.75, 0.25, 0.75]
    assert found.columns["score_grader"] == [1, 0, 0]
    assert found.columns["id"] == ["1", "2", "1"]
    assert found.notes[:3] == (
        "1 of 5 samples have no score and are left out.",
        "Samples of the same id (epochs) answer the same question.",
        "25% of the confidences are missing (1 of 4 rows); these rows are left out.",
    )
    assert "does not tell what" in found.notes[3]


@pytest.mark.filterwarnings("ignore")
def test_confidence_in_the_metadata_of_the_sample_or_in_a_score(write):
    scores = {"match": {"value": 1}}
    rows = [{"id": 1, "epoch": 1, "metadata": {"stated_confidence": 0.5}, "scores": scores}]
    (found,) = read_inspect(find_sources(write(*rows)), EvalOptions())
    assert found.columns["metadata_stated_confidence"] == [0.5]
    assert found.label == "score_match"
    assert "is self-reported" in found.notes[-1]
    rows = [{"id": 1, "epoch": 1, "scores": {"both": {"value": {"right": 1, "confidence": 0.5}}}}]
    (found,) = read_inspect(find_sources(write(*rows, name="b.eval")), EvalOptions())
    assert (found.proba, found.label) == (("score_both.confidence",), "score_both.right")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [{"id": 1, "epoch": 1, "scores": {"conf": {"value": "C"}}}],
            {},
            r"no sample has a confidence; the fields are .* Let the scorer return Score\(..., metadata={\"confidence\": 0.85}\)",
        ),
        (
            [row(1, metadata={"confidence": 0.5})],
            {},
            "has several confidences: 'metadata_confidence', 'score_grader_metadata.confidence'. Name one with --proba",
        ),
        (
            [{"id": 1, "epoch": 1, "metadata": {"conf": 1}, "scores": {"a": {"value": 1}, "b": {"value": 0}}}],
            {},
            "Which score of .* says whether the answer is correct.*'score_a', 'score_b'. Name one with --label",
        ),
        ([row(1, confidence=75)], {}, "75 is not a probability"),
    ],
)
def test_logs_that_are_refused(write, rows, options, message):
    with pytest.raises(ValueError, match=message):
        read_inspect(find_sources(write(*rows)), EvalOptions(**options))


@pytest.mark.filterwarnings("ignore")
def test_a_log_without_samples_and_one_that_is_damaged(write, tmp_path):
    with pytest.raises(ValueError, match="the log has no samples"):
        read_inspect(find_sources(write()), EvalOptions())
    (tmp_path / "bad.eval").write_text("no zip")
    with pytest.raises(ValueError, match=r"bad.eval: could not be read as a log of Inspect \(.*\)"):
        read_inspect(find_sources(tmp_path / "bad.eval"), EvalOptions())


def test_without_the_library_there_is_a_cure(tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("inspect_ai"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    (tmp_path / "log.eval").write_text("x")
    with pytest.raises(
        ImportError, match=r"log.eval: reading logs of Inspect needs inspect-ai: pip install 'truthcal\[inspect\]'"
    ):
        inspect_logs.read_inspect(find_sources(tmp_path / "log.eval"), EvalOptions())


def test_scan_refers_to_the_command_line(tmp_path):
    (tmp_path / "log.eval").write_text("x")
    with pytest.raises(
        ValueError, match="is a log of Inspect, which only the commands of truthcal read: truthcal assess"
    ):
        scan(tmp_path / "log.eval", y_true="y", y_proba="p")
