"""Measure power and size of the default test from common to rare events, and write docs/benchmarks/power.md.

Power is the rejection rate for miscalibrated predictions, beside tests that people use. Size is the rejection rate for
calibrated ones, relative to the level, where the p-value is asymptotic; redraws are exact by construction.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from inference import statistic
from scipy import optimize, special, stats
from sentences import line, with_slope

import truthcal as tc
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.inference.calibration_test import ENOUGH_INFORMATION, tent_statistic
from truthcal.inference.laws.redraw import Outcomes, TiedOutcomes

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "power.md"
DEFAULT = "information_atb"
OTHERS = ("multiscale_atb", "atb", "ks_ce", "kuiper_ce", "spiegelhalter", "hosmer_lemeshow", "cox")
LEVELS = (0.05, 0.01)
# Maximum size of an array of outcomes.
BLOCK = 4_000_000

# Redraws behind a critical value, and draws of the weights for each design with weights.
REDRAWS, WEIGHTED_DESIGNS = 20_000, 20

Array = np.ndarray
Rng = np.random.Generator


# --- power ------------------------------------------------------------------------------------------------------------


def grid(n: int) -> Array:
    """Return the middles of n equal parts of [0, 1]."""
    return (np.arange(n) + 0.5) / n


def log_uniform(n: int, low: float, high: float) -> Array:
    return low * (high / low) ** grid(n)


PREDICTIONS: dict[str, Array] = {
    "uniform": grid(1000),
    "Beta(1, 49)": stats.beta.ppf(grid(5000), 1, 49),
    "Beta(1, 199)": stats.beta.ppf(grid(20_000), 1, 199),
    "log-uniform, 0.0001 to 0.01": log_uniform(40_000, 1e-4, 1e-2),
    "bimodal, Beta(0.4, 0.4)": stats.beta.ppf(grid(1000), 0.4, 0.4),
    "11 values": np.repeat([0.01, *(np.arange(1, 10) / 10), 0.99], 100),
}


def slope(power: float) -> Callable[[Array], Array]:
    """Truth whose log-odds have this slope in those of the predictions, and the same mean."""
    return lambda p: with_slope(p, power, float(np.mean(p)))


ALTERNATIVES: dict[str, dict[str, Callable[[Array], Array]]] = {
    "uniform": {
        "p - 0.04": lambda p: np.maximum(p - 0.04, 0.0),
        "slope 0.75": slope(0.75),
        "slope 1.35": slope(1.35),
        "p + 0.1 sin(6 pi p)": lambda p: np.clip(p + 0.1 * np.sin(6.0 * np.pi * p), 0.0, 1.0),
        "p + 0.16 between 0.4 and 0.5": lambda p: p + 0.16 * ((p >= 0.4) & (p < 0.5)),
    },
    "Beta(1, 49)": {
        "p / 1.4": lambda p: p / 1.4,
        "slope 0.6": slope(0.6),
        "half of p above 0.05": lambda p: np.where(p > 0.05, p / 2.0, p),
    },
    "Beta(1, 199)": {"p / 1.4": lambda p: p / 1.4, "slope 0.6": slope(0.6)},
    "log-uniform, 0.0001 to 0.01": {
        "mean + 0.65 (p - mean)": lambda p: np.mean(p) + 0.65 * (p - np.mean(p)),
        "slope 0.7": slope(0.7),
        "p / 1.4": lambda p: p / 1.4,
    },
    "bimodal, Beta(0.4, 0.4)": {
        "slope 0.7": slope(0.7),
        "p - 0.03": lambda p: np.maximum(p - 0.03, 0.0),
        "p + 0.1 between 0.3 and 0.7": lambda p: p + 0.1 * ((p > 0.3) & (p < 0.7)),
    },
    "11 values": {
        "slope 0.75": slope(0.75),
        "0.45 at 0.3": lambda p: np.where(p == 0.3, 0.45, p),
        "p + 0.06, p - 0.06 in turn": lambda p: np.clip(p + 0.06 * (1 - 2 * (np.rint(10 * p) % 2)), 0.005, 0.995),
    },
}


def cox_ratios(sample: Sample, positive: Array) -> Array:
    """Return the likelihood ratio of a regression line of the log-odds (Cox), for each row of outcomes without ties."""
    x, p = special.logit(sample.p), sample.p
    line_of = np.tile([0.0, 1.0], (len(positive), 1))
    for _ in range(8):
        q = special.expit(line_of[:, :1] + line_of[:, 1:] * x)
        residual, v = positive - q, q * (1.0 - q)
        a, b, c = v.sum(axis=1), v @ x, v @ x**2
        first, second = residual.sum(axis=1), residual @ x
        step = np.stack([c * first - b * second, a * second - b * first], axis=1) / (a * c - b * b + 1e-12)[:, None]
        line_of += np.clip(step, -2.0, 2.0)
    q = np.clip(special.expit(line_of[:, :1] + line_of[:, 1:] * x), 1e-15, 1.0 - 1e-15)
    gain = positive * np.log(q / p) + (1.0 - positive) * np.log((1.0 - q) / (1.0 - p))
    return 2.0 * gain.sum(axis=1)


def blocks_of_outcomes(p: Array, truth: Array, count: int, rng: Rng) -> Iterator[Array]:
    """Draw outcomes of all rows, some at a time."""
    size = max(1, BLOCK // len(p))
    for first in range(0, count, size):
        yield (rng.random((min(size, count - first), len(p))) < truth).astype(np.float64)


def statistics_of(p: Array, truth: Array, count: int, rng: Rng) -> dict[str, Array]:
    """Draw outcomes, and return each test's statistic of them."""
    sample = Sample.of(np.zeros(len(p)), p)
    outcomes = Outcomes(sample)
    measures = {test: statistic(test, sample) for test in (DEFAULT, *OTHERS) if test != "cox"}
    found: dict[str, list[Array]] = {test: [] for test in (DEFAULT, *OTHERS)}
    for y in blocks_of_outcomes(p, truth, count, rng):
        positive = outcomes.grouped(y > 0.0)
        for test, measure in measures.items():
            found[test].append(measure(positive))
        found["cox"].append(cox_ratios(sample, y))
    return {test: np.concatenate(parts) for test, parts in found.items()}


def power_lines(null_draws: int, draws: int) -> list[str]:
    """Return one table row per alternative."""
    lines = []
    for name, truths in ALTERNATIVES.items():
        p, rng = PREDICTIONS[name], np.random.default_rng(len(name))
        null = statistics_of(p, p, null_draws, rng)
        limits = {test: np.quantile(values, 0.95) for test, values in null.items()}
        for words, truth in truths.items():
            found = statistics_of(p, truth(p), draws, rng)
            power = {test: float(np.mean(values > limits[test])) for test, values in found.items()}
            gap = power[DEFAULT] - max(power.values())
            lines.append(
                line(f"{name}, {len(p):,}", words, *(f"{value:.2f}" for value in power.values()), f"{gap:.2f}")
            )
    return lines


# --- size -------------------------------------------------------------------------------------------------------------


Design = tuple[Array, Array | None]


def pareto(n: int, index: float, rng: Rng) -> Array:
    return rng.pareto(index, n) + 1.0


# Predictions and weights. Weights are drawn anew for each of several data sets, since a few of them decide.
DESIGNS: dict[str, Callable[[Rng], Design]] = {
    "uniform, 2,000": lambda rng: (rng.random(2000), None),
    "Beta(1, 49), 20,000": lambda rng: (rng.beta(1, 49, 20_000), None),
    "Beta(1, 199), 40,000": lambda rng: (rng.beta(1, 199, 40_000), None),
    "bimodal, 2,000": lambda rng: (rng.beta(0.4, 0.4, 2000), None),
    "11 values, 2,000": lambda rng: (rng.integers(0, 11, 2000) / 10, None),
    "uniform, 2,000, weights 0.2 to 3": lambda rng: (rng.random(2000), rng.uniform(0.2, 3.0, 2000)),
    "uniform, 2,000, weights Pareto(1.1)": lambda rng: (rng.random(2000), pareto(2000, 1.1, rng)),
    "Beta(1, 49), 20,000, weights Pareto(1.5)": lambda rng: (rng.beta(1, 49, 20_000), pareto(20_000, 1.5, rng)),
    "constant 0.02, 1,000, weights Pareto(1.1)": lambda rng: (np.full(1000, 0.02), pareto(1000, 1.1, rng)),
    "constant 0.02, 20,000, weights Pareto(1.1)": lambda rng: (np.full(20_000, 0.02), pareto(20_000, 1.1, rng)),
    "11 values, 2,000, weights Pareto(1.5)": lambda rng: (rng.integers(0, 11, 2000) / 10, pareto(2000, 1.5, rng)),
}


def critical(points: Points, level: float) -> float:
    """Return the value of the default statistic whose asymptotic p-value is the level."""

    def surplus(value: float) -> float:
        return tent_statistic(DEFAULT, points, value).limit().greater - level

    return float(optimize.brentq(surplus, points.noise_floor, 20.0 * points.noise_floor, rtol=1e-6))


def in_blocks(count: int, size: int) -> Iterator[int]:
    """Split a number of outcomes of `size` numbers each into blocks."""
    block = max(1, BLOCK // size)
    return (min(block, count - first) for first in range(0, count, block))


def rejections(p: Array, w: Array, sample: Sample | None, points: Points, count: int, rng: Rng) -> list[float]:
    """Return rejection rates at both levels, for the method that "auto" chooses."""
    statistic = tent_statistic(DEFAULT, points, sample=sample)
    if points.effective_information >= ENOUGH_INFORMATION:
        outcomes = TiedOutcomes(points)
        values, limits = outcomes.tent_values(statistic.kernel), [critical(points, level) for level in LEVELS]
    else:
        outcomes, values = statistic.redraw()
        redrawn = [values(outcomes.draw(rng, size)) for size in in_blocks(REDRAWS, len(p))]
        limits = np.quantile(np.concatenate(redrawn), [1.0 - level for level in LEVELS])
    starts = np.searchsorted(p, outcomes.points.low)
    observed = [
        values(np.add.reduceat((rng.random((size, len(p))) < p) * w, starts, axis=1))
        for size in in_blocks(count, len(p))
    ]
    return [float(np.mean(np.concatenate(observed) >= limit * (1.0 - 1e-9))) for limit in limits]


def size_line(name: str, draw: Callable[[Rng], Design], count: int, rng: Rng) -> str:
    """Return a table row of a design: rejection rates over levels, from rows and from a sketch, and the methods."""
    rates, methods = [], {}
    n_designs = WEIGHTED_DESIGNS if draw(rng)[1] is not None else 1
    for _ in range(n_designs):
        p, w = draw(rng)
        order = np.argsort(p)
        p, w = p[order], np.ones(len(p)) if w is None else w[order]
        y = np.zeros(len(p))
        sample, sketch = Sample.of(y, p, w), tc.Sketch().update(y, p, w)
        each = count // n_designs
        relative = w / 2.0**sample.exponent
        rates.append(
            rejections(p, relative, sample, sample.points(), each, rng)
            + rejections(p, w, None, sketch.points(), each, rng)
        )
        enough = sketch.points().effective_information >= ENOUGH_INFORMATION
        methods["asymptotic" if enough else "redrawn"] = True
    mean = np.mean(rates, axis=0) / np.tile(LEVELS, 2)
    return line(name, ", ".join(methods), *(f"{rate:.2f}" for rate in mean))


SEGMENTS: dict[str, Callable[[Rng], Design]] = {
    "uniform, 300": lambda rng: (rng.random(300), None),
    "Beta(1, 49), 300": lambda rng: (rng.beta(1, 49, 300), None),
    "uniform, 300, weights Pareto(1.5)": lambda rng: (rng.random(300), pareto(300, 1.5, rng)),
    "constant 0.02, 1,000, weights Pareto(1.5)": lambda rng: (np.full(1000, 0.02), pareto(1000, 1.5, rng)),
    "Beta(1, 49), 1,000, weights Pareto(2)": lambda rng: (rng.beta(1, 49, 1000), pareto(1000, 2.0, rng)),
}


def alarm_line(name: str, draw: Callable[[Rng], Design], families: int, rng: Rng) -> str:
    """Return a table row: how often at least one of 20 calibrated segments is called miscalibrated."""
    alarms = 0
    for _ in range(families):
        sketches = {}
        for segment in range(20):
            p, w = draw(rng)
            sketches[segment] = tc.Sketch().update(rng.random(len(p)) < p, p, w)
        table = tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="segment"))
        alarms += bool(table.miscalibrated)
    return line(name, f"{alarms / families:.3f}")


TEMPLATE = """\
# Power and size of the default test

Written by `benchmarks/power.py`; do not edit. The default statistic of `calibration_test` and `assess` is
`{default}`.

## Power

Rejection rates at level 5%, with critical values from {null_draws:,} redraws of calibrated outcomes for each test;
{draws:,} data sets per line. Slopes are those of the log-odds, with the mean unchanged. `cox` is the likelihood ratio
of a regression line of the log-odds; Hosmer-Lemeshow has 10 bins of equal count. The last column is the distance of the
default from the best test on that line.

| predictions, rows | truth | {columns} | gap |
|---|---|{rule}---:|
{powers}

The smallest power of the default is {smallest}; every other test falls to {others} or less on some line. The default is
more than 0.15 below the best of the others on these lines:

{far}

Tests made for one shape have more power against it: `cox` and `spiegelhalter` against slopes, `atb` and `ks_ce` against
shifts. A truthful measure cannot give a row with little noise more influence than others, as `cox` and Hosmer-Lemeshow
do; this costs power where the error is among the smallest predictions.

## Size

Rejection rates for calibrated predictions over the level (1.00 is ideal, 0.80 to 1.20 the target), from {size_draws:,}
data sets, so that the standard errors are {error5:.2f} at 5% and {error1:.2f} at 1%. P-values are asymptotic or from
{redraws:,} redraws, as `method="auto"` chooses for sketches and large samples. Sketches have {buckets:,} buckets. They
do not keep each weight, but a few sums of weights in each bucket. With Pareto(1.1) weights a few rows have most of the
weight, and their outcomes decide; these lines are means over {designs} draws of the weights.

| predictions, rows | p-values | rows, 5% | rows, 1% | sketch, 5% | sketch, 1% |
|---|---|---:|---:|---:|---:|
{sizes}

## False alarms among segments

Share of tables in which `assess_segments` calls at least one of 20 calibrated segments miscalibrated, with Holm's
adjustment at 5%: from {families:,} tables, so that the standard error is {error_family:.3f}.

| predictions, rows per segment | false alarms |
|---|---:|
{alarms}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fast smoke run that writes nothing")
    quick = parser.parse_args().quick
    null_draws, draws, size_draws, families = (200, 50, 500, 5) if quick else (4000, 1000, 20_000, 600)
    rng = np.random.default_rng(16)
    powers = power_lines(null_draws, draws)
    cells = [each.removeprefix("| ").removesuffix(" |").split(" | ") for each in powers]
    far = [f"- {names.rsplit(', ', 1)[0]}: {truth}" for names, truth, *_, gap in cells if float(gap) < -0.15]
    smallest = np.min([[float(cell) for cell in each[2:-1]] for each in cells], axis=0)
    page = TEMPLATE.format(
        default=DEFAULT,
        null_draws=null_draws,
        draws=draws,
        columns=" | ".join(f"`{test}`" for test in (DEFAULT, *OTHERS)),
        rule="---:|" * (1 + len(OTHERS)),
        powers="\n".join(powers),
        smallest=f"{smallest[0]:.2f}",
        others=f"{np.max(smallest[1:]):.2f}",
        far="\n".join(far) or "- none",
        size_draws=size_draws,
        error5=(0.95 / 0.05 / size_draws) ** 0.5,
        error1=(0.99 / 0.01 / size_draws) ** 0.5,
        buckets=tc.Sketch().n_buckets,
        sizes="\n".join(size_line(*design, size_draws, rng) for design in DESIGNS.items()),
        redraws=REDRAWS,
        designs=WEIGHTED_DESIGNS,
        families=families,
        error_family=(0.05 * 0.95 / families) ** 0.5,
        alarms="\n".join(alarm_line(*segment, families, rng) for segment in SEGMENTS.items()),
    )
    if not quick:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
