"""Fit recalibration maps: logistic ones by Newton's method, isotonic ones by scipy."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from truthcal.recalibration.maps import (
    EQUAL,
    LEAST,
    METHODS,
    IdentityMap,
    InterpolatedMap,
    LogisticMap,
    RecalibrationMap,
)

_Array = NDArray[np.float64]

# With more cells than this, logistic fits use sums over intervals of log-odds of this width: recalibrated probabilities
# change by 5e-6 to 5e-5 of themselves.
_MANY_CELLS, _LOG_ODDS_WIDTH = 1 << 14, 1e-3
# Newton's method ends if the mean log loss changes by less than this, or after so many steps: if predictions separate
# events from other rows, slopes would grow for ever.
_TOLERANCE, _MOST_STEPS, _MOST_HALVINGS = 1e-14, 60, 30
# Fewest distinct predictions that determine the slopes of a method; other methods need one. Those whose log-odds differ
# by less than the second number count as one: float errors of equal predictions must not become slopes.
_FEWEST_DISTINCT, _DISTINCT = {"temperature": 2, "beta": 3}, 1e-6


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


class CellRows(NamedTuple):
    """Distinct predictions, and for each row the number of its prediction, its part and its weight as either outcome.

    Sums without a part are added up anew: the total minus the part would leave rounding errors in place of zeros.
    """

    p: _Array
    cell: NDArray[np.intp]
    part: NDArray[np.intp]
    events: _Array
    others: _Array

    @classmethod
    def of(cls, p: _Array, y: _Array, w: _Array, part: NDArray[np.intp]) -> Self:
        """Number the distinct predictions."""
        values, cell = np.unique(p, return_inverse=True)
        number = np.cumsum(np.diff(values, prepend=-1.0) > EQUAL) - 1
        distinct = values[np.flatnonzero(np.diff(number, prepend=-1))]
        return cls(distinct, number[cell], part, w * y, w * (1.0 - y))

    def without(self, part: int | None) -> Cells:
        """Return the sums over all parts but one, or over all; cells without rows are left out."""
        rows = slice(None) if part is None else self.part != part
        cell, n = self.cell[rows], len(self.p)
        events, others = (np.bincount(cell, x[rows], n).astype(np.float64) for x in (self.events, self.others))
        some = events + others > 0.0
        return Cells(self.p[some], events[some], others[some])


def methods_for(p: _Array) -> tuple[str, ...]:
    """Return the methods whose slopes are determined by these predictions, which are in increasing order."""
    n_distinct = _count_distinct(p)
    return tuple(name for name in METHODS if n_distinct >= _FEWEST_DISTINCT.get(name, 1))


def _count_distinct(p: _Array) -> int:
    """Count the distinct predictions among increasing ones, up to the largest number that matters."""
    log_odds = special.logit(np.clip(p, LEAST, 1.0 - LEAST))
    n_distinct = start = 0
    while start < len(p) and n_distinct < max(_FEWEST_DISTINCT.values()):
        n_distinct += 1
        start = int(np.searchsorted(log_odds, log_odds[start] + _DISTINCT, "right"))
    return n_distinct


def fit_map(method: str, cells: Cells) -> RecalibrationMap | None:
    """Fit the map of a method; None unless there are both events and non-events."""
    if method == "identity":
        return IdentityMap()
    if not cells.fits:
        return None
    return _fit_isotonic(cells) if method == "isotonic" else _fit_logistic(method, cells.merged())


def _fit_logistic(method: str, cells: Cells) -> LogisticMap:
    """Fit the coefficients by maximum likelihood; one that would make the map decrease is set to 0.

    Two distinct predictions determine only one slope, for both terms. One prediction determines only the intercept, and
    slopes are 1; without an intercept, it determines the slope.
    """
    p = np.clip(cells.p, LEAST, 1.0 - LEAST)
    log_p, log_q = np.log(p), -np.log1p(-p)
    n_distinct, intercept = _count_distinct(p), [] if method == "temperature" else [np.ones(len(p))]
    if n_distinct == 1 and intercept:
        shift = _log_odds_of_events(cells) - float(np.average(log_p + log_q, weights=cells.events + cells.others))
        return LogisticMap(1.0, 1.0, _rounded(shift))
    columns = {"a": log_p, "b": log_q} if method == "beta" and n_distinct > 2 else {"ab": log_p + log_q}
    while columns:
        beta = _maximize_likelihood(np.column_stack([*columns.values(), *intercept]), cells)
        slopes = dict(zip(columns, map(_rounded, beta), strict=False))
        smallest = min(slopes, key=lambda name: slopes[name])
        if slopes[smallest] >= 0.0:
            a, b = (slopes.get("ab", slopes.get(name, 0.0)) for name in "ab")
            return LogisticMap(a, b, _rounded(beta[-1]) if intercept else 0.0)
        del columns[smallest]
    return LogisticMap(0.0, 0.0, _log_odds_of_events(cells) if intercept else 0.0)


def _log_odds_of_events(cells: Cells) -> float:
    """Return the log-odds of the share of events."""
    return float(np.log(np.sum(cells.events)) - np.log(np.sum(cells.others)))


def _rounded(coefficient: float) -> float:
    """Round to 12 digits: the same on all processors, and shorter in SQL."""
    return float(f"{coefficient:.12g}")


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
