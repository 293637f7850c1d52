"""Axes of rare events: the choice of scale and limits by its properties, and what the plots show with it."""

import numpy as np
import pytest

import truthcal as tc
from truthcal import plots
from truthcal.plots.probability_axes import SCALES, Predictions, ProbabilityAxis

KINDS = {
    "reliability": plots.ReliabilityDisplay,
    "binned": plots.BinnedReliabilityDisplay,
    "bias": plots.BiasCurveDisplay,
}
RARE = {
    "log-uniform": lambda rng: np.exp(rng.uniform(np.log(1e-4), np.log(1e-2), 5000)),
    "Beta(1, 199)": lambda rng: rng.beta(1, 199, 5000),
    "Beta(1, 49) and one outlier": lambda rng: np.append(rng.beta(1, 49, 5000), 0.97),
    "with zeros": lambda rng: np.where(rng.random(5000) < 0.1, 0.0, rng.beta(1, 99, 5000)),
    "mirrored": lambda rng: 1 - rng.beta(1, 99, 5000),
}


def predictions(p, weight=None):
    return Predictions(p, np.ones(len(p)) if weight is None else weight, np.ones(len(p), np.int64))


@pytest.fixture(params=RARE)
def rare(request):
    return RARE[request.param](np.random.default_rng(1))


def test_order_and_scale_of_weights_do_not_change_the_axis(rare):
    rng = np.random.default_rng(0)
    weight, order = rng.uniform(0.5, 2.0, len(rare)), rng.permutation(len(rare))
    axis = ProbabilityAxis.choose([predictions(rare, weight)])
    assert ProbabilityAxis.choose([predictions(rare[order], 8.0 * weight[order])]) == axis
    assert axis.scale == ("logit" if rare.mean() > 0.5 else "log")


@pytest.mark.parametrize("outlier", [0.0, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("law", [name for name in RARE if "outlier" not in name])
def test_one_outlier_hardly_changes_the_axis(law, outlier):
    p = RARE[law](np.random.default_rng(1))
    before, after = (ProbabilityAxis.choose([predictions(q)]) for q in (p, np.append(p, outlier)))
    assert after.scale == before.scale
    assert np.abs(before.share([after.start, after.end]) - [0, 1]).max() < 0.16
    assert after.width == pytest.approx(before.width, rel=0.05)
    if not after.start <= outlier <= after.end:
        assert "1 row" in after.note or "rows" in after.note


def test_a_group_of_large_predictions_is_on_the_axis():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(20_000) < 0.995, rng.beta(0.7, 300, 20_000), rng.uniform(0.5, 0.7, 20_000))
    axis = ProbabilityAxis.choose([predictions(p)])
    assert (axis.scale, axis.unit.per, axis.note) == ("log", "", "")
    assert axis.end > p.max()


@pytest.mark.parametrize(
    ("p", "scale"),
    [
        (np.linspace(0, 1, 101), "linear"),
        (np.repeat([0.01, 0.99], 50), "linear"),
        (np.repeat([0.01, 0.01, 0.99], 50), "logit"),
        (np.repeat([0.01, 0.01, 0.5], 50), "log"),
        (np.repeat([0.99, 0.5], [60, 40]), "logit"),
        (np.zeros(9), "linear"),
    ],
)
def test_scale_follows_most_predictions(p, scale):
    assert ProbabilityAxis.choose([predictions(p)]).scale == scale


@pytest.mark.parametrize("scale", SCALES[1:])
def test_scales_are_increasing_inverted_and_hold_zero_and_one(scale):
    axis = ProbabilityAxis(scale, width=1e-4)
    p = np.concatenate([[0.0, 1e-300, 1e-9], np.geomspace(1e-6, 0.5, 50), 1 - np.geomspace(0.4, 1e-6, 50), [1.0]])
    place = axis.forward(p)
    assert (np.diff(place) >= 0).all()
    assert np.isfinite(place).all()
    np.testing.assert_allclose(axis.inverse(place), p, atol=1e-12)
    np.testing.assert_allclose(axis.at(axis.share(p)), p, atol=1e-12)
    low, high = axis.limits
    assert low < 0 < 1 < high


@pytest.mark.parametrize("kind", KINDS)
def test_rare_events_fill_the_axes(kind, rare, figure):
    y = np.random.default_rng(2).random(len(rare)) < rare
    options = {} if kind == "binned" else {"rng": 0, "n_resamples": 499}
    shown = KINDS[kind].from_predictions(y, rare, ax=figure.subplots(), **options)
    figure.canvas.draw()
    ax = shown.ax_
    place = ax.transAxes.inverted().transform(
        ax.transData.transform(np.stack([np.quantile(rare, [0.25, 0.75])] * 2, 1))
    )
    assert np.diff(place[:, 0])[0] > 0.3
    for axis in (ax.xaxis, ax.yaxis):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        assert 3 <= len(set(labels)) == len(labels)
        assert not [label for label in labels if "e" in label]
    assert ("logit scale" if rare.mean() > 0.5 else "log scale") in ax.get_xlabel()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    if kind != "binned" and 0.97 in rare:
        assert "per 1,000" in ax.get_xlabel()  # the unit of the note, too
        assert [text for text in legend if text.startswith("not shown: ") and text.endswith("970)")]
    if 0.0 in rare:
        assert ax.get_xlim()[0] < 0.0
        assert "0" in [label.get_text() for label in ax.get_xticklabels()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES[1:])
def test_the_scale_can_be_chosen(kind, scale, figure):
    y, p = [0, 1, 1, 0] * 10, [0.2, 0.9, 0.6, 0.3] * 10
    ax = KINDS[kind].from_predictions(y, p, ax=figure.subplots(), scale=scale).ax_
    assert ax.get_xscale() == ("linear" if scale == "linear" else "function")
    assert (f"({scale} scale)" in ax.get_xlabel().replace("\n", " ")) == (scale != "linear")


def test_unknown_scales_are_refused(figure):
    with pytest.raises(ValueError, match=r"`scale` must be .*linear.*got 'symlog'"):
        plots.BiasCurveDisplay.from_predictions([0, 1], [0.2, 0.9], ax=figure.subplots(), scale="symlog")


def test_segments_and_scales_of_rare_events_are_counted_per_thousand(figure):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 199, 4000)
    y = rng.random(4000) < p
    left, right = figure.subplots(1, 2)
    sketches = {name: tc.Sketch().update(y[k::2], p[k::2]) for k, name in enumerate("ab")}
    table = tc.SketchTable.from_sketches(sketches, by="g")
    plots.SegmentsDisplay.from_sketch_table(table, ax=left)
    plots.ScaleProfileDisplay.from_predictions(y, p, ax=right)
    figure.canvas.draw()
    assert "per 1,000" in left.get_xlabel()
    assert "per 1,000" in right.get_ylabel().replace("\n", " ")
    for axis in (left.xaxis, right.yaxis):
        assert max(abs(float(t.get_text().replace("\N{MINUS SIGN}", "-"))) for t in axis.get_ticklabels()) > 0.1
