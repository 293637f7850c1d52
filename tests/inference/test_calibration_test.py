"""The calibration test, against full enumeration, against itself by other methods, and by simulation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import inference as inference_oracles
from oracles import measures as oracles
from oracles import more_measures as more_oracles
from scipy import stats
from support.strategies import examples, weighted_rows

import truthcal as tc
from truthcal import MEASURES
from truthcal.core import summarize
from truthcal.core.params import check_level
from truthcal.core.sample import Sample
from truthcal.inference import calibration_test as calibration_test_module
from truthcal.inference.calibration_test import tent_statistic
from truthcal.inference.laws import redraw
from truthcal.inference.laws.redraw import Outcomes, TiedOutcomes
from truthcal.inference.laws.sparse_redraw import SparseRedraw
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.registry import TENTS

ORACLES = oracles.ORACLES | more_oracles.MORE_ORACLES
PATHS = ("ks_ce", "kuiper_ce", "step_ce")


def some_rows(n, seed=0, *, ties=False, weighted=False, slope=1.0):
    """(y, p, w): predictions, uniform, and outcomes that follow 1/2 + slope (p - 1/2)."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 1) if ties else rng.random(n)
    y = (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int)
    return y, p, rng.uniform(0.2, 3.0, n) if weighted else None


# --- exact p-values, by full enumeration ------------------------------------------------------------------------------

# Eighths and sixteenths, where many outcomes score exactly the same; then plain floats, ties, weights.
DESIGNS = {
    "dyadic": ([0.125, 0.25, 0.375, 0.5, 0.75, 0.875, 0.9375, 0.0625, 0.3125, 0.6875, 0.5625, 0.4375], None),
    "floats": ([0.1, 0.37, 0.7, 0.55, 0.9, 0.21, 0.83, 0.45, 0.05, 0.64, 0.33, 0.77], None),
    "tied": ([0.25, 0.25, 0.5, 0.5, 0.75, 0.5, 0.25, 0.75, 0.75, 0.5, 0.25, 0.5], None),
    "weighted": ([0.125, 0.25, 0.25, 0.5, 0.75, 0.5, 0.25, 0.75], [1, 2, 3, 1, 2, 1, 1, 4]),
    "symmetric": ([0.25, 0.75, 0.25, 0.75, 0.4, 0.6, 0.5, 0.5], None),
    "certain": ([0.0, 0.5, 1.0, 0.25, 0.0, 0.75, 1.0], None),
}
# How many rows the oracle can bear, where that is fewer than 7.
FEWER = {"quantile_ece": 5, "decision_loss": 4, "u_calibration": 4, "smcal": 6, "multiscale_atb": 5, "smece": 3}
FEWER |= {"distcal": 3, "subsampled_smcal": 3, "subsampled_step_ce": 4, "laplace_kernel_ce": 4, "intcal": 5, "ici": 6}
FEWER |= {"intcal_surrogate": 5}


def design(name, kind):
    p, w = DESIGNS[kind]
    n = min(10 if (name, kind) == ("ks_ce", "floats") else FEWER.get(name, 7), len(p))
    w = w and w[:n]
    if w and MEASURES[name].whole_weights:
        n = min(n, 4)  # the oracles repeat rows
        w = w[:n]
    return p[:n], w


@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("name", sorted(MEASURES))
def test_exact_equals_full_enumeration(name, kind):
    p, w = design(name, kind)
    distribution = inference_oracles.null_distribution(p, w, ORACLES[name])
    slack = max(1e-10, MEASURES[name].tolerance)  # equal up to rounding is equal: see the test on rounding below
    mean, sd = inference_oracles.mean_and_sd(distribution)
    rng = np.random.default_rng(0)
    for chance in (0.5, 0.5, 0.2, 1.0):
        y = [int(pi > 0.5) if pi in (0, 1) else int(rng.random() < chance) for pi in p]
        observed = ORACLES[name](y, oracles.exact(p), w and oracles.exact(w))
        greater, less = inference_oracles.tails(distribution, observed, slack)
        expected = {"greater": greater, "less": less, "two-sided": min(1.0, 2.0 * min(greater, less))}
        for alternative, pvalue in expected.items():
            result = tc.calibration_test(
                y, p, measure=name, method="exact", alternative=alternative, sample_weight=w, n_resamples=1
            )
            assert result.pvalue == pytest.approx(pvalue, rel=1e-9, abs=0)
            assert (result.greater, result.less) == pytest.approx((greater, less), rel=1e-9, abs=0)
            assert result.n_resamples == 0  # nothing was drawn
        precision = {"rel": 1e-9, "abs": max(1e-12, 2 * MEASURES[name].tolerance)}
        assert result.statistic == pytest.approx(float(observed), **precision)
        assert (result.null_mean, result.null_sd) == pytest.approx((mean, sd), **precision)
        if sd > 0:
            assert result.z == pytest.approx((float(observed) - mean) / sd, rel=1e-3, abs=1e-3)


@examples(40)
@given(data=weighted_rows(max_size=7), name=st.sampled_from(["atb", "atb_l1", "ks_ce", "kuiper_ce", "unbinned_ece"]))
def test_exact_equals_full_enumeration_at_delicate_rows(data, name):
    """Weights of any size, predictions next to 0, 1/2, 1 and each other."""
    y, p, w = data
    distribution = inference_oracles.null_distribution(p, w, ORACLES[name])
    observed = ORACLES[name](y, oracles.exact(p), oracles.exact(w))
    value = tc.calibration_test(y, p, measure=name, method="exact", sample_weight=w, hard=True).pvalue
    near = inference_oracles.tails(distribution, observed, abs(observed) * oracles.exact([2e-9])[0] + 2e-14)[0]
    exactly = inference_oracles.tails(distribution, observed)[0]
    assert exactly * (1 - 1e-9) - 1e-15 <= value <= near * (1 + 1e-9) + 1e-15


# Tenths, an outcome, and a measure. As decimals other outcomes tie with this one; as floats they score less, in exact
# arithmetic on these floats (the first four) or in that of the fast kernels (the others).
ROUNDED = [
    ("atb", [1, 9, 2, 8, 3, 7], [1, 0, 1, 0, 0, 1]),
    ("kuiper_ce", [1, 2, 3, 6, 7], [0, 1, 1, 1, 0]),
    ("ks_ce", [1, 9, 2, 8, 3, 7], [0, 0, 0, 0, 0, 0]),
    ("unbinned_ece", [1, 9, 2, 8, 3, 7], [1, 0, 1, 0, 0, 1]),
    ("ks_ce", [1, 2, 3, 6, 7], [1, 1, 0, 1, 1]),
    ("kuiper_ce", [1, 3, 3, 7, 7, 9], [1, 1, 1, 1, 1, 1]),
    ("unbinned_ece", [1, 9, 2, 8, 3, 7], [1, 1, 1, 1, 1, 0]),
    ("atb", [1, 2, 3, 4, 6, 7], [1, 0, 1, 0, 0, 0]),
    ("atb_l1", [1, 2, 3, 4, 6, 7], [1, 1, 1, 1, 1, 1]),
]


@pytest.mark.parametrize(("name", "tenths", "y"), ROUNDED)
def test_outcomes_that_tie_up_to_rounding_are_as_extreme(name, tenths, y):
    decimals = [Fraction(k, 10) for k in tenths]
    distribution = inference_oracles.null_distribution(decimals, None, ORACLES[name])
    expected = inference_oracles.tails(distribution, ORACLES[name](y, decimals))[0]
    found = tc.calibration_test(y, [k / 10 for k in tenths], measure=name).pvalue
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize(("name", "tenths", "y"), ROUNDED[:4])
def test_floats_as_they_are_would_miss_ties(name, tenths, y):
    """So the test above is one that matters."""
    p, decimals = [k / 10 for k in tenths], [Fraction(k, 10) for k in tenths]
    meant = inference_oracles.null_distribution(decimals, None, ORACLES[name])
    stored = inference_oracles.null_distribution(p, None, ORACLES[name])
    missed = inference_oracles.tails(stored, ORACLES[name](y, oracles.exact(p)))[0]
    assert missed < 0.6 * inference_oracles.tails(meant, ORACLES[name](y, decimals))[0]


def test_all_outcomes_are_gone_through_up_to_a_million_of_them():
    y, p, _ = some_rows(20)
    assert tc.calibration_test(y, p).why.startswith("all 1,048,576 possible outcomes")
    y, p, _ = some_rows(21)
    assert tc.calibration_test(y, p, n_resamples=99).n_resamples == 99
    y, p, _ = some_rows(17)
    assert tc.calibration_test(y, p, measure="ici", n_resamples=9).n_resamples == 9  # 2^16 where each is a call
    p = np.repeat([0.2, 0.5, 0.8], 99)
    y = np.tile([0, 1, 1], 99)
    assert tc.calibration_test(y, p).why.startswith("all 1,000,000 possible outcomes")


# --- by random outcomes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("kind", ["plain", "ties", "weighted"])
def test_monte_carlo_agrees_with_enumeration(monkeypatch, kind, alternative):
    y, p, w = some_rows(12, 3, ties=kind == "ties", weighted=kind == "weighted", slope=0.3)
    arguments = {"sample_weight": w, "alternative": alternative, "method": "exact"}
    exact = tc.calibration_test(y, p, **arguments)
    monkeypatch.setattr(calibration_test_module, "MOST_CASES", 0)
    drawn = tc.calibration_test(y, p, **arguments, rng=0, n_resamples=40_000)
    assert 0 < drawn.n_resamples <= 40_000
    known = min(drawn.n_resamples, 500 / exact.pvalue)
    assert drawn.pvalue == pytest.approx(exact.pvalue, rel=5.0 / math.sqrt(known * exact.pvalue))
    assert (drawn.null_mean, drawn.null_sd) == (exact.null_mean, exact.null_sd)  # from the formula, not the draws


def test_monte_carlo_depends_on_the_seed_alone():
    y, p, _ = some_rows(300)
    first = tc.calibration_test(y, p, rng=5)
    assert tc.calibration_test(y, p, rng=5) == first
    assert tc.calibration_test(y, p, rng=np.random.default_rng(5)) == first
    assert tc.calibration_test(y, p, rng=6).pvalue != first.pvalue
    order = np.random.default_rng(0).permutation(300)
    assert tc.calibration_test(y[order], p[order], rng=5) == first


@pytest.mark.parametrize("measure", ["multiscale_atb", "smcal", "ici"])
def test_monte_carlo_is_the_same_for_any_number_of_threads(monkeypatch, measure):
    y, p, w = some_rows(100, weighted=True)
    monkeypatch.setattr("truthcal.core.parallel.WORTH_A_THREAD", 1)
    found = []
    for threads in ("1", "2", "3", "64"):
        monkeypatch.setenv("TRUTHCAL_NUM_THREADS", threads)
        found.append(tc.calibration_test(y, p, measure=measure, sample_weight=w, rng=1, n_resamples=1500))
    assert found[1:] == found[:1] * 3


def test_monte_carlo_without_formula_reports_the_draws():
    y, p, _ = some_rows(200)
    result = tc.calibration_test(y, p, measure="ks_ce", method="exact", rng=0)
    values = Outcomes(Sample.of(y, p)).values("ks_ce")(Outcomes(Sample.of(y, p)).draw(np.random.default_rng(1), 20_000))
    assert result.null_mean == pytest.approx(values.mean(), rel=0.03)
    assert result.null_sd == pytest.approx(values.std(), rel=0.1)


@pytest.mark.parametrize("n_resamples", [1, 2, 10, 999, 1000, 1001])
def test_pvalue_of_few_draws_is_never_zero(n_resamples):
    y, p, _ = some_rows(200)
    wrong = tc.calibration_test(1 - (p > 0.5), p, n_resamples=n_resamples, rng=0, method="exact")
    assert wrong.pvalue == 1 / (n_resamples + 1)
    assert wrong.n_resamples == n_resamples
    assert 0 < tc.calibration_test(y, p, n_resamples=n_resamples, rng=0).pvalue <= 1


def test_drawing_stops_once_the_answer_is_clear():
    y, p, _ = some_rows(200, 1)
    result = tc.calibration_test(y, p, rng=0, alternative="greater", n_resamples=9_999)
    assert result.pvalue > 0.4
    assert result.n_resamples < 3_000
    assert (500 / result.pvalue) == pytest.approx(round(500 / result.pvalue), rel=1e-12)  # 500 / draws until the 500th
    assert "enough for a p-value this large" in result.why
    wrong = tc.calibration_test(1 - y, p, rng=0, method="exact")
    assert "enough" not in wrong.why
    assert wrong.n_resamples == 9_999


@pytest.mark.simulation
@pytest.mark.parametrize("n_resamples", [19, 99, 250])
@pytest.mark.parametrize("sides", [("greater",), ("less",), ("greater", "less")])
def test_early_stopping_is_valid(monkeypatch, n_resamples, sides):
    """P(p-value <= alpha) <= alpha under calibration. Small numbers, so that most sequences stop early."""
    monkeypatch.setattr(redraw, "_ENOUGH", 6)
    monkeypatch.setattr(redraw, "_ROUND", 20)
    rng = np.random.default_rng(n_resamples)
    pvalues, draws = [], []

    def uniform(stream, count):
        return stream.random(count)

    for _ in range(3000):
        observed = float(rng.random())
        tails = redraw.simulate_tails(uniform, 64, observed, 0.0, n_resamples=n_resamples, generator=rng, sides=sides)
        pvalues.append(min(1.0, len(sides) * min(getattr(tails, side) for side in sides)))
        draws.append(tails.draws)
    pvalues = np.array(pvalues)
    assert 0.0 < pvalues.min() <= pvalues.max() <= 1.0
    if n_resamples > 19:
        assert np.mean(np.array(draws) < n_resamples) > 0.4
    for alpha in (0.02, 0.05, 0.1, 0.3, 0.6):
        slack = 4.0 * math.sqrt(alpha * (1.0 - alpha) / len(pvalues))
        assert np.mean(pvalues <= alpha) <= alpha + slack
        if n_resamples > 19:
            assert np.mean(pvalues <= alpha) >= alpha * 0.8 - slack - 2 / n_resamples


RARE = {
    "low": lambda rng, n: rng.beta(1, 99, n),
    "high": lambda rng, n: 1.0 - rng.beta(1, 99, n),
    "not rare at all": lambda rng, n: rng.random(n),
    "both, with ties and certain ones": lambda rng, n: np.where(
        rng.random(n) < 0.5, 0.0, np.round(rng.beta(0.1, 0.1, n), 2)
    ),
}


@pytest.mark.simulation
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", RARE)
def test_drawing_surprises_alone_has_the_same_distribution(kind, weighted):
    rng = np.random.default_rng(0)
    p, w = RARE[kind](rng, 400), rng.uniform(0.2, 3.0, 400) if weighted else None
    sample = Sample.of(np.zeros(400), p, w)
    for measure in TENTS:
        kernel = TentKernel.of(measure, sample.points())
        drawn = SparseRedraw(Outcomes(sample), kernel)(np.random.default_rng(1), 4000)
        usual = Outcomes(sample).values(measure)(Outcomes(sample).draw(np.random.default_rng(2), 4000))
        moments = null_moments(kernel, sample.points())
        assert drawn.mean() == pytest.approx(moments.mean, abs=4.5 * moments.sd / math.sqrt(4000))
        assert drawn.min() >= -1e-12 * moments.mean
        assert stats.ks_2samp(np.round(drawn, 12), np.round(usual, 12)).pvalue > 1e-3


@pytest.mark.simulation
def test_many_rows_of_rare_events_are_tested_by_their_surprises(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 999, 20_000)
    y = rng.random(20_000) < p
    result = tc.calibration_test(y, p, rng=0)
    assert result.method == "exact"
    assert result.information < 100
    assert tc.calibration_test(y, p, rng=0) == result
    with monkeypatch.context() as patch:
        patch.setattr(calibration_test_module, "_SURPRISE_COST", math.inf)
        usual = tc.calibration_test(y, p, rng=0, n_resamples=2000)
    assert usual.statistic == result.statistic
    assert usual.pvalue == pytest.approx(result.pvalue, abs=4.5 * math.sqrt(result.pvalue / 2000))
    assert tc.calibration_test(rng.random(20_000) < 3 * p, p, rng=0, method="exact").pvalue == 1e-4
    assert tc.calibration_test(np.zeros(20_000), p, rng=0).pvalue < 0.01


def test_progress_does_not_disturb(capsys):
    y, p, _ = some_rows(200)
    tc.calibration_test(y, p, rng=0, n_resamples=2000)
    assert capsys.readouterr().out == ""


# --- asymptotic -------------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("kind", ["plain", "ties", "weighted"])
@pytest.mark.parametrize("measure", TENTS)
def test_asymptotic_is_close_to_exact(measure, kind, alternative):
    """At 500 rows: within Monte Carlo error and a few percent."""
    for seed, slope in ((0, 1.0), (1, 0.9), (2, 0.8)):
        y, p, w = some_rows(500, seed, ties=kind == "ties", weighted=kind == "weighted", slope=slope)
        common = {"measure": measure, "alternative": alternative, "sample_weight": w}
        exact = tc.calibration_test(y, p, **common, method="exact", rng=0)
        asymptotic = tc.calibration_test(y, p, **common, method="asymptotic")
        assert asymptotic.statistic == exact.statistic
        assert asymptotic.pvalue == pytest.approx(exact.pvalue, rel=0.15, abs=0.006)  # of redraws: 2 standard errors
        assert asymptotic.null_mean == pytest.approx(exact.null_mean, rel=1e-9)
        assert asymptotic.null_sd == pytest.approx(exact.null_sd, rel=0.01)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["plain", "weighted"])
@pytest.mark.parametrize("measure", PATHS)
def test_brownian_limit_is_close_to_exact(measure, kind):
    for seed, slope in ((0, 1.0), (1, 0.9), (2, 0.8)):
        y, p, w = some_rows(2000, seed, weighted=kind == "weighted", slope=slope)
        for alternative in ("greater", "less"):
            common = {"measure": measure, "alternative": alternative, "sample_weight": w}
            exact = tc.calibration_test(y, p, **common, method="exact", rng=0)
            limit = tc.calibration_test(y, p, **common, method="asymptotic")
            assert limit.pvalue == pytest.approx(exact.pvalue, rel=0.25, abs=0.005)
            assert (limit.null_mean, limit.null_sd) == pytest.approx((exact.null_mean, exact.null_sd), rel=0.1)


@pytest.mark.simulation
@pytest.mark.parametrize("measure", PATHS)
def test_brownian_limit_is_conservative_with_ties(measure):
    for seed in range(5):
        y, p, _ = some_rows(1000, seed, ties=True, slope=0.9)
        exact = tc.calibration_test(y, p, measure=measure, method="exact", rng=0, n_resamples=4000)
        limit = tc.calibration_test(y, p, measure=measure, method="asymptotic")
        assert limit.pvalue > 0.95 * exact.pvalue


def test_asymptotic_tail_goes_on_where_floats_seem_to_end():
    y, p, _ = some_rows(20_000, slope=0.75)
    result = tc.calibration_test(y, p)
    assert result.method == "asymptotic"
    assert 0 < result.pvalue < 1e-60
    lower = tc.calibration_test(y, p, alternative="less").pvalue
    assert lower == pytest.approx(1.0, rel=1e-14)


def test_scale_of_weights_does_not_matter():
    y, p, w = some_rows(400, weighted=True)
    for method in ("exact", "asymptotic", "bound"):
        found = [
            tc.calibration_test(y, p, sample_weight=w * scale, method=method, rng=0).to_dict()
            for scale in (1.0, 2.0**-900, 1e300)
        ]
        for other in found[1:]:
            assert other["pvalue"] == pytest.approx(found[0]["pvalue"], rel=1e-9, abs=0)
            assert other["statistic"] == pytest.approx(found[0]["statistic"], rel=1e-12, abs=0)
            assert other["information"] == pytest.approx(found[0]["information"], rel=1e-12, abs=0)


def test_rows_of_weight_zero_count_for_nothing():
    y, p, w = some_rows(300, weighted=True)
    w[::3] = 0.0
    for method in ("exact", "asymptotic", "bound"):
        all_rows = tc.calibration_test(y, p, sample_weight=w, method=method, rng=0)
        some = tc.calibration_test(y[w > 0], p[w > 0], sample_weight=w[w > 0], method=method, rng=0)
        assert all_rows == some
        assert all_rows.n == 200


def test_equal_weights_are_no_weights():
    y, p, _ = some_rows(300)
    for method in ("asymptotic", "bound"):
        plain = tc.calibration_test(y, p, method=method)
        weighted = tc.calibration_test(y, p, method=method, sample_weight=np.full(300, 3.0))
        assert weighted.pvalue == pytest.approx(plain.pvalue, rel=1e-9, abs=0)


# --- which method -----------------------------------------------------------------------------------------------------


def test_auto_is_exact_for_little_information():
    y, p, _ = some_rows(590)
    assert tc.calibration_test(y, p, n_resamples=9).method == "exact"
    y, p, _ = some_rows(650)
    assert tc.calibration_test(y, p).method == "asymptotic"
    assert tc.calibration_test(y, p, measure="kuiper_ce", n_resamples=9).method == "exact"
    y, p, w = some_rows(10_001, weighted=True)
    assert tc.calibration_test(y, p).method == "asymptotic"
    assert tc.calibration_test(y, p, measure="kuiper_ce").method == "asymptotic"
    assert tc.calibration_test(y, p, measure="unbinned_ece", n_resamples=9).method == "exact"
    w[9:] *= 1e-9  # nine rows carry all weight
    assert tc.calibration_test(y, p, sample_weight=w, n_resamples=9).method == "exact"
    rare = p / 100.0
    rare_y = np.random.default_rng(99).random(10_001) < rare
    assert tc.calibration_test(rare_y, rare, n_resamples=9).method == "exact"
    assert tc.calibration_test(rare_y, rare, n_resamples=9).information == pytest.approx(np.sum(rare * (1 - rare)))


@pytest.mark.parametrize("alternative", ["greater", "two-sided", "less"])
def test_auto_spares_redraws_that_cannot_give_so_small_a_pvalue(alternative):
    y, p, _ = some_rows(500)
    wrong = np.clip(p + 0.3, 0, 1)
    options = {"alternative": alternative, "rng": 0, "n_resamples": 499}
    result, limit, bound = (
        tc.calibration_test(y, wrong, method=method, **options) for method in ("auto", "asymptotic", "bound")
    )
    if alternative == "less":  # of which the bound of the other tail says nothing
        assert result.method == "exact"
        return
    assert result.method == "asymptotic"
    assert result.pvalue == pytest.approx(limit.pvalue, rel=1e-9)
    assert result.pvalue < bound.pvalue < 1 / (4 * 500)
    assert "499 redraws cannot give a p-value this small" in result.why
    assert result.n_resamples == 0
    # Asked for, or where the bound is no smaller, outcomes are redrawn; and few of them are gone through.
    assert (
        tc.calibration_test(y, wrong, method="exact", **options).pvalue == len(options["alternative"].split("-")) / 500
    )
    assert tc.calibration_test(y[:300], p[:300], **options).method == "exact"
    assert tc.calibration_test(np.zeros(12), np.full(12, 0.97), **options).method == "exact"


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", TENTS)
@examples(20)
@given(data=weighted_rows(max_size=6))
def test_bound_is_never_below_the_exact_tail(measure, data):
    y, p, w = data
    sample = Sample.of(y, p, w)
    outcomes = Outcomes(sample)
    values = outcomes.values(measure)
    value, chance = zip(*((values(positive), chance) for positive, chance in outcomes.all()), strict=True)
    value, chance = np.concatenate(value), np.concatenate(chance)
    for observed in np.unique(value)[:: max(1, len(value) // 12)]:
        found = calibration_test_module.statistic_of(sample, measure)
        tails = calibration_test_module.bound_tails(float(observed), sample.points(), found.moments[1] ** 2)
        assert tails.greater >= chance[value >= observed + 1e-12].sum() * (1 - 1e-9)
        assert tails.less >= chance[value <= observed - 1e-12].sum() * (1 - 1e-9)


@examples(20)
@given(data=weighted_rows(max_size=6))
def test_bound_from_a_sketch_is_never_below_the_exact_tail(data):
    y, p, w = data
    sketch = tc.Sketch(1 << 16).update(y, p, w)
    exact = {
        side: tc.calibration_test(y, p, sample_weight=w, method="exact", alternative=side, hard=True)
        for side in ("greater", "less")
    }
    for side, result in exact.items():
        bound = tc.calibration_test(sketch, method="bound", alternative=side, hard=True)
        from_rows = tc.calibration_test(y, p, sample_weight=w, method="bound", alternative=side, hard=True)
        near = abs(bound.statistic - result.statistic) < 1e-9 * result.statistic
        assert bound.pvalue >= from_rows.pvalue * (1 - 1e-3) or not near
        if near and bound.pvalue < 1.0:
            assert bound.pvalue >= result.pvalue * (1 - 1e-6)


def test_bound_is_small_for_gross_errors():
    y, p, _ = some_rows(2000)
    wrong = tc.calibration_test(1 - y, p, method="bound")
    assert 0 < wrong.pvalue < 1e-50
    assert wrong.pvalue > tc.calibration_test(1 - y, p, method="asymptotic").pvalue
    assert tc.calibration_test(y, p, method="bound").pvalue <= 1.0


# --- sketches and very many rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", TENTS)
def test_a_sketch_gives_what_its_rows_give(measure, weighted):
    for n, slope in ((20_000, 1.0), (50_000, 0.97), (300, 0.8)):
        y, p, w = some_rows(n, weighted=weighted, slope=slope)
        rows = tc.calibration_test(y, p, measure=measure, method="asymptotic", sample_weight=w)
        sketch = tc.calibration_test(tc.Sketch(1 << 14).update(y, p, w), measure=measure)
        # The rows of a bucket count as tied on the information axis.
        tolerance = 7e-3 if measure == "information_atb" else 1e-3
        assert sketch.statistic == pytest.approx(rows.statistic, abs=tolerance * rows.null_sd)
        assert sketch.null_mean == pytest.approx(rows.null_mean, rel=1e-6)
        assert sketch.information == pytest.approx(rows.information, rel=1e-9 if not weighted else 0.01)
        assert sketch.n == rows.n
        assert "sketch of 16,384 buckets" in sketch.why
        if sketch.method == "asymptotic":
            assert sketch.pvalue == pytest.approx(rows.pvalue, rel=5 * tolerance, abs=0)


@pytest.mark.parametrize("measure", ["multiscale_atb", "shifted_grid_ubse"])
def test_a_coarse_sketch_is_off_by_little(measure):
    """256 buckets, an eighth of the narrowest width: two points a bucket keep what the rows in it do to each other."""
    y, p, _ = some_rows(20_000)
    rows = tc.calibration_test(y, p, measure=measure, method="asymptotic")
    sketch = tc.calibration_test(tc.Sketch(256).update(y, p), measure=measure)
    assert sketch.statistic == pytest.approx(rows.statistic, abs=0.015 * rows.null_sd)


def test_a_sketch_of_tied_rows_knows_all():
    y, p, w = some_rows(30_000, ties=True, weighted=True, slope=0.97)
    for measure in TENTS:
        rows = tc.calibration_test(y, p, measure=measure, method="asymptotic", sample_weight=w)
        sketch = tc.calibration_test(tc.Sketch().update(y, p, w), measure=measure)
        assert sketch.statistic == pytest.approx(rows.statistic, rel=1e-9, abs=0)
        assert sketch.pvalue == pytest.approx(rows.pvalue, rel=0.01, abs=0)  # the skewness has the mean weight


def test_a_sketch_with_little_information_redraws_with_any_weights():
    y, p, w = some_rows(300, slope=0.7, weighted=True)
    rows, sketch = (tc.calibration_test(*data, rng=0) for data in ((y, p), (tc.Sketch().update(y, p),)))
    assert (rows.method, sketch.method) == ("exact", "exact")
    assert rows.pvalue < 0.05
    assert sketch.pvalue == pytest.approx(rows.pvalue, rel=0.2, abs=1e-3)  # redraws: 8 and 14 of 10,000
    weighted = tc.calibration_test(tc.Sketch().update(y, p, w), rng=0)
    assert weighted.method == "approximate"
    assert "redraws of the outcomes; weights are known only by their sums in 148 cells" in str(weighted)
    assert weighted.pvalue == pytest.approx(tc.calibration_test(y, p, sample_weight=w, rng=0).pvalue, rel=0.3)


@pytest.mark.simulation
@pytest.mark.parametrize("p", ["constant", "uniform"])
@pytest.mark.parametrize("index", [1.1, 2.0])
def test_redraws_of_a_sketch_with_uneven_weights_have_the_right_size(p, index):
    """Few rows have most of the weight. Without a bucket's largest weight and w^4, the size at 1% is 2.4 times that."""
    rng, rates = np.random.default_rng(0), []
    for _ in range(40):
        w = rng.pareto(index, 1000) + 1.0
        x = np.full(1000, 0.02) if p == "constant" else np.sort(rng.random(1000))
        outcomes, values = tent_statistic("information_atb", tc.Sketch().update(np.zeros(1000), x, w).points()).redraw()
        null = np.concatenate([values(outcomes.draw(rng, 1000)) for _ in range(10)])
        starts = np.searchsorted(x, outcomes.points.low)
        drawn = np.add.reduceat((rng.random((4000, 1000)) < x) * w, starts, axis=1)
        limits = np.quantile(null, [0.95, 0.99]) * (1.0 - 1e-9)
        rates.append([np.mean(values(drawn) >= limit) for limit in limits])
    five, one = np.mean(rates, axis=0)
    assert 0.8 * 0.05 <= five <= 1.2 * 0.05
    assert 0.8 * 0.01 <= one <= 1.2 * 0.01


@pytest.mark.parametrize("kind", RARE)
def test_redraws_of_buckets_have_the_distribution_of_redraws_of_rows(kind):
    """Also if only the surprises are drawn. In buckets of 1/64, whose rows differ."""
    rng = np.random.default_rng(0)
    p = RARE[kind](rng, 400)
    sample, points = Sample.of(np.zeros(400), p), tc.Sketch(64).update(np.zeros(400), p).points()
    kernel = TentKernel.of("multiscale_atb", points)
    rows, buckets = Outcomes(sample), TiedOutcomes(points)
    expected = rows.tent_values(kernel)(rows.draw(rng, 4000))
    for drawn in (buckets.tent_values(kernel)(buckets.draw(rng, 4000)), SparseRedraw(buckets, kernel)(rng, 4000)):
        for level in (0.5, 0.9, 0.99):
            assert np.quantile(drawn, level) == pytest.approx(np.quantile(expected, level), rel=0.15)


# --- beyond redraws ---------------------------------------------------------------------------------------------------


def too_high(n, factor, seed=0, *, rare=False):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 19, n) if rare else rng.random(n)
    return rng.random(n) < factor * p, p


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (too_high(1000, 0.8), ("asymptotic", "asymptotic")),
        (too_high(3000, 0.88), ("asymptotic", "asymptotic")),
        (too_high(9000, 0.9), ("asymptotic", "asymptotic")),
        (too_high(30_000, 0.97), ("asymptotic", "asymptotic")),
        (too_high(8000, 0.5, rare=True), ("asymptotic", "asymptotic")),
        (too_high(500, 0.6), ("asymptotic", "asymptotic")),  # sum p(1 - p) is 80
    ],
)
def test_rows_and_a_sketch_of_them_have_the_same_small_pvalue(data, expected):
    rows, sketch = tc.calibration_test(*data, rng=0), tc.calibration_test(tc.Sketch().update(*data), rng=0)
    assert (rows.method, sketch.method) == expected
    assert 0.0 < rows.pvalue < 1e-4
    assert math.log(sketch.pvalue) == pytest.approx(math.log(rows.pvalue), rel=0.01)


def test_redraws_at_their_floor_are_followed_by_the_limit_or_a_bound():
    y, p = too_high(300, 0.6, 2)
    result, redrawn = (tc.calibration_test(y, p, method=method, rng=0) for method in ("auto", "exact"))
    assert redrawn.pvalue == 1e-4
    assert (result.method, result.n_resamples) == ("asymptotic", 9999)
    assert result.pvalue == tc.calibration_test(y, p, method="asymptotic").pvalue < 1e-4
    assert "9,999 redraws cannot give a p-value this small" in result.why
    assert "p = " in str(result)  # not the "p <= 0.0001" of redraws
    rare = np.full(300, 0.001) + np.arange(300) * 1e-6
    bound = tc.calibration_test(np.arange(300) < 60, rare, rng=0)
    assert bound.method == "bound"
    assert bound.pvalue == tc.calibration_test(np.arange(300) < 60, rare, method="bound").pvalue < 1e-5
    floor = tc.calibration_test(y, p, n_resamples=9, rng=0)
    assert floor.pvalue == result.pvalue


@pytest.mark.simulation
def test_pvalues_beyond_few_redraws_are_valid():
    """With 19 redraws most p-values below 0.05 come from the limit."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 1000)
    pvalues = np.array(
        [tc.calibration_test(rng.random(1000) < p, p, n_resamples=19, rng=rng).pvalue for _ in range(3000)]
    )
    for alpha in (0.005, 0.01, 0.05, 0.1):
        assert np.mean(pvalues <= alpha) <= alpha + 3.0 * math.sqrt(alpha / 3000)


# --- skewness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.001, 0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("information", [100, 1000])
def test_asymptotic_upper_tail_against_the_binomial(p, information):
    """Down to 1e-9, where skewness makes a factor of 10: never much too small."""
    n = round(information / (p * (1 - p)))
    chance = stats.binom(n, p)
    for z in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        events = math.ceil(n * p + z * math.sqrt(information))
        far = events - n * p
        exact = chance.sf(events - 1) + chance.cdf(math.floor(n * p - far + 1e-9))
        sketch = tc.Sketch().update(np.arange(n) < events, np.full(n, p))
        found = tc.calibration_test(sketch, measure="atb", method="asymptotic").pvalue
        assert 0.84 < found / exact < 2.0


# --- too good ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sketched", [False, True])
def test_too_good_with_ties_is_a_binomial_probability(sketched):
    """The limit gave p < 1e-300."""
    y, p = np.arange(20_000) < 10_000, np.full(20_000, 0.5)
    result = tc.calibration_test(*([tc.Sketch().update(y, p)] if sketched else [y, p]), alternative="less")
    assert result.method == "exact"
    assert result.pvalue == pytest.approx(stats.binom.pmf(10_000, 20_000, 0.5), rel=1e-9)


@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize(
    "p", [np.full(10_200, 0.01), np.linspace(0.0099, 0.0101, 10_200), np.repeat([0.003, 0.017], 5_100)]
)
def test_too_good_is_rare_where_one_direction_has_all_variance(p, sketched):
    """The limit's 1% rule fired in 4% of runs. Numbers of events near the expected 102, each with its probability."""
    rng = np.random.default_rng(0)
    fired, chances = 0.0, stats.binom(10_200, 0.01)
    for events in (95, 99, 100, 101, 102, 103, 104, 105, 109):
        y = np.zeros(10_200)
        y[rng.choice(10_200, events, replace=False)] = 1.0
        result = tc.calibration_test(*([tc.Sketch().update(y, p)] if sketched else [y, p]), alternative="less", rng=0)
        fired += chances.pmf(events) * (result.pvalue <= 0.01)
    assert fired <= 0.012


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", TENTS)
def test_very_many_rows_are_not_sorted(monkeypatch, measure, weighted):
    y, p, w = some_rows(12_000, weighted=weighted, slope=0.95)
    sorted_rows = tc.calibration_test(y, p, measure=measure, sample_weight=w, method="asymptotic")
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 1000)
    for method in ("auto", "asymptotic"):
        result = tc.calibration_test(y, p, measure=measure, sample_weight=w, method=method)
        assert "sketch of 16,384" in result.why
        assert result.method == "asymptotic"
        assert result.statistic == pytest.approx(sorted_rows.statistic, abs=5e-3 * sorted_rows.null_sd)
        assert result.pvalue == pytest.approx(sorted_rows.pvalue, rel=0.005, abs=0)


def test_very_many_rows_are_sorted_where_a_sketch_would_not_do(monkeypatch):
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 1000)
    y, p, _ = some_rows(1500)
    for arguments in ({"method": "exact"}, {"method": "bound"}, {"measure": "ks_ce"}):
        assert "sketch" not in tc.calibration_test(y, p, **arguments, n_resamples=9).why
    rare = tc.calibration_test(np.zeros(1500), p / 1000, n_resamples=9)  # too little information
    assert rare.method == "exact"
    words = np.where(y == 1, "yes", "no")
    assert tc.calibration_test(words, p, pos_label="yes").pvalue == tc.calibration_test(y, p).pvalue


def test_very_many_rows_are_checked_all_the_same(monkeypatch):
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 1000)
    y, p, w = some_rows(1500, weighted=True)
    bad = p.copy()
    bad[7] = np.nan
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 7"):
        tc.calibration_test(y, bad)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.calibration_test(y * 0.5, p)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.calibration_test(y * 0.5, p, sample_weight=w)


# --- the linear-time test ---------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_time_test_accepts_the_calibrated_and_rejects_the_far(weighted):
    accepted = []
    for seed in range(100):
        y, p, w = some_rows(500, seed, weighted=weighted)
        accepted.append(tc.linear_time_test(y, p, sample_weight=w).accepted)
    assert np.mean(accepted) >= 0.95  # 3/4 is promised
    n = 2000
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.0, 0.5, n)
        w = rng.uniform(0.2, 3.0, n) if weighted else None
        result = tc.linear_time_test(rng.random(n) < p + 0.3, p, sample_weight=w)
        assert result.detectable < 0.3
        assert not result.accepted


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slope", [1.0, 0.9, 0.5])
def test_linear_time_test_on_a_sketch_and_on_rows(weighted, slope):
    y, p, w = some_rows(3000, weighted=weighted, slope=slope)
    rows, sketch = tc.linear_time_test(y, p, sample_weight=w), tc.linear_time_test(tc.Sketch().update(y, p, w))
    ww = 1 / 3000 if w is None else np.sum(w**2) / np.sum(w) ** 2
    for result in (rows, sketch):
        assert result.threshold == pytest.approx(1.5 * ww, rel=1e-12, abs=0)
        assert result.n_effective == pytest.approx(1 / ww, rel=1e-12, abs=0)
        assert result.detectable == pytest.approx((2 + math.sqrt(2 * math.log(4))) * math.sqrt(ww), rel=1e-12, abs=0)
        assert result.statistic.low <= tc.atb(y, p, sample_weight=w) <= result.statistic.high
        assert result.statistic.width <= ww / 2
        assert result.accepted == (slope > 0.8)


def test_linear_time_test_prints_its_promise():
    y, p, _ = some_rows(3000)
    assert str(tc.linear_time_test(y, p)).startswith("Accepted as calibrated: ATB ")
    assert str(tc.linear_time_test(1 - y, p)).startswith("Rejected: not calibrated: ATB ")
    few = tc.linear_time_test([0, 1], [0.2, 0.7])
    assert few.detectable > 1
    assert "more rows are needed to guarantee that others are rejected" in str(few)
    assert set(tc.linear_time_test(y, p).to_dict()) >= {"accepted", "threshold", "n_effective", "detectable"}


# --- what is printed --------------------------------------------------------------------------------------------------


def test_verdict_in_words():
    y, p, _ = some_rows(1000)
    assert str(tc.calibration_test(y, p, rng=0)).startswith(
        "No significant evidence of miscalibration in 1,000 rows (p = "
    )
    assert str(tc.calibration_test(1 - y, p)).startswith("Clear evidence of miscalibration")
    p = np.sort(p)
    fitted = np.diff(np.floor(np.cumsum(p)), prepend=0.0)  # positives come just as often as predicted
    good = tc.calibration_test(fitted, p, alternative="two-sided", rng=0)
    assert str(good).startswith("Clear evidence that these predictions are closer to the outcomes than chance allows")
    assert "(asymptotic: " in str(good)
    assert set(good.to_dict()) >= {
        "statistic",
        "pvalue",
        "null_mean",
        "null_sd",
        "z",
        "method",
        "why",
        "n",
        "information",
    }


# --- refusals ---------------------------------------------------------------------------------------------------------

Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]
REFUSED = [
    ({"measure": "nonsense"}, ValueError, r"`measure` must be one of 'atb', .*; got 'nonsense'"),
    ({"measure": tc.atb}, ValueError, "`measure` must be one of"),
    ({"method": "fast"}, ValueError, "`method` must be one of 'auto', 'exact', 'asymptotic', 'bound'; got 'fast'"),
    ({"alternative": "both"}, ValueError, "`alternative` must be one of 'greater', 'less', 'two-sided'; got 'both'"),
    ({"n_resamples": 0}, ValueError, "`n_resamples` must be at least 1; got 0"),
    ({"n_resamples": 9.5}, TypeError, "`n_resamples` must be a whole number"),
    ({"rng": "seed"}, TypeError, "`rng` must be a whole number, a numpy Generator or None; got 'seed'"),
    ({"rng": 1.5}, TypeError, "`rng` must be a whole number"),
    ({"rng": -1}, TypeError, "`rng` must be a whole number"),
    (
        {"measure": "unbinned_ece", "method": "asymptotic"},
        ValueError,
        "`method` for unbinned_ece must be one of 'auto', 'exact'; got 'asymptotic'",
    ),
    (
        {"measure": "ks_ce", "method": "bound"},
        ValueError,
        "`method` for ks_ce must be one of 'auto', 'exact', 'asymptotic'; got 'bound'",
    ),
    (
        {"measure": "quantile_ece", "sample_weight": [1, 1, 0.5, 1]},
        ValueError,
        r"whole numbers, because this measure counts rows; found 0\.5",
    ),
    ({"sample_weight": [1, 1, 1]}, ValueError, "`y_true` has 4 rows but `sample_weight` has 3|`sample_weight` has 3"),
    ({"sample_weight": [1, 1, 1, -1]}, ValueError, "`sample_weight`"),
    ({"sample_weight": [0, 0, 0, 0]}, ValueError, "`sample_weight`"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.calibration_test(Y, P, **arguments)


ROWS_REFUSED = [
    (
        ([0, 0.5, 1, 0], P),
        ValueError,
        r"`y_true` must contain only 0 and 1 here; found 0\.5 at row 1 \(1 of 4 rows\)\. Fractions are",
    ),
    ((Y, [0.2, np.nan, 0.6, 0.4]), ValueError, r"`y_proba` has a missing value \(nan\) at row 1"),
    ((Y, [0.2, 70, 0.6, 0.4]), ValueError, r"`y_proba` must lie in \[0, 1\]; found 70"),
    (([0, 1, 2, 0], P), ValueError, "`y_true`"),
    ((Y, P[:3]), ValueError, "`y_true` has 4 rows but `y_proba` has 3"),
    (([], []), ValueError, "empty|no rows|at least one"),
    ((Y,), (TypeError, ValueError), "`y_proba`"),
]


@pytest.mark.parametrize("function", [tc.calibration_test, tc.linear_time_test])
@pytest.mark.parametrize(("rows", "error", "message"), ROWS_REFUSED)
def test_bad_rows_are_refused(function, rows, error, message):
    with pytest.raises(error, match=message):
        function(*rows)


@pytest.mark.parametrize("function", [tc.calibration_test, tc.linear_time_test])
@pytest.mark.parametrize(
    ("name", "value"), [("y_proba", [0.5]), ("sample_weight", [1.0]), ("pos_label", 1)], ids=["p", "w", "label"]
)
def test_nothing_goes_beside_a_sketch(function, name, value):
    sketch = tc.Sketch().update(Y, P)
    with pytest.raises(TypeError, match=f"`{name}` cannot be combined with a Sketch"):
        function(sketch, **{name: value})


@pytest.mark.parametrize("function", [tc.calibration_test, tc.linear_time_test, tc.assess])
def test_sketches_of_fractions_or_of_nothing_are_refused(function):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here\\. Fractions are treated"):
        function(tc.Sketch().update(rng.random(500), rng.random(500)))
    with pytest.raises(ValueError, match=r"the sketch is empty; add rows with \.update"):
        function(tc.Sketch())


@pytest.mark.parametrize("scale", [1e70, 1e60, 1e-60, 1e-69])
@pytest.mark.parametrize("method", ["asymptotic", "bound"])
def test_sketch_of_extreme_weights_is_that_of_plain_ones(scale, method):
    rng = np.random.default_rng(0)
    p, w = rng.random(300), rng.uniform(0.5, 1.0, 300)
    y = rng.random(300) < 0.8 * p
    plain, extreme = (tc.calibration_test(tc.Sketch().update(y, p, w * by), method=method) for by in (1.0, scale))
    for name in ("statistic", "pvalue", "null_mean", "null_sd", "information"):
        assert getattr(extreme, name) == pytest.approx(getattr(plain, name), rel=1e-6, abs=0)


def test_measures_and_methods_that_a_sketch_cannot_have():
    sketch = tc.Sketch().update(Y, P)
    with pytest.raises(
        ValueError,
        match="`measure` of a sketch must be one of 'atb', 'multiscale_atb', 'information_atb', 'shifted_grid_ubse'; got 'unbinned_ece'",
    ):
        tc.calibration_test(sketch, measure="unbinned_ece")
    weighted = tc.Sketch().update([0, 1], [0.5, 0.5], [1.0, 2.0])
    with pytest.raises(
        ValueError, match="`method` for atb of a sketch must be one of 'auto', 'asymptotic', 'bound'; got 'exact'"
    ):
        tc.calibration_test(weighted, measure="atb", method="exact")


def test_levels_lie_strictly_between_0_and_1():
    assert check_level(0.95, "confidence_level") == 0.95
    with pytest.raises(
        ValueError, match=r"`confidence_level` must lie strictly between 0 and 1; got 95\.0\. For 95%, pass 0\.95\."
    ):
        check_level(95, "confidence_level")
    for level in (0.0, 1.0, 1e9):
        with pytest.raises(ValueError, match=r"`alpha` must lie strictly between 0 and 1; got [\d.]+$"):
            check_level(level, "alpha")
    with pytest.raises(ValueError, match=r"`alpha` must be finite and at least 0; got -0\.1"):
        check_level(-0.1, "alpha")
    with pytest.raises(TypeError, match="`alpha` must be a number; got '5%'"):
        check_level("5%", "alpha")


def test_a_coarse_sketch_is_refused_by_the_linear_time_test():
    y, p, _ = some_rows(50_000)
    with pytest.raises(
        ValueError, match=r"the sketch bounds ATB only to within .* needs 1e-05; build it with about \d+ times as many"
    ):
        tc.linear_time_test(tc.Sketch(16).update(y, p))


# --- odd rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "exact", "asymptotic", "bound"])
@pytest.mark.parametrize("measure", TENTS)
def test_certain_predictions_are_right_or_impossible(measure, method):
    for n in (1, 2, 50):
        p = np.arange(n) % 2.0
        right = tc.calibration_test(p, p, measure=measure, method=method, hard=True)
        assert (right.statistic, right.pvalue, right.null_mean, right.null_sd) == (0.0, 1.0, 0.0, 0.0)
        assert math.isnan(right.z)
        wrong = tc.calibration_test(1 - p, p, measure=measure, method=method, hard=True)
        assert wrong.statistic > 0
        assert wrong.pvalue == 0.0
        assert str(wrong).startswith("Clear evidence of miscalibration")
        assert "p < 1e-300)" in str(wrong)
        options = {"measure": measure, "method": method, "hard": True}
        assert tc.calibration_test(1 - p, p, alternative="two-sided", **options).pvalue == 0.0
    assert tc.calibration_test(tc.Sketch().update([0, 1], [0.0, 1.0]), measure=measure, hard=True).pvalue == 1.0
    assert tc.calibration_test(tc.Sketch().update([1, 1], [0.0, 1.0]), measure=measure, hard=True).pvalue == 0.0


def test_labels_in_place_of_probabilities_are_refused():
    y, labels = [0, 1, 1, 0], [0.0, 1.0, 0.0, 0.0]
    words = "`y_proba` contains nothing but 0 and 1: labels from `predict`[?] Pass `predict_proba`, or hard=True"
    for function in (tc.calibration_test, tc.assess, tc.check):
        for rows in ((y, labels), (tc.Sketch().update(y, labels),)):
            with pytest.raises(ValueError, match=words):
                function(*rows)
            function(*rows, hard=True)


@pytest.mark.parametrize("measure", PATHS)
@pytest.mark.parametrize("method", ["exact", "asymptotic"])
def test_certain_predictions_in_a_path(measure, method):
    assert tc.calibration_test([0, 1], [0.0, 1.0], measure=measure, method=method, hard=True).pvalue == 1.0
    assert tc.calibration_test([1, 1], [0.0, 1.0], measure=measure, method=method, hard=True).pvalue == 0.0


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_one_row(name):
    assert tc.calibration_test([1], [0.25], measure=name).pvalue == pytest.approx(0.25, rel=1e-12)
    assert tc.calibration_test([0], [0.25], measure=name).pvalue == pytest.approx(1.0, rel=1e-12)
    assert tc.calibration_test([0], [0.25], measure=name, alternative="less").pvalue == pytest.approx(0.75, rel=1e-12)
    assert tc.calibration_test([1], [0.5], measure=name).pvalue == 1.0  # both outcomes are equally far


@pytest.mark.parametrize("measure", ["multiscale_atb", "atb", "ks_ce", "unbinned_ece"])
def test_one_constant_prediction_is_a_binomial_test(measure):
    """With equal predictions every measure grows with the distance of the mean outcome."""
    n, p = 40, 0.3
    for positives in (0, 5, 11, 12, 20, 40):
        y = np.arange(n) < positives
        k = np.arange(n + 1)
        chance = stats.binom.pmf(k, n, p)
        expected = chance[np.abs(k - n * p) >= abs(positives - n * p) - 1e-9].sum()
        found = tc.calibration_test(y, np.full(n, p), measure=measure).pvalue
        assert found == pytest.approx(expected, rel=1e-9, abs=0)
    asymptotic = tc.calibration_test(np.arange(n) < 20, np.full(n, p), measure="atb", method="asymptotic").pvalue
    z = (20 - n * p) / math.sqrt(n * p * (1 - p))
    skewness = (1 - 2 * p) / math.sqrt(n * p * (1 - p))
    assert asymptotic == pytest.approx(2.0 * stats.norm.sf(z) * math.cosh(skewness * z**3 / 6), rel=1e-11, abs=0)


def test_single_precision_predictions_are_taken_as_they_are():
    y, p, w = some_rows(300, weighted=True)
    single = p.astype(np.float32)
    for method in ("exact", "asymptotic", "bound"):
        for weight in (None, w):
            a = tc.calibration_test(y, single, method=method, sample_weight=weight, rng=0)
            b = tc.calibration_test(y, single.astype(float), method=method, sample_weight=weight, rng=0)
            assert a.pvalue == pytest.approx(b.pvalue, rel=1e-6, abs=0)
            assert a.statistic == pytest.approx(b.statistic, rel=1e-6, abs=0)


def test_weights_of_any_size():
    y, p, _ = some_rows(300)
    w = 10.0 ** np.random.default_rng(0).uniform(-80, 0, 300)
    for method in ("auto", "exact", "asymptotic", "bound"):
        for alternative in ("greater", "less", "two-sided"):
            result = tc.calibration_test(y, p, sample_weight=w, method=method, alternative=alternative, rng=0)
            assert 0.0 < result.pvalue <= 1.0
            assert math.isfinite(result.z)


def test_many_ties_cost_nothing():
    """A million rows at one prediction: a binomial with a million and one outcomes."""
    p, y = np.full(1_000_000, 0.5), np.arange(1_000_000) % 2
    result = tc.calibration_test(y, p, method="exact", measure="atb")
    assert (result.statistic, result.pvalue) == pytest.approx((0.0, 1.0), rel=1e-9)
    y[:1500:2] = 1
    result = tc.calibration_test(y, p, method="exact", measure="atb")
    assert result.pvalue == pytest.approx(2 * stats.binom.sf(500_749, 1_000_000, 0.5), rel=1e-8, abs=0)
    assert result.n_resamples == 0


def test_lists_frames_and_labels_are_taken():
    pandas = pytest.importorskip("pandas")
    expected = tc.calibration_test(Y, P)
    frame = pandas.DataFrame({"y": Y, "p": P}, index=[5, 6, 7, 8])
    assert tc.calibration_test(frame["y"], frame["p"]) == expected
    assert tc.calibration_test(np.array(Y, bool), np.array(P)) == expected
    assert tc.calibration_test(["no", "yes", "yes", "no"], P, pos_label="yes") == expected


@pytest.mark.parametrize("measure", ["ks_ce", "kuiper_ce"])
def test_auto_redraws_where_the_cumulative_bias_moves_in_few_steps(measure):
    """A Brownian motion seen at 9 times has smaller extremes: the limit would be far too cautious."""
    rng = np.random.default_rng(0)
    p = rng.integers(1, 10, 11_000) / 10
    result = tc.calibration_test(rng.random(len(p)) < p, p, measure=measure, n_resamples=99, rng=0)
    assert result.method == "exact"
    fine = rng.random(11_000)
    assert tc.calibration_test(rng.random(len(fine)) < fine, fine, measure=measure).method == "asymptotic"


def test_outcomes_that_cannot_happen_are_named():
    result = tc.calibration_test([1, 1, 0, 0], [0.0, 0.5, 0.3, 0.2])
    assert result.impossible == 1
    assert "But 1 outcome had a predicted probability of 0" in str(result)
    possible = tc.calibration_test([0, 1, 0, 0], [0.0, 0.5, 0.3, 0.2])
    assert possible.impossible == 0
    assert "chance of 0" not in str(possible)


def test_limit_of_the_cumulative_bias_says_nothing_of_small_values_with_ties():
    y, p = np.arange(20_000) % 10 < 3, np.full(20_000, 0.3)
    assert tc.calibration_test(y, p, measure="ks_ce", method="asymptotic", alternative="less").pvalue == 1.0


@pytest.mark.parametrize(
    ("alternative", "words"),
    [
        ("less", "No significant evidence that these predictions are closer to the outcomes"),
        ("greater", "Clear evidence of miscalibration: calibrated"),
    ],
)
def test_words_follow_the_alternative(alternative, words):
    result = tc.calibration_test(np.arange(100) % 2, np.full(100, 0.9), alternative=alternative)
    assert str(result).startswith(words)


def test_a_sketch_reports_the_moments_of_its_rows():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    rows, sketch = tc.calibration_test(y, p, rng=0), tc.Sketch().update(y, p)
    for method in ("asymptotic", "bound"):
        found = tc.calibration_test(sketch, method=method)
        assert found.null_mean == pytest.approx(rows.null_mean, rel=1e-9, abs=0)
        assert found.null_sd == pytest.approx(rows.null_sd, rel=1e-3, abs=0)
        assert type(found.pvalue) is float


def test_same_rows_get_the_same_pvalue_by_default():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = rng.random(60) < p
    first, second, other = (tc.calibration_test(y, p, n_resamples=99, **seed) for seed in ({}, {}, {"rng": 1}))
    assert first.method == "exact"
    assert (first.greater, first.less) == (second.greater, second.less) != (other.greater, other.less)


@pytest.mark.parametrize(
    ("rows", "words"), [(100, "approximate: 25 is below 100"), (400, "accurate: 100 is at least 100")]
)
def test_asymptotic_distribution_is_called_accurate_only_if_it_is(rows, words):
    text = str(tc.calibration_test([0, 1] * (rows // 2), [0.5] * rows, method="asymptotic"))
    assert f"(asymptotic: distribution for large sum p(1 - p), {words})" in text


def test_certain_rows_with_weights_take_no_memory():
    """Outcomes of rows with a prediction of 0 or 1 are known: enumerating them would take 2^40 numbers."""
    rng = np.random.default_rng(0)
    y, p, w = np.array([0, 1, 1, 0]), np.array([0.2, 0.6, 0.7, 0.4]), np.array([1.0, 2.0, 3.0, 1.5])
    certain = rng.uniform(0.5, 2.0, 40)
    with_zeros = tc.calibration_test(
        np.r_[y, np.zeros(40)], np.r_[p, np.zeros(40)], sample_weight=np.r_[w, certain], method="exact"
    )
    chances = [
        np.prod([q if happens else 1 - q for q, happens in zip(p, outcome, strict=True)])
        for outcome in itertools.product([0, 1], repeat=4)
    ]
    assert with_zeros.n_resamples == 0
    outcomes = [np.r_[outcome, np.zeros(40)] for outcome in itertools.product([0, 1], repeat=4)]
    values = [tc.information_atb(o, np.r_[p, np.zeros(40)], sample_weight=np.r_[w, certain]) for o in outcomes]
    expected = sum(c for c, v in zip(chances, values, strict=True) if v >= with_zeros.statistic * (1 - 1e-9))
    assert with_zeros.pvalue == pytest.approx(expected)
