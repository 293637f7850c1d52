"""The forest plot of segments."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import truthcal as tc
from truthcal import plots

STRANGE = "$x_1$ <b>\n" + "long " * 20


@pytest.fixture
def table(data):
    y, p = data(1500)
    groups = {"fine": p, "also fine": p, STRANGE: np.clip(p + 0.15, 0, 1), "low": np.clip(p - 0.2, 0, 1)}
    sketches = {name: tc.Sketch().update(y, report) for name, report in groups.items()}
    sketches["few"] = tc.Sketch().update([0, 1], [0.2, 0.7])
    return tc.SketchTable.from_sketches(sketches, by="region")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_each_segment_has_its_bias_interval_and_row(ax, table, artists):
    segments = tc.assess_segments(table)
    shown = plots.SegmentsDisplay.from_segments(segments, ax=ax)
    found = artists(ax)
    for line, segment in enumerate(segments.segments):
        (x,), (y,) = found[f"segments-{line}-bias"].get_data()
        assert (x, y) == (segment.bias, line)
        if f"segments-{line}-interval" in found:
            (path,) = found[f"segments-{line}-interval"].get_paths()
            assert path.vertices.tolist() == [[segment.bias_low, line], [segment.bias_high, line]]
        else:
            assert np.isnan(segment.bias_low)
        assert f"{segment.n:,}" in texts(ax)
        assert segment.kind in texts(ax)
    assert "region" in texts(ax)
    assert "adjusted p" in texts(ax)
    assert "not tested" in texts(ax)
    assert ax.get_ylim() == (4.6, -0.6)  # the clearest on top
    assert ax.get_xlabel() == "mean prediction minus mean outcome, 95% interval"
    assert shown.table()["bias"] == [segment.bias for segment in segments.segments]


def test_miscalibrated_segments_differ_in_shape_and_weight(ax, table, artists):
    shown = plots.SegmentsDisplay.from_sketch_table(table, ax=ax)
    found = artists(ax)
    wrong = [segment.miscalibrated for segment in shown.segments.segments]
    assert sum(wrong) == 2
    for line, each in enumerate(wrong):
        point, name = found[f"segments-{line}-bias"], found[f"segments-{line}-name"]
        assert point.get_marker() == ("D" if each else "o")
        assert (point.get_markerfacecolor() == "none") is not each
        assert name.get_fontweight() == ("bold" if each else "normal")


def test_strange_names_are_literal_and_short(ax, table, artists):
    plots.SegmentsDisplay.from_sketch_table(table, ax=ax)
    name = next(text for gid, text in artists(ax).items() if gid.endswith("-name") and "$" in text.get_text())
    assert name.get_text().startswith("$x_1$ <b>\\nlong")  # escaped, as in print
    assert name.get_text().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert len(name.get_text()) <= 28
    assert not name.get_parse_math()
    ax.figure.canvas.draw()


def test_only_so_many_are_drawn(ax, table, artists):
    plots.SegmentsDisplay.from_sketch_table(table, max_segments=2, ax=ax, alpha=0.01)
    assert "... and 3 more" in texts(ax)
    assert len([gid for gid in artists(ax) if gid.endswith("-bias")]) == 2
    assert ax.get_ylim() == (2.6, -0.6)
    with pytest.raises(ValueError, match="`max_segments` must be"):
        plots.SegmentsDisplay(tc.assess_segments(table), max_segments=0)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_how_many_more_is_never_cut(data, layout):
    many = {f"a segment with a long name, {i}": tc.Sketch().update(*data(30, seed=i)) for i in range(40)}
    figure = Figure(figsize=(3, 3), dpi=72, layout=layout)
    FigureCanvasAgg(figure)
    table = tc.SketchTable.from_sketches(many, by="region")
    ax = plots.SegmentsDisplay.from_sketch_table(table, max_segments=12, ax=figure.subplots()).ax_
    (more,) = [text for text in ax.texts if text.get_text() == "... and 28 more"]
    figure.canvas.draw()
    assert more.get_window_extent().x0 >= -2


def test_names_of_nothing_are_said(ax, data, artists):
    sketch = tc.Sketch().update(*data(30))
    table = tc.SketchTable.from_sketches({"": sketch, "  ": sketch, "'": sketch}, by="region")
    plots.SegmentsDisplay.from_sketch_table(table, ax=ax)
    names = sorted(artists(ax)[f"segments-{line}-name"].get_text() for line in range(3))
    assert names == ["'", "(no name)", "(no name)"]


@pytest.mark.parametrize("size", [(6.4, 4.8), (4.5, 3), (10, 3), (3, 3)])
@pytest.mark.parametrize("layout", [None, "constrained"])
def test_nothing_overlaps_or_is_cut_off(table, size, layout):
    figure = Figure(figsize=size, dpi=72, layout=layout)
    FigureCanvasAgg(figure)
    ax = plots.SegmentsDisplay.from_sketch_table(table, ax=figure.subplots(), name="a heading").ax_
    figure.canvas.draw()
    ticks = [tick.label1 for tick in ax.xaxis.get_major_ticks()]
    boxes = [text.get_window_extent() for text in (*ax.texts, ax.xaxis.label, *ticks)]
    for i, box in enumerate(boxes):
        assert -2 <= box.x0 <= box.x1 <= figure.bbox.x1 + 2
        assert -2 <= box.y0 <= box.y1 <= figure.bbox.y1 + 2
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert not box.overlaps(ax.get_window_extent().padded(-2))
    assert ax.get_window_extent().width > 0.2 * figure.bbox.width


def test_keys_of_several_columns_make_the_heading(ax, data):
    y, p = data(100)
    table = tc.SketchTable.from_sketches({("a", 1): tc.Sketch().update(y, p)}, by=("region", "year"))
    plots.SegmentsDisplay.from_sketch_table(table, ax=ax)
    assert "region, year" in texts(ax)


def test_new_figure_suits_large_print(table):
    with mpl.rc_context({"font.size": 18}):
        shown = plots.SegmentsDisplay.from_sketch_table(table)
        shown.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in shown.ax_.texts]
    assert not [i for i, box in enumerate(boxes) if any(box.overlaps(other) for other in boxes[:i])]
    assert min(box.x0 for box in boxes) >= -2
    assert max(box.x1 for box in boxes) <= shown.figure_.bbox.x1 + 2
    plt.close("all")


def test_new_figure_has_a_line_for_each(table):
    short, tall = (plots.SegmentsDisplay.from_sketch_table(table, max_segments=count) for count in (1, 5))
    assert tall.figure_.get_figheight() > short.figure_.get_figheight()
    assert len(tall.frame()) == 5
    plt.close("all")
