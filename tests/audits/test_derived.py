"""Audits of numbers derived from ATB: a root, a ratio, a difference, a p-value. Against sums over all outcomes."""

import itertools

import numpy as np
import pytest
from oracles import audits as oracles
from oracles import measures as measure_oracles

import truthcal as tc
from truthcal.audits import derived as derived_module
from truthcal.audits.derived import DERIVED

TRUTH = [0.25, 0.75]
TIED = {"report": [0.25, 0.5, 0.25, 0.875, 0.5], "truth": [0.125, 0.5, 0.375, 0.75, 0.25]}


@pytest.mark.parametrize("name", list(DERIVED))
def test_expected_score_is_the_sum_over_all_outcomes(name):
    oracle, rows = getattr(oracles, name), 4 if name in ("pvalue", "pass_rate") else 5
    report, truth = TIED["report"][:rows], TIED["truth"][:rows]
    expected = measure_oracles.expectation(truth, lambda y: oracle(y, report))
    score = tc.expected_score(report, truth, name)
    assert score.method == "enumeration"
    assert score.value == pytest.approx(expected, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "honest", "best"),
    [
        ("atb", 0.09375, 0.09375),
        ("brier", 0.1875, 0.1875),
        ("atb_ratio", 1.0, 0.75),
        ("excess", 0.0, -0.125),
        ("sqrt_excess", 0.1148, 0.0),
        ("sqrt_atb", 0.2628, 0.1875),
        ("pvalue", 0.7305, 0.8308),
    ],
)
def test_two_events_and_the_best_lie(name, honest, best):
    """The best lie is the best of all reports on a grid, too."""
    row = tc.audit(TRUTH, [name])[name]
    assert row.honest == pytest.approx(honest, abs=5e-5)
    assert row.scores["searched"] == pytest.approx(best, abs=5e-5)
    assert row.truthful == (name in ("atb", "brier"))
    assert row.pays != row.truthful
    sign = -1.0 if row.higher_is_better else 1.0
    grid = np.linspace(0.0, 1.0, 9)
    scores = [sign * tc.expected_score(report, TRUTH, name).value for report in itertools.product(grid, grid)]
    assert sign * best == pytest.approx(min(scores), abs=0.012)
    assert min(scores) >= sign * row.scores["searched"] - 0.012


def test_reporting_the_mean_raises_the_pvalue_and_the_pass_rate():
    result = tc.audit([0.25] * 3 + [0.75] * 3, ["pvalue", "pass_rate"], strategies=["constant mean"])
    for row in result.rows:
        assert row.pays
        assert row.scores["constant mean"] > row.honest
        assert row.gain == row.scores["constant mean"] - row.honest
        assert row.relative_gain == pytest.approx(row.gain / row.honest)
    assert "higher is better, and * marks the best lie if" in " ".join(str(result).split())
    both = tc.audit(TRUTH, ["atb", "pvalue"], strategies=["shrink"])
    assert "lower is better (higher for pvalue), and * marks the best lie if" in " ".join(str(both).split())


def test_pvalue_is_that_of_the_calibration_test(monkeypatch):
    report, truth = np.random.default_rng(0).random((2, 6)).round(2)
    score = tc.expected_score(report, truth, "pvalue")
    for y, value in zip(score.outcomes[::7], score.values[::7], strict=True):
        assert value == pytest.approx(tc.calibration_test(y, report).pvalue, rel=1e-9)
    monkeypatch.setattr(derived_module, "_MAX_CASES", 0)
    drawn = tc.expected_score(report, truth, "pvalue")
    assert drawn.value == pytest.approx(score.value, abs=0.03)
    assert drawn.values.min() >= 1 / 1000


def test_error_size_is_that_of_the_function_also_for_ties():
    """A constant gains, although calibrated; so it must not be used to rank forecasters."""
    truth = (np.arange(200) + 0.5) / 200
    result = tc.audit(truth, ["error_size"], strategies=["constant mean", "round to 0.1"], n_resamples=100)[
        "error_size"
    ]
    assert (result.pays, result.best_lie) == (True, "constant mean")
    for report in (truth[::8], truth[::8].round(1)):
        expected = tc.expected_score(report, truth[::8], lambda y, p: tc.error_size(y, p).estimate, n_resamples=20)
        score = tc.expected_score(report, truth[::8], "error_size", n_resamples=20)
        assert score.value == pytest.approx(expected.value, rel=1e-12)


def test_weights_count_as_in_the_summary():
    weight = [1.0, 2.5, 1.0, 3.0, 0.5]
    for name, field in (("excess", "excess"), ("brier", "brier"), ("atb_ratio", None)):
        score = tc.expected_score(**TIED, measure=name, sample_weight=weight)
        for y, value in zip(score.outcomes[::5], score.values[::5], strict=True):
            summary = tc.atb_summary(y, TIED["report"], sample_weight=weight)
            expected = getattr(summary, field) if field else summary.value / summary.noise_floor
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_certain_reports_have_a_ratio():
    """0 / 0 for certain predictions that come true counts as the 1 of calibrated ones; otherwise the ratio is inf."""
    certain = tc.audit([0.0, 1.0], ["atb_ratio"])["atb_ratio"]
    assert (certain.honest, certain.pays) == (1.0, True)  # reporting doubt raises the floor more than ATB
    assert tc.expected_score([0.0, 1.0], [0.5, 1.0], "atb_ratio").value == np.inf


@pytest.mark.parametrize("name", ["atb", "brier", "multiscale_atb"])
def test_many_events_leave_truthful_numbers_truthful_and_derived_ones_gameable(name):
    truth = np.random.default_rng(1).beta(1.2, 1.8, 300)
    result = tc.audit(truth, [name, "atb_ratio", "excess"], strategies=["constant mean"])
    assert result[name].truthful
    assert result["atb_ratio"].pays
    assert result["excess"].pays
