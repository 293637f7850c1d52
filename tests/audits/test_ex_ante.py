"""Audits in the ex ante stage, against sums over all samples and outcomes, and against the theorems of the paper."""

import numpy as np
import pytest
from oracles import audits as oracles
from oracles import measures as measure_oracles

import truthcal as tc
from truthcal.audits import stages as stages_module

KINDS = [0.1, 0.3, 0.8]
COARSE = {
    "constant": lambda truth: np.full(3, np.mean(truth)),
    "two levels": lambda truth: [0.2, 0.2, 0.8],
    "other levels": lambda truth: [0.45, 0.3, 0.45],
}
MEASURES = {
    "atb": measure_oracles.atb,
    "brier": oracles.brier,
    "shifted_grid_ubse": lambda y, p: measure_oracles.shifted_grid_ubse(y, p, None, 0.1),
    "multiscale_atb": measure_oracles.multiscale_atb,
    "quantile_ece": measure_oracles.quantile_ece,
    "excess": oracles.excess,
    "sqrt_atb": oracles.sqrt_atb,
    "atb_ratio": oracles.atb_ratio,
}


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("lie", [[0.1, 0.3, 0.8], [0.2, 0.2, 0.8], [0.0625, 0.5, 0.9375]])
def test_scores_are_sums_over_all_samples_and_outcomes(name, lie):
    for n_rows in (2, 3):
        row = tc.audit(KINDS, [name], strategies={"lie": lambda truth: lie}, stage="ex_ante", n_rows=n_rows)[name]
        expected = oracles.ex_ante(KINDS, lie, n_rows, MEASURES[name])
        assert row.scores["lie"] == pytest.approx(expected, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 1000])
def test_atb_ranks_calibrated_predictors_by_brier_score(n_rows):
    """Lemma B.1 of the paper: the mean ATB of a calibrated predictor is its Brier score / n_rows."""
    result = tc.audit(KINDS, ["atb", "brier"], strategies=COARSE, stage="ex_ante", n_rows=n_rows)
    atb, brier = result["atb"], result["brier"]
    assert (atb.method, brier.method, result.n_rows) == ("decomposition", "decomposition", n_rows)
    assert atb.honest * n_rows == pytest.approx(brier.honest, rel=1e-12)
    for name in COARSE:
        assert atb.scores[name] * n_rows == pytest.approx(brier.scores[name], rel=1e-12)
        assert atb.scores[name] > atb.honest * 1.01  # strictly best: the informed one
    assert sorted(COARSE, key=atb.scores.get) == sorted(COARSE, key=brier.scores.get)


def test_every_ubse_is_strictly_truthful():
    """Theorem 3.5 and Lemma 3.6, with a gap of at least E(r - E[y|r])^2 / n_rows^2."""
    names = [name for name, measure in tc.MEASURES.items() if measure.truthful]
    lies = {**COARSE, "wrong": lambda truth: [0.15, 0.3, 0.7]}
    for row in tc.audit(KINDS, names, strategies=lies, stage="ex_ante", n_rows=3).rows:
        assert row.truthful
        assert min(row.scores.values()) > row.honest
        if row.measure != "quantile_ece":  # a multiple of a UBSE
            assert row.scores["wrong"] >= row.honest + (0.05**2 + 0.1**2) / 3 / 9


@pytest.mark.parametrize("name", ["atb", "brier", "quantile_ece", "smcal"])
def test_expected_score_of_samples_is_that_of_the_audit(name):
    lie = [0.2, 0.2, 0.9]
    row = tc.audit(KINDS, [name], strategies={"lie": lambda truth: lie}, stage="ex_ante", n_rows=4)[name]
    found = tc.expected_score(lie, KINDS, name, n_rows=4)
    assert (found.value, found.method, found.standard_error) == (row.scores["lie"], row.method, 0.0)
    assert str(found).startswith(f"expected {name} of 4 rows ")
    assert found.n_rows == 4


@pytest.mark.parametrize("name", ["atb", "smcal", "multiscale_atb"])
def test_frequencies_are_those_of_repeated_kinds(name, monkeypatch):
    truth, report = [0.1, 0.8], [0.3, 0.6]
    twice = tc.expected_score([0.3, 0.6, 0.6], [0.1, 0.8, 0.8], name, n_rows=3).value
    weighted = tc.expected_score(report, truth, name, n_rows=3, sample_weight=[1, 2])
    assert weighted.value == pytest.approx(twice, rel=1e-12)
    own = tc.expected_score(report, truth, tc.MEASURES[name].function, n_rows=3, sample_weight=[1, 2])
    assert own.value == pytest.approx(twice, rel=1e-12)
    monkeypatch.setattr(stages_module, "_MAX_SAMPLES", 0)
    drawn = tc.expected_score(report, truth, name, n_rows=3, sample_weight=[1, 2], n_resamples=400)
    if drawn.method == "draws":
        assert abs(drawn.value - twice) < 4 * drawn.standard_error
        assert drawn.n_resamples == 400


def test_excess_is_only_weakly_truthful_ex_ante():
    """Its mean is the ATB of the population: 0 for all calibrated predictors. Interim, lying pays."""
    row = tc.audit(KINDS, ["excess"], strategies=COARSE, stage="ex_ante", n_rows=50)["excess"]
    assert (row.truthful, row.pays, row.method) == (True, False, "decomposition")
    assert row.scores == pytest.approx(dict.fromkeys(COARSE, 0.0), abs=1e-15)
    assert tc.audit(KINDS, ["excess"], strategies=COARSE)["excess"].pays


def test_draws_agree_with_enumeration(monkeypatch):
    names = ["smcal", "multiscale_atb"]
    exact = tc.audit(KINDS, names, strategies=COARSE, stage="ex_ante")
    monkeypatch.setattr(stages_module, "_MAX_SAMPLES", 0)
    drawn = tc.audit(KINDS, names, strategies=COARSE, stage="ex_ante", n_resamples=100)
    for name in names:
        assert (exact[name].method, drawn[name].method) == ("enumeration", "draws")
        for lie, score in exact[name].scores.items():
            assert drawn[name].scores[lie] == pytest.approx(score, abs=0.04)


def test_ex_ante_audit_prints_the_population():
    text = " ".join(str(tc.audit([0.25, 0.75], ["atb", "smcal"], stage="ex_ante", n_rows=3)).split())
    assert text.startswith(
        "Ex ante: samples of 3 events from 2 kinds of events, equally frequent, with true probabilities 0.25 and 0.75. "
    )
    assert "It never pays under atb (proved for any population and any lie)." in text
    assert tc.audit([0.25, 0.75], ["atb"], stage="ex_ante").n_rows == 2


def test_samples_are_drawn_only_if_they_are_needed():
    assert tc.expected_score([0.5], [0.5], "atb", n_rows=10**12).value == pytest.approx(0.25e-12)
    with pytest.raises(ValueError, match="`n_rows` is too large: 1,000 samples of 1,000,000,000,000 rows would have"):
        tc.expected_score([0.5], [0.5], "smcal", n_rows=10**12)
