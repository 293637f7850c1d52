"""Fit recalibration maps: logistic ones by Newton's method, isotonic ones by scipy."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from truthcal.recalibration.maps import LEAST, IdentityMap, InterpolatedMap, LogisticMap, RecalibrationMap

_Array = NDArray[np.float64]

# Predictions closer than this are taken as equal: a line between them would be too steep for floats.
_EQUAL = 1e-15
# With more cells than this, logistic fits use sums over intervals of log-odds of this width: maps change by about 1e-6.
_MANY_CELLS, _LOG_ODDS_WIDTH = 1 << 14, 1e-3
# Newton's method ends if the mean log loss changes by less than this, or after so many steps: if predictions separate
# events from other rows, slopes would grow for ever.
_TOLERANCE, _MOST_STEPS, _MOST_HALVINGS = 1e-14, 60, 30


class Cells(NamedTuple):
    """Sums over rows with equal or neighbouring predictions: mean prediction, weight of events and of other rows."""

    p: _Array
    events: _Array
    others: _Array

    @property
    def fits(self) -> bool:
        """Whether there are events and other rows, without which no map can be fitted."""
        return bool(self.events.any() and self.others.any())

    def merged(self) -> Self:
        """Merge neighbours whose log-odds are in the same narrow interval, if there are many cells."""
        if len(self.p) <= _MANY_CELLS:
            return self
        log_odds = special.logit(np.clip(self.p, LEAST, 1.0 - LEAST))
        interval = np.floor(log_odds / _LOG_ODDS_WIDTH).astype(np.int64)
        starts = np.flatnonzero(np.diff(interval, prepend=interval[:1] - 1))
        weight = self.events + self.others
        sums = (np.add.reduceat(x, starts) for x in (weight * self.p, self.events, self.others))
        total, events, others = sums
        return type(self)(total / (events + others), events, others)


class CellSums(NamedTuple):
    """Distinct predictions, and the weights of events and of other rows in each part (row) and cell."""

    p: _Array
    events: _Array
    others: _Array

    @classmethod
    def of(cls, p: _Array, y: _Array, w: _Array, part: NDArray[np.intp]) -> Self:
        """Add up rows with equal predictions."""
        values, cell = np.unique(p, return_inverse=True)
        number = np.cumsum(np.diff(values, prepend=-1.0) > _EQUAL) - 1
        values, cell = values[np.flatnonzero(np.diff(number, prepend=-1))], number[cell]
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
    return _fit_isotonic(cells) if method == "isotonic" else _fit_logistic(method, cells.merged())


def _fit_logistic(method: str, cells: Cells) -> LogisticMap:
    """Fit the coefficients by maximum likelihood; one that would make the map decrease is set to 0."""
    p = np.clip(cells.p, LEAST, 1.0 - LEAST)
    log_p, log_q = np.log(p), -np.log1p(-p)
    columns = {"a": log_p, "b": log_q} if method == "beta" else {"ab": log_p + log_q}
    intercept = [] if method == "temperature" else [np.ones(len(p))]
    while columns:
        beta = _maximize_likelihood(np.column_stack([*columns.values(), *intercept]), cells)
        beta = np.array([float(f"{x:.12g}") for x in beta])  # the same on all processors, and shorter in SQL
        slopes, c = beta[: len(columns)], float(beta[-1]) if intercept else 0.0
        if slopes.min() >= 0.0:
            found = dict(zip(columns, slopes.tolist(), strict=True))
            return LogisticMap(found.get("ab", found.get("a", 0.0)), found.get("ab", found.get("b", 0.0)), c)
        del columns[list(columns)[int(slopes.argmin())]]
    log_odds = float(np.log(np.sum(cells.events)) - np.log(np.sum(cells.others)))
    return LogisticMap(0.0, 0.0, log_odds if intercept else 0.0)


def _maximize_likelihood(x: _Array, cells: Cells) -> _Array:
    """Fit a logistic regression by Newton's method; steps are halved until the likelihood grows."""
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)
    x, weight = x / scale, cells.events + cells.others
    total = float(np.sum(weight))

    def loss(beta: _Array) -> float:
        z = x @ beta
        return float(np.sum(weight * np.logaddexp(0.0, z) - cells.events * z)) / total

    beta = np.zeros(x.shape[1])
    value = loss(beta)
    for _ in range(_MOST_STEPS):
        q = special.expit(x @ beta)
        gradient = x.T @ (weight * q - cells.events) / total
        curvature = (x * (weight * q * (1.0 - q))[:, None]).T @ x / total
        step = np.linalg.lstsq(curvature, gradient)[0]  # columns may be equal up to a factor
        tries = (beta - step * 0.5**halvings for halvings in range(_MOST_HALVINGS))
        better = next((each for each in tries if loss(each) < value), None)
        if better is None or value - loss(better) <= _TOLERANCE:
            return np.asarray((beta if better is None else better) / scale)
        beta, value = better, loss(better)
    return np.asarray(beta / scale)


def _fit_isotonic(cells: Cells) -> InterpolatedMap:
    """Fit isotonic regression, whose ends may be 0 or 1, and move them inwards as one more row would."""
    w = cells.events + cells.others
    least = 1.0 / (float(np.sum(w)) + 2.0)  # weights have mean 1
    fit = optimize.isotonic_regression(cells.events / w, weights=w)
    value = np.clip(fit.x, least, 1.0 - least)
    knots = np.unique(np.concatenate([fit.blocks[:-1], fit.blocks[1:] - 1]))  # both ends of each constant piece
    return InterpolatedMap(tuple(cells.p[knots].tolist()), tuple(value[knots].tolist()))
