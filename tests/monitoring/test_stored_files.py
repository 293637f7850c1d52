"""Files of monitors that were written by version 1 of the format stay readable, and monitoring goes on from them."""

from pathlib import Path

import numpy as np
import pytest

import truthcal as tc

DATA = Path(__file__).parents[1] / "data"


def test_a_stored_monitor_loads_and_goes_on():
    monitor = tc.Monitor.load(DATA / "monitor-v1.tcm")
    status = monitor.status()
    assert (status.n, status.alarm_since) == (480, "window 5")
    assert status.e_value == pytest.approx(37.73489068640717, rel=1e-12)
    monitor.resolve(["a", "b", "c"], [0, 1, 1])
    monitor.update([0, 1], [0.1, 0.9], time=6)
    assert monitor.advance(10).status().n == 485


def test_a_stored_table_of_monitors_loads_and_goes_on():
    table = tc.MonitorTable.load(DATA / "monitor-table-v1.tcm")
    evidence = {key: table[key].status().e_value for key in table}
    assert evidence == pytest.approx({"n": 0.8378548681584068, "s": 0.8236062022311212, "w": 0.9184107936327311})
    table.update([0, 1], [0.1, 0.9], segments=["n", "e"], time=3)
    assert set(table.advance(5)) == {"n", "s", "w", "e"}


@pytest.mark.parametrize("name", ["monitor-v1.tcm", "monitor-table-v1.tcm"])
def test_loading_changes_nothing(name, tmp_path):
    kind = tc.MonitorTable if "table" in name else tc.Monitor
    kind.load(DATA / name).save(tmp_path / name)
    copy = kind.load(tmp_path / name)
    assert copy.to_bytes() == kind.load(DATA / name).to_bytes()
    assert np.isfinite(copy.status().alpha)
