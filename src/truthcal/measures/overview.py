"""All measures of one data set at once."""

from collections.abc import Iterable

from truthcal._parameters import check_names
from truthcal._results import MeasureTable, MeasureValue
from truthcal._sample import Sample
from truthcal._threads import both
from truthcal.measures import MEASURES

# Those that take longest are started first, so that both cores finish together.
_SLOW = ("distcal", "intcal", "subsampled_smcal", "multiscale_atb", "smcal", "subsampled_step_ce", "smece")


def all_measures(
    y_true: object,
    y_proba: object,
    names: Iterable[str] | None = None,
    *,
    sample_weight: object = None,
    pos_label: object = None,
) -> MeasureTable:
    """Every calibration measure of the same rows, beside what is true of each; the rows are sorted once.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    names : iterable of str, optional
        Which rows of `MEASURES`, in which order. By default all of them; a measure that cannot take these rows (too
        many different predictions, weights that are not whole) then has the value nan and says why.

    Returns
    -------
    MeasureTable
        Prints as a table; ``table["atb"]`` is a value, and ``table.to_dict()`` makes columns for a data frame.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.all_measures([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], ["atb", "smcal", "binned_ece"]))
    measure       value  truthful  continuous  complete  sound
    atb         0.01025  yes       yes         yes       yes
    smcal          0.05  no        yes         yes       yes
    binned_ece     0.25  no        no          yes       no
    """
    wanted = list(MEASURES) if names is None else check_names(names, tuple(MEASURES))
    sample = Sample.of(y_true, y_proba, sample_weight, pos_label)
    _ = sample.groups, sample.moments, sample.repetitions  # shared by both cores, so made before they start
    waiting = iter(sorted(set(wanted), key=lambda name: _SLOW.index(name) if name in _SLOW else len(_SLOW)))
    found: dict[str, float | ValueError] = {}

    def work() -> None:
        for name in waiting:
            try:
                found[name] = MEASURES[name].of_sample(sample)
            except ValueError as error:
                found[name] = error

    both(work, work, sample.n)
    return MeasureTable(tuple(_row(name, found[name], names is not None) for name in wanted))


def _row(name: str, value: float | ValueError, asked_for: bool) -> MeasureValue:
    measure = MEASURES[name]
    if isinstance(value, ValueError) and asked_for:
        raise value
    return MeasureValue(
        name=name,
        value=value if isinstance(value, float) else float("nan"),
        truthful=measure.truthful,
        continuous=measure.continuous,
        complete=measure.complete,
        sound=measure.sound,
        note="" if isinstance(value, float) else str(value),
    )
