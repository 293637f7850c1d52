"""Choose a model by a proper score among those that are not shown to be miscalibrated."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from truthcal.core.checks import invalid
from truthcal.core.params import check_level, check_number, shown
from truthcal.inference.segments import holm
from truthcal.results.text import percent
from truthcal.sklearn.misuse import refuse_uncalled, warn_caller
from truthcal.sklearn.scorers import BrierScorer, ConstantScorer, LogLossScorer, PvalueScorer, atb_scorer

_Array = NDArray[np.float64]

# Names of the scores that the rule reads, beside the proper score that the user chooses.
_BRIER, _CONSTANT, _PVALUE = "neg_brier_score", "neg_brier_constant", "calibration_pvalue"
_PROPER = (_BRIER, "neg_log_loss")
_RECALIBRATE = "Recalibrate it: truthcal.sklearn.RecalibratedClassifier"


@refuse_uncalled
def calibration_scoring(
    score: str = _BRIER, *, pos_label: object = None, sample_weight: bool | str | None = None
) -> dict[str, Any]:
    """Return the scorers that `calibrated_refit` needs, as the parameter `scoring` of a search or of `cross_validate`.

    Parameters
    ----------
    score : {"neg_brier_score", "neg_log_loss"}, default "neg_brier_score"
        The proper score that chooses.
    pos_label : optional
        The class that is the event; the second of the estimator's ``classes_`` by default.
    sample_weight : bool or str, optional
        Passed to `set_score_request` of all scorers: True if weights that are passed to the search are those of the
        scores, too. It needs metadata routing, ``sklearn.set_config(enable_metadata_routing=True)``.

    Returns
    -------
    dict
        Scorers by name: the proper score and "neg_brier_score"; "neg_atb", ATB times -1; "calibration_pvalue", the
        p-value of `calibration_test`; and "neg_brier_constant", the Brier score of the constant that suits the test
        fold best. Other scorers may be added to it. With more than two classes, Brier scores are sums over the classes,
        as in scikit-learn: twice those of `assess`.
    """
    _check_proper(score)
    scorers: dict[str, Any] = {
        _BRIER: BrierScorer(pos_label),
        "neg_atb": atb_scorer(pos_label=pos_label),
        _PVALUE: PvalueScorer(pos_label),
        _CONSTANT: ConstantScorer(pos_label),
    }
    if score != _BRIER:
        scorers = {score: LogLossScorer(pos_label)} | scorers
    if sample_weight is not None:
        for scorer in scorers.values():
            scorer.set_score_request(sample_weight=sample_weight)
    return scorers


def calibrated_refit(score: str = _BRIER, *, alpha: float = 0.01, min_skill: float = 0.5) -> "CalibratedRefit":
    """Choose the model with the best proper score among those not shown to be miscalibrated.

    Calibration alone must not choose a model: predictions that are nearly constant are calibrated, and in stratified
    folds they have the best ATB of all.

    Parameters
    ----------
    score : {"neg_brier_score", "neg_log_loss"}, default "neg_brier_score"
        The proper score that chooses, one of the scorers of the search.
    alpha : float, default 0.01
        Significance level. A candidate is shown to be miscalibrated if its p-value, adjusted for the number of
        candidates by Holm's method, is at most alpha.
    min_skill : float, default 0.5
        Smallest skill that the chosen candidate must have, as a share of the best candidate's. Skill is 1 - Brier score
        / Brier score of constant predictions.

    Returns
    -------
    callable
        Pass it as `refit` to `GridSearchCV` or `RandomizedSearchCV`, with ``scoring=calibration_scoring()``. Its method
        ``pvalues(search.cv_results_)`` returns the p-values of all candidates, before Holm's adjustment.

    Warns
    -----
    UserWarning
        If all candidates with enough skill are shown to be miscalibrated; the warning says to recalibrate. Or if no
        candidate is better than the best constant of the test folds, as with few rows or weak features. In both cases
        the one with the best score is chosen.

    Notes
    -----
    The p-value of a candidate combines those of its test folds by Fisher's method. Each row must therefore be tested at
    most once: use `KFold` or `GroupKFold`, not `RepeatedKFold` or `ShuffleSplit`. This is not checked, since
    ``cv_results_`` does not say which rows were tested. If rows belong together (patients, matches), call
    ``sklearn.set_config(enable_metadata_routing=True)`` and pass `groups` to `fit` of the search: test folds are then
    tested by groups, of which each needs at least 20. Without it, rows are taken as independent, and most useful
    candidates would be called miscalibrated. With stratified folds, the default of scikit-learn for classifiers, the
    test is conservative: fewer candidates are left out.

    The tested models are those that were fitted to the training rows of the folds. These rows are few, so that models
    are slightly miscalibrated, even if their form is right. In simulations (docs/benchmarks/sklearn.md), the p-value of
    a logistic regression with five features was at most 0.01 in 9% of data sets with 300 rows and in 6% of those with
    1,000, and at most 0.01 / 5 in 2.5% of both.

    With many rows, all useful models are shown to be miscalibrated, if only a little, and only constant ones are not.
    This is why `min_skill` is needed.

    Successive halving (`HalvingGridSearchCV`) allows only one score and ignores a callable `refit`, so it cannot be
    combined with this function.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from truthcal.sklearn import calibrated_refit, calibration_scoring
    >>> X, y = make_classification(500, flip_y=0.3, random_state=0)
    >>> search = GridSearchCV(
    ...     LogisticRegression(),
    ...     {"C": [1e-5, 0.01, 1.0]},
    ...     cv=KFold(5, shuffle=True, random_state=0),
    ...     scoring=calibration_scoring(),
    ...     refit=calibrated_refit(),
    ... )
    >>> search.fit(X, y).best_params_
    {'C': 0.01}
    """
    _check_proper(score)
    return CalibratedRefit(score, check_level(alpha, "alpha"), _check_share(min_skill))


class CalibratedRefit:
    """Rule of `calibrated_refit`: a callable that returns the index of the chosen candidate."""

    def __init__(self, score: str, alpha: float, min_skill: float) -> None:
        self.score, self.alpha, self.min_skill = score, alpha, min_skill

    def __repr__(self) -> str:
        return f"calibrated_refit({self.score!r}, alpha={self.alpha!r}, min_skill={self.min_skill!r})"

    # A search with several scores looks up the scorer of its method `score` by the value of `refit`. Equality with the
    # name of the score makes this work: otherwise it would fail for every callable.
    def __hash__(self) -> int:
        return hash(self.score)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CalibratedRefit):
            return vars(self) == vars(other)
        return self.score == other

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the chosen candidate."""
        scores, pvalues = _by_fold(cv_results, self.score).mean(axis=1), self.pvalues(cv_results)
        brier, constant = (_by_fold(cv_results, name).mean(axis=1) for name in (_BRIER, _CONSTANT))
        with np.errstate(divide="ignore", invalid="ignore"):  # constants are always right in folds of one class
            skill = 1.0 - brier / constant
        scored = np.isfinite(scores) & np.isfinite(pvalues) & np.isfinite(skill)
        if not scored.any():
            raise _refuse_unscored(_by_fold(cv_results, _CONSTANT))
        largest = float(skill[scored].max())
        if largest <= 0.0:
            # A calibration test would choose among models that know nothing, or less than they seem to.
            warn_caller(f"No candidate is better than a constant in these test folds; chose the best {self.score}.")
            return int(np.flatnonzero(scored)[scores[scored].argmax()])
        useful = np.flatnonzero(scored & (skill >= self.min_skill * largest))
        miscalibrated = np.zeros(len(scores), np.bool_)
        miscalibrated[scored] = holm(pvalues[scored]) <= self.alpha
        allowed = useful[~miscalibrated[useful]]
        if len(allowed):
            return int(allowed[scores[allowed].argmax()])
        best = int(useful[scores[useful].argmax()])
        some = "" if miscalibrated[scored].all() else f" with at least {percent(self.min_skill)} of the largest skill"
        chosen = shown(cv_results["params"][best]) if "params" in cv_results else f"candidate {best}"
        problem = f"All candidates{some} are shown to be miscalibrated; chose the best {self.score}: {chosen}"
        warn_caller(f"{problem}. {_RECALIBRATE}.")
        return best

    def pvalues(self, cv_results: Mapping[str, Any]) -> _Array:
        """Return the p-value of each candidate, from `cv_results_` of the search: all test folds together."""
        by_fold = _by_fold(cv_results, _PVALUE)
        with np.errstate(divide="ignore"):
            statistic = -2.0 * np.log(by_fold).sum(axis=1)
        return np.asarray(stats.chi2.sf(statistic, 2 * by_fold.shape[1]))


def _by_fold(cv_results: Mapping[str, Any], score: str) -> _Array:
    """Return the scores of each candidate, a column for each test fold."""
    if not isinstance(cv_results, Mapping):
        raise invalid("cv_results", f"must be `cv_results_` of a search; got {shown(cv_results)}.", TypeError)
    folds = itertools.takewhile(cv_results.__contains__, (f"split{k}_test_{score}" for k in itertools.count()))
    columns = [np.asarray(cv_results[name], dtype=np.float64) for name in folds]
    if not columns:
        option = repr(score) if score in _PROPER and score != _BRIER else ""
        cure = f"Pass scoring=calibration_scoring({option}) to the search"
        raise invalid("cv_results", f"has no scores {score!r}. {cure}, with other scorers added to it if needed.")
    return np.column_stack(columns)


def _refuse_unscored(constant: _Array) -> Exception:
    """Build the error for results without finite scores; `constant`: Brier scores of the best constant in each fold."""
    if np.all(constant == 0.0):
        problem = "has test folds with one class only, in which a constant is always right, so that no skill is known"
        return invalid("cv_results", f"{problem}. Use fewer and larger test folds, such as KFold(5, shuffle=True).")
    problem = "has no candidate with finite scores in all folds"
    return invalid("cv_results", f"{problem}. Pass error_score='raise' to the search to see why.")


def _check_share(min_skill: object) -> float:
    """Check `min_skill`, a number from 0 to 1."""
    share = check_number(min_skill, "min_skill", 0.0)
    if share > 1.0:
        raise invalid("min_skill", f"must be at most 1, the skill of the best candidate; got {share:g}.")
    return share


def _check_proper(score: object) -> None:
    """Check the name of a proper score; the error says why others are not allowed."""
    if isinstance(score, Mapping):  # the search called the function itself
        raise invalid("refit", "must be calibrated_refit(), with parentheses; got the function itself.", TypeError)
    if not isinstance(score, str) or score not in _PROPER:
        reason = "Other scores need not be best for the true probabilities."
        raise invalid("score", f"must be one of {', '.join(map(repr, _PROPER))}; got {shown(score)}. {reason}")
