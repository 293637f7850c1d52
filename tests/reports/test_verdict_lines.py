"""Words of verdicts in reports: sentences stay together, and verdicts that do not follow from p are explained."""

import numpy as np

import truthcal as tc
from truthcal.reports.wording import reason_without_p, verdict_lines


def some_rows():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    return (rng.random(3000) < p).astype(int), p


def test_lines_of_a_sentence_are_one_paragraph():
    y, p = some_rows()
    found = tc.assess(y, p**1.5)
    assert ";\n" in found.verdict
    lines = verdict_lines(found, None)
    assert not [line for line in lines if line.endswith(";") or line[0].islower()]
    assert " ".join(lines) == " ".join(found.verdict.split("\n"))


def test_impossible_outcomes_are_the_reason_beside_a_large_p():
    y, p = some_rows()
    wrong = p.copy()
    wrong[np.flatnonzero((y == 1) & (p < 0.2))[:2]] = 0.0
    found = tc.assess(y, wrong)
    assert (found.kind, found.test.greater > 0.05) == ("miscalibrated", True)
    reason = "Miscalibrated: 2 of 3,000 rows had an outcome with a predicted probability of exactly 0."
    assert reason_without_p(found) == reason
    assert not reason_without_p(tc.assess(y, p))
    assert not reason_without_p(tc.assess(y, p**1.5))
    assert f"<p>{reason}</p></td>" in tc.report(y, {"right": p, "wrong": wrong}).html


def test_p_values_of_one_pair_are_not_adjusted():
    y, p = some_rows()
    two, three = tc.compare_models(y, {"a": p, "b": p**1.5}), tc.compare_models(y, {"a": p, "b": p**1.5, "c": p**2})
    assert "adjusted p" not in str(two)
    assert str(three).count("adjusted p") == 2
