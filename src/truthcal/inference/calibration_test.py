"""The calibration test: are these outcomes what calibrated predictions would have, or not?"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from truthcal.core.checks import as_columns, check_rows, refuse_fractional
from truthcal.core.params import (
    check_choice,
    check_level,
    check_rng,
    check_whole,
    refuse_beside_sketch,
    refuse_no_proba,
)
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.cells import BUCKETS, TOO_MANY_TO_SORT, Cells, bucket_sample, tent_measure
from truthcal.inference.intervals import interval_of
from truthcal.inference.laws.brownian import PATH_LIMITS
from truthcal.inference.laws.outcomes import Outcomes, Values
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import MOST_CASES, MOST_SLOW_CASES, Tails, enumerate_tails, simulate_tails
from truthcal.inference.laws.sparse_redraw import SparseRedraw, expected_surprises
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.registry import MEASURES, TENTS
from truthcal.results.tests import CalibrationTest, ConfidenceInterval

METHODS = ("auto", "exact", "asymptotic", "bound")
ALTERNATIVES = ("greater", "less", "two-sided")
# From here on the distribution for many rows is close: see docs/benchmarks/inference.md for how close.
MANY_ROWS = 10_000
ENOUGH_INFORMATION = 100.0
# A Brownian motion seen at fewer times than this has noticeably smaller extremes.
_MANY_STEPS = 400
# Many rows of which so few are in doubt are redrawn by those few.
_FEW_SURPRISES, _FEW_AT_A_TIME = 1000.0, 100
# A bound this many times below the least p-value of redraws spares them.
_WELL_BELOW = 4.0


@dataclass(frozen=True, slots=True)
class Statistic:
    """What a test compares with its values under calibration, and the ways known to do so.

    `values` measures many outcomes; `limit` and `bound` give tails without any; `moments` are mean and sd, where known;
    `kernel`, if it has one. `close`: whether these rows, if they are many, are near the limit.
    """

    name: str
    observed: float
    values: Callable[[Outcomes], Values] | None
    limit: Callable[[], Tails] | None
    bound: Callable[[], Tails] | None = None
    moments: tuple[float, float] | None = None
    close: bool = True
    slack: float = 0.0
    quick: bool = True
    kernel: TentKernel | None = None


def impossible_outcomes(sample: Sample) -> int:
    """How many rows had a predicted chance of exactly 0 for what happened."""
    return int(np.count_nonzero(((sample.p == 0) & (sample.y == 1)) | ((sample.p == 1) & (sample.y == 0))))


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows there are and what their outcomes can tell.

    `effective` discounts rows of little weight. `impossible`: rows whose outcome had a predicted chance of 0.
    """

    n: int
    information: float
    effective: float
    source: str = ""
    impossible: int = 0

    @classmethod
    def of(cls, sample: Sample) -> "Rows":
        """Of sorted rows."""
        v = sample.p * (1.0 - sample.p.astype(np.float64))
        noise = float(np.sum(sample.w**2 * v)), float(np.sum(sample.w**4 * v))
        effective = noise[0] ** 2 / noise[1] if noise[1] > 0.0 else 0.0
        return cls(sample.n, float(np.sum(v)), effective, impossible=impossible_outcomes(sample))


def calibration_test(
    y_true: object,
    y_proba: object = None,
    *,
    measure: str = "multiscale_atb",
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 9999,
    rng: Any = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> CalibrationTest:
    """Could calibrated predictions have had these outcomes? A p-value for any measure, valid at any number of rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Sketch
        Outcomes: 0/1 or bool; other labels need `pos_label`. A `Sketch` takes the place of all rows, `y_proba` and
        `sample_weight` included.
    y_proba : array-like of shape (n,)
        Predicted probabilities.
    measure : str, default "multiscale_atb"
        Any name in `MEASURES`. The default looks at errors of every width; "atb" has more power against predictions
        that are all too high or too low, and less against errors that change sign.
    method : {"auto", "exact", "asymptotic", "bound"}, default "auto"
        "exact": predictions are kept and outcomes redrawn from them, all of them if there are at most 2^20 different
        ones (2^16 for measures without a fast kernel), else `n_resamples` at random. Valid for every measure and any n.
        "asymptotic": the distribution for many rows; for atb, multiscale_atb, shifted_grid_ubse, ks_ce, step_ce and
        kuiper_ce. "bound": an upper limit of the p-value that always holds, for the first three of these.
        "auto": exact for up to 10,000 rows, or where sum p(1 - p) is below 100 (unless the bound is well below any
        p-value that so many redraws could show), else asymptotic where there is one (for ks_ce, step_ce and kuiper_ce
        not if there are few different predictions).
    alternative : {"greater", "less", "two-sided"}, default "greater"
        "greater": miscalibrated. "less": too good to be honest, for example fitted on these outcomes.
    n_resamples : int, default 9999
        Random outcomes at most. Drawing stops earlier once 500 were at least as extreme, which is valid (Besag,
        Clifford 1991).
    rng : int, numpy Generator or None
        Source of randomness.
    sample_weight : array-like of shape (n,), optional
        Weights. A row of any weight is one observation: if weights are counts of equal rows, repeat the rows.
    pos_label : optional
        The label that counts as 1.

    Returns
    -------
    CalibrationTest
        ``statistic``, ``pvalue``, what chance alone gives, and how the answer was found. Prints in words.

    Notes
    -----
    The hypothesis: outcomes are independent and each follows its prediction. Rows that share a fate (several of one
    patient, one day) make any such test reject too often. With a measure of squared errors the statistic is, for many
    rows, a weighted sum of squares of normals, whose tail is computed to 12 digits. More than 2^20 rows are not sorted:
    their statistic comes from a sketch of 16,384 buckets (docs/guide/inference.md has its error).
    A redrawn value equal to the observed one up to rounding counts as being as extreme.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.calibration_test([0, 1, 1, 0, 1, 1], [0.2, 0.9, 0.6, 0.3, 0.6, 0.8]))
    No sign of miscalibration among 6 rows (p = 0.68).
    multiscale_atb is 0.02375; by chance alone it would be 0.0306 with a standard deviation of 0.0199.
    (exact: all 48 possible outcomes were gone through)
    """
    check_choice(measure, "measure", tuple(MEASURES))
    check_choice(method, "method", METHODS)
    check_choice(alternative, "alternative", ALTERNATIVES)
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 1), check_rng(rng)
    sorting = measure not in TENTS or method not in ("auto", "asymptotic")
    summary = summary_of(y_true, y_proba, sample_weight, pos_label, sorting=sorting, at_any_rate=method == "asymptotic")
    return calibration_test_of(summary, measure, method, alternative, n_resamples, generator)


def summary_of(
    y_true: object,
    y_proba: object,
    sample_weight: object,
    pos_label: object,
    *,
    sorting: bool = False,
    at_any_rate: bool = False,
) -> Sample | Sketch:
    """Checked rows in order, or a sketch: the user's own, or one of rows too many to sort.

    Rows are sorted after all if `sorting`, or if they leave too little to chance for the law of many rows (unless that
    is asked for `at_any_rate`).
    """
    if isinstance(y_true, Sketch):
        refuse_beside_sketch(y_proba, sample_weight, pos_label)
        return y_true
    refuse_no_proba(y_proba)
    truth, proba, *weight = as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    w = weight[0] if weight else None
    if len(proba) > TOO_MANY_TO_SORT and not sorting:
        sketch = Sketch(BUCKETS).update(truth, proba, w, pos_label=pos_label)
        if weight and pos_label is None and truth.dtype.kind == "f":  # a sketch of weighted rows cannot tell
            refuse_fractional(truth)
        if at_any_rate or rows_of(sketch).effective >= ENOUGH_INFORMATION:
            return sketch
    rows = check_rows(truth, proba, w, pos_label)
    refuse_fractional(rows.y)
    return Sample.from_checked(rows)


def calibration_test_of(
    summary: Sample | Sketch, measure: str, method: str, alternative: str, n_resamples: int, rng: Any
) -> CalibrationTest:
    """The test, from sorted rows or a sketch."""
    if isinstance(summary, Sketch):
        return _of_sketch(summary, measure, method, alternative)
    return finish(
        of_measure(measure, summary),
        Rows.of(summary),
        method,
        alternative,
        summary,
        n_resamples,
        check_rng(rng),
        _interval(summary, measure),
    )


def _interval(summary: Sample | Sketch, measure: str) -> Callable[[float, str], ConfidenceInterval]:
    """What `CalibrationTest.confidence_interval` calls. It keeps the sorted rows, and can be pickled."""
    return functools.partial(_interval_at, summary, measure)


def _interval_at(summary: Sample | Sketch, measure: str, level: float, method: str) -> ConfidenceInterval:
    return interval_of(summary, measure, check_level(level, "confidence_level"), method)


def finish(
    statistic: Statistic,
    rows: Rows,
    method: str,
    alternative: str,
    sample: Sample | None = None,
    n_resamples: int = 0,
    generator: np.random.Generator | None = None,
    interval: Callable[[float, str], ConfidenceInterval] | None = None,
) -> CalibrationTest:
    """Choose a method, find both tails with it, and say what was found."""
    sides = ("greater", "less") if alternative == "two-sided" else (alternative,)
    asked, method = method, _chosen(statistic, rows, method)
    settled = asked == "auto" and method == "exact" and _settled(statistic, sample, sides, n_resamples)
    method = "bound" if settled else method
    if method == "exact" and statistic.values and sample is not None and generator is not None:
        tails, why = _exact(statistic, statistic.values, sample, sides, n_resamples, generator)
    elif method == "asymptotic" and statistic.limit:
        tails = statistic.limit()
        why = f"the distribution for many rows, good where sum p(1 - p) is 100 or more; here it is {rows.effective:.4g}"
    elif statistic.bound:
        tails, why = statistic.bound(), "an upper limit of the p-value, which holds for any number of rows"
        why += f"; {n_resamples:,} redraws could not show one so small" if settled else ""
    chances = {"greater": tails.greater, "less": tails.less}
    pvalue = float(min(1.0, len(sides) * min(chances[side] for side in sides)))
    mean, sd = statistic.moments or (tails.mean, tails.sd)
    return CalibrationTest(
        statistic=statistic.observed,
        pvalue=pvalue,
        null_mean=mean,
        null_sd=sd,
        z=(statistic.observed - mean) / sd if sd > 0.0 else math.nan,
        measure=statistic.name,
        alternative=alternative,
        method=method,
        why=why + rows.source,
        n=rows.n,
        information=rows.information,
        n_resamples=tails.draws,
        greater=tails.greater,
        less=tails.less,
        impossible=rows.impossible,
        _interval=interval,
    )


def _chosen(statistic: Statistic, rows: Rows, method: str) -> str:
    """The method to use: the one asked for if it can be had."""
    can = {"exact": statistic.values, "asymptotic": statistic.limit, "bound": statistic.bound}
    if method != "auto":
        allowed = ("auto", *(name for name, way in can.items() if way))
        return check_choice(method, "method", allowed, f" for {statistic.name}{' of a sketch' if rows.source else ''}")
    enough = rows.effective >= ENOUGH_INFORMATION
    if statistic.values and not (statistic.limit and statistic.close and rows.n > MANY_ROWS and enough):
        return "exact"
    return "asymptotic" if enough or not statistic.bound else "bound"


def _settled(statistic: Statistic, sample: Sample | None, sides: tuple[str, ...], n_resamples: int) -> bool:
    """Whether a bound is well below any p-value that random outcomes could show, so that none need be drawn.

    To choose by looking at the bound adds at most the chance that it is so small to the size of the test: with 9,999
    redraws 0.000025, and in truth far less, for a bound is seldom near.
    """
    if statistic.bound is None or sample is None or "greater" not in sides:
        return False
    least = 1.0 / (1 + n_resamples)
    return len(sides) * statistic.bound().greater < least / _WELL_BELOW and Outcomes(sample).cases > MOST_CASES


def _exact(
    statistic: Statistic,
    prepared: Callable[[Outcomes], Values],
    sample: Sample,
    sides: tuple[str, ...],
    n_resamples: int,
    generator: np.random.Generator,
) -> tuple[Tails, str]:
    """Tails from the possible outcomes, and how they were found."""
    outcomes = Outcomes(sample)
    values = prepared(outcomes)
    # Measured by the same arithmetic as the redrawn outcomes, so that equal ones compare as equal.
    observed = float(values(sample.groups.wy[None, :])[0])
    usual = statistic.moments[0] if statistic.moments else 1e-4
    slack = max(1e-9 * abs(observed), 1e-10 * usual, statistic.slack)
    cases = outcomes.cases
    if cases <= (MOST_CASES if statistic.quick else MOST_SLOW_CASES):
        many = f"all {cases:,.0f} possible outcomes were gone through" if cases > 1 else "only one outcome is possible"
        return enumerate_tails(outcomes, values, observed, slack), many
    redraw, block = (lambda stream, count: values(outcomes.draw(stream, count))), outcomes.block
    if statistic.kernel and sample.n > MANY_ROWS and expected_surprises(sample) < _FEW_SURPRISES:
        redraw, block = SparseRedraw(sample, statistic.kernel), _FEW_AT_A_TIME
    tails = simulate_tails(redraw, block, observed, slack, n_resamples=n_resamples, generator=generator, sides=sides)
    early = ", enough for so large a p-value" if tails.draws < n_resamples else ""
    return tails, f"{tails.draws:,} random redraws of the outcomes{early}; valid for any number of rows"


# --- statistics -------------------------------------------------------------------------------------------------------


def of_measure(measure: str, sample: Sample) -> Statistic:
    """A measure of sorted rows as the statistic of a test."""
    row = MEASURES[measure]
    observed = row.of_sample(sample)
    slack = row.tolerance if row.tolerance > 0.0 else 0.0
    if measure in TENTS:
        kernel = TentKernel.of(measure, sample)
        moments = null_moments(kernel, sample)
        noise = _Noise.of(sample)
        return Statistic(
            measure,
            observed,
            values=lambda outcomes: outcomes.values(measure),
            limit=lambda: _limit(observed, Cells.of_sample(sample), kernel),
            bound=lambda: noise.tails(observed, moments.sd**2),
            moments=(moments.mean, moments.sd),
            kernel=kernel,
        )
    return Statistic(
        measure,
        observed,
        values=lambda outcomes: outcomes.values(measure),
        limit=_path_limit(measure, observed, sample),
        # To redraw more different predictions than this would take too long: the limit, cautious, must do.
        close=not row.path_limit or _steps(sample) >= _MANY_STEPS or len(sample.groups.r) > 2 * MANY_ROWS,
        slack=slack,
        quick=row.batched,
    )


def _limit(observed: float, cells: Cells, kernel: TentKernel) -> Tails:
    """The weighted sum of squares of normals that the measure is for many rows."""
    scales = cells.null_scales(kernel)
    mean, sd = float(np.sum(cells.a)), math.sqrt(2.0 * float(np.sum(scales**2)))
    if mean == 0.0:  # all predictions are 0 or 1: right, or impossible
        return Tails(float(observed == 0.0), 1.0, 0.0, 0.0, 0)
    return Tails(upper_tail(observed, scales), lower_tail(observed, scales), mean, sd, 0)


def _path_limit(measure: str, observed: float, sample: Sample) -> Callable[[], Tails] | None:
    """For many different predictions the cumulative bias moves like a Brownian motion.

    With ties it jumps, and its extremes are smaller: the p-value of large ones is then too large, never too small.
    """
    name = MEASURES[measure].path_limit
    if name is None:
        return None
    path = PATH_LIMITS[name]
    unit = math.sqrt(sample.moments.wwv) / sample.weight

    def limit() -> Tails:
        if unit == 0.0:
            return Tails(float(observed == 0.0), 1.0, 0.0, 0.0, 0)
        x = observed / unit
        less = path.head(x) if _steps(sample) >= _MANY_STEPS else 1.0  # with ties small values are more frequent
        return Tails(path.tail(x), less, path.mean * unit, math.sqrt(path.square - path.mean**2) * unit, 0)

    return limit


def _steps(sample: Sample) -> float:
    """In how many steps of equal size the cumulative bias moves, in effect."""
    variances = sample.groups.w * sample.groups.r * (1.0 - sample.groups.r)
    total = float(np.sum(variances))
    return total**2 / float(np.sum(variances**2)) if total > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class _Noise:
    """What bounds of the tails need, all as shares: sum w^2 v / W^2, sum w^2 / W^2, largest w / W."""

    floor: float
    ww: float
    largest: float

    @classmethod
    def of(cls, sample: Sample) -> "_Noise":
        m = sample.moments
        return cls(m.wwv / m.w**2, m.ww / m.w**2, float(sample.w.max()) / m.w)

    def tails(self, observed: float, variance: float) -> Tails:
        """The least of several bounds that always hold; proofs in docs/theory/inference.md.

        Above the mean: Markov; Cantelli; McDiarmid and Bernstein for the length of a sum of independent vectors. Below
        it: Cantelli.
        """
        greater = less = 1.0
        gap = observed - self.floor
        cantelli = variance / (variance + gap**2) if variance + gap**2 > 0.0 else 1.0
        if gap < 0.0:
            less = cantelli
        elif gap > 0.0:
            length, spread = math.sqrt(observed), math.sqrt(self.floor)
            mcdiarmid = math.exp(-2.0 * max(0.0, length - spread) ** 2 / self.ww)
            bernstein = 2.0 * math.exp(-observed / (2.0 * (self.floor + self.largest * length / 3.0)))
            greater = min(self.floor / observed, cantelli, mcdiarmid, bernstein)
        return Tails(greater, less, self.floor, math.sqrt(variance), 0)


# --- of a sketch ------------------------------------------------------------------------------------------------------


def rows_of(sketch: Sketch) -> Rows:
    """Of a sketch. Fourth powers of weights are not in it, so w^2 is taken for its mean in the bucket."""
    table = sketch.table()
    mean_square = table["ww"] / table["n"]
    unit = float(np.max(mean_square))  # fourth powers of weights such as 1e90 would overflow
    noise = float(np.sum(table["wwv"] / unit)), float(np.sum(table["wwv"] / unit * (mean_square / unit)))
    effective = noise[0] ** 2 / noise[1] if noise[1] > 0.0 else 0.0
    information = float(np.sum(table["wwv"] / mean_square))
    return Rows(sketch.n, information, effective, f"; from a sketch of {sketch.n_buckets:,} buckets")


def _of_sketch(sketch: Sketch, measure: str, method: str, alternative: str) -> CalibrationTest:
    check_choice(measure, "measure", TENTS, " of a sketch")
    floor, table = sketch.noise_floor(), sketch.table()  # refuses an empty sketch
    refuse_fractions_in(sketch)
    kernel = TentKernel.of(measure, bucket_sample(sketch))
    observed = sketch.atb().value if measure == "atb" else tent_measure(sketch, kernel)
    total = sketch.weight
    x, ww, wwv = table["mean_proba"], table["ww"] / total**2, table["wwv"] / total**2
    unweighted = bool((table["ww"] == table["n"]).all())
    largest = 1.0 / total if unweighted else math.sqrt(float(np.max(ww)))
    noise = _Noise(floor, float(np.sum(ww)), largest)
    points = 2.0 * kernel.squares(x, wwv)
    own = float(np.sum(wwv * ww / table["n"] * (1.0 - 6.0 * x * (1.0 - x))))

    def bound() -> Tails:
        # Both predictions of a pair may be a bucket's width from their buckets' means, and k^2 is twice as steep as k.
        moved = 8.0 * kernel.steepness / sketch.n_buckets * float(np.sum(wwv)) ** 2
        most = float(np.sum(wwv * (largest**2 if unweighted else ww)))
        return noise.tails(observed, points + moved + most)

    statistic = Statistic(
        measure,
        observed,
        values=None,
        limit=lambda: _limit(observed, Cells.of_sketch(sketch), kernel),
        bound=bound,
        moments=(floor, math.sqrt(max(points + own, 0.0))),
    )
    return finish(statistic, rows_of(sketch), method, alternative, interval=_interval(sketch, measure))


def refuse_fractions_in(sketch: Sketch) -> None:
    """Without weights a sketch tells whether outcomes were 0/1: then sum y^2 = sum y."""
    table = sketch.table()
    if (table["ww"] != table["n"]).any() or (table["weight"] != table["n"]).any():
        return
    squares = table["wp"] - table["wwv"]  # sum of p^2
    y, yy = table["wp"] - (table["pos"] - table["neg"]), table["wcc"] + squares - 2.0 * table["wcp"]
    if float(np.sum(y - yy)) > 1e-6 * sketch.n:
        refuse_fractional(None)
