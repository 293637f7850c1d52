"""The factor by which lying can pay, as MEASURES and the documentation state it."""

import re
from pathlib import Path

import numpy as np
import pytest

import truthcal as tc
from truthcal.measures.registry import MEASURES

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks" / "truthfulness.md").read_text(encoding="utf-8")


def test_table_of_the_benchmark_is_that_of_the_registry():
    rows = re.findall(r"^\| `(\w+)` \| (1|bounded|growing) \| (\S+) \| (\S+) \|", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == list(MEASURES)
    for name, factor, few, many in rows:
        assert (factor, (float(few), float(many))) == (MEASURES[name].lie_factor, MEASURES[name].lie_ratios)


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if not measure.alias_of])
def test_factors_agree_with_the_flags(name):
    few, many = MEASURES[name].lie_ratios
    if MEASURES[name].truthful:
        assert (MEASURES[name].lie_factor, few, many) == ("1", 1.0, 1.0)
    elif MEASURES[name].lie_factor == "bounded":
        assert 1.0 < many < 1.05 * few
    else:
        assert many > 1.3 * few


@pytest.mark.parametrize("name", ["smcal", "ks_ce", "laplace_kernel_ce", "ece", "unbinned_ece", "ici", "atb_l1"])
def test_measured_factors_can_be_reproduced(name):
    """The best lie is the constant, whose score is the absolute bias under each of these."""
    truth = (np.arange(200) + 0.5) / 200
    y = np.random.default_rng(3).random((20_000, 200)) < truth
    honest = tc.expected_score(truth, truth, name, n_resamples=300)
    ratio = honest.value / np.mean(np.abs(y.mean(axis=1) - 0.5))
    assert ratio == pytest.approx(MEASURES[name].lie_ratios[0], rel=0.03 + 4 * honest.standard_error / honest.value)


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize("events", [1, 4, 40])
@pytest.mark.parametrize("level", [0.01, 0.3])
def test_bounds_of_the_expected_number_of_events(events, level, spread):
    """The inequality behind "bounded": min over a of E|X - a| is at least V / sqrt(6 V + 1)."""
    truth = level * (1 + spread * np.linspace(-1, 1, events))
    law = np.ones(1)
    for t in truth:
        law = np.convolve(law, [1 - t, t])
    count = np.arange(events + 1)
    variance = float(np.sum(truth * (1 - truth)))
    assert min(law @ np.abs(count - a) for a in count) >= variance / np.sqrt(6 * variance + 1)


def test_page_on_truthful_numbers_states_what_the_audit_finds():
    page = (Path(__file__).parents[2] / "docs" / "theory" / "truthful_numbers.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| ([^|]+) \|[^|]*\|[^|]*\| ([\d.]+), (none better|[-\d.]+) \|", page, re.MULTILINE)
    names = ["atb", "brier", "sqrt_atb", "atb_ratio", "excess", "sqrt_excess", "error_size", "pvalue", "pass_rate"]
    assert len(stated) == len(names)
    result = tc.audit([0.25, 0.75], names)
    for (_, honest, lie), row in zip(stated, result.rows, strict=True):
        assert row.honest == pytest.approx(float(honest), abs=6e-4)
        assert (lie == "none better") == row.truthful
        assert row.truthful or row.scores["searched"] == pytest.approx(float(lie), abs=6e-4)
    for row in re.findall(r"^\| `(\w+)`.*\| ([\d.]+) \|$", page, re.MULTILINE):
        assert max(MEASURES[row[0]].lie_ratios) == pytest.approx(float(row[1]), abs=0.006)
