"""Simulate tests and intervals of many classes, and write docs/benchmarks/multiclass.md: part of `make bench`.

A design draws predictions. True probabilities are the predictions, or a function of them. Sizes and powers of the
asymptotic test are those given the predictions: its distribution is computed once for each set of predictions.

On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait for a core make small matrices ten times as slow.
"""

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pages import table, write_page

import truthcal as tc
from truthcal.core.class_rows import ClassRows
from truthcal.inference.laws import squared_length
from truthcal.inference.multiclass.calibration_test import information_of
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.detectable import detectable_slopes
from truthcal.inference.multiclass.null_law import null_law_of
from truthcal.inference.multiclass.slope import tempered

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "multiclass.md"
Array = np.ndarray
# Rows from which true errors are computed, and bins of each class.
POPULATION, BINS = 200_000, 400
EXACT_DRAWS = 199

INTRODUCTION = """# Many classes

Written by `benchmarks/multiclass.py`; do not edit. {0:,} simulations of each size for 3 and 10 classes (standard errors
{1:.4f} at 5% and {2:.4f} at 1%), {3:,} for 100 classes ({4:.4f} and {5:.4f}), and {6:,} of each coverage and power. The
targets: a size between 0.8 and 1.4 times the level, and a coverage of 95% intervals between 0.93 and 0.97.

Predictions: Dirichlet(1) is uniform; with Dirichlet(0.3) a few classes have most of the probability; "peaked" has one
class above 0.9 in most rows; "rare" has one class with a probability of 1 in 50 on average, the others uniform.

## Size of the test

Share of calibrated samples that are rejected. `calibration_test` chooses the method in the column "auto"; exact tests
have {7} redraws here, and half as many simulations."""
GROUPS = """
## Size with groups

Rows of a group share their luck in half of the cases. "No groups": the test of independent rows."""
POWER = """
## Power

Share rejected at 5%, and the share in which the smallest p-value of the classes, each against the rest and adjusted by
Holm, is below 5%. Slope: true probabilities are proportional to this power of the predictions. "Too high": the
first class happens 1.5 times less often than predicted. "Swapped": in 3 of 10 rows, the first two classes are
exchanged."""
DETECTABLE = """
## Detectable slopes

Slopes that `assess` calls detectable with 80% power, and the power of the test at them."""
COVERAGE = """
## Coverage of 95% intervals

Of `error_size`, for the true error (`error`: root of half of the sum over classes of E(p - E[y | p])^2), and of the
difference of vector ATBs and of Brier scores in `compare`, with a forecaster whose slope is 1.2. If the error is 0,
its interval can miss on one side only, so that the target is 0.975 or more."""
COST = """
## Time and memory

On all cores of a busy machine, `np.argsort` on one. Time divided by that of `np.argsort` of all columns in the same
run, and peak memory of the process."""


def peaked(rng: np.random.Generator, n: int, k: int) -> Array:
    """Draw rows with one class above 0.9 in most of them."""
    rest = rng.dirichlet(np.ones(k), n) * rng.beta(0.5, 6.0, n)[:, None]
    rest[np.arange(n), rng.integers(0, k, n)] += 1.0 - rest.sum(axis=1)
    return rest


def rare(rng: np.random.Generator, n: int, k: int) -> Array:
    """Draw rows whose first class has the probability 1/50 on average, the others uniform."""
    first = rng.beta(0.5, 24.5, n)
    return np.column_stack([first, (1.0 - first)[:, None] * rng.dirichlet(np.ones(k - 1), n)])


DESIGNS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "Dirichlet(1)": lambda rng, n, k: rng.dirichlet(np.ones(k), n),
    "Dirichlet(0.3)": lambda rng, n, k: rng.dirichlet(np.full(k, 0.3), n),
    "peaked": peaked,
    "rare": rare,
}


def too_high(p: Array) -> Array:
    """Return true probabilities if the first class is predicted 1.5 times too often."""
    q = p.copy()
    q[:, 0] /= 1.5
    q[:, 1:] *= (1.0 - q[:, :1]) / np.maximum(1.0 - p[:, :1], 1e-300)
    return q


def swapped(p: Array) -> Array:
    """Return true probabilities if the first two classes are exchanged in 3 of 10 rows."""
    q = p.copy()
    q[:, 0], q[:, 1] = 0.7 * p[:, 0] + 0.3 * p[:, 1], 0.3 * p[:, 0] + 0.7 * p[:, 1]
    return q


# True probabilities as a function of the predictions.
TRUTHS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda p: p,
    "slope 1.3": lambda p: tempered(p, 1.3),
    "slope 0.8": lambda p: tempered(p, 0.8),
    "too high": too_high,
    "swapped": swapped,
}


def draw(rng: np.random.Generator, q: Array) -> Array:
    """Draw a class for each row."""
    u = rng.random((len(q), 1)) * q.sum(axis=1, keepdims=True)
    return np.minimum((u >= np.cumsum(q, axis=1)).sum(axis=1), q.shape[1] - 1)


def rows_of(y: Array, p: Array) -> ClassRows:
    """Rows with classes from 0."""
    return ClassRows(p, y, None, tuple(range(p.shape[1])))


def asymptotic(rng: np.random.Generator, cells: ClassCells, q: Array, repeats: int) -> list[float]:
    """Return p-values of the asymptotic test for classes drawn from q."""
    law = null_law_of(cells)
    return [law.tails(float(cells.statistic(cells.errors_of(draw(rng, q))))).greater for _ in range(repeats)]


def shares(pvalues: list[float]) -> list[float]:
    """Return the shares rejected at 5% and 1%."""
    return [float(np.mean(np.array(pvalues) <= level)) for level in (0.05, 0.01)]


def sizes(design: str, k: int, n: int, repeats: int) -> list[float]:
    """Return the information, and sizes at 5% and 1% of the asymptotic and of the exact test."""
    rng = np.random.default_rng([1, list(DESIGNS).index(design), k, n])
    sets = 1 + (repeats >= 200) if k == 100 else 5
    found, exact, information = [], [], 0.0
    for _ in range(sets):
        p = DESIGNS[design](rng, n, k)
        rows = rows_of(draw(rng, p), p)
        information += information_of(rows) / sets
        found += asymptotic(rng, ClassCells.of(rows), p, repeats // sets)
    if k < 100 and n <= 1000:
        for _ in range(repeats // 2):
            p = DESIGNS[design](rng, n, k)
            y = draw(rng, p)
            options = {"method": "exact", "n_resamples": EXACT_DRAWS, "rng": rng, "labels": range(k)}
            exact.append(tc.calibration_test(y, p, **options).pvalue)
    return [information, *shares(found), *(shares(exact) if exact else [math.nan] * 2)]


def grouped_sizes(k: int, n_groups: int, repeats: int) -> list[float]:
    """Return sizes at 5% and 1% with groups of 5 rows, and without groups."""
    rng, size, found = np.random.default_rng([2, k, n_groups]), 5, []
    groups = np.repeat(np.arange(n_groups), size)
    for _ in range(repeats):
        p = np.repeat(rng.dirichlet(np.ones(k), n_groups), size, axis=0)
        shared = rng.random(len(p)) < 0.5
        luck = np.where(shared, rng.random(n_groups)[groups], rng.random(len(p)))[:, None]
        y = np.minimum((luck >= np.cumsum(p, axis=1)).sum(axis=1), k - 1)
        both = (
            tc.calibration_test(y, p, groups=groups, labels=range(k)),
            tc.calibration_test(y, p, labels=range(k), n_resamples=EXACT_DRAWS),
        )
        found.append([test.pvalue for test in both])
    return [*shares([row[0] for row in found]), *shares([row[1] for row in found])]


def powers(design: str, k: int, n: int, truth: str, repeats: int) -> list[float]:
    """Return the power at 5% of the test of all classes, and of the smallest adjusted p-value of the classes."""
    rng = np.random.default_rng([3, list(DESIGNS).index(design), k, n, list(TRUTHS).index(truth)])
    p = DESIGNS[design](rng, n, k)
    q = TRUTHS[truth](p)
    found = asymptotic(rng, ClassCells.of(rows_of(draw(rng, p), p)), q, repeats)
    alone = []
    for _ in range(min(repeats, 30) if k == 100 else repeats):
        y = draw(rng, q)
        tests = [tc.calibration_test(y == j, p[:, j], method="asymptotic").pvalue for j in range(k)]
        alone.append(k * min(tests))
    return [shares(found)[0], shares(alone)[0]]


def detected(design: str, k: int, n: int, repeats: int) -> list[float]:
    """Return the two slopes that would be detected, and the power at each."""
    rng = np.random.default_rng([4, list(DESIGNS).index(design), k, n])
    p = DESIGNS[design](rng, n, k)
    cells = ClassCells.of(rows_of(draw(rng, p), p))
    slopes = detectable_slopes(cells, null_law_of(cells), 0.05, 0.8)
    return [*slopes, *(shares(asymptotic(rng, cells, tempered(p, slope), repeats))[0] for slope in slopes)]


def true_error(p: Array, q: Array) -> float:
    """Return the true size of the error, from fine bins of a large sample."""
    total = 0.0
    for k in range(p.shape[1]):
        order = np.argsort(p[:, k])
        error = (p[order, k] - q[order, k]).reshape(BINS, -1).mean(axis=1)
        total += float(np.mean(error**2))
    return math.sqrt(total / 2.0)


def population(p: Array, q: Array) -> tuple[float, float]:
    """Return the vector ATB of different rows of a large sample, and the mean of |p - y|^2."""
    c, total = p - q, 0.0
    for k in range(p.shape[1]):
        order = np.argsort(-p[:, k])
        sums, x = np.cumsum(c[order], axis=0), np.append(p[order, k], 0.0)
        total += float(np.sum(-np.diff(x) * np.sum(sums**2, axis=1)))
    n, own = len(p), float(np.sum(c**2))
    return (total - own) / n / (n - 1), float(np.mean(np.sum(c**2, axis=1) + 1.0 - np.sum(q**2, axis=1)))


def coverage(design: str, k: int, n: int, truth: str, repeats: int) -> list[float]:
    """Return the true error, the coverage of its interval, and those of both differences of `compare`."""
    rng = np.random.default_rng([5, list(DESIGNS).index(design), k, n, list(TRUTHS).index(truth)])
    p = DESIGNS[design](rng, POPULATION, k)
    q = TRUTHS[truth](p)
    error = true_error(p, q)
    a, b = population(p, q), population(tempered(p, 1.2), q)
    targets = (1.0 - 1.0 / n) * (a[0] - b[0]) + (a[1] - b[1]) / n, (a[1] - b[1]) / 2.0
    crossing, hits = squared_length.interval_end, np.zeros(3)
    for _ in range(repeats):
        p = DESIGNS[design](rng, n, k)
        y = draw(rng, TRUTHS[truth](p))
        other = tc.compare(y, p, tempered(p, 1.2), labels=range(k))
        hits[1] += other.low <= targets[0] <= other.high
        hits[2] += other.brier_low <= targets[1] <= other.brier_high
        # Whether an interval of the error contains the truth is decided by its tail probabilities there.
        squared_length.interval_end = lambda rising: 0.0 if rising(error) >= 0.0 else 1.0
        try:
            hits[0] += error in tc.error_size(y, p, labels=range(k))
        finally:
            squared_length.interval_end = crossing
    return [error, *(hits / repeats)]


COSTS = ("argsort", "multiclass_atb", "calibration_test", "assess")


def cost(name: str, n: int, k: int) -> tuple[float, float]:
    """Return seconds and peak memory in MB of a call, in a process of its own."""
    command = [sys.executable, __file__, "--cost", name, str(n), str(k)]
    seconds, memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(memory)


def print_cost(name: str, n: int, k: int) -> None:
    """Print seconds and peak memory of a call; kernels are compiled before."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.3), n)
    y = draw(rng, p)

    def call(y: Array, p: Array) -> object:
        if name == "argsort":
            return [np.argsort(column) for column in np.ascontiguousarray(p.T)]
        return getattr(tc, name)(y, p, labels=range(k))

    call(y[:20_000], p[:20_000])
    start = time.perf_counter()
    call(y, p)
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)


def number(x: float, digits: int = 3) -> str:
    """Format a share; a dash for none."""
    return "-" if math.isnan(x) else f"{x:.{digits}f}"


def cost_section() -> list[str]:
    """Measure time and memory, one call after another."""
    lines = []
    for n, k in ((1_000_000, 10), (100_000, 100)):
        found = {name: cost(name, n, k) for name in COSTS}
        of_sort = found["argsort"][0]
        for name, (seconds, memory) in found.items():
            lines.append([f"{n:,} x {k}", f"`{name}`", f"{seconds:.2f}", f"{seconds / of_sort:.1f}", f"{memory:,.0f}"])
    return [COST, *table("| rows x classes | call | seconds | / argsort | peak MB |", lines)]


SLOPES = [("Dirichlet(1)", 3, 500), ("Dirichlet(0.3)", 10, 1000), ("peaked", 10, 2000), ("rare", 10, 2000)]


def slope_section(repeats: int, processes: int) -> list[str]:
    """Write the section on detectable slopes."""
    with ProcessPoolExecutor(processes) as pool:
        found = list(pool.map(detected, *zip(*SLOPES, strict=True), [repeats] * len(SLOPES)))
    lines = [
        [f"{k}", f"{n:,}", design, *(number(x, 2) for x in row)]
        for (design, k, n), row in zip(SLOPES, found, strict=True)
    ]
    return [DETECTABLE, *table("| classes | rows | predictions | below | above | power below | above |", lines)]


def page(repeats: int, processes: int) -> str:
    """Write the page."""
    few, many = max(repeats // 5, 40), 5 * repeats
    of_size = [(design, k, n) for k in (3, 10, 100) for n in (200, 1000, 5000) for design in DESIGNS]
    counts = [few * 3 // 2 if k == 100 else many for _, k, _ in of_size]
    of_groups = [(3, 100), (3, 2000), (10, 200)]
    errors = [truth for truth in TRUTHS if truth != "calibrated"]
    settings = (("Dirichlet(1)", 3, 1000), ("Dirichlet(0.3)", 10, 1000), ("peaked", 10, 5000), ("rare", 10, 2000))
    of_power = [(*setting, truth) for setting in settings for truth in errors]
    of_power += [("Dirichlet(0.3)", 100, 5000, truth) for truth in ("slope 1.3", "too high")]
    covers = [("Dirichlet(1)", 3, 500), ("Dirichlet(1)", 3, 3000), ("Dirichlet(0.3)", 10, 2000), ("rare", 10, 2000)]
    covers = [(*setting, truth) for setting in covers for truth in ("calibrated", "slope 0.8", "too high")]
    with ProcessPoolExecutor(processes) as pool:
        found = list(pool.map(sizes, *zip(*of_size, strict=True), counts))
        grouped = list(pool.map(grouped_sizes, *zip(*of_groups, strict=True), [repeats] * len(of_groups)))
        power = list(pool.map(powers, *zip(*of_power, strict=True), [repeats] * len(of_power)))
        covered = list(pool.map(coverage, *zip(*covers, strict=True), [repeats] * len(covers)))
    lines = []
    for (design, k, n), row in zip(of_size, found, strict=True):
        auto = "exact" if row[0] < max(100.0, 10.0 * k) else "asymptotic"
        lines.append([f"{k}", f"{n:,}", design, f"{row[0]:,.0f}", auto, *(number(x) for x in row[1:])])
    errors_at = [math.sqrt(x * (1.0 - x) / r) for r in (many, few * 3 // 2) for x in (0.05, 0.01)]
    start = INTRODUCTION.format(many, *errors_at[:2], few * 3 // 2, *errors_at[2:], repeats, EXACT_DRAWS)
    header = "| classes | rows | predictions | information | auto | asymptotic, 5% | 1% | exact, 5% | 1% |"
    parts = [start, *table(header, lines)]
    lines = [[f"{k}", f"{n:,} groups of 5", *map(number, row)] for (k, n), row in zip(of_groups, grouped, strict=True)]
    parts += [GROUPS, *table("| classes | rows | 5% | 1% | no groups, 5% | 1% |", lines)]
    lines = [
        [f"{k}", f"{n:,}", design, truth, *map(number, row)]
        for (design, k, n, truth), row in zip(of_power, power, strict=True)
    ]
    parts += [POWER, *table("| classes | rows | predictions | truth | all classes | smallest of classes |", lines)]
    parts += slope_section(many, processes)
    lines = [
        [f"{k}", f"{n:,}", design, truth, *map(number, row)]
        for (design, k, n, truth), row in zip(covers, covered, strict=True)
    ]
    header = "| classes | rows | predictions | truth | error | coverage | vector ATB | Brier score |"
    return "\n".join([*parts, COVERAGE, *table(header, lines), *cost_section(), ""])


def main() -> None:
    """Write the page, or print it with fewer simulations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--print", action="store_true", dest="show", help="print the page instead of writing it")
    parser.add_argument("--slopes", action="store_true", help="write only the section on detectable slopes")
    parser.add_argument("--cost", nargs=3, metavar=("CALL", "N", "K"), help="measure one call only")
    arguments = parser.parse_args()
    if arguments.cost:
        print_cost(arguments.cost[0], int(arguments.cost[1]), int(arguments.cost[2]))
        return
    if arguments.slopes:
        before, _, after = PAGE.read_text(encoding="utf-8").partition(DETECTABLE)
        rest = after[after.index(COVERAGE) :]
        text = "\n".join([before[:-1], *slope_section(5 * arguments.repeats, arguments.processes)]) + "\n" + rest
    else:
        text = page(arguments.repeats, arguments.processes)
    write_page(PAGE, text, show=arguments.show)


if __name__ == "__main__":
    main()
