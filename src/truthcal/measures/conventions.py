"""The binned calibration error as other packages compute it, to the last bit.

Packages agree on the formula but not on the arithmetic: the edges, the bin that includes an edge, the treatment of 0
and 1, and the type and order of sums. Each function below repeats the arithmetic of one package, with its errors, which
docs/reference/conventions.md lists. Nothing else in truthcal uses these numbers.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import check_rows, invalid, where_found
from truthcal.core.edge_search import search_edges
from truthcal.core.params import check_choice, check_whole

# Some compute the edges one by one, in exact arithmetic.
_MOST_BINS = 1 << 16

Rows = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Convention:
    """Convention of a package: `error(p, y, n_bins, norm)`, the default of `n_bins`, and the norms it offers."""

    error: Callable[[Rows, Rows, int, str], float]
    n_bins: int
    norms: tuple[str, ...]


def binned_ece_like(
    convention: str,
    y_true: object,
    y_proba: object,
    *,
    n_bins: int | None = None,
    norm: str = "l1",
    pos_label: object = None,
) -> float:
    """The binned calibration error that another package returns, bit for bit. For comparison only.

    Parameters
    ----------
    convention : str
        The package: "torchmetrics", "netcal", "sklearn", "sklearn-quantile", "uncertainty-calibration" or "mapie".
    y_true : array-like of shape (n,)
        Outcomes: 0/1 or True/False, or two labels of which `pos_label` is the positive one. Not fractions.
    y_proba : array-like of shape (n,)
        Predicted probabilities. In most packages the result for float32 differs from that for float64.
    n_bins : int, optional
        Number of bins as the package counts them. By default the package's default.
    norm : {"l1", "l2", "max"}, default "l1"
        "l1": the mean over rows of the gap between observed and predicted mean in their bin (ECE). "l2": the root of
        the mean squared gap. "max": the largest gap of a bin (MCE). Not every package has every norm.
    pos_label : optional
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Neither truthful nor continuous.

    Notes
    -----
    Errors of a package (a separate bin for p = 1, a missing bin) are reproduced. One number may differ in its last bit:
    the root in torchmetrics' l2. docs/reference/conventions.md lists edges, types and errors of each package, and the
    tested versions. O(n log n) at most.

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 1, 1, 0], [0.2, 0.3, 0.6, 1.0]
    >>> for convention in ["netcal", "torchmetrics", "mapie"]:
    ...     print(f"{tc.binned_ece_like(convention, y, p, n_bins=2):.3f}")
    0.275
    0.475
    0.025
    """
    rule = CONVENTIONS[check_choice(convention, "convention", tuple(CONVENTIONS))]
    check_choice(norm, "norm", rule.norms, f" for the convention {convention!r}")
    bins = rule.n_bins if n_bins is None else check_whole(n_bins, "n_bins", 1, _MOST_BINS)
    p, y, _ = check_rows(y_true, y_proba, None, pos_label)
    if y.dtype != np.uint8:  # the packages take labels only
        example = where_found(y, (y != 0) & (y != 1))
        cure = "For fractional outcomes use a measure of truthcal, such as atb."
        raise invalid("y_true", f"must contain 0/1 outcomes for the convention {convention!r}; found {example}. {cure}")
    return rule.error(p, y, bins, norm)


# --- sums in float64, row by row: netcal, scikit-learn ----------------------------------------------------------------


def _bin_gaps(p: Rows, y: Rows, bins: NDArray[np.intp], n_bins: int) -> tuple[Floats, NDArray[np.intp]]:
    """Convention of netcal and sklearn: |observed - predicted mean| and count of each bin; 0 for an empty bin."""
    counts = np.bincount(bins, minlength=n_bins)
    rows = np.maximum(counts, 1)
    return np.abs(np.bincount(bins, y, n_bins) / rows - np.bincount(bins, p, n_bins) / rows), counts


def _netcal(p: Rows, y: Rows, n_bins: int, norm: str) -> float:
    """Binned error by the convention of netcal."""
    eps = np.finfo(p.dtype).eps
    p = np.clip(p, eps, 1 - eps)  # changes the predictions: the error of certain, correct ones is not quite 0
    edges = np.linspace(0, 1, n_bins + 1)
    # netcal counts rows between these edges, but averages between edges rounded to the type of the predictions
    gaps, _ = _bin_gaps(p, y, search_edges(edges.astype(p.dtype), p, "right") - 1, n_bins)
    counts = np.bincount(search_edges(edges, p, "right") - 1, minlength=n_bins)
    return float(gaps[counts > 0].max() if norm == "max" else np.sum(gaps * (counts / len(p))))


def _sklearn(p: Rows, y: Rows, n_bins: int, norm: str, quantile: bool = False) -> float:
    """Binned error by the convention of scikit-learn."""
    edges = np.percentile(p, np.linspace(0, 1, n_bins + 1) * 100) if quantile else np.linspace(0, 1, n_bins + 1)
    gaps, counts = _bin_gaps(p, y, search_edges(edges[1:-1], p, "left"), len(edges) - 1)
    if norm == "max":
        return float(gaps.max())
    filled = counts > 0  # calibration_curve returns only these; the last bit depends on the number of terms
    return float(np.sum(counts[filled] * gaps[filled]) / len(p))


# --- sums in numpy's order, bin by bin: uncertainty-calibration, MAPIE ------------------------------------------------


def _rows_by_bin(values: Rows, bins: NDArray[np.intp], n_bins: int, order: NDArray[np.intp]) -> list[Rows]:
    """Return the values of each bin, for the conventions of MAPIE and others; bins beyond the last are dropped."""
    return np.split(values[order], np.cumsum(np.bincount(bins, minlength=n_bins))[:n_bins])[:n_bins]


def _uncertainty_calibration(p: Rows, y: Rows, n_bins: int, norm: str) -> float:
    """Binned error by the convention of uncertainty-calibration."""
    p = p.astype(np.float64)
    bins = search_edges(np.arange(1, n_bins + 1) / n_bins, p, "left")
    # this sort is not stable, and determines the order in which the rows of a bin are added
    parts = _rows_by_bin(np.column_stack([p, y]), bins, n_bins, np.argsort(bins))
    power = 1 if norm == "l1" else 2
    # powers of scalars: of 10,000 random numbers, 8 have a different square and 8 a different root in an array
    gaps = [float(abs(np.mean(rows[:, 0]) - np.mean(rows[:, 1]))) ** power if len(rows) else 0.0 for rows in parts]
    return float(np.dot([len(rows) / len(p) for rows in parts], gaps) ** (1 / power))


def _mapie(p: Rows, y: Rows, n_bins: int, norm: str) -> float:
    """Binned error by the convention of MAPIE."""
    bins = search_edges(np.linspace(0, 1, n_bins), p, "left")  # n_bins edges: n_bins - 1 bins, and one for p = 0
    order = np.argsort(bins.astype(np.uint16) if n_bins < 1 << 16 else bins, kind="stable")  # small integers: in O(n)
    observed, predicted = (_mapie_means(_rows_by_bin(values, bins, n_bins, order)) for values in (y, p))
    sizes = np.bincount(bins, minlength=n_bins)[:n_bins].astype(np.float64)
    if sizes.sum() == 0:  # with one bin MAPIE counts only predictions of exactly 0
        rule = "must be at least 2 for the convention 'mapie' unless a prediction is exactly 0; got 1"
        raise invalid("n_bins", f"{rule}, for which mapie returns nan. Pass n_bins=2 to put all rows into one bin.")
    return float(np.sum(sizes * np.abs(observed - predicted)) / np.sum(sizes))


def _mapie_means(parts: list[Rows]) -> Floats:
    """Bin means by MAPIE's convention: summed in the type of the values, divided in float64; 0 for an empty bin."""
    return np.array([np.sum(part) / np.float64(len(part)) if len(part) else 0.0 for part in parts])


# --- everything in the type of the predictions: torchmetrics ----------------------------------------------------------


def _torchmetrics(p: Rows, y: Rows, n_bins: int, norm: str) -> float:
    """Binned error by the convention of torchmetrics."""
    gaps, shares = _torch_gaps(p, y, n_bins)
    if norm == "max":
        return float(gaps.max())
    return float(_torch_sum(gaps * shares) if norm == "l1" else np.sqrt(_torch_sum(gaps * gaps * shares)))


def _torch_gaps(p: Rows, y: Rows, n_bins: int) -> tuple[Rows, Rows]:
    """Convention of torchmetrics: gap and share of rows of each bin. There is one more than requested, for p = 1."""
    bins = search_edges(_torch_edges(n_bins, p.dtype), p, "right") - 1
    counts, positives = _torch_counts(bins, n_bins, p.dtype), _torch_counts(bins[y == 1], n_bins, p.dtype)
    sums = np.zeros_like(counts)
    np.add.at(sums, bins, p)  # in row order, rounded to the type at every step
    rows = np.maximum(counts, 1)
    return np.abs(positives / rows - sums / rows), counts / _torch_sum(counts)


def _torch_counts(bins: NDArray[np.intp], n_bins: int, dtype: np.dtype[Any]) -> Rows:
    """Count rows like torchmetrics, by adding 1 in the type of the predictions: float32 stops at 2^24."""
    counts: Rows = np.minimum(np.bincount(bins, minlength=n_bins + 1), 2 / np.finfo(dtype).eps)
    return counts.astype(dtype)


def _torch_edges(n_bins: int, dtype: np.dtype[Any]) -> Rows:
    """Emulate torch.linspace(0, 1, n_bins + 1): up from 0, then down from 1 with a fused multiply-add."""
    step = dtype.type(1) / dtype.type(n_bins)
    up = np.arange((n_bins + 1) // 2).astype(dtype) * step
    down = [float(1 - Fraction(float(step)) * k) for k in reversed(range(n_bins + 1 - len(up)))]
    return np.concatenate([up, np.array(down, dtype)])


def _torch_sum(x: Rows) -> Any:
    """Emulate torch.sum of up to 32768 numbers (more are split among threads): in vectors of 32 bytes."""
    width = 32 // x.itemsize if x.nbytes >= 32 else 1
    whole = len(x) // width * width
    return _torch_sum_in_order(np.concatenate([x[whole:], _torch_sum_in_fours(x[:whole].reshape(-1, width))]))


def _torch_sum_in_fours(rows: Rows) -> Rows:
    """Emulate torch.sum: every fourth row goes into one of four sums; the remainder is added to the first."""
    whole = len(rows) // 4 * 4
    four = _torch_sum_in_sixteens(rows[:whole].reshape(-1, 4, rows.shape[1]))
    first = _torch_sum_in_order(np.concatenate([four[:1], rows[whole:]]))
    return _torch_sum_in_order(np.concatenate([first[None], four[1:]]))


def _torch_sum_in_sixteens(rows: Rows) -> Rows:
    """Emulate torch.sum: groups of 16, then of 16 such sums, and so on; remainders from the finest stage on."""
    total = np.zeros_like(rows, shape=rows.shape[1:])
    while len(rows):
        whole = len(rows) // 16 * 16
        total = total + _torch_sum_in_order(rows[whole:])
        rows = _torch_sum_in_order(rows[:whole].reshape(-1, 16, *rows.shape[1:]).swapaxes(0, 1))
    return total


def _torch_sum_in_order(rows: Rows) -> Rows:
    """Emulate torch.sum: add the rows one after another; np.sum would regroup them."""
    return np.add.accumulate(rows)[-1] if len(rows) else np.zeros_like(rows, shape=rows.shape[1:])


CONVENTIONS = {
    "torchmetrics": _Convention(_torchmetrics, 15, ("l1", "l2", "max")),
    "netcal": _Convention(_netcal, 10, ("l1", "max")),
    "sklearn": _Convention(_sklearn, 5, ("l1", "max")),
    "sklearn-quantile": _Convention(functools.partial(_sklearn, quantile=True), 5, ("l1", "max")),
    "uncertainty-calibration": _Convention(_uncertainty_calibration, 15, ("l1", "l2")),
    "mapie": _Convention(_mapie, 50, ("l1",)),
}
