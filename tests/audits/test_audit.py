"""The audit against sums over all outcomes, and against itself by other methods."""

import io
import itertools
import math
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from oracles import measures as oracles

import truthcal as tc
from truthcal.audits import audit as audit_module
from truthcal.audits import expected_score as expected_score_module
from truthcal.audits import stages as stages_module
from truthcal.audits.audit import audit, audit_on
from truthcal.audits.expected_score import expected_score
from truthcal.core import parallel
from truthcal.core import progress as progress_module
from truthcal.core.progress import progress
from truthcal.measures.registry import MEASURES

TRUTHFUL = [name for name, measure in MEASURES.items() if measure.truthful]
ROUNDING = 1e-12
TIED = {"report": [0.25, 0.5, 0.25, 0.875, 0.5, 0.25], "truth": [0.125, 0.5, 0.375, 0.75, 0.25, 1.0]}
WEIGHTS = [1, 2, 1, 3, 1, 2]


def brier(y, p):
    return float(np.mean((y - p) ** 2))


# --- lying pays under all measures but the truthful ones --------------------------------------------------------------


def test_best_lie_gains_nothing_exactly_where_the_table_says_truthful():
    result = audit([0.25, 0.75], list(MEASURES))
    for name, measure in MEASURES.items():
        row = result[name]
        assert row.truthful == measure.truthful
        assert row.pays == (not measure.truthful), name
        if measure.truthful:
            assert abs(row.gain) <= ROUNDING
            assert row.verdict == "truthful: lying never pays (proved)"
        else:
            assert row.gain > max(1e-3, 2 * (row.standard_error + np.nan_to_num(measure.tolerance)))
            assert row.verdict.startswith('lying pays; the lie "')


@pytest.mark.parametrize("events", [1, 3, 7, 14, 60, 700])
def test_no_lie_gains_under_truthful_measures(events):
    truth = np.random.default_rng(events).random(events)
    own = {**{name: name for name in TRUTHFUL}, "bins": tc.FixedBins([0.3, 0.6]), "quantiles": tc.QuantileBins(1)}
    result = audit(truth, own)
    for row in result.rows:
        assert row.method == "decomposition"
        assert abs(row.gain) <= ROUNDING
        assert min(row.scores.values()) >= row.honest - ROUNDING
        assert (row.truthful, row.pays, row.standard_error) == (True, False, 0.0)


@pytest.mark.parametrize("name", ["unbinned_ece", "smcal", "ks_ce", "ece", "laplace_kernel_ce", "atb_l1"])
@pytest.mark.parametrize("events", [3, 12, 300])
def test_lying_pays_for_more_events(name, events):
    row = audit(np.random.default_rng(1).random(events), [name])[name]
    assert row.pays
    assert row.gain > 3 * row.standard_error
    assert row.gain == row.honest - row.scores[row.best_lie] == row.honest - min(row.scores.values())
    assert row.relative_gain == row.gain / row.honest


def test_searched_lie_is_at_least_as_good_as_all_others_where_scores_are_exact():
    for truth in ([0.3], [0.1, 0.4, 0.6], [0.2, 0.3, 0.5, 0.55, 0.9, 0.95]):
        for row in audit(truth, ["smcal", "ks_ce", "unbinned_ece", "decision_loss"]).rows:
            assert row.scores["searched"] <= min([row.honest, *row.scores.values()]) + ROUNDING
            assert row.gain >= 0


def test_searched_lie_is_near_the_best_on_a_grid():
    truth = [0.1, 0.6]
    grid = np.linspace(0, 1, 21)
    for name in ("smcal", "ks_ce", "u_calibration", "decision_loss"):
        best = min(expected_score(report, truth, name).value for report in itertools.product(grid, grid))
        row = audit(truth, [name])[name]
        assert row.scores["searched"] <= best + 0.01
        assert expected_score(row.best_report, truth, name).value == pytest.approx(row.honest - row.gain, abs=1e-15)


def test_brier_score_is_proper_so_no_lie_is_found():
    for events in (2, 40):
        row = audit(np.random.default_rng(2).random(events), {"brier": brier})["brier"]
        assert (row.pays, row.truthful, row.verdict) == (False, False, "no lie found that pays")
        assert row.gain <= 3 * row.standard_error + ROUNDING


# --- expected scores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_enumeration_is_the_sum_over_all_outcomes(name, weight):
    report, truth = TIED["report"], TIED["truth"]
    weighted = {} if weight is None else {"sample_weight": weight}
    if name in ("smece", "distcal") or name.startswith("subsampled"):  # milliseconds each
        report, truth = report[:4], truth[:4]
        weighted = {key: values[:4] for key, values in weighted.items()}
    function = MEASURES[name].function
    expected = oracles.expectation(truth, lambda y: function(y, report, **weighted))
    score = expected_score(report, truth, name, **weighted)
    assert score.method == "enumeration"
    assert score.value == pytest.approx(expected, rel=1e-9, abs=2 * np.nan_to_num(MEASURES[name].tolerance) + 1e-15)
    assert score.probabilities.sum() == pytest.approx(1.0, abs=1e-15)


def test_enumeration_lists_outcomes_in_the_order_of_rows():
    score = expected_score([0.9, 0.1, 0.5], [0.5, 0.5, 0.25], brier)
    assert score.outcomes.tolist() == [list(y) for y in itertools.product((0, 1), repeat=3)]
    for y, value in zip(score.outcomes, score.values, strict=True):
        assert value == brier(y.astype(float), np.array([0.9, 0.1, 0.5]))
    named = expected_score([0.9, 0.1, 0.5], [0.5, 0.5, 0.25], "smcal")
    for y, value in zip(named.outcomes, named.values, strict=True):
        assert value == pytest.approx(tc.smcal(y, [0.9, 0.1, 0.5]), abs=1e-15)


def test_outcomes_that_cannot_happen_are_left_out():
    score = expected_score([0.5, 0.5, 0.5], [0.0, 0.25, 1.0], "atb")
    assert score.outcomes.tolist() == [[0, 0, 1], [0, 1, 1]]
    assert score.probabilities.tolist() == [0.75, 0.25]


FRACTIONAL = [0.3, 2.5, 1, 0, 4, 1]


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        (name, weight)
        for name in TRUTHFUL
        for weight in (None, WEIGHTS, FRACTIONAL)
        if weight is None or not MEASURES[name].whole_weights  # there weights are repetitions, see below
    ],
)
def test_decomposition_equals_enumeration(name, weight, monkeypatch):
    exact = expected_score(**TIED, measure=name, sample_weight=weight)
    monkeypatch.setattr(expected_score_module, "MAX_ENUMERATED", 0)
    closed = expected_score(**TIED, measure=name, sample_weight=weight)
    assert (exact.method, closed.method) == ("enumeration", "decomposition")
    assert closed.value == pytest.approx(exact.value, rel=1e-12)
    assert (closed.standard_error, closed.outcomes) == (0.0, None)


def test_decomposition_does_not_hold_for_weights_that_repeat_so_they_are_drawn(monkeypatch):
    exact = expected_score(**TIED, measure="quantile_ece", sample_weight=WEIGHTS)
    binned = expected_score(**TIED, measure=tc.QuantileBins(2), sample_weight=WEIGHTS)
    assert (exact.method, binned.method) == ("enumeration", "enumeration")
    assert 2 * binned.value == pytest.approx(exact.value, rel=1e-12)  # 10 rows: round(10^(1/3)) = 2 bins
    monkeypatch.setattr(expected_score_module, "MAX_ENUMERATED", 0)
    drawn = expected_score(**TIED, measure="quantile_ece", sample_weight=WEIGHTS)
    assert drawn.method == "draws"
    assert abs(drawn.value - exact.value) <= 4 * drawn.standard_error


@pytest.mark.parametrize("binning", [tc.RandomThreshold(), tc.ShiftedGrid(0.3), tc.QuantileBins(2), tc.Multiscale()])
def test_binning_has_its_expected_ubse_at_any_size(binning):
    rng = np.random.default_rng(3)
    for events in (1, 5, 20, 2000):
        report, truth = rng.random((2, max(events, 2)))
        score = expected_score(report, truth, binning)
        assert score.value == pytest.approx(tc.expected_ubse(report, truth, binning), rel=1e-12)
        assert (score.method, score.measure) == ("decomposition", repr(binning))


@pytest.mark.parametrize("name", ["unbinned_ece", "smcal", "ece", "ks_ce", "smece", "intcal"])
@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_draws_agree_with_enumeration(name, weight, monkeypatch):
    exact = expected_score(**TIED, measure=name, sample_weight=weight)
    monkeypatch.setattr(expected_score_module, "MAX_ENUMERATED", 0)
    drawn = expected_score(**TIED, measure=name, sample_weight=weight, n_resamples=400, rng=5)
    assert (drawn.method, drawn.n_resamples) == ("draws", 400)
    assert 0 < drawn.standard_error < 0.02
    assert abs(drawn.value - exact.value) <= 4 * drawn.standard_error
    sd = math.sqrt(exact.probabilities @ (exact.values - exact.value) ** 2)
    assert drawn.standard_error == pytest.approx(sd / 20, rel=0.3)


def test_draws_do_not_depend_on_the_number_of_cores(monkeypatch):
    report, truth = np.random.default_rng(0).random((2, 40))
    values = []
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 1)
    for threads in ("1", "3"):
        monkeypatch.setenv("TRUTHCAL_NUM_THREADS", threads)
        values.append(expected_score(report, truth, "smece", n_resamples=50).value)
        values.append(audit(truth, ["smcal"], n_resamples=50)["smcal"].gain)
    assert values[:2] == values[2:]


def test_seed_decides_the_draws():
    truth = np.linspace(0.1, 0.9, 30)
    one, same, other = (expected_score(truth, truth, "smcal", n_resamples=50, rng=rng).value for rng in (0, 0, 1))
    assert one == same != other
    assert expected_score(truth, truth, "smcal", n_resamples=50, rng=np.random.default_rng(0)).value == one


def test_own_function_gets_outcomes_and_report_in_the_order_of_rows():
    seen = []

    def own(y, p):
        seen.append((y.tolist(), p.tolist()))
        assert y.dtype == np.int64
        assert not y.flags.writeable
        assert not p.flags.writeable
        return np.float32(0.5)

    score = expected_score([0.9, 0.2], [0.5, 0.25], own)
    assert seen == [([a, b], [0.9, 0.2]) for a in (0, 1) for b in (0, 1)]
    assert (score.value, score.measure) == (0.5, "own")
    assert expected_score(np.full(20, 0.5), np.full(20, 0.5), own).method == "draws"


def test_function_of_truthcal_is_known_by_its_row():
    score = expected_score([0.2] * 20, [0.3] * 20, tc.atb)
    assert (score.method, score.measure) == ("decomposition", "atb")
    assert audit([0.25, 0.75], {"mine": tc.multiscale_atb})["mine"].truthful


def test_expected_score_prints_one_line():
    truth = [0.25, 0.75]
    score = expected_score(truth, truth)
    assert str(score) == repr(score) == "expected atb 0.09375 (exact: mean over all 4 outcomes)"
    assert float(score) == 0.09375
    many = np.linspace(0, 1, 20)
    assert str(expected_score(many, many)).endswith(
        " (exact: sum of the bias of the report and the noise of the outcomes)"
    )
    drawn = expected_score(many, many, "smcal", n_resamples=1000)
    assert re.fullmatch(r"expected smcal 0\.0\d+, standard error 0\.00\d+ from 1,000 simulations", str(drawn))
    assert drawn.to_dict() == {
        "measure": "smcal",
        "value": drawn.value,
        "standard_error": drawn.standard_error,
        "method": "draws",
        "n_resamples": 1000,
        "outcomes": None,
        "probabilities": None,
        "values": None,
        "n_rows": None,
    }


# --- the audit --------------------------------------------------------------------------------------------------------


def test_lies_are_what_they_are_called():
    truth = np.array([0.9, 0.0, 1.0, 0.25, 0.32])
    seen = {}
    names = ["constant mean", "shrink", "sharpen", "round to 0.1", "merge neighbours"]
    for name in names:
        reports = []

        def record(y, p, reports=reports):
            reports.append(p.tolist())
            return 0.0

        audit(truth, {"record": record}, strategies=[name])
        seen[name] = reports[-1]
    mean = truth.mean()
    odds = np.array([9.0, 1 / 3, 0.32 / 0.68]) ** 1.5
    assert seen["constant mean"] == [mean] * 5
    assert seen["shrink"] == pytest.approx((truth + mean) / 2)
    assert seen["sharpen"] == pytest.approx([odds[0] / (1 + odds[0]), 0, 1, *(odds[1:] / (1 + odds[1:]))])
    assert seen["round to 0.1"] == [0.9, 0.0, 1.0, 0.2, 0.3]
    assert seen["merge neighbours"] == pytest.approx([0.61, 0.125, 1.0, 0.125, 0.61])


def test_all_reports_are_scored_on_the_same_draws_and_a_search_uses_others():
    calls = []

    def record(y, p):
        calls.append((p.tobytes(), y.tobytes()))
        return float(np.abs(p - y).mean())

    truth = np.linspace(0.1, 0.9, 30)
    audit(truth, {"record": record}, n_resamples=40)
    honest = [y for p, y in calls if p == truth.tobytes()]
    scored, searching = set(honest[:40]), {y for _, y in calls[240:-40]}
    assert len(scored) == 40
    for k in range(6):  # the truth and five lies
        assert {y for _, y in calls[40 * k : 40 * (k + 1)]} == scored
    assert {y for _, y in calls[-40:]} == scored
    assert not scored & searching


def test_standard_error_of_a_gain_is_paired():
    truth = np.random.default_rng(4).random(200)
    row = audit(truth, ["smcal"], strategies=["round to 0.1"])["smcal"]
    alone = expected_score(truth, truth, "smcal", n_resamples=200)
    assert 0 < row.standard_error < alone.standard_error / 2
    same = audit(truth, ["smcal"], strategies={"honest too": lambda truth: truth.copy()})["smcal"]
    assert (same.gain, same.standard_error, same.verdict) == (0.0, 0.0, "no lie found that pays")


def test_drawn_gain_agrees_with_the_exact_one(monkeypatch):
    truth = [0.2, 0.3, 0.5, 0.6, 0.9]
    exact = audit(truth, ["smcal", "unbinned_ece", "ks_ce"])
    monkeypatch.setattr(stages_module, "MAX_ENUMERATED", 0)
    drawn = audit(truth, ["smcal", "unbinned_ece", "ks_ce"], n_resamples=1000)
    for row in drawn.rows:
        one = exact[row.measure]
        assert (one.method, row.method) == ("enumeration", "draws")
        for name in ("constant mean", "shrink", "sharpen"):
            assert row.honest - row.scores[name] == pytest.approx(one.honest - one.scores[name], abs=0.02)


def test_own_strategies():
    strategies = {"always 0.4": lambda truth: [0.4] * len(truth), "flat": "constant mean", "best": "searched"}
    result = audit([0.25, 0.75], ["smcal"], strategies=strategies)
    assert result.lies == ("always 0.4", "flat", "best")
    row = result["smcal"]
    assert row.scores["always 0.4"] == expected_score([0.4, 0.4], [0.25, 0.75], "smcal").value
    assert row.scores["flat"] == 0.1875
    costly = audit([0.25, 0.75], ["atb"], strategies={"no": lambda truth: 1 - truth})["atb"]
    assert costly.gain < 0


def test_events_too_rare_for_the_draws_are_not_judged():
    """No positive is drawn, so that 0 looks better than the truth even under the Brier score."""
    result = audit(np.full(20, 1e-5), {"brier": brier}, strategies={"never": np.zeros_like})
    row = result["brier"]
    assert row.gain > 0
    assert (row.pays, row.undecided) == (False, True)
    assert row.standard_error < 1e-20
    assert row.verdict == "cannot tell: too few simulations for such rare events"
    assert re.search(r"The result is unclear under brier: .* Increase\s+n_resamples\.", str(result), re.DOTALL)
    assert not audit(np.full(20, 0.02), {"brier": brier}, strategies={"never": np.zeros_like}, n_resamples=400)[
        "brier"
    ].pays


def test_truth_that_is_certain_leaves_nothing_to_gain():
    result = audit([0.0, 1.0, 1.0])
    for row in result.rows:
        assert row.honest == pytest.approx(0.0, abs=1e-6)  # smece is found to 1e-7
        assert not row.pays
    assert audit([0.0, 1.0], ["unbinned_ece"])["unbinned_ece"].relative_gain == 0.0


def test_single_event():
    result = audit([0.3], ["atb", "smcal", "unbinned_ece"])
    assert str(result).startswith("1 event with true probability 0.3.")
    assert result["unbinned_ece"].best_report.tolist() != [
        0.3
    ]  # the chance itself has an error in all outcomes; 0 in most


# --- own predictions --------------------------------------------------------------------------------------------------


def test_audit_on_few_predictions_is_an_audit():
    p = np.random.default_rng(0).beta(2, 5, 50)
    one, two = audit_on(p, ["atb", "smcal"]), audit(p, ["atb", "smcal"])
    assert one.table() == two.table()
    assert str(one).startswith("True probabilities: your predictions. ")


def test_audit_on_many_predictions_takes_evenly_spaced_ones():
    p = np.random.default_rng(0).permutation(np.arange(10_000) / 10_000)
    result = audit_on(p, ["atb", "ece"], strategies=["constant mean"])
    assert str(result).startswith("True probabilities: 500 of your 10,000 predictions, evenly spaced. ")
    np.testing.assert_allclose(result.truth, np.arange(500) / 500 + 0.001, atol=1e-12)
    assert result["ece"].pays
    assert len(audit_on(p, ["atb"], max_rows=7).truth) == 7


# --- how it prints ----------------------------------------------------------------------------------------------------

PRINTED = """\
2 events with true probabilities 0.25 and 0.75. A forecaster who knows the truth either reports it (honest) or
lies. The table shows the expected score of each report; lower is better, and * marks the best lie if it pays,
the truth if no lie was found that does.

                  constant                    round       merge
measure   honest      mean  shrink  sharpen  to 0.1  neighbours  searched  does lying pay?
------------------------------------------------------------------------------------------
atb      0.09375*  0.09375  0.0957  0.09641  0.0945     0.09375   0.09375  never (proved)
smcal     0.2344    0.1875* 0.2188    0.236  0.2363      0.1875    0.1875  yes: 20% better
brier     0.1875*     0.25  0.2031   0.1954    0.19        0.25    0.1875  no lie found

Lying pays under smcal: reporting 0.5 and 0.5 scores 20% better than the truth.
It never pays under atb (proved for any truth and any lie).
No lie was found that pays under brier; this does not prove that none exists.
All scores are exact."""


def two_points():
    return audit([0.25, 0.75], {"atb": "atb", "smcal": "smcal", "brier": brier})


def test_star_marks_the_truth_if_the_gain_of_a_lie_may_be_chance():
    result = audit(np.linspace(0.2, 2, 300) * 0.002, ["ece"], strategies=["round to 0.1"])
    row = result["ece"]
    assert row.scores["round to 0.1"] < row.honest
    assert not row.pays
    text = " ".join(str(result).split())
    assert "* marks the best lie if it pays, the truth if no lie was found that does." in text
    assert f"{row.honest:.4g}* {row.scores['round to 0.1']:.4g} no lie found" in text


def test_audit_prints_the_story():
    assert str(two_points()) == repr(two_points()) == PRINTED


@pytest.mark.parametrize("events", [2, 20])
def test_printed_audit_fits_and_says_how_it_was_done(events):
    truth = np.random.default_rng(0).random(events)
    text = str(audit(truth, [name for name in audit_module.DEFAULT_MEASURES if name != "smece"], n_resamples=20))
    assert max(map(len, text.splitlines())) <= 110
    assert ("All scores are exact." in text) == (events == 2)
    assert ("means over 20 simulations" in text) == (events == 20)


def test_table_with_many_lies_shows_the_best_alone():
    strategies = {f"a lie with a long name, number {k}": lambda truth, k=k: truth**k for k in range(2, 9)}
    text = str(audit([0.25, 0.75], ["atb", "unbinned_ece"], strategies=strategies))
    assert max(map(len, text.splitlines())) <= 110
    assert re.search(r"^measure +honest +best lie +its score +does lying pay\?$", text, re.MULTILINE)


def test_audit_as_html_is_escaped():
    page = audit([0.25, 0.75], {"<b>": "smcal"}, strategies={"<i>": lambda truth: truth})._repr_html_()
    assert page.count("<tr>") == 2
    assert "&lt;b&gt;" in page
    assert "&lt;i&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_audit_is_a_mapping_and_makes_columns():
    result = two_points()
    assert (list(result), len(result), "smcal" in result, "unbinned_ece" in result) == (
        ["atb", "smcal", "brier"],
        3,
        True,
        False,
    )
    assert dict(result)["atb"] is result.rows[0]
    frame = result.frame()
    assert frame["measure"].tolist() == ["atb", "smcal", "brier"]
    assert frame["constant mean"].tolist() == [0.09375, 0.1875, 0.25]
    assert frame["method"].tolist() == ["decomposition", "enumeration", "enumeration"]
    assert frame["verdict"][1] == 'lying pays; the lie "constant mean" scores 20% better'
    assert str(result["smcal"]) == 'smcal: lying pays; the lie "constant mean" scores 20% better.'
    with pytest.raises(KeyError, match="'unbinned_ece' is not in this audit; it has atb, smcal, brier"):
        result["unbinned_ece"]


def test_gain_without_a_share_is_printed_as_it_is():
    row = audit([0.5], {"own": lambda y, p: 0.0 if p[0] == 0.5 else -0.25})["own"]
    assert math.isnan(row.relative_gain)
    assert row.verdict.endswith("scores 0.25 better")


def signed_bias(y, p):
    return float(np.mean(p - y))


@pytest.mark.parametrize("truth", [[0.1, 0.2, 0.7], np.linspace(0.1, 0.7, 40)])
def test_gain_over_an_honest_score_of_zero_is_no_percentage(truth):
    """The honest bias is 0 up to rounding (3 events) or up to the error of the draws (40)."""
    result = audit(truth, {"bias": signed_bias, "off by 1": lambda y, p: signed_bias(y, p) + 0.01})
    row = result["bias"]
    assert row.pays
    assert 0.0 < abs(row.honest) <= 3 * 0.5 / math.sqrt(200 * 40)
    assert math.isnan(row.relative_gain)
    assert row.answer == f"yes: {row.gain:.3g} better"
    assert math.isnan(result["off by 1"].relative_gain)  # 0.01 and below 0: a share of 0.01 would say nothing
    assert "%" not in str(result)
    assert "Lying pays under bias and off by 1. Under bias: " in str(result)


# --- errors -----------------------------------------------------------------------------------------------------------

HALF = [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: expected_score(HALF, [0.5]), ValueError, "`report` has 2 rows but `truth` has 1"),
        (lambda: expected_score([0.5, 50], HALF), ValueError, "`report` must lie in \\[0, 1\\]; found 50.0 at row 1"),
        (
            lambda: expected_score(HALF, HALF, "auc"),
            ValueError,
            "`measure` must be one of 'atb', .*'pvalue'.*or a Binning; or a function.* Got 'auc'",
        ),
        (lambda: expected_score(HALF, HALF, 3), ValueError, "`measure` must be one of .* Got 3"),
        (
            lambda: expected_score(HALF, HALF, tc.QuantileBins),
            TypeError,
            "`measure` got the class QuantileBins; pass an instance, QuantileBins\\(\\.\\.\\.\\)",
        ),
        (
            lambda: expected_score(HALF, HALF, brier, sample_weight=[1, 2]),
            ValueError,
            "`sample_weight` cannot be given with a function as `measure`.*inside that function",
        ),
        (
            lambda: expected_score(HALF, HALF, lambda y, p: math.nan),
            ValueError,
            "the measure '<lambda>' must return a finite number for all outcomes; it returned nan for y_true = \\[0, 0\\]. Return a number",
        ),
        (
            lambda: expected_score(HALF, HALF, lambda y, p: "0.5"),
            ValueError,
            "must return a finite number for all outcomes; it returned '0.5'",
        ),
        (
            lambda: expected_score(HALF, HALF, lambda y, p: p),
            ValueError,
            "must return a finite number for all outcomes; it returned array",
        ),
        (lambda: expected_score(HALF, HALF, n_resamples=1), ValueError, "`n_resamples` must be at least 2; got 1"),
        (
            lambda: expected_score(HALF, HALF, rng="x"),
            TypeError,
            "`rng` must be a whole number, a numpy Generator or None; got 'x'",
        ),
        (
            lambda: expected_score(HALF, HALF, "quantile_ece", sample_weight=[0.5, 1]),
            ValueError,
            "`sample_weight` must contain whole numbers",
        ),
        (
            lambda: expected_score(HALF, HALF, sample_weight=[1e-200, 1]),
            ValueError,
            "`sample_weight` has too wide a range",
        ),
        (lambda: audit([]), ValueError, "`truth` is empty"),
        (lambda: audit([0.5, math.nan]), ValueError, "`truth` has a missing value \\(nan\\) at row 1"),
        (lambda: audit(HALF, ["atb", "x"]), ValueError, "`measures` must be one of 'atb', .* Got 'x'"),
        (
            lambda: audit(HALF, []),
            ValueError,
            "`measures` is empty; at least one is needed, for example \\['atb', 'smcal'\\]",
        ),
        (lambda: audit(HALF, 3), TypeError, "`measures` must be a list of names or a dict, such as .*; got 3"),
        (
            lambda: audit(HALF, [brier]),
            TypeError,
            "`measures` must be a list of names or a dict, such as .*; got <function brier.* as a name",
        ),
        (lambda: audit(HALF, strategies={}), ValueError, "`strategies` is empty"),
        (
            lambda: audit(HALF, strategies=["lie"]),
            ValueError,
            "`strategies` must be one of 'constant mean', .*'searched'; got 'lie'",
        ),
        (lambda: audit(HALF, strategies={"a": 3}), ValueError, "`strategies` must be one of .*; got 3"),
        (
            lambda: audit(HALF, strategies={"honest": "shrink"}),
            ValueError,
            "`strategies` must not name a lie 'honest': an audit has a column of that name. Rename it",
        ),
        (
            lambda: audit(HALF, strategies={"a": lambda t: [0.5]}),
            ValueError,
            "`strategies\\['a'\\]\\(truth\\)` has 1 rows but `truth` has 2",
        ),
        (
            lambda: audit(HALF, strategies={"a": lambda t: [0.5, math.nan]}),
            ValueError,
            "`strategies\\['a'\\]\\(truth\\)` has a missing value",
        ),
        (
            lambda: audit(HALF, strategies={"a": lambda t: t + 1}),
            ValueError,
            "`strategies\\['a'\\]\\(truth\\)` must lie in \\[0, 1\\]; found 1.5 at row 0",
        ),
        (
            lambda: audit(HALF, strategies={"a": lambda t: None}),
            ValueError,
            "`strategies\\['a'\\]\\(truth\\)` must be one-dimensional; got NoneType",
        ),
        (lambda: audit(HALF, n_resamples=19), ValueError, "`n_resamples` must be at least 20; got 19"),
        (lambda: audit(HALF, n_resamples=2.5), TypeError, "`n_resamples` must be a whole number; got 2.5"),
        (lambda: audit(HALF, stage="later"), ValueError, "`stage` must be one of 'interim', 'ex_ante'; got 'later'"),
        (lambda: audit(HALF, n_rows=3), ValueError, "`n_rows` is the size of a sample in the stage 'ex_ante'; got 3"),
        (lambda: audit(HALF, stage="ex_ante", n_rows=0), ValueError, "`n_rows` must be at least 1; got 0"),
        (
            lambda: audit([0.5], ["excess"]),
            ValueError,
            "the excess of ATB needs at least two events; do not audit it with one",
        ),
        (lambda: audit_on([2.0]), ValueError, "`y_proba` must lie in \\[0, 1\\]; found 2.0"),
        (lambda: audit_on(HALF, max_rows=0), ValueError, "`max_rows` must be at least 1; got 0"),
    ],
)
def test_errors_name_the_argument_and_the_cure(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- the progress line ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves, and a terminal that is wide enough."""
    monkeypatch.setenv("COLUMNS", "100")
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    return now


def test_progress_fits_a_narrow_terminal(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "20")
    with progress(10, "work") as bar:
        clock[0] = 2.0
        bar.advance(5)
        assert screen.getvalue() == "\rwork [############."
    assert screen.getvalue().endswith("\r" + " " * 19 + "\r")


def test_progress_is_drawn_on_a_terminal_after_a_second_and_wiped(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress(10, "work") as bar:
        clock[0] = 0.9
        bar.advance(3)
        assert screen.getvalue() == ""
        clock[0] = 2.0
        bar.advance(2)
        line = "work [############............]  50%, 2 s so far, 2 s left"
        assert screen.getvalue() == "\r" + line
        clock[0] = 2.05  # too soon to draw again
        bar.advance()
        assert screen.getvalue() == "\r" + line
        clock[0] = 100.0
        bar.advance(100)  # the total was an estimate
        assert "100%, 1:40 min so far, 0 s left" in screen.getvalue()
        clock[0] = 7300.0
        bar.advance(0)
        assert "2:01 h so far" in screen.getvalue()
        drawn = len(screen.getvalue().split("\r")[-1].rstrip())
    assert screen.getvalue().endswith("\r" + " " * drawn + "\r")
    assert screen.getvalue().count("\n") == 0


@pytest.mark.parametrize("stream", [None, io.StringIO(), "closed"])
def test_progress_is_silent_where_nobody_watches(monkeypatch, clock, stream):
    if stream == "closed":
        stream = Terminal()
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    with progress(10, "work") as bar:
        clock[0] = 5.0
        bar.advance()
    assert stream is None or stream.closed or stream.getvalue() == ""


def test_progress_survives_a_terminal_that_goes_away(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress(10, "work") as bar:
        clock[0] = 5.0
        bar.advance()
        screen.close()
        clock[0] = 6.0
        bar.advance()
    assert bar.done == 2


def test_progress_counts_from_many_threads_and_iterates(monkeypatch):
    bar = progress(4000, "work")
    threads = [threading.Thread(target=lambda: [bar.advance() for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bar.done == 4000
    assert list(progress(3, "work")) == [0, 1, 2]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_examples_print_what_the_page_shows(capsys):
    page = (Path(__file__).parents[2] / "docs" / "guide" / "auditing.md").read_text(encoding="utf-8")
    pairs = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(pairs) == page.count("```python") == 6
    for code, shown in pairs:
        exec(code, {})
        assert capsys.readouterr().out == shown
