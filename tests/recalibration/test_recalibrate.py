"""`recalibrate`: fits and choices against slow oracles, what it says before and after, files, and errors."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from oracles import recalibration as oracle
from scipy import special
from sklearn import isotonic, linear_model
from support.simulation import REPEATS, assert_covered

import truthcal as tc
from truthcal.recalibration.choice import UNCORRECTED
from truthcal.recalibration.map_fitting import CellRows, fit_map
from truthcal.recalibration.maps import LogisticMap

METHODS = ("identity", "temperature", "platt", "beta", "isotonic")


def rows(n=600, slope=1.0, shift=0.0, seed=0, decimals=None):
    """Outcomes, and predictions whose log-odds are `slope` times the true ones plus `shift`."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.8, 1.6, n)
    p = special.expit(slope * special.logit(truth) + shift)
    return (rng.random(n) < truth).astype(int), p if decimals is None else p.round(decimals)


def cells_of(y, p, w=None):
    one_part = np.zeros(len(p), np.intp)
    return CellRows.of(p, y.astype(float), np.ones(len(p)) if w is None else w, one_part).without(None)


# --- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["temperature", "platt", "beta"])
def test_logistic_fits_maximize_the_likelihood(method, weighted):
    y, p = rows(slope=1.4, shift=0.3)
    w = np.random.default_rng(1).exponential(size=len(p)) if weighted else np.ones(len(p))
    found = fit_map(method, cells_of(y, p, w))
    beta = oracle.logistic(y, p, w, method)
    a, b = beta[:2] if method == "beta" else beta[[0, 0]]
    c = 0.0 if method == "temperature" else beta[-1]
    np.testing.assert_allclose([found.a, found.b, found.c], [a, b, c], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_fit_is_the_least_squares_fit(weighted):
    y, p = rows(80, slope=0.5, decimals=2)
    w = np.random.default_rng(1).exponential(size=len(p)) if weighted else np.ones(len(p))
    x, expected = oracle.isotonic(y, p, w)
    np.testing.assert_allclose(fit_map("isotonic", cells_of(y, p, w))(x), expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["temperature", "platt", "beta"])
@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_distinct_predictions_are_merged_without_harm(method, rare, weighted):
    rng = np.random.default_rng(0)
    p = special.expit(rng.normal(-3, 1.5, 60_000)) if rare else rng.beta(0.8, 1.6, 60_000)
    y = rng.random(60_000) < special.expit(0.8 * special.logit(p) + 0.2)
    w = rng.pareto(2.0, 60_000) + 0.1 if weighted else np.ones(60_000)
    cells = cells_of(y, p, w)
    assert len(cells.p) == 60_000 > 3 * len(cells.merged().p)
    np.testing.assert_allclose(cells.merged().events.sum(), cells.events.sum())
    beta = oracle.logistic(y, p, w, method)
    a, b = beta[:2] if method == "beta" else beta[[0, 0]]
    exact = LogisticMap(a, b, 0.0 if method == "temperature" else beta[-1])
    at = np.quantile(p, np.linspace(0, 1, 200))
    np.testing.assert_allclose(fit_map(method, cells)(at), exact(at), rtol=1e-4, atol=0)


def test_isotonic_fit_of_many_predictions_is_exact():
    y, p = rows(30_000, slope=1.3)
    expected = isotonic.IsotonicRegression(y_min=1 / 30_002, y_max=1 - 1 / 30_002, out_of_bounds="clip").fit(p, y)
    at = np.linspace(0, 1, 999)
    np.testing.assert_allclose(fit_map("isotonic", cells_of(y, p))(at), expected.predict(at), atol=1e-12)


@pytest.mark.parametrize("case", ["common", "rare", "ties", "weights"])
@pytest.mark.parametrize("method", ["temperature", "platt", "beta"])
def test_logistic_fits_are_those_of_scikit_learn(method, case):
    rng = np.random.default_rng(5)
    p = special.expit(rng.normal(-5, 1.5, 3000)) if case == "rare" else rng.beta(0.8, 1.6, 3000)
    p = p.round(2).clip(0.01, 0.99) if case == "ties" else p
    y, w = rng.random(3000) < p**0.8, rng.exponential(size=3000) if case == "weights" else np.ones(3000)
    x = oracle.features(p, method)
    model = linear_model.LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    expected = model.fit(x, y, w).predict_proba(x)[:, 1]
    np.testing.assert_allclose(fit_map(method, cells_of(y, p, w))(p), expected, atol=2e-6)


@pytest.mark.parametrize("method", METHODS)
def test_fits_never_decrease(method):
    y, p = rows(300)
    q = fit_map(method, cells_of(1 - y, p))(np.linspace(0, 1, 50))  # predictions of the opposite event
    assert (np.diff(q) >= 0).all()


def test_beta_drops_the_coefficient_that_would_make_it_decrease():
    y, p = rows(300, seed=3)
    y = (p > 0.5).astype(int) & y
    a, b, _ = oracle.logistic(y, p, np.ones(300), "beta")
    assert a > 0.0 > b  # the best fit without the rule
    found = fit_map("beta", cells_of(y, p))
    x = np.column_stack([np.log(p), np.ones(300)])
    without_b = linear_model.LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    assert found.b == 0.0
    np.testing.assert_allclose([found.a, found.c], without_b.fit(x, y).coef_[0], rtol=1e-5)


@pytest.mark.parametrize("method", METHODS[1:])
def test_predictions_that_separate_the_outcomes_are_fitted(method):
    p = np.linspace(0.01, 0.99, 40)
    q = fit_map(method, cells_of((p > 0.5).astype(int), p))(p)
    assert ((q > 0) & (q < 1)).all()
    assert (q[p > 0.6] > 0.9).all()


@pytest.mark.parametrize("method", METHODS[1:])
def test_no_fit_without_events(method):
    assert fit_map(method, cells_of(np.zeros(5, int), np.linspace(0.1, 0.5, 5))) is None


@pytest.mark.parametrize("noise", [0.0, 1e-12])
@pytest.mark.parametrize(("method", "slope", "shift"), [("platt", 1, -1.2), ("beta", 1, -1.2), ("temperature", 0, 0)])
def test_one_prediction_does_not_determine_a_slope(method, slope, shift, noise):
    """20% of events, predicted as 0.6: slopes stay 1; without an intercept, the slope that fits best is not negative."""
    p = 0.6 + noise * np.random.default_rng(0).normal(size=100)
    fitted = fit_map(method, cells_of((np.arange(100) < 20).astype(int), p))
    assert (fitted.a, fitted.b) == (slope, slope)
    assert fitted.c == pytest.approx(shift and special.logit(0.2) - special.logit(0.6), abs=1e-11)


def test_two_predictions_determine_one_slope():
    y, p = rows(400)
    p = np.where(p > 0.4, 0.7, 0.2)
    assert fit_map("beta", cells_of(y, p)) == fit_map("platt", cells_of(y, p))
    noisy = p + 1e-12 * np.random.default_rng(0).normal(size=400)
    fitted = fit_map("beta", cells_of(y, noisy))
    assert fitted.a == fitted.b == pytest.approx(fit_map("platt", cells_of(y, p)).a)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_without_a_part_are_those_of_the_other_rows(weighted):
    y, p = rows(300, decimals=2)
    rng = np.random.default_rng(0)
    w, part = 10.0 ** rng.uniform(-60, 60, 300) if weighted else np.ones(300), rng.integers(0, 40, 300)
    cell_rows = CellRows.of(p, y.astype(float), w, part)
    for k in range(40):
        without, expected = cell_rows.without(k), cells_of(y[part != k], p[part != k], w[part != k])
        for name, values in without._asdict().items():
            np.testing.assert_allclose(values, getattr(expected, name), rtol=1e-13, err_msg=name)


# --- the choice -------------------------------------------------------------------------------------------------------


def cross_fitted(y, p, part, w=None):
    """Predictions of each part by maps that are fitted to the other rows, one method after the other."""
    w = np.ones(len(p)) if w is None else w
    found = {}
    for method in METHODS:
        found[method] = np.empty(len(p))
        for k in np.unique(part):
            fitted = fit_map(method, cells_of(y[part != k], p[part != k], w[part != k]))
            found[method][part == k] = fitted(p[part == k])
    return found


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (1.5, 0.0), (1.3, 0.5), (0.5, 1.0)])
def test_choice_is_the_simplest_within_one_standard_error(slope, shift):
    y, p = rows(500, slope, shift, seed=4)
    part = np.random.default_rng(7).permutation(500) % 5
    losses = {method: oracle.log_loss(y, q) for method, q in cross_fitted(y, p, part).items()}
    expected = oracle.simplest_within_one_standard_error(losses)
    if tc.assess(y, p).test.pvalue > 0.05:
        expected = "identity"
    fix = tc.recalibrate(y, p, rng=7)
    assert fix.method == expected
    assert {found.method: pytest.approx(found.log_loss) for found in fix.candidates} == {
        method: loss.mean() for method, loss in losses.items()
    }


def test_choice_with_groups_splits_no_group_and_counts_groups():
    y, p = rows(900, 1.6, seed=5)
    groups = np.random.default_rng(0).integers(0, 60, 900)
    fix = tc.recalibrate(y, p, groups=groups, rng=7)
    _, numbers = np.unique(groups, return_inverse=True)
    part = (np.random.default_rng(7).permutation(60) % 5)[numbers]
    losses = {method: oracle.log_loss(y, q) for method, q in cross_fitted(y, p, part).items()}
    assert fix.method == oracle.simplest_within_one_standard_error(losses, groups)
    for found in fix.candidates:
        assert found.log_loss == pytest.approx(losses[found.method].mean())
    assert fix.comparison.scores.n_groups == 20


DISTINCT = {  # predictions and rates of events -> methods that are tried and chosen
    "one": ([0.6], [0.2], ["identity", "platt", "isotonic"], "platt"),
    "one, above": ([0.6], [0.8], ["identity", "platt", "isotonic"], "platt"),
    "two": ([0.3, 0.6], [0.1, 0.2], ["identity", "temperature", "platt", "isotonic"], "platt"),
    "two, by scaling": ([0.2, 0.8], [0.35, 0.65], ["identity", "temperature", "platt", "isotonic"], "temperature"),
    "three": ([0.1, 0.5, 0.9], [0.0075, 0.5, 0.89], list(METHODS), "beta"),
}


@pytest.mark.parametrize("case", DISTINCT)
@pytest.mark.parametrize("seed", range(4))
def test_few_distinct_predictions(case, seed):
    """Methods that fit equally well differ by rounding errors, which must not choose."""
    predictions, rates, tried, expected = DISTINCT[case]
    n, order = 1200 // len(rates), np.random.default_rng(seed).permutation(1200)
    p = np.repeat(predictions, n)[order]
    y = np.concatenate([np.arange(n) < rate * n for rate in rates]).astype(int)[order]
    fix = tc.recalibrate(y, p, rng=seed)
    assert [candidate.method for candidate in fix.candidates] == tried
    assert fix.method == expected
    if len(rates) == 1:
        assert fix.map == LogisticMap(1.0, 1.0, fix.map.c)
        assert fix.reason.startswith("It has the best log loss")
    np.testing.assert_allclose(fix(predictions), rates, atol=0.03)
    part = np.random.default_rng(seed).permutation(1200) % 5
    losses = {name: oracle.log_loss(y, q) for name, q in cross_fitted(y, p, part).items() if name in tried}
    assert oracle.simplest_within_one_standard_error(losses) == expected


def test_map_is_fitted_to_all_rows():
    y, p = rows(600, 1.6)
    fix = tc.recalibrate(y, p)
    assert fix.method == "temperature"
    assert fix.map == fit_map("temperature", cells_of(y, p))


def test_calibration_is_compared_on_the_third_that_the_map_was_not_fitted_to():
    y, p = rows(600, 1.6, seed=2)
    rng = np.random.default_rng(0)
    rng.permutation(600)  # the parts for choosing
    held_out = rng.permutation(600) % 3 == 0
    after = fit_map("isotonic", cells_of(y[~held_out], p[~held_out]))(p[held_out])
    fix = tc.recalibrate(y, p, method="isotonic")
    found = dataclasses.replace(fix.comparison.scores, names=("a", "b"))
    assert found == tc.compare(y[held_out], p[held_out], after)
    assert fix.after.n == fix.before.n == 200
    assert fix.assessment.n == fix.comparison.n == 600
    assert fix.after.atb == pytest.approx(tc.atb(y[held_out], after))


def test_log_loss_is_compared_on_all_rows_cross_fitted():
    y, p = rows(600, 1.6, seed=2)
    after = cross_fitted(y, p, np.random.default_rng(0).permutation(600) % 5)["isotonic"]
    found = tc.recalibrate(y, p, method="isotonic").comparison.log_loss
    assert found.a == pytest.approx(oracle.log_loss(y, p).mean())
    assert found.b == pytest.approx(oracle.log_loss(y, after).mean())
    difference = oracle.log_loss(y, p) - oracle.log_loss(y, after)
    error = difference.std(ddof=1) / math.sqrt(600)
    assert found.difference == pytest.approx(difference.mean())
    assert (found.high - found.low) / error == pytest.approx(2 * special.stdtrit(599, 0.975))


@pytest.mark.parametrize("grouped", [False, True])
def test_weights_and_groups_count_in_all_scores(grouped):
    """Log losses of the methods, before and after, and the scores of the third, by the formulas."""
    y, p = rows(900, 1.6, seed=5)
    rng = np.random.default_rng(1)
    w, groups = rng.uniform(0.2, 3.0, 900), rng.integers(0, 90, 900) if grouped else np.arange(900)
    w /= w.mean()
    fix = tc.recalibrate(y, p, sample_weight=w, groups=groups if grouped else None, method="platt", rng=7)
    numbers = np.unique(groups, return_inverse=True)[1]
    splits, n = np.random.default_rng(7), numbers.max() + 1
    part, third = (splits.permutation(n) % 5)[numbers], (splits.permutation(n) % 3)[numbers]
    losses = {name: oracle.log_loss(y, q) for name, q in cross_fitted(y, p, part, w).items()}
    for found in fix.candidates:
        assert found.log_loss == pytest.approx(np.average(losses[found.method], weights=w))
    share = np.bincount(numbers, w / w.sum())

    def standard_error(d):
        sums = np.bincount(numbers, w / w.sum() * (d - np.average(d, weights=w)))
        return math.sqrt(np.sum(sums**2) / (1 - np.sum(share**2)))

    gain, row = losses["identity"] - losses["platt"], fix.comparison.log_loss
    assert fix.candidates[0].difference == pytest.approx(np.average(gain, weights=w))
    assert fix.candidates[0].standard_error == pytest.approx(standard_error(gain))
    assert row.difference == pytest.approx(np.average(gain, weights=w))
    student = special.stdtrit(1 / np.sum(share**2) - 1, 0.975)
    assert row.high - row.low == pytest.approx(2 * student * standard_error(gain))
    out = third == 0
    after = fit_map("platt", cells_of(y[~out], p[~out], w[~out]))(p[out])
    options = {"sample_weight": w[out], "groups": groups[out] if grouped else None, "names": ("before", "after")}
    expected = tc.compare(y[out], p[out], after, **options)
    assert fix.comparison.scores.difference == pytest.approx(expected.difference)
    assert fix.comparison.scores.low == pytest.approx(expected.low, rel=1e-6)
    assert fix.before.atb == pytest.approx(tc.atb(y[out], p[out], sample_weight=w[out]))


def test_weight_is_the_same_as_repetition_for_the_fit():
    y, p = rows(300, 1.6, decimals=2)
    w = np.random.default_rng(0).integers(0, 4, 300)
    weighted = tc.recalibrate(y, p, sample_weight=w, method="beta").map
    repeated = tc.recalibrate(np.repeat(y, w), np.repeat(p, w), method="beta").map
    np.testing.assert_allclose([weighted.a, weighted.b, weighted.c], [repeated.a, repeated.b, repeated.c], rtol=1e-5)


def test_identity_is_kept_if_nothing_is_shown():
    y, p = rows(400, seed=1)
    fix = tc.recalibrate(y, p)
    assert fix.method == "identity"
    assert not fix.changes
    assert (fix(p) == p).all()
    assert fix.reason.startswith("Miscalibration is not significant (p = ")
    assert str(fix).startswith("Predictions stay as they are.\nMiscalibration is not significant (p = ")
    assert fix.warnings == ()
    assert fix.comparison.verdict == "Scores before and after are the same."
    assert fix.after is fix.before


def test_identity_is_kept_if_no_map_helps():
    """A significant test by chance, of calibrated predictions."""
    y, p = rows(600, seed=1)
    fix = tc.recalibrate(y, p)
    assert fix.assessment.test.pvalue < 0.05
    assert fix.method == "identity"
    assert fix.reason.startswith("Miscalibration is significant (p = 0.03")
    assert fix.reason.endswith("of rows that it was not fitted to by more than one standard error.")
    assert fix.warnings == (UNCORRECTED,)
    assert tc.recalibrate(y, p, alpha=0.01).warnings == tc.recalibrate(y, p, method="identity").warnings == ()


@pytest.mark.parametrize(("n_events", "words"), [(0, "0 events"), (1, "1 event"), (9, "9 events")])
def test_few_events_are_left_alone(n_events, words):
    y, p = np.isin(np.arange(3000), 300 * np.arange(n_events)), np.linspace(0.4, 0.01, 3000)
    needed = "at least 10 events and 10 non-events are needed for a map that follows more than single rows."
    fix = tc.recalibrate(y, p)
    doubt = f"Only {words}: {needed}"
    assert fix.reason.startswith("Miscalibration is significant (p ")
    assert fix.reason.endswith(f"), but is not corrected.\n{doubt}")
    assert fix.warnings == (UNCORRECTED,)
    other = tc.recalibrate(~y, 1 - p).reason.splitlines()[1]
    assert other == f"Only {words.replace('event', 'non-event')}: {needed}"
    if n_events > 1:
        requested = tc.recalibrate(y, p, method="platt")
        assert requested.warnings == (doubt,)
        assert f"! {doubt}" in str(requested)
        assert tc.recalibrate(y, p, method="identity").warnings == ()
        assert tc.recalibrate(np.arange(3000) % 250 == 0, p).changes


def test_reversed_predictions_are_left_alone():
    """The column of the other class: a map that does not decrease would make all predictions equal."""
    y, p = rows(2000, 1.0, seed=3)
    fix = tc.recalibrate(y, 1 - p)
    question = "Predictions and outcomes are negatively correlated: are these probabilities of the opposite event?"
    first, significant, *rest = fix.verdict.splitlines()
    assert first == "Predictions stay as they are."
    assert re.fullmatch(r"Miscalibration is significant \(p .*\), but is not corrected\.", significant)
    assert rest == [question, "If so, pass 1 minus the predictions."]
    assert fix.warnings == tc.Recalibration.from_json(fix.to_json()).warnings == (UNCORRECTED,)
    assert UNCORRECTED == "Miscalibration is significant, but is not corrected: predictions stay as they are."
    assert UNCORRECTED not in str(fix)  # the verdict says it
    assert tc.recalibrate(y, 1 - p, method="temperature").warnings == (question,)
    assert fix.assessment.verdict.splitlines()[1] == question


def test_predictions_of_training_rows_are_left_alone():
    rng = np.random.default_rng(0)
    y = rng.random(1500) < 0.4
    fix = tc.recalibrate(y, np.where(y, rng.uniform(0.55, 1.0, 1500), rng.uniform(0.0, 0.45, 1500)))
    question = "All events have larger predictions than all other rows: were these rows used to train the model?"
    assert fix.reason.splitlines()[1:] == [question]
    assert fix.warnings == (UNCORRECTED,)
    assert fix.assessment.verdict.splitlines()[1] == question
    assert question[1:] in fix.assessment.warnings[0]


def test_labels_are_no_predictions():
    y, p = rows(500, 1.0)
    with pytest.raises(ValueError, match="`y_proba` contains nothing but 0 and 1: labels from `predict`"):
        tc.recalibrate(y, p > 0.5)
    assert tc.recalibrate(y, p > 0.5, hard=True).changes


def test_one_number_and_no_numbers():
    fix = tc.recalibrate(*rows(300, 1.6), method="platt")
    assert fix(0.3) == fix([0.3])[0]
    assert isinstance(fix(np.float32(0.25)), float)
    assert fix([]).shape == fix(np.zeros(0)).shape == (0,)
    for one in (np.array(0.3), np.float64(0.3), np.longdouble(0.3)):
        assert fix(one) == fix(0.3)
        assert np.ndim(fix(one)) == 0
    for wrong, message in (
        ("", r"`y_proba` must be one-dimensional; got str\. Pass a list"),
        ({}, r"`y_proba` must be one-dimensional; got a mapping\. Pass one column"),
        (np.zeros((0, 3)), r"`y_proba` must be one-dimensional; got shape \(0, 3\)\. Pass one column\."),
        (True, r"`y_proba` must be one-dimensional; got bool\."),
    ):
        with pytest.raises(ValueError, match=message):
            fix(wrong)
    with pytest.raises(TypeError, match=r"`y_proba` must contain probabilities; got dtype .* \(first value 'x'\)"):
        fix(np.array("x"))
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 30\.0"):
        fix(30.0)


def test_tensors_are_recalibrated():
    torch = pytest.importorskip("torch")
    fix = tc.recalibrate(*rows(300, 1.6), method="platt")
    assert fix(torch.tensor(0.25)) == fix(0.25)
    assert fix(torch.tensor([])).shape == (0,)
    with pytest.raises(ValueError, match=r"`y_proba` must be one-dimensional; got shape \(0, 3\)"):
        fix(torch.zeros((0, 3)))


def test_impossible_outcomes_are_recalibrated():
    y, p = rows(2000, 1.0, seed=1)
    p = np.where(p < 0.1, 0.0, p)
    fix = tc.recalibrate(y, p)
    assert fix.changes
    assert fix([0.0])[0] > 0
    assert fix.comparison.log_loss.a == math.inf
    assert fix.comparison.verdict.startswith("The log loss changes from inf to 0.")


def test_words():
    y, p = rows(2000, 1.6)
    fix = tc.recalibrate(y, p)
    first, reason, before, effect, *_ = str(fix).splitlines()
    end = "on rows that it was not fitted to."
    assert first == "Recalibrate by temperature scaling."
    assert reason == f"It is the simplest method about as good as beta calibration {end}"
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    best = tc.recalibrate(rng.random(2000) < truth, special.expit(2 * special.logit(truth)))
    assert best.reason == f"It has the best log loss {end}"
    row, error = fix.comparison.log_loss, tc.assess(y, p).error
    assert before == f"Before: the error of all 2,000 rows is about {error.estimate:.3g} (95%: {error.ends()})."
    assert effect.startswith(
        f"The log loss changes from {row.a:.4g} to {row.b:.4g}; it falls by {row.difference:.2g} (95%: "
    )
    assert "All: 2,000 rows, each recalibrated by a map that was fitted to other rows." in str(fix)
    assert "Third: 667 rows, drawn at random; for them, the map was fitted to the others." in str(fix)
    labels = ["log loss (all)", "ATB (third)", "Brier score (third)", "error before (third)", "error after (third)"]
    assert re.findall(r"^  (\S.*\((?:all|third)\)) ", str(fix), re.MULTILINE) == labels
    assert {"before", "after", "difference"} <= set(fix.frame())
    assert list(fix.frame()["measure"]) == ["log loss", "ATB", "Brier score", "error before", "error after"]
    assert list(fix.frame()["n"]) == [2000, 667, 667, 667, 667]
    assert tc.recalibrate(y, p, method="platt").reason == "This method was requested."


def test_error_of_all_rows_that_may_be_zero_is_an_upper_limit():
    y, p = rows(300, 1.0)
    fix = tc.recalibrate(y, p, method="platt")
    limit = f"Before: the error of all 300 rows is at most {fix.assessment.error.high:.3g} (95% confidence)."
    assert fix.assessment.error.low == 0.0
    assert re.sub(r"\d\.\d+", "0", fix.verdict.splitlines()[2]) == re.sub(r"\d\.\d+", "0", limit)
    assert "Before" not in tc.Recalibration.from_json(fix.to_json()).verdict  # assessments are not stored


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_file_keeps_everything_but_the_assessments(tmp_path, method):
    y, p = rows(500, 1.6)
    fix = tc.recalibrate(y, p, method=method)
    text = fix.to_json(tmp_path / "fix.json")
    for source in (tmp_path / "fix.json", str(tmp_path / "fix.json"), text):
        read = tc.Recalibration.from_json(source)
        assert read == fix
        assert (read(p) == fix(p)).all()
        assert str(read).splitlines()[0] == str(fix).splitlines()[0]
    assert json.loads(text)["version"] == 1


def test_file_keeps_infinities_and_missing_numbers():
    y, p = rows(2000, 1.0, seed=1)
    fix = tc.recalibrate(y, np.where(p < 0.1, 0.0, p))
    read = tc.Recalibration.from_json(fix.to_json())
    assert read.comparison.log_loss.a == math.inf
    assert math.isnan(read.comparison.log_loss.low)


HEAD = '{"format": "truthcal recalibration", "version": 1'
BAD_FILES = {
    "empty": ("", r"the recalibration cannot be read: text is not valid JSON: "),
    "json": ("{not json", r"the recalibration cannot be read: text is not valid JSON: "),
    "list": ("[1]", r"the recalibration cannot be read: text was not written by `Recalibration\.to_json`\."),
    "other": ('{"a": 1}', r"text was not written by `Recalibration\.to_json`\."),
    "version": (
        '{"format": "truthcal recalibration", "version": 9}',
        r"text has version 9, which needs a newer truthcal\.",
    ),
    "method": (f'{HEAD}, "method": "x"}}', r"`method` must be one of 'identity'"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_other_files_are_refused(case):
    text, message = BAD_FILES[case]
    with pytest.raises(ValueError, match=message):
        tc.Recalibration.from_json(text)


CORRUPTED = {  # path of an entry, its value, and the end of the error
    "text as count": ("comparison.n", "x", r"has 'x' as comparison\.n, which must be a whole number, at least 0\."),
    "fraction as count": (
        "comparison.scores.n",
        1.5,
        r"has 1\.5 as comparison\.scores\.n, which must be a whole number",
    ),
    "negative count": ("comparison.n", -1, r"has -1 as comparison\.n, which must be a whole number, at least 0\."),
    "bool as count": ("comparison.n", True, r"has True as comparison\.n, which must be a whole number"),
    "text as number": ("comparison.log_loss.a", "x", r"has 'x' as comparison\.log_loss\.a, which must be a number\."),
    "bool as number": ("comparison.log_loss.a", True, r"has True as comparison\.log_loss\.a, which must be a number"),
    "list as number": ("comparison.log_loss.a", [1], r"has \[1\] as comparison\.log_loss\.a, which must be a number"),
    "candidate": ("candidates.0.log_loss", "abc", r"has 'abc' as candidates\[0\]\.log_loss, which must be a number\."),
    "empty candidate": ("candidates.0", {}, r"lacks candidates\[0\]\.method\."),
    "number as candidate": ("candidates.0", 1, r"has 1 as candidates\[0\], which must be an object\."),
    "number as list": ("candidates", 1.5, r"has 1\.5 as candidates, which must be a list\."),
    "text as list": ("warnings", "abc", r"has 'abc' as warnings, which must be a list\."),
    "number as warning": ("warnings", [1], r"has 1 as warnings\[0\], which must be text\."),
    "no reason": ("reason", None, r"has None as reason, which must be text\."),
    "one name": (
        "comparison.scores.names",
        ["a"],
        r"has \['a'\] as comparison\.scores\.names, which must be a list of le",
    ),
    "flag": (
        "comparison.scores.error_a.noise_removed",
        1,
        r"has 1 as .*\.noise_removed, which must be true or false\.",
    ),
    "no comparison": ("comparison", None, r"has None as comparison, which must be an object\."),
    "level": ("comparison.scores.confidence_level", 95, r"`comparison\.scores\.confidence_level` must lie strictly"),
    "map": ("map", None, r"`map` lacks 'a'; got None\."),
    "form": ("map.a", 7.0, r"`map` must have a = b for the method 'platt'; got \{'a': 7\.0,"),
}


def changed(text, path, value):
    """Change one entry of a stored recalibration."""
    content = json.loads(text)
    *parents, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    part = content
    for name in parents:
        part = part[name]
    part[last] = value
    return json.dumps(content)


@pytest.fixture(scope="module")
def stored():
    return tc.recalibrate(*rows(300, 1.6), method="platt").to_json()


@pytest.mark.parametrize("case", CORRUPTED)
def test_corrupted_entries_are_refused(case, stored):
    path, value, message = CORRUPTED[case]
    is_field = message.startswith(("has", "lacks"))
    start, cure = (
        ("the recalibration cannot be read: text ", ".*Store the recalibration again with `to_json`")
        if is_field
        else ("", "")
    )
    with pytest.raises((ValueError, TypeError), match=f"{start}{message}{cure}"):
        tc.Recalibration.from_json(changed(stored, path, value))


def test_missing_entries_are_refused(stored):
    content = json.loads(stored)
    del content["comparison"]["log_loss"]["low"]
    with pytest.raises(ValueError, match=r"text lacks comparison\.log_loss\.low\. Store the recalibration again with"):
        tc.Recalibration.from_json(json.dumps(content))


def test_null_is_a_missing_number_and_other_entries_are_ignored(stored):
    read = tc.Recalibration.from_json(changed(stored, "comparison.scores.low", None))
    assert math.isnan(read.comparison.scores.low)
    assert read.comparison.scores.n_groups is None
    huge = tc.Recalibration.from_json(changed(stored, "comparison.log_loss.a", 10**400))
    assert huge.comparison.log_loss.a == math.inf
    same = tc.Recalibration.from_json(stored)
    for path in ("extra", "candidates.0.extra", "comparison.extra", "comparison.scores.extra"):
        assert tc.Recalibration.from_json(changed(stored, path, 1)) == same


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "iso"}, r"; got 'iso'\. Did you mean 'isotonic'\?$"),
        ({"method": "magic"}, r"`method` must be one of 'auto', 'identity', 'temperature', .*; got 'magic'\."),
        (
            {"y_true": [0, 1, 1], "y_proba": [0.2, 0.4, 0.6]},
            r"`y_true` must have at least 4 rows with positive weight, .*; got 3\.",
        ),
        ({"n_splits": 1}, r"`n_splits` must be at least 2; got 1\."),
        ({"alpha": 5}, r"`alpha` must lie strictly between 0 and 1; got 5\.0\. For 5%, pass 0\.05\."),
        ({"y_proba": np.full((4, 3), 1 / 3)}, r"`y_proba` must be one-dimensional: `recalibrate` handles one event\."),
        ({"y_true": [0, 0.5, 1, 1]}, r"`y_true` must contain only 0 and 1 here; found 0\.5 at row 1"),
        ({"y_true": [0, 0, 0, 0], "method": "platt"}, r"`method` 'platt' cannot be fitted: there are too few events"),
        (
            {"y_true": [0, 1] * 30, "y_proba": [0.4] * 60, "groups": list(range(30)) * 2},
            r"`groups` must have at least 60 groups, a third of them for scores; got 30\.",
        ),
    ],
)
def test_invalid_arguments(arguments, message):
    given = {"y_true": [0, 1, 0, 1], "y_proba": [0.1, 0.8, 0.3, 0.6]} | arguments
    with pytest.raises(ValueError, match=message):
        tc.recalibrate(**given)


def test_sketches_are_refused():
    sketch = tc.Sketch().update(*rows(300))
    with pytest.raises(
        TypeError, match=r"`y_true` is a Sketch, .* `recalibrate` needs the rows: recalibrate\(y_true, y"
    ):
        tc.recalibrate(sketch)
    with pytest.raises(TypeError, match=r"`y_proba` is missing: pass \(y_true, y_proba\), or the names"):
        tc.recalibrate([0, 1, 0, 1])


def test_new_predictions_are_checked():
    fix = tc.recalibrate(*rows(300, 1.6))
    with pytest.raises(
        ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 10\.0 at row 0 .* Percentages\? Divide by 100\."
    ):
        fix([10.0, 90.0])
    assert fix([0.5]).dtype == np.float64


# --- how often the sentences are true ---------------------------------------------------------------------------------

FEW = REPEATS // 5  # a recalibration takes half a second
CALIBRATED = {
    "common": lambda rng, n: rng.beta(0.8, 1.6, n),
    "rare": lambda rng, n: special.expit(rng.normal(-4, 1, n)),
    "steps": lambda rng, n: rng.integers(1, 20, n) / 20,
}


@pytest.mark.simulation
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibrated_predictions_stay_as_they_are(name):
    kept = 0
    for seed in range(FEW):
        rng = np.random.default_rng(seed)
        p = CALIBRATED[name](rng, 800)
        kept += not tc.recalibrate(rng.random(800) < p, p, rng=seed).changes
    assert_covered(kept, FEW, name, coverage=0.95)


@pytest.mark.simulation
@pytest.mark.parametrize(("slope", "shift"), [(1.5, 0.0), (1.0, 0.5), (0.7, -0.3)])
def test_gains_are_as_large_as_reported(slope, shift):
    """The interval contains the expected gain of the returned map, and nothing looks too good after the fit."""
    truth = np.random.default_rng(99).beta(0.8, 1.6, 100_000)
    p_all = special.expit(slope * special.logit(truth) + shift)

    def loss(p):
        return -truth * np.log(p) - (1 - truth) * np.log1p(-p)

    hits = changed = too_good = wrong = 0
    for seed in range(FEW):
        y, p = rows(1000, slope, shift, seed)
        fix = tc.recalibrate(y, p, rng=seed)
        gain, row = np.mean(loss(p_all) - loss(fix(p_all))), fix.comparison.log_loss
        if fix.changes:
            changed += 1
            hits += row.low <= gain <= row.high
            too_good += fix.after.kind == "too good"
            wrong += fix.after.test.pvalue <= 0.05
    assert changed >= 0.7 * FEW
    assert_covered(hits, changed, "gain", coverage=0.93)
    assert_covered(changed - too_good, changed, "too good", coverage=0.99)
    assert_covered(changed - wrong, changed, "calibrated after", coverage=0.88)


def test_an_improvement_whose_interval_includes_0_is_called_not_significant():
    doubt = "This is not significant by itself: the true improvement is probably smaller, and may be a loss."
    rng = np.random.default_rng(75)
    truth = rng.beta(2, 2, 600)
    by_chance = tc.recalibrate(rng.random(600) < truth, truth)
    assert by_chance.comparison.log_loss.low < 0.0 < by_chance.comparison.log_loss.difference
    assert doubt in str(by_chance)
    rng = np.random.default_rng(0)
    truth = rng.random(3000)
    clear = tc.recalibrate(rng.random(3000) < truth, truth**2 / (truth**2 + (1 - truth) ** 2))
    assert clear.comparison.log_loss.low > 0.0
    assert doubt not in str(clear)
