"""Fit recalibration maps with scikit-learn's estimators, on cells of neighbouring predictions."""

import importlib
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.recalibration.maps import LEAST, IdentityMap, InterpolatedMap, LogisticMap, RecalibrationMap

_Array = NDArray[np.float64]

# Neighbouring predictions are merged into at most this many cells before fitting: with more, maps change by less than
# 1e-6, and fits take longer.
_MOST_CELLS = 1 << 14


class Cells(NamedTuple):
    """Sums over rows with equal or neighbouring predictions: mean prediction, weight of events and of other rows."""

    p: _Array
    events: _Array
    others: _Array

    @property
    def fits(self) -> bool:
        """Whether there are events and other rows, without which no map can be fitted."""
        return bool(self.events.any() and self.others.any())


class CellSums(NamedTuple):
    """Mean prediction of each cell, and the weights of events and of other rows in each part (row) and cell."""

    p: _Array
    events: _Array
    others: _Array

    @classmethod
    def of(cls, p: _Array, y: _Array, w: _Array, part: NDArray[np.intp]) -> Self:
        """Add up rows. Distinct predictions have cells of their own; if there are too many, neighbours share one."""
        values, cell, counts = np.unique(p, return_inverse=True, return_counts=True)
        if len(values) > _MOST_CELLS:
            number = np.arange(len(values)) * _MOST_CELLS // len(values)
            values = np.bincount(number, values * counts) / np.bincount(number, counts)
            cell = number[cell]
        shape = int(part.max()) + 1, len(values)
        code = part * shape[1] + cell
        sums = (np.bincount(code, x, minlength=shape[0] * shape[1]).reshape(shape) for x in (w * y, w * (1.0 - y)))
        return cls(values, *(x.astype(np.float64) for x in sums))

    def without(self, part: int | None) -> Cells:
        """Return the sums over all parts but one, or over all; cells without rows are left out."""
        kept = np.arange(len(self.events)) != (-1 if part is None else part)
        events, others = self.events[kept].sum(axis=0), self.others[kept].sum(axis=0)
        some = events + others > 0.0
        return Cells(self.p[some], events[some], others[some])


def fit_map(method: str, cells: Cells) -> RecalibrationMap | None:
    """Fit the map of a method; None without events, or without rows that are none."""
    if method == "identity":
        return IdentityMap()
    if not cells.fits:
        return None
    return _fit_isotonic(cells) if method == "isotonic" else _fit_logistic(method, cells)


def _scikit_learn(module: str) -> Any:
    """Import a module of scikit-learn for a fit, or raise an error that says how to install it."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise ImportError("`recalibrate` needs scikit-learn: pip install 'truthcal[sklearn]'.") from None


def _fit_logistic(method: str, cells: Cells) -> LogisticMap:
    """Fit the coefficients by maximum likelihood; one that would make the map decrease is set to 0."""
    p = np.clip(cells.p, LEAST, 1.0 - LEAST)
    log_p, log_q = np.log(p), -np.log1p(-p)
    columns = {"a": log_p, "b": log_q} if method == "beta" else {"ab": log_p + log_q}
    while columns:
        slopes, c = _logistic_regression(np.column_stack(list(columns.values())), cells, method != "temperature")
        if slopes.min() >= 0.0:
            found = dict(zip(columns, slopes.tolist(), strict=True))
            return LogisticMap(found.get("ab", found.get("a", 0.0)), found.get("ab", found.get("b", 0.0)), c)
        del columns[list(columns)[int(slopes.argmin())]]
    share = float(np.sum(cells.events) / np.sum(cells.events + cells.others))
    return LogisticMap(0.0, 0.0, 0.0 if method == "temperature" else float(np.log(share) - np.log1p(-share)))


def _logistic_regression(x: _Array, cells: Cells, intercept: bool) -> tuple[_Array, float]:
    """Fit scikit-learn's logistic regression without a penalty to the events and the other rows of each cell."""
    w = np.concatenate([cells.events, cells.others])
    some, n = w > 0.0, len(cells.p)
    y = np.arange(2 * n) < n
    model = _scikit_learn("linear_model").LogisticRegression(
        C=np.inf, fit_intercept=intercept, solver="newton-cholesky", tol=1e-8
    )
    with warnings.catch_warnings():
        # If predictions separate events from the rest, the slope grows until the solver stops; results are clipped.
        warnings.simplefilter("ignore")
        model.fit(np.concatenate([x, x])[some], y[some], w[some] / np.mean(w[some]))
    return np.asarray(model.coef_[0], np.float64), float(np.ravel(model.intercept_)[0])


def _fit_isotonic(cells: Cells) -> InterpolatedMap:
    """Fit isotonic regression, which may return 0 or 1, and move these ends inwards as one more row would."""
    w = cells.events + cells.others
    least = 1.0 / (float(np.sum(w)) + 2.0)  # weights have mean 1
    model = _scikit_learn("isotonic").IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip")
    model.fit(cells.p, cells.events / w, w)
    return InterpolatedMap(tuple(model.X_thresholds_.tolist()), tuple(model.y_thresholds_.tolist()))
