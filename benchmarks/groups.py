"""Simulate tests and intervals of rows that belong together, and write docs/benchmarks/groups.md: part of `make bench`.

Each design draws outcomes, their true probabilities given all that a forecaster may know, and the groups. Honest
predictions are the true probabilities; wrong ones are a function of them.

On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait for a core make small matrices ten times as slow.
"""

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pages import table, write_page
from scipy import special

import truthcal as tc
from truthcal.core import group_flips
from truthcal.core.roots import find_root
from truthcal.inference.laws import squared_length

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "groups.md"
# Simulations without groups, whose results are far from the target.
ALONE = 100
# Samples whose median detectable error is used.
SAMPLES = 15
Array = np.ndarray
# Outcomes, true probabilities, groups.
Rows = tuple[Array, Array, Array]


INTRODUCTION = """# Rows that belong together

Written by `benchmarks/groups.py`; do not edit. Tests and intervals with `groups=`: {0:,} simulations of each size
(standard errors {1:.4f} at 5% and {2:.4f} at 1%), {3:,} of each coverage and power. The targets, from 40 effective
groups on: a size between 0.8 and 1.4 times the level, and a coverage of 95% intervals between 0.93 and 0.97.

- in-game: predictions of one match as it unfolds; all rows of a match have the same outcome.
- beta-binomial: all rows of a group have one prediction, and outcomes in a group have a correlation of 0.2.
- uneven: groups of 1 to 200 rows; outcomes in a group have a correlation of about 0.3.

## Size of the test

Share of calibrated samples that are rejected. The lower tail is that of "unusually close". "No groups": the test of
independent rows."""
COVERAGE = """
## Coverage of 95% intervals

The error is the root mean square error (`error_size`). If it is 0, or too small to be detected, its interval can miss
on one side only, so that the target is 0.975 or more."""
POWER = """
## Power

Independent rows in groups that mean nothing: the price of `groups=` where it is not needed. Share rejected at 5%."""
SKETCHES = """
## In sketches

The same from a sketch, `Sketch().update(..., groups=)`, of many groups, which are kept as sums with random signs (few
groups give the results of the rows): {0:,} simulations of each size and coverage. Predictions are
calibrated for size and for the first coverage, and too high by 0.05 for the others. "Width": that of the bias interval
divided by that from the rows, as mean and standard deviation."""
SKETCHED_POWERS = """
Power at 5% from rows, which are divided into cells of equal noise, and from a sketch, whose cells are always the same:
rows that belong together in groups of 5, half of them with the same luck."""
PROMISES = """
The mean error of the shift upwards that `assess` calls detectable with 80% power (the median of 15 samples), and the
power against a shift with this mean error."""


def in_game(rng: np.random.Generator, n_groups: int, rows: int = 20) -> Rows:
    """Draw predictions of each match as it unfolds: the lead is a random walk, and the sign of the last one wins."""
    steps = rows + 5
    lead = 0.7 * rng.standard_normal((n_groups, 1)) + np.cumsum(rng.standard_normal((n_groups, steps)), 1) / 5.0
    left = (steps - np.arange(1, rows + 1)) / 25.0
    truth = special.ndtr(lead[:, :rows] / np.sqrt(left))
    return np.repeat(lead[:, -1] > 0.0, rows), truth.ravel(), np.repeat(np.arange(n_groups), rows)


def beta_binomial(rng: np.random.Generator, n_groups: int, rows: int = 20, other: float = 1.5) -> Rows:
    """Draw groups whose rows have one prediction m and one probability, Beta with mean m and correlation 0.2."""
    m = rng.beta(1.5, other, n_groups)
    chance = rng.beta(4.0 * m, 4.0 * (1.0 - m))
    y = rng.random((n_groups, rows)) < chance[:, None]
    return y.ravel(), np.repeat(m, rows), np.repeat(np.arange(n_groups), rows)


def uneven(rng: np.random.Generator, n_groups: int) -> Rows:
    """Draw groups of 1 to 200 rows; some rows of a group share their luck, whatever their predictions are."""
    sizes = np.minimum(np.ceil(3.0 * rng.pareto(1.5, n_groups) + 1.0), 200).astype(int)
    groups = np.repeat(np.arange(n_groups), sizes)
    truth, shared = rng.beta(1.5, 1.5, len(groups)), rng.random(len(groups)) < math.sqrt(0.3)
    luck = np.where(shared, rng.random(n_groups)[groups], rng.random(len(groups)))
    return luck < truth, truth, groups


def independent(rng: np.random.Generator, n_groups: int, rows: int = 5) -> Rows:
    """Draw independent rows in groups that mean nothing."""
    truth = rng.random(n_groups * rows)
    return rng.random(len(truth)) < truth, truth, np.repeat(np.arange(n_groups), rows)


DESIGNS: dict[str, Callable[[np.random.Generator], Rows]] = {
    "in-game, 42 matches of 20 rows": lambda rng: in_game(rng, 42),
    "in-game, 300 matches of 20 rows": lambda rng: in_game(rng, 300),
    "beta-binomial, 42 groups of 20 rows": lambda rng: beta_binomial(rng, 42),
    "beta-binomial, 200 groups of 20 rows": lambda rng: beta_binomial(rng, 200),
    "uneven, 200 groups": lambda rng: uneven(rng, 200),
    "uneven, 600 groups": lambda rng: uneven(rng, 600),
    "rare events (1 in 20), 200 groups of 20 rows": lambda rng: beta_binomial(rng, 200, 20, 28.5),
}
MANY_GROUPS = [design for design in DESIGNS if " 42 " not in design]
# Predictions as a function of the truth.
ERRORS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda q: q,
    "too high by 0.05": lambda q: np.minimum(q + 0.05, 1.0),
    "overconfident (log-odds x 1.5)": lambda q: 1.0 / (1.0 + ((1.0 - q) / q) ** 1.5),
}


def sizes(design: str, repeats: int) -> list[float]:
    """Return effective groups, the size at 5% and 1%, of the lower tail at 1%, and without groups at 5% and 1%."""
    rng = np.random.default_rng([1, list(DESIGNS).index(design)])
    found = []
    for k in range(repeats):
        y, q, groups = DESIGNS[design](rng)
        test = tc.calibration_test(y, q, groups=groups)
        alone = tc.calibration_test(y, q, n_resamples=499).pvalue if k < ALONE else math.nan
        found.append((test.n_effective_groups, test.greater, test.less, alone))
    effective, greater, less, alone = np.array(found).T
    alone = alone[~np.isnan(alone)]
    tests = (greater, 0.05), (greater, 0.01), (less, 0.01), (alone, 0.05), (alone, 0.01)
    return [float(np.mean(effective)), *(float(np.mean(p <= level)) for p, level in tests)]


def coverage(design: str, error: str, repeats: int) -> list[float]:
    """Return the coverage of the 95% intervals of bias and error, and that of the bias without groups.

    Whether an interval of the error contains the truth is decided by its tail probabilities there.
    """
    rng, wrong = np.random.default_rng([2, list(DESIGNS).index(design), list(ERRORS).index(error)]), ERRORS[error]
    population = [DESIGNS[design](rng)[1] for _ in range(400)]
    off = np.concatenate([wrong(q) - q for q in population])
    bias, rms = float(np.mean(off)), math.sqrt(float(np.mean(off**2)))
    crossing, hits = squared_length.interval_end, np.zeros(3)
    for k in range(repeats):
        y, q, groups = DESIGNS[design](rng)
        p = wrong(q)
        hits[0] += bias in tc.confidence_interval(y, p, measure="bias", groups=groups)
        hits[2] += k < ALONE and bias in tc.confidence_interval(y, p, measure="bias")
        squared_length.interval_end = lambda rising: 0.0 if rising(rms) >= 0.0 else 1.0
        try:
            hits[1] += rms in tc.error_size(y, p, groups=groups)
        finally:
            squared_length.interval_end = crossing
    return list(hits / [repeats, repeats, min(repeats, ALONE)])


def powers(n_groups: int, rows: int, error: float, repeats: int) -> list[float]:
    """Return the power at 5% against a shift, for independent rows: with groups that mean nothing, and without."""
    rng = np.random.default_rng([3, n_groups, rows])
    found = []
    for _ in range(repeats):
        y, q, groups = independent(rng, n_groups, rows)
        p = np.clip(q + error, 0.0, 1.0)
        tests = tc.calibration_test(y, p, groups=groups), tc.calibration_test(y, p)
        found.append([test.pvalue <= 0.05 for test in tests])
    return list(np.mean(found, axis=0))


def sketched(design: str, repeats: int) -> list[float]:
    """Return size at 5% and 1%, coverage of bias, and of bias and error of a shift, and widths of bias intervals."""
    group_flips.MOST_SUMS = 0  # as if there were many groups
    rng = np.random.default_rng([5, list(DESIGNS).index(design)])
    wrong = ERRORS["too high by 0.05"]
    off = np.concatenate([wrong(q) - q for q in (DESIGNS[design](rng)[1] for _ in range(400))])
    bias, rms = float(np.mean(off)), math.sqrt(float(np.mean(off**2)))
    found = []
    for k in range(repeats):
        y, q, groups = DESIGNS[design](rng)
        names = groups + 10**6 * k  # new signs
        honest, shifted = (tc.Sketch().update(y, p, groups=names) for p in (q, wrong(q)))
        pvalue, interval = tc.calibration_test(honest).pvalue, tc.confidence_interval(honest, measure="bias")
        exact = tc.confidence_interval(y, q, measure="bias", groups=groups)
        covers = 0.0 in interval, bias in tc.confidence_interval(shifted, measure="bias"), rms in tc.error_size(shifted)
        found.append(
            (pvalue <= 0.05, pvalue <= 0.01, *covers, (interval.high - interval.low) / (exact.high - exact.low))
        )
    width = [row[-1] for row in found]
    return [*np.mean(found, axis=0), float(np.std(width))]


def shared_luck(rng: np.random.Generator, truth: Array) -> Rows:
    """Draw outcomes in groups of 5 rows, half of which share their luck."""
    groups = np.repeat(np.arange(len(truth) // 5), 5)
    luck = np.where(rng.random(len(truth)) < 0.5, rng.random(len(truth) // 5)[groups], rng.random(len(truth)))
    return luck < truth, truth, groups


def sine(p: Array, low: float, high: float, periods: int, size: float) -> Array:
    """Return true probabilities that differ from predictions between low and high by a sine."""
    return np.asarray(p + size * np.sin(2.0 * periods * np.pi * (p - low) / (high - low)))


# Number of rows, predictions from uniform numbers, and true probabilities from predictions.
POWERS: dict[str, tuple[int, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "uniform, too high by 0.03": (2000, lambda u: 0.03 + 0.97 * u, lambda p: p - 0.03),
    "uniform, log-odds x 1.2": (2000, lambda u: u, lambda p: 1.0 / (1.0 + (1.0 / p - 1.0) ** (1.0 / 1.2))),
    "0.1 to 0.9, sine of 3 periods, 0.08": (2000, lambda u: 0.1 + 0.8 * u, lambda p: sine(p, 0.1, 0.9, 3, 0.08)),
    "0.4 to 0.6, too high by 0.04": (2000, lambda u: 0.4 + 0.2 * u, lambda p: p - 0.04),
    "0.4 to 0.6, log-odds x 3": (4000, lambda u: 0.4 + 0.2 * u, lambda p: 1.0 / (1.0 + (1.0 / p - 1.0) ** (1.0 / 3.0))),
    "0.4 to 0.6, sine of 2 periods, 0.06": (4000, lambda u: 0.4 + 0.2 * u, lambda p: sine(p, 0.4, 0.6, 2, 0.06)),
    "0.001 to 0.1, too high by a third": (8000, lambda u: 10.0 ** (-3.0 + 2.0 * u), lambda p: 0.75 * p),
}


def sketched_powers(case: str, repeats: int) -> list[float]:
    """Return the power at 5% from rows and from a sketch."""
    group_flips.MOST_SUMS = 0
    rng = np.random.default_rng([6, list(POWERS).index(case)])
    n, predictions, truth = POWERS[case]
    found = []
    for k in range(repeats):
        p = predictions(rng.random(n))
        y, _, groups = shared_luck(rng, truth(p))
        sketch = tc.Sketch().update(y, p, groups=groups + 10**6 * k)
        tests = tc.calibration_test(y, p, groups=groups), tc.calibration_test(sketch)
        found.append([test.pvalue <= 0.05 for test in tests])
    return list(np.mean(found, axis=0))


def promises(design: str, repeats: int) -> list[float]:
    """Return the mean error of the shift that `assess` calls detectable, and the power against a shift like that.

    The shift has the same mean error; it need not be the same, because predictions stop at 1.
    """
    rng = np.random.default_rng([4, list(DESIGNS).index(design)])
    errors, truths = [], []
    for _ in range(SAMPLES):
        y, q, groups = DESIGNS[design](rng)
        errors.append(tc.assess(y, q, groups=groups).detectable.too_high)
        truths.append(q)
    error, truth = float(np.median(errors)), np.concatenate(truths)
    shift = find_root(lambda x: float(np.mean(np.minimum(truth + x, 1.0) - truth)) - error, 0.0, 1.0, xtol=1e-6)
    rejected = []
    for _ in range(repeats):
        y, q, groups = DESIGNS[design](rng)
        p = np.minimum(q + shift, 1.0)
        rejected.append(tc.calibration_test(y, p, groups=groups).pvalue <= 0.05)
    return [error, float(np.mean(rejected))]


def sketch_section(repeats: int, processes: int) -> list[str]:
    """Write the section on sketches."""
    with ProcessPoolExecutor(processes) as pool:
        in_sketches = list(pool.map(sketched, MANY_GROUPS, [repeats] * len(MANY_GROUPS)))
        from_sketches = list(pool.map(sketched_powers, POWERS, [repeats] * len(POWERS)))
    of_sketches = [
        [design, *(f"{x:.3f}" for x in row[:5]), f"{row[5]:.2f} ± {row[6]:.2f}"]
        for design, row in zip(MANY_GROUPS, in_sketches, strict=True)
    ]
    of_shapes = [[case, *(f"{x:.3f}" for x in row)] for case, row in zip(POWERS, from_sketches, strict=True)]
    return [
        SKETCHES.format(repeats),
        *table("| design | 5% | 1% | bias | bias, shift | error, shift | width |", of_sketches),
        SKETCHED_POWERS,
        *table("| predictions | rows | sketch |", of_shapes),
    ]


def page(repeats: int, processes: int) -> str:
    """Write the page."""
    designs, pairs = list(DESIGNS), [(design, error) for design in DESIGNS for error in ERRORS]
    cases = [(1000, 1, 0.0), (1000, 1, 0.03), (200, 5, 0.03), (50, 20, 0.03), (50, 20, 0.05)]
    with ProcessPoolExecutor(processes) as pool:
        found = list(pool.map(sizes, designs, [8 * repeats] * len(designs)))
        covered = list(pool.map(coverage, *zip(*pairs, strict=True), [repeats] * len(pairs)))
        power = list(pool.map(powers, *zip(*cases, strict=True), [repeats] * len(cases)))
        promised = list(pool.map(promises, designs[:6], [repeats] * 6))
    of_size = [
        [design, f"{row[0]:.0f}", *(f"{x:.4f}" for x in row[1:4]), *(f"{x:.2f}" for x in row[4:])]
        for design, row in zip(designs, found, strict=True)
    ]
    of_coverage = [[*pair, *(f"{x:.3f}" for x in row)] for pair, row in zip(pairs, covered, strict=True)]
    of_power = [
        [f"in {n:,} groups of {rows}", f"too high by {error:g}", *(f"{x:.3f}" for x in row)]
        for (n, rows, error), row in zip(cases, power, strict=True)
    ]
    of_promises = [[design, f"{x:.3f}", f"{y:.2f}"] for design, (x, y) in zip(designs, promised, strict=False)]
    parts = [
        INTRODUCTION.format(8 * repeats, *(math.sqrt(x * (1.0 - x) / 8 / repeats) for x in (0.05, 0.01)), repeats),
        *table("| design | effective groups | 5% | 1% | lower tail, 1% | no groups, 5% | no groups, 1% |", of_size),
        COVERAGE,
        *table("| design | predictions | bias | error | bias, no groups |", of_coverage),
        POWER,
        *table("| rows | predictions | with groups | without |", of_power),
        PROMISES,
        *table("| design | mean error | power |", of_promises),
        *sketch_section(repeats, processes),
        "",
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the page, or print it with fewer simulations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sketches", action="store_true", help="write only the section on sketches")
    parser.add_argument("--print", action="store_true", dest="show", help="print the page instead of writing it")
    arguments = parser.parse_args()
    if arguments.sketches:
        section = sketch_section(arguments.repeats, arguments.processes)
        others = PAGE.read_text(encoding="utf-8").partition(SKETCHES[:16])[0].rstrip("\n")
        text = "\n".join([others, *section, ""])
    else:
        text = page(arguments.repeats, arguments.processes)
    write_page(PAGE, text, show=arguments.show)


if __name__ == "__main__":
    main()
