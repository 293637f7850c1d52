"""Redraw the outcomes of rows that belong to groups, under calibration, in cells of neighbouring predictions.

The law of the redrawn outcomes has the predicted frequencies and the estimated correlation of two rows of a group.
Groups with random signs would not do: small predictions of few groups often have no events, and then all of their
errors have the same sign. Nor would independent cells with larger variances: errors that the cells of a group share
are not averaged out where isotonic regression pools neighbours.

The frequency of each cell is a binomial's with the same mean and variance: with few independent groups it has few
values, and is often exactly 0 or 1 at the ends of the predictions. Cells depend on each other as far as they hold rows
of the same groups (a Gaussian copula).
"""

import math

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_sums import GroupSums

_Array = NDArray[np.float64]

# Cells of 128 on each side of one over which errors are averaged; pairs of rows at most this far apart are near.
_NEAR = 8
# Share of distant pairs from which their correlation is estimated separately.
_DISTANT = 0.05
# Smallest number of degrees of freedom; level at which bands of whole curves end at each point.
_FEWEST, _TAIL = 4.0, 0.999
# Most trials of a binomial; standard deviation above which its quantiles are approximated; where its tails end.
_MOST_TRIALS, _LARGE, _TAILS = 1e9, 50.0, 10.0


def redraw_groups(sums: GroupSums, count: int, rng: np.random.Generator) -> _Array:
    """Draw the weight of the positives in each cell `count` times, under calibration."""
    cells, variance, correlation = sums.cells, _row_variances(sums), row_correlations(sums)
    covariance = correlation * sums.weights * np.sqrt(np.outer(variance, variance))
    covariance += np.diag((1.0 - np.diag(correlation)) * cells.ww * variance)
    noise = np.diag(covariance)
    normal = _draw_normals(covariance, np.sqrt(noise), count, rng)
    spread = cells.p * (1.0 - cells.p) * cells.weight**2
    trials = np.divide(spread, noise, out=np.full(len(cells), _MOST_TRIALS), where=noise > 0.0).clip(1.0, _MOST_TRIALS)
    # Not whole: one of both neighbours, at random.
    whole = np.floor(trials * (1.0 + 1e-12) + rng.random((count, len(cells))))
    drawn = np.empty_like(normal)
    for k, p in enumerate(cells.p.tolist()):
        for n in np.unique(whole[:, k]).tolist():
            some = whole[:, k] == n
            drawn[some, k] = _binomial_quantiles(normal[some, k], n, p) / n
    return np.asarray(cells.weight * drawn)


def _binomial_quantiles(normal: _Array, n: float, p: float) -> _Array:
    """Quantiles of a binomial at the levels of standard normals; for a large variance by a normal law with skewness."""
    from scipy.special import bdtr, ndtr

    mean, deviation = n * p, math.sqrt(n * p * (1.0 - p))
    if deviation > _LARGE:
        count = np.rint(mean + deviation * normal + (normal**2 - 1.0) * (1.0 - 2.0 * p) / 6.0)
        return np.asarray(np.clip(count, 0.0, n))
    first = max(math.floor(mean - _TAILS * (deviation + 1.0)), 0)
    last = min(math.ceil(mean + _TAILS * (deviation + 1.0)), int(n))
    reached = bdtr(np.arange(first, last, dtype=np.float64), int(n), p)
    return np.asarray(first + np.searchsorted(reached, ndtr(normal)), np.float64)


def row_correlations(sums: GroupSums) -> _Array:
    """Correlation under calibration of two rows of a group, by their cells: between 0 and 1, a valid covariance.

    Near and distant pairs of rows have correlations that are estimated separately, from all groups. Both are increased
    as the square of Student's quantile is, for the effective number of groups.
    """
    from scipy.special import ndtri, stdtrit

    products, unit = _pair_products(sums)
    place = np.arange(len(products))
    distance = np.abs(np.subtract.outer(place, place))
    correlation = _fit_correlations(products, unit, distance)
    # Large groups have most of the pairs: uneven groups know the correlation less well than their effective number.
    evenness = math.sqrt(min(sums.n_effective / sums.n_groups, 1.0))
    freedom = max(sums.n_effective * evenness - 1.0, _FEWEST)
    correlation *= float(stdtrit(freedom, _TAIL) / ndtri(_TAIL)) ** 2
    most = np.sqrt(np.maximum(np.diag(correlation), 1.0))
    return np.asarray(correlation / np.outer(most, most))


def _row_variances(sums: GroupSums) -> _Array:
    """Mean of p(1 - p) in each cell."""
    return np.asarray(np.maximum(sums.cells.wwv / sums.cells.ww, 0.0))


def _pair_products(sums: GroupSums) -> tuple[_Array, _Array]:
    """Sums over pairs of different rows of a group, by their cells: products of their errors, and of their deviations.

    Errors are taken around their mean in a window of cells, so that errors of the predictions do not count as noise.
    The mean is estimated from the same groups, so that products are increased by one part in their effective number.
    """
    cells, each = sums.cells, np.arange(len(sums.cells))
    first, last = np.maximum(each - _NEAR, 0), np.minimum(each + _NEAR + 1, len(each))
    table = np.zeros((len(each) + 1, len(each) + 1))
    table[1:, 1:] = np.cumsum(np.cumsum(sums.weights, axis=0), axis=1)
    squares = table[last, last] - table[first, last] - table[last, first] + table[first, first]
    weight, bias = (np.append(0.0, np.cumsum(x)) for x in (cells.weight, cells.bias))
    error = (bias[last] - bias[first]) / (weight[last] - weight[first])
    freedom = np.maximum((weight[last] - weight[first]) ** 2 / squares - 1.0, _FEWEST)
    single = cells.wwcc - 2.0 * error * cells.wwc + error**2 * cells.ww
    products = (sums.covariance(error) - np.diag(single)) * (1.0 + 1.0 / float(np.median(freedom)))
    deviation = np.sqrt(_row_variances(sums))
    return products, (sums.weights - np.diag(cells.ww)) * np.outer(deviation, deviation)


def _fit_correlations(products: _Array, unit: _Array, distance: NDArray[np.int64]) -> _Array:
    """Fit a constant plus a kernel of the distance, neither below 0, to the products of near and of distant pairs."""
    near, kernel = distance <= _NEAR, np.exp(-0.5 * (distance / _NEAR) ** 2)
    total, pairs = float(np.sum(unit)), float(np.sum(unit[near]))
    if not total > 0.0 or not pairs > 0.0:
        return np.zeros_like(products)
    constant, slope = max(float(np.sum(products)) / total, 0.0), 0.0
    if total - pairs >= _DISTANT * total:
        sums = [(float(np.sum(x[near])), float(np.sum(x[~near]))) for x in (products, unit * kernel)]
        (observed, distant), (kernel_near, kernel_distant) = sums
        system = np.array([[pairs, kernel_near], [total - pairs, kernel_distant]])
        level, rise = np.linalg.solve(system, np.array([observed, distant])).tolist()
        if rise > 0.0:
            constant, slope = (level, rise) if level >= 0.0 else (0.0, max(observed / kernel_near, 0.0))
    return constant + slope * kernel


def _draw_normals(covariance: _Array, size: _Array, count: int, rng: np.random.Generator) -> _Array:
    """Draw standard normals with the correlations of a covariance; independent ones where it is 0."""
    scale = np.outer(size, size)
    correlation = np.divide(covariance, scale, out=np.eye(len(size)), where=scale > 0.0)
    values, axes = np.linalg.eigh(correlation)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.standard_normal((count, len(size))) @ root.T / np.sqrt(np.sum(root**2, axis=1)))
