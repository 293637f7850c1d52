"""The plot of calibration over time."""

import datetime as dt

import matplotlib.dates as mdates
import numpy as np
import pytest

import truthcal as tc
from truthcal import plots


def assess(factor=0.7, time=None, window="week", n=200, seed=0):
    rng = np.random.default_rng(seed)
    t = np.repeat(np.arange(10), n)
    p = rng.random(len(t))
    y = rng.random(len(t)) < np.where(t < 5, 1.0, factor) * p
    times = np.datetime64("2024-01-01") + 7 * t if time is None else np.asarray(time)[t]
    return tc.assess_over_time(y, p, times, window=window)


def texts(ax):
    return [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]


def test_errors_rows_and_change_are_drawn_where_they_belong(ax, artists):
    result = assess()
    shown = plots.OverTimeDisplay(result).plot(ax)
    found = artists(ax)
    starts = mdates.date2num([window.start for window in result.windows])
    x, y = found["time-0-curve"].get_data()
    assert np.allclose(x, starts + 3.5)
    assert np.allclose(y, [window.error.estimate for window in result.windows])
    certain = [window.error.low > 0 for window in result.windows]
    assert 0 < sum(certain) < 10
    for thick in (False, True):
        paths = found[f"time-{int(thick)}-intervals"].get_paths()
        ends = [[w.error.low, w.error.high] for w in result.windows if (w.error.low > 0) is thick]
        assert np.allclose([path.vertices[:, 1] for path in paths], ends)
    assert result.change.start == dt.date(2024, 2, 5)
    assert found["time-0-change"].get_xdata()[0] == mdates.date2num(result.change.start)
    rows = [found[f"time-{k}-rows"] for k in range(10)]
    assert np.allclose([bar.get_x() for bar in rows], starts)
    assert len({round(bar.get_height(), 9) for bar in rows}) == 1
    assert "changed around 2024-02-05" in texts(ax)
    assert "rows, at most 200 per window" in texts(ax)
    assert ax.get_ylim()[0] < 0 < ax.get_ylim()[1]
    assert min(ax.get_yticks()) >= 0
    assert shown.frame().shape == (10, 10)
    assert repr(shown) == "<OverTimeDisplay>"


def test_a_stable_model_has_no_line(ax, artists):
    result = assess(1.0)
    assert result.kind == "stable"
    assert "time-0-change" not in artists(plots.OverTimeDisplay(result, name="$a_1$").plot(ax, legend=False).ax_)
    assert ax.get_legend() is None


@pytest.mark.parametrize("many", [False, True])
def test_counters_and_times_of_day(figure, many):
    hours = np.datetime64("2024-01-01T00") + 5 * np.arange(10)
    for time, window in ((np.arange(2010, 2020), "1"), (hours, "1h"), (hours, "100 rows" if many else "500 rows")):
        figure.clear()
        shown = plots.OverTimeDisplay(assess(time=time, window=window)).plot(figure.subplots())
        figure.canvas.draw()
        assert len(shown.ax_.get_xticks()) >= 2


def test_text_keys_are_labels(ax):
    result = assess()
    named = tuple(
        type(window)(
            f"q{k}", f"q{k}", *(getattr(window, name) for name in ("n", "mean_proba", "mean_true", "bias", "error"))
        )
        for k, window in enumerate(result.windows)
    )
    stable = assess(1.0)
    plots.OverTimeDisplay(type(stable)(named, "quarter", stable.change, stable.alpha, stable.confidence_level)).plot(ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["q0", "q2", "q4", "q6", "q8"]


def test_from_predictions_makes_a_figure():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    p = rng.random(600)
    shown = plots.OverTimeDisplay.from_predictions(rng.random(600) < p, p, np.repeat(np.arange(6), 100), window="1")
    assert shown.result.window == "steps of 1"
    plt.close(shown.figure_)


def test_windows_with_few_rows_do_not_set_the_scale(ax):
    rng = np.random.default_rng(0)
    t = np.concatenate([np.repeat(np.arange(8), 2000), np.full(12, 8)])
    p = rng.random(len(t))
    plots.OverTimeDisplay(tc.assess_over_time(rng.random(len(t)) < p, p, t, window="1")).plot(ax)
    assert ax.get_ylim()[1] < 0.4


def test_rows_are_no_result():
    with pytest.raises(TypeError, match=r"`result` must be a TimeAssessment.*OverTimeDisplay\.from_predictions"):
        plots.OverTimeDisplay(np.ones(3))
    with pytest.raises(TypeError, match=r"`recalibration` must be a Recalibration.*Pass the result of recalibrate"):
        plots.RecalibrationDisplay(np.ones(3))


def test_missing_windows_and_few_rows():
    """No line joins windows beside a gap, an error of three rows does not set the axis, and no entry lacks a marker."""
    rng = np.random.default_rng(4)
    day = np.concatenate([np.repeat(np.arange(10), 400), np.repeat(np.arange(30, 40), 400), np.full(3, 40)])
    p = np.append(rng.uniform(0.3, 0.7, 8000), np.full(3, 0.6))
    y = np.append(rng.random(8000) < p[:8000], np.zeros(3, bool)).astype(int)
    display = tc.assess_over_time(y, p, day, window=1).plot()
    (curve,) = (line for line in display.ax_.lines if line.get_label() == "_curve")
    x, errors = curve.get_data()
    assert np.isnan(x).sum() == 1
    assert np.nanmax(x[:11]) < 11 < 30 <= np.nanmin(x[11:])
    assert np.nanmax(errors) > 0.5 > display.ax_.get_ylim()[1]
    assert not any("filled" in text.get_text() for text in display.ax_.get_legend().get_texts())
