"""Simulate the test for change of `assess_over_time`, and write docs/benchmarks/change.md.

Size: the calibration error is the same at all times, while predictions, volume or the kind of error vary. Power: the
error changes. The page also has the error of the estimated date, and the coverage of the simultaneous intervals.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

import truthcal as tc
from truthcal.inference.change import Change, WindowSums, detectable_change, run_change_test
from truthcal.inference.over_time import window_rows

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "change.md"
Rng = np.random.Generator
TEMPLATE = """\
# Test for change: size, power and dates

Written by `python benchmarks/change.py`; do not edit.

`assess_over_time` tests whether the calibration error is the same in all windows of time. It may be any error, and the
predictions may change: only a change of the error itself is a change.

## False alarms

Share of {size_runs:,} simulated data sets in which the test found a change although the error is constant, at the
levels 5% and 1%. Standard errors are {se5:.1%} and {se1:.1%}. "Drift": predictions are Beta(1, 4) at the beginning and
become Beta(4, 1) at the end. Overconfident: the log-odds of the truth are half of those of the prediction.
Redrawn: p-values from redistributed events, because there is little information.

| error and predictions | rows | windows | at 5% | at 1% |
|---|---:|---:|---:|---:|
{sizes}

## Power and dates

Share of {power_runs:,} data sets of 4,000 rows in 20 windows in which a change was detected at the level 5%. Of these:
the median distance between the estimated and the true date, in windows, and the share in which it is at most one
window. The last column is the average of the estimated change of the bias, divided by the true one: the date is chosen
where the difference is clearest, which exaggerates it if the power is low.

| change | power | median distance | at most one window off | estimated / true bias |
|---|---:|---:|---:|---:|
{powers}

The last two changes have no single date. "Detectable" is the shift that `ChangeTest.detectable` names for 80% power.

## Intervals of all windows at once

Share of {cover_runs:,} data sets (20 windows of 500 rows, predictions uniform) in which the 95% intervals of all
windows contain the true values.

| error | bias | error size |
|---|---:|---:|
{covers}
"""


class Rows(NamedTuple):
    """Outcomes, predictions, windows and weights of a data set."""

    y: np.ndarray
    p: np.ndarray
    t: np.ndarray
    w: np.ndarray | None = None


def overconfident(p: np.ndarray) -> np.ndarray:
    return expit(0.5 * logit(np.clip(p, 1e-12, 1 - 1e-12)))


def drift(rng: Rng, x: np.ndarray) -> np.ndarray:
    return rng.beta(1.0 + 3.0 * x, 4.0 - 3.0 * x)


def rows(
    rng: Rng,
    n: int,
    windows: int,
    predictions: Callable[[Rng, np.ndarray], np.ndarray],
    truth: Callable[[np.ndarray, np.ndarray], np.ndarray],
    uneven: bool = False,
) -> Rows:
    """Draw a data set; `truth` is a function of predictions and of time, from 0 to 1."""
    volume = np.linspace(1.0, 10.0 if uneven else 1.0, windows)
    t = np.sort(rng.choice(windows, n, p=volume / volume.sum()))
    x = t / windows
    p = predictions(rng, x)
    return Rows((rng.random(n) < np.clip(truth(p, x), 0.0, 1.0)).astype(np.uint8), p, t)


def uniform(rng: Rng, x: np.ndarray) -> np.ndarray:
    return rng.random(len(x))


def jump(rng: Rng, x: np.ndarray) -> np.ndarray:
    return np.where(x < 0.5, rng.beta(2, 4, len(x)), rng.beta(4, 2, len(x)))


def tied(rng: Rng, x: np.ndarray) -> np.ndarray:
    return np.floor(10.0 * drift(rng, x)) / 10.0 + 0.05


def rare(rng: Rng, x: np.ndarray) -> np.ndarray:
    return rng.beta(1.0, 49.0 - 25.0 * x)


def weighted(data: Rows, rng: Rng) -> Rows:
    return data._replace(w=rng.exponential(size=len(data.y)))


SIZES: dict[str, tuple[int, int, Callable[[Rng], Rows]]] = {
    "none; uniform": (2000, 20, lambda rng: rows(rng, 2000, 20, uniform, lambda p, x: p)),
    "overconfident; drift": (2000, 20, lambda rng: rows(rng, 2000, 20, drift, lambda p, x: overconfident(p))),
    "overconfident; drift ": (20_000, 20, lambda rng: rows(rng, 20_000, 20, drift, lambda p, x: overconfident(p))),
    "overconfident; drift, 100 windows": (
        10_000, 100, lambda rng: rows(rng, 10_000, 100, drift, lambda p, x: overconfident(p)),
    ),
    "too high by a quarter; jump from Beta(2, 4) to Beta(4, 2)": (
        5000, 12, lambda rng: rows(rng, 5000, 12, jump, lambda p, x: 0.75 * p),
    ),
    "sine of 3 periods, 0.08; drift": (
        20_000, 20, lambda rng: rows(rng, 20_000, 20, drift, lambda p, x: p + 0.08 * np.sin(6 * np.pi * p)),
    ),
    "overconfident; drift, ten distinct predictions": (
        2000, 20, lambda rng: rows(rng, 2000, 20, tied, lambda p, x: overconfident(p)),
    ),
    "too high by 40%; Beta(1, 49) to Beta(1, 24)": (
        20_000, 20, lambda rng: rows(rng, 20_000, 20, rare, lambda p, x: 0.6 * p),
    ),
    "too high by 40%; Beta(1, 49) to Beta(1, 24), redrawn": (
        4000, 20, lambda rng: rows(rng, 4000, 20, rare, lambda p, x: 0.6 * p),
    ),
    "overconfident; drift, redrawn": (300, 6, lambda rng: rows(rng, 300, 6, drift, lambda p, x: overconfident(p))),
    "none; uniform, volume grows tenfold": (5000, 30, lambda rng: rows(rng, 5000, 30, uniform, lambda p, x: p, True)),
    "overconfident; drift, exponential weights": (
        3000, 20, lambda rng: weighted(rows(rng, 3000, 20, drift, lambda p, x: overconfident(p)), rng),
    ),
}  # fmt: skip


def slope_after(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(x < 0.5, p, expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12))))


# Change -> truth, first window after it (0: no single date), true change of the bias (nan: none).
POWERS: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], int, float]] = {
    "0.03 too high from the middle on": (lambda p, x: p - 0.03 * (x >= 0.5), 10, 0.03),
    "0.05 too high from the middle on": (lambda p, x: p - 0.05 * (x >= 0.5), 10, 0.05),
    "the same, overconfident before and after": (
        lambda p, x: overconfident(p) - 0.05 * (x >= 0.5), 10, 0.05,
    ),
    "0.1 too high in the last two windows": (lambda p, x: p - 0.1 * (x >= 0.9), 18, 0.1),
    "overconfident (slope 0.7) from the middle on": (slope_after, 10, np.nan),
    "sine of 2 periods, 0.08, from the middle on": (
        lambda p, x: p + 0.08 * np.sin(4 * np.pi * p) * (x >= 0.5), 10, np.nan,
    ),
    "0.08 too high at the end, growing slowly": (lambda p, x: p - 0.08 * x, 0, np.nan),
    "0.15 too high in one window": (lambda p, x: p - 0.15 * (x == 0.5), 0, np.nan),
}  # fmt: skip


def sums_of(data: Rows) -> tuple[WindowSums, tc.SketchTable]:
    table = window_rows(data.y, data.p, data.t, "1", None, data.w).table
    return WindowSums.of(table.point_groups(range(len(table))), table.total().points()), table


def test_rows(data: Rows) -> tuple[Change, tc.SketchTable]:
    sums, table = sums_of(data)
    return run_change_test(sums), table


def simulate_size(draw: Callable[[Rng], Rows], runs: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    pvalues = np.array([test_rows(draw(rng))[0].pvalue for _ in range(runs)])
    return float(np.mean(pvalues <= 0.05)), float(np.mean(pvalues <= 0.01))


def simulate_power(
    truth: Callable[[np.ndarray, np.ndarray], np.ndarray], date: int, size: float, runs: int, seed: int
) -> list[str]:
    rng, hits, distances, ratios = np.random.default_rng(seed), 0, [], []
    for _ in range(runs):
        found, table = test_rows(rows(rng, 4000, 20, uniform, truth))
        if found.pvalue <= 0.05:
            hits += 1
            distances.append(abs(found.place - date))
            bias, n = table.bias(), table.n
            after = np.arange(len(n)) >= found.place
            ratios.append(
                (np.average(bias[after], weights=n[after]) - np.average(bias[~after], weights=n[~after])) / size
            )
    near = f"{np.median(distances):.0f} | {np.mean(np.array(distances) <= 1):.2f}" if date else "- | -"
    return [f"{hits / runs:.2f}", near, "-" if np.isnan(size) else f"{np.mean(ratios):.2f}"]


def simulate_detectable(runs: int) -> list[str]:
    """Power at the shift that is named detectable."""
    rng = np.random.default_rng(99)
    shift = detectable_change(sums_of(rows(rng, 4000, 20, uniform, lambda p, x: p))[0], 0.05)
    power, near, ratio = simulate_power(lambda p, x: p - shift * (x >= 0.5), 10, shift, runs, 98)
    return [f"{shift:.3f} too high from the middle on (detectable)", power, near, ratio]


COVERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "none": lambda p, x: p,
    "too high by a quarter, constant": lambda p, x: 0.75 * p,
    "overconfident in the second half": lambda p, x: np.where(x < 0.5, p, overconfident(p)),
}


def simulate_coverage(truth: Callable[[np.ndarray, np.ndarray], np.ndarray], runs: int, seed: int) -> list[str]:
    rng, bias, error = np.random.default_rng(seed), 0, 0
    grid = (np.arange(20_000) + 0.5) / 20_000
    errors = [grid - np.clip(truth(grid, np.full_like(grid, t / 20)), 0, 1) for t in range(20)]
    for _ in range(runs):
        t = np.repeat(np.arange(20), 500)
        p = rng.random(len(t))
        y = rng.random(len(t)) < np.clip(truth(p, t / 20), 0, 1)
        windows = tc.assess_over_time(y, p, t, window="1").windows
        bias += all(
            window.bias.low <= np.mean(e) <= window.bias.high for window, e in zip(windows, errors, strict=True)
        )
        sizes = [np.sqrt(np.mean(e**2)) for e in errors]
        error += all(w.error.low <= size <= w.error.high for w, size in zip(windows, sizes, strict=True))
    return [f"{bias / runs:.3f}", f"{error / runs:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="data sets for each size; fewer for the others")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    runs, few, fewer = (max(arguments.runs // part, 1) for part in (1, 4, 10))
    tables: dict[str, list[str]] = {"sizes": [], "powers": [], "covers": []}

    def add(table: str, *cells: str) -> None:
        tables[table].append(f"| {' | '.join(cells)} |")
        print(tables[table][-1], flush=True)

    for seed, (name, (n, windows, draw)) in enumerate(SIZES.items()):
        at5, at1 = simulate_size(draw, runs, seed)
        add("sizes", name.strip(), f"{n:,}", f"{windows}", f"{at5:.3f}", f"{at1:.3f}")
    for seed, (name, (truth, date, size)) in enumerate(POWERS.items()):
        add("powers", name, *simulate_power(truth, date, size, few, seed))
        if seed == 1:
            add("powers", *simulate_detectable(few))
    for seed, (name, truth) in enumerate(COVERS.items()):
        add("covers", name, *simulate_coverage(truth, fewer, seed))
    if not arguments.dry:
        values = dict(
            size_runs=runs, power_runs=few, cover_runs=fewer, se5=np.sqrt(0.0475 / runs), se1=np.sqrt(0.0099 / runs)
        )
        text = TEMPLATE.format(**values, **{name: "\n".join(lines) for name, lines in tables.items()})
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
