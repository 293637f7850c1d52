"""Tails and quantiles of a quadratic form in normal variables, to full relative precision."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthcal.core.roots import find_root

_Reals = NDArray[np.float64]
_Complexes = NDArray[np.complex128]

# The contour ends where the integrand falls below e^-42 = 6e-19 of its size at the saddlepoint.
_NEGLIGIBLE = -42.0
# A contour on which the log of the integrand grows by more than this loses digits: another one is tried.
_TOLERATED = 1.0
# Halving the step squares the error of the trapezoid rule: two results this close differ only by rounding.
_AGREEMENT = 1e-10
_FIRST_STEP, _MOST_HALVINGS, _SHORT = 0.25, 9, 32
# Factors are computed in tables of at most this many entries.
_TABLE = 1 << 16


def upper_tail(x: float, scales: ArrayLike, shifts: ArrayLike | None = None) -> float:
    """P(Q > x) for the quadratic form ``Q = sum_j scales_j (X_j + shifts_j)^2``, X_j independent standard normals.

    Scales have any sign, and shifts are 0 by default. The relative error is below 1e-12 even at 1e-200; below 1e-308
    the result is 0.

    The moment generating function is inverted by the trapezoid rule on a hyperbola through the saddlepoint (Rice, 1980,
    Distribution of quadratic forms in normal random variables: evaluation by numerical integration). The cost is the
    number of scales times about 50 nodes. A positive x below 1e-250 of the largest scale counts as 0.

    Examples
    --------
    >>> print(f"{upper_tail(6.0, [1.0, 1.0]):.6f}")  # exp(-3)
    0.049787
    """
    form = _Form.of(scales, shifts)
    return math.exp(form.log_upper(form.units(x)))


def lower_tail(x: float, scales: ArrayLike, shifts: ArrayLike | None = None) -> float:
    """P(Q < x) of a quadratic form Q, as precise as `upper_tail`, whose parameters it has."""
    form = _Form.of(scales, shifts)
    return math.exp(form.log_lower(form.units(x)))


def upper_quantile(chance: float, scales: ArrayLike, shifts: ArrayLike | None = None) -> float:
    """The x with P(Q > x) = `chance`, strictly between 0 and 1, for the quadratic form Q of `upper_tail`.

    Solved on the logarithm of the smaller tail.
    """
    if not 0.0 < chance < 1.0:
        raise ValueError(f"`chance` must lie strictly between 0 and 1; found {chance!r}.")
    form = _Form.of(scales, shifts)
    if not form.r.size:
        return 0.0
    if chance <= 0.5:
        return form.value(_quantile_of_form(form, math.log(chance)))
    return form.value(-_quantile_of_form(form.mirrored(), math.log1p(-chance)))


@dataclass(frozen=True)
class _Form:
    """Q in units of 2^exponent: the nonzero scales r (the largest between 1/2 and 1) and the squared shifts."""

    r: _Reals
    squares: _Reals
    exponent: int

    @classmethod
    def of(cls, scales: ArrayLike, shifts: ArrayLike | None) -> Self:
        """Build Q from its scales and shifts. The unit is a power of two, so that scaling is exact."""
        r = np.asarray(scales, dtype=np.float64).ravel()
        d = np.zeros_like(r) if shifts is None else np.asarray(shifts, dtype=np.float64).ravel()
        if d.shape != r.shape:
            raise ValueError(f"`shifts` and `scales` must have the same length; got {d.size} and {r.size}.")
        r, d = r[r != 0.0], d[r != 0.0]
        if not (np.all(np.isfinite(r)) and np.all(np.abs(d) < 1e100)):
            raise ValueError("`scales` must be finite and `shifts` below 1e100 in size.")
        exponent = int(np.frexp(np.max(np.abs(r)))[1]) if r.size else 0
        return cls(np.ldexp(r, -exponent), d * d, exponent)

    def mirrored(self) -> "_Form":
        """Return the form of -Q."""
        return _Form(-self.r, self.squares, self.exponent)

    def units(self, x: float) -> float:
        """Convert a threshold to units of the form."""
        if math.isnan(x):
            raise ValueError("`x` must be a number; found nan.")
        with np.errstate(over="ignore"):
            return float(np.ldexp(x, -self.exponent))

    def value(self, x: float) -> float:
        """Convert a threshold from units of the form."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(x, self.exponent))

    @property
    def mean(self) -> float:
        """Expected value of Q."""
        return float(np.sum(self.r * (1.0 + self.squares)))

    @property
    def deviation(self) -> float:
        """Standard deviation of Q."""
        return math.sqrt(float(np.sum(self.r * self.r * (2.0 + 4.0 * self.squares))))

    def log_upper(self, x: float) -> float:
        """Log of P(Q > x), from the tail on x's side of the mean: the other one is at most about 0.7."""
        if x >= self.mean:
            return _log_far_tail(self, x)
        return _log_complement(_log_far_tail(self.mirrored(), -x))

    def log_lower(self, x: float) -> float:
        """Log of P(Q < x)."""
        if x > self.mean:
            return _log_complement(_log_far_tail(self, x))
        return _log_far_tail(self.mirrored(), -x) if self.r.size else (-math.inf if x <= 0.0 else 0.0)


def _log_complement(log_chance: float) -> float:
    """Log of the other tail of a quadratic form: log(1 - exp(log_chance))."""
    return math.log1p(-math.exp(log_chance)) if log_chance < 0.0 else -math.inf


def _log_far_tail(form: _Form, x: float) -> float:
    """Log of P(Q > x) of a quadratic form Q, for x not below its mean."""
    if not form.r.size or math.isinf(x):
        return -math.inf
    top = float(np.max(form.r))
    if top < 0.0 and x > -1e-250:
        return -math.inf
    # By Chernoff's bound the probability is below e^-10000, and the saddlepoint might round onto the branch point.
    if x > 2.0 * float(np.sum(np.maximum(form.r, 0.0) * (1.0 + form.squares))) + 4e4 * top > 0.0:
        return -math.inf
    s, width = _saddlepoint(form, x / 2.0)
    return _contour_integral(_Integrand.at(form, x / 2.0, s), width)


def _saddlepoint(form: _Form, x: float) -> tuple[float, float]:
    """Saddlepoint of a quadratic form's tail: the minimum s > 0 of the log integrand on the real axis, and its width.

    Here and below z is in units in which the moment generating function has the factors (1 - r z)^(-1/2), and x is
    halved accordingly. s need not be exact: any path nearby gives the same integral.
    """
    r, squares, top = form.r, form.squares, float(np.max(form.r))
    # Without positive scales the slope is positive where |x| exceeds a bound on all other terms.
    low, high = 0.0, 1.0 / top if top > 0.0 else (0.5 * r.size + 0.25 * float(np.sum(squares)) + 1.0) / abs(x)
    spread = 0.5 * form.deviation
    excess = (x - 0.5 * form.mean) / spread
    s = 0.5 * (excess + math.hypot(excess, 2.0)) / spread  # the solution for a normal Q
    s = s / (1.0 + s / high)
    for _ in range(200):
        slope, curvature = _slope_and_curvature(s, r, squares)
        slope, curvature = slope - s * x - 1.0, curvature + 1.0
        step = -slope / curvature
        if abs(step) * math.sqrt(curvature) < 1e-3:
            break
        low, high = (s, high) if slope < 0.0 else (low, s)
        s = _newton_or_bisect(s, s * (1.0 + step), low, high)
    return s, s / math.sqrt(curvature)


def _slope_and_curvature(s: float, r: _Reals, squares: _Reals) -> tuple[float, float]:
    """First two derivatives, times s and s^2, of a quadratic form's log moment generating function at the real s."""
    gap = 1.0 - r * s
    v = r * s / gap
    slope, curvature = np.sum(v * (1.0 + squares / gap)), np.sum(v * v * (1.0 + 2.0 * squares / gap))
    return 0.5 * float(slope), 0.5 * float(curvature)


def _newton_or_bisect(s: float, proposal: float, low: float, high: float) -> float:
    """Next saddlepoint: Newton's proposal if it is near and in the bracket, else the bracket's (geometric) middle."""
    if low < proposal < high and (0.5 * s < proposal < 1.5 * s or high < 8.0 * low):
        return proposal
    if low == 0.0:
        return s / 8.0
    return math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)


@dataclass(frozen=True)
class _Integrand:
    """Log of M(z) exp(-x z) / z, relative to its value at z = s.

    For scales with small r s (`far` from their branch points) log(1 - r z) + r z is summed, and the sum of r is
    subtracted from x beforehand, which avoids cancellation.
    """

    r: _Reals
    squares: _Reals
    n_near: int
    x: float
    s: float

    @classmethod
    def at(cls, form: _Form, x: float, s: float) -> Self:
        """Split the scales for a path through s: near ones first."""
        far = np.abs(form.r) * s < 0.5
        order = np.argsort(far, kind="stable")
        r, squares, n_near = form.r[order], form.squares[order], int(np.sum(~far))
        return cls(r, squares, n_near, x - 0.5 * float(np.sum(r[n_near:] * (1.0 + squares[n_near:]))), s)

    def log(self, z: _Complexes) -> _Complexes:
        """The log at each z."""
        return np.asarray(_log_factors(z, self.r, self.squares, self.n_near) - self.x * z - np.log(z))


def _log_factors(z: _Complexes, r: _Reals, squares: _Reals, n_near: int) -> _Complexes:
    """Sum over a quadratic form's scales r of the log of a factor of its moment generating function, for each z.

    The first `n_near` scales add -1/2 log(1 - r z) + 1/2 d^2 r z / (1 - r z), the others that less 1/2 r z (1 + d^2):
    -1/2 (log(1 - r z) + r z) + 1/2 d^2 (r z)^2 / (1 - r z). `squares` are d^2.
    """
    out = np.empty_like(z)
    rows = max(_TABLE // max(r.size, 1), 1)
    for first in range(0, z.size, rows):
        part = slice(first, first + rows)
        rz = z[part, None] * r
        gap = 1.0 - rz
        logs = np.log(np.multiply.reduceat(gap, _product_starts(np.abs(r) * np.max(np.abs(z[part]))), axis=1))
        out[part] = -0.5 * (np.sum(logs, axis=1) + np.sum(r[n_near:]) * z[part])
        if squares.any():
            rz[:, :n_near] = 1.0  # 1 / (1 - r z), less 1 below
            rz *= rz
            rz /= gap
            rz *= 0.5 * squares  # not a product of matrices: threads of BLAS would wait for a busy core
            out[part] += np.sum(rz, axis=1) - 0.5 * np.sum(squares[:n_near])
    return out


def _product_starts(lengths: _Reals) -> NDArray[np.intp]:
    """Start of each product of a quadratic form's factors 1 - r z, whose |r z| are at most these lengths.

    One logarithm of a product takes a fraction of the time of one for each factor. In a product, |r z| is at most 1/2
    for each factor and 2.5 in total, or there is one factor alone, so that the angle stays below pi.
    """
    alone = lengths > 0.5
    product = np.floor(np.cumsum(np.where(alone, 0.0, lengths)) / 2.0)
    new = alone.copy()
    new[1:] |= alone[:-1] | (product[1:] != product[:-1])
    new[:1] = True
    return np.flatnonzero(new)


@dataclass(frozen=True)
class _Hyperbola:
    """The path z(u) = s + w (cosh(u + i angle) - cos(angle)) / sin(angle), u real.

    It leaves s vertically and bends to the right if the angle is below pi/2, to the left if above. Equal steps in u
    grow with the distance from s, so that power laws decay as fast as exponentials.
    """

    integrand: _Integrand
    origin: float
    width: float
    angle: float

    def values(self, u: _Reals) -> _Complexes:
        """Integrand times dz/du, relative to its absolute value at u = 0, where it is i."""
        turned = u + 1j * self.angle
        z = self.integrand.s + self.width / math.sin(self.angle) * (np.cosh(turned) - math.cos(self.angle))
        log = self.integrand.log(z) - self.origin
        log.real = np.minimum(log.real, 100.0)  # such a path is rejected; avoid overflow
        return np.asarray(np.exp(log) * np.sinh(turned) / math.sin(self.angle))

    def first_values(self) -> _Complexes | None:
        """Values at the coarsest nodes until they are negligible; None if they grow or there are too many."""
        parts: list[_Complexes] = []
        for start in range(0, 400, 16):
            part = self.values(_FIRST_STEP * np.arange(start, start + 16, dtype=np.float64))
            size = np.abs(part)
            done = np.flatnonzero(size < math.exp(_NEGLIGIBLE))
            end = int(done[0]) + 1 if done.size else 16
            if np.max(size[:end]) > math.exp(_TOLERATED):
                return None
            parts.append(part[:end])
            if done.size:
                return np.concatenate(parts)
        return None


def _contour_integral(integrand: _Integrand, width: float) -> float:
    """Log of a quadratic form's tail: integral of exp(log integrand) / (2 pi i) along the shortest path."""
    origin = float(integrand.log(np.array([integrand.s + 0.0j]))[0].real)
    if origin + math.log(width) < -1000.0:
        # Below the smallest float: the leading term is enough to search for a quantile.
        return origin + math.log(width / math.sqrt(2.0 * math.pi))
    path, values = _best_path(integrand, origin, width)
    step, total = _FIRST_STEP, float(np.sum(values.imag)) - 0.5
    end, result, change = step * (values.size - 1), step * total, math.inf
    for _ in range(_MOST_HALVINGS):
        total += float(np.sum(path.values(step * (np.arange(round(end / step), dtype=np.float64) + 0.5)).imag))
        step *= 0.5
        before, last = result, change
        result = step * total
        change = abs(result - before)
        # Stop at the rounding error, where halving no longer helps.
        if change <= _AGREEMENT * abs(result) or (change <= 1e-7 * abs(result) and change > 0.1 * last):
            break
    return origin + math.log(width * max(result, math.ulp(0.0)) / math.pi)


def _best_path(integrand: _Integrand, origin: float, width: float) -> tuple[_Hyperbola, _Complexes]:
    """Path of the contour integral: the first short one without growth, else the shortest; vertical ones never grow.

    Far out exp(-x z) decays on the side of the sign of x, but closer the sum of many small scales can reverse that.
    """
    best: tuple[_Hyperbola, _Complexes] | None = None
    side = math.copysign(1.0, integrand.x)
    for bend in (side, -side, 0.5 * side, -0.5 * side, 0.0):
        path = _Hyperbola(integrand, origin, width, math.pi * (0.5 - bend / 6.0))
        values = path.first_values()
        if values is not None and (best is None or values.size < best[1].size):
            best = path, values
            if values.size <= _SHORT:
                break
    if best is None:
        raise ArithmeticError("No path of integration was found; please report the scales, shifts and threshold.")
    return best


def _quantile_of_form(form: _Form, log_chance: float) -> float:
    """Quantile of a quadratic form: x with log P(Q > x) = log_chance, for a chance of at most 1/2."""
    if np.all(form.r < 0.0):
        # Q is negative, and x may be tiny compared with the scales: solve for its logarithm.
        return -math.exp(_find_root(lambda v: form.log_upper(-math.exp(v)) - log_chance, math.log(-form.mean), 1.0))
    return _find_root(lambda x: log_chance - form.log_upper(x), form.mean, form.deviation)


def _find_root(rising: Callable[[float], float], start: float, step: float) -> float:
    """Root of a rising tail of a quadratic form: doubling steps find a bracket, Brent's method the root."""

    def bounded(x: float) -> float:
        return min(max(rising(x), -1e9), 1e9)

    precision = 1e-16 * step
    here = bounded(start)
    while True:
        there = start - math.copysign(step, here)
        value = bounded(there)
        if value == 0.0 or (value > 0.0) != (here > 0.0):
            return find_root(bounded, start, there, xtol=precision, rtol=1e-15)
        start, here, step = there, value, 2.0 * step
