"""Simulate the tests of out-of-fold predictions, and write docs/benchmarks/sklearn.md: part of `make bench`.

How often `assess_estimator` and the rule of `calibrated_refit` call a model of the right form miscalibrated or too
good, in comparison with the true probabilities.
"""

import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pages import simulate_page, table
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate

import truthcal as tc
from truthcal.sklearn import assess_estimator, calibrated_refit, calibration_scoring
from truthcal.sklearn.scorers import seed_of

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "sklearn.md"
Array = np.ndarray
COEFFICIENTS = np.array([1.0, -0.8, 0.6, 0.3, 0.0])
FOLDS = KFold(5, shuffle=True, random_state=0)
ASSESSED, CHOSEN = (300, 1000), (300, 1000)
# Without a penalty, the model has the right form for all values of its parameters.
MODEL = LogisticRegression(C=np.inf)

INTRODUCTION = """# scikit-learn

Written by `benchmarks/sklearn_models.py`; do not edit. {0} simulations per line (standard errors {1:.3f} at 5% and
{2:.3f} at 1%). Outcomes follow a logistic regression on five normally distributed features, and the model is a logistic
regression on these features without a penalty, so that its form is right.

## assess_estimator

Share of data sets in which the test of the predictions for all five test folds together has a p-value of at most 0.05,
and share in which that of the other tail ("too good") is at most 0.01."""
CHOICE = """
Each fold's model is fitted to the outcomes of the other folds. If a test fold has more events than expected, the other
folds have fewer, so that errors of the five models balance in all rows together, as those of independent predictions
would not.

## calibrated_refit

Share of data sets in which the p-value of a candidate, that of all five test folds combined by Fisher's method, is at
most 0.01, and at most 0.01 / 5, the limit for the smallest p-value of five candidates. Each fold is tested alone, so
that errors do not balance: a model that is fitted to few rows is a little miscalibrated, even if its form is right."""


def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """Draw features, outcomes and true probabilities."""
    x = rng.normal(size=(n, len(COEFFICIENTS)))
    truth = special.expit(x @ COEFFICIENTS - 0.5)
    return x, (rng.random(n) < truth).astype(int), truth


def assessed(n: int, repeats: int) -> list[float]:
    """Return the shares miscalibrated at 5% and too good at 1% of the model, and those of the true probabilities."""
    rng, results = np.random.default_rng([1, n]), []
    for _ in range(repeats):
        x, y, truth = draw(rng, n)
        both = assess_estimator(MODEL, x, y, cv=FOLDS), tc.assess(y, truth)
        results.append([value for one in both for value in (one.pvalue <= 0.05, one.pvalue_too_good <= 0.01)])
    return [float(share) for share in np.mean(results, axis=0)]


def chosen(n: int, repeats: int) -> list[float]:
    """Return the shares of p-values of at most 0.01 and 0.01 / 5, of the model and of the true probabilities."""
    rng, results, rule = np.random.default_rng([2, n]), [], calibrated_refit()
    for _ in range(repeats):
        x, y, truth = draw(rng, n)
        scorer = calibration_scoring()["calibration_pvalue"]
        scored = cross_validate(MODEL, x, y, cv=FOLDS, scoring={"calibration_pvalue": scorer})
        folds = [{"y_true": y[rows], "y_proba": truth[rows]} for _, rows in FOLDS.split(x)]
        tests = [tc.calibration_test(**fold, n_resamples=999, rng=seed_of(fold)).greater for fold in folds]
        both = np.array([scored["test_calibration_pvalue"], tests])  # as in `cv_results_` of a search of two candidates
        pvalues = rule.pvalues({f"split{k}_test_calibration_pvalue": column for k, column in enumerate(both.T)})
        results.append([p <= level for p in pvalues for level in (0.01, 0.01 / 5)])
    return [float(share) for share in np.mean(results, axis=0)]


def page(repeats: int, processes: int) -> str:
    """Write the page."""
    with ProcessPoolExecutor(processes) as pool:
        first = pool.map(assessed, ASSESSED, [repeats] * len(ASSESSED))
        second = pool.map(chosen, CHOSEN, [repeats] * len(CHOSEN))
        shares = [[[f"{n:,}", *(f"{share:.3f}" for share in row)] for n, row in zip(sizes, rows, strict=True)]
                  for sizes, rows in ((ASSESSED, first), (CHOSEN, second))]  # fmt: skip
    errors = (math.sqrt(level * (1.0 - level) / repeats) for level in (0.05, 0.01))
    parts = [
        INTRODUCTION.format(repeats, *errors),
        *table("| rows | model: p <= 0.05 | model: too good | truth: p <= 0.05 | truth: too good |", shares[0]),
        CHOICE,
        *table("| rows | model: p <= 0.01 | model: p <= 0.002 | truth: p <= 0.01 | truth: p <= 0.002 |", shares[1]),
        "",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    simulate_page(__doc__, PAGE, page, repeats=400)
