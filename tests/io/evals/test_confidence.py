"""JSON lines with confidences: conversion, missing values, names and meanings."""

import math

import pytest
from support.evaluations import write_lines

from truthcal.io.evals.confidence import meaning_of, read_confidence
from truthcal.io.evals.options import EvalOptions
from truthcal.io.files.find_files import find_sources


@pytest.fixture
def read(tmp_path):
    """Read rows as JSON lines."""

    def run(*rows, **options):
        path = write_lines(tmp_path / "answers.jsonl", rows)
        (found,) = read_confidence(find_sources(path), EvalOptions(**options))
        return found

    return run


def test_all_ways_to_write_a_confidence(read):
    rows = read(
        {"confidence": 0.5, "correct": True},
        {"confidence": "85%", "correct": "C"},
        {"confidence": "0.25", "correct": "I"},
        {"confidence": None, "correct": 1},
        {"confidence": math.nan, "correct": 1},
        {"correct": 0},
        {"confidence": 1, "correct": 0, "tags": ["a"], "nested": {"b": 1}},
    )
    assert rows.columns == {"confidence": [0.5, 0.85, 0.25, 1.0], "correct": [1, 1, 0, 0]}
    assert (rows.missing, rows.proba, rows.label, rows.group) == (3, ("confidence",), "correct", None)
    assert rows.notes[0] == "42.9% of the confidences are missing (3 of 7 rows); these rows are left out."


def test_missing_confidences_are_reported_as_a_share(read):
    rows = read(*[{"confidence": None if i < 30 else 0.5, "correct": 1} for i in range(200)])
    assert rows.notes[0] == "15% of the confidences are missing (30 of 200 rows); these rows are left out."
    rows = read(*[{"confidence": None if i < 1 else 0.5, "correct": 1} for i in range(2000)])
    assert rows.notes[0].startswith("Less than 0.1% of the confidences are missing (1 of 2,000 rows)")


def test_other_outcomes_are_left_to_the_guess(read):
    rows = read({"confidence": 0.5, "y": "A"}, {"confidence": 0.6, "y": "B"})
    assert rows.label is None
    assert rows.columns["y"] == ["A", "B"]
    rows = read({"confidence": 0.5, "correct": "A"}, {"confidence": 0.6, "correct": "B"}, label="correct")
    assert rows.columns["correct"] == ["A", "B"]


def test_missing_outcomes_stay_missing(read):
    assert (
        read({"confidence": 0.5, "correct": None}, {"confidence": 0.5, "correct": "void"}).columns["correct"]
        == [None] * 2
    )


def test_named_columns_and_percentages(read):
    row = {"p": 70, "conf": 0.1, "ok": "yes"}
    rows = read(row, proba=("p",), label="ok", percent=True)
    assert (rows.columns["p"], rows.columns["ok"], rows.columns["conf"]) == ([0.7], [1.0], [0.1])


@pytest.mark.parametrize(
    ("ids", "group"),
    [
        ({"question_id": [1, 1, 2]}, "question_id"),
        ({"ID": ["a", "a", "b"]}, "ID"),
        ({"question_id": [1, 2, 3]}, None),
        ({"question_id": [1, 1, None]}, None),
        ({"question_id": [1, 1, 2], "id": [1, 2, 3]}, "question_id"),
        ({"question_id": [1, 1, 2], "doc_id": [1, 1, 1]}, None),
        ({"question_id": [1, 1, 2], "question": ["a?", "a?", "b?"]}, "question_id"),
        ({"topic": [1, 1, 2]}, None),
    ],
)
def test_rows_of_one_question(read, ids, group):
    rows = [{"confidence": 0.5, "correct": 1, **{name: values[i] for name, values in ids.items()}} for i in range(3)]
    assert read(*rows).group == group


def test_a_prompt_template_does_not_hide_the_questions(read):
    rows = [{"id": i // 2, "prompt": i % 3, "confidence": 0.5, "correct": 1} for i in range(6)]
    assert read(*rows).group == "id"
    assert read(*({**row, "prompt": "same"} for row in rows)).group == "id"


def test_labels_that_are_not_all_known_stay_as_they_are(read):
    words = ["CORRECT", "INCORRECT", "NOT_ATTEMPTED"]
    rows = [{"confidence": 0.5, "grade": word} for word in words]
    assert read(*rows, label="grade").columns["grade"] == words
    assert read(*rows[:2], label="grade").columns["grade"] == [1.0, 0.0]


def test_two_confidences_are_both_converted_and_none_is_chosen(read):
    rows = read({"conf_a": "50%", "conf_b": 0.25, "correct": 1}, {"conf_a": None, "conf_b": 0.25, "correct": 1})
    assert rows.proba == ()
    assert rows.columns["conf_a"] == [0.5]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        (
            "confidence",
            "does not tell what 'confidence' means: the probability of the answer, the probability of its tokens",
        ),
        ("verbalized_confidence", "by its name, is self-reported"),
        ("self_confidence", "by its name, is self-reported"),
        ("token_conf", "the probability of the tokens"),
        ("answer_confidence", "is the probability of the answer"),
    ],
)
def test_meanings(read, name, meaning):
    assert meaning in meaning_of([name])
    assert meaning in read({name: 0.5, "correct": 1}).notes[-1]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "has no rows"),
        ([{"p": 0.5}], {}, "no column is a confidence by its name; it has 'p'. Name the column with --proba"),
        ([{"confidence": 0.5}], {"proba": ("q",)}, r"has no column 'q' \(named by --proba\)"),
        ([{"confidence": 0.5}], {"label": "q"}, r"has no column 'q' \(named by --label\)"),
        ([{"confidence": 0.5}, {"confidence": "high"}], {}, "'confidence' at row 1: 'high' is not a confidence"),
        ([{"confidence": 85}], {}, "'confidence' at row 0: 85 is not a probability .* use --percent"),
        ([{"confidence": {"value": 0.5}}], {}, "'confidence' at row 0: {'value': 0.5} is not a confidence"),
        ([{"confidence": None}] * 3, {}, "all 3 confidences are missing; nothing can be assessed"),
        (
            [{"confidence": 0.5, "correct": "maybe"}],
            {},
            "'correct' at row 0 does not say whether the answer is correct: 'maybe'. Write true/false",
        ),
    ],
)
def test_files_that_are_refused(read, rows, options, message):
    with pytest.raises(ValueError, match=message):
        read(*rows, **options)


def test_percent_is_refused_for_numbers_below_1(read):
    rows = [{"confidence": confidence, "correct": True} for confidence in (0.2, 0.9, 85, "40%", 0.7)]
    with pytest.raises(ValueError, match=r"3 of 4 numbers in 'confidence' are below 1, so they are not percentages"):
        read(*rows, percent=True)
