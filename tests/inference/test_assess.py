"""The verdict: each kind on data made for it, what is printed, and what is refused."""

import html
import json
import math
import pickle
import re

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import isotonic_regression
from support.simulation import REPEATS

import truthcal as tc
from truthcal.core import summarize
from truthcal.results.text import frequencies, upper_limit

N = 2000


def steeper(p, times):
    """Log-odds multiplied."""
    return 1 / (1 + ((1 - p) / p) ** times)


TRUTHS = {
    "calibrated": lambda p: p,
    "too high": lambda p: 0.8 * p,
    "too low": lambda p: 0.2 + 0.8 * p,
    "overconfident": lambda p: 0.5 + 0.6 * (p - 0.5),
    "underconfident": lambda p: steeper(p, 2.0),
    "miscalibrated": lambda p: p + p * (1 - p) * (np.cos(6 * np.pi * p) + 0.034),  # no mean, no slope
}


def some_rows(kind="calibrated", n=N, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < TRUTHS[kind](p)).astype(int), p


def fitted_on_labels(n=N, seed=0):
    """Isotonic regression of outcomes on scores that know nothing, judged on the same outcomes."""
    y = np.random.default_rng(seed).integers(0, 2, n)
    return y, np.clip(isotonic_regression(y.astype(float)).x, 0.0, 1.0)


# --- the verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRUTHS)
def test_kind_on_data_made_for_it(kind):
    result = tc.assess(*some_rows(kind, seed=1), n_resamples=999)
    assert result.kind == kind
    assert result.warnings == ()


def test_calibrated_in_words():
    result = tc.assess(*some_rows())
    assert result.verdict == (
        "Calibrated as far as 2,000 rows can tell.\n"
        f"The error is at most {upper_limit(result.error.high)} (95% confidence).\n"
        "Detectable with 80% power: "
        "a shift of 0.029 or more and log-odds slopes below 0.83 or above 1.21."
    )
    assert result.detectable == tc.detectable_error(some_rows()[1])
    assert result.worst is None
    assert "worst range     none        no range of predictions is off with 95% confidence" in str(result)
    assert result.error.low == 0.0


def test_far_from_certain_in_words():
    result = tc.assess(*some_rows(n=60))
    assert result.kind == "calibrated"
    assert result.verdict.startswith("Calibrated as far as 60 rows can tell, which is not much.\nThe error is at most ")


@pytest.mark.parametrize(
    ("kind", "start", "place"),
    [
        ("too high", "Too high: predictions exceed the observed frequencies.", "too high between 0"),
        ("too low", "Too low: predictions are below the observed frequencies.", "too low between 0"),
        ("overconfident", "Overconfident: predictions are too extreme.", " between 0"),
        ("underconfident", "Underconfident: predictions are not extreme enough.", " between 0"),
        ("miscalibrated", "Miscalibrated: predictions are off, in no clear direction.", " between 0"),
    ],
)
def test_wrong_in_words(kind, start, place):
    result = tc.assess(*some_rows(kind), n_resamples=999)
    first, size, where, frequencies = result.verdict.splitlines()
    assert first.startswith(start)
    interval = result.error
    assert size.startswith(f"The error is about {interval.estimate:.2g} (95%: ")
    low, high = map(float, size.removesuffix(").").split("95%: ")[1].split(" to "))
    assert low <= interval.low < 1.1 * low  # two digits, rounded outwards
    assert high / 1.1 < interval.high <= high
    assert where.startswith("Worst place: at least 0.")
    assert place in where
    assert frequencies == f"{result.worst.frequencies()}."
    assert interval.low > 0.0


@pytest.mark.parametrize("kind", ["isotonic", "local means"])
def test_too_good_to_be_honest(kind):
    y, p = fitted_on_labels()
    if kind == "local means":
        y, p = some_rows()
        order = np.argsort(p)
        y = y[order]
        p = np.repeat(y.reshape(-1, 20).mean(axis=1), 20)
    result = tc.assess(y, p)
    assert result.kind == "too good"
    assert result.verdict.startswith(
        "Unusually close: predictions are closer to the outcomes than chance allows.\nPossible causes: they were fitted "
        "on these outcomes;"
    )
    assert result.test.less < 0.01


@pytest.mark.parametrize(
    ("y", "p", "rows"), [([1], [0.3], "1 row"), ([1, 0], [0.3, 0.7], "2 rows"), ([0] * 50, [1e-6] * 50, "50 rows")]
)
def test_too_few_rows(y, p, rows):
    result = tc.assess(y, p)
    assert result.kind == "too few rows"
    assert result.verdict.startswith(
        f"Too few rows: {rows} {'carries' if rows == '1 row' else 'carry'} too little information to detect errors (sum p("
    )
    assert math.isnan(result.detectable.largest)
    assert "detectable      unknown     these rows carry too little information" in str(result)
    assert str(result).count("sum p(1 - p)") == 1


def test_never_calibrated_beside_an_error_that_excludes_0():
    rng = np.random.default_rng(11)
    p = rng.random(400)
    y = rng.random(400) < np.clip(p + 0.07 * np.sin(6 * np.pi * p), 0, 1)
    result = tc.assess(y, p)
    assert result.test.pvalue > 0.05
    assert result.error.low > 0.0
    assert result.kind == "unclear"
    assert result.verdict.startswith(
        "Unclear: miscalibration is not significant, but the error is about 0.12 (95%: 0.0693 to 0.161).\nDetectable with "
    )


def test_a_row_with_nearly_all_of_the_weight_is_named():
    y, p = some_rows(n=1000)
    result = tc.assess(y, p, sample_weight=np.r_[1e6, np.ones(999)])
    assert result.verdict == (
        "Too few rows: a few of 1,000 rows have nearly all of the weight; the effective sample size is 1.0."
    )
    assert not any("uneven" in warning for warning in result.warnings)


def test_level_decides():
    y, p = some_rows(n=400, seed=5)
    pvalue = tc.assess(y, p).test.greater
    assert 0.05 < pvalue < 0.95
    assert tc.assess(y, p).kind == "calibrated"
    assert tc.assess(y, p, alpha=0.99).kind not in ("calibrated", "too few rows", "too good")


@pytest.mark.simulation
def test_no_honest_forecaster_is_accused_often():
    count = REPEATS // 5
    kinds = [tc.assess(*some_rows(n=100, seed=seed), n_resamples=199).kind for seed in range(count)]
    assert kinds.count("too good") <= stats.binom.isf(0.005, count, 0.01)  # expected: 1 in 100
    assert kinds.count("unclear") <= stats.binom.isf(0.005, count, 0.025)
    assert kinds.count("calibrated") >= stats.binom.ppf(0.005, count, 0.915)


# --- the evidence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_is_that_of_the_other_functions(weighted):
    y, p = some_rows("overconfident", 500)
    w = np.random.default_rng(1).exponential(1.0, 500) if weighted else None
    result = tc.assess(y, p, sample_weight=w)
    summary = tc.atb_summary(y, p, sample_weight=w)
    for name, value in (
        ("atb", summary.value),
        ("noise_floor", summary.noise_floor),
        ("excess", summary.excess),
        ("brier", summary.brier),
        ("n_effective", summary.n_effective),
    ):
        assert getattr(result, name) == pytest.approx(value, rel=1e-9, abs=1e-15), name
    assert result.error == tc.error_size(y, p, sample_weight=w)
    assert result.bias_interval == tc.confidence_interval(y, p, measure="bias", sample_weight=w)
    assert result.detectable == tc.detectable_error(p, sample_weight=w)
    expected = tc.brier_decomposition(y, p, sample_weight=w)
    assert result.decomposition == expected
    test, less = (tc.calibration_test(y, p, alternative=side, sample_weight=w, rng=0) for side in ("greater", "less"))
    assert (result.test.pvalue, result.test.statistic) == (test.pvalue, test.statistic)
    assert result.test.alternative == "greater"
    assert result.pvalue_too_good == pytest.approx(less.pvalue, rel=0.02)
    assert test.format_p(test.pvalue) in str(result)
    assert result.to_dict()["pvalue_too_good"] == result.pvalue_too_good
    w = np.ones(500) if w is None else w
    assert result.mean_proba == pytest.approx(np.average(p, weights=w), rel=1e-12, abs=0)
    assert result.mean_true == pytest.approx(np.average(y, weights=w), rel=1e-9, abs=0)


def test_worst_range_is_where_it_was_put():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    truth = np.where((p > 0.4) & (p < 0.6), p - 0.2, p)
    result = tc.assess((rng.random(20_000) < truth).astype(int), p, n_resamples=99, confidence_level=0.9)
    found = result.worst
    assert 0.38 < found.low < 0.42
    assert 0.58 < found.high < 0.62
    assert 0.1 < found.error_at_least < 0.2
    assert found.confidence_level == 0.9
    assert result.verdict.endswith(f"Worst place: {found};\n{found.frequencies()}.")
    assert "or worse {} (90%); mean prediction {}, outcome {}\n".format(
        found.place(), *frequencies(found.mean_proba, found.mean_true)
    ) in str(result)


def test_same_rows_same_verdict():
    y, p = some_rows("too high", 300)
    order = np.random.default_rng(1).permutation(300)
    first = tc.assess(y, p, n_resamples=199)
    assert str(tc.assess(y, p, n_resamples=199)) == str(first)
    assert str(tc.assess(y[order], p[order], n_resamples=199)) == str(first)
    assert str(tc.assess(y.tolist(), p.tolist(), n_resamples=199)) == str(first)
    labels = np.where(y == 1, "yes", "no")
    named = tc.assess(labels, p, pos_label="yes", n_resamples=199)
    event = "  event           yes         the outcome whose probability is predicted\n"
    assert str(named).replace(event, "") == str(first) != str(named)
    assert (named.event, first.event) == ("yes", None)


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    y, p = some_rows("too high", 300)
    frame = pandas.DataFrame({"y": y, "p": p})
    assert str(tc.assess(frame["y"], frame["p"], n_resamples=99)) == str(tc.assess(y, p, n_resamples=99))


@pytest.mark.parametrize("scale", [1e-80, 3.0, 1e80])
def test_scale_of_weights_does_not_matter(scale):
    y, p = some_rows("too high", 300)
    w = np.random.default_rng(0).exponential(1.0, 300)
    first, other = tc.assess(y, p, sample_weight=w), tc.assess(y, p, sample_weight=scale * w)
    assert other.verdict == first.verdict
    assert other.n_effective == pytest.approx(first.n_effective, rel=1e-9, abs=0)


# --- sketches and many rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRUTHS)
def test_sketch_gives_the_verdict_of_its_rows(kind):
    y, p = some_rows(kind, 12_000)
    rows, sketch = tc.assess(y, p), tc.assess(tc.Sketch().update(y, p))
    assert sketch.kind == rows.kind == kind
    assert sketch.detectable.largest == pytest.approx(rows.detectable.largest, rel=5e-3, abs=0)
    for name in ("atb", "noise_floor", "brier", "mean_proba", "mean_true"):
        assert getattr(sketch, name) == pytest.approx(getattr(rows, name), rel=1e-3, abs=1e-7), name
    for name, rel in (("error", 0.12), ("bias_interval", 5e-3)):  # buckets at the border of two groups are not divided
        for end in ("low", "high"):
            found, expected = (getattr(getattr(result, name), end) for result in (sketch, rows))
            assert found == pytest.approx(expected, rel=rel, abs=1e-5)
    assert sketch.decomposition.score == pytest.approx(rows.decomposition.score, rel=1e-9, abs=0)
    for name in ("miscalibration", "discrimination", "uncertainty"):
        found, expected = (getattr(result.decomposition, name) for result in (sketch, rows))
        assert found == pytest.approx(expected, rel=0, abs=0.02 * rows.brier)
    assert (sketch.worst is None) == (rows.worst is None) == (kind == "calibrated")
    assert sketch.n == rows.n


def test_decomposition_of_a_sketch_adds_up():
    y, p = some_rows("overconfident", 3000)
    d = tc.assess(tc.Sketch().update(y, p)).decomposition
    assert d.miscalibration - d.discrimination + d.uncertainty == pytest.approx(d.score, rel=1e-9, abs=0)


def test_more_rows_than_can_be_sorted(monkeypatch):
    y, p = some_rows("too high", 20_000)
    exact = tc.assess(y, p)
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 10_000)
    found = tc.assess(y, p)
    assert "from a sketch of 16,384 buckets" in found.test.why
    assert "sketch" not in exact.test.why
    assert found.kind == exact.kind
    assert found.error.estimate == pytest.approx(exact.error.estimate, rel=1e-2, abs=0)
    assert found.verdict.splitlines()[1] == exact.verdict.splitlines()[1]
    w = np.random.default_rng(0).uniform(0.5, 1.5, 20_000)
    weighted = tc.assess(np.where(y == 1, "b", "a"), p, sample_weight=w, pos_label="b")
    assert weighted.kind == "too high"
    assert weighted.n_effective < 20_000


def test_many_rows_are_sorted_if_buckets_are_too_coarse(monkeypatch):
    """Predictions between 0.5 and 0.50001 are all in one bucket, which would hide a wave among them."""
    rng = np.random.default_rng(0)
    p = 0.5 + 1e-5 * rng.random(20_000)
    y = rng.random(20_000) < 0.5 + 0.1 * np.sin(2e6 * p)
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 10_000)
    found = tc.assess(y, p)
    assert "sketch" not in found.test.why
    assert found.test.greater < 1e-3
    ties = tc.assess(y, np.full(20_000, 0.5))
    assert "from a sketch" in ties.test.why
    assert "predictions take only one value" in ties.warnings[0]


@pytest.mark.parametrize("pos_label", [None, "b"])
def test_impossible_outcomes_of_many_rows_are_counted(monkeypatch, pos_label):
    y, p = some_rows("too high", 20_000)
    p[:4], y[:4] = [0.0, 1.0, 0.0, 1.0], [1, 0, 0, 1]
    w = np.ones(20_000)
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 10_000)
    labels = y if pos_label is None else np.where(y == 1, "b", "a")
    assert tc.assess(labels, p, pos_label=pos_label).test.impossible == 2
    w[0] = 0.0
    assert tc.assess(labels, p, sample_weight=w, pos_label=pos_label).test.impossible == 1


# --- warnings ---------------------------------------------------------------------------------------------------------


def warned(*args, **kwargs):
    result = tc.assess(*args, n_resamples=99, **kwargs)
    for warning in result.warnings:
        assert f"! {warning}" in str(result)
    return "\n".join(result.warnings)


def test_warning_of_one_class():
    _, p = some_rows(n=100)
    assert "all outcomes are 0; there are no rows of the other class." in warned(np.zeros(100, int), p)
    assert "all outcomes are 1; there are no rows of the other class." in warned(np.ones(100, int), p)
    assert "all outcomes" not in warned(*some_rows(n=100))


def test_warning_of_certain_and_wrong():
    y, p = some_rows(n=100)
    y[:3], p[:3] = [1, 0, 1], [0.0, 1.0, 0.0]
    assert "3 predictions of exactly 0 or 1 were wrong; this cannot" in warned(y, p)
    y[:3] = 1 - y[:3]
    assert "exactly 0 or 1" not in warned(y, p)


def test_warning_of_few_values():
    y, p = some_rows(n=300)
    assert "predictions take only 11 different values: were they rounded or binned?" in warned(y, np.round(p, 1))
    assert "predictions take only one value: were they rounded or binned?" in warned(y, np.full(300, 0.5))
    assert "different values" not in warned(y, p)
    assert "different values" not in warned(y[:50], np.round(p[:50], 1))  # too few rows to wonder


def test_warning_of_uneven_weights():
    y, p = some_rows(n=300)
    w = np.random.default_rng(0).exponential(1.0, 300) ** 2
    effective = w.sum() ** 2 / np.sum(w**2)
    assert f"weights are uneven: the effective sample size is {effective:,.1f}, not 300." in warned(
        y, p, sample_weight=w
    )
    assert "uneven" not in warned(y, p, sample_weight=np.full(300, 5.0))


@pytest.mark.parametrize("sketched", [False, True])
def test_warning_of_weights_that_depend_on_the_outcome(sketched):
    """Class weights and sampled non-events; not weights that follow the prediction, or uneven ones."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 9, 3000)
    y = rng.random(3000) < p
    kept = y | (rng.random(3000) < 0.2)

    def warnings(y, p, w):
        rows = (tc.Sketch().update(y, p, w),) if sketched else (y, p)
        return warned(*rows, sample_weight=None if sketched else w)

    smaller = "events have smaller weights than other rows with similar predictions. If weights depend on the outcome"
    assert smaller in warnings(y[kept], p[kept], np.where(y[kept], 1.0, 5.0))
    larger = warnings(y, p, np.where(y, 9.0, 1.0))
    assert "events have larger weights than other rows" in larger
    assert "Weights for censoring are valid with a group for each row; see docs/cookbook/survival.md." in larger
    grouped = warned(y, p, sample_weight=np.where(y, 9.0, 1.0), groups=np.arange(3000))
    assert "similar predictions. Results are about the weighted rows, as is right for censoring; leave out" in grouped
    assert "tests and intervals are wrong" not in grouped
    for w in (rng.pareto(1.1, 3000) + 1.0, 1.0 / (p + 0.01), np.ones(3000), rng.uniform(0.2, 3.0, 3000)):
        assert "events have" not in warnings(y, p, w)
        assert "events have" not in warnings(rng.random(3000) < 0.5 * p, p, w)
    p = rng.random(100_000)
    assert "events have" not in warnings(rng.random(100_000) < 0.25 + 0.5 * p, p, 0.05 + p)
    # Cells must not depend on the outcomes: each event would be a cell of its own.
    p = rng.beta(1, 49, 10_000)
    y = rng.random(10_000) < p
    assert "events have" not in warnings(y, p, rng.uniform(0.2, 3.0, 10_000))
    assert "events have larger weights" in warnings(y, p, np.where(y, 49.0, 1.0))


def test_many_rows_may_have_weights_of_any_magnitude(monkeypatch):
    """Only ratios matter, for rows; a sketch that users fill has a limit."""
    y, p = some_rows("too high", 3000)
    w = np.random.default_rng(0).uniform(0.5, 1.5, 3000)
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 1000)
    plain = tc.assess(y, p, sample_weight=w)
    for scale in (1e80, 1e-80):
        found = tc.assess(y, p, sample_weight=w * scale)
        assert found.verdict == plain.verdict
        assert found.test.pvalue == pytest.approx(plain.test.pvalue, rel=1e-9)


def test_warning_of_little_chance():
    y, p = np.zeros(300, int), np.full(300, 0.001)
    y[:5] = 1
    assert "the predictions carry little information: sum p(1 - p) is 0.3." in warned(y, p)
    assert "little information" not in warned(*some_rows(n=300))


# --- printing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRUTHS)
def test_printing_stays_within_110_columns(kind):
    y, p = some_rows(kind)
    w = np.random.default_rng(0).exponential(1.0, N)
    for result in (tc.assess(y, p, n_resamples=99), tc.assess(tc.Sketch().update(y, p, w))):
        assert [line for line in str(result).splitlines() if len(line) > 110] == []
        assert repr(result) == str(result)


def test_printing_has_all_the_evidence():
    text = str(tc.assess(*some_rows("too high"), n_resamples=999))
    for name in ("error", "bias", "ATB", "miscalibrated?", "too good?", "worst range", "detectable", "rows"):
        assert f"\n  {name}" in text
    assert re.search(r"\n  miscalibrated\?  p = \S+ +by information_atb \(asymptotic\)", text)
    assert "\n  rows            2,000" in text
    assert re.search(r"\n  detectable      80% power   (a shift of|shifts below) ", text)
    assert "Brier score" in text


def test_to_dict_is_json():
    for result in (
        tc.assess(*some_rows("overconfident", 200), n_resamples=99),
        tc.assess([1], [0.3]),
        tc.assess(tc.Sketch().update(*some_rows(n=200))),
        tc.assess(*some_rows(n=200), sample_weight=np.arange(1, 201), n_resamples=99),
    ):
        back = json.loads(json.dumps(result.to_dict()))
        assert back["kind"] == result.kind
        assert back["test"]["pvalue"] == result.test.pvalue
        assert back["worst"] == (result.worst and result.worst.to_dict())
        assert back["detectable"]["power"] == 0.8
        assert back["warnings"] == list(result.warnings)
        assert back["error"]["confidence_level"] == 0.95
        assert set(back) == set(result.__slots__) - {"_summary"}


def test_html_holds_the_verdict_and_is_escaped():
    y, p = some_rows("too high")
    p = np.round(p, 1)
    result = tc.assess(y, p, n_resamples=999)
    page = result._repr_html_()
    assert html.escape(result.verdict).replace("\n", "<br>") in page
    assert "p = " in page
    assert "p <= " not in page
    assert html.escape(result.warnings[0]) in page
    assert page.count("<tr>") == page.count("</tr>") == 9


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1], [0.5, math.nan], "`y_proba`"),
        ([0, math.nan], [0.5, 0.2], "`y_true`"),
        ([0.3, 0.7], [0.5, 0.2], r"`y_true` must contain only 0 and 1 here; found 0\.3"),
        ([0.3, 0.7], [0, 1], "the arguments look swapped"),
        (
            [0.3, 0.7],
            ["no", "yes"],
            r"`y_proba` contains text labels \('no', 'yes'\), and `y_true` has numbers: the arg",
        ),
        ([0.3, 0.7], ["0.1", "1"], r"Numbers written as text\?"),
        ([0, 1], [0.5, 1.2], "`y_proba` must lie in"),
        ([0, 1, 1], [0.5, 0.2], "`y_true` has 3 rows but `y_proba` has 2"),
        ([], [], "y_true|empty|no rows"),
    ],
)
def test_bad_rows_are_refused(y, p, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tc.assess(y, p)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 5}, ValueError, r"`alpha` .* For 5%, pass 0\.05"),
        ({"confidence_level": 95}, ValueError, r"`confidence_level` .* For 95%, pass 0\.95"),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be at least 1; got 0"),
        ({"rng": "x"}, TypeError, "`rng` must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.assess(*some_rows(n=50), **arguments)


def test_columns_beside_a_sketch_are_refused():
    y, p = some_rows(n=50)
    with pytest.raises(TypeError, match="`y_proba` cannot be combined with a Sketch"):
        tc.assess(tc.Sketch().update(y, p), p)
    with pytest.raises((TypeError, ValueError), match="`y_proba`"):
        tc.assess(y)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.assess(tc.Sketch().update(p, p))


# --- the hard reviewer ------------------------------------------------------------------------------------------------

ODD = {
    "two rows": ([1, 0], [0.3, 0.3]),
    "constant": ([1, 0] * 20, [0.3] * 40),
    "all right": ([0, 1] * 20, [0.0, 1.0] * 20),
    "all wrong": ([1, 0] * 20, [0.0, 1.0] * 20),
    "tiny": ([0] * 30, [1e-300] * 30),
    "tiny, hit": ([1] + [0] * 29, [1e-300] * 30),
    "nearly 1": ([1] * 30, [1 - 1e-16] * 30),
    "one ulp apart": ([0, 1] * 15, (0.5 + 1e-16 * np.arange(30)).tolist()),
    "one class": ([1] * 30, np.linspace(0.01, 0.99, 30).tolist()),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_get_a_verdict(name):
    y, p = ODD[name]
    for result in (tc.assess(y, p, n_resamples=99, hard=True), tc.assess(tc.Sketch().update(y, p), hard=True)):
        assert result.verdict
        assert 0.0 <= result.test.pvalue <= 1.0
        assert json.dumps(result.to_dict())
        assert result._repr_html_()


def test_weights_over_eighty_orders_of_magnitude():
    y, p = some_rows(n=100)
    w = 10.0 ** np.random.default_rng(0).uniform(-40, 40, 100)
    result = tc.assess(y, p, sample_weight=w, n_resamples=99)
    assert result.n_effective < 20
    assert "weights are uneven" in result.warnings[0]
    assert np.isfinite([result.atb, result.excess, result.brier]).all()


def test_errors_that_change_sign_have_no_direction():
    """A part of a wave lies along the slope, and is many standard errors from 0, but explains little of it."""
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < np.clip(p + 0.2 * np.sin(6 * np.pi * p), 0, 1)
    assert tc.assess(y, p, n_resamples=999).kind == "miscalibrated"


def test_certain_predictions_that_are_all_right():
    result = tc.assess([0, 1] * 20, [0.0, 1.0] * 20, hard=True)
    assert result.kind == "calibrated"
    assert result.verdict == "Always right: all predictions are 0 or 1, and none is wrong (40 rows)."


def test_certain_predictions_that_are_wrong_have_a_direction():
    result = tc.assess([1] * 95 + [0] * 5, [1.0] * 100, hard=True)
    assert result.kind == "too high"
    assert "5 predictions of exactly 0 or 1" in result.warnings[0]


def test_one_certain_prediction_that_is_wrong():
    assert tc.assess([0], [1.0], hard=True).verdict == "Too high: predictions exceed the observed frequencies."


def test_many_rows_with_few_events_are_not_sketched(monkeypatch):
    monkeypatch.setattr(summarize, "TOO_MANY_TO_SORT", 10_000)
    y, p = np.zeros(20_000, int), np.full(20_000, 0.001)
    y[:40] = 1
    result = tc.assess(y, p)
    assert result.test.method == "exact"
    assert result.test.greater == pytest.approx(tc.calibration_test(y, p, rng=0).pvalue, rel=0.5, abs=0)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.assess(np.full(20_000, 0.3), np.linspace(0.1, 0.9, 20_000), sample_weight=np.full(20_000, 2.0))


@pytest.mark.parametrize("sketched", [False, True])
def test_an_assessment_survives_pickling(sketched):
    """Workers exchange results that way; the copy can still be drawn and asked for intervals."""
    y, p = some_rows(n=200)
    found = tc.assess(tc.Sketch().update(y, p)) if sketched else tc.assess(y, p)
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found
    assert copy.test.confidence_interval() == found.test.confidence_interval()
    assert type(copy._summary) is type(found._summary)
    assert "_summary" not in copy.to_dict()


def test_an_outcome_that_could_not_be_is_never_called_calibrated():
    y, p = some_rows(n=400)
    p[3], y[3] = 1.0, 0
    found = tc.assess(y, p)
    assert found.test.greater > 0.05
    assert found.kind == "miscalibrated"
    assert found.verdict.startswith(
        "Miscalibrated: 1 of 400 rows had an outcome with a predicted probability of exactly 0."
    )
    assert found.verdict.endswith(
        f"Otherwise, miscalibration is not significant ({found.test.format_p(found.test.greater)})."
    )
    assert tc.assess([0], [1.0], hard=True).kind == "too high"


def test_predictions_of_the_opposite_event_are_warned_of():
    y, p = some_rows(n=400)
    warning = "predictions and outcomes are negatively correlated: are these probabilities of the opposite event?"
    assert warning in tc.assess(y, 1 - p).warnings
    assert warning in tc.assess(tc.Sketch().update(y, 1 - p)).warnings
    assert warning in tc.assess(y, 1 - p, sample_weight=np.full(400, 7.0)).warnings
    assert warning not in tc.assess(y, p).warnings
    # Predictions that know nothing run against outcomes by chance, but not by so much.
    rng = np.random.default_rng(0)
    assert not any(warning in tc.assess(rng.permutation(y), p, n_resamples=99).warnings for _ in range(10))


def test_rows_of_rare_events_that_show_only_large_errors_do_not_see_far():
    rng = np.random.default_rng(2)
    p = rng.beta(1, 999, 40_000)
    found = tc.assess(rng.random(40_000) < p, p)
    assert found.kind == "calibrated"
    assert found.mean_proba / 3 < found.detectable.largest < 0.1
    far = found.detectable.largest > found.mean_proba / 2
    assert ("which is not much" in found.verdict) == far
    few = tc.assess(np.random.default_rng(1).random(9_000) < p[:9_000], p[:9_000], n_resamples=99)
    assert few.kind == "calibrated"
    assert few.detectable.largest > few.mean_proba / 2
    assert "which is not much" in few.verdict


# --- the ratio of rare events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "kind"), [(2.0, "too high"), (0.5, "too low")])
def test_rare_events_have_a_ratio(factor, kind):
    rng = np.random.default_rng(3)
    p = rng.beta(1.0, 99.0, 40_000)
    result = tc.assess(rng.random(40_000) < np.minimum(p / factor, 1.0), p)
    assert result.kind == kind
    found = re.search(r"It predicts (\S+) times as many events as happen \(95%: (\S+) to (\S+)\): ", result.verdict)
    ratio, low, high = map(float, found.groups())
    assert low < ratio < high
    assert low < factor < high
    bias = result.bias_interval
    assert result.mean_proba / (result.mean_proba - bias.low) == pytest.approx(low, rel=0.05)
    assert result.mean_proba / (result.mean_proba - bias.high) == pytest.approx(high, rel=0.05)


def test_rare_events_are_counted_per_thousand():
    rng = np.random.default_rng(3)
    p = rng.beta(1.0, 99.0, 40_000)
    y = (rng.random(40_000) < p / 2.0).astype(int)
    result, mirrored = tc.assess(y, p), tc.assess(1 - y, 1.0 - p)
    number = r"\d+(?:\.\d+)?"
    found = re.search(rf"error is about ({number}) per 1,000 \(95%: ({number}) to ({number})\)\.", result.verdict)
    size, low, high = (float(each) / 1000.0 for each in found.groups())
    assert size == pytest.approx(result.error.estimate, rel=0.05)
    assert result.error.low * 0.9 < low <= result.error.low < result.error.high <= high < 1.1 * result.error.high
    rates = " instead of ".join(frequencies(result.mean_proba, result.mean_true))
    assert f": {rates}.\n" in result.verdict
    assert re.search(
        rf"at least {number} per 1,000 too high between {number} and {number} per 1,000 \(", result.verdict
    )
    assert f"non-events as there are {result.verdict.split('as happen ')[1].splitlines()[0]}" in mirrored.verdict
    assert f"{1000 * result.bias_interval.estimate:+.4g} per 1,000 95%" in str(result)
    assert "per 1,000" in result.detectable.shapes
    assert tc.assess(y, p).to_dict()["bias_interval"]["estimate"] == result.bias_interval.estimate  # values stay plain


def test_a_verdict_about_rare_events_has_one_unit():
    """Also where the worst range is one of common events."""
    rng = np.random.default_rng(1)
    truth = np.where(rng.random(20_000) < 0.99, rng.beta(1, 199, 20_000), rng.uniform(0.2, 0.6, 20_000))
    p, y = np.where(truth > 0.15, 1.6 * truth, truth), (rng.random(20_000) < truth).astype(int)
    result = tc.assess(y, p)
    worst, per = result.worst, "per 1,000"
    assert worst.mean_proba > 0.3
    size, low, high = re.search(
        rf"at least (\d+\.\d) {per} too high between (\d+) and (\d+) {per} \(95% confidence\);", result.verdict
    ).groups()
    assert float(size) == math.floor(10_000 * worst.error_at_least) / 10
    assert (int(low), int(high)) == (round(1000 * worst.low), round(1000 * worst.high))
    says = (
        f"there it says {1000 * worst.mean_proba:.0f} {per} on average, and {1000 * worst.mean_true:.0f} {per} happen."
    )
    assert says in result.verdict
    assert f"+{size} {per} " in str(result)
    assert "%" not in result.verdict.replace("95%", "")
    common = tc.assess(1 - y, 1.0 - p).verdict.split("Worst place: ")[1]  # rare non-events: ranges in their own unit
    assert re.search(r"too low between 0\.\d+ and 0\.\d+ \(", common)


def test_means_of_rare_events_are_in_the_unit_of_their_error():
    """Also if they are rarer: errors are a root mean square, and may be larger than the means."""
    rng = np.random.default_rng(1)
    truth = np.where(rng.random(200_000) < 0.999, rng.beta(1, 3000, 200_000), rng.uniform(0.2, 0.6, 200_000))
    p, y = np.where(truth > 0.15, 1.6 * truth, truth), (rng.random(200_000) < truth).astype(int)
    result, per = tc.assess(y, p), "per 1,000"
    assert p.mean() < 0.001 < result.error.low
    predicted, observed = f"{1000 * p.mean():.2f} {per}", f"{1000 * y.mean():.2f} {per}"
    assert f"): {predicted} instead of {observed}." in result.verdict
    assert f"mean prediction {1000 * p.mean():.4g}, outcome {1000 * y.mean():.4g} {per}\n" in str(result)
    assert "per 100,000" not in str(result)


@pytest.mark.parametrize(("happened", "limits"), [(1, "120 times as many events as happen (95%: 21 or more)"), (0, "")])
def test_ratio_of_events_that_may_never_happen(happened, limits):
    verdict = tc.assess([1] * happened + [0] * (3000 - happened), [0.04] * 3000).verdict
    assert limits in verdict
    assert ("times as many" in verdict) == bool(limits)


def test_common_events_and_unclear_directions_have_no_ratio():
    assert "times as many" not in tc.assess(*some_rows("too high")).verdict
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 99.0, 3000)
    assert "times as many" not in tc.assess(rng.random(3000) < p, p).verdict


@pytest.mark.simulation
@pytest.mark.parametrize("factor", [1, 2])
def test_sampled_non_events_need_converted_predictions_not_weights(factor):
    """The page on rare events: weights by the outcome hide errors and look too good; converted predictions do not."""
    rng, rate, kinds = np.random.default_rng(0), 0.05, {"weighted": [], "converted": []}
    for _ in range(30):
        truth = rng.beta(1, 199, 50_000)
        y = rng.random(50_000) < truth
        kept = y | (rng.random(50_000) < rate)
        y, p = y[kept], factor * truth[kept]
        kinds["weighted"].append(tc.assess(y, p, sample_weight=np.where(y, 1, 1 / rate), n_resamples=499).kind)
        kinds["converted"].append(tc.assess(y, p / (p + (1 - p) * rate), n_resamples=499).kind)
    if factor == 1:
        assert kinds["weighted"].count("too good") >= 28
        assert kinds["converted"].count("calibrated") >= 24
    else:
        assert sum(kind in ("unclear", "calibrated") for kind in kinds["weighted"]) >= 28
        assert kinds["converted"].count("too high") >= 28
