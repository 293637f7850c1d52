"""All measures of one data set at once."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from truthcal.core.checks import invalid
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import run_tasks
from truthcal.core.params import check_choice, shown
from truthcal.core.sample import Sample
from truthcal.measures.registry import MEASURES
from truthcal.results.measures import MeasureTable, MeasureValue


@named_columns
def all_measures(
    y_true: object,
    y_proba: object,
    names: Iterable[str] | None = None,
    *,
    sample_weight: object = None,
    pos_label: object = None,
) -> MeasureTable:
    """Every calibration measure of the same rows, with its properties; the rows are sorted once.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    names : iterable of str, optional
        Names in `MEASURES`, in the order of the result. By default all; a measure that does not support these rows (too
        many different predictions, weights that are not whole) then has the value nan and a note.

    Returns
    -------
    MeasureTable
        Prints as a table; ``table["atb"]`` is a value, and ``table.frame()`` is a data frame. Even
        calibrated predictions do not score 0 on a finite sample, and values on different scales cannot be compared.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.all_measures([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], ["atb", "smcal", "ece"]))
    measure    value  scale        truthful  continuous  complete  sound
    atb      0.01025  squared      yes       yes         yes       yes
    smcal       0.05  probability  no        yes         yes       yes
    ece         0.25  probability  no        no          yes       no
    """
    try:
        chosen = None if names is None else [names] if isinstance(names, str) else list(names)
    except TypeError:
        problem = f"must be names of measures, such as ['atb', 'smcal']; got {shown(names)}."
        raise invalid("names", problem, TypeError) from None
    for name in chosen or ():
        check_choice(name, "names", tuple(MEASURES))
    return all_measures_of(Sample.of(y_true, y_proba, sample_weight, pos_label), chosen)


def all_measures_of(sample: Sample, names: Sequence[str] | None = None, omit: Collection[str] = ()) -> MeasureTable:
    """Build the table of these measures, or of all but those to omit, from sorted rows."""
    wanted = [name for name in MEASURES if name not in omit] if names is None else names
    _ = sample.groups, sample.moments, sample.repetitions  # shared by all threads: compute them first
    # Those that take longest start first, so that all cores finish together.
    order = sorted(set(wanted), key=lambda name: -MEASURES[name].relative_time)

    def measure(name: str) -> float | ValueError:
        try:
            return MEASURES[name].of_sample(sample)
        except ValueError as error:
            return error

    results = dict(zip(order, run_tasks([partial(measure, name) for name in order], sample.n), strict=True))
    unique = len(sample.groups.r) > sample.n / 2
    return MeasureTable(tuple(_overview_row(name, results[name], names is not None, unique) for name in wanted))


def _overview_row(name: str, value: float | ValueError, asked_for: bool, unique: bool) -> MeasureValue:
    measure, note = MEASURES[name], ""
    if isinstance(value, ValueError):
        if asked_for:
            raise value
        value, note = float("nan"), str(value)
    elif unique and not measure.complete:
        note = "not meaningful here, because most predictions are unique"
    flags = measure.truthful, measure.continuous, measure.complete, measure.sound
    return MeasureValue(name, value, measure.scale, *flags, note)
