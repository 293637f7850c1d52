"""Columns of classes in the wrong order: would another order of the columns predict the classes far better?"""

import numpy as np
from scipy import optimize

from truthcal.core.class_rows import ClassRows
from truthcal.results.text import join_words, one_line

# The warning needs this many rows of the classes that would move, this share of them to be right after the move, that
# at least twice as many are right as before, and ten more.
_FEWEST_ROWS, _RIGHT, _TIMES, _MORE = 20, 0.5, 2.0, 10.0
_NAMED = 3


def suspect_column_order(rows: ClassRows) -> tuple[str, str]:
    """Word a suspicion if other labels fit the columns far better, and the reason for it; both empty if not.

    Each row is taken to predict its most probable class. The best order of the labels is that with the most right rows.
    For calibrated predictions it is the order at hand, up to noise.
    """
    k = rows.n_classes
    predicted = np.argmax(rows.p, axis=1)
    counts = np.bincount(predicted * k + rows.y, minlength=k * k).reshape(k, k)
    columns, labels = optimize.linear_sum_assignment(counts, maximize=True)
    # A column that predicts nothing stays: any label fits it equally well.
    moved = np.flatnonzero((columns != labels) & (counts[columns, labels] > 0))
    if not len(moved):
        return "", ""
    n = int(counts[:, labels[moved]].sum())
    before, after = int(counts[labels[moved], labels[moved]].sum()), int(counts[moved, labels[moved]].sum())
    if n < _FEWEST_ROWS or after < max(_RIGHT * n, _TIMES * before, before + _MORE):
        return "", ""
    names = [one_line(str(label)) for label in rows.labels]
    pairs = [f"that of {names[c]} fits {names[labels[c]]}" for c in moved]
    listed = pairs if len(pairs) <= _NAMED else [*pairs[:_NAMED], f"{len(pairs) - _NAMED:,} more"]
    problem = f"Columns of classes may be in the wrong order: {join_words(listed)}."
    share = f"the most probable class is right in {before / n:.0%} of {n:,} rows of these classes"
    return problem, f"As they are, {share}; in that order, in {after / n:.0%}. Check the order of the columns."
