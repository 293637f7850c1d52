"""Hypothesis strategies for rows."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st


def examples(count):
    """Run `count` examples in the profile `ci`, and in proportion in the others; for tests that are too slow for 100."""
    return settings(max_examples=max(5, count * settings().max_examples // 100))


# Where floats are delicate: the ends, -0.0, subnormals, one ulp apart, bucket edges and their neighbours.
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    5e-324,
    1e-310,
    float(np.nextafter(1.0, 0.0)),
    0.5,
    float(np.nextafter(0.5, 0.0)),
    float(np.nextafter(0.5, 1.0)),
    0.1,
    1 / 4096,
    float(np.nextafter(1 / 4096, 0.0)),
    1 - 1 / 4096,
    1e-9,
    1 - 1e-9,
]

probabilities = st.one_of(
    st.sampled_from(SPECIAL), st.sampled_from([k / 8 for k in range(9)]), st.floats(0.0, 1.0, allow_subnormal=True)
)
inner_probabilities = st.one_of(st.sampled_from([k / 8 for k in range(1, 8)]), st.floats(0.01, 0.99))
weights = st.one_of(st.sampled_from([1.0, 2.0, 0.5, 3.0]), st.floats(1e-3, 1e3))


@st.composite
def rows(draw, min_size=1, max_size=12, *, outcomes=None, predictions=probabilities):
    """(y, p) of equal length, as lists."""
    n = draw(st.integers(min_size, max_size))
    y = draw(st.lists(st.integers(0, 1) if outcomes is None else outcomes, min_size=n, max_size=n))
    p = draw(st.lists(predictions, min_size=n, max_size=n))
    return y, p


@st.composite
def weighted_rows(draw, min_size=1, max_size=12, *, outcomes=None):
    """(y, p, w) of equal length, as lists."""
    y, p = draw(rows(min_size, max_size, outcomes=outcomes))
    w = draw(st.lists(weights, min_size=len(y), max_size=len(y)))
    return y, p, w
