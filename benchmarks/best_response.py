"""Measure what a forecaster who knows the truth gains, in a batch and in sequence, as the number of events grows.

Writes docs/benchmarks/best_response.md: part of `make bench`, about a minute. All numbers are seeded.
"""

from pathlib import Path

import numpy as np

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "best_response.md"
MEASURES = (*("atb", "brier", "smcal", "step_ce", "ece", "unbinned_ece"), *("subsampled_smcal", "subsampled_step_ce"))
FEW, MANY = (2, 4, 8), (16, 128, 1024)
RESAMPLES = 400
ABOUT = """# What the best response gains

Written by `benchmarks/best_response.py`; do not edit.

A forecaster knows the true probabilities of T independent events and reports whatever `best_response` finds best. Each
number is a factor: the expected score of the truth divided by that of the best report or policy found. It **shows that
lying gains at least this factor** for this truth. It claims nothing more: better lies may exist, and a factor of 1 only
says that none was found, except where it is marked as proved. If a factor falls as T grows, the search may be weaker
there. A star marks factors that differ from 1 by less than three standard errors.
"""
BATCH = """
## Batch: all reports before any outcome

True probabilities (k - 1/2)/T, k = 1 ... T. Exact for T up to 8 (up to 4 for the subsampled measures), otherwise means
over {resamples} simulated outcomes that the search did not use.
"""
EVEN = """
## Sequence: each outcome is revealed before the next report. All true probabilities are 1/2

T = 2, 4, 8: exact, the best of all policies on the best of four grids of reports. Larger T: the best one-step lookahead
policy found in a family, on {resamples} simulated sequences that the search did not use.
"""
SPREAD = """
## Sequence: different true probabilities

True probabilities (k - 1/2)/T in random order; otherwise as above. A forecaster who reports values near the mean knows
the sign of the error that it expects for each event, and can use it to cancel the errors of the past.
"""


def even(events: int) -> np.ndarray:
    return np.full(events, 0.5)


def spread(events: int) -> np.ndarray:
    return (np.arange(events) + 0.5) / events


def shuffled(events: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(spread(events))


def cell(result: tc.BestResponse) -> str:
    """Format the factor."""
    if result.truthful:
        return "1 (proved)"
    return f"{result.ratio:.3g}" + ("" if result.pays or result.gain == 0.0 else "\\*")


def rows(truth_of: object, sizes: tuple[int, ...], setting: str) -> list[str]:
    """Measure the factors of all measures."""
    lines = [f"| measure | {' | '.join(f'T = {n:,}' for n in sizes)} |", "|---|" + "---:|" * len(sizes)]
    for name in MEASURES:
        results = [tc.best_response(truth_of(n), name, setting=setting, n_resamples=RESAMPLES) for n in sizes]
        lines.append(f"| `{name}` | {' | '.join(map(cell, results))} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    page = [
        ABOUT + BATCH.format(resamples=RESAMPLES),
        *rows(spread, (*FEW, *MANY), "batch"),
        EVEN.format(resamples=RESAMPLES),
        *rows(even, (*FEW, *MANY), "sequential"),
        SPREAD,
        *rows(shuffled, (2, 4, *MANY), "sequential"),
    ]
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
