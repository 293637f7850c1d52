"""Lower distance to calibration: how far predictions must move, at least, to become calibrated."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_number, refuse_too_many
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import given_sketch
from truthcal.kernels import distcal as kernel
from truthcal.measures.binned import unbinned_ece_of
from truthcal.results.measures import Bounded, DistanceBracket

Array = NDArray[np.float64]

# Certified accuracy of `distcal`; usually it is far better.
_CLOSE, _CLOSE_FOR_ALPHA = 1e-5, 1e-4
_FINEST = 1e-8
# Up to this number every different prediction is a node of the chain; beyond, close neighbours share one.
_SINGLE_NODES, _MOST_NODES, _LINKS = 1 << 14, 1 << 20, 512
_MOST_STEPS, _MOST_ROUNDS = 200, 20
# Different predictions allowed in the transport programme for alpha > 1, which takes several seconds.
_MOST_FOR_ALPHA, _MOST_INTERVALS = 200, 1 << 17
_EPS = float(np.finfo(np.float64).eps)


@named_columns
def distcal(
    y_true: object, y_proba: object, *, alpha: float = 1.0, sample_weight: object = None, pos_label: object = None
) -> float:
    """Lower distance to calibration: how far predictions must move on average, at least, to become calibrated.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    alpha : float, default 1
        The cost of a move is ``|move|**alpha``. Values other than 1 allow up to 200 different predictions.

    Returns
    -------
    float
        Between 0 (best) and 1, with an error below 1e-5 (other alpha: 1e-4), usually far below; see `distcal_bounds`.
        0.02: predictions must move by 2 points on average. Not truthful.

    Notes
    -----
    The smallest mean of ``|u - v|`` over all ways, random ones included, to replace each prediction v by a u such that
    the (u, y) are calibrated. Rows with equal predictions may get different u. O(n log n) for the sort, O(n) for the
    certificates, and a linear program on at most 16,384 or 1/tolerance nodes. The upper distance to calibration is not
    implemented, because computing it is NP-hard; M8 and M9 in docs/theory/measures.md bracket it.
    Reference: Blasiok, Gopalan, Hu, Nakkiran (2023), A Unifying Theory of Distance from Calibration.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.distcal([0, 1], [0.25, 0.75]):.6f}")
    0.125000
    >>> print(f"{tc.distcal([0, 1], [0.25, 0.75], alpha=2):.6f}")
    0.062500
    """
    return distcal_of(Sample.of(y_true, y_proba, sample_weight, pos_label), alpha=alpha)


def distcal_of(sample: Sample, *, alpha: float = 1.0) -> float:
    """Distance to calibration of sorted rows."""
    return distcal_bounds_of(sample, _CLOSE if alpha == 1.0 else _CLOSE_FOR_ALPHA, alpha).value


@named_columns
def distcal_bounds(
    y_true: object,
    y_proba: object,
    *,
    tolerance: float = 1e-3,
    alpha: float = 1.0,
    sample_weight: object = None,
    pos_label: object = None,
) -> Bounded:
    """Lower distance to calibration between certified bounds at most `tolerance` apart.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    tolerance : float, default 1e-3
        Largest allowed distance of the bounds, at least 1e-8. A warning gives the distance if it cannot be reached.
    alpha : float, default 1
        As for `distcal`.

    Returns
    -------
    Bounded
        ``value``, and ``low`` and ``high`` that certainly contain the exact distance.

    Notes
    -----
    An interior-point method on a chain of nodes proposes a calibrated distribution, whose cost is `high`, and a dual
    solution, whose value is `low`; both are made feasible first. If the two are too far apart, the chain is refined.
    O(n log n) and a few hundred passes over the nodes.

    Examples
    --------
    >>> import truthcal as tc
    >>> result = tc.distcal_bounds([1, 0], [0.25, 0.75], tolerance=1e-6)
    >>> 0.25 in result, result.width <= 1e-6
    (True, True)
    """
    tolerance = check_number(tolerance, "tolerance", _FINEST)
    return distcal_bounds_of(Sample.of(y_true, y_proba, sample_weight, pos_label), tolerance, alpha)


def distcal_bounds_of(sample: Sample, tolerance: float, alpha: float = 1.0) -> Bounded:
    """Bounds on the distance to calibration of sorted rows."""
    alpha = check_number(alpha, "alpha", 1.0)
    masses = _Masses.of(sample)
    if min(masses.ones.sum(), masses.zeros.sum()) == 0.0:  # one class only: all u are 0, or all are 1
        exact = float(np.sum(masses.zeros * masses.r**alpha + masses.ones * (1.0 - masses.r) ** alpha))
        result = Bounded(exact, exact * (1.0 - 1e-14), exact * (1.0 + 1e-14))
    elif alpha != 1.0:
        result = _distcal_by_columns(masses, tolerance, alpha)
    else:
        result = _distcal_on_chain(masses, sample, tolerance)
    if result.width > tolerance:
        reached = f"bounds {result.width:.2g} apart, not the tolerance of {tolerance:.2g}; the bounds are valid."
        warnings.warn(f"distcal_bounds reached {reached}", RuntimeWarning, stacklevel=3)
    return result


class _Masses(NamedTuple):
    """Different predictions, and the weights of zeros and ones there as shares of the total."""

    r: Array
    zeros: Array
    ones: Array

    @classmethod
    def of(cls, sample: Sample) -> "_Masses":
        groups = sample.groups
        return cls(groups.r, (groups.w - groups.wy) / sample.weight, groups.wy / sample.weight)


# --- alpha = 1: the chain ---------------------------------------------------------------------------------------------


def _distcal_on_chain(masses: _Masses, sample: Sample, tolerance: float) -> Bounded:
    """Bound the distance to calibration on finer and finer chains until the bounds are close enough."""
    groups = sample.groups
    ece = unbinned_ece_of(sample)  # the cost of moving each prediction to its mean outcome
    bias = abs(float(groups.cumulative[-1])) / sample.weight
    rounding = 0.0 if sample.counted else 4.0 * _EPS  # of each weight times its prediction
    low, high = bias * (1.0 - 1e-15) - rounding, ece * (1.0 + 1e-14) + rounding
    best = Bounded(ece, max(low, 0.0), high)
    run = min(tolerance / 16.0 if len(masses.r) <= _SINGLE_NODES else 16.0 * tolerance, 0.5 / _LINKS)
    more = np.linspace(0.0, 1.0, _LINKS + 1)
    for _ in range(_MOST_ROUNDS):
        x = _chain_nodes(masses, run, more)
        bounds, peaks = _chain_bounds(masses, x, tolerance)
        low, high = max(best.low, bounds.low), min(best.high, bounds.high)
        best = Bounded(min(max(bounds.value, low), high), low, high)
        if best.width <= tolerance or len(x) > _MOST_NODES:
            break
        if len(peaks):
            more = np.union1d(more, peaks)
        else:
            run /= 4.0
    return best


def _chain_nodes(masses: _Masses, run: float, more: Array) -> Array:
    """Nodes of distcal's chain: `more` and the predictions, merged within `run`. No two are closer than `run`/2."""
    nodes = np.empty_like(masses.r)
    count = kernel.cluster_into_nodes(masses.r, masses.zeros + masses.ones, run, nodes)
    x = np.union1d(nodes[:count], more)
    inner = (np.diff(x, append=2.0) > run / 2.0) & (x > run / 2.0) & (x < 1.0 - run / 2.0)
    return np.concatenate([[0.0], x[inner], [1.0]])


def _chain_bounds(masses: _Masses, x: Array, tolerance: float) -> tuple[Bounded, Array]:
    """Solve on the chain, then bound the distance to calibration of all rows, however accurate the solution is.

    Also return the points at which more nodes would raise the lower bound.
    """
    zeros, ones = np.zeros_like(x), np.zeros_like(x)
    kernel.split_between_nodes(masses.r, masses.zeros, x, zeros)
    kernel.split_between_nodes(masses.r, masses.ones, x, ones)
    f, g, mass = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    kernel.interior_point(x, zeros, ones, f, g, mass, tolerance / 1000, _MOST_STEPS)
    kernel.make_lipschitz(x, f)
    kernel.make_lipschitz(x, g)
    dual = kernel.dual_value(*masses, x, f, g)
    where, size = np.empty(len(x) - 1), np.empty(len(x) - 1)
    kernel.violations(x, f, g, where, size)
    # Lowering F and G by the largest violation makes them feasible, at that cost, since all masses add up to 1.
    low = dual - max(float(size.max()), 0.0)
    high = _moving_cost(masses, x, np.maximum(mass, 0.0), zeros + ones)
    if not math.isfinite(low) or not math.isfinite(high):  # the solver failed: return trivial bounds
        return Bounded(0.5, 0.0, 1.0), where[:0]
    rounding = _EPS * (len(x) + 16)  # each step of a link is rounded once
    return Bounded(dual, max(low - rounding, 0.0), high + rounding), where[size > tolerance / 4.0]


def _moving_cost(masses: _Masses, x: Array, mass: Array, near: Array) -> float:
    """Cost of moving all rows to calibration, to a distribution built from the masses that the solver puts on nodes.

    The mass stays on the nodes, or is divided among the rows around them, of mass `near`: cheaper where rows are dense.
    """
    none, on_rows, inhabited = np.zeros_like(masses.r), np.empty_like(masses.r), near > _EPS
    ratio = np.divide(mass, near, out=np.zeros_like(mass), where=inhabited)
    kernel.scale_by_ratio(masses.r, masses.zeros + masses.ones, x, ratio, on_rows)
    choices = [(none, mass), (on_rows, np.where(inhabited, 0.0, mass))]
    return min(kernel.transport_cost(*masses, *_match_masses(masses, rows, x, nodes)) for rows, nodes in choices)


def _match_masses(masses: _Masses, on_rows: Array, x: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Match the masses of zeros and ones after a move to calibration: scale them, then add the rest at 0 and 1."""
    zeros = float(np.sum((1.0 - x) * mass) + np.sum((1.0 - masses.r) * on_rows))
    ones = float(np.sum(x * mass) + np.sum(masses.r * on_rows))
    wanted_zeros, wanted_ones = float(masses.zeros.sum()), float(masses.ones.sum())
    scale = min(wanted_zeros / zeros, wanted_ones / ones)
    mass = scale * mass
    mass[0] += max(wanted_zeros - scale * zeros, 0.0)
    mass[-1] += max(wanted_ones - scale * ones, 0.0)
    return scale * on_rows, x, mass


# --- other alpha: the transport programme -----------------------------------------------------------------------------


def _distcal_by_columns(masses: _Masses, tolerance: float, alpha: float) -> Bounded:
    """Distance to calibration by column generation: transport to few u, add the u where the dual is infeasible."""
    fix = "Use alpha=1, which has no limit, or round the predictions to 0.01, which moves none by more than 0.005."
    refuse_too_many(len(masses.r), _MOST_FOR_ALPHA, f"alpha={alpha:g} would take too long. {fix}")
    prices = _Prices(masses, alpha)
    u = np.union1d(masses.r, np.linspace(0.0, 1.0, 33))
    low, high = 0.0, 1.0
    for _ in range(30):
        cost, duals = prices.transport(u)
        worst, where = prices.violation(duals, tolerance / 8.0)
        # Prices lowered until feasible give a lower bound; a cost is an upper bound, to HiGHS' precision.
        low, high = max(low, math.fsum(prices.mass * duals) - worst - 64.0 * _EPS), min(high, cost + 1e-9)
        new = np.setdiff1d(where, u)
        if high - low <= tolerance or len(new) == 0:
            break
        u = np.union1d(u, new)
    return Bounded(min(max(cost, low), high), low, high)


class _Prices:
    """The transport programme for the cost |u - v|^alpha, and the infeasibility of its dual solution at any u."""

    def __init__(self, masses: _Masses, alpha: float) -> None:
        zeros, ones = masses.zeros > 0.0, masses.ones > 0.0
        self.alpha = alpha
        self.v = np.concatenate([masses.r[zeros], masses.r[ones]])
        self.mass = np.concatenate([masses.zeros[zeros], masses.ones[ones]])
        self.n_zeros = int(zeros.sum())

    def transport(self, u: Array) -> tuple[float, Array]:
        """Smallest cost of moving all mass to the points u so that it is calibrated there, and its dual prices."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        n, k = len(self.v), len(u)
        source, target = np.divmod(np.arange(n * k), k)
        is_one = source >= self.n_zeros
        # Calibration at u: the mass of ones times 1 - u equals the mass of zeros times u.
        balance = np.where(is_one, 1.0 - u[target], -u[target])
        entries = np.concatenate([np.ones(n * k), balance])
        lines, columns = np.concatenate([source, n + target]), np.tile(np.arange(n * k), 2)
        result = linprog(
            (np.abs(self.v[source] - u[target]) ** self.alpha),
            A_eq=coo_array((entries, (lines, columns)), shape=(n + k, n * k)).tocsr(),
            b_eq=np.concatenate([self.mass, np.zeros(k)]),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0:  # HiGHS failed: return trivial bounds
            return 1.0, np.zeros(n)
        return float(result.fun), np.asarray(result.eqlin.marginals[:n])

    def excess(self, duals: Array, u: Array) -> Array:
        """(1 - u) F(u) + u G(u) for the smallest F and G that the dual prices allow; feasible where not positive."""
        lead = duals[:, None] - np.abs(self.v[:, None] - u) ** self.alpha
        excess: Array = (1.0 - u) * lead[: self.n_zeros].max(axis=0) + u * lead[self.n_zeros :].max(axis=0)
        return excess

    def violation(self, duals: Array, slack: float) -> tuple[float, Array]:
        """Bound the excess over [0, 1] from above, to within `slack`, and return the points where it peaks.

        Branch and bound: an interval is divided while the excess, whose slope is bounded, could be larger within it.
        """
        slope = self.alpha + 2.0 * (float(np.abs(duals).max()) + 1.0)
        half = 1.0 / 1024
        middle = np.arange(half, 1.0, 2.0 * half)
        values = self.excess(duals, middle)
        padded = np.concatenate([[-math.inf], values, [-math.inf]])
        peaks = middle[(values > 0.0) & (values >= padded[:-2]) & (values >= padded[2:])]
        where = self._climb(duals, peaks, half)
        worst = max(0.0, float(values.max()), float(self.excess(duals, where).max(initial=0.0)))
        while slope * half > slack and len(middle) < _MOST_INTERVALS:
            middle = middle[values + slope * half > worst + slack]
            half /= 2.0
            middle = np.concatenate([middle - half, middle + half])
            parts = np.array_split(middle, len(middle) // 2048 + 1)
            values = np.concatenate([self.excess(duals, part) for part in parts])
            worst = max(worst, float(values.max(initial=0.0)))
        return worst + max(slack, slope * half), where

    def _climb(self, duals: Array, peaks: Array, half: float) -> Array:
        """Refine the peaks of a coarse grid."""
        for _ in range(12):
            near = np.stack([peaks - half, peaks, peaks + half]).clip(0.0, 1.0)
            values = self.excess(duals, near.ravel()).reshape(near.shape)
            peaks = np.take_along_axis(near, values.argmax(axis=0)[None], axis=0)[0]
            half /= 2.0
        return np.unique(peaks)


# --- bounds from ATB_l1 -----------------------------------------------------------------------------------------------


@named_columns
def distcal_bracket(
    y_true: object, y_proba: object = None, *, sample_weight: object = None, pos_label: object = None
) -> DistanceBracket:
    """Bounds of smCal and distCal from ATB, ATB_l1 and the bias, in linear time and fixed memory.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, or a `Sketch` alone in place of all rows.

    Returns
    -------
    DistanceBracket
        Certified, but up to a factor of three wide. `smcal` is exact, and `distcal_bounds` can be made narrow.

    Notes
    -----
    With the bias S, the tightest of ``(ATB_l1 + |S|)/2 <= smCal <= 3/2 ATB_l1``, ``ATB <= smCal``, ``|S| <= smCal <=
    |S| + min(ATB_l1, sqrt(2 ATB - S^2))/2``, ``ATB_l1/3 <= distCal <= ATB_l1``, ``smCal/2 <= distCal <= 2 smCal - |S|``
    and ``|S| <= distCal`` (docs/theory/foundations.md).

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.distcal_bracket([0, 1], [0.25, 0.75]))
    smCal is between 0.0625 and 0.0625, distCal between 0.04167 and 0.125.
    """
    sketch = given_sketch(y_true, y_proba, sample_weight, pos_label)
    if sketch is None:
        sketch = Sketch().update(y_true, y_proba, sample_weight, pos_label=pos_label)
    return sketch.distcal_bracket()
