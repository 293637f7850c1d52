"""The test of many classes: its statistic, its null distribution, and p-values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import multiclass as oracle
from scipy import stats
from support.classes import draw_classes
from support.simulation import REPEATS
from support.strategies import examples

import truthcal as tc
from truthcal.core.class_rows import check_class_rows
from truthcal.inference.multiclass import null_law
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.null_law import GroupedClasses, NullLaw, null_law_of


def make(seed, n=40, k=3, *, tied=False, weighted=False, concentration=1.0):
    """Rows with many classes, in cells."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, concentration), n)
    p = rng.multinomial(10, p) / 10 if tied else p
    w = rng.integers(1, 5, n).astype(float) if weighted else None
    return ClassCells.of(check_class_rows(draw_classes(rng, p), p, w, range(k)))


@examples(40)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    k=st.sampled_from([3, 4, 7]),
    tied=st.booleans(),
    weighted=st.booleans(),
)
def test_statistic_and_its_mean_against_the_definition(seed, n, k, tied, weighted):
    cells = make(seed, n, k, tied=tied, weighted=weighted)
    rows = cells.rows
    if not (rows.p * (1.0 - rows.p)).any():
        return
    expected = oracle.statistic(rows.y, cells.cell, rows.p, rows.w)
    assert float(cells.statistic(cells.errors)) == pytest.approx(expected, rel=1e-8, abs=1e-14)
    if n <= 12:
        mean, _ = oracle.null_moments(cells.cell, rows.p, rows.w)
        assert cells.noise_floor() == pytest.approx(mean, rel=1e-8)


def test_cells_are_numbered_by_class_and_keep_ties_together():
    cells = make(0, 300, 4, tied=True)
    for k in range(4):
        of_class = cells.cell[:, k]
        assert of_class.min() == cells.starts[k]
        assert of_class.max() == cells.starts[k + 1] - 1
        order = np.argsort(cells.rows.p[:, k])
        assert (np.diff(of_class[order]) >= 0).all()
        for value in np.unique(cells.rows.p[:, k]):
            assert len(set(of_class[cells.rows.p[:, k] == value])) == 1


def test_vectors_and_their_transpose():
    cells, rng = make(1, 60, 3), np.random.default_rng(1)
    a, b = (rng.standard_normal((cells.n_cells, 3)) for _ in range(2))
    assert np.sum(cells.vectors(a) * b) == pytest.approx(np.sum(a * cells.sums_of(b)))
    both = cells.statistic(np.stack([a, b]))
    np.testing.assert_allclose(both, [cells.statistic(a), cells.statistic(b)])


def test_two_classes_have_twice_the_binary_statistic():
    """Up to the rounding to cells, which does nothing to a few different predictions."""
    rng = np.random.default_rng(2)
    p = rng.choice([0.1, 0.3, 0.45, 0.8], 400)
    y = (rng.random(400) < p).astype(int)
    cells = ClassCells.of(check_class_rows(y, np.column_stack([1.0 - p, p]), None, [0, 1]))
    assert float(cells.statistic(cells.errors)) == pytest.approx(2.0 * tc.information_atb(y, p), rel=1e-12)


# --- exact ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p", [[[0.5, 0.3, 0.2], [0.1, 0.7, 0.2], [0.25, 0.25, 0.5]], [[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]]
)
def test_redraws_against_all_outcomes(p):
    p = np.array(p)
    n = len(p)
    all_y = [(y, chance) for y, chance in oracle.outcomes(p.tolist()) if chance > 0.0]
    observed = all_y[len(all_y) // 2][0]
    cells = ClassCells.of(check_class_rows(observed, p, None, range(3)))
    values = np.array([float(cells.statistic(cells.errors_of(np.array(y)))) for y, _ in all_y])
    chances = np.array([chance for _, chance in all_y])
    value = float(cells.statistic(cells.errors))
    test = tc.calibration_test(observed, p, labels=range(3), method="exact", n_resamples=19_999, rng=1)
    assert test.statistic == pytest.approx(value)
    for side, expected in (
        ("greater", chances[values >= value - 1e-12].sum()),
        ("less", chances[values <= value + 1e-12].sum()),
    ):
        spread = math.sqrt(expected * (1.0 - expected) / test.n_resamples)
        assert abs(getattr(test, side) - expected) <= 4.5 * spread + 2.0 / test.n_resamples
    assert test.null_mean == pytest.approx(chances @ values, rel=0.03)
    assert test.n == n


def test_certain_rows_are_not_redrawn():
    """Rows with a probability of 1 always have their class; one that did not is counted as impossible."""
    p = np.vstack([np.tile([0.5, 0.3, 0.2], (30, 1)), np.tile([0.0, 1.0, 0.0], (5, 1))])
    y = np.r_[np.zeros(15), np.ones(9), np.full(6, 2), np.ones(5)].astype(int)
    right = tc.calibration_test(y, p, rng=0)
    assert (right.impossible, right.greater > 0.5) == (0, True)
    y[-1] = 0
    wrong = tc.calibration_test(y, p, rng=0)
    assert wrong.impossible == 1
    assert wrong.statistic > right.statistic


# --- asymptotic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k", "weighted"), [(60, 3, False), (60, 3, True), (40, 5, False)])
def test_null_law_has_the_mean_and_variance_of_the_statistic(n, k, weighted):
    cells = make(3, n, k, weighted=weighted)
    mean, squares = oracle.null_moments(cells.cell, cells.rows.p, cells.rows.w)
    law = null_law_of(cells)
    assert law.mean == pytest.approx(cells.noise_floor(), rel=1e-9)
    assert law.mean == pytest.approx(mean, rel=1e-9)
    assert np.sum(law.scales**2) == pytest.approx(squares, rel=0.02)


def test_null_law_from_some_of_the_rows(monkeypatch):
    """A drawn row stands for several: their squares, not that of their sum, are those of the covariance."""
    cells = make(4, 3000, 6, concentration=0.5)
    whole = null_law_of(cells)
    monkeypatch.setattr(null_law, "_WORK", 0)
    monkeypatch.setattr(null_law, "_LEAST_ROWS", 150)
    part = null_law_of(cells)
    assert part.mean == pytest.approx(whole.mean, rel=1e-9)
    assert part.sd == pytest.approx(whole.sd, rel=0.05)


def test_null_law_of_certain_and_of_equal_rows():
    certain = ClassCells.of(check_class_rows([0, 1, 2], np.eye(3)))
    assert null_law_of(certain).mean == 0.0
    assert null_law_of(certain).tails(0.0).greater == 1.0
    equal = ClassCells.of(check_class_rows([0, 1, 2, 1] * 10, np.tile([0.5, 0.3, 0.2], (40, 1))))
    law = null_law_of(equal)
    assert law.mean == pytest.approx(equal.noise_floor())
    # One cell for each class, so that the statistic is a weighted sum of squares of the three mean errors.
    weights = equal.class_weights()
    covariance = np.sqrt(weights)[:, None] * (np.diag([0.5, 0.3, 0.2]) - np.outer([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]))
    expected = np.sort(np.linalg.eigvalsh(covariance * np.sqrt(weights) / 40))[::-1][:2]
    np.testing.assert_allclose(np.sort(law.scales)[::-1][:2], expected, rtol=1e-6)


def test_tails_of_a_law():
    law = NullLaw(np.array([1.0]))
    assert law.tails(3.84).greater == pytest.approx(stats.chi2(1).sf(3.84), rel=1e-6)
    assert law.tails(0.1).less == pytest.approx(stats.chi2(1).cdf(0.1), rel=1e-6)
    # With a share of the variance, the distance from the mean is scaled.
    narrow = NullLaw(np.array([1.0]), 0.25)
    assert narrow.sd == pytest.approx(0.5 * law.sd)
    assert narrow.tails(2.0).greater == pytest.approx(law.tails(3.0).greater)


def test_groups_of_one_row_have_the_law_of_independent_rows():
    cells = make(5, 600, 4)
    grouped = GroupedClasses.of(cells, np.arange(600))
    c = cells.rows.errors()
    assert grouped.mean == pytest.approx(np.sum((c / 600) ** 2 @ cells.class_weights()))
    assert grouped.own_atb == pytest.approx(np.sum(c**2) / 600**2)
    assert grouped.n_effective == pytest.approx(600)
    assert grouped.null_law().mean == pytest.approx(null_law_of(cells).mean, rel=0.05)
    assert grouped.null_law().sd == pytest.approx(null_law_of(cells).sd, rel=0.05)


def test_law_of_groups_is_that_of_sign_flips():
    """Mean and variance over random signs of whole groups, from the vectors of all groups."""
    cells, rng = make(6, 200, 3, weighted=True), np.random.default_rng(6)
    groups = np.repeat(np.arange(40), 5)
    grouped = GroupedClasses.of(cells, groups)
    vectors = np.array([cells.vectors(_errors_of(cells, groups == g)).ravel() for g in range(40)])
    np.testing.assert_allclose(grouped.gram, vectors @ vectors.T, rtol=1e-9, atol=1e-18)
    flipped = rng.choice([-1.0, 1.0], (20_000, 40)) @ vectors
    values = np.sum(flipped**2, axis=1)
    law = grouped.null_law()
    assert law.mean == pytest.approx(values.mean(), rel=0.02)
    assert law.sd == pytest.approx(values.std(), rel=0.05)
    own = sum(_within(cells.rows, np.flatnonzero(groups == g)) for g in range(40))
    assert grouped.own_atb == pytest.approx(own, rel=1e-9)


def _errors_of(cells, some):
    sums = np.zeros((cells.n_cells, cells.rows.n_classes))
    for i in np.flatnonzero(some):
        for k in range(cells.rows.n_classes):
            sums[cells.cell[i, k]] += cells.rows.w[i] * cells.rows.errors()[i]
    return sums


def _within(rows, some):
    c, p, w = rows.errors()[some], rows.p[some], rows.w[some]
    pairs = [(i, j) for i in range(len(some)) for j in range(len(some))]
    return sum(w[i] * w[j] * (c[i] @ c[j]) * oracle.overlap(p[i], p[j]) for i, j in pairs) / rows.total**2


def test_law_of_some_of_many_groups(monkeypatch):
    cells = make(7, 3000, 5)
    groups = np.arange(3000) // 2
    whole = GroupedClasses.of(cells, groups)
    monkeypatch.setattr(null_law, "_MOST_GROUPS", 300)
    part = GroupedClasses.of(cells, groups)
    assert len(part.gram) == 300
    assert part.mean == pytest.approx(whole.mean, rel=0.05)
    assert part.own_atb == pytest.approx(whole.own_atb, rel=0.05)
    assert part.null_law().sd == pytest.approx(whole.null_law().sd, rel=0.1)


# --- results ----------------------------------------------------------------------------------------------------------


def test_methods_agree():
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(4), 800)
    y = draw_classes(rng, p)
    exact = tc.calibration_test(y, p, method="exact", rng=0)
    asymptotic = tc.calibration_test(y, p, method="asymptotic")
    assert exact.statistic == asymptotic.statistic
    assert exact.pvalue == pytest.approx(asymptotic.pvalue, abs=0.03)
    assert exact.null_sd == pytest.approx(asymptotic.null_sd, rel=0.05)
    assert tc.calibration_test(y, p).method == "asymptotic"
    assert tc.calibration_test(y[:50], p[:50]).method == "exact"
    assert exact.why.startswith(f"4 classes: {exact.n_resamples:,} outcomes drawn with the predicted")
    assert tc.calibration_test(y, p, alternative="less").pvalue == asymptotic.less
    two_sided = tc.calibration_test(y, p, alternative="two-sided").pvalue
    assert two_sided == pytest.approx(min(1.0, 2.0 * min(asymptotic.greater, asymptotic.less)))


def test_row_order_class_order_and_weights():
    rng = np.random.default_rng(9)
    p = rng.dirichlet(np.ones(4), 500)
    y, w = draw_classes(rng, p), rng.integers(0, 3, 500)
    options = {"method": "asymptotic", "labels": range(4)}
    test = tc.calibration_test(y, p, **options)
    order, classes = rng.permutation(500), rng.permutation(4)
    shuffled = tc.calibration_test(y[order], p[order], **options)
    assert (shuffled.statistic, shuffled.pvalue) == pytest.approx((test.statistic, test.pvalue), rel=1e-6)
    permuted = tc.calibration_test(y, p[:, classes], method="asymptotic", labels=classes)
    assert permuted.statistic == pytest.approx(test.statistic, rel=1e-9)
    assert permuted.pvalue == pytest.approx(test.pvalue, rel=0.02)  # the random signs differ
    weighted = tc.calibration_test(y, p, sample_weight=w, **options)
    kept = tc.calibration_test(y[w > 0], p[w > 0], sample_weight=7 * w[w > 0], **options)
    assert (weighted.statistic, weighted.pvalue, weighted.n) == pytest.approx((kept.statistic, kept.pvalue, kept.n))


def test_errors_are_detected():
    rng = np.random.default_rng(10)
    p = rng.dirichlet(np.ones(3), 1000)
    assert tc.calibration_test(draw_classes(rng, p[:, [1, 2, 0]]), p).pvalue < 1e-10
    assert tc.calibration_test(np.argmax(p, axis=1), p).pvalue < 1e-6
    fitted = np.clip(p, 0.05, 1.0)
    fitted /= fitted.sum(axis=1, keepdims=True)
    assert tc.calibration_test(draw_classes(rng, fitted), fitted, groups=np.arange(1000) // 10).pvalue > 0.001


@pytest.mark.parametrize("groups", [False, True])
def test_hostile_rows(groups):
    rng = np.random.default_rng(11)
    z = rng.dirichlet(np.ones(3), 60)
    cases = {
        "impossible class": np.c_[z, np.zeros(60)],
        "constant class": np.c_[0.8 * z[:, :2] / z[:, :2].sum(axis=1, keepdims=True), np.full(60, 0.2)],
        "equal rows": np.tile([0.2, 0.3, 0.5], (60, 1)),
        "more classes than rows": rng.dirichlet(np.ones(80), 60),
        "peaked": rng.dirichlet(np.full(4, 0.01), 60),
        "tiny": np.c_[z[:, :2] / z[:, :2].sum(axis=1, keepdims=True), np.full(60, 1e-300)],
    }
    for name, p in cases.items():
        y = draw_classes(rng, p)
        options = {"groups": np.arange(60) // 2} if groups else {"method": "asymptotic"}
        for w in (None, 10.0 ** rng.uniform(-6, 6, 60)):
            test = tc.calibration_test(y, p, labels=range(p.shape[1]), sample_weight=w, **options)
            assert 0.0 <= test.pvalue <= 1.0, name
            assert np.isfinite([test.statistic, test.null_mean, test.null_sd]).all(), name


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows(n):
    p = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])[:n]
    for method in ("exact", "asymptotic"):
        assert tc.calibration_test([0, 1, 2][:n], p, labels=range(3), method=method).pvalue > 0.05


# --- simulations ------------------------------------------------------------------------------------------------------


def assert_size(pvalues, levels=(0.05, 0.01)):
    """Fail if the size is certainly outside 0.7 to 1.4 times the level."""
    pvalues = np.array(pvalues)
    for level in levels:
        rejected = int(np.sum(pvalues <= level))
        assert stats.binom.sf(rejected - 1, len(pvalues), 1.4 * level) > 1e-3, (level, rejected)
        assert stats.binom.cdf(rejected, len(pvalues), 0.7 * level) > 1e-3, (level, rejected)


@pytest.mark.simulation
@pytest.mark.parametrize(("k", "n", "concentration"), [(3, 600, 1.0), (10, 1500, 0.3)])
def test_size(k, n, concentration):
    rng = np.random.default_rng(20)
    found = []
    for _ in range(10):
        p = rng.dirichlet(np.full(k, concentration), n)
        cells = ClassCells.of(check_class_rows(draw_classes(rng, p), p, None, range(k)))
        law = null_law_of(cells)
        found += [
            law.tails(float(cells.statistic(cells.errors_of(draw_classes(rng, p))))).greater for _ in range(REPEATS)
        ]
    assert_size(found)


@pytest.mark.simulation
def test_size_with_groups():
    rng, found = np.random.default_rng(21), []
    groups = np.repeat(np.arange(100), 5)
    for _ in range(min(REPEATS, 1000)):
        p = np.repeat(rng.dirichlet(np.ones(3), 100), 5, axis=0)
        luck = np.where(rng.random(500) < 0.5, rng.random(100)[groups], rng.random(500))[:, None]
        y = (luck >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        found.append(tc.calibration_test(y, p, groups=groups, labels=range(3)).pvalue)
    assert_size(found)
