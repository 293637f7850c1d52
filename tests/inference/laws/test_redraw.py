"""Outcomes drawn, gone through and measured, against the measures themselves and against plain enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from oracles import inference as inference_oracles
from oracles import measures as oracles
from support.strategies import examples, rows, weighted_rows

from truthcal import MEASURES
from truthcal.core.sample import Sample
from truthcal.inference.laws.redraw import Outcomes, blocks
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.registry import NORMS, TENTS

QUICK = {*TENTS, *NORMS}
KINDS = ("different", "tied", "weighted", "weighted and tied", "float32", "one row", "constant", "ends")
each_kind = pytest.mark.parametrize("kind", KINDS)


def some_sample(kind, n=40, seed=0):
    """Predictions of that kind, with outcomes that nothing here looks at."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if "tied" in kind:
        p = np.round(p, 1)
    if kind == "ends":
        p = np.repeat([0.0, 0.5, 1.0], [n - 20, 10, 10])
    if kind == "float32":
        p = p.astype(np.float32)
    if kind == "constant":
        p = np.full(n, 0.3)
    if kind == "one row":
        p = p[:1]
    w = rng.integers(1, 5, n) if "weighted" in kind else None
    return Sample.of(np.zeros(len(p), int), p, w)


def with_outcomes(sample, y):
    return Sample(sample.p, y.astype(float), sample.w.copy() if sample.weighted else None, sample.exponent)


# --- measures of many outcomes ----------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("name", sorted(QUICK))
def test_values_are_the_measure_of_each_outcome(name, kind):
    sample = some_sample(kind)
    outcomes = Outcomes(sample)
    y = np.random.default_rng(1).random((7, sample.n)) < np.linspace(0.0, 1.0, 7)[:, None]
    expected = [MEASURES[name].of_sample(with_outcomes(sample, row)) for row in y]
    assert outcomes.values(name)(outcomes.grouped(y)) == pytest.approx(expected, rel=1e-11, abs=1e-16)


@each_kind
@pytest.mark.parametrize("name", sorted(set(MEASURES) - QUICK - {"subsampled_smcal", "subsampled_step_ce"}))
def test_other_measures_are_called_for_each_outcome(name, kind):
    sample = some_sample(kind)
    outcomes = Outcomes(sample)
    y = np.random.default_rng(1).random((3, sample.n)) < 0.6
    expected = [MEASURES[name].of_sample(with_outcomes(sample, row)) for row in y]
    assert outcomes.values(name)(outcomes.grouped(y)) == pytest.approx(expected, rel=1e-7, abs=1e-14)


@examples(100)
@given(data=weighted_rows(max_size=8))
def test_values_at_delicate_predictions(data):
    y, p, w = data
    sample = Sample.of(y, p, w)
    outcomes = Outcomes(sample)
    positive = sample.groups.wy[None, :]
    for name in QUICK:
        expected = MEASURES[name].of_sample(sample)
        assert outcomes.values(name)(positive)[0] == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_values_are_those_of_whole_numbers_only_where_the_measure_needs_them():
    outcomes = Outcomes(Sample.of([0, 1], [0.2, 0.7], [1, 0.5]))
    with pytest.raises(ValueError, match=r"whole numbers, because this measure counts rows; found 0\.5"):
        outcomes.values("quantile_ece")
    outcomes.values("atb")


def test_weights_as_given_are_the_repetitions():
    """2^-k scales all weights inside a sample; a redrawn sample must know the same counts."""
    sample = Sample.of([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.4], [4, 8, 16, 2])
    redrawn = Outcomes(sample).with_positives(sample.groups.wy)
    assert MEASURES["quantile_ece"].of_sample(redrawn) == pytest.approx(
        MEASURES["quantile_ece"].of_sample(sample), rel=1e-14, abs=0
    )


# --- drawing ----------------------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("given_chance", [False, True])
def test_draws_have_the_right_mean_and_variance(kind, given_chance):
    sample = some_sample(kind)
    chance = np.random.default_rng(2).random(sample.n) if given_chance else sample.p.astype(float)
    outcomes = Outcomes(sample, chance if given_chance else None)
    count = 20_000
    positive = outcomes.draw(np.random.default_rng(3), count)
    group = np.searchsorted(outcomes.r, sample.p)
    mean = np.bincount(group, sample.w * chance)
    variance = np.bincount(group, sample.w**2 * chance * (1.0 - chance))
    assert positive.shape == (count, len(outcomes.r))
    assert np.max(np.abs(positive.mean(axis=0) - mean) - 4.5 * np.sqrt(variance / count)) <= 1e-12
    # kurtosis is largest for a single row of extreme chance: fourth moment at most that of a coin, over its variance
    fourth = np.var((positive - mean) ** 2, axis=0)
    assert np.max(np.abs(positive.var(axis=0) - variance) - 4.5 * np.sqrt(fourth / count)) <= 1e-3 * variance.max()


def test_draws_of_tied_rows_are_binomial():
    outcomes = Outcomes(Sample.of([0] * 5, [0.3] * 5))
    count = 50_000
    seen = np.bincount(outcomes.draw(np.random.default_rng(0), count)[:, 0].astype(int), minlength=6) / count
    expected = np.array([math.comb(5, k) * 0.3**k * 0.7 ** (5 - k) for k in range(6)])
    assert np.all(np.abs(seen - expected) < 4.5 * np.sqrt(expected / count))


def test_draws_of_different_predictions_are_independent():
    outcomes = Outcomes(some_sample("different", 12))
    positive = outcomes.draw(np.random.default_rng(0), 20_000)
    correlation = np.corrcoef(positive.T) - np.eye(12)
    assert np.abs(correlation).max() < 4.5 / math.sqrt(20_000)


def test_certain_predictions_are_never_wrong():
    sample = Sample.of([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    assert np.all(Outcomes(sample).draw(np.random.default_rng(0), 100) == [0.0, 2.0])


@pytest.mark.parametrize(("count", "block"), [(10, 3), (9, 3), (2, 5), (0, 4), (1, 1)])
def test_blocks_add_up(count, block):
    sizes = list(blocks(count, block))
    assert sum(sizes) == count
    assert all(0 < size <= block for size in sizes)


# --- all outcomes -----------------------------------------------------------------------------------------------------


def by_hand(p):
    """{(positive rows at each different prediction): chance}."""
    found = {}
    r = sorted(set(p))
    for y in itertools.product((0, 1), repeat=len(p)):
        chance = math.prod(pi if yi else 1.0 - pi for pi, yi in zip(p, y, strict=True))
        key = tuple(sum(yi for pi, yi in zip(p, y, strict=True) if pi == ri) for ri in r)
        if chance > 0.0:
            found[key] = found.get(key, 0.0) + chance
    return found


@examples(60)
@given(data=rows(max_size=7))
def test_all_outcomes_and_their_chances(data):
    y, p = data
    outcomes = Outcomes(Sample.of(y, p))
    expected = by_hand([pi + 0.0 for pi in p])
    found = {}
    for positive, chance in outcomes.all():
        found |= {tuple(row): c for row, c in zip(positive.tolist(), chance.tolist(), strict=True)}
    assert math.fsum(found.values()) == pytest.approx(1.0, rel=1e-14, abs=0)
    for key, chance in expected.items():
        assert found.get(key, 0.0) == pytest.approx(chance, rel=1e-12, abs=1e-300)
    if min(p) >= 1e-200 and max(p) <= 1 - 1e-9:  # else chances may underflow or round to 1
        assert outcomes.cases == len(expected) == len(found)


def test_all_outcomes_of_weighted_ties():
    sample = Sample.of([0, 0, 0, 0], [0.5, 0.5, 0.5, 0.2], [1, 2, 4, 1])
    outcomes = Outcomes(sample)
    assert outcomes.cases == 16
    positive, chance = (np.concatenate(parts) for parts in zip(*outcomes.all(), strict=True))
    assert len(positive) == 16
    assert set(np.ldexp(positive[:, 1], sample.exponent)) == set(range(8))
    assert chance.sum() == pytest.approx(1.0, rel=1e-15)
    for k in range(8):
        at = np.ldexp(positive[:, 1], sample.exponent) == k
        assert chance[at].sum() == pytest.approx(1 / 8, rel=1e-15)


def test_cases_count_ties_once_and_certain_rows_not_at_all():
    def cases(p, w=None):
        return Outcomes(Sample.of([0] * len(p), p, w)).cases

    assert cases([0.1, 0.2, 0.3]) == 8
    assert cases([0.5] * 9) == 10
    assert cases([0.5] * 9, [1] * 9) == 512
    assert cases([0.0, 1.0, 1.0, 0.4]) == 2
    assert cases([0.0, 1.0]) == 1
    assert cases(np.linspace(0.01, 0.99, 60)) == 2.0**60
    assert cases(np.linspace(0.01, 0.99, 61)) == math.inf


def test_all_outcomes_come_in_blocks(monkeypatch):
    outcomes = Outcomes(some_sample("different", 10))
    whole = np.concatenate([positive for positive, _ in outcomes.all()])
    monkeypatch.setattr("truthcal.inference.laws.redraw._BLOCK", 70)
    parts = [positive for positive, _ in outcomes.all()]
    assert max(len(part) for part in parts) == 7
    assert np.array_equal(np.concatenate(parts), whole)


# --- moments under calibration ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TENTS)
@examples(25)
@given(data=weighted_rows(max_size=6))
def test_null_moments_by_enumeration(name, data):
    y, p, w = data
    sample = Sample.of(y, p, w)
    outcomes = Outcomes(sample)
    values = outcomes.values(name)
    value, chance = zip(*((values(positive), chance) for positive, chance in outcomes.all()), strict=True)
    value, chance = np.concatenate(value), np.concatenate(chance)
    mean = math.fsum(value * chance)
    sd = math.sqrt(math.fsum(chance * (value - mean) ** 2))
    moments = null_moments(TentKernel.of(name, sample.points()), sample.points())
    assert moments.mean == pytest.approx(mean, rel=1e-10, abs=1e-15)
    # The root of a variance that is rounded to 1e-16 of the squared mean: one row at 1/2 has 5e-9 instead of 0.
    assert moments.sd == pytest.approx(sd, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 1, 2, 1, 5]])
@pytest.mark.parametrize("name", TENTS)
def test_null_moments_from_the_definition(name, weights):
    p = [0.125, 0.25, 0.25, 0.5, 0.625, 0.625, 0.875]
    expected = inference_oracles.mean_and_sd(inference_oracles.null_distribution(p, weights, oracles.ORACLES[name]))
    sample = Sample.of([0] * len(p), p, weights)
    moments = null_moments(TentKernel.of(name, sample.points()), sample.points())
    assert (moments.mean, moments.sd) == pytest.approx(expected, rel=1e-12, abs=0)


@each_kind
def test_sums_and_squares_of_tents_are_those_of_the_matrix(kind):
    sample = some_sample(kind)
    rng = np.random.default_rng(5)
    for kernel in (
        TentKernel.of("multiscale_atb", sample.points()),
        TentKernel.of("shifted_grid_ubse", sample.points()),
        TentKernel(np.array([0.01]), np.array([1.0])),
    ):
        x = sample.groups.r
        c, a, k = rng.standard_normal((3, len(x))), rng.random(len(x)), kernel.matrix(x)
        assert kernel.sums(x, c) == pytest.approx(np.einsum("is,st,it->i", c, k, c), rel=1e-10, abs=1e-12)
        assert kernel.squares(x, a) == pytest.approx(float(a @ k**2 @ a), rel=1e-10, abs=0)
        assert np.diag(k) == pytest.approx(1.0, rel=1e-14)
        step = 1e-6
        assert np.abs(kernel.matrix(np.array([0.0, step]))[0, 1] - 1.0) <= kernel.steepness * step * (1 + 1e-9)
