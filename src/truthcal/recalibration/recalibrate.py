"""The public function `recalibrate`: check, cross-fit every method, choose one, fit it to all rows."""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import check_rows, invalid, refuse_fractional
from truthcal.core.class_rows import has_classes
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_column import check_groups
from truthcal.core.group_sums import FEWEST_GROUPS
from truthcal.core.params import check_choice, check_flag, check_level, check_rng, check_whole
from truthcal.core.summarize import given_sketch
from truthcal.inference.assess import assess
from truthcal.inference.comparison import compare
from truthcal.inference.paired import paired_mean
from truthcal.recalibration.choice import UNCORRECTED, choose_method, doubts_about, is_significant, rank_methods
from truthcal.recalibration.map_fitting import CellRows, fit_map, methods_for
from truthcal.recalibration.maps import LEAST, METHODS
from truthcal.recalibration.recalibration import Recalibration
from truthcal.results.assessment import Assessment
from truthcal.results.comparison import ComparisonRow
from truthcal.results.recalibration import RecalibrationComparison

_Array = NDArray[np.float64]

# One part of so many is scored. With halves, more rows would be scored, but a map fitted to a half is off by as much as
# the noise of the scored half, so a test of these rows would find an error of the map in more than one of ten cases.
_SCORED = 3


@named_columns
def recalibrate(
    y_true: object,
    y_proba: object = None,
    *,
    method: str = "auto",
    groups: object = None,
    sample_weight: object = None,
    pos_label: object = None,
    alpha: float = 0.05,
    n_splits: int = 5,
    confidence_level: float = 0.95,
    hard: bool = False,
    rng: Any = 0,
) -> Recalibration:
    """Find the function that makes probabilities calibrated, if they are not: ``fix = recalibrate(y, p)``.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, hard
        As for `assess`. These rows must not have been used to train the model: its predictions of them are too good.
    groups : array-like, optional
        Which rows belong together (patients, matches), as for `assess`. A group is never split.
    method : str, default "auto"
        "temperature", "platt", "beta" or "isotonic" fit this method. "auto" chooses among them and "identity", which
        leaves predictions as they are.
    alpha : float, default 0.05
        Level of the test for miscalibration that "auto" needs in order to change anything.
    n_splits : int, default 5
        Number of parts for cross-fitting. The time is proportional to it.
    confidence_level : float, default 0.95
        Level of the intervals in ``fix.comparison``.
    rng : int, numpy Generator or None, default 0
        For splitting the rows.

    Returns
    -------
    Recalibration
        ``fix(p_new)`` recalibrates; ``fix.comparison`` has the scores before and after; ``fix.to_json()`` and
        ``fix.to_sql()`` take it elsewhere. Print it.

    Notes
    -----
    With log-odds l = ln(p / (1 - p)), temperature scaling is the logistic regression of the outcome on l without an
    intercept, Platt scaling that on l, and beta calibration that on ln(p) and -ln(1 - p). These fits equal those of
    scikit-learn's LogisticRegression without a penalty (C=inf) on these features. Isotonic regression is the
    non-decreasing function with the smallest squared error, that of scikit-learn's IsotonicRegression, with ends then
    moved inwards to 1 / (n + 2). scikit-learn's CalibratedClassifierCV differs: its Platt scaling smooths the outcomes.
    No map decreases. None of them but "identity" returns 0 or 1.

    "auto" keeps "identity" unless the calibration test finds miscalibration at level `alpha`. It then takes the
    simplest method whose cross-fitted log loss is within one standard error of the best, "identity" among them: rows
    are split at random into `n_splits` parts, and each part is recalibrated by maps fitted to the others. So a
    calibrated model is left alone with a probability of at least 1 - `alpha`, to the accuracy of the calibration test;
    with `groups`, its level is approximate. Log losses that differ by less than 1e-9 of themselves are ties, and the
    simplest of tied methods is the best one. The map that is returned is fitted to all rows.

    A slope cannot be estimated from one prediction, nor two slopes from two. With a single distinct prediction, "auto"
    tries neither temperature scaling nor beta calibration, and the others add a number to the log-odds ("platt",
    "beta": slopes are 1) or are constant ("isotonic"). With two, it does not try beta calibration, which equals Platt
    scaling then. Predictions whose log-odds differ by less than 1e-6 count as one.

    "auto" also keeps "identity" if there are fewer than 10 events or 10 non-events, if predictions and outcomes are
    negatively correlated (the column of the wrong class, probably: no map that does not decrease can help), or if
    predictions separate events from all other rows (the model was probably trained on these rows). A method that is
    requested by name is fitted in these cases, too, with a warning. If "auto" keeps "identity" although miscalibration
    is significant, ``fix.warnings`` says so, and ``fix.reason`` why.

    Log losses before and after are those of all rows, cross-fitted. ATB, Brier score and the size of the error are
    those of a random third of the rows, recalibrated by a map fitted to the others. Cross-fitted predictions would not
    do for calibration: a part whose outcomes exceed the predictions by chance raises the maps of all other parts, so
    the errors of parts cancel, and calibration looks as good as that of rows used for the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> overconfident = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> fix = tc.recalibrate(outcome, overconfident)
    >>> fix.method
    'temperature'
    >>> fix([0.1, 0.5, 0.9]).round(2)
    array([0.24, 0.5 , 0.76])
    """
    check_choice(method, "method", ("auto", *METHODS))
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    n_splits, rng = check_whole(n_splits, "n_splits", 2), check_rng(rng)
    rows = _Rows.of(y_true, y_proba, sample_weight, pos_label, groups)
    whole = rows.assess(rows.p, alpha, level, hard=check_flag(hard, "hard"))
    folds, thirds = rows.split(n_splits, rng), rows.split(_SCORED, rng)
    cells = CellRows.of(rows.p, rows.y, rows.w, folds)
    two_thirds = cells._replace(part=thirds).without(0)
    wanted = _wanted(method, cells.p) if two_thirds.fits else ("identity",)
    fitted = _cross_fit(wanted, rows.p, cells)
    candidates = rank_methods({name: rows.log_loss(p) for name, p in fitted.items()}, rows.w, rows.groups)
    doubts = doubts_about(whole, int(np.sum(rows.y)))
    chosen, reason = method, "This method was requested."
    if method == "auto":
        chosen, reason = choose_method(candidates, whole, alpha, doubts)
    final, scored = fit_map(chosen, cells.without(None)), fit_map(chosen, two_thirds)
    if final is None or scored is None or chosen not in fitted:
        raise _cannot_fit(chosen)
    held_out = rows.part(thirds == 0)
    p_after = scored(held_out.p)
    before = held_out.assess(held_out.p, alpha, level)
    after = before if chosen == "identity" else held_out.assess(p_after, alpha, level)
    names = ("before", "after")
    scores = compare(held_out.y, held_out.p, p_after, confidence_level=level, names=names, **held_out.options)
    log_loss = _compare_log_loss(rows, fitted[chosen], level)
    comparison = RecalibrationComparison(scores, log_loss, len(rows.p))
    if chosen == "identity":
        doubts = [UNCORRECTED] if method == "auto" and is_significant(whole, alpha) else []
    return Recalibration(chosen, final, reason, comparison, candidates, tuple(doubts), whole, before, after)


class _Rows(NamedTuple):
    """Checked rows: predictions, outcomes, weights with mean 1, and the number of each row's group."""

    p: _Array
    y: _Array
    w: _Array
    groups: NDArray[np.int64] | None
    weighted: bool

    @classmethod
    def of(cls, y_true: object, y_proba: object, sample_weight: object, pos_label: object, groups: object) -> Self:
        """Check the arguments of the public function."""
        if given_sketch(y_true, y_proba, sample_weight, pos_label, groups) is not None:
            cure = "`recalibrate` needs the rows: recalibrate(y_true, y_proba)."
            raise invalid("y_true", f"is a Sketch, whose rows are summarized. {cure}", TypeError)
        if has_classes(y_proba):
            cure = "Pass one column, and `y_true == label` for its class."
            raise invalid("y_proba", f"must be one-dimensional: `recalibrate` handles one event. {cure}")
        rows = check_rows(y_true, y_proba, sample_weight, pos_label)
        refuse_fractional(rows.y)
        if len(rows.p) < _SCORED + 1:
            problem = f"must have at least {_SCORED + 1} rows with positive weight, a third of them for scores"
            raise invalid("y_true", f"{problem}; got {len(rows.p)}.")
        numbers = None if groups is None else check_groups(groups, y_proba, sample_weight)
        if numbers is not None and (n_groups := int(numbers.max()) + 1) < _SCORED * FEWEST_GROUPS:
            problem = (
                f"must have at least {_SCORED * FEWEST_GROUPS} groups, a third of them for scores; got {n_groups}."
            )
            raise invalid("groups", problem)
        w = np.ones(len(rows.p)) if rows.w is None else rows.w / np.mean(rows.w)
        return cls(rows.p.astype(np.float64), rows.y.astype(np.float64), w, numbers, rows.w is not None)

    def part(self, chosen: NDArray[np.bool_]) -> Self:
        """Return some of the rows."""
        groups = None if self.groups is None else np.unique(self.groups[chosen], return_inverse=True)[1]
        return self._replace(p=self.p[chosen], y=self.y[chosen], w=self.w[chosen], groups=groups)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for `assess` and `compare`."""
        return {"sample_weight": self.w if self.weighted else None, "groups": self.groups, "hard": True}

    def assess(self, p: _Array, alpha: float, level: float, hard: bool = True) -> Assessment:
        """Assess predictions of these rows."""
        result = assess(self.y, p, alpha=alpha, confidence_level=level, **{**self.options, "hard": hard})
        assert isinstance(result, Assessment)  # one column of predictions
        return result

    def split(self, n_splits: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return the part of each row: at random and of equal sizes, groups as a whole."""
        n = len(self.p) if self.groups is None else int(self.groups.max()) + 1
        part = rng.permutation(n) % min(n_splits, n)
        return part if self.groups is None else part[self.groups]

    def log_loss(self, p: _Array) -> _Array:
        """Log loss of each row, as if no prediction were closer to 0 or 1 than LEAST."""
        p = np.clip(p, LEAST, 1.0 - LEAST)
        return -np.where(self.y > 0.0, np.log(p), np.log1p(-p))


def _wanted(method: str, p: _Array) -> tuple[str, ...]:
    """Return the methods to try for these distinct predictions."""
    return methods_for(p) if method == "auto" else tuple(dict.fromkeys(("identity", method)))


def _cross_fit(methods: tuple[str, ...], p: _Array, cells: CellRows) -> dict[str, _Array]:
    """Recalibrate each part by maps fitted to the others; methods that cannot be fitted are left out."""
    recalibrated = {name: np.empty(len(p)) for name in methods}
    for part in range(int(cells.part.max()) + 1):
        held_out, others = cells.part == part, cells.without(part)
        for name in tuple(recalibrated):
            fitted = fit_map(name, others)
            if fitted is None:
                del recalibrated[name]
            else:
                recalibrated[name][held_out] = fitted(p[held_out])
    return recalibrated


def _cannot_fit(method: str) -> Exception:
    """Build the error for a method that cannot be fitted."""
    problem = f"{method!r} cannot be fitted: there are too few events, or too few other rows."
    return invalid("method", f"{problem} Collect more rows, or pass method='auto'.")


def _compare_log_loss(rows: _Rows, after: _Array, level: float) -> ComparisonRow:
    """Compare the log losses of all rows before and after, by maps that were fitted to other rows."""
    losses = [-special.xlogy(rows.y, p) - special.xlog1py(1.0 - rows.y, -p) for p in (rows.p, after)]
    a, b = (float(np.average(loss, weights=rows.w)) for loss in losses)
    if np.isinf(a):  # an outcome had a predicted probability of 0
        return ComparisonRow("log loss", a, b, math.nan if np.isinf(b) else a, math.nan, math.nan, math.nan)
    gap = paired_mean(losses[0] - losses[1], rows.w, rows.groups)
    return ComparisonRow("log loss", a, b, gap.mean, *gap.interval(level), gap.pvalue)
