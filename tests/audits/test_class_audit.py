"""The audit of many classes, against enumeration of all outcomes."""

import itertools

import numpy as np
import pytest

import truthcal as tc
from truthcal.audits.class_audit import expected_class_score

NAMES = tuple(tc.DEFINITIONS)
TRUTH = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])


def enumerated(definition, report, truth):
    """Mean of the measure over all outcomes, from the definition of an expectation."""
    n, k = truth.shape
    total = 0.0
    for y in itertools.product(range(k), repeat=n):
        chance = np.prod([truth[i, c] for i, c in enumerate(y)])
        total += chance * tc.multiclass_atb(list(y), report, definition=definition, labels=range(k))
    return total


@pytest.mark.parametrize("definition", NAMES)
def test_expected_scores_are_those_of_all_outcomes(definition):
    rng = np.random.default_rng(0)
    for n, k in ((1, 3), (2, 2), (3, 3), (4, 4)):
        truth, report = rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(k), n)
        for lie in (truth, report, np.tile(truth.mean(axis=0), (n, 1))):
            expected = expected_class_score(definition, lie, truth)
            assert expected == pytest.approx(enumerated(definition, lie, truth), rel=1e-12)


def test_lying_pays_under_top_label_alone():
    result = tc.audit(TRUTH)
    assert [name for name in result if result[name].pays] == ["top_label"]
    assert all(result[name].gain <= 1e-12 for name in NAMES if name != "top_label")
    row = result["top_label"]
    assert row.relative_gain > 0.15
    assert row.scores[row.best_lie] == pytest.approx(enumerated("top_label", row.best_report, TRUTH), rel=1e-12)
    assert row.honest == pytest.approx(enumerated("top_label", TRUTH, TRUTH), rel=1e-12)


def test_the_gain_under_top_label_reaches_four_tenths():
    rng = np.random.default_rng(1)
    gains = [tc.audit(rng.dirichlet(np.ones(3), 3), ["top_label"])["top_label"].relative_gain for _ in range(12)]
    assert max(gains) > 0.42


def test_it_prints_rows_of_classes():
    text = str(tc.audit(TRUTH, ["vector", "top_label"], strategies=["shrink", "searched"]))
    assert text.startswith("3 rows with true probabilities (0.5, 0.3, 0.2), (0.1, 0.2, 0.7) and (0.3, 0.3, 0.4).")
    assert "Lying pays under top_label: reporting (" in text
    assert "It never pays under vector (proved for any truth and any lie)." in text


def test_predictions_as_the_truth():
    p = np.random.default_rng(2).dirichlet(np.ones(4), 900)
    result = tc.audit_on(p, ["classwise", "top_label"], max_rows=60)
    assert result.source == "60 of your 900 predictions, evenly spaced"
    assert result.truth.shape == (60, 4)
    assert result["top_label"].pays
    assert not result["classwise"].pays
    assert tc.audit_on(p[:50], "vector").source == "your predictions"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((TRUTH, ["atb"]), {}, r"`measures` for many classes must be one of 'vector', 'classwise', 'canonical', 'top_label'"),
        ((TRUTH, {"mine": max}), {}, r"`measures` must be a list of names for an audit of many classes"),
        ((TRUTH,), {"strategies": ["round to 0.1"]}, r"`strategies` for many classes must be one of 'constant mean'"),
        ((TRUTH,), {"stage": "ex_ante"}, r'`stage` must be "interim" for many classes'),
        ((np.full((2001, 2), 0.5),), {}, r"`truth` has 2,001 rows; an audit of many classes takes at most 2,000"),
        ((TRUTH * 0.9,), {}, r"`truth` must add up to 1 in each row"),
    ],
)  # fmt: skip
def test_errors(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tc.audit(*arguments, **options)
