"""KS, Kuiper and StepCE: read off the cumulative bias at distinct predictions."""

import numpy as np
import pytest
from hypothesis import given
from support.strategies import weighted_rows

import truthcal as tc


@given(weighted_rows(max_size=12))
def test_they_are_read_off_the_curve(data):
    y, p, w = data
    curve = np.concatenate([[0.0], tc.cumulative_bias_curve(y, p, sample_weight=w).bias])
    assert tc.ks_ce(y, p, sample_weight=w) == pytest.approx(np.abs(curve).max(), rel=1e-12, abs=0)
    assert tc.kuiper_ce(y, p, sample_weight=w) == pytest.approx(curve.max() - curve.min(), rel=1e-12, abs=1e-300)
    assert tc.step_ce(y, p, sample_weight=w) == tc.ks_ce(y, p, sample_weight=w)


def test_the_order_of_tied_rows_cannot_matter():
    """Summed row by row, tied rows that are sorted by outcome look miscalibrated."""
    y = np.array([0] * 500 + [1] * 500)
    p = np.full(1000, 0.5)
    assert np.abs(np.cumsum(p - y)).max() / 1000 == 0.25
    assert tc.ks_ce(y, p) == tc.kuiper_ce(y, p) == 0


def test_the_starting_zero_counts():
    assert tc.kuiper_ce([0, 0], [0.3, 0.6]) == pytest.approx(0.45)
    assert tc.kuiper_ce([1, 1], [0.3, 0.6]) == pytest.approx(0.55)
