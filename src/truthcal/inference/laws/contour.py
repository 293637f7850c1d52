"""Tails of many quadratic forms at once: saddlepoints, and integrals along contours through them.

A form is Q = sum of r (X + d)^2, X independent standard normals. Here z is in units in which the moment generating
function has the factors (1 - r z)^(-1/2), and the threshold x is halved accordingly. `squares` are d^2. Nodes of a
contour are rows of an array, forms or their scales its columns. A form's result does not depend on the other forms.
"""

import itertools
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Mask = NDArray[np.bool_]

# The contour ends where the integrand falls below e^-42 = 6e-19 of its size at the saddlepoint.
_NEGLIGIBLE = math.exp(-42.0)
# A contour on which the integrand grows by more than this factor loses digits: another one is tried.
_TOLERATED = math.exp(1.0)
# Halving the step squares the error of the trapezoid rule: two results this close differ only by rounding.
_AGREEMENT = 1e-8
_FIRST_STEP, _MOST_NODES, _MOST_HALVINGS, _SHORT = 0.25, 400, 9, 32
# Nodes, and about as many scales, that are evaluated at a time: their arrays fit into the processor's cache.
_NODES, _SCALES = 20, 4096
_SMALLEST = math.ulp(0.0)
# Squares of larger numbers might overflow.
_LARGE = 1e150


class Scales(NamedTuple):
    """Scales and squared shifts of forms: form g has those from ``starts[g]`` to ``starts[g + 1]``."""

    r: _Array
    squares: _Array
    starts: _Ints

    @property
    def sizes(self) -> _Ints:
        """The number of scales of each form."""
        return self.starts[1:] - self.starts[:-1]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of forms, for each of their scales."""
        return np.repeat(values, self.sizes)

    def sums(self, terms: _Array) -> _Array:
        """Sums of terms, one per scale, over the scales of each form."""
        return np.add.reduceat(terms, self.starts[:-1], axis=-1)

    def largest(self, terms: _Array) -> _Array:
        """Largest term of each form."""
        return np.maximum.reduceat(terms, self.starts[:-1])

    def take(self, forms: _Mask) -> Self:
        """Select some of the forms."""
        if forms.all():
            return self
        scales, starts = self.spread(forms), np.concatenate([[0], np.cumsum(self.sizes[forms])])
        return type(self)(self.r[scales], self.squares[scales], starts)


def log_upper_tails(x: _Array, scales: Scales, wanted: _Mask) -> _Array:
    """Log of P(Q > x) of each wanted form, from the tail on x's side of the mean: the other is at most 0.7.

    It is -inf for the other forms, and nan if no path of integration is found.
    """
    out = np.full(len(x), -np.inf)
    places = np.flatnonzero(wanted)
    if len(places) < len(x):
        scales = scales.take(wanted)
    # Forms are taken in chunks, each of at least one form.
    chunk = np.searchsorted(scales.starts, np.arange(0, scales.starts[-1], _SCALES), side="left")
    edges = np.unique(np.concatenate([chunk, [len(places)]]))
    for first, last in itertools.pairwise(edges.tolist()):
        ends = slice(scales.starts[first], scales.starts[last])
        part = Scales(scales.r[ends], scales.squares[ends], scales.starts[first : last + 1] - scales.starts[first])
        here = places[first:last]
        with np.errstate(all="ignore"):  # steps and paths that overflow are rejected
            out[here] = _log_upper(x[here], part)
    return out


def _log_upper(x: _Array, scales: Scales) -> _Array:
    beyond = x >= scales.sums(scales.r * (1.0 + scales.squares))
    side = np.where(beyond, 1.0, -1.0)
    far = _log_far_tails(side * x, scales._replace(r=scales.r * scales.spread(side)))
    rest = np.where(far < 0.0, np.log1p(-np.exp(far)), -np.inf)
    return np.where(beyond | np.isnan(far), far, rest)


def _log_far_tails(x: _Array, scales: Scales) -> _Array:
    """Log of P(Q > x) of each form, for x not below its mean."""
    out = np.full(len(x), -np.inf)
    top = scales.largest(scales.r)
    above = scales.sums(np.maximum(scales.r, 0.0) * (1.0 + scales.squares))
    possible = (scales.largest(np.abs(scales.r)) > 0.0) & ~((top <= 0.0) & (x > -1e-250))
    # Beyond, by Chernoff's bound, it is below e^-10000, and the saddlepoint might round onto the branch point.
    possible &= ~((x > 2.0 * above + 4e4 * top) & (top > 0.0)) & ~np.isinf(x)
    if not possible.any():
        return out
    scales, x = scales.take(possible), x[possible]
    out[possible] = _log_integrals(_Paths.of(x, scales))
    return out


def _saddlepoints(x: _Array, scales: Scales) -> tuple[_Array, _Array]:
    """Saddlepoints of tails: minima s > 0 of the log integrand on the real axis, and their widths.

    Newton's method in a bracket. s need not be exact: any path nearby gives the same integral.
    """
    (r, squares, _), top, total = scales, scales.largest(scales.r), scales.sums(scales.squares)
    # Without positive scales the slope is positive where |x| exceeds a bound on all other terms.
    low, high = np.zeros(len(x)), np.where(top > 0.0, 1.0 / top, (0.5 * scales.sizes + 0.25 * total + 1.0) / np.abs(x))
    spread = 0.5 * np.sqrt(scales.sums(r * r * (2.0 + 4.0 * squares)))
    excess = (x - 0.5 * scales.sums(r * (1.0 + squares))) / spread
    s = 0.5 * (excess + np.hypot(excess, 2.0)) / spread  # the solution for a normal Q
    s = s / (1.0 + s / high)
    for _ in range(200):
        v = r * scales.spread(s)
        gap = 1.0 - v
        v /= gap
        shifted = squares / gap
        # Derivatives of the log integrand, times s and s^2.
        slope = 0.5 * scales.sums(v * (1.0 + shifted)) - 1.0 - s * x
        curvature = 0.5 * scales.sums(v * v * (1.0 + 2.0 * shifted)) + 1.0
        step = -slope / curvature
        moving = ~(np.abs(step) * np.sqrt(curvature) < 1e-3)
        if not moving.any():
            break
        low, high = np.where(moving & (slope < 0.0), s, low), np.where(moving & ~(slope < 0.0), s, high)
        s = np.where(moving, _next_guess(s, step, low, high), s)
    return s, s / np.sqrt(curvature)


def _next_guess(s: _Array, step: _Array, low: _Array, high: _Array) -> _Array:
    """Next guess of the saddlepoints: Newton's step if it stays in the bracket and is short, else a bisection."""
    newton = s * (1.0 + step)
    short = ((0.5 * s < newton) & (newton < 1.5 * s)) | (high < 8.0 * low)
    middle = np.where(high > 4.0 * low, np.sqrt(low) * np.sqrt(high), 0.5 * (low + high))
    return np.where((low < newton) & (newton < high) & short, newton, np.where(low == 0.0, s / 8.0, middle))


class _Paths(NamedTuple):
    """Hyperbolas through the saddlepoint of each form, apart from their angle, and the log integrand there.

    The integrand is M(z) exp(-x z) / z, M the moment generating function. The path is z(u) = s + width (cosh(u + i
    angle) - cos(angle)) / sin(angle): it leaves s vertically and bends to the right if the angle is below pi/2, to the
    left if above. Equal steps in u grow with the distance from s, so that power laws decay as fast as exponentials.

    For scales with small r s (far from their branch points) log(1 - r z) + r z is summed, and the sum of r is
    subtracted from x beforehand, which avoids cancellation.
    """

    x: _Array
    s: _Array
    width: _Array
    origin: _Array
    half_far: _Array  # half of the sum of far scales
    near: _Mask  # for each scale
    scales: Scales

    @classmethod
    def of(cls, x: _Array, scales: Scales) -> Self:
        """Find the saddlepoints of tails beyond x."""
        s, width = _saddlepoints(0.5 * x, scales)
        near = np.abs(scales.r) * scales.spread(s) >= 0.5
        half_far = 0.5 * scales.sums(np.where(near, 0.0, scales.r))
        x = 0.5 * (x - scales.sums(np.where(near, 0.0, scales.r * (1.0 + scales.squares))))
        paths = cls(x, s, width, np.zeros_like(s), half_far, near, scales)
        real, _ = paths.log_factors(s[None, :], np.zeros((1, len(s))))
        return paths._replace(origin=real[0] - x * s - np.log(s))

    def take(self, forms: _Mask) -> Self:
        """Select some of the forms."""
        if forms.all():
            return self
        x, s, width, origin, half_far = (column[forms] for column in self[:5])
        near = self.near[self.scales.spread(forms)]
        return type(self)(x, s, width, origin, half_far, near, self.scales.take(forms))

    def log_factors(self, re: _Array, im: _Array) -> tuple[_Array, _Array]:
        """Log of the moment generating function at nodes z, apart from what was subtracted from x: both parts.

        Near scales add -1/2 log(1 - r z) + 1/2 d^2 r z / (1 - r z), far ones that less 1/2 r z (1 + d^2):
        -1/2 (log(1 - r z) + r z) + 1/2 d^2 (r z)^2 / (1 - r z).
        """
        scales = self.scales
        a, b = (np.repeat(part, scales.sizes, axis=1) for part in (re, im))
        a *= scales.r
        b *= scales.r
        gap = 1.0 - a
        modulus = np.sqrt(gap * gap + b * b)
        large = np.max(np.maximum(np.abs(re), np.abs(im)), axis=0) > _LARGE
        if large.any():
            modulus = np.where(scales.spread(large), np.hypot(gap, b), modulus)
        # The real and the imaginary part of -1/2 log(1 - r z).
        real = -0.5 * scales.sums(np.log(modulus)) - re * self.half_far
        imag = 0.5 * scales.sums(np.arctan2(b, gap)) - im * self.half_far
        if scales.squares.any():
            # r z / (1 - r z), without overflow, then once more times r z for far scales.
            turn, half = b / modulus, 0.5 * scales.squares
            ratio_real, ratio_imag = half * (a / modulus * (gap / modulus) - turn * turn), half * (turn / modulus)
            a[:, self.near], b[:, self.near] = 1.0, 0.0
            real += scales.sums(a * ratio_real - b * ratio_imag)
            imag += scales.sums(a * ratio_imag + b * ratio_real)
        return real, imag

    def values(self, u: NDArray[Any], angle: _Array) -> tuple[_Array, _Array]:
        """Integrand times dz/du, relative to its absolute value at u = 0, where it is i: imaginary part and modulus."""
        up, half = np.sinh(u)[:, None], np.sinh(0.5 * u)[:, None]
        rise = 2.0 * half * half  # cosh(u) - 1, without cancellation
        cosine, sine = np.cos(angle), np.sin(angle)
        re, im = self.s + self.width / sine * rise * cosine, self.width * up
        real, imag = self.log_factors(re, im)
        log_size = real - self.x * re - np.log(np.hypot(re, im)) - self.origin
        turn = imag - self.x * im - np.arctan2(im, re)
        size = np.exp(np.minimum(log_size, 100.0))  # a path that grows this much is rejected; avoid overflow
        d_real, d_imag = up * cosine / sine, 1.0 + rise
        return size * (np.cos(turn) * d_imag + np.sin(turn) * d_real), size * np.hypot(d_real, d_imag)


def _first_nodes(paths: _Paths, angle: _Array) -> tuple[_Array, _Ints]:
    """Sum of values at the coarsest nodes until they are negligible, and their number; 0 if they grow."""
    total, nodes = np.zeros(len(angle)), np.zeros(len(angle), np.int64)
    places = np.arange(len(angle))  # of the forms whose paths have not ended
    for first in range(0, _MOST_NODES, _NODES):
        value, size = paths.values(_FIRST_STEP * np.arange(first, first + _NODES), angle)
        ends = ~((size >= _NEGLIGIBLE) & (size <= _TOLERATED))
        last = np.where(ends.any(axis=0), ends.argmax(axis=0), _NODES)
        columns = np.arange(len(places))
        value = np.cumsum(np.vstack([total[places], value]), axis=0)  # one by one, in the same order for any forms
        total[places] = value[np.minimum(last + 1, _NODES), columns]
        ended = last < _NODES
        decayed = ended & (size[np.minimum(last, _NODES - 1), columns] < _NEGLIGIBLE)
        nodes[places[decayed]] = first + last[decayed] + 1
        if ended.all():
            break
        places, paths, angle = places[~ended], paths.take(~ended), angle[~ended]
    return total, nodes


def _short_paths(paths: _Paths) -> tuple[_Array, _Array, _Ints]:
    """Angles of paths without growth, sums of values at their coarsest nodes, and the numbers of nodes; 0 if none.

    Far out exp(-x z) decays on the side of the sign of x, but closer the sum of many small scales can reverse that: the
    first short path without growth is taken, else the shortest. Vertical ones never grow.
    """
    angle, total = np.zeros((2, len(paths.x)))
    nodes = np.zeros(len(paths.x), np.int64)
    for bend in (1.0, -1.0, 0.5, -0.5, 0.0):
        longer = (nodes == 0) | (nodes > _SHORT)
        if not longer.any():
            break
        some = paths.take(longer)
        tried = math.pi * (0.5 - bend * np.copysign(1.0, some.x) / 6.0)
        found, count = _first_nodes(some, tried)
        better = (count > 0) & ((nodes[longer] == 0) | (count < nodes[longer]))
        places = np.flatnonzero(longer)[better]
        angle[places], total[places], nodes[places] = tried[better], found[better], count[better]
    return angle, total, nodes


def _log_integrals(paths: _Paths) -> _Array:
    """Log of integrals of exp(log integrand) / (2 pi i) along the paths, by the trapezoid rule; nan if there is none.

    Those below e^-1000 are given by the leading term, which is enough to search for a quantile.
    """
    out = paths.origin + np.log(paths.width / math.sqrt(2.0 * math.pi))
    open_ = paths.origin + np.log(paths.width) >= -1000.0
    if not open_.any():
        return out
    paths = paths.take(open_)
    angle, total, nodes = _short_paths(paths)
    total, nodes = total - 0.5, nodes - 1
    step, result, change = _FIRST_STEP, _FIRST_STEP * total, np.full(len(total), np.inf)
    active = nodes >= 0
    for _ in range(_MOST_HALVINGS):
        if not active.any():
            break
        total[active] = _add_values(total[active], paths.take(active), angle[active], step, nodes[active])
        step, nodes = 0.5 * step, 2 * nodes
        before, last = result, change
        result = np.where(active, step * total, result)
        change = np.where(active, np.abs(result - before), change)
        # Stop at the rounding error, where halving no longer helps.
        agree = change <= _AGREEMENT * np.abs(result)
        active &= ~(agree | ((change <= 1e-7 * np.abs(result)) & (change > 0.1 * last)))
    log_result = paths.origin + np.log(paths.width * np.maximum(result, _SMALLEST) / math.pi)
    out[open_] = np.where(nodes >= 0, log_result, np.nan)
    return out


def _add_values(total: _Array, paths: _Paths, angle: _Array, step: float, nodes: _Ints) -> _Array:
    """Add the values half way between the nodes of each path to its total."""
    count = int(nodes.max())
    for first in range(0, count, _NODES):
        node = np.arange(first, min(first + _NODES, count))
        value, _ = paths.values(step * (node + 0.5), angle)
        value = np.where(node[:, None] < nodes, value, 0.0)
        total = np.cumsum(np.vstack([total, value]), axis=0)[-1]
    return total
