"""Calibration errors of predictions with many classes: vector, classwise, canonical and top-label ATB."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, invalid, read_only
from truthcal.core.class_rows import ClassRows, check_class_rows
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import run_tasks
from truthcal.core.params import check_choice
from truthcal.core.sample import Sample
from truthcal.kernels import multiclass as kernel
from truthcal.measures.atb import atb_of

_Array = NDArray[np.float64]

# The canonical definition compares all pairs of rows: so many take a few seconds with ten classes.
MOST_CANONICAL_ROWS = 20_000
_CANONICAL_PARTS = 64


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of the ATB of many classes.

    Attributes
    ----------
    name, meaning : str
        The name, and in words what calibration means by this definition.
    truthful : bool
        Whether the honest report has the smallest expected value, whatever the truth, for independent outcomes.
    cost : str
        Time for n rows and k classes.
    """

    name: str
    meaning: str
    truthful: bool
    cost: str


DEFINITIONS: Mapping[str, Definition] = MappingProxyType(
    {
        row.name: row
        for row in (
            Definition(
                "vector",
                "where any class is predicted with more than a given probability, all classes happen as often as "
                "predicted",
                True,
                "O(k n log n + k^2 n)",
            ),
            Definition(
                "classwise",
                "each class happens as often as predicted, whatever the other classes do",
                True,
                "O(k n log n)",
            ),
            Definition(
                "canonical",
                "rows with similar probabilities of all classes have classes as often as predicted",
                True,
                f"O(k n^2); at most {MOST_CANONICAL_ROWS:,} rows",
            ),
            Definition(
                "top_label",
                "the most probable class is right as often as predicted; other probabilities do not count, and a "
                "forecaster can gain by not telling the truth",
                False,
                "O(k n + n log n)",
            ),
        )
    }
)


@named_columns
def multiclass_atb(
    y_true: object, y_proba: object, *, definition: str = "vector", labels: object = None, sample_weight: object = None
) -> float:
    """Averaged two-bin calibration error of predictions with many classes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The class of each row: numbers or text.
    y_proba : array-like of shape (n, k)
        Probabilities of the classes. Rows add up to 1, within 0.001.
    definition : {"vector", "classwise", "canonical", "top_label"}, default "vector"
        What calibration means:

        - "vector": for each class k and threshold q, rows with p_k > q have all classes as often as predicted;
        - "classwise": the mean of the ATB of each class against the rest;
        - "canonical": rows with similar probabilities have all classes as often as predicted. At most 20,000 rows;
        - "top_label": the ATB of the most probable class and whether it is right. It is not truthful: the other three
          are smallest, in expectation, for the true probabilities; this one can be made smaller by a lie.
    labels : array-like of shape (k,), optional
        The class of each column. Default: the names of the columns of a data frame, which must be the labels in
        `y_true`; without names, the labels in `y_true` in increasing order (as scikit-learn orders the columns of
        ``predict_proba``), or 0 to k - 1.
    sample_weight : array-like of shape (n,), optional
        Weights, finite and not negative.

    Returns
    -------
    float
        Between 0 (best) and 2 (1 for "classwise" and "top_label").

    Notes
    -----
    With c_i = p_i - y_i, a vector with an entry for each class, and TV the total variation distance,

        vector = (1/W^2) * sum over i, j of w_i w_j <c_i, c_j> (1 - TV(p_i, p_j))
               = (1/W^2) * sum over classes k of the integral over q of |sum over p_ik > q of w_i c_i|^2,

    since 1 - TV(p, p') is the sum over k of min(p_k, p'_k). It is computed in O(k n log n + k^2 n) from one sort for
    each class; memory: 4 k n bytes beside the rows. For two classes it is twice the ATB. The kernel of "canonical" is
    the product over k of 1 - |p_ik - p_jk|. Kernels that are positive semidefinite and 1 for equal predictions make a
    measure truthful (docs/theory/multiclass.md). If several classes are most probable, "top_label" uses the first one.

    Examples
    --------
    >>> import truthcal as tc
    >>> y = ["cat", "dog", "owl", "dog"]
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.5, 0.0]]
    >>> round(tc.multiclass_atb(y, p), 6)
    0.042
    >>> round(tc.multiclass_atb(y, p, definition="top_label"), 6)
    0.014875
    """
    check_choice(definition, "definition", tuple(DEFINITIONS))
    return multiclass_atb_of(check_class_rows(y_true, y_proba, sample_weight, labels), definition)


def multiclass_atb_of(rows: ClassRows, definition: str = "vector") -> float:
    """The ATB of checked rows with many classes."""
    return _OF_DEFINITION[definition](rows)


def vector_atb_of(rows: ClassRows) -> float:
    """The vector ATB of checked rows. Two classes have twice the binary ATB, which is computed more precisely."""
    if rows.n_classes == 2:
        return 2.0 * atb_of(Sample.from_checked(rows.one_against_rest(1)))
    tasks = [partial(kernel.vector_integral, rows.orders[k], rows.p, rows.y, rows.w, k) for k in range(rows.n_classes)]
    return math.fsum(run_tasks(tasks, rows.p.size)) / rows.total**2


def vector_influence_of(rows: ClassRows) -> _Array:
    """Influence of each row on the vector ATB, (1/W) sum over j of w_j <c_i, c_j> (1 - TV): its mean is the measure."""

    def of_class(k: int) -> _Array:
        out = np.empty(rows.n)
        kernel.vector_influence(rows.orders[k], rows.p, rows.y, rows.w, k, out)
        return out

    total = np.zeros(rows.n)
    for part in run_tasks([partial(of_class, k) for k in range(rows.n_classes)], rows.p.size):
        total += part
    return total / rows.total


def _classwise_atb_of(rows: ClassRows) -> float:
    of_class = [atb_of(Sample.from_checked(rows.one_against_rest(k))) for k in range(rows.n_classes)]
    return math.fsum(of_class) / rows.n_classes


def _canonical_atb_of(rows: ClassRows) -> float:
    if rows.n > MOST_CANONICAL_ROWS:
        problem = f'"canonical" compares all pairs of rows, and {rows.n:,} rows have {rows.n**2:.2g} pairs'
        cure = f'Pass at most {MOST_CANONICAL_ROWS:,} rows, or use "vector".'
        raise invalid("definition", f"{problem}. {cure}")
    # Parts with about equal numbers of pairs.
    edges = [round(rows.n * math.sqrt(part / _CANONICAL_PARTS)) for part in range(_CANONICAL_PARTS + 1)]
    tasks = [partial(kernel.canonical_sums, rows.p, rows.y, rows.w, first, last) for first, last in pairwise(edges)]
    return max(math.fsum(run_tasks(tasks, rows.n**2 // 100)) / rows.total**2, 0.0)


def top_label(rows: ClassRows) -> Checked:
    """The probability of the most probable class of each row, the first one if tied, and whether it is right."""
    top = np.argmax(rows.p, axis=1)
    y = read_only((top == rows.y).view(np.uint8))
    p = read_only(rows.p[np.arange(rows.n), top])
    return Checked(p, y, read_only(rows.w) if rows.weighted else None)


def _top_label_atb_of(rows: ClassRows) -> float:
    return atb_of(Sample.from_checked(top_label(rows)))


_OF_DEFINITION: dict[str, Callable[[ClassRows], float]] = {
    "vector": vector_atb_of,
    "classwise": _classwise_atb_of,
    "canonical": _canonical_atb_of,
    "top_label": _top_label_atb_of,
}


def multiclass_noise_floor(rows: ClassRows) -> float:
    """Expected vector ATB of calibrated predictions: sum of w^2 (1 - |p|^2) / W^2."""
    return float(np.sum(rows.w**2 * uncertainty(rows.p))) / rows.total**2


def uncertainty(p: _Array) -> _Array:
    """Variance of the class of each row with many classes, 1 - |p|^2: twice p(1 - p) for two classes."""
    return np.asarray(np.maximum(1.0 - np.einsum("ik,ik->i", p, p), 0.0))


def multiclass_brier(rows: ClassRows) -> _Array:
    """Brier score of each row with many classes: half of |p - y|^2, which is (p - y)^2 for two classes."""
    squares = np.einsum("ik,ik->i", rows.p, rows.p)
    return np.asarray((squares - 2.0 * rows.p[np.arange(rows.n), rows.y] + 1.0) / 2.0)
