"""Segments: p-values and adjustments against slow, obvious versions, false alarms counted, what is printed and refused."""

import json
import math
import pickle
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.simulation import REPEATS
from support.strategies import examples

import truthcal as tc
from truthcal.inference.laws.skewness import correct_for_skewness, error_skewness
from truthcal.inference.segments import assess_segments, benjamini_hochberg, holm

TRUTHS = {
    "calibrated": lambda p: p,
    "too high": lambda p: 0.7 * p,
    "too low": lambda p: 0.3 + 0.7 * p,
    "overconfident": lambda p: 0.5 + 0.5 * (p - 0.5),
    "underconfident": lambda p: 1 / (1 + ((1 - p) / p) ** 2.5),
    "miscalibrated": lambda p: p + p * (1 - p) * (np.cos(6 * np.pi * p) + 0.034),  # no mean, no slope
}
SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(2, 8, n),
    "rare": lambda rng, n: rng.beta(1, 49, n),
    "tied": lambda rng, n: rng.integers(0, 11, n) / 10,
}
pvalues = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


def sketch_of(n, truth=TRUTHS["calibrated"], *, shape="uniform", seed=0, weighted=False, n_buckets=1024):
    rng = np.random.default_rng(seed)
    p = SHAPES[shape](rng, n)
    w = rng.uniform(0.2, 3.0, n) if weighted else None
    return tc.Sketch(n_buckets).update(rng.random(n) < truth(p), p, w)


def table_of(sketches, by="segment"):
    return tc.SketchTable.from_sketches(sketches, by=by)


def calibrated(count, n=200, **how):
    return {f"fine {g}": sketch_of(n, seed=100 + g, **how) for g in range(count)}


@pytest.fixture(scope="module")
def found():
    """A table with one segment of each kind, four that are fine, and two that are too small."""
    kinds = {kind: sketch_of(2000, truth, seed=7) for kind, truth in TRUTHS.items()}
    small = {"small": sketch_of(12), "smaller": sketch_of(5, TRUTHS["too high"])}
    return assess_segments(table_of(kinds | calibrated(4) | small))


# --- adjustments ------------------------------------------------------------------------------------------------------


def slow_holm(p):
    """Go up from the smallest; the k-th is compared with alpha / (m - k), and once one is kept all later ones are."""
    adjusted, so_far = [0.0] * len(p), 0.0
    for k, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        so_far = max(so_far, (len(p) - k) * p[place])
        adjusted[place] = min(so_far, 1.0)
    return adjusted


def slow_fdr(p):
    """The least over all p-values q from p up of q * m / #{p-values <= q}."""
    return [min(min(q * len(p) / sum(r <= q for r in p) for q in p if q >= own), 1.0) for own in p]


@given(pvalues)
def test_holm_is_what_its_definition_says(p):
    np.testing.assert_allclose(holm(np.array(p)), slow_holm(p), rtol=1e-14, atol=0)


@given(pvalues)
def test_fdr_is_what_its_definition_says_and_what_scipy_has(p):
    adjusted = benjamini_hochberg(np.array(p))
    np.testing.assert_allclose(adjusted, slow_fdr(p), rtol=1e-12, atol=0)
    np.testing.assert_allclose(adjusted, stats.false_discovery_control(p), rtol=1e-12, atol=0)


@given(pvalues, st.randoms())
def test_adjusted_values_keep_their_order_and_exceed_their_own(p, random):
    p = np.array(p)
    shuffled = np.array(random.sample(range(len(p)), len(p)))
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert (adjusted >= p * (1 - 1e-12)).all()
        assert (adjusted <= 1.0).all()
        assert (np.diff(adjusted[np.argsort(p)]) >= 0.0).all()
        np.testing.assert_allclose(adjust(p[shuffled]), adjusted[shuffled], rtol=1e-14, atol=0)
    assert (holm(p) >= benjamini_hochberg(p) * (1 - 1e-12)).all()


def test_adjustments_of_one_and_of_ties():
    for adjust in (holm, benjamini_hochberg):
        assert adjust(np.array([0.03])).tolist() == [0.03]
    assert holm(np.array([0.01, 0.01, 0.01])).tolist() == pytest.approx([0.03] * 3)
    assert benjamini_hochberg(np.array([0.01, 0.01, 0.01])).tolist() == pytest.approx([0.01] * 3)
    assert holm(np.empty(0)).size == benjamini_hochberg(np.empty(0)).size == 0


# --- p-values ---------------------------------------------------------------------------------------------------------


def skewness(p, w=1.0):
    v = p * (1.0 - p)
    return np.sum(w**3 * v * np.abs(1.0 - 2.0 * p)) / np.sum(w**2 * v) ** 1.5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("truth", ["calibrated", "too high", "overconfident"])
@pytest.mark.parametrize("n", [40, 300, 3000])
def test_pvalue_is_that_of_the_calibration_test(n, truth, shape):
    rng = np.random.default_rng(n)
    p = SHAPES[shape](rng, n)
    sketch = tc.Sketch(1 << 14).update(rng.random(n) < TRUTHS[truth](p), p)
    (segment,) = assess_segments(table_of({"all": sketch})).segments
    test = tc.calibration_test(sketch, rng=0)
    near_the_floor = 1e-5 < test.pvalue < 5e-4  # of redraws, which random numbers decide
    assert segment.method == test.method or near_the_floor
    expected = min(test.pvalue, tc.calibration_test(sketch, method="bound").pvalue)
    digits, own = (math.log(max(chance, 1e-300)) for chance in (expected, segment.pvalue))
    if "exact" in (segment.method, test.method):  # a segment is redrawn until 100 values are as extreme, not 500
        assert own == pytest.approx(digits, abs=2.5 if near_the_floor else 0.4)
    else:  # fewer cells make it a little larger, by a share that grows with -log p
        assert own == pytest.approx(digits, rel=0.006, abs=0.03)
    assert segment.adjusted == segment.pvalue


def test_pvalue_of_weighted_rows():
    rng = np.random.default_rng(0)
    p, w = rng.beta(1, 9, 500), rng.choice([1.0, 2.0], 500)
    sketch = tc.Sketch(1 << 16).update(rng.random(500) < 0.3 * p, p, w)
    limit = tc.calibration_test(sketch, method="asymptotic").pvalue
    (segment,) = assess_segments(table_of({"all": sketch})).segments
    assert limit < 0.015
    assert error_skewness(sketch.points()) == pytest.approx(skewness(p, w), rel=0.01)
    assert segment.pvalue == pytest.approx(limit, rel=0.05, abs=0)


def test_many_rows_have_the_pvalue_of_the_calibration_test():
    sketch = sketch_of(200_000, lambda p: 0.993 * p, n_buckets=4096)
    (segment,) = assess_segments(table_of({"all": sketch})).segments
    test = tc.calibration_test(sketch)
    assert test.method == segment.method == "asymptotic"
    assert segment.pvalue == pytest.approx(test.pvalue, rel=0.12, abs=0)
    assert segment.information == pytest.approx(test.information, rel=1e-12)


def test_bound_where_few_rare_events_are_predicted_and_many_happen():
    y, p = np.arange(2000) % 33 == 0, 0.001 + np.arange(2000) * 1e-6
    sketch = tc.Sketch().update(y, p)
    (segment,) = assess_segments(table_of({"all": sketch})).segments
    assert segment.method == "bound"
    assert segment.pvalue == tc.calibration_test(sketch, method="bound").pvalue
    assert segment.kind == "too low"
    assert segment.information < 5.0


@given(st.floats(1e-300, 1.0), st.floats(1e-300, 1.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_cautious_pvalues_are_larger_and_in_order(a, b, g, h):
    a, b, g, h = min(a, b), max(a, b), min(g, h), max(g, h)
    assert a * (1 - 1e-9) <= correct_for_skewness(a, g) <= 1.0
    assert correct_for_skewness(a, g) <= correct_for_skewness(b, g) * (1 + 1e-9)
    assert correct_for_skewness(a, g) <= correct_for_skewness(a, h) * (1 + 1e-9)
    assert correct_for_skewness(a, 0.0) == a


def test_cautious_pvalue_by_hand():
    p = 2.0 * stats.norm.sf(3.0)
    assert correct_for_skewness(p, 0.1) == pytest.approx(p * math.cosh(0.1 * 27.0 / 6.0), rel=1e-12)
    assert correct_for_skewness(0.0, 0.5) == pytest.approx(
        2.0 * stats.norm.sf(4.0) * math.cosh(0.5 * 64.0 / 6.0), rel=1e-12
    )
    assert correct_for_skewness(0.0, 0.0) == 0.0
    assert correct_for_skewness(1.0, 2.0) == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("shape", ["uniform", "skewed", "rare"])
def test_false_alarms_are_as_rare_as_promised(shape):
    """37 segments of 50 to 500 calibrated rows, 30 times over: 1,110 p-values and 30 families (nightly 200)."""
    rng, count = np.random.default_rng(5), REPEATS // 10
    families, pvalues = 0, []
    for _ in range(count):
        sketches = {}
        for g in range(37):
            n = int(rng.integers(50, 500))
            p = SHAPES[shape](rng, n)
            sketches[g] = tc.Sketch(256).update(rng.random(n) < p, p)
        result = assess_segments(table_of(sketches))
        families += bool(result.miscalibrated)
        pvalues += [segment.pvalue for segment in result.segments]
    assert families <= stats.binom.isf(0.006, count, 0.05)
    for level in (0.05, 0.01):
        assert np.mean(np.array(pvalues) <= level) <= level + 3.0 * math.sqrt(level / len(pvalues))


# --- each segment -----------------------------------------------------------------------------------------------------


def test_kind_of_segments_made_for_it(found):
    for kind in TRUTHS:
        assert found[kind].kind == ("not significant" if kind == "calibrated" else kind)
    assert {segment.key for segment in found.miscalibrated} == set(TRUTHS) - {"calibrated"}
    assert {found[key].kind for key in ("small", "smaller")} == {"too few rows"}


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_each_sketch(weighted):
    sketches = {n: sketch_of(n, TRUTHS["too high"], seed=n, weighted=weighted) for n in (1, 2, 30, 400, 3000)}
    result = assess_segments(table_of(sketches), confidence_level=0.9)
    for n, sketch in sketches.items():
        segment, summary = result[n], sketch.summary()
        assert segment.n == n
        for name in ("bias", "noise_floor"):
            assert getattr(segment, name) == pytest.approx(getattr(summary, name), rel=1e-9, abs=1e-15, nan_ok=True)
        assert segment.atb == pytest.approx(summary.value, rel=1e-9)
        assert segment.mean_proba - segment.mean_true == pytest.approx(summary.bias, rel=1e-9)
        bias = tc.confidence_interval(sketch, measure="bias", confidence_level=0.9)
        for expected, own in (
            (bias, segment.bias_interval),
            (tc.error_size(sketch, confidence_level=0.9), segment.error),
        ):
            assert own.confidence_level == 0.9
            assert (own.low, own.high) == pytest.approx((expected.low, expected.high), rel=1e-2, abs=1e-6, nan_ok=True)


def test_other_segments_change_nothing_but_the_adjusted_value():
    one = {"a": sketch_of(300, TRUTHS["too high"])}
    alone, among = (assess_segments(table_of(sketches)) for sketches in (one, one | calibrated(9)))
    assert among["a"].pvalue == alone["a"].pvalue == alone["a"].adjusted
    assert among["a"].adjusted == pytest.approx(10.0 * alone["a"].pvalue)
    assert among["a"].bias_interval == alone["a"].bias_interval


@pytest.mark.parametrize(("adjust", "by_hand"), [("holm", slow_holm), ("fdr", slow_fdr), ("none", list)])
def test_adjusted_among_those_tested_alone(adjust, by_hand):
    sketches = calibrated(6) | {"a": sketch_of(300, TRUTHS["too high"]), "small": sketch_of(20)}
    result = assess_segments(table_of(sketches), adjust=adjust)
    tested = result.tested
    assert len(tested) == 7
    expected = by_hand([segment.pvalue for segment in tested])
    assert [segment.adjusted for segment in tested] == pytest.approx(expected, rel=1e-12)
    assert math.isnan(result["small"].adjusted)
    assert result["small"].method == "none"


def test_level_decides():
    sketches = {"a": sketch_of(300, lambda p: 0.88 * p)}
    pvalue = assess_segments(table_of(sketches)).segments[0].pvalue
    kinds = [assess_segments(table_of(sketches), alpha=times * pvalue).segments[0].kind for times in (0.99, 1.01)]
    assert kinds == ["not significant", "too high"]


def test_order_is_by_adjusted_pvalue_and_small_ones_come_last(found):
    tested = [segment for segment in found.segments if segment.tested]
    assert list(found.segments[: len(tested)]) == tested
    assert [s.pvalue for s in tested] == sorted(s.pvalue for s in tested)
    assert [s.key for s in found.segments[len(tested) :]] == ["small", "smaller"]


# --- who is tested ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("min_rows", "tested"), [(1, {1, 29, 30, 31}), (30, {30, 31}), (31, {31}), (32, set())])
def test_few_rows_are_not_tested(min_rows, tested):
    sketches = {n: sketch_of(n) for n in (1, 29, 30, 31)}
    result = assess_segments(table_of(sketches), min_rows=min_rows)
    assert {segment.key for segment in result.tested} == tested


@examples(25)
@given(st.integers(0, 2**32 - 1))
def test_who_is_tested_does_not_depend_on_outcomes(seed):
    rng = np.random.default_rng(seed)
    chosen = []
    for y in (np.zeros(60), np.ones(60), rng.integers(0, 2, 60)):
        p, w = np.random.default_rng(1).random(60), np.random.default_rng(2).exponential(1.0, 60)
        sketches = {n: tc.Sketch(64).update(y[:n], p[:n], w[:n]) for n in (10, 30, 45, 60)}
        result = assess_segments(table_of(sketches), min_rows=20)
        chosen.append({segment.key for segment in result.tested})
    assert chosen[0] == chosen[1] == chosen[2]


def test_rows_count_by_what_they_are_worth():
    p = np.linspace(0.1, 0.9, 40)
    even, uneven = (tc.Sketch().update(p > 0.5, p, w) for w in (np.full(40, 9.0), np.r_[np.ones(39), 1e3]))
    result = assess_segments(table_of({"even": even, "uneven": uneven}))
    assert result["even"].tested
    assert not result["uneven"].tested


def test_little_information_is_never_called_calibrated():
    p = np.full(100, 0.01)
    fine, wrong = tc.Sketch().update(np.arange(100) < 1, p), tc.Sketch().update(np.arange(100) < 40, p)
    result = assess_segments(table_of({"fine": fine, "wrong": wrong}))
    assert result["fine"].tested
    assert (result["fine"].kind, result["wrong"].kind) == ("too few rows", "too low")
    alone = assess_segments(table_of({"fine": fine}))
    assert alone.verdict.endswith(" 1 of them carries too little information.")
    assert alone["fine"].cells()[3] == alone["fine"].error.size(2)  # never a bare 0


def test_predictions_of_0_and_1_are_right_or_impossible():
    y = np.arange(50) % 2
    right, wrong = tc.Sketch().update(y, y.astype(float)), tc.Sketch().update(y, np.ones(50))
    result = assess_segments(table_of({"right": right, "wrong": wrong}))
    assert (result["right"].kind, result["wrong"].kind) == ("not significant", "too high")
    assert (result["right"].pvalue, result["wrong"].pvalue) == (1.0, 0.0)
    assert "p = 0" not in str(result)


def test_errors_that_cancel_in_the_total_are_found_in_segments():
    high, low = (
        sketch_of(5000, lambda p, up=up: np.clip(p - up, 0, 1), shape="skewed", seed=3) for up in (0.05, -0.05)
    )
    table = table_of({"high": high, "low": low})
    assert {key: segment.kind for key, segment in assess_segments(table).items()} == {
        "high": "too high",
        "low": "too low",
    }
    assert abs(tc.assess(table.total()).bias_interval.estimate) < 0.01


# --- what it looks like -----------------------------------------------------------------------------------------------


def test_verdict_of_each_adjustment():
    table = table_of(calibrated(3) | {"bad": sketch_of(500, TRUTHS["too high"]), "s": sketch_of(3)})
    few = " 1 more has fewer than 30 rows and was not tested."
    start = "1 of 4 segments is miscalibrated "
    promises = {
        "holm": "at most 5% chance of any false alarm",
        "fdr": "at most 5% of all findings are false alarms, on average",
        "none": "not adjusted for the number of tests: up to 0.2 false alarms by chance",
    }
    for adjust, promise in promises.items():
        assert assess_segments(table, adjust=adjust).verdict == f"{start}({promise}): bad (too high).{few}"


def test_verdict_where_nothing_is_found_or_tested():
    fine = assess_segments(table_of(calibrated(3)), alpha=0.001).verdict
    assert fine == "No significant miscalibration in any of 3 segments (at most 0.1% chance of any false alarm)."
    none = assess_segments(table_of({"a": sketch_of(9), "b": sketch_of(8)})).verdict
    assert none == "None of 2 segments has the 30 rows needed for a test."
    one = assess_segments(table_of({"a": sketch_of(9)})).verdict
    assert one == "The only segment has fewer than the 30 rows needed for a test."
    several = assess_segments(table_of(calibrated(1) | {"a": sketch_of(9), "b": sketch_of(8)})).verdict
    assert several.startswith("No significant miscalibration in 1 segment (")
    assert several.endswith(" 2 more have fewer than 30 rows and were not tested.")


def test_verdict_names_the_first_few():
    verdict = assess_segments(table_of({g: sketch_of(500, TRUTHS["too high"], seed=g) for g in range(8)})).verdict
    assert verdict.startswith("8 of 8 segments are miscalibrated (at most 5% chance of any false alarm): ")
    assert verdict.count("(") == 1 + 5
    assert verdict.endswith(" and 3 more.")


def test_print_of_a_small_table():
    sketches = {
        "north": sketch_of(400, seed=1),
        "south": sketch_of(900, TRUTHS["too high"], seed=2),
        "tiny": sketch_of(1),
    }
    lines = str(assess_segments(table_of(sketches, by="region"))).splitlines()
    assert lines[0].startswith("1 of 2 segments is miscalibrated (")
    assert " ".join(lines[2].split()) == "region rows bias error p adjusted p verdict"
    assert [line.split()[0] for line in lines[3:]] == ["south", "north", "tiny"]
    assert lines[3].endswith("  too high")
    assert lines[5].split()[-5:] == ["-", "-", "too", "few", "rows"]
    assert max(map(len, lines[2:])) <= 120


def test_print_shows_the_first_twenty():
    result = assess_segments(table_of({g: sketch_of(10, seed=g) for g in range(25)}))
    assert len(str(result).splitlines()) == 2 + 1 + 20 + 1
    assert str(result).endswith("... and 5 more")
    assert repr(result) == str(result)


def test_segment_in_words(found):
    assert str(found["too high"]).startswith("too high: too high (adjusted p = ")
    assert str(found["too high"]).endswith("; 2,000 rows")
    assert str(found["small"]).startswith("small: too few rows (not tested); bias ")
    assert "no interval" in str(assess_segments(table_of({"one": sketch_of(1)}))["one"])


def test_table_is_ready_for_a_data_frame(found):
    frame = pd.DataFrame(found.table())
    assert list(frame["segment"]) == list(found)
    assert frame.set_index("segment").loc["too high", "kind"] == "too high"
    assert ((frame.error_low <= frame.error) & (frame.error <= frame.error_high)).all()
    assert ((frame.bias_low <= frame.bias) & (frame.bias <= frame.bias_high)).all()
    assert list(frame.error_low) == [segment.error.low for segment in found.segments]
    for name in [name for name in frame.columns[1:] if not name.startswith("error")]:
        np.testing.assert_array_equal(frame[name], [getattr(segment, name) for segment in found.segments])


def test_table_of_several_columns_with_the_names_of_statistics():
    sketches = {("a", 1): sketch_of(40), ("b", None): sketch_of(50)}
    result = assess_segments(table_of(sketches, by=["kind", "age"]))
    table = result.table()
    assert set(zip(table["kind_"], table["age"], strict=True)) == set(sketches)
    assert set(table["kind"]) == {"not significant"}
    assert result["b", None].name == "b, (missing)"
    assert str(result).splitlines()[2].startswith("kind, age")


def test_verdict_separates_segments_of_several_columns():
    sketches = {(g, "b"): sketch_of(500, TRUTHS["too high"], seed=g) for g in range(2)}
    verdict = assess_segments(table_of(sketches, by=["kind", "age"])).verdict
    assert re.search(r": [01], b \(too high\); [01], b \(too high\)\.$", verdict)


@pytest.mark.parametrize("missing", [None, math.nan])
@pytest.mark.parametrize("convert", [list, tuple, lambda x: np.array(x, object), pd.Series])
def test_missing_values_are_a_segment_of_their_own(missing, convert):
    """As in files; numpy would make the text 'nan' of a nan in a list."""
    by = convert(["a", "b", missing] * 40)
    result = tc.assess_segments([0, 1] * 60, [0.5] * 120, by=by)
    assert sorted(segment.name for segment in result.segments) == ["(missing)", "a", "b"]
    assert None in result


def test_to_dict_is_json(found):
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["verdict"] == found.verdict
    assert (plain["by"], plain["alpha"], plain["adjust"], plain["min_rows"]) == (["segment"], 0.05, "holm", 30)
    assert [row["key"] for row in plain["segments"]] == list(found)
    assert plain["segments"][0]["error"]["low"] == found.segments[0].error.low
    days = assess_segments(table_of({(date(2025, 1, 31), None): sketch_of(40)}, by=["day", "b"]))
    assert json.loads(json.dumps(days.to_dict()))["segments"][0]["key"] == ["2025-01-31", None]


def test_it_is_a_mapping(found):
    assert len(found) == len(list(found)) == len(found.segments)
    assert found["small"] is found.segments[-2]
    assert "small" in found
    assert "large" not in found
    assert found.get("large") is None
    assert dict(found) == {segment.key: segment for segment in found.segments}
    for key in ("large", ["small"]):
        with pytest.raises(KeyError, match=r"no segment .* by segment"):
            found[key]


def test_rows_that_come_later_change_nothing():
    table = table_of({"a": sketch_of(300)})
    result = assess_segments(table)
    before = tc.error_size(table["a"])
    table.merge(table_of({"a": sketch_of(5000, TRUTHS["too high"])}))
    assert result["a"].error.high == pytest.approx(before.high, rel=1e-2)
    assert result["a"].error is result["a"].error


# --- many segments at once --------------------------------------------------------------------------------------------


def test_segments_together_are_those_of_each_alone(monkeypatch):
    """Numbers, kinds and reasons do not depend on the block, the order of reading, or the other segments."""
    monkeypatch.setattr("truthcal.core.sketch_table._BLOCK", 1500)
    sketches = {
        (shape, truth, n, weighted): sketch_of(n, TRUTHS[truth], shape=shape, seed=n, weighted=weighted)
        for shape in SHAPES
        for truth in ("calibrated", "too high", "miscalibrated")
        for n, weighted in ((1, False), (40, True), (600, False), (2000, True))
    }
    by = ["shape", "truth", "size", "weighted"]
    together = assess_segments(table_of(sketches, by=by), adjust="none")
    for key in reversed(list(together)):
        segment, alone = together[key], assess_segments(table_of({key: sketches[key]}, by=by))[key]
        assert (segment.kind, segment.method, segment.n, segment.name) == (
            alone.kind,
            alone.method,
            alone.n,
            alone.name,
        )
        assert segment.pvalue == pytest.approx(alone.pvalue, rel=1e-12, abs=0, nan_ok=True)
        assert segment.information == pytest.approx(alone.information, rel=1e-13, abs=0)
        for own, expected in ((segment.error, alone.error), (segment.bias_interval, alone.bias_interval)):
            ends = (expected.low, expected.high, expected.estimate)
            assert (own.low, own.high, own.estimate) == pytest.approx(ends, rel=1e-11, abs=1e-15, nan_ok=True)
            assert (own.method, own.why, own.measure) == (expected.method, expected.why, expected.measure)


def test_segments_together_have_the_intervals_of_their_sketches():
    sketches = {n: sketch_of(n, TRUTHS["overconfident"], seed=n) for n in (100, 500, 1500)}
    for n, segment in assess_segments(table_of(sketches)).items():
        assert segment.error == tc.error_size(sketches[n])


def test_few_intervals_are_computed_for_few_readers():
    result = assess_segments(table_of(calibrated(60, n=50)))
    intervals = result.segments[0]._intervals
    assert len(intervals) == 0
    str(result)
    assert 40 <= len(intervals) <= 100
    other = pickle.loads(pickle.dumps(result))
    assert other.segments[-1].error == result.segments[-1].error
    assert len(result.frame()) == 60


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 5}, ValueError, r"`alpha` must lie strictly between 0 and 1; got 5\.0\. For 5%, pass 0\.05\."),
        ({"confidence_level": 95}, ValueError, r"`confidence_level` must .* For 95%, pass 0\.95\."),
        ({"min_rows": 0}, ValueError, "`min_rows` must be at least 1; got 0"),
        ({"min_rows": 2.5}, TypeError, "`min_rows` must be a whole number; got 2.5"),
        ({"adjust": "bh"}, ValueError, "`adjust` must be one of 'holm', 'fdr', 'none'; got 'bh'"),
    ],
)
def test_bad_parameters_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        assess_segments(table_of(calibrated(1)), **arguments)


@pytest.mark.parametrize("wrong", [tc.Sketch(), {"a": 1}, None, [0, 1]])
def test_only_a_table_of_sketches_has_segments(wrong):
    with pytest.raises(
        TypeError, match=r"`y_true` must be a SketchTable with .*; got .*\. For one Sketch use assess\."
    ):
        assess_segments(wrong)


def test_empty_tables_are_refused():
    with pytest.raises(ValueError, match="`y_true` is empty; it has no segments to assess"):
        assess_segments(tc.SketchTable("region"))


def test_fractional_outcomes_are_refused():
    rng = np.random.default_rng(0)
    half = tc.Sketch(1024).update(rng.random(100), rng.random(100))
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        assess_segments(table_of(calibrated(2) | {"half": half}))


def test_errors_are_sorted_as_they_are_printed():
    """Estimates of errors that exclude 0 first, then the upper limits of the others."""
    rng = np.random.default_rng(0)
    p, group = rng.random(2000), np.arange(2000) % 10
    y = rng.random(2000) < np.clip(p + np.where(group < 3, 0.15 + 0.02 * group, 0.0), 0, 1)
    errors = [segment.error for segment in tc.assess_segments(y, p, group).sort_by("error").values()]
    found = [error for error in errors if error.low > 0.0]
    assert len(found) >= 3
    assert errors[: len(found)] == sorted(found, key=lambda error: -error.estimate)
    assert errors[len(found) :] == sorted(errors[len(found) :], key=lambda error: -error.high)
