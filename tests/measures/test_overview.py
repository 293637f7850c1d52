"""All measures at once, from one sample."""

import math

import numpy as np
import pytest

import truthcal as tc
from truthcal.core import sample as sample_module


def sample_of(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("n", [1, 50, 200_000])
def test_every_value_is_that_of_the_function(n):
    y, p = sample_of(n)
    p = np.round(p, 4)  # few enough for intcal
    table = tc.all_measures(y, p)
    assert [row.name for row in table.rows] == list(tc.MEASURES)
    for name, measure in tc.MEASURES.items():
        assert table[name] == pytest.approx(measure.function(y, p), rel=1e-14)
        row = next(row for row in table.rows if row.name == name)
        for flag in ("truthful", "continuous", "complete", "sound"):
            assert getattr(row, flag) == getattr(measure, flag)


def test_rows_are_sorted_once(monkeypatch):
    sorts = []
    monkeypatch.setattr(
        sample_module, "sort_labels", lambda p, y, sort=sample_module.sort_labels: sorts.append(1) or sort(p, y)
    )
    tc.all_measures(*sample_of(100))
    assert len(sorts) == 1


def test_some_names_in_a_given_order():
    y, p = sample_of(100)
    table = tc.all_measures(y, p, ["smcal", "atb"])
    assert [row.name for row in table.rows] == ["smcal", "atb"]
    assert tc.all_measures(y, p, "atb")["atb"] == tc.atb(y, p)
    with pytest.raises(KeyError, match="'unbinned_ece' is not in this table; it has smcal, atb"):
        table["unbinned_ece"]
    with pytest.raises(ValueError, match=r"`names` must be one of 'atb', .*; got 'brier'"):
        tc.all_measures(y, p, ["brier"])
    with pytest.raises(TypeError, match=r"`names` must be names of measures, such as \['atb', 'smcal'\]; got 5"):
        tc.all_measures(y, p, 5)
    with pytest.raises(ValueError, match=r"`names` must be one of .*\.\.\. \(list\)\.$"):  # a column in the wrong place
        tc.all_measures(y, p, [p.tolist()])


def test_measures_that_cannot_take_the_rows_say_why():
    y, p = sample_of(100)
    table = tc.all_measures(y, p, sample_weight=np.full(100, 0.5))
    missing = [row for row in table.rows if math.isnan(row.value)]
    assert {row.name for row in missing} == {"quantile_ece", "subsampled_smcal", "subsampled_step_ce"}
    assert all("whole numbers" in row.note for row in missing)
    names = "quantile_ece, subsampled_smcal, subsampled_step_ce"
    assert str(table).splitlines()[-2].startswith(f"{names}: `sample_weight` must contain whole numbers")
    with pytest.raises(ValueError, match="whole numbers"):
        tc.all_measures(y, p, ["atb", "quantile_ece"], sample_weight=np.full(100, 0.5))


def test_table_prints_and_makes_columns():
    table = tc.all_measures([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3])
    lines = str(table).splitlines()
    assert len(lines) == 1 + len(tc.MEASURES) + 1
    assert lines[0].split() == ["measure", "value", "scale", "truthful", "continuous", "complete", "sound"]
    assert lines[-1] == "unbinned_ece, decision_loss: not meaningful here, because most predictions are unique"
    assert "unique" not in str(tc.all_measures([0, 1] * 5, [0.2, 0.7] * 5))
    assert list(table) == list(tc.MEASURES)
    assert dict(table)["atb"] == table["atb"]
    assert len(table) == len(tc.MEASURES)
    assert "atb" in table
    assert "brier" not in table
    assert repr(table) == str(table)
    columns = table.table()
    assert list(columns) == ["name", "value", "scale", "truthful", "continuous", "complete", "sound", "note"]
    assert {len(column) for column in columns.values()} == {len(tc.MEASURES)}
