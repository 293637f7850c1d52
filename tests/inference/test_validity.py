"""Acceptance of samples from populations, against sums over all samples; and the gap that no test can exceed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import measures as oracles
from scipy import stats

import truthcal as tc
from truthcal.inference import validity as module


def accepted_oracle(p, truth, share, n_rows, accepts):
    """Acceptance probability: the sum over all sequences of rows."""
    rows = [(v, y, s * (t if y else 1 - t)) for v, t, s in zip(p, truth, share, strict=True) for y in (0, 1)]
    total = 0.0
    for sample in itertools.product(rows, repeat=n_rows):
        predictions, outcomes, chances = zip(*sample, strict=True)
        total += math.prod(chances) * accepts(outcomes, predictions)
    return total


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("truth", [[0.2, 0.7], [0.9, 0.0]])
def test_acceptance_is_the_sum_over_all_samples(threshold, truth):
    p, w = [0.25, 0.75], [1, 3]
    found = tc.acceptance_probability(p, truth, "atb", n_rows=4, threshold=threshold, sample_weight=w)
    expected = accepted_oracle(p, truth, [0.25, 0.75], 4, lambda y, r: oracles.atb(y, r) <= threshold)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert (found.standard_error, found.n_resamples) == (0.0, 0)
    own = tc.acceptance_probability(p, truth, lambda y, r: tc.atb(y, r) <= threshold, n_rows=4, sample_weight=w)
    assert own.value == pytest.approx(expected, abs=1e-12)


def test_draws_agree_with_enumeration(monkeypatch):
    p, truth = [0.3, 0.6, 0.7], [0.3, 0.7, 0.5]
    exact = tc.acceptance_probability(p, truth, "smcal", n_rows=6, threshold=0.15)
    monkeypatch.setattr(module, "_MOST_SAMPLES", 0)
    drawn = tc.acceptance_probability(p, truth, "smcal", n_rows=6, threshold=0.15, n_simulations=500, rng=0)
    assert (exact.n_resamples, drawn.n_resamples) == (0, 500)
    assert drawn.standard_error == pytest.approx(math.sqrt(drawn.value * (1 - drawn.value) / 499))
    assert abs(drawn.value - exact.value) < 4 * drawn.standard_error


@pytest.mark.parametrize("name", ["atb", "smcal", "quantile_ece", "multiscale_atb", "ece"])
def test_counts_of_equal_rows_have_the_value_of_the_rows(name):
    population = module.Population(np.array([0.7, 0.2, 0.45]), np.array([0.5, 0.25, 1.0]))
    rng = np.random.default_rng(0)
    for counts in population.draw(rng, 30, 5):
        y, p = population.rows(counts, rng)
        assert len(p) == 30
        assert not (np.diff(p) >= 0).all()
        assert module._Decision(name, 0.0).value(population, counts, rng) == pytest.approx(
            tc.MEASURES[name].function(y, p)
        )


def test_a_sampler_passes_its_rows_as_they_are():
    def sampler(n_rows, rng):
        assert n_rows == 20
        return rng.integers(0, 2, 20), np.full(20, 0.5)

    found = tc.acceptance_probability(sampler, test="atb", n_rows=20, threshold=1 / 20, n_simulations=500, rng=0)
    exact = tc.acceptance_probability([0.5], [0.5], "atb", n_rows=20, threshold=1 / 20)
    assert abs(found.value - exact.value) < 4 * found.standard_error
    assert exact.value == pytest.approx(stats.binom.cdf(14, 20, 0.5) - stats.binom.cdf(5, 20, 0.5))
    decided = tc.acceptance_probability(sampler, test=tc.linear_time_test, n_rows=20, n_simulations=50, rng=0)
    assert decided.value > 0.9


@pytest.mark.parametrize("n", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("distance", [0.0, 0.03, 0.2, 0.5])
def test_best_possible_gap_is_the_total_variation_distance(n, distance):
    gamma = Fraction(distance)
    half = [Fraction(math.comb(n, k), 2**n) for k in range(n + 1)]
    up = [math.comb(n, k) * (Fraction(1, 2) + gamma) ** k * (Fraction(1, 2) - gamma) ** (n - k) for k in range(n + 1)]
    both = [(a + b) / 2 for a, b in zip(up, reversed(up), strict=True)]
    for alternative, other in (("greater", up), ("two-sided", both)):
        expected = sum(abs(a - b) for a, b in zip(half, other, strict=True)) / 2
        assert tc.best_possible_gap(distance, n, alternative=alternative) == pytest.approx(float(expected), abs=1e-13)


def test_no_test_exceeds_the_best_possible_gap():
    """Every measure at every threshold, for the pair of Lemma 5.4; the bias alone attains it."""
    n, distance = 20, 0.15
    limit = tc.best_possible_gap(distance, n, alternative="greater")
    bias = [[tc.acceptance_probability([0.5], [t], lambda y, p: y.mean(), n_rows=n, threshold=k / n).value
             for t in (0.5, 0.5 + distance)] for k in range(n)]  # fmt: skip
    assert max(a - b for a, b in bias) == pytest.approx(limit, abs=1e-12)
    for name in ("atb", "smcal", "ece"):
        for threshold in (0.01, 0.03, 0.1, 0.2):
            right, wrong = (
                tc.acceptance_probability([0.5], [t], name, n_rows=n, threshold=threshold).value
                for t in (0.5, 0.5 + distance)
            )
            assert right - wrong <= tc.best_possible_gap(distance, n) + 1e-12


def test_validity_of_the_bias_at_one_prediction():
    """Against exact binomial probabilities."""
    found = tc.validity(
        "atb", constant=2, n_rows=[64, 400], threshold=lambda n: 1 / n, populations={"half": [0.5]}, families=["shift"],
        n_simulations=300, rng=0,
    )  # fmt: skip
    assert found.n_rows.tolist() == [64, 400]
    assert found.distance == pytest.approx([0.25, 0.1])
    assert found.threshold == pytest.approx([1 / 64, 1 / 400])
    assert found.gap == pytest.approx(found.accept_calibrated - found.accept_miscalibrated)
    for k, (n, distance) in enumerate([(64, 0.25), (400, 0.1)]):
        right, wrong = (
            stats.binom.cdf(n / 2 + n**0.5, n, q) - stats.binom.cdf(math.ceil(n / 2 - n**0.5) - 1, n, q)
            for q in (0.5, 0.5 - distance)
        )
        assert abs(found.gap[k] - (right - wrong)) < 4 * found.standard_error[k] + 0.01
        assert found.best_possible[k] == tc.best_possible_gap(distance, n)
    assert "at a distance of 2 / sqrt(rows)" in str(found)
    assert list(found.table()) == [*found._columns]
    assert found.to_dict()["gap"] == found.gap.tolist()


def test_validity_chooses_a_threshold_and_takes_a_test_that_decides():
    options = {"populations": {"spread": np.linspace(0.1, 0.9, 9)}, "n_simulations": 40, "rng": 0, "n_rows": [400]}
    chosen = tc.validity("smcal", constant=4, families=["shift", "slope"], **options)
    assert chosen.gap[0] > 0.8
    assert 0 < chosen.threshold[0] < 0.2
    paper = tc.validity(tc.linear_time_test, constant=8, families=["shift"], **options)
    assert (paper.test, math.isnan(paper.threshold[0])) == ("linear_time_test", True)
    assert paper.gap[0] > 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"test": "t"}, ValueError, "`test` must be one of .*; got 't'"),
        ({}, ValueError, "`threshold` is needed for the measure 'atb': the largest value that is accepted"),
        ({"test": lambda y, p: 0.5}, ValueError, r"`threshold` is needed: <lambda> returns the number 0\.5, not True"),
        (
            {"test": lambda y, p: True, "threshold": 1},
            ValueError,
            "`threshold` must be omitted: <lambda> decides itself",
        ),
        ({"test": lambda y, p: "yes"}, TypeError, "`test` must return a number, True or False, .*; it returned 'yes'"),
        ({"threshold": "a"}, TypeError, "`threshold` must be a number; got 'a'"),
        ({"threshold": math.nan}, ValueError, "`threshold` must be finite; got nan"),
        ({"threshold": 1, "y_proba": abs}, ValueError, "`truth` must be omitted if `y_proba` is a sampler"),
        (
            {"threshold": 1, "y_proba": lambda n, rng: None, "truth": None},
            TypeError,
            r"`y_proba` as a sampler f\(n_rows, rng\) must return the pair \(y_true, y_proba\); it returned None",
        ),
        (
            {"threshold": 1, "y_proba": lambda n, rng: ([0, 1], [0.5] * n), "truth": None},
            ValueError,
            "`y_proba` as a sampler must return 3 outcomes and predictions; it returned 2 rows and 3 rows",
        ),
        ({"threshold": 1, "n_rows": 0}, ValueError, "`n_rows` must be at least 1; got 0"),
        ({"threshold": 1, "truth": None}, ValueError, "`truth` is missing: pass the true probabilities of the events"),
        ({"threshold": 1, "truth": [2.0]}, ValueError, "`truth` must lie in"),
    ],
)
def test_bad_parameters_of_acceptance_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.acceptance_probability(**({"y_proba": [0.5], "truth": [0.5], "n_rows": 3} | arguments))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"constant": 0}, ValueError, "`constant` must be a positive number"),
        ({"constant": 50}, ValueError, r"`constant` makes a distance of 5, and these families reach 0\.5 at most"),
        ({"n_rows": []}, ValueError, r"`n_rows` must contain at least one entry, for example \[400, 1600\]"),
        ({"n_rows": 100}, TypeError, r"`n_rows` must be a list, for example \[400, 1600\]; got 100"),
        ({"threshold": 0.1}, TypeError, r"`threshold` must be a function of the number of rows; got 0\.1"),
        ({"threshold": lambda n: None}, TypeError, "`threshold` must be a number; got None"),
        ({"families": ["bend"]}, ValueError, "`families` must be one of 'shift', 'slope', 'wave'; got 'bend'"),
        ({"families": []}, ValueError, "`families` must contain at least one entry"),
        ({"families": "shift"}, TypeError, r"`families` must be a list, for example \['shift'\]; got 'shift'"),
        ({"populations": [0.5]}, TypeError, r"`populations` must be a dict from names to predictions, .*; got \[0.5\]"),
        ({"populations": {"x": [1.5]}}, ValueError, r"`populations\['x'\]` must lie in"),
    ],
)
def test_bad_parameters_of_validity_are_refused(arguments, error, message):
    options = {
        "constant": 1,
        "n_rows": [100],
        "populations": {"half": [0.5]},
        "families": ["shift"],
        "n_simulations": 2,
    }
    with pytest.raises(error, match=message):
        tc.validity(**(options | arguments))


def test_bad_distances_are_refused():
    with pytest.raises(ValueError, match=r"`distance` must be at most 1/2, .*; got 0\.6"):
        tc.best_possible_gap(0.6, 10)
    with pytest.raises(ValueError, match="`alternative` must be one of 'two-sided', 'greater'; got 'less'"):
        tc.best_possible_gap(0.1, 10, alternative="less")
    with pytest.raises(ValueError, match="`n_rows` must be between 1 and 1000000000000; got 10000000000000"):
        tc.best_possible_gap(0.1, 10**13)


def test_best_possible_gap_of_very_many_rows_is_the_normal_limit():
    n = 10**12
    assert tc.best_possible_gap(0.5 / n**0.5, n, alternative="greater") == pytest.approx(0.382924922, abs=1e-8)
