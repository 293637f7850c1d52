"""Simulate the coverage of 95% confidence intervals, and write docs/benchmarks/coverage.md: part of `make bench`.

The populations are known, so each interval either contains its population value or does not. For squared errors this
is decided by the two tail probabilities at the true value, which define the interval; this takes a tenth of the time.

On a busy machine set OPENBLAS_NUM_THREADS=1: threads that wait for a core make small matrices ten times as slow.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference import comparison, intervals
from truthcal.inference.intervals import LengthOfMean, interval_of
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.results.intervals import ConfidenceInterval

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "coverage.md"
SIZES = (200, 2000)
LEVEL = 0.95
NORMS = ("smcal", "ks_ce", "ece", "atb_l1")
Curve = Callable[[np.ndarray], np.ndarray]

# Predictions as a function of uniform random numbers. Weights of "weighted" are exponential, those of "heavy weights"
# lognormal.
DESIGNS: dict[str, Curve] = {
    "uniform": lambda u: u,
    "Beta(2, 2)": lambda u: 0.5 - np.sin(np.arcsin(1 - 2 * u) / 3),
    "20 values": lambda u: (np.floor(20 * u) + 0.5) / 20,
    "weighted": lambda u: u,
    "heavy weights": lambda u: u,
    "rare, 1 in 50": lambda u: 1 - (1 - u) ** (1 / 49),
    "rarer, 1 in 200": lambda u: 1 - (1 - u) ** (1 / 199),
    "constant 0.02": lambda u: np.full_like(u, 0.02),
}
TRUTHS: dict[str, Curve] = {
    "calibrated": lambda p: p,
    "nearly": lambda p: p / (p + (1 - p) * math.exp(0.12)),
    "too high": lambda p: p / (p + (1 - p) * math.exp(0.4)),
    "too extreme": lambda p: 0.5 + 0.7 * (p - 0.5),
    "wave": lambda p: p + 0.8 * p * (1 - p) * np.sin(6 * np.pi * p),
}
GRID = (np.arange(2000) + 0.5) / 2000


def drawn(design: str, truth: Curve, n: int, rng: np.random.Generator) -> Sample:
    """Draw rows from a population."""
    p = DESIGNS[design](rng.random(n))
    y = (rng.random(n) < truth(p)).astype(int)
    weights = {"weighted": lambda: rng.exponential(1.0, n), "heavy weights": lambda: rng.lognormal(0.0, 1.5, n)}
    return Sample.of(y, p, weights[design]() if design in weights else None)


def covers(length: LengthOfMean, true: float, bias: ConfidenceInterval) -> bool:
    """Tell whether the interval of a squared error contains the true length."""
    crossing = intervals.interval_end
    intervals.interval_end = lambda rising: 0.0 if rising(true) >= 0.0 else 1.0
    try:
        low, high = length.interval(LEVEL)
    finally:
        intervals.interval_end = crossing
    return low <= true <= max(high, length.of_shift * max(-bias.low, bias.high))


def squares(design: str, name: str, n: int, repeats: int) -> list[float]:
    """Return the coverage of atb, multiscale_atb and bias."""
    rng, truth = np.random.default_rng([n, list(DESIGNS).index(design), list(TRUTHS).index(name)]), TRUTHS[name]
    p = DESIGNS[design](GRID)
    everyone = Sample.of(truth(p), p)
    groups, bias = everyone.groups, float(np.mean(p - truth(p)))
    hits, given = np.zeros(3), 0
    for _ in range(repeats):
        sample = drawn(design, truth, n, rng)
        interval = interval_of(sample, "bias", LEVEL, "auto")
        if math.isnan(interval.low):  # no interval: a few rows have nearly all of the weight
            continue
        given += 1
        cells = sample.points().merged(48)
        for k, measure in enumerate(("atb", "multiscale_atb")):
            kernel = TentKernel.of(measure, sample.points())
            square = 0.0 if name == "calibrated" else float(kernel.sums(groups.r, groups.c[None, :])[0])
            true = math.sqrt(max(square, 0.0)) / everyone.weight
            hits[k] += covers(LengthOfMean.of(cells, kernel), true, interval)
        hits[2] += interval.low - 1e-12 <= bias <= interval.high + 1e-12
    return list(hits / given)


def norms(name: str, n: int, repeats: int) -> list[float]:
    """Return the coverage of norms of the bias."""
    rng, truth = np.random.default_rng([n, list(TRUTHS).index(name), 99]), TRUTHS[name]
    p = DESIGNS["20 values"](GRID)
    everyone = Sample.of(truth(p), p)
    hits = np.zeros(len(NORMS))
    for _ in range(repeats):
        sample = drawn("20 values", truth, n, rng)
        for k, measure in enumerate(NORMS):
            true = 0.0 if name == "calibrated" else tc.MEASURES[measure].of_sample(everyone)
            hits[k] += true in interval_of(sample, measure, LEVEL, "auto", 199, rng)
    return list(hits / repeats)


def informed(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth and two calibrated forecasters: one knows two features, the other only one of them."""
    known, hidden = rng.normal(0, 1, n), rng.choice([-1.0, 1.0], n)
    a, up, down = (1 / (1 + np.exp(-known - x)) for x in (hidden, 1.0, -1.0))
    return [a, a, (up + down) / 2]


def mirrored(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth and two forecasters: one too high, the other too low by the same amount."""
    offset = rng.uniform(0.05, 0.15, n)
    return [np.full(n, 0.5), 0.5 + offset, 0.5 - offset]


def shifted(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth and two forecasters: one knows it, the other adds 0.05."""
    truth = rng.uniform(0.0, 0.95, n)
    return [truth, truth, truth + 0.05]


def overconfident(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth and two forecasters: one knows it, the other multiplies its log-odds by 1.6."""
    truth = rng.uniform(0.01, 0.99, n)
    odds = (truth / (1 - truth)) ** 1.6
    return [truth, truth, odds / (1 + odds)]


def nearly_equal(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth and two forecasters: one knows it, the other adds 0.01."""
    truth = rng.uniform(0.0, 0.99, n)
    return [truth, truth, truth + 0.01]


def rare(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a truth of about ten events and two forecasters: one knows it, the other doubles it."""
    truth = np.minimum(10 / n * np.exp(rng.normal(0, 1, n) - 0.5), 0.45)
    return [truth, truth, 2 * truth]


PAIRS = {
    "both calibrated, one knows more": informed,
    "errors of opposite sign": mirrored,
    "too high by 0.01": nearly_equal,
    "too high by 0.05": shifted,
    "log-odds times 1.6": overconfident,
    "ten events, predictions doubled": rare,
}


def comparisons(case: Callable[..., list[np.ndarray]], n: int, repeats: int) -> tuple[float, float]:
    """Return how often the intervals of `compare` hold the expected difference of ATB and of the Brier score."""
    rng, hits = np.random.default_rng([n, repeats, 2]), np.zeros(2)
    kept, comparison._CELLS = comparison._CELLS, 48
    draws = [case(n, rng) for _ in range(max(1, 400_000 // n))]
    truth, a, b = (np.concatenate(column) for column in zip(*draws, strict=True))
    pairs, brier = tc.atb(truth, a) - tc.atb(truth, b), float(np.mean((a - b) * (a + b - 2 * truth)))
    expected = (1 - 1 / n) * pairs + brier / n
    try:
        for _ in range(repeats):
            truth, a, b = case(n, rng)
            found = tc.compare((rng.random(n) < truth).astype(int), a, b)
            hits += found.low <= expected <= found.high, found.brier_low <= brier <= found.brier_high
    finally:
        comparison._CELLS = kept
    return hits[0] / repeats, hits[1] / repeats


def line(*cells: object) -> str:
    shown = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells]
    text = f"| {' | '.join(shown)} |"
    print(text, flush=True)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="a few repeats, and no page")
    arguments = parser.parse_args()
    repeats = 40 if arguments.quick else arguments.repeats
    first = [
        line(design, truth, *(value for n in SIZES for value in squares(design, truth, n, repeats)))
        for design in DESIGNS
        for truth in TRUTHS
    ]
    few = max(20, repeats // 4)
    second = [line(truth, *(value for n in SIZES for value in norms(truth, n, few))) for truth in TRUTHS]
    third = [
        line(words, *(value for n in (300, 1000, 10_000) for value in comparisons(case, n, repeats)))
        for words, case in PAIRS.items()
    ]
    page = TEMPLATE.format(
        repeats=repeats,
        few=few,
        error=f"{math.sqrt(LEVEL * (1 - LEVEL) / repeats):.3f}",
        few_error=f"{math.sqrt(LEVEL * (1 - LEVEL) / few):.3f}",
        first="\n".join(first),
        second="\n".join(second),
        third="\n".join(third),
        norms=" | ".join(f"`{name}`" for name in NORMS),
    )
    if not arguments.quick:
        PAGE.write_text(page)


TEMPLATE = """\
# Coverage of confidence intervals

Written by `benchmarks/intervals.py`; do not edit. The tables show how often a 95% interval contains the true value of
the population, in {repeats} simulations per cell (standard error {error}). The target is at least 0.93.

- "weighted": weights are exponential and independent of everything else.
- "heavy weights": weights are lognormal, so that 200 rows have an effective sample size of a few dozen. Below 20
  there is no interval; these cases are not counted.
- "rare": predictions are Beta(1, 49), with four expected events in 200 rows; "rarer": Beta(1, 199), with one event.

| predictions | truth | `atb`, n = 200 | `multiscale_atb` | `bias` | `atb`, n = 2,000 | `multiscale_atb` | `bias` |
|---|---|---:|---:|---:|---:|---:|---:|
{first}

The intervals of norms of the bias are conservative. This table uses 20 distinct predictions and {few} simulations
(standard error {few_error} at 0.95). The first four columns have 200 rows, the others 2,000.

| truth | {norms} | {norms} |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
{second}

The last table is about `compare`: how often its intervals contain the expected difference of ATB for n rows, and the
population's difference of the Brier score ({repeats} simulations). The interval of ATB is conservative if both
forecasters are calibrated.

| forecasters | ATB, n = 300 | Brier | ATB, n = 1,000 | Brier | ATB, n = 10,000 | Brier |
|---|---:|---:|---:|---:|---:|---:|
{third}
"""


if __name__ == "__main__":
    main()
