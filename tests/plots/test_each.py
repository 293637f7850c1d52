"""The artists of each Display hold the numbers of its result, and nothing else."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import truthcal as tc
from truthcal import plots
from truthcal.plots.bias_curve import _bias_beyond_band, _thin_bias_curve
from truthcal.plots.probability_axes import ProbabilityAxis


def entries(ax):
    return [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]


# --- reliability ------------------------------------------------------------------------------------------------------


def test_reliability_draws_pools_band_and_density(ax, data, artists):
    y, p = data(400, 1.7)
    shown = plots.ReliabilityDisplay.from_predictions(y, p, ax=ax, rng=0)
    curve, band = tc.reliability_curve(y, p), tc.consistency_band(p, rng=0, simultaneous=True)
    found = artists(ax)
    x, height = found["reliability-0-curve"].get_data()
    np.testing.assert_array_equal(x[0::2], curve.left)
    np.testing.assert_array_equal(x[1::2], curve.right)
    np.testing.assert_array_equal(height, np.repeat(curve.mean_true, 2))
    corners = found["reliability-0-band"].get_paths()[0].vertices
    for end in (band.low, band.high):
        assert all(((corners == [q, value]).all(axis=1)).any() for q, value in zip(band.q, end, strict=True))
    strip = found["reliability-0-density"]
    density = tc.reliability_curve(y, p, strategy="uniform", n_bins=50)
    heights, edges, base = strip.get_data()
    assert len(edges) == 51
    tallest = density.left[density.weight.argmax()]
    assert edges[np.argmax(heights)] == pytest.approx(tallest)
    filled = {round(edge * 50) for edge in density.left}
    assert {i for i, each in enumerate(heights) if each > base} == filled
    assert ax.get_xlabel() == "predicted probability"
    assert ax.get_ylabel() == "observed frequency"
    assert ax.get_aspect() == 1
    assert min(ax.get_yticks()) == 0
    assert max(heights) < 0 < 1 < ax.get_ylim()[1]
    assert base > ax.get_ylim()[0]
    assert entries(ax) == ["observed", "contains 95% of calibrated curves", "outside that"]
    assert list(shown.table()) == list(curve.table())


def test_reliability_is_thick_exactly_where_it_is_outside(ax, data, artists):
    y, p = data(3000, 1.7)
    shown = plots.ReliabilityDisplay.from_predictions(y, p, ax=ax, rng=0)
    x, height = artists(ax)["reliability-0-outside"].get_data()
    drawn = ~np.isnan(x)
    low, high = (np.interp(x[drawn], shown.band.q, end) for end in (shown.band.low, shown.band.high))
    assert drawn.any()
    assert ((height[drawn] < low) | (height[drawn] > high)).all()
    for left, right, mean in zip(shown.curve.left, shown.curve.right, shown.curve.mean_true, strict=True):
        middle = (left + right) / 2
        low, high = (np.interp(middle, shown.band.q, end) for end in (shown.band.low, shown.band.high))
        if mean < low - 1e-9 or mean > high + 1e-9:
            inside = (x >= left - 0.01) & (x <= right + 0.01) & (height == mean)
            assert inside.any()


def test_reliability_marks_nothing_outside_a_band_of_single_predictions(ax, data, artists):
    y, p = data(3000, 1.7)
    band = tc.consistency_band(p, rng=0)
    plots.ReliabilityDisplay(tc.reliability_curve(y, p), band).plot(ax)
    assert "reliability-0-outside" not in artists(ax)
    assert entries(ax) == ["observed", "95% band at each point if calibrated"]


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [300, 3000])
def test_at_most_one_in_twenty_calibrated_diagrams_has_a_mark(artists, rows):
    """3,000 different predictions are merged for the band: the curve is that of all of them."""
    rng, marked = np.random.default_rng(rows), {"reliability": 0, "binned": 0}
    for seed in range(200):
        p = rng.random(rows)
        y = rng.random(rows) < p
        ax = Figure().subplots()
        plots.ReliabilityDisplay.from_predictions(y, p, ax=ax, rng=seed, legend=False)
        marked["reliability"] += len(artists(ax)["reliability-0-outside"].get_xdata()) > 0
        plots.BinnedReliabilityDisplay.from_predictions(y, p, ax=ax, legend=False)
        marked["binned"] += any(color[3] > 0 for color in artists(ax)["binned-0-points"].get_facecolor())
    assert max(marked.values()) <= 19  # 10 expected; 19 or more has a chance of 0.5%


def test_reliability_of_one_point_outside_its_band_shows(ax, artists):
    plots.ReliabilityDisplay.from_predictions([1] * 30, [0.3] * 30, ax=ax, rng=0)
    x, height = artists(ax)["reliability-0-outside"].get_data()
    assert x[~np.isnan(x)].tolist() == [0.3]
    assert set(height[~np.isnan(height)]) == {1.0}
    assert artists(ax)["reliability-0-outside"].get_markevery() == [0]
    assert artists(ax)["reliability-0-outside"].get_marker() == "o"
    assert artists(ax)["reliability-0-curve"].get_marker() == "o"


def test_reliability_is_thin_where_nothing_was_predicted(ax, artists):
    y = [0, 0, 1] * 20 + [0, 1] * 30
    plots.ReliabilityDisplay.from_predictions(y, [0.0] * 60 + [1.0] * 60, ax=ax, rng=0)
    thick = artists(ax)["reliability-0-outside"]
    np.testing.assert_array_equal(thick.get_xdata(), [0, np.nan, 1, np.nan])
    np.testing.assert_array_equal(thick.get_ydata(), [1 / 3, np.nan, 0.5, np.nan])
    assert thick.get_markevery() == [0, 2]
    np.testing.assert_array_equal(artists(ax)["reliability-0-curve"].get_xdata(), [0, 0, 1, 1])


def test_reliability_refuses_bins(data):
    with pytest.raises(ValueError, match='`curve` must have strategy "isotonic"; got "quantile"'):
        plots.ReliabilityDisplay(curve=tc.reliability_curve(*data(20), strategy="quantile"))


def test_reliability_of_rare_events_fills_the_axes(ax, artists):
    rng = np.random.default_rng(0)
    p = 1e-3 * np.exp(rng.normal(0, 0.5, 100_000))
    plots.ReliabilityDisplay.from_predictions(rng.random(100_000) < p, p, ax=ax, rng=0)
    extent = ax.get_xlim()[1]
    assert np.quantile(p, 0.999) < extent < 2 * p.max()  # though the ends of curve and band are far above
    assert artists(ax)["reliability-0-band"].get_paths()[0].vertices[:, 1].max() > 2 * p.max()
    strip = artists(ax)["reliability-0-density"].get_data()
    assert 0.8 * extent < strip.edges[-1] < extent
    assert -0.1 * extent < ax.get_ylim()[0] < strip.baseline < strip.values.max() < 0
    counts = np.histogram(p, strip.edges)[0]
    place = ax.yaxis.get_transform().transform
    heights = (place(strip.values) - place(strip.baseline)) / (place(strip.values.max()) - place(strip.baseline))
    np.testing.assert_allclose(heights, 0.05 * (heights > 0) + 0.95 * counts / counts.max(), atol=0.02)


def test_reliability_of_rare_events_far_off_is_in_the_axes(ax):
    plots.ReliabilityDisplay.from_predictions([0, 0, 0, 1] * 250, [0.001] * 500 + [0.002] * 500, ax=ax, rng=0)
    assert 0.25 < ax.get_ylim()[1] < 0.3


def test_strips_of_several_models_lie_below_each_other(ax, data, artists):
    for slope in (1, 2, 3):
        plots.ReliabilityDisplay.from_predictions(*data(50, slope), ax=ax, rng=0)
    strips = [artists(ax)[f"reliability-{slot}-density"].get_data() for slot in range(3)]
    assert 0 > strips[0].baseline > max(strips[1].values) > strips[1].baseline > max(strips[2].values)
    assert strips[2].baseline > ax.get_ylim()[0]
    assert entries(ax) == ["model 1", "model 2", "model 3", "outside its own 95% band (5% of calibrated curves)"]


def test_reliability_needs_neither_band_nor_density(ax, data, artists):
    curve = tc.reliability_curve(*data(50))
    shown = plots.ReliabilityDisplay(curve=curve, name="honest").plot(ax, name="renamed")
    assert {gid for gid in artists(ax) if gid.startswith("reliability")} == {
        "reliability-0-curve",
        "reliability-0-diagonal",
    }
    assert entries(ax) == ["renamed"]
    assert shown.name == "honest"


# --- binned -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_binned_draws_bins_with_intervals_and_sizes(ax, data, artists, strategy):
    y, p = data(500, 2.0)
    plots.BinnedReliabilityDisplay.from_predictions(y, p, strategy=strategy, n_bins=7, ax=ax)
    curve = tc.reliability_curve(y, p, strategy=strategy, n_bins=7, simultaneous=True)
    found = artists(ax)
    points = found["binned-0-points"]
    # The display adds up sorted rows, the curve rows in their own order.
    expected = np.stack([curve.mean_proba, curve.mean_true], axis=1)
    np.testing.assert_allclose(points.get_offsets(), expected, rtol=1e-14)
    sizes = points.get_sizes()
    assert (np.argsort(sizes, kind="stable") == np.argsort(curve.count, kind="stable")).all()
    out = (curve.mean_true < curve.low) | (curve.mean_true > curve.high)
    assert 0 < out.sum() < 7
    assert [color[3] == 1.0 for color in points.get_facecolor()] == out.tolist()
    ends = [path.vertices[:, 1].tolist() for path in found["binned-0-band"].get_paths()]
    assert ends == np.stack([curve.low, curve.high], axis=1).tolist()
    sizes = f"{curve.count.min()} to {curve.count.max()}"
    assert entries(ax)[-1] == f"larger: more rows (7 bins, {sizes} rows each)"


def test_ranges_of_single_bins_fill_no_markers(ax, data, artists):
    curve = tc.reliability_curve(*data(500, 2.0), strategy="quantile", n_bins=7)
    assert curve.outside > 0
    plots.BinnedReliabilityDisplay(curve).plot(ax)
    assert all(color[3] == 0.0 for color in artists(ax)["binned-0-points"].get_facecolor())
    assert entries(ax)[1] == "95% range of each bin by itself, if calibrated"
    assert not [text for text in entries(ax) if "filled" in text]


def test_binned_says_one_bin_of_one_row(ax):
    plots.BinnedReliabilityDisplay.from_predictions([1], [0.3], ax=ax)
    assert entries(ax)[-1] == "1 bin, 1 row"


def test_bins_of_the_same_size_have_no_larger_markers(ax, data):
    plots.BinnedReliabilityDisplay.from_predictions(*data(300), n_bins=3, ax=ax)
    assert entries(ax)[-1] == "3 bins, 100 rows each"


@pytest.mark.parametrize(("rows", "bins"), [(3, 2), (25, 2), (70, 7), (300, 15)])
def test_binned_has_by_default_about_ten_rows_in_a_bin(ax, data, rows, bins):
    for given in (data(rows), [tc.Sketch().update(*data(rows))]):
        assert len(plots.BinnedReliabilityDisplay.from_predictions(*given, ax=ax).curve.count) == bins
    assert len(plots.BinnedReliabilityDisplay.from_predictions(*data(rows), n_bins=3, ax=ax).curve.count) == 3


def test_binned_refuses_pools(data):
    with pytest.raises(ValueError, match='`curve` must have strategy "quantile" or "uniform"; got "isotonic"'):
        plots.BinnedReliabilityDisplay(tc.reliability_curve(*data(20)))
    with pytest.raises(ValueError, match="`strategy` must be"):
        plots.BinnedReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], strategy="isotonic")


# --- cumulative bias --------------------------------------------------------------------------------------------------


def test_bias_draws_the_steps_and_the_band(ax, data, artists):
    y, p = data(100, 2.0)
    plots.BiasCurveDisplay.from_predictions(y, p, ax=ax, rng=0)
    curve, band = tc.cumulative_bias_curve(y, p), tc.bias_band(p, rng=0)
    x, height = artists(ax)["bias-0-curve"].get_data()
    assert (x[0], height[0], x[-1], height[-1]) == (0, 0, 1, curve.bias[-1])
    np.testing.assert_array_equal(x[2:-1:2], curve.q)
    np.testing.assert_array_equal(height[2:-1:2], curve.bias)
    np.testing.assert_array_equal(height[1:-1:2], [0, *curve.bias[:-1]])
    corners = artists(ax)["bias-0-band"].get_paths()[0].vertices
    assert set(corners[:, 1]) == {-band.limit, band.limit}
    assert {note.get_text() for note in ax.texts} == {"rising: predictions too high      falling: too low"}
    assert entries(ax) == ["cumulative bias", "contains 95% of calibrated curves", "outside that"]


def test_bias_of_a_sketch_has_no_steps(ax, data, artists):
    sketch = tc.Sketch(64).update(*data(1000))
    plots.BiasCurveDisplay.from_predictions(sketch, ax=ax, rng=0)
    x, height = artists(ax)["bias-0-curve"].get_data()
    curve = tc.cumulative_bias_curve(sketch)
    np.testing.assert_array_equal(x[2:-1], curve.q)
    np.testing.assert_array_equal(height[2:-1], curve.bias)


def test_bias_of_many_rare_events_keeps_its_shape(ax, data, artists):
    y, p = data(50_000)
    plots.BiasCurveDisplay.from_predictions(y, p / 1000, ax=ax, rng=0)
    assert len(artists(ax)["bias-0-curve"].get_xdata()) > 400


def test_bias_of_many_rows_keeps_all_extremes(ax, data, artists):
    y, p = data(50_000, 1.1)
    plots.BiasCurveDisplay.from_predictions(y, p, ax=ax, rng=0)
    curve = tc.cumulative_bias_curve(y, p)
    x, height = artists(ax)["bias-0-curve"].get_data()
    assert len(x) <= 485
    assert max(height) == curve.bias.max()
    assert min(height) == min(curve.bias.min(), 0)
    assert x[-2] == curve.q[-1]
    for k in (0, 100, 239):
        own = (curve.q >= k / 240) & (curve.q < (k + 1) / 240)
        kept = height[1:-1][(x[1:-1] >= k / 240) & (x[1:-1] < (k + 1) / 240)]
        assert {curve.bias[own].min(), curve.bias[own].max()} <= set(kept)


def test_thinned_keeps_points_in_order():
    q = np.sort(np.random.default_rng(0).random(5000))
    x, height = _thin_bias_curve(q, np.sin(50 * q), ProbabilityAxis("linear"))
    assert (np.diff(x) > 0).all()
    np.testing.assert_array_equal(height, np.sin(50 * x))


@pytest.mark.parametrize(
    ("height", "limit", "expected"),
    [
        ([0, 2, 2, 0], 1, [(0.5, 1), (1, 2), (2, 2), (2.5, 1), None]),
        ([0, 2, -2, 0], 1, [(0.5, 1), (1, 2), (1.25, 1), None, (1.75, -1), (2, -2), (2.5, -1), None]),
        ([0, 0.5, 1, 0], 1, []),
        ([0, 0, 0.5, 0.5], 0, [(1, 0), (2, 0.5), (3, 0.5), None]),
        ([0, 0, 0, 0], 0, []),
    ],
)
def test_parts_beyond_the_limit(height, limit, expected):
    x, y = _bias_beyond_band(np.arange(4.0), np.array(height, float), float(limit))
    found = [None if np.isnan(a) else (a, b) for a, b in zip(x, y, strict=True)]
    assert found == [None if each is None else pytest.approx(each) for each in expected]


def test_bias_without_a_band(ax, data):
    plots.BiasCurveDisplay(tc.cumulative_bias_curve(*data(30)), name="honest").plot(ax)
    assert entries(ax) == ["honest"]


def test_axes_of_several_models_hold_all_of_them(data):
    biased = [plots.BiasCurveDisplay(tc.cumulative_bias_curve(data(300)[0], p)) for p in ([0.9] * 300, [0.1] * 300)]
    for order in (biased, biased[::-1]):
        ax = Figure().subplots()
        for shown in order:
            shown.plot(ax)
            low, high = ax.get_ylim()
        assert low < min(each.curve.bias.min() for each in biased)
        assert high > max(each.curve.bias.max() for each in biased)


# --- scales -----------------------------------------------------------------------------------------------------------


def test_scales_draw_errors_beside_chance(ax, data, artists):
    y, p = data(400, 1.6)
    plots.ScaleProfileDisplay.from_predictions(y, p, ax=ax, rng=0)
    profile = tc.scale_profile(y, p, rng=0)
    found = artists(ax)
    x, height = found["scales-0-curve"].get_data()
    np.testing.assert_array_equal(x, profile.width)
    np.testing.assert_array_equal(height, profile.error)
    corners = found["scales-0-band"].get_paths()[0].vertices
    assert {*profile.error_low, *profile.error_high} <= set(corners[:, 1])
    filled = [color[3] == 1.0 for color in found["scales-0-points"].get_facecolor()]
    assert filled == (profile.value > profile.high).tolist()
    assert any(filled)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "1/2", "1/4", "1/8", "1/16", "1/32"]
    left, right = ax.get_xlim()
    assert left > 1 > 1 / 32 > right  # wide at the left
    assert ax.get_xscale() == "log"
    assert entries(ax) == ["error", "95% range if calibrated", "filled: above that range"]


def test_scales_inside_the_range_are_open(ax, artists):
    plots.ScaleProfileDisplay.from_predictions([0, 1] * 20, [0.5] * 40, ax=ax, rng=0)
    assert not artists(ax)["scales-0-points"].get_facecolor().any()
    assert to_rgba(artists(ax)["scales-0-points"].get_edgecolor()[0])[3] == 1.0
