"""Confidences and outcomes as text and numbers."""

import math

import pytest

from truthcal.io.evals.values import parse_confidence, parse_outcome
from truthcal.io.void_words import first_void_word, is_void


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.85, 0.85), ("0.85", 0.85), ("85%", 0.85), (" 85 % ", 0.85), ("100%", 1.0), (1, 1.0), (0, 0.0), ("1e-3", 0.001)],
)
def test_confidences_that_are_unambiguous(value, expected):
    assert parse_confidence(value) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("value", [None, math.nan, "", "  ", "N/A", "null", "nan", "None"])
def test_missing_confidences_are_never_filled(value):
    assert parse_confidence(value) is None
    assert parse_confidence(value, percent=True) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (85, r"85 is not a probability in \[0, 1\]. If all numbers of this column are percentages, use --percent"),
        ("85", 'use --percent; or write "85%"'),
        (1.0000001, "use --percent"),
        (-0.7, "If it is a log-probability, write its exponential; if it is a logit, apply the sigmoid"),
        (101, "Correct or drop the row"),
        (math.inf, "Correct or drop the row"),
        (-math.inf, "Correct or drop the row"),
        ("120%", "Percentages lie between 0% and 100%"),
        ("high", 'is not a confidence; write a number, text such as "0.85" or "85%", or null if it is missing'),
        ("85,5%", "is not a confidence"),
        ("1_0%", "is not a confidence"),
        (True, "True is not a confidence"),
        ([0.5], "is not a confidence"),
        ({"p": 0.5}, "is not a confidence"),
    ],
)
def test_confidences_that_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        parse_confidence(value)


def test_percent_applies_to_all_numbers():
    assert [parse_confidence(value, percent=True) for value in (85, "85", "85%", 1)] == [0.85, 0.85, 0.85, 0.01]
    with pytest.raises(ValueError, match="Percentages lie between"):
        parse_confidence(130, percent=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *[(True, 1), (False, 0), (1, 1), (0.0, 0), ("C", 1), ("I", 0), ("correct", 1), ("Incorrect ", 0), ("TRUE", 1)],
        *[("0", 0), ("1.0", 1), (0.5, 0.5), ("P", 0.5), ("N", 0), (None, None), (math.nan, None), ("void", None)],
    ],
)
def test_outcomes(value, expected):
    assert parse_outcome(value) == expected


def test_other_outcomes_are_refused():
    with pytest.raises(ValueError, match="maybe"):
        parse_outcome("maybe")


def test_void_words():
    assert all(map(is_void, [None, math.nan, "", "void", " Annulled", "N/A", "ambiguous"]))
    assert not any(map(is_void, [0, False, "0", "no", "voids", 0.5]))
    assert first_void_word([1, "", "0", " Void ", "n/a"]) == " Void "
    assert first_void_word([None, "", 1]) == ""
