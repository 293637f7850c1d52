"""Best responses against all reports on a grid and all policies of tiny sequences, and against theorems."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import audits as oracles
from oracles import measures, more_measures
from support.simulation import REPEATS

import truthcal as tc
from truthcal.audits import batch_response, lookahead
from truthcal.audits import best_response as module
from truthcal.audits.audited_measure import resolve_measure
from truthcal.audits.batch_response import BatchScores, ReportSearch
from truthcal.audits.best_response import best_response
from truthcal.audits.lookahead import LookaheadPolicy, score_sequences
from truthcal.audits.random_half import with_coins
from truthcal.audits.sequential import _StateSpace, count_states, optimal_policy
from truthcal.core.progress import progress

ORACLES = {
    "atb": measures.atb,
    "smcal": more_measures.smcal,
    "step_ce": more_measures.ks_ce,
    "unbinned_ece": more_measures.unbinned_ece,
    "subsampled_smcal": more_measures.subsampled_smcal,
    "subsampled_step_ce": more_measures.subsampled_step_ce,
}
TRUTHFUL = ["atb", "multiscale_atb", "quantile_ece", "shifted_grid_ubse", "brier"]
PROBABILITIES = st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=4)


@pytest.fixture
def quick(monkeypatch):
    """A search that tries few reports and few policies."""
    monkeypatch.setattr(batch_response, "_MAX_TRIED", 60)
    monkeypatch.setattr(lookahead, "_CHOICES", {"reach": (1, 4), "penalty": (1.0, 4.0)})


def search(truth, name, n_tried=100):
    """Best report that a search finds, with its exact expected score and that of the truth."""
    measure = resolve_measure(name, "measure")
    scores = BatchScores(measure, np.array(truth), 20, np.random.default_rng(0))
    with progress(1, "search") as bar:
        found = ReportSearch(scores.truth, lambda r: scores.search_loss(r, bar), 0.0, n_tried).run()[0]
        return found, scores.score(found, bar).value, scores.score(scores.truth, bar).value


# --- batch ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRUTHFUL)
@settings(max_examples=3)
@given(truth=PROBABILITIES)
def test_no_report_gains_under_truthful_measures_in_a_batch(name, truth):
    """Theorem 3.3 of the paper: even a search without a margin finds nothing better than the truth."""
    _, best, honest = search(truth, name)
    assert best >= honest - 1e-12


def test_result_of_a_truthful_measure_is_the_truth(quick):
    result = best_response([0.25, 0.5, 1.0], "atb")
    assert (result.gain, result.ratio, result.pays, result.truthful) == (0.0, 1.0, False, True)
    np.testing.assert_array_equal(result.report, [0.25, 0.5, 1.0])


@pytest.mark.parametrize(
    ("name", "truth"), [("smcal", (0.1, 0.6)), ("step_ce", (0.5, 0.5)), ("u_calibration", (0.1, 0.6))]
)
def test_report_is_at_least_as_good_as_all_on_a_grid(name, truth):
    reports = itertools.product(np.linspace(0, 1, 11), repeat=2)
    on_grid = min(tc.expected_score(report, truth, name).value for report in reports)
    result = best_response(truth, name)
    assert result.best <= on_grid + 1e-12
    assert result.best == pytest.approx(tc.expected_score(result.report, truth, name).value, abs=1e-12)
    assert result.honest == pytest.approx(tc.expected_score(truth, truth, name).value, abs=1e-12)
    assert result.gain == result.honest - result.best >= 0.0
    assert (result.method, result.standard_error, result.n_resamples) == ("enumeration", 0.0, 0)


@pytest.mark.parametrize("name", ["smcal", "step_ce"])
def test_report_is_at_least_as_good_as_those_of_an_audit(name, quick):
    truth = [0.1, 0.15, 0.5, 0.55, 0.8]
    row = tc.audit(truth, [name])[name]
    result = best_response(truth, name)
    assert result.best <= min(row.scores.values()) + 1e-12  # the audit searches, too
    assert result.honest == pytest.approx(row.honest, abs=1e-15)
    assert result.pays


@pytest.mark.parametrize("name", ["subsampled_smcal", "subsampled_step_ce"])
def test_coins_give_the_expected_subsampled_error(name):
    truth, report = np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.25, 0.5])
    scores = BatchScores(resolve_measure(name, "measure"), truth, 20, np.random.default_rng(0))
    with progress(1, "") as bar:
        value = scores.score(report, bar)
    expected = measures.expectation(truth, lambda y: float(ORACLES[name](y, report)))
    assert value.value == pytest.approx(expected, abs=1e-14)
    assert len(value.draws) == 0


def test_scores_of_many_events_are_simulated_on_new_outcomes(quick):
    truth = np.linspace(0.1, 0.9, 20)
    result = best_response(truth, "smcal", n_resamples=200)
    assert (result.method, result.n_resamples, result.pays) == ("draws", 200, True)
    assert result.standard_error > 0
    again = tc.expected_score(result.report, truth, "smcal", n_resamples=4000)
    assert result.best == pytest.approx(again.value, abs=0.01)
    assert str(result).splitlines()[0].endswith("(200 simulations).")
    assert "Lying gains about" in str(result)


def test_rare_events_do_not_pay_with_few_draws(quick):
    """A standard error from draws that hardly contain an event says nothing."""
    truth = np.linspace(1e-5, 2e-5, 15)
    result = best_response(truth, "unbinned_ece", n_resamples=50)
    assert not result.pays
    assert str(result).endswith(
        "The difference may be chance: no gain is shown. This does not prove that there is none."
    )


# --- in sequence: dynamic programming ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    ("truth", "grid"), [((0.5, 0.5), (0.25, 0.5, 0.75)), ((0.25, 0.75), (0.25, 0.5, 0.75)), ((0.5,) * 3, (0.25, 0.5))]
)
def test_best_of_all_policies(name, truth, grid):
    def value(y, p):
        return float(ORACLES[name](y, p))

    result = best_response(truth, name, setting="sequential", grid=grid)
    assert result.best == pytest.approx(oracles.best_policy(truth, grid, value), abs=1e-12)
    assert result.honest == pytest.approx(measures.expectation(truth, lambda y: value(y, truth)), abs=1e-12)
    policy = {tuple(map(int, past)): report for past, report in result.policy.items()}
    assert result.best == pytest.approx(oracles.expected_of_policy(truth, policy, value), abs=1e-12)
    assert (result.method, result.standard_error) == ("dynamic programming", 0.0)
    np.testing.assert_array_equal(result.grid, grid)


def test_policy_of_a_longer_sequence_has_the_expected_value_stated():
    truth = (0.25, 0.5, 0.5, 0.75, 0.5)
    result = best_response(truth, "atb", setting="sequential", grid=[0.375, 0.625])
    policy = {tuple(map(int, past)): report for past, report in result.policy.items()}
    assert len(policy) == 2**5 - 1
    assert result.best == pytest.approx(oracles.expected_of_policy(truth, policy, tc.atb), abs=1e-12)
    assert result.honest == pytest.approx(tc.expected_ubse(truth, truth), abs=1e-12)


def test_two_even_events_under_atb_by_hand():
    """The first outcome leaves c = +-1/2. Moving the second report by x changes 4 ATB by 2 x^2 - x, least at 1/4."""
    result = best_response([0.5, 0.5], "atb", setting="sequential")
    assert (result.honest, result.best) == (0.125, (0.5 - 0.125) / 4)
    assert result.policy == {"": 0.5, "0": 0.25, "1": 0.75}
    assert result.ratio == pytest.approx(4 / 3)
    fine = best_response([0.5, 0.5], "atb", setting="sequential", grid=np.linspace(0, 1, 33))
    assert fine.best == result.best


@settings(max_examples=3)
@given(truth=st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=4))
def test_proper_scores_are_truthful_in_sequence_too(truth):
    policy = optimal_policy(np.array(truth), np.linspace(0, 1, 5)[1:], resolve_measure("brier", "measure"))
    assert policy.best == pytest.approx(policy.honest, abs=1e-15)
    assert policy.reports == {past: truth[len(past)] for past in policy.reports}


@settings(max_examples=5)
@given(truth=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=4))
def test_a_policy_is_never_worse_than_the_truth_or_than_a_fixed_report_on_its_grid(truth):
    grid = np.array([0.0, 0.25, 0.5, 1.0])
    result = best_response(truth, "smcal", setting="sequential", grid=grid)
    reports = [truth, *(np.full(len(truth), value) for value in grid)]
    assert result.best <= min(tc.expected_score(report, truth, "smcal").value for report in reports) + 1e-12
    assert result.gain == pytest.approx(result.honest - result.best, abs=0) or result.gain == 0.0


def test_functions_and_scores_where_higher_is_better():
    truth, grid = [0.5, 0.5, 0.5], [0.25, 0.5, 0.75]
    own = best_response(truth, lambda y, p: tc.smcal(y, p), setting="sequential", grid=grid)
    assert own.best == pytest.approx(best_response(truth, "smcal", setting="sequential", grid=grid).best, abs=1e-15)
    higher = best_response(truth, "pvalue", setting="sequential", grid=grid)
    assert higher.best >= higher.honest
    assert higher.gain == higher.best - higher.honest
    assert higher.ratio >= 1.0


@pytest.mark.parametrize(("rows", "reports"), [(1, 1), (3, 2), (4, 3)])
def test_states_are_all_multisets_in_the_order_of_their_index(rows, reports):
    space = _StateSpace(rows, 2 * reports)
    for t, level in enumerate(space.levels):
        assert len(level) == count_states(t, reports)
        assert set(map(tuple, level)) == set(itertools.combinations_with_replacement(range(2 * reports), t))
        np.testing.assert_array_equal(space.index(level), np.arange(len(level)))
        for symbol in range(2 * reports) if t < rows else ():
            longer = np.sort(np.column_stack([level, np.full(len(level), symbol, np.uint8)]), axis=1)
            np.testing.assert_array_equal(space.levels[t + 1][space.with_symbol(t, symbol)], longer)


# --- in sequence: simulated policies ----------------------------------------------------------------------------------


def test_reports_of_a_policy_depend_on_earlier_outcomes_alone():
    rng = np.random.default_rng(0)
    truth, y = rng.random(12), rng.random((5, 12)) < 0.5
    for policy in (LookaheadPolicy(), LookaheadPolicy(levels=8, reach=64, pooling=1.0)):
        reports = policy.reports(truth, y)
        assert ((reports >= 0) & (reports <= 1)).all()
        for t in range(12):
            other = y.copy()
            other[:, t:] = ~other[:, t:]
            np.testing.assert_array_equal(policy.reports(truth, other)[:, : t + 1], reports[:, : t + 1])


def test_a_policy_looks_one_step_ahead():
    """With a penalty of 1 each report has the least expected ATB of the rows so far, of all reports on the grid."""
    truth, y = np.array([0.5, 0.25, 0.5, 0.75, 0.5]), np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
    reports = LookaheadPolicy(levels=8, reach=64, penalty=1.0).reports(truth, y)
    for outcome, report in zip(y.astype(int), reports, strict=True):
        for t in range(5):

            def ahead(r, t=t, outcome=outcome, report=report):
                rows = [*report[:t], r]
                return sum(
                    chance * t * t * measures.atb([*outcome[:t], last], rows)
                    for last, chance in ((1, truth[t]), (0, 1 - truth[t]))
                )

            assert ahead(report[t]) == pytest.approx(min(map(ahead, np.linspace(0, 1, 9))), abs=1e-12)


def test_long_sequences_are_simulated(quick):
    truth = np.full(40, 0.5)
    result = best_response(truth, "atb", setting="sequential", n_resamples=100)
    assert (result.method, result.n_resamples, result.policy) == ("simulation", 100, None)
    assert result.honest == pytest.approx(0.25 / 40)
    assert result.pays
    assert result.ratio > 2
    assert "one-step lookahead" in result.strategy
    assert result.best == best_response(truth, "atb", setting="sequential", n_resamples=100).best
    proper = best_response(truth, "brier", setting="sequential")
    assert (proper.truthful, proper.gain, proper.best) == (True, 0.0, pytest.approx(0.25))


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("name", "least", "most"), [("atb", 3.0, 8.0), ("smcal", 1.8, 4.0), ("subsampled_smcal", 1.1, 1.6)]
)
def test_gains_in_sequence_on_new_sequences(name, least, most):
    """Factors in docs/guide/auditing.md, with the stated standard error, on sequences from another seed."""
    truth = np.full(256, 0.5)
    first, second = (best_response(truth, name, setting="sequential", rng=seed, n_resamples=REPEATS) for seed in (1, 2))
    assert least < first.ratio < most
    assert (
        abs(first.gain - second.gain) < 5 * math.hypot(first.standard_error, second.standard_error) + 0.2 * first.gain
    )


@pytest.mark.simulation
def test_optimal_policy_has_its_expected_value_in_simulated_sequences():
    truth, rng = np.array([0.5, 0.25, 0.5, 0.75]), np.random.default_rng(3)
    result = best_response(truth, "smcal", setting="sequential", grid=[0.375, 0.625])
    y = rng.random((10 * REPEATS, 4)) < truth
    reports = np.array([[result.policy["".join(map(str, row[:t]))] for t in range(4)] for row in y.astype(int)])
    measure, _ = with_coins(resolve_measure("smcal", "measure"), truth)
    draws = score_sequences(measure, truth, reports, y)
    assert abs(draws.mean() - result.best) < 4 * draws.std() / math.sqrt(len(draws))


# --- arguments and text -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"setting": "both"}, "`setting` must be"),
        ({"grid": [0.5]}, "`grid` is only for the setting 'sequential'"),
        ({"setting": "sequential", "grid": [0.5, 2.0]}, "`grid`"),
        ({"setting": "sequential", "grid": np.linspace(0, 1, 999)}, "`grid` is too large for dynamic programming"),
        ({"n_resamples": 3}, "`n_resamples`"),
        ({"measure": "nothing"}, "`measure` must be one of"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        best_response(**{"truth": [0.25, 0.5, 0.75], **arguments})


def test_grid_of_too_many_events_is_refused():
    with pytest.raises(
        ValueError, match=r"2 reports, those of the truth included, for 13 events\. Use fewer, or omit it\."
    ):
        best_response([0.5] * 13, setting="sequential", grid=[0.25])


def test_default_grids_contain_the_truth_and_fit():
    measure = resolve_measure("smcal", "measure")
    for truth in ([0.0, 1.0], [0.3] * 8, [0.1, 0.2, 0.9], [0.5] * 10):
        grids = list(module._default_grids(np.array(truth), measure))
        assert grids
        for grid in grids:
            assert set(truth) <= set(grid)
            assert ((grid >= 0) & (grid <= 1)).all()
            assert count_states(len(truth), len(grid)) <= module._MAX_STATES
    assert list(module._default_grids(np.linspace(0, 1, 10), measure)) == []  # then policies are simulated


def test_texts():
    assert str(best_response([0.5], "smcal")).endswith("No gain was found. This does not prove that there is none.")
    sequential = best_response([0.5, 0.5], "atb", setting="sequential", grid=[0.25, 0.75])
    assert str(sequential) == (
        "atb, 2 events in sequence: the truth scores 0.125 and the best policy found 0.09375 (exact; the best of all "
        "policies with 3 reports: 0.25, 0.5 and 0.75).\nLying gains at least 0.0312, a factor of 1.33: the next report "
        "depends on the outcomes so far. More may be possible."
    )
    assert sequential.to_dict()["ratio"] == sequential.ratio
