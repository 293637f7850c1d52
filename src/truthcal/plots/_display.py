"""What all Displays share beside the canvas: where predictions come from, and data frames of what is shown."""

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from truthcal.core.params import check_flag, shown
from truthcal.plots import _drawing as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_FRAMES = ("pandas", "polars", "pyarrow")


class Display:
    """A result, and how it is drawn. The base of all Displays.

    Attributes
    ----------
    name : str or None
        What the legend calls it.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    """

    name: str | None
    ax_: "Axes"
    figure_: "Figure"

    def table(self) -> dict[str, Any]:
        """The numbers that are shown, as columns of equal length."""
        raise NotImplementedError

    def frame(self) -> Any:
        """The numbers that are shown, as a data frame: of pandas if installed, else of polars, else of pyarrow."""
        for library in _FRAMES:
            try:
                module = importlib.import_module(library)
            except ImportError:
                continue
            return module.table(self.table()) if library == "pyarrow" else module.DataFrame(self.table())
        raise ImportError("`frame` needs pandas, polars or pyarrow: pip install pandas. `table` has the columns.")

    def __repr__(self) -> str:
        called = "" if self.name is None else f" {self.name!r}"
        return f"<{type(self).__name__}{called}>"


class ModelDisplay(Display):
    """A Display of one model's predictions. Several of a kind can be drawn into the same axes."""

    _KIND: str  # by which its artists are found again
    _SIZE: tuple[float, float]
    _MARKERS = False  # whether lines have markers
    _ALONE: str  # what the legend calls a single model without a name

    @classmethod
    def from_predictions(cls, y_true: object, y_proba: object = None, **options: Any) -> Self:
        """Draw from outcomes and predictions, or from a `Sketch`."""
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
        """Draw from a fitted classifier of two classes that has `predict_proba`, as those of scikit-learn have.

        Parameters
        ----------
        estimator : object
            Its `predict_proba` returns a column for each class, in the order of its `classes_`.
        X, y : array-like
            Features and outcomes of rows that it was not fitted on.
        sample_weight : array-like, optional
            Weights of the rows.
        pos_label : optional
            The class whose probability is shown; the second of `classes_` by default.
        name : str, optional
            What the legend calls it; the name of its class by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            As for `from_predictions`.

        Returns
        -------
        Display
            With `ax_` and `figure_`.
        """
        given = _predicted(estimator, X, pos_label)
        return cls.from_predictions(
            y,
            given.proba,
            sample_weight=sample_weight,
            pos_label=given.pos_label,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **options,
        )

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None, legend: bool = True) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. What is there already stays: other models, for example.
        name : str, optional
            What the legend calls it, in place of the Display's own.
        legend : bool, default True
            Whether a legend is drawn. Small axes beside each other have no room for one in each.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, self._SIZE)
        slot = len(draw.marked(ax, self._KIND, "curve"))
        if slot == 0:
            self._prepare(ax)
        curve = self._draw(ax, slot)
        draw.mark(curve, self._KIND, slot, "curve")
        draw.remember(curve, draw.Drawn(self, name if name is not None else self.name))
        draw.name_curves(ax, self._KIND, self._ALONE)
        self._fit(ax)
        lines = self._legend(ax) if legend else 0
        draw.resize_own(ax, self._height(ax), lines)
        draw.make_room(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _legend(self, ax: "Axes") -> int:
        """Draws the legend. Returns how many lines it takes below the axes."""
        models = draw.lines_of(ax, self._KIND, markers=self._MARKERS)
        shown = [each.display for each in draw.drawn(ax, self._KIND)]
        notes = self._notes(ax) if len(shown) == 1 else self._notes_for_all(shown)
        return draw.legend_outside(ax, self._KIND, models, notes)

    def _prepare(self, ax: "Axes") -> None:
        """Labels and lines that are there once, however many models are drawn."""
        raise NotImplementedError

    def _draw(self, ax: "Axes", slot: int) -> "Line2D":
        """Draw this model, the `slot`-th of its kind. Returns its curve."""
        raise NotImplementedError

    def _fit(self, ax: "Axes") -> None:
        """Make the axes suit all models in them."""

    def _notes(self, ax: "Axes") -> draw.Entries:
        """What the legend says beside the name of a single model."""
        raise NotImplementedError

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        """What the legend says beside the names of several models: what is true of each of them."""
        raise NotImplementedError

    def _height(self, ax: "Axes") -> float:
        """Inches of a figure of its own, without the legend."""
        return self._SIZE[1]


def common_level(levels: Iterable[float | None]) -> float | None:
    """The confidence level of all models, if they have the same."""
    first, *others = set(levels)
    return None if others else first


class _Predicted(NamedTuple):
    proba: Any
    pos_label: object


def _predicted(estimator: Any, features: Any, pos_label: object) -> _Predicted:
    """The probabilities of one class, and what it is called in the outcomes."""
    kind = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"`estimator` must have predict_proba; {kind} has none. Wrap it in CalibratedClassifierCV, or pass its "
            "probabilities to from_predictions."
        )
    proba = np.asarray(estimator.predict_proba(features))
    if proba.ndim != 2 or proba.shape[1] != 2:
        raise ValueError(
            f"`estimator` must have two classes; predict_proba of {kind} returned shape {proba.shape}. For one class "
            "against the rest pass `y == that_class` and its column to from_predictions."
        )
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return _Predicted(proba[:, 1], pos_label)
    labels = np.asarray(classes).tolist()
    if pos_label is None:
        binary = labels in ([0, 1], [False, True])  # then outcomes speak for themselves
        return _Predicted(proba[:, 1], None if binary else labels[1])
    if pos_label not in labels:
        raise ValueError(f"`pos_label` must be one of the classes of {kind}, {labels}; got {shown(pos_label)}.")
    return _Predicted(proba[:, labels.index(pos_label)], pos_label)
