"""Measure by what factor lying can pay, and write docs/benchmarks/truthfulness.md: part of `make bench`.

The first table has every measure, the second the numbers that are derived from ATB. A factor is the expected score of
the truth over that of the best lie that the audit finds, so that it is a lower bound.
"""

import argparse
from pathlib import Path

import numpy as np

import truthcal as tc
from truthcal.audits.derived import DERIVED

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "truthfulness.md"
SIZES = (200, 2000)
# Outcomes for finding a lie; for scoring fast measures or reports with one value; and for scoring slow ones.
SEARCH, MANY, FEW = 100, 4000, 200
SLOW = ("distcal", "smece", "intcal", "subsampled_smcal", "subsampled_step_ce")
TWO_EVENTS = (0.25, 0.75)
ABOUT = """# By what factor lying can pay

Written by `benchmarks/truthfulness.py`; do not edit.

## Measures

The expected score of the truth, divided by the expected score of the best lie that `audit` finds (for slow measures:
of reporting the mean), for T events whose true probabilities are (k - 1/2)/T, k = 1 ... T. Larger factors are possible
for other truths and other lies. "bounded" and "growing" are explained in [truthful
numbers](../theory/truthful_numbers.md).
"""
DERIVED_ABOUT = """
## Numbers derived from ATB

Expected values of the truth and of the best lie that `audit` finds. "two events": true probabilities 0.25 and 0.75,
exact, and the lie is the best of all reports. "200 events": as above, means over {many:,} outcomes, standard errors in
parentheses. For pvalue and pass_rate higher is better, otherwise lower.
"""


def truth_of(events: int) -> np.ndarray:
    """Return true probabilities at the quantiles of the uniform distribution."""
    return (np.arange(events) + 0.5) / events


def score(report: np.ndarray, truth: np.ndarray, name: str) -> tc.ExpectedScore:
    """Return the expected score with as many draws as the measure allows; tied outcomes are measured once."""
    slow = name in SLOW and len(np.unique(report)) > 1
    return tc.expected_score(report, truth, name, n_resamples=FEW if slow else MANY, rng=1)


def factor(name: str, events: int) -> tuple[float, str]:
    """Return the factor, and the name of the lie."""
    truth = truth_of(events)
    strategies = ["constant mean"] if name in SLOW else None
    row = tc.audit(truth, [name], strategies=strategies, n_resamples=SEARCH)[name]
    return score(truth, truth, name).value / score(row.best_report, truth, name).value, row.best_lie


def measure_rows(names: list[str]) -> list[str]:
    """Measure the factor of each measure."""
    lines = [f"| measure | factor | {' | '.join(f'T = {n:,}' for n in SIZES)} | best lie |", "|---|---|---:|---:|---|"]
    for name in names:
        row = tc.MEASURES[name]
        results = [(1.0, "none") if row.truthful else factor(row.alias_of or name, events) for events in SIZES]
        cells = " | ".join("1" if row.truthful else f"{ratio:.3g}" for ratio, _ in results)
        lines.append(f"| `{name}` | {row.lie_factor} | {cells} | {results[-1][1]} |")
        print(lines[-1], flush=True)
    return lines


def derived_rows() -> list[str]:
    """Measure the numbers derived from ATB, after ATB itself."""
    lines = ["| number | two events: truth | best lie | 200 events: truth | best lie | does lying pay? |"]
    lines.append("|---|---:|---:|---:|---:|---|")
    truth = truth_of(SIZES[0])
    for name in ("atb", *DERIVED):
        two = tc.audit(TWO_EVENTS, [name])[name]
        many = tc.audit(truth, [name], n_resamples=SEARCH)[name]
        scores = [score(report, truth, name) for report in (truth, many.best_report)]
        cells = [f"{two.honest:.4g}", f"{two.scores[two.best_lie]:.4g}", *map(number, scores)]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {'never' if two.truthful else 'yes'} |")
        print(lines[-1], flush=True)
    return lines


def number(result: tc.ExpectedScore) -> str:
    """Format an expected score with its standard error."""
    error = f" ({result.standard_error:.1g})" if result.standard_error else ""
    return f"{0.0 if abs(result.value) < 1e-15 else result.value:.3g}{error}"


def main() -> None:
    """Write the page, or only measure some measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measures", nargs="*", help="print only these measures, and write nothing")
    names = parser.parse_args().measures
    rows = measure_rows(names or list(tc.MEASURES))
    if not names:
        page = [ABOUT, *rows, DERIVED_ABOUT.format(many=MANY), *derived_rows()]
        PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
