"""Scorers of scikit-learn: callables ``scorer(estimator, X, y, sample_weight=None)`` that return a number.

They are objects of their own, since those of `make_scorer` do not tell the score function which classes the estimator
knows: a test fold may lack some of them.
"""

import uuid
import zlib
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from sklearn.utils.metadata_routing import MetadataRequest

from truthcal.core.checks import check_rows, invalid
from truthcal.core.class_rows import check_class_rows
from truthcal.core.params import shown
from truthcal.inference.calibration_test import calibration_test
from truthcal.measures.atb import atb_summary
from truthcal.measures.multiclass import multiclass_atb, multiclass_brier
from truthcal.measures.registry import MEASURES
from truthcal.sklearn.estimator_rows import predict_rows
from truthcal.sklearn.folds import notice_fold
from truthcal.sklearn.misuse import refuse_uncalled, warn_caller

# Redraws of small folds. Those of all folds are combined, so that the p-value of a candidate can still be tiny.
_RESAMPLES = 999
_TRUTHFUL = tuple(name for name, row in MEASURES.items() if row.truthful)


class ProbabilityScorer:
    """Base class of scorers that compare the output of `predict_proba` with outcomes. Larger scores are better.

    Parameters
    ----------
    pos_label : optional
        The class that is the event; the second of the estimator's classes by default.
    """

    # Metadata beside weights that this scorer requests by default, as a splitter by groups does.
    _requested: ClassVar[tuple[str, ...]] = ()

    def __init__(self, pos_label: object = None) -> None:
        self.pos_label = pos_label
        self._requests: dict[str, bool | str | None] = {"sample_weight": None, **dict.fromkeys(self._requested, True)}

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Score a fitted estimator."""
        return self._score(predict_rows(estimator, X, y_true, sample_weight, self.pos_label))

    def _score(self, rows: dict[str, Any]) -> float:
        """Return the score of rows, the arguments of measures by name."""
        raise NotImplementedError

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Set whether scikit-learn passes sample weights to this scorer, as for its own scorers.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: weights are passed. False: they are not. None: passing weights is an error. A str: the name under
            which weights are passed.

        Returns
        -------
        scorer
            Itself.
        """
        if not sklearn.get_config()["enable_metadata_routing"]:
            cure = "Call sklearn.set_config(enable_metadata_routing=True) first."
            raise RuntimeError(f"set_score_request needs metadata routing. {cure}")
        if not (sample_weight is None or isinstance(sample_weight, bool) or _is_parameter_name(sample_weight)):
            rule = "must be True, False, None or the name under which weights are passed"
            raise invalid("sample_weight", f"{rule}; got {shown(sample_weight)}.", TypeError)
        self._requests["sample_weight"] = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that this scorer requests from scikit-learn."""
        request = MetadataRequest(owner=repr(self))
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        """Answer scikit-learn, which asks this of each of several scorers if metadata routing is off."""
        return True


class MeasureScorer(ProbabilityScorer):
    """Scorer that returns a truthful calibration measure times -1."""

    def __init__(self, measure: str, pos_label: object = None) -> None:
        super().__init__(pos_label)
        self.measure = measure
        self._name = uuid.uuid4().hex  # of its history of test folds, which copies in other processes share

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Score a fitted estimator."""
        score = super().__call__(estimator, X, y_true, sample_weight)
        events = notice_fold(self._name, X, y_true)
        if events is not None:
            _warn_of_stratified_folds(events)
        return score

    def _score(self, rows: dict[str, Any]) -> float:
        if "labels" not in rows:
            return -MEASURES[self.measure].function(**rows)
        if self.measure != "atb":
            problem = f"{self.measure!r} is for two classes, and the estimator has {len(rows['labels'])}"
            raise invalid("measure", f"{problem}. Use 'atb', which is truthful for any number of classes.")
        return -multiclass_atb(**rows)

    def __repr__(self) -> str:
        return f"calibration_scorer({self.measure!r}{_option('pos_label', self.pos_label)})"


class PvalueScorer(ProbabilityScorer):
    """Scorer that returns the p-value of the calibration test: small if predictions are miscalibrated.

    With metadata routing it gets the groups of a search, too: if rows belong together, only a test by groups is valid.
    """

    _requested = ("groups",)

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Test a fitted estimator."""
        return self._score(predict_rows(estimator, X, y_true, sample_weight, self.pos_label) | {"groups": groups})

    def _score(self, rows: dict[str, Any]) -> float:
        test = calibration_test(**rows, hard=True, n_resamples=_RESAMPLES, rng=seed_of(rows))
        return 0.0 if test.impossible else test.greater

    def __repr__(self) -> str:
        return f"<p-value of calibration_test{_option('pos_label', self.pos_label)}>"


def seed_of(rows: Mapping[str, Any]) -> int:
    """Return a seed that depends on the rows of a test fold.

    With one seed for all folds, their p-values share the error of the redraws, which Fisher's method adds up: of true
    probabilities of 300 rows, 1.8% had a p-value of at most 0.01.
    """
    codes = np.unique(np.asarray(rows["y_true"]), return_inverse=True)[1].astype(np.int32)
    proba = np.ascontiguousarray(rows["y_proba"], dtype=np.float64)
    return zlib.crc32(proba.tobytes(), zlib.crc32(codes.tobytes()))


class BrierScorer(ProbabilityScorer):
    """Scorer that returns the Brier score times -1, for labels of any type and any number of classes.

    That of scikit-learn needs `pos_label` for text, and before version 1.7 two classes.
    """

    def _score(self, rows: dict[str, Any]) -> float:
        if "labels" not in rows:
            return -atb_summary(**rows).brier
        checked = check_class_rows(**rows)
        return -2.0 * float(np.average(multiclass_brier(checked), weights=checked.w))

    def __repr__(self) -> str:
        return f"<negative Brier score{_option('pos_label', self.pos_label)}>"


class LogLossScorer(ProbabilityScorer):
    """Scorer that returns the log loss times -1, also if a test fold lacks a class; scikit-learn's own refuses this.

    Like `sklearn.metrics.log_loss`, it clips predictions to [eps, 1 - eps], where eps is that of their type.
    """

    def _score(self, rows: dict[str, Any]) -> float:
        labels = rows.get("labels")
        if labels is None:
            checked = check_rows(rows["y_true"], rows["y_proba"], rows["sample_weight"], rows["pos_label"])
            p = np.where(checked.y > 0, checked.p, 1.0 - checked.p.astype(np.float64))
            weight = checked.w
        else:
            classes = check_class_rows(**rows)
            p, weight = classes.p[np.arange(classes.n), classes.y], classes.w
        eps = _resolution(rows["y_proba"])
        return float(np.average(np.log(np.clip(p, eps, 1.0 - eps)), weights=weight))

    def __repr__(self) -> str:
        return f"<negative log loss{_option('pos_label', self.pos_label)}>"


class ConstantScorer(ProbabilityScorer):
    """Scorer that returns the Brier score, times -1, of the best constant: the shares of the classes in these rows."""

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Score the constant. The estimator only says whether there are two classes or more."""
        labels, codes = np.unique(np.asarray(y_true), return_inverse=True)
        shares = np.bincount(codes, weights=sample_weight)
        brier = 1.0 - float(np.sum((shares / shares.sum()) ** 2))
        return -brier / (2.0 if len(getattr(estimator, "classes_", labels)) == 2 else 1.0)

    def __repr__(self) -> str:
        return "<negative Brier score of a constant>"


@refuse_uncalled
def calibration_scorer(measure: str = "atb", *, pos_label: object = None) -> MeasureScorer:
    """Make a scorer of scikit-learn from a truthful calibration measure.

    Parameters
    ----------
    measure : str, default "atb"
        A truthful measure: "atb", "multiscale_atb", "information_atb", "quantile_ece" or "shifted_grid_ubse". For more
        than two classes, "atb", which is then `multiclass_atb`.
    pos_label : optional
        The class that is the event; the second of the estimator's ``classes_`` by default.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)`` returns the measure times -1, so that larger is better. Pass it
        as `scoring` to `cross_validate`, `permutation_importance` and others. With metadata routing,
        ``scorer.set_score_request(sample_weight=True)`` requests weights.

    Notes
    -----
    Do not choose a model by calibration alone: predictions that are nearly constant are calibrated, too. Use
    `calibrated_refit`.

    The scorer warns if it sees stratified folds, which are the default of scikit-learn for classifiers. They fix the
    number of events in each fold, so that outcomes are not independent and calibration measures are not truthful. It
    notices them by the numbers of events in test folds, which are more equal than chance allows, with a probability of
    a false alarm below 1%. This needs enough events: with five folds, about 400 rows of which 20 to 80% are events, or
    5,000 rows of which 5% are. Folds whose sizes differ by more than one row, as those of `StratifiedGroupKFold` often
    do, are not noticed. With ``n_jobs``, each process counts the folds that it has seen. The warning comes once
    for each data set: a scorer cannot tell a second search from another candidate of the first one.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truthcal.sklearn import calibration_scorer
    >>> X, y = make_classification(random_state=0)
    >>> folds = KFold(5, shuffle=True, random_state=0)
    >>> scores = cross_val_score(GaussianNB(), X, y, cv=folds, scoring=calibration_scorer("atb"))
    >>> print(scores.round(4))
    [-0.0192 -0.0428 -0.0026 -0.0018 -0.0068]
    """
    if measure not in _TRUTHFUL:
        allowed = ", ".join(map(repr, _TRUTHFUL))
        known = isinstance(measure, str) and measure in MEASURES
        reason = f"{measure!r} is not truthful: a model can improve it by predicting other than what it knows"
        raise invalid("measure", f"must be one of {allowed}; {reason if known else f'got {shown(measure)}'}.")
    return MeasureScorer(measure, pos_label)


@refuse_uncalled
def atb_scorer(*, pos_label: object = None) -> MeasureScorer:
    """Make a scorer of scikit-learn that returns ATB times -1; for more than two classes, that of `multiclass_atb`.

    Parameters
    ----------
    pos_label : optional
        The class that is the event; the second of the estimator's ``classes_`` by default.

    Returns
    -------
    scorer : callable
        As of `calibration_scorer`, whose notes apply.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truthcal.sklearn import atb_scorer
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> print(round(atb_scorer()(GaussianNB().fit(X, y), X, y), 4))
    -0.0076
    """
    return MeasureScorer("atb", pos_label)


def _is_parameter_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _resolution(y_proba: object) -> float:
    """Return the eps of the type of predictions; that of float64 if they are no floats."""
    kind = np.asarray(y_proba).dtype
    return float(np.finfo(kind if kind.kind == "f" else np.float64).eps)


def _option(name: str, value: object) -> str:
    return "" if value is None else f", {name}={value!r}"


def _warn_of_stratified_folds(events: list[int]) -> None:
    counts = ", ".join(map(str, events[:5])) + (", ..." if len(events) > 5 else "")
    problem = f"Test folds have nearly the same number of rows of one class ({counts}), as stratified folds do"
    effect = "outcomes are then not independent, and constant predictions have the best calibration score"
    cure = (
        "Pass cv=KFold(5, shuffle=True, random_state=0). Never choose a model by this score alone; calibrated_refit() "
        "chooses by a proper score."
    )
    warn_caller(f"{problem}: {effect}. {cure}")
