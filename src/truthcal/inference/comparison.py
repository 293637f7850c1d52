"""Paired comparison of two forecasters of the same events, by truthful scores: ATB and the Brier score."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import Checked, as_columns, check_rows, invalid, refuse_fractional
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_column import check_groups
from truthcal.core.group_sums import GroupEntries, GroupSums
from truthcal.core.neighbours import neighbour_z
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_choice, check_level, shown
from truthcal.core.points import equal_cells
from truthcal.core.roots import find_root
from truthcal.core.sample import Sample
from truthcal.core.sketch import bucket_index
from truthcal.core.summarize import refuse_labels
from truthcal.inference.error_size import error_size_of
from truthcal.inference.intervals import student_factor
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.tent_kernel import CERTAIN, TentKernel
from truthcal.inference.multiclass.comparison import ClassForecaster, compare_classes
from truthcal.inference.multiclass.entry import ClassInput, EventRows, event_or_classes
from truthcal.measures.registry import MEASURES, TENTS
from truthcal.results.comparison import Comparison
from truthcal.results.intervals import ConfidenceInterval

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Cells for each forecaster; buckets are merged into them.
_CELLS, _BUCKETS = 96, 4096
# Curvature below the first share of the largest curvature is treated as 0; below the second share of the noise, as
# rounding.
_STRAIGHT, _ROUNDING = 1e-6, 1e-10
# Merging into cells hides differences below this share of the noise, so intervals are widened by it.
_HIDDEN = 1e-5


@named_columns
@one_blas_thread()
def compare(
    y_true: object,
    y_proba_a: object,
    y_proba_b: object,
    *,
    measure: str = "atb",
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
    hard: bool = False,
    groups: object = None,
    labels: object = None,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Which of two forecasters has the better scores? A paired comparison by ATB and by the Brier score.

    Parameters
    ----------
    y_true, sample_weight, pos_label, hard, groups, labels
        As for `calibration_test`. With `groups`, whole groups of rows are compared.
    y_proba_a, y_proba_b : array-like of shape (n,) or (n, k)
        The two forecasters' predictions of the same events or classes, row by row. With three classes or more, the
        scores are vector ATB (`multiclass_atb`) and the Brier score, half of |p - y|^2.
    measure : str, default "atb"
        Score of calibration: atb, multiscale_atb, information_atb or shifted_grid_ubse. All of them are truthful.
    confidence_level : float, default 0.95
        Confidence level of the intervals.
    names : tuple of two str, optional
        Names of the forecasters in text. By default those of the columns of a data frame, otherwise "a" and "b".

    Returns
    -------
    Comparison
        ``difference`` (a minus b; negative if a is better), its interval and ``pvalue``, and the same for the Brier
        score; ``error_a`` and ``error_b``, the sizes of the errors (`error_size`). Prints in words.

    Notes
    -----
    Both scores are truthful: nobody can improve the expected score by reporting something else than the truth. ATB is
    compared as it is, without subtracting noise, because ATB without its noise is not truthful. Its interval covers the
    expected difference for this number of rows, (1 - 1/n) D + B/n, where D is the difference of the population's ATB
    and B the difference of the Brier scores. So forecasters who are both calibrated differ by B/n only, which no data
    can show: compare them by the Brier score, which reflects calibration and skill.

    The two mean errors behind the ATBs form one normal vector whose covariance is estimated from the rows; the
    interval has all differences of squared lengths that neither tail rejects. The interval of the Brier score corrects
    Student's for skewness, and allows for events that could have happened. Rows are assumed to be independent.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> outcome = rng.random(3000) < truth
    >>> result = tc.compare(outcome, truth, np.full(3000, 0.5))
    >>> print(result.better_by_measure, result.better_by_brier)
    None a
    >>> print(str(result).splitlines()[0])
    a has the better Brier score; no significant difference in ATB (3,000 rows).
    """
    options: dict[str, Any] = {"sample_weight": sample_weight, "pos_label": pos_label, "groups": groups}
    options |= {"hard": hard, "labels": labels, "measure": measure, "confidence_level": confidence_level}
    shown_names = ("a", "b") if names is None else _check_names(names)
    (found,) = compare_pairs(y_true, {"y_proba_a": y_proba_a, "y_proba_b": y_proba_b}, **options).values()
    return replace(found, names=shown_names)


def _check_names(names: object) -> tuple[str, str]:
    """Check the names of two compared forecasters."""
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise invalid("names", f"must be two str, such as ('old', 'new'); got {shown(names)}.", TypeError)
    if len(set(names)) != 2 or len(names) != 2:
        raise invalid("names", f"must be two different names; got {shown(names)}.")
    return names[0], names[1]


def compare_pairs(
    y_true: object,
    proba: Mapping[str, object],
    *,
    measure: str,
    confidence_level: float,
    hard: bool,
    labels: object,
    **options: Any,
) -> dict[tuple[str, str], Comparison]:
    """Compare all pairs of forecasters, by their names, which errors mention. Each one is checked and sorted once."""
    check_choice(measure, "measure", TENTS)
    level = check_level(confidence_level, "confidence_level")
    inputs = {
        name: event_or_classes(EventRows(y_true, p, **options), labels, hard=hard, name=name)
        for name, p in proba.items()
    }
    classes = {name: found for name, found in inputs.items() if isinstance(found, ClassInput)}
    if classes and measure != "atb":
        raise invalid("measure", f"must be 'atb' for predictions with many classes; got {measure!r}.")
    first, *others = inputs
    for name in others:
        _refuse_other_columns(inputs, first, name)
    if classes:
        models = {name: ClassForecaster.of(found.rows, level, found.groups) for name, found in classes.items()}
        return {(a, b): compare_classes(models[a], models[b], level) for a, b in combinations(models, 2)}
    events = {name: _Forecaster.of(name, cast(EventRows, found), level, hard) for name, found in inputs.items()}
    return {(a, b): _compare_events(events[a], events[b], measure, level) for a, b in combinations(events, 2)}


def _refuse_other_columns(inputs: Mapping[str, ClassInput | EventRows], first: str, name: str) -> None:
    """Check that two forecasters to compare predict the same rows, and the same classes if there are many."""
    a, b = inputs[first], inputs[name]
    if isinstance(a, ClassInput) != isinstance(b, ClassInput):
        raise invalid(name, f"must have as many columns as `{first}`.")
    if isinstance(a, ClassInput) and isinstance(b, ClassInput) and a.rows.labels != b.rows.labels:
        raise invalid(name, f"must have the same classes as `{first}`, in the same order.")
    if isinstance(a, EventRows) and isinstance(b, EventRows):
        as_columns(**{first: a.y_proba, name: b.y_proba})  # same length and order


@dataclass(frozen=True, eq=False)
class _Forecaster:
    """One forecaster's checked rows, sorted, with the numbers and sums of groups, and the size of the error."""

    rows: Checked
    sample: Sample
    groups: _Ints | None
    sums: GroupSums | None
    error: ConfidenceInterval

    @classmethod
    def of(cls, name: str, given: EventRows, level: float, hard: bool) -> "_Forecaster":
        """Check and sort the rows of one forecaster to compare."""
        rows = check_rows(given.y_true, given.y_proba, given.sample_weight, given.pos_label, name=name)
        refuse_fractional(rows.y)
        sample = Sample.from_checked(rows)
        refuse_labels(sample.points(), hard, name)
        if not sample.points().one_row < 1.0:
            raise ValueError("at least two rows with positive weight are needed to distinguish noise from error.")
        groups = None if given.groups is None else check_groups(given.groups, given.y_proba, given.sample_weight)
        sums = None if groups is None else GroupSums.of_rows(sample.points(), rows, groups)
        return cls(rows, sample, groups, sums, error_size_of(sample.points(), level, sums=sums))


def _compare_events(a: _Forecaster, b: _Forecaster, measure: str, level: float) -> Comparison:
    """Compare two forecasters of one event."""
    calibration = _compare_squares(a.rows, b.rows, (a.sample, b.sample), measure, level, a.groups)
    differences = calibration.fields("") | _compare_brier(a.rows, b.rows, level, a.groups).fields("brier_")
    z = None
    if a.groups is None:
        z = max((neighbour_z(rows.p, rows.y) for rows in (a.rows, b.rows)), key=lambda z: abs(z or 0.0))
    return Comparison(
        measure=measure,
        label=MEASURES[measure].label,
        **differences,
        error_a=a.error,
        error_b=b.error,
        confidence_level=level,
        n=len(a.rows.p),
        neighbour_z=z,
        n_groups=None if a.sums is None else a.sums.n_groups,
        n_effective_groups=None if a.sums is None else a.sums.n_effective,
    )


class _Difference(NamedTuple):
    """Both values, and interval and p-value of their difference."""

    a: float
    b: float
    low: float
    high: float
    pvalue: float

    def fields(self, prefix: str) -> dict[str, Any]:
        """Return the fields of `Comparison` whose names begin with the prefix."""
        values = self._asdict() | {"difference": self.a - self.b}
        return {prefix + name: value for name, value in values.items()}


# --- squared errors ---------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One forecaster's rows in cells: the cell and w / W, p, w c / W of each row, and coordinates of the cells."""

    cell: NDArray[np.int64]
    phi: _Array
    w: _Array
    p: _Array
    c: _Array

    @classmethod
    def of(cls, rows: Checked, kernel: TentKernel) -> "_Side":
        p = rows.p.astype(np.float64)
        w = _shares(rows)
        bucket = bucket_index(p, _BUCKETS)
        noise = np.bincount(bucket, w * w, minlength=_BUCKETS).astype(np.float64)
        filled = np.flatnonzero(noise)
        number = np.zeros(_BUCKETS, np.int64)
        number[filled] = equal_cells(noise[filled], _CELLS) if len(filled) > _CELLS else np.arange(len(filled))
        cell = number[bucket]
        means = np.bincount(cell, w * p) / np.bincount(cell, w)
        x = kernel.positions_of(means, np.bincount(cell, w * p * (1.0 - p)).astype(np.float64))
        return cls(cell, kernel.axes(x), w, p, w * (p - rows.y))

    def mean(self) -> _Array:
        """The mean of w c phi."""
        return np.bincount(self.cell, self.c, minlength=len(self.phi)) @ self.phi

    def products(self, other: "_Side", of_rows: _Array) -> _Array:
        """Sum over rows of the outer products of both forecasters' phi, each times a number."""
        shape = len(self.phi), len(other.phi)
        table = np.bincount(self.cell * shape[1] + other.cell, of_rows, minlength=shape[0] * shape[1])
        return self.phi.T @ table.reshape(shape) @ other.phi


def _shares(rows: Checked) -> _Array:
    """The weight of each row as a share of all weights."""
    return np.full(len(rows.p), 1.0 / len(rows.p)) if rows.w is None else rows.w / np.sum(rows.w)


def _joint_covariance(a: _Side, b: _Side, groups: _Ints | None, level: float) -> _Array:
    """Joint covariance of both forecasters' mean errors; if rows belong together, from the sums of groups.

    It is computed from the observed products or, if larger, from those expected if the truth is halfway between the
    forecasters, as far as the observed ones are compatible with that: if few events occurred, the observed products are
    too small.
    """
    observed = a.c * a.c, a.c * b.c, b.c * b.c
    truth = (a.p + b.p) / 2.0
    noise, gap = a.w**2 * truth * (1.0 - truth), a.w**2 * (a.p - truth) ** 2
    seen, likely = float(np.sum(observed[0] + observed[2])), 2.0 * float(np.sum(noise + gap))
    share = _compatible_share(seen, likely, 4.0 * float(np.sum(a.w**2 * noise * (1.0 - 2.0 * truth) ** 2)))
    if groups is not None:
        return _joint_covariance_of_groups(a, b, groups, level) * max(share * likely / seen if seen > 0.0 else 1.0, 1.0)
    expected = share * (noise + gap), share * (noise - gap), share * (noise + gap)
    aa, ab, bb = observed if seen >= share * likely else expected
    cross = a.products(b, ab)
    return np.block([[a.products(a, aa), cross], [cross.T, b.products(b, bb)]])


def _joint_covariance_of_groups(a: _Side, b: _Side, groups: _Ints, level: float) -> _Array:
    """Joint covariance of both forecasters' mean errors from the sums of groups, increased as Student's quantile is."""
    n_cells = len(a.phi), len(b.phi)
    both = np.concatenate
    cell, c, w = both([a.cell, n_cells[0] + b.cell]), both([a.c, b.c]), both([a.w, b.w])
    errors, _, _ = GroupEntries.of(both([groups, groups]), cell, c, w, sum(n_cells)).moments(sum(n_cells))
    phi = np.zeros((sum(n_cells), a.phi.shape[1] + b.phi.shape[1]))
    phi[: n_cells[0], : a.phi.shape[1]], phi[n_cells[0] :, a.phi.shape[1] :] = a.phi, b.phi
    wider = student_factor(1.0 / float(np.sum(np.bincount(groups, a.w) ** 2)), level)
    return np.asarray(phi.T @ errors @ phi * wider)


def _compatible_share(observed: float, expected: float, variance: float) -> float:
    """The largest share of an expected sum over events, at most 1, with which an observed sum is compatible.

    With s times as many events, the sum is s * expected on average, with standard deviation sqrt(s * variance); the
    observed one may be lower by one standard deviation.
    """
    if not expected > 0.0:
        return 1.0
    root = (math.sqrt(variance) + math.sqrt(variance + 4.0 * expected * observed)) / (2.0 * expected)
    return min(root**2, 1.0)


def _compare_squares(
    a: Checked, b: Checked, samples: tuple[Sample, Sample], measure: str, level: float, groups: _Ints | None
) -> _Difference:
    """Compare two forecasters by a squared error: values, and the interval of their expected difference.

    The squared error is the squared length of a mean error M = m + Z with noise Z. With J the sign of a forecaster's
    part, M'JM minus its expectation is linear and quadratic in Z. Products of rows are not centred by the mean, which
    makes the variance of Z slightly too large.
    """
    points = [sample.points() for sample in samples]
    sides = [_Side.of(rows, TentKernel.of(measure, p)) for rows, p in zip((a, b), points, strict=True)]
    means = [side.mean() for side in sides]
    covariance = _joint_covariance(sides[0], sides[1], groups, level)
    values = [MEASURES[measure].of_sample(sample) for sample in samples]
    sign = np.concatenate([np.ones(len(means[0])), -np.ones(len(means[1]))])
    mean = np.concatenate(means)
    scales, axes = np.linalg.eigh(covariance)
    uncertain = scales > CERTAIN * scales[-1]
    root = axes[:, uncertain] * np.sqrt(scales[uncertain])
    curvature, rotation = np.linalg.eigh((root.T * sign) @ root)
    noise = float(np.trace(covariance))
    slope = 2.0 * (mean * sign) @ root @ rotation
    law = _SquaresLaw.of(curvature, slope, _share_of_signal(mean, covariance, sign), _ROUNDING * noise)
    # Omitted directions and merged cells hide differences below this share of the noise.
    difference, hidden = values[0] - values[1], _HIDDEN * noise if values[0] != values[1] else 0.0
    low, high = (difference + law.end((1.0 - level) / 2.0, side) for side in (upper_tail, lower_tail))
    beyond = math.copysign(max(abs(difference) - hidden, 0.0), difference)
    return _Difference(values[0], values[1], low - hidden, high + hidden, law.two_sided(beyond))


def _share_of_signal(mean: _Array, covariance: _Array, sign: _Array) -> float:
    """Factor for both forecasters' means that makes the estimated variance of the linear part unbiased or too large.

    That variance is 4 x'Cx with x = J m. With M in place of m, noise adds the trace of C J C J, which is large for
    forecasters whose errors have little in common and almost 0 for nearly equal ones.
    """
    signed = covariance * sign[:, None] * sign
    square, noise = float(mean @ signed @ mean), float(np.sum(covariance * signed))
    return math.sqrt(min(1.0, max(0.0, 1.0 - noise / square))) if square > 0.0 else 1.0


class _SquaresLaw(NamedTuple):
    """The distribution of the sum over j of scale_j (g_j + shift_j)^2 minus its mean, g independent standard normals.

    Terms with almost no curvature are combined into one normal, represented by two opposite squares with large shifts.
    Another expected difference means other shifts: those nearest to the observed ones, shift_j / (1 + t scale_j). Only
    the share `signal` of the shifts counts, because the rest is noise.
    """

    scales: _Array
    shifts: _Array
    signal: float

    @classmethod
    def of(cls, curvature: _Array, slope: _Array, signal: float, rounding: float) -> "_SquaresLaw":
        largest, steepest = float(np.max(np.abs(curvature), initial=0.0)), float(np.sqrt(np.sum(slope**2)))
        if not max(largest, steepest) > rounding:  # equal forecasters, or no uncertain predictions
            return cls(np.empty(0), np.empty(0), signal)
        largest = max(largest, 1e-3 * steepest)  # almost no curvature: a normal
        bent = np.abs(curvature) > _STRAIGHT * largest
        scales, shifts = curvature[bent], slope[bent] / (2.0 * curvature[bent])
        sd, epsilon = math.sqrt(float(np.sum(slope[~bent] ** 2))), 100.0 * _STRAIGHT * largest
        shift = sd / (2.0 * math.sqrt(2.0) * epsilon)
        return cls(np.append(scales, [epsilon, -epsilon]), np.append(shifts, [shift, shift]), signal)

    def moved(self, step: float) -> tuple[_Array, float]:
        """Shifts for another expected difference, and by how much it changes: down for steps from 0 to 1, up to -1."""
        spread = math.sqrt(float(np.sum(self.scales**2 * (2.0 + 4.0 * self.shifts**2))))
        limit = max(float(np.max(-math.copysign(1.0, step) * self.scales)), 0.0)  # at 1 / limit, shifts are infinite
        shifts = self.shifts / (1.0 + step / (limit + (1.0 - abs(step)) * spread) * self.scales)
        return shifts, float(np.sum(self.scales * (shifts - self.shifts) * (shifts + self.shifts)))

    def tail(self, step: float, side: Callable[..., float]) -> float:
        """Tail probability of the observed difference if the expected one is that of a step."""
        shifts, change = self.moved(step)
        shifts = self.signal * shifts
        return side(float(np.sum(self.scales * (1.0 + shifts**2))) - change, self.scales, shifts)

    def end(self, chance: float, side: Callable[..., float]) -> float:
        """End of the interval relative to the observed difference: there, a tail has this chance."""
        if len(self.scales) == 0:
            return 0.0
        direction = 1.0 if side is upper_tail else -1.0
        return self.moved(_root_of_steps(lambda step: self.tail(step, side) - chance, direction))[1]

    def two_sided(self, difference: float) -> float:
        """Two-sided p-value of an expected difference of 0."""
        if len(self.scales) == 0:
            return float(difference == 0.0)
        direction = math.copysign(1.0, difference)
        step = _root_of_steps(lambda step: direction * (difference + self.moved(step)[1]), direction)
        return min(1.0, 2.0 * min(self.tail(step, side) for side in (upper_tail, lower_tail)))


def _root_of_steps(falling: Callable[[float], float], direction: float) -> float:
    """Root of a function that falls between step 0 and step 1 or -1; the last step if it has none."""
    inner, outer = 0.0, 0.5
    while falling(direction * outer) > 0.0:
        if outer > 1.0 - 1e-9:
            return direction * outer
        inner, outer = outer, (1.0 + outer) / 2.0
    if falling(direction * inner) <= 0.0:
        return direction * inner
    return find_root(falling, direction * inner, direction * outer, xtol=1e-12, rtol=1e-8)


# --- the Brier score --------------------------------------------------------------------------------------------------


def _compare_brier(a: Checked, b: Checked, level: float, groups: _Ints | None) -> _Difference:
    """Compare two forecasters by Brier scores: interval and p-value of the mean difference, corrected for skewness.

    If rows belong together, standard deviation and skewness grow as those of sums of groups do.
    """
    w, p, q = _shares(a), a.p.astype(np.float64), b.p.astype(np.float64)
    squares = [(p - a.y) ** 2, (q - a.y) ** 2]
    scores = [float(np.sum(w * square)) for square in squares]
    difference, one_row = scores[0] - scores[1], float(np.sum(w * w))
    observed = float(np.sum((w * (squares[0] - squares[1] - difference)) ** 2)) / (1.0 - one_row)
    sd, skewness = _brier_moments(w, p, q, observed)
    if groups is not None:
        share = np.bincount(groups, w)
        sums = np.bincount(groups, w * (squares[0] - squares[1])) - share * difference
        one_row = float(np.sum(share**2))
        ratio = math.sqrt(float(np.sum(sums**2)) / (1.0 - one_row) / observed) if observed > 0.0 else 1.0
        sd, skewness = sd * ratio, skewness * ratio
    if sd == 0.0:
        return _Difference(scores[0], scores[1], difference, difference, float(difference == 0.0))
    freedom = 1.0 / one_row - 1.0
    quantile = float(special.stdtrit(freedom, (1.0 + level) / 2.0))
    ends = (difference - sd * _unskewed(sign * quantile, skewness) for sign in (1.0, -1.0))
    low, high = min(next(ends), difference), max(next(ends), difference)
    t = difference / sd
    statistic = t + skewness * (t * t / 3.0 + 1.0 / 6.0) + skewness**2 * t**3 / 27.0
    pvalue = 2.0 * float(special.stdtr(freedom, -abs(statistic)))
    return _Difference(scores[0], scores[1], max(low, -1.0), min(high, 1.0), pvalue)


def _brier_moments(w: _Array, p: _Array, q: _Array, observed: float) -> tuple[float, float]:
    """Standard deviation and skewness of the difference of two Brier scores, given its observed variance.

    Outcomes that follow a truth halfway between the forecasters have a variance too. It is used if it is larger than
    the observed one, as far as the observed one is compatible with it: few events may miss the rows that matter most.
    The skewness is that of such outcomes, for as many events as the variance suggests.
    """
    truth, jump = (p + q) / 2.0, 2.0 * w * (q - p)  # the jump is the effect of an event on the difference
    largest = float(np.max(np.abs(jump)))
    noise = truth * (1.0 - truth)
    jump = jump / (largest or 1.0)  # powers of tiny jumps would be 0
    expected, fourth = float(np.sum(jump**2 * noise)), float(np.sum(jump**4 * noise))
    if not expected > 0.0:
        return math.sqrt(observed), 0.0
    # Predictions near 0 do not prove that no event can happen: expect one.
    events = max(1.0, fourth / expected / expected)
    likely, seen = events * expected, observed / largest / largest
    variance = max(seen, likely * _compatible_share(seen, likely, events * fourth))
    third = float(np.sum(jump**3 * noise * (1.0 - 2.0 * truth)))
    return largest * math.sqrt(variance), third / expected / math.sqrt(variance)


def _unskewed(t: float, skewness: float) -> float:
    """Quantile of Student's statistic of a skewed mean, by Hall's transformation, for the quantile t without skewness.

    It is the inverse of ``t + skewness (t^2 / 3 + 1 / 6) + skewness^2 t^3 / 27``. For sums of Poisson variables the
    ends of the intervals come close to the exact ones, even for five events.
    """
    if abs(skewness) < 1e-7:
        return t
    return 3.0 / skewness * (float(np.cbrt(1.0 + skewness * (t - skewness / 6.0))) - 1.0)
