"""`plot` of results: the Display of their kind."""

import dataclasses

import numpy as np
import pytest

import truthcal as tc

rng = np.random.default_rng(3)
P = rng.uniform(0.05, 0.95, 400)
Y = rng.random(400) < P
G = np.arange(400) % 3
CLASSES = rng.dirichlet(np.ones(3), 200)
CLASS = rng.integers(0, 3, 200)
HALF = {"one prediction": [0.5]}

# Result -> how to compute it, and its Display.
RESULTS = {
    "Assessment": (lambda: tc.assess(Y, P), "ReliabilityDisplay"),
    "Assessment with groups": (lambda: tc.assess(Y, P, groups=np.arange(400) // 4), "ReliabilityDisplay"),
    "Assessment of a sketch": (lambda: tc.assess(tc.Sketch().update(Y, P)), "ReliabilityDisplay"),
    "Gate": (lambda: tc.check(Y, P), "ReliabilityDisplay"),
    "MulticlassAssessment": (lambda: tc.assess(CLASS, CLASSES), "SegmentsDisplay"),
    "SegmentTable": (lambda: tc.assess_segments(Y, P, G), "SegmentsDisplay"),
    "TimeAssessment": (lambda: tc.assess_over_time(Y, P, G, window=1), "OverTimeDisplay"),
    "ReliabilityCurve": (lambda: tc.reliability_curve(Y, P), "ReliabilityDisplay"),
    "binned ReliabilityCurve": (lambda: tc.reliability_curve(Y, P, strategy="uniform"), "BinnedReliabilityDisplay"),
    "BiasCurve": (lambda: tc.cumulative_bias_curve(Y, P), "BiasCurveDisplay"),
    "ScaleProfile": (lambda: tc.scale_profile(Y, P, rng=0, n_resamples=99), "ScaleProfileDisplay"),
    "SmoothWitness": (lambda: tc.smcal_witness(Y, P), "SmoothWitnessDisplay"),
    "Validity": (
        lambda: tc.validity("atb", constant=2, n_rows=[100, 400], populations=HALF, families=["shift"]),
        "ValidityDisplay",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_plot_draws_the_display_of_the_result(name, ax):
    compute, display = RESULTS[name]
    shown = compute().plot(ax)
    assert type(shown).__name__ == display
    assert shown.ax_ is ax
    assert ax.has_data()
    assert ax.get_xlabel()


def test_an_assessment_is_plotted_like_its_rows(ax, figure):
    shown = tc.assess(Y, P).plot(ax, name="model")
    expected = tc.plots.ReliabilityDisplay.from_predictions(Y, P, ax=figure.add_subplot(2, 2, 2))
    for name, column in expected.table().items():
        np.testing.assert_array_equal(shown.table()[name], column)
    np.testing.assert_array_equal(shown.band.low, expected.band.low)
    assert "model" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_two_models_share_axes(ax):
    tc.assess(Y, P).plot(ax, name="old")
    tc.assess(Y, np.sqrt(P)).plot(ax, name="new")
    assert {"old", "new"} <= {text.get_text() for text in ax.get_legend().get_texts()}


def test_results_without_a_picture_have_no_plot():
    assert not hasattr(tc.calibration_test(Y, P), "plot")
    assert not hasattr(tc.atb_summary(Y, P), "plot")


def test_an_assessment_without_rows_cannot_be_drawn(ax):
    copied = dataclasses.replace(tc.assess(Y, P), _summary=None)
    with pytest.raises(ValueError, match="the assessment has no rows or sketch to draw a curve from, because"):
        copied.plot(ax)
