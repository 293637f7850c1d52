import json
import math
from dataclasses import replace

import numpy as np
import pytest

import truthcal as tc
from tests.support.simulation import REPEATS, assert_covered
from truthcal.core.sample import Sample
from truthcal.inference.worst_stretch import noise_range, noise_variance, worst_stretch_of
from truthcal.results.text import Unit
from truthcal.results.worst_stretch import WorstStretch


def mean_error(p, truth, w, found):
    inside = (p >= found.low - 1e-12) & (p <= found.high + 1e-12)
    return np.sum(w[inside] * (p - truth)[inside]) / np.sum(w[inside])


def oracle(sample, level):
    """The largest of all lower limits, one stretch of distinct predictions at a time."""
    points, best = sample.points(), (0.0, 0, 0)
    q = noise_range(points, level)
    for a in range(len(points)):
        for b in range(a + 1, len(points) + 1):
            limit = (abs(points.bias[a:b].sum()) - q) / points.weight[a:b].sum()
            best = max(best, (limit, a, b))
    return best


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_of_all_stretches_is_reported(weighted):
    rng = np.random.default_rng(1)
    p = rng.integers(0, 21, 900) / 20
    truth = np.where((p > 0.2) & (p < 0.7), p - 0.2, p)
    w = rng.exponential(1.0, 900) if weighted else None
    sample = Sample.of(rng.random(900) < truth, p, w)
    found, (limit, a, b) = worst_stretch_of(sample.points()), oracle(sample, 0.95)
    assert limit > 0.0
    assert found.error_at_least == pytest.approx(limit, rel=1e-9, abs=0)
    points = sample.points()
    assert (found.low, found.high) == (points.p[a], points.p[b - 1])
    assert 0.15 < found.low < 0.35
    assert 0.55 < found.high < 0.75
    weight = points.weight[a:b]
    assert found.mean_proba == pytest.approx(np.average(points.p[a:b], weights=weight), rel=1e-12, abs=0)
    assert found.mean_true == pytest.approx(points.wy[a:b].sum() / weight.sum(), rel=1e-12, abs=0)
    assert found.share == pytest.approx(weight.sum() / points.total, rel=1e-12, abs=0)


def test_too_low_is_the_mirror_image_of_too_high():
    rng = np.random.default_rng(0)
    p = rng.integers(1, 50, 2000) / 64
    y = (rng.random(2000) < p - 0.01 - p / 4).astype(int)
    high, low = (worst_stretch_of(Sample.of(*rows).points()) for rows in ((y, p), (1 - y, 1.0 - p)))
    assert high.error_at_least > 0.0 > low.error_at_least
    assert -low.error_at_least == pytest.approx(high.error_at_least, rel=0.02, abs=0)
    assert (1 - low.high, 1 - low.low) == (high.low, high.high)


def test_range_of_the_noise_is_that_of_redrawn_outcomes():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 41, 3000) / 40
    truth = 0.1 + 0.7 * p
    sample = Sample.of(rng.random(3000) < truth, p)
    walks = np.zeros((1000, 42))
    for k, value in enumerate(sample.groups.r):
        chance, size = 0.1 + 0.7 * value, np.count_nonzero(p == value)
        walks[:, k + 1] = walks[:, k] + size * chance - rng.binomial(size, chance, 1000)
    assert noise_range(sample.points(), 0.95) == pytest.approx(
        np.quantile(np.ptp(walks, axis=1), 0.95), rel=0.06, abs=0
    )


def test_variance_of_the_noise_is_that_of_the_truth():
    rng = np.random.default_rng(0)
    p, w = rng.random(20_000), rng.exponential(1.0, 20_000)
    truth = 0.5 + 0.2 * (p - 0.5)  # the predictions claim less noise
    points = Sample.of(rng.random(20_000) < truth, p, w / w.max()).points()
    shape, total = noise_variance(points)
    expected = np.sum((w / w.max()) ** 2 * truth * (1 - truth)) * (points.total / np.sum(w / w.max())) ** 2
    assert expected < total < 1.03 * expected
    assert shape.sum() == pytest.approx(1.0, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("y", "p"), [([0], [0.3]), ([1], [1.0]), ([0, 1], [0.0, 1.0]), ([0] * 50, [0.0] * 50), ([0] * 40, [0.02] * 40)]
)
def test_nothing_is_certain_in_harmless_rows(y, p):
    assert worst_stretch_of(Sample.of(y, p).points()) is None


def test_certain_predictions_that_are_wrong():
    found = worst_stretch_of(Sample.of([0] * 80 + [1] * 80, [1.0] * 80 + [0.0] * 80).points())
    assert found.low == found.high
    assert abs(found.error_at_least) > 0.5


def test_a_sketch_certifies_about_the_same():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = (rng.random(5000) < p * (1.2 - 0.4 * p)).astype(int)
    rows, sketch = (worst_stretch_of(s.points()) for s in (Sample.of(y, p), tc.Sketch().update(y, p)))
    assert sketch.error_at_least == pytest.approx(rows.error_at_least, rel=0.05, abs=0)
    assert (sketch.low, sketch.high) == pytest.approx((rows.low, rows.high), rel=0, abs=0.02)


def test_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    p, w = rng.random(500), rng.exponential(1.0, 500)
    y = (rng.random(500) < p / 2).astype(int)
    one, other = (worst_stretch_of(Sample.of(y, p, w * scale).points()) for scale in (1.0, 2.0**40))
    assert one == other


def test_in_words():
    found = WorstStretch(0.3, 0.6123, 0.0299, 0.4512, 0.4123, 0.3, 0.95)
    assert str(found) == "at least 0.0299 too high between 0.3 and 0.612 (95% confidence)"
    assert found.frequencies() == "there it says 45% on average, and 41% happen"
    rare = WorstStretch(0.004, 0.004, -0.00101, 0.004, 0.00612, 0.3, 0.99)
    assert str(rare) == "at least 1.01 per 1,000 too low at 4 per 1,000 (99% confidence)"
    assert rare.frequencies() == "when it says 4.0 per 1,000, 6.1 per 1,000 happen"
    assert replace(rare, mean_proba=0.5, mean_true=0.004).frequencies() == "when it says 50%, 0.40% happen"
    assert replace(rare, mean_proba=0.5, mean_true=0.996).frequencies() == "when it says 50%, 99.60% happen"
    assert json.loads(json.dumps(rare.to_dict()))["error_at_least"] == -0.00101


@pytest.mark.parametrize("unit", [Unit(1000, " per 1,000"), Unit(100_000, " per 100,000")])
def test_common_events_in_a_text_about_rare_ones_are_counted_per_thousand(unit):
    found = WorstStretch(0.3, 0.6123, 0.0299, 0.4512, 0.4123, 0.3, 0.95)
    assert found.text(unit) == "at least 29.9 per 1,000 too high between 300 and 612 per 1,000 (95% confidence)"
    assert found.frequencies(unit) == "there it says 451 per 1,000 on average, and 412 per 1,000 happen"
    happen_often = WorstStretch(0.004, 0.005, -0.0101, 0.0045, 0.02, 0.3, 0.95)
    assert happen_often.text(unit) == "at least 10.1 per 1,000 too low between 4 and 5 per 1,000 (95% confidence)"
    assert happen_often.frequencies(unit) == "there it says 4.5 per 1,000 on average, and 20 per 1,000 happen"


def test_a_range_from_nearly_0_starts_at_0():
    found = WorstStretch(2.31e-7, 0.0682, -0.0896, 0.03, 0.15, 0.3, 0.95)
    assert found.place() == "between 0 and 0.0682"
    assert replace(found, low=0.0001).place() == "between 0.0001 and 0.0682"
    assert replace(found, low=2.31e-7, high=2.31e-7).place() == "at 2.31e-07"


def test_rare_events_in_the_unit_of_rarer_ones():
    found = WorstStretch(0.004, 0.005, -0.00101, 0.0045, 0.0061, 0.3, 0.95)
    unit = Unit(100_000, " per 100,000")
    assert found.text(unit) == "at least 101 per 100,000 too low between 400 and 500 per 100,000 (95% confidence)"
    assert found.frequencies(unit) == "there it says 450 per 100,000 on average, and 610 per 100,000 happen"


SHAPES = {
    "calibrated": lambda rng, n: (p := rng.random(n), p),
    "overconfident": lambda rng, n: (p := rng.random(n), 0.5 + 0.7 * (p - 0.5)),
    "shift": lambda rng, n: (p := rng.uniform(0.1, 1.0, n), p - 0.1),
    "rare": lambda rng, n: (p := rng.beta(1, 49, n), p),
    "rare doubled": lambda rng, n: (p := rng.beta(1, 49, n), p / 2),
    "rare halved": lambda rng, n: (p := rng.beta(1, 49, n) / 2, 2 * p),
    "ties": lambda rng, n: (p := rng.integers(0, 11, n) / 10, 0.05 + 0.9 * p),
}


@pytest.mark.simulation
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_certain_is_true(shape, weighted):
    hits, n = 0, 500
    for seed in range(REPEATS):
        rng = np.random.default_rng([seed, 1])
        p, truth = SHAPES[shape](rng, n)
        w = 1.0 + rng.pareto(1.5, n) if weighted else np.ones(n)
        found = worst_stretch_of(Sample.of(rng.random(n) < truth, p, w).points())
        certain = found.error_at_least if found else 0.0
        hits += found is None or mean_error(p, truth, w, found) * math.copysign(1, certain) >= abs(certain)
    assert_covered(hits, REPEATS, shape)
