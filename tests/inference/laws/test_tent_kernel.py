"""The tent kernel: its fast sums against all pairs of points."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthcal.inference.laws.tent_kernel import TentKernel

_KERNELS = {
    "one tent": TentKernel(np.array([1.0]), np.array([1.0])),
    "three tents": TentKernel(np.array([1.0, 0.25, 0.03]), np.array([0.5, 0.3, 0.2])),
}


def naive_sum(kernel, x, c):
    """Sum of c c' k over all pairs, from the definition."""
    total = 0.0
    for s in range(len(x)):
        for t in range(len(x)):
            k = sum(
                share * max(0.0, 1.0 - abs(x[s] - x[t]) / width)
                for width, share in zip(kernel.widths, kernel.shares, strict=True)
            )
            total += c[s] * c[t] * k
    return total


@pytest.mark.parametrize("kernel", _KERNELS.values(), ids=_KERNELS)
@given(
    groups=st.lists(
        st.lists(st.tuples(st.integers(0, 40), st.floats(-1, 1)), min_size=0, max_size=8), min_size=1, max_size=5
    )
)
def test_sums_of_groups_are_those_over_all_pairs(kernel, groups):
    """Groups of any number of points, none included; ties, points exactly a width apart, and both ends of [0, 1]."""
    groups = [sorted(points) for points in groups]
    starts = np.cumsum([0, *map(len, groups)])
    x = np.array([place / 40 for points in groups for place, _ in points])
    c = np.array([value for points in groups for _, value in points])
    found = kernel.group_sums(starts, x, c)
    for group, value in enumerate(found):
        own = slice(starts[group], starts[group + 1])
        assert value == pytest.approx(naive_sum(kernel, x[own], c[own]), abs=1e-12)


@pytest.mark.parametrize("kernel", _KERNELS.values(), ids=_KERNELS)
def test_group_sums_are_the_sums_of_each_group_alone(kernel):
    rng = np.random.default_rng(3)
    starts = np.array([0, 300, 301, 301, 1000])
    x, c = rng.random(1000), rng.normal(size=1000)
    for first, last in itertools.pairwise(starts):
        x[first:last].sort()
    alone = [kernel.sums(x[a:b], c[None, a:b])[0] for a, b in itertools.pairwise(starts)]
    np.testing.assert_allclose(kernel.group_sums(starts, x, c), alone, rtol=1e-10, atol=1e-12)
