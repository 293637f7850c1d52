"""CORP decompositions of the Brier score and the log loss."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from oracles import more_measures as more_oracles
from support.strategies import weighted_rows

import truthcal as tc


@given(weighted_rows(max_size=9))
def test_brier_decomposition_against_its_definition(data):
    y, p, w = data
    found = tc.brier_decomposition(y, p, sample_weight=w)
    score, mcb, dsc, unc = map(float, more_oracles.brier_decomposition(y, oracles.exact(p), oracles.exact(w)))
    assert found.score == pytest.approx(score, rel=1e-9, abs=1e-14)
    assert found.miscalibration == pytest.approx(mcb, rel=1e-9, abs=1e-14)
    assert found.discrimination == pytest.approx(dsc, rel=1e-9, abs=1e-14)
    assert found.uncertainty == pytest.approx(unc, rel=1e-9, abs=1e-14)
    assert found.score == pytest.approx(tc.atb_summary(y, p, sample_weight=w).brier, rel=1e-9, abs=1e-14)


@given(weighted_rows(max_size=9, outcomes=st.floats(0, 1)))
def test_brier_decomposition_of_fractional_outcomes(data):
    """The score is (p - y)^2 then; the parts that do not depend on the spread of outcomes are the same."""
    y, p, w = data
    p[0] = 0.3
    found = tc.brier_decomposition(y, p, sample_weight=w)
    _, mcb, dsc, _ = map(float, more_oracles.brier_decomposition(oracles.exact(y), oracles.exact(p), oracles.exact(w)))
    assert found.miscalibration == pytest.approx(mcb, rel=1e-9, abs=1e-13)
    assert found.discrimination == pytest.approx(dsc, rel=1e-9, abs=1e-13)
    assert found.score == pytest.approx(np.average(np.subtract(p, y) ** 2, weights=w), rel=1e-9, abs=1e-14)
    assert found.score == pytest.approx(found.miscalibration - found.discrimination + found.uncertainty, abs=1e-13)


@given(weighted_rows(max_size=9))
def test_log_loss_decomposition_against_its_definition(data):
    y, p, w = data
    found = tc.log_loss_decomposition(y, p, sample_weight=w)
    expected = more_oracles.log_loss_decomposition(y, p, w)
    fields = (found.score, found.miscalibration, found.discrimination, found.uncertainty)
    assert fields == pytest.approx([float(x) for x in expected], rel=1e-9, abs=1e-12)


def test_decompositions_print_and_recalibration_leaves_no_miscalibration():
    y, p = [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]
    brier = tc.brier_decomposition(y, p)
    assert str(brier) == "Brier score 0.1925 = miscalibration 0.0675 - discrimination 0.125 + uncertainty 0.25"
    assert brier.to_dict()["name"] == "Brier score"
    assert tc.log_loss_decomposition([1, 0], [0.0, 0.5]).score == math.inf
    assert tc.log_loss_decomposition([1, 0], [0.0, 0.5]).miscalibration == math.inf
    assert tc.brier_decomposition([1, 0, 1, 1], [0.5, 0.5, 1.0, 1.0]).miscalibration == 0
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    y = rng.random(100_000) < p
    calibrated = tc.brier_decomposition(y, p)
    assert calibrated.miscalibration < 1e-3
    assert calibrated.score == pytest.approx(1 / 6, abs=0.005)
    assert calibrated.discrimination == pytest.approx(1 / 12, abs=0.005)
