"""Two classes have exactly the results of the event that the second one happens."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples

import truthcal as tc


@st.composite
def two_columns(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([1, 2, 5, 40, 200]))
    p = generator.random(n).round(draw(st.sampled_from([1, 3, 12])))
    p[p == 0.5] = 0.25  # not all rows are certain
    p[0] = 0.25
    y = (generator.random(n) < p ** draw(st.sampled_from([1.0, 0.5, 2.0]))).astype(int)
    w = generator.integers(0, 3, n) + (np.arange(n) == 0) if draw(st.booleans()) else None
    return y, p, w


def both(function, y, p, **options):
    """Results of the event, and of two columns."""
    return function(y, p, **options), function(y, np.column_stack([1.0 - p, p]), labels=[0, 1], **options)


@examples(30)
@given(rows=two_columns())
def test_calibration_test_and_error_size(rows):
    y, p, w = rows
    one, two = both(tc.calibration_test, y, p, sample_weight=w, rng=0, n_resamples=199)
    assert one == two
    one, two = both(tc.error_size, y, p, sample_weight=w)
    assert str(one) == str(two)


@examples(20)
@given(rows=two_columns())
def test_assess(rows):
    y, p, w = rows
    one, two = both(tc.assess, y, p, sample_weight=w, rng=0, n_resamples=199)
    assert (two.kind, two.verdict, two.warnings) == (one.kind, one.verdict, one.warnings)
    assert two.test == one.test
    assert str(two.error) == str(one.error)
    np.testing.assert_equal(
        [two.atb, two.noise_floor, two.excess], [2.0 * x for x in (one.atb, one.noise_floor, one.excess)]
    )
    assert (two.brier, two.n, two.n_effective) == (one.brier, one.n, one.n_effective)


def test_compare_and_check():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y, q = (rng.random(300) < p).astype(int), 0.5 * p + 0.2
    pair = np.column_stack([1.0 - p, p]), np.column_stack([1.0 - q, q])
    assert str(tc.compare(y, *pair)) == str(tc.compare(y, p, q))
    assert (
        tc.compare(y, *pair, measure="information_atb").pvalue == tc.compare(y, p, q, measure="information_atb").pvalue
    )
    assert tc.check(y, pair[1]).status == tc.check(y, q).status
    groups = np.arange(300) // 5
    assert tc.calibration_test(y, pair[0], groups=groups) == tc.calibration_test(y, p, groups=groups)
    one, two = both(tc.assess, y, q, groups=groups)
    assert (two.verdict, two.test, two.n_groups) == (one.verdict, one.test, one.n_groups)


def test_labels_say_which_class_is_the_event():
    rng = np.random.default_rng(2)
    p = rng.random(200)
    happened = rng.random(200) < p
    y = np.where(happened, "yes", "no")
    expected = tc.calibration_test(happened, p).pvalue
    matrix = np.column_stack([1.0 - p, p])
    assert tc.calibration_test(y, matrix).pvalue == expected  # "no" < "yes"
    assert tc.calibration_test(y, pd.DataFrame(matrix, columns=["no", "yes"])).pvalue == expected
    turned = pd.DataFrame(matrix[:, ::-1], columns=["yes", "no"])
    assert tc.calibration_test(y, turned).statistic == pytest.approx(tc.calibration_test(happened, p).statistic)


def test_a_class_that_never_happens():
    found = tc.assess([0] * 50, np.tile([0.9, 0.1], (50, 1)))
    assert found.verdict == tc.assess([0] * 50, [0.1] * 50).verdict
