"""Orders of rows with weights or fractional outcomes."""

import numpy as np
import pytest

from truthcal.core import sorting
from truthcal.core.checks import Checked, check_rows
from truthcal.kernels import rows as kernel

RNG = np.random.default_rng(0)
N = 5_000
PREDICTIONS = {
    "uniform": RNG.random(N),
    "ties": RNG.integers(0, 5, N) / 4,
    "one value": np.full(N, 0.3),
    "both ends": np.concatenate([[0.0, 1.0, 5e-324, 1 - 2**-53], RNG.random(N)]),
    # Few neighbours differ only in bits that do not fit into a key, next to 0, which makes the keys coarse.
    "pairs of neighbours": np.concatenate([[0.0], np.repeat(RNG.random(N // 2), 2) * (1 + 2**-52 * np.arange(N))]),
    # Thousands do, so that np.argsort must sort them.
    "cluster": np.concatenate([[0.0], 0.3 + 2**-54 * RNG.permutation(N)]),
}


@pytest.mark.parametrize("p", PREDICTIONS.values(), ids=PREDICTIONS)
def test_order_is_stable(p):
    np.testing.assert_array_equal(sorting._stable_order(p), np.argsort(p, kind="stable"))


def test_rows_that_need_many_moves_are_left_to_numpy():
    """The cluster above does; else this test and the one before would not reach the other way."""
    bits = PREDICTIONS["cluster"].view(np.int64)
    keys, order = np.empty_like(bits), np.empty_like(bits)
    index_bits = (len(bits) - 1).bit_length()
    kernel.index_keys(bits, 0, int(bits.max()).bit_length() + index_bits - 63, index_bits, keys)
    keys.sort()
    assert not kernel.order_of_keys(keys, bits, (1 << index_bits) - 1, True, order)


@pytest.mark.parametrize("n", [1, 5_000, 200_000])
@pytest.mark.parametrize("weighted", [True, False])
def test_rows_are_sorted_together(n, weighted):
    p = np.round(RNG.random(n), 5)
    rows = check_rows(RNG.random(n), p, RNG.random(n) + 0.1 if weighted else None)
    found = Checked(*sorting.sort_rows(rows))
    order = np.argsort(p, kind="stable")
    for column, expected in zip(found, rows, strict=True):
        assert (column is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(column, expected[order])
