"""Metrics of results: flat, finite or nan, and the attributes that they are named after."""

import math
import re

import numpy as np
import pytest

import truthcal as tc

rng = np.random.default_rng(6)
P = rng.uniform(0.05, 0.95, 1500)
Y = rng.random(1500) < 0.8 * P
CLASSES = rng.dirichlet(np.ones(3), 300)
CLASS = rng.integers(0, 3, 300)
RESULTS = {
    "assessment": lambda: tc.assess(Y, P),
    "one row": lambda: tc.assess([1], [0.3]),
    "classes": lambda: tc.assess(CLASS, CLASSES),
    "columns": lambda: tc.assess(CLASSES > 0.5, CLASSES, multilabel=True),
    "gate": lambda: tc.check(Y, P),
    "comparison": lambda: tc.compare(Y, P, P**2),
    "monitor": lambda: tc.Monitor().update(Y, P).status(),
    "empty monitor": lambda: tc.Monitor().status(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_metrics_are_floats_with_names_for_trackers(name):
    result = RESULTS[name]()
    metrics = result.metrics()
    assert metrics
    for key, value in metrics.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", key)
        assert type(value) is float
        assert not math.isinf(value)
    again = result.metrics(prefix="test/")
    assert list(again) == [f"test/{key}" for key in metrics]
    np.testing.assert_array_equal(list(again.values()), list(metrics.values()))


def test_metrics_of_an_assessment():
    found = tc.assess(Y, P)
    metrics = found.metrics()
    assert metrics["error"] == found.error.estimate
    assert (metrics["error_low"], metrics["error_high"]) == (found.error.low, found.error.high)
    assert (metrics["bias"], metrics["bias_low"]) == (found.bias_interval.estimate, found.bias_interval.low)
    assert (metrics["atb"], metrics["atb_excess"]) == (found.atb, found.excess)
    assert (metrics["pvalue"], metrics["pvalue_too_good"]) == (found.test.pvalue, found.pvalue_too_good)
    assert metrics["brier"] == pytest.approx(np.mean((P - Y) ** 2), rel=1e-12)
    assert metrics["n"] == 1500.0


def test_metrics_of_segments_and_windows():
    day = np.arange(len(Y)) // 100
    found = tc.assess(Y, P, by=P > 0.5, time=day, window=1)
    metrics = found.metrics()
    assert metrics["segments_tested"] == len(found.segments.tested) == 2.0
    assert metrics["segments_miscalibrated"] == len(found.segments.miscalibrated)
    assert metrics["pvalue_change"] == found.over_time.change.pvalue
    assert not {"segments_tested", "pvalue_change"} & set(tc.assess(Y, P).metrics())


def test_metrics_of_others():
    classes, compared = tc.assess(CLASS, CLASSES), tc.compare(Y, P, P**2)
    assert classes.metrics()["slope_high"] == classes.slope.high
    assert classes.metrics()["pvalue"] == classes.pvalue
    assert math.isnan(tc.assess(CLASSES > 0.5, CLASSES, multilabel=True).metrics()["slope"])
    assert list(compared.metrics("x_"))[:3] == ["x_atb_a", "x_atb_b", "x_atb_difference"]
    assert compared.metrics()["atb_difference_low"] == compared.low
    assert compared.metrics()["atb_pvalue"] == compared.pvalue
    assert not {"a", "b", "difference", "pvalue"} & set(compared.metrics())
    other = tc.compare(Y, P, P**2, measure="information_atb")
    assert other.metrics()["information_atb_a"] == other.a
    assert compared.metrics()["brier_difference_high"] == compared.brier_high
    assert compared.metrics()["error_b"] == compared.error_b.estimate
    monitor = tc.Monitor().update(Y, P).status()
    assert (monitor.metrics()["alarm"], monitor.metrics()["n"]) == (float(monitor.alarm), 1500.0)


@pytest.mark.parametrize(("rows", "passed"), [((Y, 0.8 * P), 1.0), ((Y, P), 0.0), ((Y[:20], 0.8 * P[:20]), math.nan)])
def test_metrics_of_a_gate(rows, passed):
    gate = tc.check(*rows)
    np.testing.assert_equal(gate.metrics()["passed"], passed)
    np.testing.assert_equal(gate.metrics("a_"), {"a_passed": passed, **gate.assessment.metrics("a_")})
