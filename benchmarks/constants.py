"""Search for counterexamples to the constants of docs/theory, and print the worst ratio found beside each constant.

A ratio above the proved constant would refute the theorem. A ratio close to it shows that the constant cannot be
lowered by much. Seeded, about 20 s: `python benchmarks/constants.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import truthcal as tc

Vector = NDArray[np.float64]
# Predictions stay off 0 and 1: all predictions 0 or 1 would be taken for labels.
EDGE = 1e-6
ROWS = 100  # of the samples on which the test is simulated
DRAWS = 400


@dataclass(frozen=True)
class Constant:
    """A proved inequality "ratio <= constant", and the largest ratio that the search has found."""

    statement: str
    theorem: str
    proved: float
    paper: float
    worst: float


@dataclass(frozen=True)
class Population:
    """Predictions v with mean outcomes vhat and shares of weight."""

    v: Vector
    vhat: Vector
    share: Vector

    @classmethod
    def of(cls, point: Vector) -> "Population":
        """Decode a point of the unit cube; shares range over a factor of exp(9)."""
        v, vhat, share = point.reshape(3, -1)
        weight = np.exp(-9.0 * share)
        return cls(np.clip(v, EDGE, 1.0 - EDGE), np.clip(vhat, EDGE, 1.0 - EDGE), weight / weight.sum())

    def value(self, measure: Callable[..., float], **options: float) -> float:
        """Measure the population: fractional outcomes are known true probabilities."""
        return measure(self.vhat, self.v, sample_weight=self.share, **options)

    def distcal(self) -> tc.Bounded:
        """Return certified bounds on the distance to calibration."""
        return tc.distcal_bounds(self.vhat, self.v, tolerance=1e-6, sample_weight=self.share)


def climb(ratio: Callable[[Vector], float], start: Vector, steps: int, rng: np.random.Generator) -> float:
    """Improve a point of the unit cube by random steps whose size adapts to success; return the largest ratio."""
    point, best, size = start, ratio(start), 0.3
    for _ in range(steps):
        moved = rng.random(len(point)) < 1.5 / len(point)
        other = np.clip(point + size * rng.standard_normal(len(point)) * moved, 0.0, 1.0)
        value = ratio(other)
        if value >= best:
            size = min(1.3 * size, 0.5) if value > best * (1.0 + 1e-4) else size
            point, best = other, value
        else:
            size = max(0.97 * size, 1e-4)
    return best


# --- Ratios of measures -----------------------------------------------------------------------------------------------


def of_population(ratio: Callable[[Population], float]) -> Callable[[Vector], float]:
    """Make a function of a point, which is 0 near calibration, where both sides are rounding errors."""

    def of_point(point: Vector) -> float:
        population = Population.of(point)
        return ratio(population) if population.value(tc.unbinned_ece) > 1e-4 else 0.0

    return of_point


def distcal_squared_by_atb(j: Population) -> float:
    return j.distcal().low ** 2 / j.value(tc.atb)


def distcal_by_atb_l1(j: Population) -> float:
    return j.distcal().low / j.value(tc.atb_l1)


def distcal_by_smcal(j: Population) -> float:
    return j.distcal().low / j.value(tc.smcal)


def smcal_by_distcal(j: Population) -> float:
    return j.value(tc.smcal) / j.distcal().high


def atb_l1_by_distcal(j: Population) -> float:
    return j.value(tc.atb_l1) / j.distcal().high


def atb_by_distcal(j: Population) -> float:
    return j.value(tc.atb) / j.distcal().high


def smcal_squared_by_atb(j: Population) -> float:
    return j.value(tc.smcal) ** 2 / j.value(tc.atb)


def smcal_by_atb_l1(j: Population) -> float:
    return j.value(tc.smcal) / j.value(tc.atb_l1)


def atb_l1_by_smcal(j: Population) -> float:
    return j.value(tc.atb_l1) / j.value(tc.smcal)


def atb_by_smcal(j: Population) -> float:
    return j.value(tc.atb) / j.value(tc.smcal)


def atb_by_quarter_grid(j: Population) -> float:
    return j.value(tc.atb) / j.value(tc.shifted_grid_ubse, width=0.25)


def atb_by_multiscale(j: Population) -> float:
    return j.value(tc.atb) / j.value(tc.multiscale_atb)


def distance_accepted(point: Vector) -> float:
    """Return distCal sqrt(T) of a population with two predictions if ATB <= 2/T in more than 1/4 of all samples."""
    j = Population.of(point)
    rng = np.random.default_rng(1)
    first = rng.binomial(ROWS, j.share[0], DRAWS)
    rows = np.stack([first, ROWS - first])
    bias = (rows * j.v[:, None] - rng.binomial(rows, j.vhat[:, None])) / ROWS
    apart = abs(j.v[1] - j.v[0])
    atb = (1.0 - apart) * bias.sum(axis=0) ** 2 + apart * (bias**2).sum(axis=0)
    accepted = np.mean(atb <= 2.0 / ROWS)
    return j.distcal().low * math.sqrt(ROWS) if accepted > 0.25 else 0.0


# --- Lipschitz constants ----------------------------------------------------------------------------------------------


def lipschitz_ratio(measure: Callable[..., float]) -> Callable[[Vector], float]:
    """Make the ratio |change of the measure| / mean |change of the predictions|, of a point (y, r, r')."""

    def ratio(point: Vector) -> float:
        y, before, after = point.reshape(3, -1)
        moved = float(np.mean(np.abs(before - after)))
        if moved < 1e-5:
            return 0.0
        y, reports = np.round(y), np.clip([before, after], EDGE, 1.0 - EDGE)
        return abs(measure(y, reports[0]) - measure(y, reports[1])) / moved

    return ratio


def moves(y: list[float], before: list[float], after: list[float]) -> Vector:
    """Return the point of the unit cube for outcomes and two reports."""
    return np.concatenate([y, before, after])


# --- All constants ----------------------------------------------------------------------------------------------------

# (statement, theorem, proved here, in the paper, ratio); nan if the paper gives no number.
MEASURES = [
    ("distCal^2 <= 2 ATB", "F24", 2.0, 18.0, distcal_squared_by_atb),
    ("distCal <= ATB_l1", "F23", 1.0, 3.0, distcal_by_atb_l1),
    ("distCal <= 2 smCal", "F24", 2.0, 2.0, distcal_by_smcal),
    ("smCal <= 2 distCal", "F22", 2.0, 2.0, smcal_by_distcal),
    ("ATB_l1 <= 3 distCal", "F22", 3.0, 3.0, atb_l1_by_distcal),
    ("ATB <= 2 distCal", "F22", 2.0, 3.0, atb_by_distcal),
    ("smCal^2 <= (5/2) ATB", "F21", 2.5, 4.5, smcal_squared_by_atb),
    ("smCal <= (3/2) ATB_l1", "F20", 1.5, 1.5, smcal_by_atb_l1),
    ("ATB_l1 <= 2 smCal", "F20", 2.0, 6.0, atb_l1_by_smcal),
    ("ATB <= smCal", "F21", 1.0, 6.0, atb_by_smcal),
    ("ATB <= 4 UBSE_h for h = 1/4", "F8", 4.0, math.nan, atb_by_quarter_grid),
    ("ATB <= 32 multiscale ATB", "F9", 32.0, math.nan, atb_by_multiscale),
]
# The same for a measure, which moves by at most the constant times mean |dr|, and the worst known case.
LIPSCHITZ = [
    ("ATB moves by at most 4 mean |dr|", "F6", 4.0, 6.0, tc.atb, moves([0.0] * 40, [1.0] * 40, [0.99] + [1.0] * 39)),
    ("ATB_l1 moves by at most 3 mean |dr|", "F6", 3.0, 3.0, tc.atb_l1, moves([1, 0], [0, 1], [0.005, 0.995])),
    ("smCal moves by at most 2 mean |dr|", "F16", 2.0, math.nan, tc.smcal, moves([1, 0, 0], [0, 1, 1], [0, 1, 0.99])),
]
TEST = ("distCal sqrt(T) accepted w.p. > 1/4", "I10", 2.0 + math.sqrt(2.0 * math.log(4.0)), math.nan)


def encode(v: list[float], vhat: list[float], weight: list[float]) -> Vector:
    """Return the point of the unit cube that `Population.of` decodes to these predictions, outcomes and weights."""
    return np.concatenate([v, vhat, np.log(np.max(weight) / np.asarray(weight)) / 9.0])


# Populations that attain, or nearly attain, several constants (docs/theory/foundations.md).
STARTS = [
    encode([0.005, 0.995], [0.0, 1.0], [1.0, 1.0]),  # underconfident at both ends
    encode([0.25, 0.75], [0.0, 1.0], [1.0, 1.0]),
    encode([0.0, 0.02], [1.0, 0.0], [0.02, 0.98]),  # calibrated at 0.02, had the events not been moved to 0
    encode([0.01, 0.5, 1.0], [0.0, 1.0, 0.0], [1.0, 0.02, 0.01]),  # C is S, then 0, then S
    encode([0.01, 0.5, 1.0], [0.0, 1.0, 0.0], [0.75, 0.01, 0.0075]),  # C is 3S/4, then S/4, then S
    encode([0.01, 0.25, 0.5, 0.75, 1.0], [0.0] * 5, [0.72, 0.037, 0.02, 0.012, 0.0072]),  # equal errors
    # found by a longer search
    encode([0.0, 0.0429, 0.0822, 0.1978], [0.9575, 0.0, 0.0, 0.2671], [0.1055, 1.0, 0.6359, 0.00896]),
    encode(
        [0.0774, 0.5009, 0.6204, 0.745, 0.9639],
        [0.0994, 0.5176, 0.7663, 0.9299, 0.5054],
        [0.0166, 0.0546, 0.2685, 0.9148, 0.6145],
    ),
    encode([0.5, 1.0], [0.5, 0.0], [1.0, 100.0]),  # nearly all predictions are 1, and no event happens
]


def search(
    ratio: Callable[[Vector], float], starts: list[Vector], dimensions: tuple[int, ...], steps: int, seed: int
) -> float:
    """Climb from the given starts and from random points of the given dimensions; return the largest ratio."""
    rng = np.random.default_rng(seed)
    points = starts + [rng.random(3 * rows) for rows in dimensions]
    return max(climb(ratio, point, steps, rng) for point in points)


def worst_ratios(steps: int = 100, seed: int = 0) -> list[Constant]:
    """Search all constants: `steps` evaluations from each of about ten starting points, half as many if slow."""
    found = []
    for *words, ratio in MEASURES:
        slow = "distcal" in ratio.__name__
        worst = search(of_population(ratio), STARTS, (2, 3, 4, 5), steps // 2 if slow else steps, seed)
        found.append(Constant(*words, worst))
    for *words, measure, start in LIPSCHITZ:
        worst = search(lipschitz_ratio(measure), [start], (2, 3, 5, 8), 2 * steps, seed)
        found.append(Constant(*words, worst))
    found.append(Constant(*TEST, search(distance_accepted, STARTS[:1], (2, 2, 2), 2 * steps, seed)))
    return found


def print_table(rows: list[Constant]) -> None:
    """Print one line for each constant."""
    print(f"{'statement':38} {'theorem':8} {'proved':>8} {'paper':>8} {'worst found':>12}")
    for row in rows:
        paper = "" if math.isnan(row.paper) else f"{row.paper:.4g}"
        print(f"{row.statement:38} {row.theorem:8} {row.proved:8.4g} {paper:>8} {row.worst:12.4f}")


if __name__ == "__main__":
    print_table(worst_ratios())
