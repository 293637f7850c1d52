"""Measure size, power and speed of the calibration tests, and write docs/benchmarks/inference.md: part of `make bench`.

Size is the rejection rate for calibrated predictions, power the rejection rate for miscalibrated ones. Speed is
relative to `atb` on the same rows if there are many, otherwise in seconds.
"""

import argparse
import math
import os
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
from run import machine, predictions, race, ratio
from scipy import optimize, special, stats

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference.classical_tests import _bins
from truthcal.inference.laws import brownian
from truthcal.inference.laws.quadratic_form import upper_quantile
from truthcal.inference.laws.redraw import Outcomes
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.measures.registry import TENTS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "inference.md"
LEVELS = (0.05, 0.01)
TESTS = ("information_atb", "multiscale_atb", "atb", "shifted_grid_ubse", "ks_ce", "kuiper_ce", "spiegelhalter")
TESTS += ("hosmer_lemeshow",)
ANY_MEASURE = ("smcal", "unbinned_ece")  # exact only
# Maximum size of an array of outcomes.
BLOCK = 2_000_000

Statistic = Callable[[np.ndarray], np.ndarray]

# --- size -------------------------------------------------------------------------------------------------------------

# Design -> rows for the exact tests, and for the asymptotic ones.
DESIGNS = {"uniform": (200, 1000), "Beta(2,2)": (200, 1000), "rare": (200, 10_250), "tied": (200, 1000)}
DESIGNS |= {"weighted": (200, 1000)}


def design(kind: str, n: int) -> Sample:
    """Return rows at the quantiles of a design. rare: Beta(1, 99); tied: 0, 0.1 ... 1; weights in [0.2, 3]."""
    grid = (np.arange(n) + 0.5) / n
    p = {
        "Beta(2,2)": lambda: stats.beta.ppf(grid, 2, 2),
        "rare": lambda: stats.beta.ppf(grid, 1, 99),
        "tied": lambda: np.arange(n) % 11 / 10,
    }.get(kind, lambda: grid)()
    w = np.random.default_rng(5).uniform(0.2, 3.0, n) if kind == "weighted" else None
    return Sample.of(np.zeros(n), p, w)


def statistic(test: str, sample: Sample) -> Statistic:
    """Return the statistic as a function of a block of outcomes; Spiegelhalter's is an absolute value (two-sided)."""
    outcomes = Outcomes(sample)
    if test == "spiegelhalter":
        p, w = sample.p, sample.w
        slope = (1.0 - 2.0 * outcomes.r) / math.sqrt(np.sum((w * (1.0 - 2.0 * p)) ** 2 * p * (1.0 - p)))
        return lambda positive: np.abs(outcomes.bias(positive) @ slope)
    if test in ("hosmer_lemeshow", "quantile"):
        starts, variance = _bins(sample, 10)
        some = variance > 0.0
        scale = variance[some] if test == "hosmer_lemeshow" else 1.0
        return lambda positive: np.sum(
            np.add.reduceat(outcomes.bias(positive), starts, axis=1)[:, some] ** 2 / scale, axis=1
        )
    if test.startswith("h="):
        kernel = TentKernel(np.array([float(test[2:])]), np.ones(1))
        before = kernel.before(outcomes.r)
        return lambda positive: kernel.sums(outcomes.r, outcomes.bias(positive), before)
    return outcomes.values(test)


def critical(test: str, sample: Sample, alpha: float) -> float:
    """Return the value of the statistic at which the asymptotic p-value is alpha."""
    if test in TENTS:
        return upper_quantile(alpha, TentKernel.of(test, sample.points()).null_scales(sample.points().merged()))
    if test in ("ks_ce", "kuiper_ce"):
        tail = {"ks_ce": brownian.maximum_tail, "kuiper_ce": brownian.range_tail}[test]
        unit = math.sqrt(sample.moments.wwv) / sample.weight
        return optimize.brentq(lambda x: tail(x) - alpha, 0.5, 9.0, xtol=1e-12) * unit
    if test == "spiegelhalter":
        return float(stats.norm.isf(alpha / 2))
    return float(stats.chi2.isf(alpha, np.count_nonzero(_bins(sample, 10)[1])))


def null_values(sample: Sample, tests: tuple[str, ...], count: int, seed: int) -> dict[str, np.ndarray]:
    """Return statistics of calibrated outcomes, drawn independently of the code under test."""
    outcomes, rng = Outcomes(sample), np.random.default_rng(seed)
    measure = {test: statistic(test, sample) for test in tests}
    found: dict[str, list[np.ndarray]] = {test: [] for test in tests}
    size = max(1, BLOCK // sample.n)
    for first in range(0, count, size):
        positive = outcomes.grouped(rng.random((min(size, count - first), sample.n)) < sample.p)
        for test in tests:
            found[test].append(measure[test](positive))
    return {test: np.concatenate(parts) for test, parts in found.items()}


def redrawn_values(sample: Sample, tests: tuple[str, ...], count: int, seed: int) -> dict[str, np.ndarray]:
    """Return statistics of outcomes drawn by the exact test."""
    outcomes, rng = Outcomes(sample), np.random.default_rng(seed)
    measure = {test: statistic(test, sample) for test in tests}
    positive = outcomes.draw(rng, count)
    return {test: measure[test](positive) for test in tests}


def exact_sizes(kind: str, count: int) -> dict[str, list[float]]:
    """Return rejection rates of (1 + #{redrawn >= observed}) / (1 + redraws); the redraws are shared."""
    sample, tests = design(kind, DESIGNS[kind][0]), (*TESTS, *ANY_MEASURE)
    observed, redrawn = null_values(sample, tests, count, 1), redrawn_values(sample, tests, count, 2)
    sizes = {}
    for test in tests:
        at_least = count - np.searchsorted(np.sort(redrawn[test]), observed[test] * (1.0 - 1e-9))
        sizes[test] = [float(np.mean((1 + at_least) / (1 + count) <= alpha)) for alpha in LEVELS]
    return sizes


def asymptotic_sizes(kind: str, count: int) -> dict[str, list[float]]:
    sample = design(kind, DESIGNS[kind][1])
    values = null_values(sample, TESTS, count, 3)
    return {test: [float(np.mean(values[test] >= critical(test, sample, alpha))) for alpha in LEVELS] for test in TESTS}


def bound_sizes(kind: str, count: int) -> dict[str, list[float]]:
    """Return rejection rates of the public function, which is cheap here."""
    n = 200
    sample, rng = design(kind, n), np.random.default_rng(4)
    sizes = {}
    for test in ("information_atb", "multiscale_atb", "atb"):
        pvalues = [
            tc.calibration_test(
                rng.random(n) < sample.p,
                sample.p,
                measure=test,
                method="bound",
                sample_weight=sample.w if sample.weighted else None,
            ).pvalue
            for _ in range(count)
        ]
        sizes[test] = [float(np.mean(np.array(pvalues) <= alpha)) for alpha in LEVELS]
    return sizes


def size_lines(scale: int) -> list[str]:
    """Return one table row per test and method: sizes relative to the nominal level, 5% / 1%."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind in DESIGNS:
        ways = {
            "exact": exact_sizes(kind, 1000 * scale),
            "asymptotic": asymptotic_sizes(kind, 1000 * scale),
            "bound": bound_sizes(kind, 20 * scale),
        }
        for method, sizes in ways.items():
            for test, rates in sizes.items():
                cell = " / ".join(f"{rate / alpha:.2f}" for rate, alpha in zip(rates, LEVELS, strict=True))
                found.setdefault((test, method), []).append(cell)
    return [f"| `{test}` | {method} | {' | '.join(cells)} |" for (test, method), cells in found.items()]


# --- power ------------------------------------------------------------------------------------------------------------

ROWS = 1000
COLUMNS = ("atb", "atb_l1", "multiscale_atb", "ks_ce", "kuiper_ce", "spiegelhalter", "hosmer_lemeshow", "smcal")
COLUMNS += ("quantile", "h=0.5", "h=0.25", "h=0.1")
# Description, true probability at prediction p, and the powers measured before (None: not measured).
_ = None
ALTERNATIVES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], list[float | None]]] = {
    "shift +.03": (
        "p + 0.03, at most 1",
        lambda p: np.minimum(p + 0.03, 1.0),
        [0.61, 0.63, 0.45, 0.56, 0.51, 0.07, _, 0.65, 0.25, 0.52, 0.41, 0.31],
    ),
    "slope .85": (
        "1/2 + 0.85 (p - 1/2)",
        lambda p: 0.5 + 0.85 * (p - 0.5),
        [0.54, 0.61, 0.71, 0.38, 0.43, 0.98, _, 0.15, 0.61, 0.74, 0.73, 0.68],
    ),
    "odds 1.3": (
        "log-odds 1.3 times those of p: underconfident (the earlier table says overconfident, which has other powers)",
        lambda p: special.expit(1.3 * special.logit(p)),
        [0.35, 0.37, 0.61, 0.31, 0.38, 0.97, _, 0.09, 0.46, 0.75, 0.73, 0.57],
    ),
    "sine, 3 periods": (
        "p + 0.1 sin(6 pi p), within [0, 1]",
        lambda p: np.clip(p + 0.1 * np.sin(6.0 * np.pi * p), 0.0, 1.0),
        [0.09, 0.09, 0.85, 0.11, 0.18, 0.45, _, 0.07, 0.92, 0.18, 0.42, 0.97],
    ),
    "bump +.2 on [.4, .5]": (
        "p + 0.2 for 0.4 <= p <= 0.5, else p",
        lambda p: p + 0.2 * ((p >= 0.4) & (p <= 0.5)),
        [0.41, 0.37, 0.70, 0.39, 0.51, 0.06, _, 0.33, 0.85, 0.48, 0.62, 0.80],
    ),
}
# Assumed number of draws behind the critical values and the powers of the earlier table.
EARLIER_DRAWS = 1000


def powers(designs: int, null_draws: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rejection rates at 5% (alternatives x tests, averaged over predictions) and their slope in alpha."""
    found = np.zeros((3, designs, len(ALTERNATIVES), len(COLUMNS)))
    for d in range(designs):
        rng = np.random.default_rng([7, d])
        sample = Sample.of(np.zeros(ROWS), rng.random(ROWS))
        null = Outcomes(sample).draw(rng, null_draws)
        seen = [Outcomes(sample, truth(sample.p)).draw(rng, draws) for _, truth, _ in ALTERNATIVES.values()]
        for k, test in enumerate(COLUMNS):
            measure = statistic(test, sample)
            limits = np.quantile(measure(null), [0.95, 0.96, 0.94])
            for j, positive in enumerate(seen):
                value = measure(positive)
                found[:, d, j, k] = [np.mean(value > limit) for limit in limits]
    mean = found.mean(axis=1)
    return mean[0], (mean[2] - mean[1]) / 0.02


def power_lines(quick: bool) -> tuple[list[str], list[str], int]:
    """Return the power table, its comparison with the earlier table, and the number of draws per power."""
    designs, null_draws, draws = (2, 500, 200) if quick else (20, 4000, 1000)
    rate, slope = powers(designs, null_draws, draws)
    lines, errors = [], []
    for (name, (_words, _truth, earlier)), found, steep in zip(ALTERNATIVES.items(), rate, slope, strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in found) + " |")
        cells = []
        for before, now, rise in zip(earlier, found, steep, strict=True):
            if before is None:
                cells.append("")
                continue
            level = 0.05 * 0.95 / EARLIER_DRAWS  # variance of the simulated critical value
            error = math.sqrt(now * (1.0 - now) / EARLIER_DRAWS + rise**2 * level + 0.005**2 / 3.0)  # and rounding
            cells.append(f"{before:.2f} ({(now - before) / error:+.1f})")
        errors.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines, errors, designs * draws


# --- speed ------------------------------------------------------------------------------------------------------------


def speed_lines(rounds: int, quick: bool) -> list[str]:
    n = 1_200_000 if quick else 10_000_000
    lines = []
    for shape in ("uniform", "rare", "ties"):
        p = predictions(shape, n, np.float64)
        y = np.random.default_rng(1).random(n) < p
        sketch = tc.Sketch(1 << 14).update(y, p)
        times = race(
            {
                "atb": lambda y=y, p=p: tc.atb(y, p),
                "default": lambda y=y, p=p: tc.calibration_test(y, p),
                "with atb": lambda y=y, p=p: tc.calibration_test(y, p, measure="atb"),
                "sketch": lambda sketch=sketch: tc.calibration_test(sketch),
                "linear": lambda y=y, p=p: tc.linear_time_test(y, p),
            },
            rounds,
            1,
        )
        lines += [
            f"| `calibration_test` / `atb`, {n:,} rows, {shape} (target: 2.5) | {ratio(times, 'default', 'atb'):.2f} |",
            f'| `calibration_test(measure="atb")` / `atb`, the same rows | {ratio(times, "with atb", "atb"):.2f} |',
            f"| `linear_time_test` / `atb`, the same rows | {ratio(times, 'linear', 'atb'):.2f} |",
            f"| `calibration_test` on a sketch of them (target: 0.2 s) | {statistics.median(times['sketch']):.3f} s |",
        ]
    return lines + exact_lines(rounds)


def exact_lines(rounds: int) -> list[str]:
    """Time exact tests of miscalibrated predictions, which need all 9,999 redraws."""
    lines = []
    for shape in ("uniform", "rare", "ties"):
        p = predictions(shape, 10_000, np.float64)
        y = np.random.default_rng(1).random(10_000) < 1.5 * p / (1.0 + 0.5 * p)
        for measure in ("information_atb", "smcal"):
            call = {
                "exact": lambda y=y, p=p, measure=measure: tc.calibration_test(
                    y, p, measure=measure, method="exact", rng=0
                )
            }
            drawn = call["exact"]().n_resamples
            seconds = statistics.median(race(call, max(1, rounds // 3), 1)["exact"])
            lines.append(f"| exact, `{measure}`, 10,000 rows, {shape}, {drawn:,} redraws | {seconds:.1f} s |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a fast smoke run that writes nothing")
    arguments = parser.parse_args()
    circumstances = f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    if blas := os.environ.get("OPENBLAS_NUM_THREADS"):
        circumstances += f" OPENBLAS_NUM_THREADS={blas}."
    speed = speed_lines(2 if arguments.quick else arguments.rounds, arguments.quick)
    scale = 2 if arguments.quick else 100
    lines, errors, draws = power_lines(arguments.quick)
    page = TEMPLATE.format(
        machine=machine(),
        draws=f"{1000 * scale:,}",
        bound_draws=f"{20 * scale:,}",
        designs=" | ".join(DESIGNS),
        size_rule="---|---|" + "---:|" * len(DESIGNS),
        sizes="\n".join(size_lines(scale)),
        rows=f"{ROWS:,}",
        power_draws=f"{draws:,}",
        earlier_draws=f"{EARLIER_DRAWS:,}",
        columns=" | ".join(f"`{column}`" for column in COLUMNS),
        power_rule="---|" + "---:|" * len(COLUMNS),
        truths="\n".join(f"- {name}: {words}" for name, (words, _truth, _before) in ALTERNATIVES.items()),
        powers="\n".join(lines),
        errors="\n".join(errors),
        speed="\n".join(speed),
        circumstances=circumstances,
    )
    print(page)
    if not arguments.quick:
        PAGE.write_text(page)


TEMPLATE = """\
# Benchmarks of the calibration tests

Written by `make bench`; do not edit. {machine}.

## Size

The rejection rate for calibrated predictions divided by the nominal level, at 5% / at 1%. The ideal is 1.00. The
target is 0.80 to 1.20, or less for "bound". Each cell has {draws} simulated data sets ({bound_draws} for "bound"), so
the standard error is 0.014 / 0.03 (1.4 times that for "exact", which uses the same number of redraws). "exact" has
200 rows. "asymptotic" has 1,000 rows, or 10,250 in the rare design, where sum p(1 - p) is then 100, the smallest
value that `method="auto"` accepts. rare: Beta(1, 99); tied: 0, 0.1 ... 1; weighted: uniform, with weights in [0.2,
3].

The Brownian limits (`ks_ce`, `kuiper_ce`) are conservative with ties. The chi-square limit of `hosmer_lemeshow` needs
five expected positives in every bin, but the rare design has only half of one in its first bin. In both cases
`method="auto"` redraws outcomes instead.

| test | method | {designs} |
|{size_rule}
{sizes}

## Power

Rejection rates at level 5% for {rows} rows with uniform predictions. Each cell has {power_draws} data sets on 20
draws of the predictions. Critical values come from 4,000 calibrated sets of outcomes per draw. `quantile`: squared
bias in 10 bins of equal count; h: a shifted grid of that width. The true probability of a row with prediction p is:

{truths}

| alternative | {columns} |
|{power_rule}
{powers}

The next table shows the same powers as measured before truthcal was written and, in parentheses, how much higher they
are now, in standard errors of the earlier ones (assuming that these used {earlier_draws} draws, also for their
critical values). The earlier table did not fully define its alternatives; we used the closest of several
interpretations.

| alternative | {columns} |
|{power_rule}
{errors}

## Speed

Medians over rounds. Ratios are relative to `atb` on the same rows in the same round. {circumstances}

| quantity | measured |
|---|---:|
{speed}
"""


if __name__ == "__main__":
    main()
