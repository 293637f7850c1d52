"""Base classes of all Displays: plotting several models into one axes, and data frames of the plotted numbers."""

from collections.abc import Iterable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from truthcal.core.checks import invalid, refuse_other_order
from truthcal.core.estimators import PredictedClasses
from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.params import check_choice, check_flag, check_rng, closest_name, shown
from truthcal.plots import drawing as draw
from truthcal.plots.probability_axes import SCALES, Predictions, ProbabilityAxis
from truthcal.results.base import data_frame
from truthcal.results.text import percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# y_true, y_proba, sample_weight and pos_label.
Rows = tuple[object, object, object, object]
# Options of other libraries and classes, and what takes their place.
_BINS = "Bins are those of BinnedReliabilityDisplay."
_CURES = {
    "title": "Set it afterwards: display.ax_.set_title(...).",
    "n_bins": _BINS,
    "strategy": _BINS,
    "figsize": "Pass axes of a figure of this size: ax=plt.figure(figsize=...).subplots().",
}
_NO_PROBA = "Wrap it in CalibratedClassifierCV, or pass its probabilities to from_predictions."
_NOT_TWO = "For one class against the rest pass `y == that_class` and its column to from_predictions."


class Display:
    """A result and the method that plots it. The base of all Displays.

    Attributes
    ----------
    name : str or None
        Name in the legend.
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the last plot.
    """

    name: str | None
    ax_: "Axes"
    figure_: "Figure"

    def table(self) -> dict[str, Any]:
        """Return the plotted numbers as columns of equal length."""
        raise NotImplementedError

    def frame(self) -> Any:
        """Return the plotted numbers as a data frame: of pandas if installed, else of polars, else of pyarrow."""
        return data_frame(self.table())

    def __repr__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        return f"<{type(self).__name__}{name}>"


class ModelDisplay(Display):
    """A Display of one model's predictions. Several of a kind can be plotted into the same axes."""

    _KIND: str  # prefix of the gids of its artists
    _SIZE: tuple[float, float]  # inches of a new figure
    _MARKERS = False  # whether lines have markers
    _ALONE: str  # name in the legend of a single model without a name

    @classmethod
    @named_columns_of_method
    def from_predictions(
        cls,
        y_true: object,
        y_proba: object = None,
        *,
        sample_weight: object = None,
        pos_label: object = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        rng: Any = 0,
        **options: Any,
    ) -> Self:
        """Plot outcomes and predictions, or a `Sketch` in place of both.

        Parameters
        ----------
        y_true, y_proba, sample_weight, pos_label
            As for `reliability_curve`.
        name : str, optional
            Name in the legend.
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default. Several models can share axes.
        confidence_level, n_resamples, rng
            Level of the band, and how it is simulated: as for `consistency_band`.
        **options
            Passed to `plot`.

        Returns
        -------
        Display
            With `ax_` and `figure_`.
        """
        cls._refuse_unknown(options)
        rows, generator = (y_true, y_proba, sample_weight, pos_label), check_rng(rng)
        display = cls._of(rows, confidence_level, n_resamples, generator)
        display.name = name
        return display.plot(ax, **options)

    @classmethod
    def _refuse_unknown(cls, options: Mapping[str, object]) -> None:
        """Reject options that `plot` does not have, and name the class: `plot` may be that of a base class."""
        of_plot = tuple(signature(cls.plot).parameters)[1:]
        unknown = [name for name in options if name not in of_plot]
        if not unknown:
            return
        known = [name for name in (*signature(cls.from_predictions).parameters, *of_plot) if name != "options"]
        close = closest_name(unknown[0], known)
        cure = f"Did you mean `{close}`?" if close else f"Options of plot: {', '.join(of_plot)}."
        raise TypeError(f"`{unknown[0]}` is not an option of {cls.__name__}. {_CURES.get(unknown[0], cure)}")

    @classmethod
    def _of(cls, rows: Rows, confidence_level: float, n_resamples: int, rng: Any) -> Self:
        """Compute what the Display stores."""
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: object = None,
        pos_label: object = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Plot the predictions of a fitted binary classifier with `predict_proba`, such as those of scikit-learn.

        Parameters
        ----------
        estimator : object
            Its `predict_proba` returns a column for each class, in the order of its `classes_`.
        X, y : array-like
            Features and outcomes of rows that it was not fitted on.
        pos_label : optional
            The class whose probability is plotted; the second of `classes_` by default.
        name : str, optional
            Name in the legend; by default that of the estimator's class, with the label of the event unless it is 1.
        sample_weight, ax, **options
            As for `from_predictions`.

        Returns
        -------
        Display
            With `ax_` and `figure_`.
        """
        refuse_other_order(X, y, ("X", "y"), other_rows=False)
        predicted = PredictedClasses.of(estimator, X, _NO_PROBA)
        proba, pos_label = predicted.event(pos_label, _NOT_TWO)
        if name is None:
            event = "" if pos_label is None or pos_label == 1 else f", P({pos_label})"
            name = f"{type(estimator).__name__}{event}"
        options |= {"sample_weight": sample_weight, "pos_label": pos_label, "name": name, "ax": ax}
        return cls.from_predictions(y, proba, **options)

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None, legend: bool = True) -> Self:
        """Plot the stored result.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default. Existing content stays, for example other models.
        name : str, optional
            Name in the legend, instead of the Display's own.
        legend : bool, default True
            Whether to draw a legend. Small multiples have no room for one in each axes.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_`.
        """
        return self._plot(ax, name, legend)

    def _plot(self, ax: "Axes | None", name: str | None, legend: bool) -> Self:
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, self._SIZE)
        slot = len(draw.tagged(ax, self._KIND, "curve"))
        if slot == 0:
            self._prepare(ax)
            first_band = self._draw_band(ax)
            if first_band is not None:
                draw.tag(first_band, self._KIND, 0, "band")
        else:  # bands of several models would overlap; thick lines and filled markers remain
            for band in draw.tagged(ax, self._KIND, "band"):
                band.set_visible(False)
        curve = self._draw_curve(ax, slot)
        draw.tag(curve, self._KIND, slot, "curve")
        draw.attach(curve, draw.Drawn(self, name if name is not None else self.name))
        draw.name_curves(ax, self._KIND, self._ALONE)
        self._set_limits(ax, [drawn.display for drawn in draw.attached(ax, self._KIND)])
        lines = self._draw_legend(ax) if legend else 0
        draw.resize_new_figure(ax, self._height(ax), lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _draw_legend(self, ax: "Axes") -> int:
        """Draw the legend. Returns the number of its lines below the axes."""
        models = draw.model_entries(ax, self._KIND, markers=self._MARKERS)
        displays = [drawn.display for drawn in draw.attached(ax, self._KIND)]
        notes = self._notes(ax) if len(displays) == 1 else self._notes_for_all(displays)
        return draw.draw_legend(ax, self._KIND, models, [*notes, *self._notes_on_axes()])

    def _notes_on_axes(self) -> draw.Entries:
        """Return the legend entries that explain the axes."""
        return []

    def _prepare(self, ax: "Axes") -> None:
        """Set labels, ticks and reference lines."""
        raise NotImplementedError

    def _draw_band(self, ax: "Axes") -> "Artist | None":
        """Draw and return the band of a single model, if it has one."""
        raise NotImplementedError

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        """Draw the model as number `slot` of its kind. Returns its line."""
        raise NotImplementedError

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        """Set limits that suit all models in the axes."""

    def _notes(self, ax: "Axes") -> draw.Entries:
        """Return the legend entries that explain the plot of a single model."""
        raise NotImplementedError

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        """Return the legend entries that hold for each of several models."""
        raise NotImplementedError

    def _height(self, ax: "Axes") -> float:
        """Return the height of a new figure in inches, without the legend."""
        return self._SIZE[1]


class ProbabilityDisplay(ModelDisplay):
    """A Display with an axis of predicted probabilities, whose scale suits all models in the axes."""

    _axis = ProbabilityAxis("linear")  # of the last plot

    def plot(
        self, ax: "Axes | None" = None, *, name: str | None = None, legend: bool = True, scale: str = "auto"
    ) -> Self:
        """Plot the stored result.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default. Existing content stays, for example other models.
        name : str, optional
            Name in the legend, instead of the Display's own.
        legend : bool, default True
            Whether to draw a legend. Small multiples have no room for one in each axes.
        scale : {"auto", "linear", "log", "logit"}, default "auto"
            Scale of probabilities. "auto" is "log" if most predictions are below 5%, "logit" if most are above 95% (or
            most below 5% and some above 95%), else "linear". Log and logit scales are linear near 0 and 1, which are on
            them. Limits and scale follow the weight of predictions, so that one outlying row does not set them; the
            legend counts the rows outside.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_`.
        """
        self._scale = check_choice(scale, "scale", SCALES)
        self._axis = ProbabilityAxis.choose([self.predictions()], scale)
        return self._plot(ax, name, legend)

    _scale = "auto"

    def predictions(self) -> Predictions:
        """Return the distribution of predictions, from which the axis is chosen."""
        raise NotImplementedError

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        self._axis = ProbabilityAxis.choose([display.predictions() for display in displays], self._scale)

    def _notes_on_axes(self) -> draw.Entries:
        return self._axis.notes


def refuse_rows(result: object, name: str, kind: type, display: type) -> None:
    """Reject anything but the result that a Display stores as its parameter `name`, such as outcomes."""
    if not isinstance(result, kind):
        cure = f"Pass outcomes and predictions to {display.__name__}.from_predictions(y_true, y_proba)."
        raise invalid(name, f"must be a {kind.__name__}; got {shown(result)}. {cure}", TypeError)


def own_band(area: str, levels: Iterable[float | None], by_chance: str = "") -> str:
    """Name, for the legend of several Displays, the band or range of each, with its level if all have the same."""
    level, *others = set(levels)
    if others or level is None:
        return f"its own {area}"
    return f"its own {percent(level)} {area}" + (f" ({100 * (1.0 - level):.3g}% {by_chance})" if by_chance else "")
