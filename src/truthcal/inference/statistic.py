"""Test statistics: their observed values, and the ways to find their tails under calibration."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from truthcal.core.group_sums import GroupSums
from truthcal.core.params import check_choice
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.totals import Totals
from truthcal.inference.intervals import GROUPED
from truthcal.inference.laws.redraw import Tails, TiedOutcomes, Values
from truthcal.inference.laws.sign_flips import SignFlips
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.measures.registry import MEASURES, TENTS


@dataclass(frozen=True, slots=True)
class Plan:
    """The user's choices for a test: method, alternative, and redraws; and whether both tails will be read."""

    method: str = "auto"
    alternative: str = "greater"
    n_resamples: int = 9999
    generator: np.random.Generator = field(default_factory=np.random.default_rng)
    read_both: bool = False
    enough: int | None = None  # redraws as extreme as the data, after which drawing stops

    @property
    def sides(self) -> tuple[str, ...]:
        """The tails that the p-value needs."""
        return ("greater", "less") if self.alternative == "two-sided" else (self.alternative,)

    @property
    def redrawn_sides(self) -> tuple[str, ...]:
        """The tails for which there must be enough redraws."""
        return ("greater", "less") if self.read_both else self.sides


@dataclass(frozen=True, slots=True)
class Statistic:
    """A test statistic: its observed value, and the ways to find its tails under calibration.

    `redraw`: the outcomes that can be redrawn, and the function that measures them. `limit` and `bound` give tails
    without redraws. `far`: valid values of the upper tail where redraws end, by method. `moments`: null mean and sd,
    where known. `close`: whether these rows, if they have enough information, are near the limit. `slack`: differences
    up to this are rounding. `quick`: whether `redraw` measures with a compiled kernel. `exact`: whether redraws are
    exact. A statistic with a `kernel` also has `points`. `groups`: the sums of rows that belong together, if the user
    said so; `flips` then draws tails with random signs of the groups, where there is no `limit`.
    """

    name: str
    observed: float
    totals: Totals
    redraw: Callable[[], tuple[TiedOutcomes, Values]] | None = None
    limit: Callable[[], Tails] | None = None
    bound: Callable[[], Tails] | None = None
    far: Callable[[], tuple[str, float]] | None = None
    moments: tuple[float, float] | None = None
    close: bool = True
    slack: float = 0.0
    quick: bool = True
    exact: bool = True
    kernel: TentKernel | None = None
    points: Points | None = None
    groups: GroupSums | None = None
    flips: Callable[[Plan], Tails] | None = None


def grouped_statistic(summary: Sample | Sketch, sums: GroupSums, measure: str) -> Statistic:
    """A measure of rows that belong together as the statistic of the calibration test."""
    check_choice(measure, "measure", GROUPED, " with groups")
    points = summary.points()
    if measure not in TENTS:
        assert not summary.sketched  # `summarize` sorts rows for other measures
        observed = MEASURES[measure].of_sample(summary)
        flips = functools.partial(_flip_norm, sums, measure)
        return Statistic(measure, observed, Totals.of_points(points), groups=sums, flips=flips)
    kernel = TentKernel.of(measure, points)
    observed = kernel.measure(points) if summary.sketched else MEASURES[measure].of_sample(summary)
    law = SignFlips.of(sums, kernel)
    return Statistic(
        measure,
        observed,
        Totals.of_points(points),
        limit=law.tails,
        moments=(law.mean, law.sd),
        kernel=kernel,
        points=points,
        groups=sums,
    )


def _flip_norm(sums: GroupSums, measure: str, plan: Plan) -> Tails:
    """Tails of a norm of the bias, the statistic of grouped rows, from random signs of the groups."""
    norm, p, rng = MEASURES[measure].norm, sums.cells.p, plan.generator
    assert norm is not None  # callers pass a name in GROUPED
    observed = float(norm(p, sums.cells.bias[None, :])[0])
    values = norm(p, sums.flipped(plan.n_resamples, rng))
    many, slack = 1 + len(values), 1e-9 * observed
    plain = values / math.sqrt(sums.fewer_events_factor)  # a norm is proportional to the errors
    greater, less = np.sum(values >= observed - slack), np.sum(plain <= observed + slack)
    mean, sd = float(np.mean(values)), float(np.std(values))
    return Tails((1 + int(greater)) / many, (1 + int(less)) / many, mean, sd, len(values))


def explain_groups(sums: GroupSums) -> str:
    """Explain the method of a test of grouped rows."""
    many = f"{sums.n_groups:,} groups of rows"
    if sums.n_effective < 0.99 * sums.n_groups:
        many += f", of uneven weight (effective number {sums.n_effective:,.1f})"
    return f"distribution if the errors of whole groups change sign at random; {many}"
