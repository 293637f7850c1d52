"""Redraw the outcomes of rows that belong to groups, under calibration, in cells of neighbouring predictions.

The law of the redrawn outcomes has the predicted frequencies and the estimated correlation of two rows of a group.
Groups with random signs would not do: small predictions of few groups often have no events, and then all of their
errors have the same sign. Nor would independent cells with larger variances: errors that the cells of a group share
are not averaged out where isotonic regression pools neighbours.

Each cell k has a latent frequency q_k = Phi((Phi^-1(p_k) + sqrt(r_k) x_k) / sqrt(1 - r_k)) with the mean p_k, where x is
normal and correlated over cells as far as they hold rows of the same groups. Given q_k, the outcomes are binomial.
"""

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
# Steps of the integral for the variance of latent frequencies; largest correlation of their normal law.
_STEPS, _MOST_LATENT = 400, 0.9999
# Largest number of trials of a binomial: its noise is negligible.
_MOST_TRIALS = 1e9


def redraw_groups(sums: GroupSums, count: int, rng: np.random.Generator) -> _Array:
    """Draw the weight of the positives in each cell `count` times, under calibration."""
    from scipy.special import ndtr, ndtri

    cells, variance = sums.cells, _row_variances(sums)
    correlation = row_correlations(sums)
    shared = correlation * sums.weights * np.sqrt(np.outer(variance, variance))
    size = np.sqrt(np.maximum(np.diag(shared), 0.0))
    latent_variance = (size / cells.weight) ** 2
    middle = ndtri(np.clip(cells.p, 1e-15, 1.0 - 1e-15))
    latent = _latent_correlations(middle, latent_variance)
    x = _draw_normals(shared, size, count, rng)
    frequency = np.where(latent > 0.0, ndtr((middle + np.sqrt(latent) * x) / np.sqrt(1.0 - latent)), cells.p)
    # The rest of the variance of a cell is that of independent rows.
    rest = (1.0 - np.diag(correlation)) * cells.ww * variance / cells.weight**2
    spread = np.maximum(cells.p * (1.0 - cells.p) - latent_variance, 0.0)
    trials = np.divide(spread, rest, out=np.full(len(cells), _MOST_TRIALS), where=rest > 0.0).clip(1.0, _MOST_TRIALS)
    whole = np.floor(trials * (1.0 + 1e-12) + rng.random((count, len(cells)))).astype(np.int64)  # right on average
    return np.asarray(cells.weight * (rng.binomial(whole, frequency) / whole))


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
    freedom = max(sums.n_effective - 1.0, _FEWEST)
    correlation *= float(stdtrit(freedom, _TAIL) / ndtri(_TAIL)) ** 2
    most = np.sqrt(np.maximum(np.diag(correlation), 1.0))
    return np.asarray(correlation / np.outer(most, most))


def _row_variances(sums: GroupSums) -> _Array:
    """Mean of p(1 - p) in each cell."""
    return np.asarray(np.maximum(sums.cells.wwv / sums.cells.ww, 0.0))


def _pair_products(sums: GroupSums) -> tuple[_Array, _Array]:
    """Sums over pairs of different rows of a group, by their cells: products of their errors, and if equal but for sign.

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
    """Fit a constant plus a kernel of the distance to the correlations of near and of distant pairs; neither below 0."""
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


def _latent_correlations(middle: _Array, variance: _Array) -> _Array:
    """Correlation r of the normal law of each latent frequency that gives it this variance.

    With m = Phi^-1(p), the variance is the integral of exp(-m^2 / (1 + sin t)) / (2 pi) over t from 0 to arcsin(r).
    """
    angle = np.linspace(0.0, np.pi / 2.0, _STEPS)
    density = np.exp(-(middle[:, None] ** 2) / (1.0 + np.sin(angle))) / (2.0 * np.pi)
    upto = np.zeros_like(density)
    upto[:, 1:] = np.cumsum(density[:, 1:] + density[:, :-1], axis=1) * (angle[1] / 2.0)
    angles = [np.interp(v, integral, angle) for v, integral in zip(variance, upto, strict=True)]
    return np.where(variance > 0.0, np.minimum(np.sin(angles), _MOST_LATENT), 0.0)


def _draw_normals(covariance: _Array, size: _Array, count: int, rng: np.random.Generator) -> _Array:
    """Draw standard normals with the correlations of a covariance; independent ones where it is 0."""
    scale = np.outer(size, size)
    correlation = np.divide(covariance, scale, out=np.eye(len(size)), where=scale > 0.0)
    values, axes = np.linalg.eigh(correlation)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.standard_normal((count, len(size))) @ root.T / np.sqrt(np.sum(root**2, axis=1)))
