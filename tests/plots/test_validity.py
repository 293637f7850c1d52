"""Plot of acceptance rates by number of rows: its lines are the numbers of the result."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truthcal as tc

HALF = {"populations": {"one prediction": [0.5]}, "families": ["shift"], "n_simulations": 20}


def test_lines_are_the_rates_of_all_results_in_the_axes():
    near, far = (tc.validity("atb", constant=c, n_rows=n, **HALF) for c, n in ((1, [50, 200]), (2, [100])))
    ax = Figure().subplots()
    tc.plots.ValidityDisplay(near).plot(ax, legend=False)
    display = tc.plots.ValidityDisplay(far, "far").plot(ax)
    lines = {line.get_gid(): line for line in ax.get_lines()}
    np.testing.assert_array_equal(lines["validity-0-curve"].get_xydata().T, [near.n_rows, near.accept_miscalibrated])
    np.testing.assert_array_equal(lines["validity-0-calibrated"].get_ydata(), near.accept_calibrated)
    np.testing.assert_array_equal(lines["validity-1-curve"].get_ydata(), far.accept_miscalibrated)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["atb, distance 1 / sqrt(rows)", "far", "thin: calibrated populations"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "100", "200"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows", "acceptance rate (1 - power)")
    assert display.table()["gap"] == pytest.approx(far.gap)
    assert repr(display) == "<ValidityDisplay 'far'>"


def test_a_new_figure_has_room_for_the_legend():
    display = tc.plots.ValidityDisplay(tc.validity("atb", constant=1, n_rows=[50], **HALF)).plot()
    display.figure_.draw_without_rendering()
    page, legend = display.figure_.bbox, display.ax_.get_legend().get_window_extent()
    assert page.y0 <= legend.y0 < legend.y1 <= display.ax_.get_window_extent().y0
