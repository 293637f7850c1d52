"""Properties of all Displays: several models, literal names, unchanged settings, few points, all constructors."""

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import truthcal as tc
from truthcal import plots
from truthcal.results.text import unit_of

MODELS = {
    "reliability": plots.ReliabilityDisplay,
    "binned": plots.BinnedReliabilityDisplay,
    "bias": plots.BiasCurveDisplay,
    "scales": plots.ScaleProfileDisplay,
}
NAMES = ["honest", "gradient boosting, $x_1$ and <b>" + " and more" * 8, "_under", "two\nlines", "five", "r\\alpha^2"]
models = pytest.mark.parametrize("kind", MODELS)


def draw(kind, *rows, **options):
    seed = {} if kind == "binned" else {"rng": 0, "n_resamples": 99}
    return MODELS[kind].from_predictions(*rows, **seed, **options)


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


@models
def test_six_models_share_axes(kind, figure, data, artists):
    ax = figure.subplots()
    for i, name in enumerate(NAMES):
        shown = draw(kind, *data(300, 1 + i / 3), name=name, ax=ax)
        assert shown.ax_ is ax
        assert shown.figure_ is figure
    found = artists(ax)
    lines = [found[f"{kind}-{slot}-curve"] for slot in range(6)]
    assert len({to_hex(line.get_color()) for line in lines}) == 6
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 6
    assert not found[f"{kind}-0-band"].get_visible()
    assert f"{kind}-1-band" not in found
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    names = texts(ax.get_legend())[:6]
    assert names[0] == "honest"
    assert names[1].startswith("gradient boosting, $x_1$")
    assert names[1].endswith("\N{HORIZONTAL ELLIPSIS}")
    assert names[2:] == ["_under", "two\\nlines", "five", "r\\alpha^2"]


@models
@pytest.mark.parametrize(
    ("size", "count"),
    [((6.4, 4.8), 1), ((6.4, 4.8), 6), ((4, 8), 2), ((4, 8), 6), ((9, 4), 1), ((9, 4), 6), ((3, 3), 1), ((3, 3), 2)],
)
def test_nothing_overlaps_or_is_cut_off(kind, count, size, figure, data):
    figure.set_size_inches(size)
    ax = figure.subplots()
    for i in range(count):
        draw(kind, *data(60, 1 + i), name=NAMES[1], ax=ax)
    assert_tidy(ax, ax.get_legend())


@models
@pytest.mark.parametrize("size", [(3, 3), (3, 2)])
@pytest.mark.parametrize("small", [False, True])
def test_small_axes_without_a_legend_are_tidy(kind, size, small, figure, data):
    figure.set_size_inches(size)
    y, p = data(60)
    ax = draw(kind, y, p / 400 if small else p, ax=figure.subplots(), legend=False).ax_
    assert ax.get_legend() is None
    assert_tidy(ax)
    if kind != "scales":
        assert 2 <= len(ax.get_xticks()) <= 6


@models
def test_legends_that_leave_no_room_for_the_axes_are_outside_the_figure(kind, figure, data):
    figure.set_size_inches(3, 2)
    ax = draw(kind, *data(60), ax=figure.subplots()).ax_
    assert ax.get_legend().get_in_layout()  # a tight box has it
    assert_tidy(ax)


def assert_tidy(ax, *legend):
    """No text overlaps another or the axes, and everything is inside the figure."""
    ax.figure.canvas.draw()
    ax.apply_aspect()
    frame, whole = ax.get_window_extent(), ax.figure.bbox
    ticks = [
        tick.label1
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks()
        if axis.get_view_interval().min() <= tick.get_loc() <= axis.get_view_interval().max()
    ]
    others = (*legend, ax.xaxis.label, ax.yaxis.label, *ax.texts, ax.yaxis.offsetText)
    boxes = {str(each): each.get_window_extent() for each in (*ticks, *others) if each in legend or each.get_text()}
    assert len(boxes) >= 6
    for name, box in boxes.items():
        assert not box.overlaps(frame), name
        assert not [other for other in boxes if other != name and boxes[other].overlaps(box)], name
        assert box.x0 >= whole.x0 - 2, name
        assert box.x1 <= whole.x1 + 2, name
        assert box.y0 >= whole.y0 - 2, name
        assert box.y1 <= whole.y1 + 2, name
    assert frame.width > 0.2 * whole.width


@models
def test_own_figure_suits_large_print(kind, data):
    with mpl.rc_context({"font.size": 18}):
        ax = draw(kind, *data(300)).ax_
        assert_tidy(ax, ax.get_legend())
        draw(kind, *data(300, 2), ax=ax, name=NAMES[1])
        assert_tidy(ax, ax.get_legend())
    plt.close("all")


@models
def test_models_without_names_are_numbered(kind, figure, data):
    ax = figure.subplots()
    draw(kind, *data(50), ax=ax)
    assert not texts(ax.get_legend())[0].startswith("model")
    draw(kind, *data(50), ax=ax, name="honest")
    draw(kind, *data(50), ax=ax)
    assert texts(ax.get_legend())[:3] == ["model 1", "honest", "model 3"]


@models
def test_labels_of_the_user_stay_in_the_legend(kind, figure, data):
    ax = figure.subplots()
    (line,) = ax.plot([0, 1], [0, 0.1], label="mine: $x$")
    for count in (1, 2):
        draw(kind, *data(50), ax=ax)
        assert texts(ax.get_legend())[-1] == "mine: $x$"
        assert ax.get_legend().get_texts()[-1].get_parse_math()
        assert len([text for text in texts(ax.get_legend()) if text == "mine: $x$"]) == 1
        assert ax.get_legend().get_lines()[-1].get_color() == line.get_color(), count


NOTES = {
    "reliability": ("outside its own 95% band (5% of calibrated curves)", "outside its own band"),
    "bias": ("outside its own 95% band (5% of calibrated curves)", "outside its own band"),
    "binned": ("filled: outside its own 95% range", "filled: outside its own range"),
    "scales": ("filled: above its own 95% range", "filled: above its own range"),
}


@models
def test_legend_says_what_is_true_of_all_models(kind, figure, data):
    ax = figure.subplots()
    for level, note in ((0.95, None), (0.95, NOTES[kind][0]), (0.8, NOTES[kind][1]), (0.95, NOTES[kind][1])):
        draw(kind, *data(50), ax=ax, confidence_level=level)
        assert note is None or texts(ax.get_legend())[-1].replace("\n", " ") == note


@pytest.mark.parametrize("first", [True, False])
def test_legend_knows_of_models_without_a_band(first, figure, data):
    y, p = data(50)
    for bare, kind in (
        (plots.ReliabilityDisplay(tc.reliability_curve(y, p)), "reliability"),
        (plots.BiasCurveDisplay(tc.cumulative_bias_curve(y, p)), "bias"),
    ):
        ax = Figure().subplots()
        for with_band in (first, not first):
            draw(kind, y, p, ax=ax) if with_band else bare.plot(ax)
        assert texts(ax.get_legend()) == ["model 1", "model 2", "outside its own band"]
        ax = bare.plot(bare.plot(Figure().subplots()).ax_).ax_
        assert texts(ax.get_legend()) == ["model 1", "model 2"]


@models
def test_refuses_what_is_no_axes(kind, figure, data):
    with pytest.raises(TypeError, match="`ax` must be one matplotlib Axes, or None for a new figure; got 3"):
        draw(kind, *data(20), ax=3)
    with pytest.raises(TypeError, match="pass one of its elements"):
        draw(kind, *data(20), ax=figure.subplots(1, 2))
    with pytest.raises(TypeError, match="`legend` must be True or False; got 'no'"):
        draw(kind, *data(20), legend="no")
    assert not plt.get_fignums()


ROWS = np.array([0, 1, 1]), np.array([0.2, 0.7, 0.9])


@models
def test_rows_in_place_of_a_result_are_refused(kind):
    display = MODELS[kind]
    message = rf"must be a \w+; got array\(\[0, 1, 1\]\)\. Pass outcomes and predictions to {display.__name__}\.from_predictions\("
    with pytest.raises(TypeError, match=message):
        display(*ROWS)


@models
@pytest.mark.parametrize(
    ("option", "cure"),
    [
        ("title", r"Set it afterwards: display\.ax_\.set_title"),
        ("figsize", r"Pass axes of a figure of this size: ax="),
        ("legends", r"Did you mean `legend`\?"),
        ("names", r"Did you mean `name`\?"),
        ("zzz", r"Options of plot: ax, name, legend"),
    ],
)
def test_unknown_options_name_the_class(kind, option, cure):
    display = MODELS[kind]
    with pytest.raises(TypeError, match=f"`{option}` is not an option of {display.__name__}. {cure}"):
        display.from_predictions(*ROWS, **{option: 5})


@pytest.mark.parametrize("option", ["n_bins", "strategy"])
def test_bins_are_those_of_another_display(option):
    message = f"`{option}` is not an option of ReliabilityDisplay. Bins are those of BinnedReliabilityDisplay"
    with pytest.raises(TypeError, match=message):
        plots.ReliabilityDisplay.from_predictions(*ROWS, **{option: 5})


# --- rare events ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reliability", "binned", "bias"])
@pytest.mark.parametrize("scale", [1e-2, 1e-5])
def test_axes_end_above_small_predictions(kind, scale, figure):
    p = scale * np.linspace(0.1, 1, 500)
    y = np.arange(500) % 2 * 0
    ax = draw(kind, y, p, ax=figure.subplots()).ax_
    left, right = ax.get_xlim()
    assert -0.1 * right < left < 0
    assert scale < right < (1.2 * scale if kind == "bias" else 1.0)
    if kind != "bias":
        assert ax.get_ylim()[1] == right
    figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0] == "0"
    assert 2 <= len(set(labels)) == len(labels)
    unit = unit_of(p.mean())
    np.testing.assert_allclose(np.array(labels, float) / unit.rows, ax.get_xticks(), rtol=1e-6)
    assert ax.get_xlabel().replace("\n", " ") == f"predicted probability,{unit.per} (log scale)"
    draw(kind, [0, 1], [0.2, 0.8], ax=ax)
    assert ax.get_xlim() == (-0.02, 1.02)


@models
def test_odd_predictions_of_zero_alone_have_axes(kind, figure):
    ax = draw(kind, [0] * 30, [0.0] * 30, ax=figure.subplots()).ax_
    if kind != "scales":
        assert ax.get_xlim() == (-0.02, 1.02)


@pytest.mark.parametrize("kind", ["reliability", "binned", "bias"])
def test_axes_of_large_predictions_stay_whole(kind, figure):
    ax = draw(kind, [0, 1, 1], [0.01, 0.2, 0.5], ax=figure.subplots()).ax_
    assert ax.get_xlim() == (-0.02, 1.02)


@models
def test_own_figure_grows_with_its_legend(kind, data):
    first = draw(kind, *data(50))
    before = first.figure_.get_figheight()
    for _ in range(4):
        draw(kind, *data(50), name="another with a name that takes a line by itself", ax=first.ax_)
    assert first.figure_.get_figheight() > before
    first.figure_.canvas.draw()
    legend = first.ax_.get_legend().get_window_extent()
    assert legend.y0 >= 0
    assert not legend.overlaps(first.ax_.get_window_extent())
    plt.close(first.figure_)


@models
def test_settings_stay_and_ink_follows_them(kind, figure, data, artists):
    before = dict(mpl.rcParams)
    draw(kind, *data(100), ax=figure.subplots())
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"text.color": "#fefefe"}):
        dark = draw(kind, *data(100), ax=Figure().subplots()).ax_
        rule = artists(dark)[f"{kind}-0-{'zero' if kind in ('bias', 'scales') else 'diagonal'}"]
        assert to_hex(rule.get_color()) == "#fefefe"
        assert to_hex(np.atleast_2d(artists(dark)[f"{kind}-0-band"].get_edgecolor())[0]) == "#fefefe"


@models
def test_rows_a_sketch_and_an_estimator_show_the_same(kind, figure, data, artists):
    y, p = data(200)
    p = np.round(p, 1)

    class Model:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            return np.stack([1 - X, X], axis=1)

    labels = np.where(y == 1, "yes", "no")
    seed = {} if kind == "binned" else {"rng": 0, "n_resamples": 99}
    drawn = [
        draw(kind, y, p, ax=figure.subplots()),
        draw(kind, tc.Sketch().update(y, p), ax=Figure().subplots()),
        MODELS[kind].from_estimator(Model(), p, labels, ax=Figure().subplots(), **seed),
    ]
    for other in drawn[1:]:
        for column, values in drawn[0].table().items():
            np.testing.assert_allclose(other.table()[column], values, rtol=1e-6, atol=1e-9)
    assert drawn[2].name == "Model, P(yes)"
    assert texts(drawn[2].ax_.get_legend())[0] == "Model, P(yes)"
    turned = MODELS[kind].from_estimator(Model(), p, labels, pos_label="no", name="no", ax=Figure().subplots(), **seed)
    expected = draw(kind, 1 - y, 1 - p, ax=Figure().subplots())
    np.testing.assert_allclose(
        artists(turned.ax_)[f"{kind}-0-curve"].get_ydata(), artists(expected.ax_)[f"{kind}-0-curve"].get_ydata()
    )
    assert turned.name == "no"


def test_estimators_of_scikit_learn(figure):
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    x = np.linspace(-2, 2, 80)[:, None]
    y = (np.sin(np.arange(80)) + x[:, 0] > 0).astype(int)
    model = linear.LogisticRegression().fit(x, y)
    shown = plots.ReliabilityDisplay.from_estimator(model, x, y, ax=figure.subplots(), rng=0)
    assert shown.name == "LogisticRegression"
    assert shown.curve.count.sum() == 80


def test_estimators_that_wrap_others(figure):
    """A pipeline, a search and a calibrated classifier, with data frames whose index starts anywhere."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    x = pandas.DataFrame({"a": np.linspace(-2, 2, 80)}, index=np.arange(80, 0, -1))
    y = (np.sin(np.arange(80)) + x["a"] > 0).map({True: "yes", False: "no"})
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(scaled, {"logisticregression__C": [0.1, 1.0]}, scoring="neg_log_loss", cv=2)
    for model in (scaled, search, CalibratedClassifierCV(LinearSVC(), cv=2)):
        model.fit(x, y)
        shown = plots.ReliabilityDisplay.from_estimator(model, x, y, ax=figure.subplots(), rng=0, n_resamples=99)
        expected = tc.reliability_curve(y == "yes", model.predict_proba(x)[:, 1])
        np.testing.assert_array_equal(shown.curve.mean_true, expected.mean_true)
        assert shown.name == f"{type(model).__name__}, P(yes)"
        with pytest.raises(ValueError, match="`X` and `y` have the same index labels in a different order"):
            plots.ReliabilityDisplay.from_estimator(model, x[::-1], y, ax=figure.subplots())
        other = plots.ReliabilityDisplay.from_estimator(
            model, x, y.set_axis(np.arange(80) + 500), ax=figure.subplots(), rng=0, n_resamples=99
        )
        np.testing.assert_array_equal(other.curve.mean_true, expected.mean_true)


class Two:
    classes_ = (0, 1)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class Three(Two):
    def predict_proba(self, X):
        return np.full((len(X), 3), 1 / 3)


@pytest.mark.parametrize(
    ("estimator", "options", "error", "message"),
    [
        (object(), {}, TypeError, "`estimator` must have predict_proba; object has none"),
        (Three(), {}, ValueError, r"`estimator` must have two classes; predict_proba of Three returned shape \(2, 3\)"),
        (Two(), {"pos_label": 2}, ValueError, r"`pos_label` must be one of the classes of Two, \[0, 1\]; got 2"),
    ],
)
def test_refuses_estimators(estimator, options, error, message):
    with pytest.raises(error, match=message):
        plots.BiasCurveDisplay.from_estimator(estimator, [[1], [2]], [0, 1], **options)


@models
@pytest.mark.parametrize(
    "case", [([1], [0.3]), ([1, 0] * 10, [0.3] * 20), ([0, 1, 1], [0.0, 1.0, 1.0]), ([1, 0, 0], [0.0, 1.0, 1.0])]
)
def test_odd_rows_are_drawn(kind, case, figure, artists):
    ax = draw(kind, *case, ax=figure.subplots()).ax_
    figure.canvas.draw()
    x, y = artists(ax)[f"{kind}-0-curve"].get_data()
    (low, high), (left, right) = ax.get_ylim(), ax.get_xlim()
    assert ((low <= y) & (y <= high)).all()
    outcomes, p = np.array(case[0]), np.array(case[1])
    if kind in ("reliability", "binned"):
        means = [outcomes[p == q].mean() for q in np.unique(p)]
        pooled = means if means == sorted(means) else [outcomes.mean()] * len(means)
        expected = dict(zip(np.unique(p), pooled if kind == "reliability" else means, strict=True))
        assert dict(zip(x, y, strict=True)) == pytest.approx(expected)
    elif kind == "bias":
        for q in np.unique(p):
            assert y[x == q][-1] == pytest.approx(np.sum((p - outcomes)[p <= q]) / len(p))
    else:
        np.testing.assert_array_equal(y, tc.scale_profile(*case, n_resamples=99, rng=0).error)
    if kind != "scales":  # from wide to narrow
        assert left < min(p) <= max(p) < right


@models
def test_many_rows_are_few_points(kind, figure, data):
    ax = draw(kind, *data(200_000), ax=figure.subplots()).ax_
    assert all(len(line.get_xdata()) <= 4500 for line in ax.lines)
    assert sum(len(line.get_xdata()) for line in ax.lines) < 7000
    assert all(len(path.vertices) <= 2010 for area in ax.collections for path in area.get_paths())


@models
def test_frame_is_of_the_first_library_there_is(kind, figure, data, monkeypatch):
    shown = draw(kind, *data(50), ax=figure.subplots())
    for library, columns in (("pandas", "columns"), ("polars", "columns"), ("pyarrow", "column_names")):
        module = pytest.importorskip(library, reason=f"{library} is not installed")
        frame = shown.frame()
        assert type(frame).__module__.split(".")[0] == module.__name__
        assert list(getattr(frame, columns)) == list(shown.table())
        assert len(frame) == len(next(iter(shown.table().values())))
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match="`frame` needs pandas, polars or pyarrow: pip install pandas"):
        shown.frame()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"Plots need matplotlib: pip install 'truthcal\[plot\]'"):
        plots.ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7])


def test_pyplot_is_loaded_for_new_figures_alone():
    code = """
import sys, truthcal as tc
from matplotlib.figure import Figure
assert "truthcal.plots" not in sys.modules
for name in tc.plots.__all__:
    if hasattr(kind := getattr(tc.plots, name), "from_predictions"):
        time = [[1, 1, 2]] if name == "OverTimeDisplay" else []
        kind.from_predictions([0, 1, 1], [0.2, 0.7, 0.9], *time, ax=Figure().subplots())
assert "matplotlib.pyplot" not in sys.modules
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr


def test_names_in_print():
    assert repr(plots.ScaleProfileDisplay(tc.scale_profile([1], [0.3], rng=0), "a")) == "<ScaleProfileDisplay 'a'>"
