"""Simulate `recalibrate`, and write docs/benchmarks/recalibration.md: part of `make bench`.

How often calibrated predictions stay as they are, whether the interval of the log loss contains the expected gain of
the map that is returned, and how often the assessment after the fit finds an error or calls the predictions too good.
"""

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pages import simulate_page, table
from scipy import special

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "recalibration.md"
Array = np.ndarray
# True probabilities of events and, if there are any, weights and groups; the outcomes of a group may be correlated.
Drawn = tuple[Array, Array, dict[str, Array]]

INTRODUCTION = """# Recalibration

Written by `benchmarks/recalibration.py`; do not edit. {repeats} simulations per line of `recalibrate` with its default
settings; the standard error of a share of 0.95 is {error:.2f}. That JSON and SQL give the predictions of Python is
tested, not simulated (tests/recalibration).

- common: probabilities from Beta(0.8, 1.6)
- rare: normally distributed log-odds, mean probability {rare:.3f}
- steps: 19 different probabilities
- weights: common, with weights between 0.1 and 10
- groups: common, in groups of 5 rows with correlated outcomes

## Calibrated predictions

Share of simulations in which predictions stay as they are, which should be at least 0.95, and share in which
miscalibration is not significant. In the others that stay, no method is better than `identity` by more than one
standard error, or there are too few events."""
ERRORS = """
## Miscalibrated predictions

The log-odds of predictions are those of the true probabilities times a slope, plus a shift.

- changed: share of simulations in which a map is chosen; the other columns are about these
- gain: mean of the expected gain in log loss of the returned map, on new rows
- reported: mean of the gain that is reported
- coverage: share of the reported 95% intervals of the gain that contain the expected gain
- loss: share of the returned maps that are worse than no map, on new rows
- p <= 0.05: share in which the test after recalibration finds miscalibration. Rows are the third that was not used for
  the fit, and the map is the one fitted to the other two thirds, which is not exactly right: more than 5% are expected.
- too good: share in which these rows are called "too good"."""


def common(rng: np.random.Generator, n: int) -> Array:
    """Draw probabilities of common events."""
    return np.asarray(rng.beta(0.8, 1.6, n))


def rare(rng: np.random.Generator, n: int) -> Array:
    """Draw probabilities of rare events."""
    return np.asarray(special.expit(rng.normal(-4.0, 1.0, n)))


def alone(draw: Callable[[np.random.Generator, int], Array], rng: np.random.Generator, n: int) -> Drawn:
    """Draw independent outcomes."""
    truth = draw(rng, n)
    return rng.random(n) < truth, truth, {}


def weighted(rng: np.random.Generator, n: int) -> Drawn:
    """Draw common events with weights."""
    y, truth, _ = alone(common, rng, n)
    return y, truth, {"sample_weight": 10.0 ** rng.uniform(-1.0, 1.0, n)}


def grouped(rng: np.random.Generator, n: int) -> Drawn:
    """Draw common events in groups of 5 rows: about half of them share the random number that decides outcomes."""
    truth, groups = common(rng, n), np.arange(n) // 5
    chance = np.where(rng.random(n) < 0.5, rng.random(n // 5 + 1)[groups], rng.random(n))
    return chance < truth, truth, {"groups": groups}


DESIGNS: dict[str, Callable[[np.random.Generator, int], Drawn]] = {
    "common": lambda rng, n: alone(common, rng, n),
    "rare": lambda rng, n: alone(rare, rng, n),
    "steps": lambda rng, n: alone(lambda rng, n: rng.integers(1, 20, n) / 20.0, rng, n),
    "weights": weighted,
    "groups": grouped,
}
CALIBRATED = [("common", 200), ("common", 1000), ("common", 5000), ("common", 20_000), ("rare", 1000)]
CALIBRATED += [("rare", 5000), ("rare", 20_000), ("steps", 1000), ("weights", 1000), ("groups", 1000), ("groups", 5000)]
# Design, rows, slope and shift of the log-odds.
WRONG = [("common", 300, 1.5, 0.0), ("common", 1000, 1.15, 0.0), ("common", 1000, 1.5, 0.0), ("common", 1000, 1.0, 0.5)]
WRONG += [
    ("common", 1000, 0.7, -0.3),
    ("common", 5000, 1.5, 0.0),
    ("rare", 5000, 1.0, 0.7),
    ("weights", 1000, 1.5, 0.0),
]
WRONG += [("groups", 2000, 1.5, 0.0)]


def kept(design: str, n: int, repeats: int) -> list[float]:
    """Return the share of runs that leave calibrated predictions alone, and that in which nothing was significant."""
    rng = np.random.default_rng([1, list(DESIGNS).index(design), n])
    results = []
    for k in range(repeats):
        y, truth, options = DESIGNS[design](rng, n)
        fix = tc.recalibrate(y, truth, rng=k, **options)
        results.append((not fix.changes, fix.reason.startswith("Miscalibration is not significant")))
    return list(np.mean(results, axis=0))


def wrong(truth: Array, slope: float, shift: float) -> Array:
    """Return predictions for true probabilities."""
    return np.asarray(special.expit(slope * special.logit(np.clip(truth, 1e-12, 1.0 - 1e-12)) + shift))


def expected_loss(truth: Array, p: Array) -> Array:
    """Return the expected log loss of predictions of each row."""
    return np.asarray(-truth * np.log(p) - (1.0 - truth) * np.log1p(-p))


def gains(design: str, n: int, slope: float, shift: float, repeats: int) -> list[float]:
    """Return the share changed, expected and reported gain, coverage, and the shares lost, found wrong and too good."""
    rng = np.random.default_rng([2, list(DESIGNS).index(design), n, round(100 * slope)])
    truth = np.concatenate([DESIGNS[design](rng, 5000)[1] for _ in range(40)])
    before, p_new = expected_loss(truth, wrong(truth, slope, shift)), wrong(truth, slope, shift)
    results = []
    for k in range(repeats):
        y, q, options = DESIGNS[design](rng, n)
        fix = tc.recalibrate(y, wrong(q, slope, shift), rng=k, **options)
        if fix.changes:
            gain, row = float(np.mean(before - expected_loss(truth, fix(p_new)))), fix.comparison.log_loss
            after = fix.after.test.pvalue <= 0.05, fix.after.kind == "too good"
            results.append((gain, row.difference, row.low <= gain <= row.high, gain < 0.0, *after))
    return [len(results) / repeats, *(np.mean(results, axis=0) if results else [math.nan] * 6)]


def page(repeats: int, processes: int) -> str:
    """Write the page."""
    with ProcessPoolExecutor(processes) as pool:
        left = list(pool.map(kept, *zip(*CALIBRATED, strict=True), [repeats] * len(CALIBRATED)))
        gained = list(pool.map(gains, *zip(*WRONG, strict=True), [repeats] * len(WRONG)))
    stay, mean_of_rare = sum(round(repeats * row[0]) for row in left), np.mean(rare(np.random.default_rng(0), 10**6))
    changed = np.array([row[0] for row in gained])
    coverage, wrong_after, too_good = (
        float(np.nansum(changed * [row[k] for row in gained]) / np.sum(changed)) for k in (3, 5, 6)
    )
    calibrated = [
        [design, f"{n:,}", *(f"{x:.3f}" for x in row)] for (design, n), row in zip(CALIBRATED, left, strict=True)
    ]
    miscalibrated = [
        [design, f"{n:,}", f"{slope:g}", f"{shift:g}", f"{row[0]:.2f}", *(f"{x:.2g}" for x in row[1:3])]
        + [f"{x:.3f}" for x in row[3:]]
        for (design, n, slope, shift), row in zip(WRONG, gained, strict=True)
    ]
    parts = [
        INTRODUCTION.format(repeats=repeats, error=math.sqrt(0.95 * 0.05 / repeats), rare=mean_of_rare),
        *table("| rows like | rows | stay | not significant |", calibrated),
        "",
        f"All together, predictions stay as they are in {stay:,} of {repeats * len(CALIBRATED):,} simulations.",
        ERRORS,
        *table(
            "| rows like | rows | slope | shift | changed | gain | reported | coverage | loss | p <= 0.05 | too good |",
            miscalibrated,
        ),
        "",
        f"All {repeats * np.sum(changed):,.0f} maps together: coverage {coverage:.3f}, p <= 0.05 in {wrong_after:.3f}, "
        f"too good in {too_good:.3f}.",
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    simulate_page(__doc__, PAGE, page, repeats=200)
