"""Paired comparison of several forecasters of the same events: all pairs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.frame_columns import columns_by_name, named_columns
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import shown
from truthcal.inference.comparison import compare_pairs
from truthcal.inference.segments import holm
from truthcal.results.comparison import Comparison
from truthcal.results.comparison_table import ComparisonTable


@one_blas_thread()
@named_columns
def compare_models(
    y_true: object,
    y_proba: object,
    *,
    measure: str = "atb",
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
    hard: bool = False,
    groups: object = None,
    labels: object = None,
) -> ComparisonTable:
    """Which of several forecasters have the better scores? Paired comparisons of all pairs, as by `compare`.

    Parameters
    ----------
    y_true, measure, confidence_level, sample_weight, pos_label, hard, groups, labels
        As for `compare`.
    y_proba : mapping of str to array-like, or data frame
        Predictions of the same events or classes, row by row, by the name of the forecaster; two or more. A data frame,
        or a list of columns of the frame that is passed first, has a forecaster in each column.

    Returns
    -------
    ComparisonTable
        ``comparisons``: a `Comparison` for each pair; ``adjusted`` and ``brier_adjusted``: their p-values, adjusted for
        the number of pairs. Prints in words.

    Notes
    -----
    P-values are adjusted by Holm's method, those of the measure and those of the Brier score separately: if no two
    forecasters differ in a score, the probability of any finding by that score is at most ``1 - confidence_level``.
    Intervals are those of `compare`, for each pair alone. Each forecaster's rows are sorted once; a pair takes about a
    tenth of a second.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> outcome = rng.random(3000) < truth
    >>> found = tc.compare_models(outcome, {"honest": truth, "timid": 0.25 + truth / 2, "constant": np.full(3000, 0.5)})
    >>> len(found)
    3
    >>> print(found.verdict.splitlines()[0])
    honest has the best Brier score (3 models, 3,000 rows).
    """
    models = _check_models(y_proba)
    pairs = compare_pairs(
        y_true,
        {f"y_proba[{name!r}]": p for name, p in models.items()},
        measure=measure,
        confidence_level=confidence_level,
        sample_weight=sample_weight,
        pos_label=pos_label,
        hard=hard,
        groups=groups,
        labels=labels,
    )
    names = {f"y_proba[{name!r}]": name for name in models}
    return table_of_pairs({(names[a], names[b]): found for (a, b), found in pairs.items()})


def _check_models(y_proba: Any) -> dict[str, Any]:
    """Check the predictions of several models by name; the columns of a frame have their own names."""
    models = y_proba if isinstance(y_proba, Mapping) else columns_by_name(y_proba, "y_proba")
    if models is None or len(models) < 2:
        rule = "must be a mapping of names to the predictions of two or more models"
        columns = [] if models is None or isinstance(y_proba, Mapping) else list(models)
        found = f"one column, {columns[0]!r}" if columns else shown(y_proba)
        raise invalid("y_proba", f"{rule}, like {{'old': p, 'new': q}}; got {found}.", TypeError)
    for name in models:
        if not isinstance(name, str):
            raise invalid("y_proba", f"must have names that are str; got {shown(name)}. Use str(name).", TypeError)
    return dict(models)


def table_of_pairs(pairs: Mapping[tuple[str, str], Comparison]) -> ComparisonTable:
    """Return the table of compared models by the names of each pair, with adjusted p-values."""
    named = tuple(replace(found, names=names) for names, found in pairs.items())
    adjusted = holm(np.array([found.pvalue for found in named]))
    brier = holm(np.array([found.brier_pvalue for found in named]))
    return ComparisonTable(named, tuple(adjusted.tolist()), tuple(brier.tolist()))
