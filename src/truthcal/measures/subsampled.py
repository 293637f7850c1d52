"""Calibration errors of a random half of the rows: nearly truthful for sequential forecasters."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import random_streams, run_tasks
from truthcal.core.params import check_choice, check_counts, check_rng, check_whole
from truthcal.core.sample import Groups, Sample
from truthcal.kernels import subsampled
from truthcal.kernels.smcal import smooth_error
from truthcal.measures.smooth import NO_FIT
from truthcal.results.measures import Estimate

_Array = NDArray[np.float64]

_DRAWS = 100
# Up to this many rows all subsets are enumerated.
_FEW_ROWS = 10
# Neighbouring predictions are merged into at most this many groups.
_MOST_GROUPS = 1 << 14
# Binomial draws of up to this many rows count the bits of one random word.
_WORD = 64
# Error of different predictions with their cumulative bias.
_ERRORS: dict[str, Callable[[_Array, _Array], float]] = {
    "smcal": lambda r, cumulative: smooth_error(read_only(r), read_only(cumulative), NO_FIT),
    "step_ce": lambda r, cumulative: float(np.max(np.abs(cumulative))),
}


class _Rows(NamedTuple):
    """Distinct rows: `r` increasing, outcome `y`, and their `count`. `size`: the number of all rows."""

    r: _Array
    y: _Array
    counts: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, sample: Sample) -> "_Rows":
        if sample.weighted:
            check_counts(sample.repetitions)
        if not sample.counted and ((sample.y != 0) & (sample.y != 1)).any():  # fractional outcomes: rows are not merged
            order = np.lexsort((sample.y, sample.p))
            r, y, count = sample.p[order].astype(np.float64), sample.y[order], sample.repetitions[order]
        else:
            merged, zeros, ones = _merge_groups(sample.groups)
            r, y = np.repeat(merged, 2), np.tile([0.0, 1.0], len(merged))
            count = np.ldexp(np.stack([zeros, ones], axis=1).ravel(), sample.exponent)
            r, y, count = r[count > 0], y[count > 0], count[count > 0]
        whole = np.rint(count).astype(np.int64)
        return cls(r, y, whole, int(whole.sum()))

    def draws(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """Yield random subsets, without end: how many of each distinct row are in a random half."""
        unused = np.uint64(_WORD) - np.minimum(self.counts, _WORD).astype(np.uint64)
        more = np.flatnonzero(self.counts > _WORD)
        while True:
            bits = rng.integers(0, 2**64, len(self.counts), np.uint64)
            subset = np.bitwise_count(bits >> unused).astype(np.int64)
            subset[more] = rng.binomial(self.counts[more], 0.5)
            yield subset

    def all(self) -> Iterator[tuple[NDArray[np.int64], float]]:
        """Yield every subset with its probability."""
        for subset in np.ndindex(*(self.counts + 1)):
            ways = math.prod(math.comb(int(n), k) for n, k in zip(self.counts, subset, strict=True))
            yield np.array(subset, np.int64), ways / 2.0**self.size


def _merge_groups(groups: Groups) -> tuple[_Array, _Array, _Array]:
    """Predictions to subsample, with weights of zeros and ones; if there are too many, neighbours are merged."""
    r, w, wy, _, _ = groups
    if len(r) <= _MOST_GROUPS:
        return r, w - wy, wy
    merged = np.empty((3, _MOST_GROUPS + 1))
    count = subsampled.merge_groups(r, w, wy, _MOST_GROUPS, merged)
    return merged[0, :count], merged[1, :count], merged[2, :count]


@named_columns
def subsampled_smcal(
    y_true: object,
    y_proba: object,
    *,
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Subsampled smooth calibration error (SSCE): the average contribution of a random half of the rows to smCal.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, but weights must be whole numbers: a row of weight 2 stands for two rows, each kept or not.
    n_resamples : int, default 100
        Number of random halves. For ten rows or fewer all subsets are enumerated instead.
    rng : int, numpy Generator or None, default 0
        Source of randomness. With the default the same rows always give the same value; None draws a new seed.

    Returns
    -------
    float
        Between 0 (best) and 1/2 or so, and at least half of `smcal`: sums over kept rows are divided by the number of
        all. For its standard error see `subsampled_estimate`. Truthful up to a constant factor for sequential
        forecasters.

    Notes
    -----
    Each row is kept with probability 1/2; the result is the mean over draws of ``max over Lipschitz f of sum over kept
    rows of (p - y) f(p) / T``. O(n log n) for each draw. With 0/1 outcomes and more than 16,384 different predictions,
    neighbours are merged, which changes the result by less than 5e-5 (1.4e-4 with ties; docs/theory/measures.md).
    Reference: Haghtalab, Qiao, Yang, Zhao (2024), Truthfulness of Calibration Measures.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.subsampled_smcal([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.5f}")
    0.06969
    """
    return subsampled_smcal_of(Sample.of(y_true, y_proba, sample_weight, pos_label), n_resamples=n_resamples, rng=rng)


def subsampled_smcal_of(sample: Sample, *, n_resamples: int = _DRAWS, rng: Any = 0) -> float:
    """SSCE of sorted rows."""
    return _average_over_subsets(sample, "smcal", n_resamples, rng).value


@named_columns
def subsampled_step_ce(
    y_true: object,
    y_proba: object,
    *,
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Subsampled step calibration error: the average contribution of a random half of the rows to StepCE.

    Parameters
    ----------
    y_true, y_proba, n_resamples, rng, sample_weight, pos_label
        As for `subsampled_smcal`.

    Returns
    -------
    float
        As for `subsampled_smcal`, and at least half of `step_ce`. Truthful up to a constant factor for sequential
        forecasters of independent outcomes.

    Notes
    -----
    As `subsampled_smcal`, with the largest absolute cumulative sum instead of the maximum over Lipschitz functions.
    Merging neighbours, beyond 16,384 different predictions, moves the result by less than 8e-5 (1.4e-4 with ties).
    Reference: Qiao, Zhao (2025), Truthfulness of Decision-Theoretic Calibration Measures.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.subsampled_step_ce([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.5f}")
    0.07969
    """
    return subsampled_step_ce_of(Sample.of(y_true, y_proba, sample_weight, pos_label), n_resamples=n_resamples, rng=rng)


def subsampled_step_ce_of(sample: Sample, *, n_resamples: int = _DRAWS, rng: Any = 0) -> float:
    """Subsampled StepCE of sorted rows."""
    return _average_over_subsets(sample, "step_ce", n_resamples, rng).value


@named_columns
def subsampled_estimate(
    y_true: object,
    y_proba: object,
    measure: str = "smcal",
    *,
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> Estimate:
    """A subsampled calibration error with the standard error of the random draws.

    Parameters
    ----------
    y_true, y_proba, n_resamples, rng, sample_weight, pos_label
        As for `subsampled_smcal`.
    measure : {"smcal", "step_ce"}, default "smcal"
        The error of each half.

    Returns
    -------
    Estimate
        ``value``, ``standard_error`` (0 if all subsets were enumerated, nan for a single draw), ``n_resamples``.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.subsampled_estimate([0, 1, 1, 0] * 25, [0.2, 0.9, 0.6, 0.3] * 25))
    0.03252, standard error 0.00068 from 100 draws
    """
    check_choice(measure, "measure", tuple(_ERRORS))
    return _average_over_subsets(Sample.of(y_true, y_proba, sample_weight, pos_label), measure, n_resamples, rng)


def _average_over_subsets(sample: Sample, measure: str, n_resamples: int, rng: Any) -> Estimate:
    """Average a subsampled error over all subsets if there are few, otherwise over random ones, on all cores."""
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 1), check_rng(rng)
    rows, error = _Rows.of(sample), _ERRORS[measure]
    distinct = np.unique(rows.r)

    def of_subset(subset: NDArray[np.int64]) -> float:
        cumulative = np.empty_like(distinct)
        subsampled.subset_bias(rows.r, rows.y, subset, cumulative)
        return error(distinct, cumulative) / rows.size

    if rows.size <= _FEW_ROWS:
        return Estimate(math.fsum(chance * of_subset(subset) for subset, chance in rows.all()), 0.0, 0)

    def of_draws(stream: np.random.Generator, count: int) -> list[float]:
        return [of_subset(subset) for subset in itertools.islice(rows.draws(stream), count)]

    streams = random_streams(generator)
    counts = [n_resamples * (k + 1) // len(streams) - n_resamples * k // len(streams) for k in range(len(streams))]
    tasks = [partial(of_draws, stream, count) for stream, count in zip(streams, counts, strict=True)]
    values = np.concatenate(run_tasks(tasks, len(rows.r) * n_resamples))
    deviation = float(values.std(ddof=1)) if n_resamples > 1 else math.nan
    return Estimate(float(values.mean()), deviation / math.sqrt(n_resamples), n_resamples)
