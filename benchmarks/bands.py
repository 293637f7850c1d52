"""Simulate the simultaneous band of reliability diagrams, and write docs/benchmarks/bands.md: part of `make bench`.

How often the curve of calibrated predictions leaves the band anywhere, and how often that of overconfident ones does.
"""

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pages import simulate_page, table
from scipy import special, stats

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.core.summarize import summarize
from truthcal.measures.reliability import consistency_band_of, reliability_curve_of
from truthcal.plots.reliability import _pools_outside_band

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "bands.md"
Array = np.ndarray
SLOPES = (1.0, 1.3, 1.5, 2.0)
RESAMPLES = 399
# Without groups, the band depends on the predictions only: so many outcomes are drawn for each band.
OUTCOMES = 20

INTRODUCTION = """# Bands of reliability diagrams

Written by `benchmarks/bands.py`; do not edit. Share of the samples in which the isotonic curve leaves the simultaneous
band of the report anywhere, so that the diagram has a thick part; {repeats} samples per number. The log-odds of
predictions are those of the true probabilities times a slope: 1 is calibrated, and more is overconfident. For
comparison, "each prediction" is the share of calibrated curves that leave a band that holds the curve at each
prediction separately, and "test, 1.5" that in which the calibration test rejects at the level 0.05 with a slope of 1.5.
"""
ROWS = """
## Independent rows

- uniform: predictions are uniform; 19 values: of 0.05, 0.1, ..., 0.95
- rare: Beta(1, 49), mean 0.02
- weights: lognormal with sigma = 1.2"""
GROUPED = """
## Rows that belong together

Outcomes of a group are joined by a Gaussian copula with correlation r. "Rows differ": predictions of a group are
uniform and independent. "Rows alike": they are nearly equal, so that a group is hardly more than one observation. The
band is redrawn with an estimated correlation."""


class Design(NamedTuple):
    """Rows of a simulation: predictions and, if there are any, weights and groups with correlated outcomes."""

    name: str
    n: int
    predictions: Callable[[np.random.Generator, int], Array]
    sigma: float = 0.0
    groups: int = 0
    correlation: float = 0.0


def uniform(rng: np.random.Generator, n: int) -> Array:
    """Draw uniform predictions."""
    return rng.random(n)


def few_values(rng: np.random.Generator, n: int) -> Array:
    """Draw predictions of 19 values."""
    return rng.integers(1, 20, n) / 20


def rare(rng: np.random.Generator, n: int) -> Array:
    """Draw predictions of rare events."""
    return rng.beta(1, 49, n)


INDEPENDENT = (
    Design("uniform", 300, uniform),
    Design("uniform", 1000, uniform),
    Design("uniform", 5000, uniform),
    Design("19 values", 500, few_values),
    Design("rare", 3000, rare),
    Design("uniform, weights", 2000, uniform, 1.2),
    Design("rare, weights", 8000, rare, 1.2),
)
DEPENDENT = (
    Design("groups: 40, rows differ, r = 0", 1000, uniform, groups=40),
    Design("groups: 40, rows differ, r = 0.3", 1000, uniform, groups=40, correlation=0.3),
    Design("groups: 40, rows alike, r = 0", 1000, uniform, groups=-40),
    Design("groups: 200, rows alike, r = 0.5", 2000, uniform, groups=-200, correlation=0.5),
)


def leaves(summary: Sample | tc.Sketch, band: tc.ConsistencyBand) -> bool:
    """Tell whether the diagram has a thick part."""
    return len(_pools_outside_band(reliability_curve_of(summary), band)[0]) > 0


def simulate_rows(design: Design, slope: float, repeats: int) -> tuple[float, float, float]:
    """Return the shares of samples outside both bands, and that of rejections, for independent rows."""
    rng, outside, separately, rejected = np.random.default_rng([design.n, int(10 * slope)]), 0, 0, 0
    for _ in range(repeats // OUTCOMES):
        p = design.predictions(rng, design.n)
        w = np.exp(rng.normal(0.0, design.sigma, design.n)) if design.sigma else None
        bands = [
            tc.consistency_band(p, sample_weight=w, simultaneous=whole, n_resamples=RESAMPLES, rng=rng)
            for whole in (True, False)
        ]
        truth = special.expit(special.logit(p) / slope)
        for _ in range(OUTCOMES):
            y = (rng.random(design.n) < truth).astype(int)
            sample = Sample.of(y, p, w)
            outside += leaves(sample, bands[0])
            separately += leaves(sample, bands[1])
            rejected += tc.calibration_test(y, p, sample_weight=w, n_resamples=499).pvalue <= 0.05
    return outside / repeats, separately / repeats, rejected / repeats


def simulate_groups(design: Design, slope: float, repeats: int) -> tuple[float, float, float]:
    """Return the share of samples outside the band, and that of rejections, for rows that belong together."""
    rng, outside, rejected = np.random.default_rng([design.n, abs(design.groups), int(10 * slope)]), 0, 0
    alike, n_groups = design.groups < 0, abs(design.groups)
    group = np.repeat(np.arange(n_groups), design.n // n_groups)
    for _ in range(repeats):
        p = rng.random(design.n)
        p = 0.98 * rng.random(n_groups)[group] + 0.02 * p if alike else p
        shared, single = rng.normal(size=n_groups)[group], rng.normal(size=design.n)
        level = stats.norm.cdf(math.sqrt(design.correlation) * shared + math.sqrt(1.0 - design.correlation) * single)
        y = (level < special.expit(special.logit(p) / slope)).astype(int)
        summary = summarize(y, p, groups=group, binary=True)
        band = consistency_band_of(summary, n_resamples=RESAMPLES, rng=rng, simultaneous=True)
        outside += leaves(summary, band)
        rejected += tc.calibration_test(y, p, groups=group, n_resamples=499).pvalue <= 0.05
    return outside / repeats, math.nan, rejected / repeats


def line(design: Design, repeats: int) -> list[str]:
    """Simulate one line of a table."""
    simulate = simulate_groups if design.groups else simulate_rows
    shares = [simulate(design, slope, repeats) for slope in SLOPES]
    both = [f"{whole:.3f}" for whole, *_ in shares]
    separately = [] if design.groups else [f"{shares[0][1]:.3f}"]
    return [design.name, f"{design.n:,}", *both, *separately, f"{shares[SLOPES.index(1.5)][2]:.3f}"]


def page(repeats: int, processes: int) -> str:
    """Run all simulations and format the page."""
    with ProcessPoolExecutor(processes) as pool:
        lines = list(pool.map(line, (*INDEPENDENT, *DEPENDENT), [repeats] * len((*INDEPENDENT, *DEPENDENT))))
    slopes = " | ".join(f"slope {slope:g}" for slope in SLOPES)
    parts = [
        INTRODUCTION.format(repeats=repeats) + ROWS,
        *table(f"| rows | n | {slopes} | each prediction | test, 1.5 |", lines[: len(INDEPENDENT)]),
        GROUPED,
        *table(f"| rows | n | {slopes} | test, 1.5 |", lines[len(INDEPENDENT) :]),
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    simulate_page(__doc__, PAGE, page, repeats=200)
