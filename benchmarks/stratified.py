"""Print what stratified outcomes do to ATB, which is truthful for independent ones: `python benchmarks/stratified.py`.

Three tables: the model that scikit-learn's GridSearchCV selects; expected ATB of honest and of constant reports; and
the sizes of the calibration test at 5% and of its lower tail ("too good") at 1%. In a stratified fold or test set the
number of events is fixed.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference.laws.redraw import Outcomes
from truthcal.sklearn import calibrated_refit, calibration_scoring

STRENGTHS = (1e-5, 1e-3, 1e-1, 1.0, 10.0)  # of LogisticRegression(C=...): the first gives nearly constant predictions
ROWS, FEATURES, FOLDS = 400, 8, 5


def constant_selected(data_sets: int) -> None:
    """Count how often a grid search selects the nearly constant model."""
    shuffled = {"shuffle": True, "random_state": 0}
    searches = {
        "StratifiedKFold (the default), -ATB": (StratifiedKFold(FOLDS), "neg_atb"),
        "shuffled StratifiedKFold, -ATB": (StratifiedKFold(FOLDS, **shuffled), "neg_atb"),
        "KFold, -ATB": (KFold(FOLDS), "neg_atb"),
        "shuffled KFold, -ATB": (KFold(FOLDS, **shuffled), "neg_atb"),
        "StratifiedKFold, -Brier": (StratifiedKFold(FOLDS), "neg_brier_score"),
        "StratifiedKFold, calibrated_refit": (StratifiedKFold(FOLDS), calibrated_refit()),
        "shuffled KFold, calibrated_refit": (KFold(FOLDS, **shuffled), calibrated_refit()),
    }
    print(f"GridSearchCV on {data_sets} data sets: how often C = {STRENGTHS[0]} (nearly constant) is selected\n")
    for name, (folds, refit) in searches.items():
        count = 0
        for seed in range(data_sets):
            x, y = make_classification(
                ROWS, FEATURES, n_informative=4, class_sep=0.6, flip_y=0.1, shuffle=True, random_state=seed
            )
            scoring = calibration_scoring()
            search = GridSearchCV(LogisticRegression(), {"C": STRENGTHS}, scoring=scoring, refit=refit, cv=folds)
            with warnings.catch_warnings(action="ignore"):  # of stratified folds
                search.fit(x, y)
            count += search.best_params_["C"] == STRENGTHS[0]
        print(f"  {name:<38} {count:>3} of {data_sets}")


def stratified_outcomes(truth: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw outcomes until so many have the expected number of events, rounded: the law of a stratified sample."""
    events, outcomes = round(float(truth.sum())), np.empty((0, len(truth)), bool)
    while len(outcomes) < draws:
        drawn = rng.random((2000, len(truth))) < truth
        outcomes = np.concatenate([outcomes, drawn[drawn.sum(axis=1) == events]])
    return outcomes[:draws]


def size_and_score(draws: int) -> None:
    """Print sizes of the test and expected ATB for independent and for stratified outcomes."""
    print("\nMean ATB * T of the truth and of its mean; how often the truth is called miscalibrated (at 5%)")
    print(f"and too good (at 1%), in {draws:,} draws\n")
    heads = f"{'truth':>8} {'its mean':>9} {'miscal.':>8} {'too good':>9}"
    print(f"  {'true probabilities':<24} {'outcomes':<12} {heads}")
    rng = np.random.default_rng(0)
    designs = {
        "uniform, T = 200": (np.arange(200) + 0.5) / 200,
        "uniform, T = 1,000": (np.arange(1000) + 0.5) / 1000,
        "Beta(1, 9), T = 500": np.sort(rng.beta(1, 9, 500)),
        "Beta(8, 8), T = 500": np.sort(rng.beta(8, 8, 500)),
    }
    for name, truth in designs.items():
        constant = np.full(len(truth), truth.mean())
        outcomes = Outcomes(Sample.of(np.zeros(len(truth)), truth))
        statistic = outcomes.values("information_atb")
        low, high = np.quantile(statistic(outcomes.draw(rng, 20_000)), [0.01, 0.95])
        independent = rng.random((draws, len(truth))) < truth
        for kind, y in (("independent", independent), ("stratified", stratified_outcomes(truth, draws, rng))):
            means = [np.mean([tc.atb(row, p) for row in y[:400]]) * len(truth) for p in (truth, constant)]
            values = statistic(outcomes.grouped(y))
            sizes = f"{np.mean(values > high):>8.3f} {np.mean(values < low):>9.3f}"
            print(f"  {name:<24} {kind:<12} {means[0]:>8.3f} {means[1]:>9.3f} {sizes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--draws", type=int, default=2000)
    arguments = parser.parse_args()
    constant_selected(arguments.data_sets)
    size_and_score(arguments.draws)
