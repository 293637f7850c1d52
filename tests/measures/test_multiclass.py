"""ATB of many classes: oracles, properties, truthfulness by enumeration, and two classes as one event."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import multiclass as oracle

import truthcal as tc
from truthcal.core.class_rows import check_class_rows
from truthcal.kernels.jit import Kernel, compile_at_once
from truthcal.measures.multiclass import (
    multiclass_atb_of,
    multiclass_brier,
    multiclass_noise_floor,
    vector_influence_of,
)

DEFINITIONS = list(tc.DEFINITIONS)
close = pytest.approx


@st.composite
def class_rows(draw, n_classes=None, max_size=7, weighted=True):
    """(y, p, w): rows with ties, zeros and ones, and a few classes."""
    k = n_classes or draw(st.sampled_from([2, 3, 7]))
    n = draw(st.integers(1, max_size))
    # Quarters are exact, and ties are common; others are arbitrary.
    part = st.one_of(st.integers(0, 4).map(float), st.floats(1e-3, 1.0))
    p = []
    for _ in range(n):
        row = draw(st.lists(part, min_size=k, max_size=k).filter(any))
        p.append([x / sum(row) for x in row])
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    w = draw(st.lists(st.sampled_from([1.0, 2.0, 0.25, 3.0]), min_size=n, max_size=n)) if weighted else [1.0] * n
    return y, p, w


def value(y, p, w=None, definition="vector"):
    return tc.multiclass_atb(y, p, definition=definition, sample_weight=w, labels=range(len(p[0])))


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(rows=class_rows())
def test_against_the_definition(definition, rows):
    assert value(*rows, definition) == close(oracle.DEFINITIONS[definition](*rows), rel=1e-9, abs=1e-15)


@given(rows=class_rows())
def test_vector_is_an_integral_over_thresholds(rows):
    y, p, w = rows
    by_distance = oracle.kernel_sum(y, p, w, oracle.one_minus_tv)
    assert oracle.vector_by_thresholds(y, p, w) == close(by_distance, rel=1e-9, abs=1e-14)
    assert value(y, p, w) == close(by_distance, rel=1e-9, abs=1e-14)


@given(rows=class_rows())
def test_influence_noise_floor_and_brier_score(rows):
    y, p, w = rows
    checked = check_class_rows(y, p, w, range(len(p[0])))
    influence = vector_influence_of(checked)
    np.testing.assert_allclose(influence, oracle.influence(y, p, w), rtol=1e-9, atol=1e-14)
    assert np.average(influence, weights=w) == close(value(y, p, w), rel=1e-9, abs=1e-14)
    np.testing.assert_allclose(multiclass_brier(checked), oracle.brier(y, p), rtol=1e-12, atol=1e-15)
    assert multiclass_noise_floor(checked) == close(oracle.noise_floor(p, w), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(rows=class_rows())
def test_interpreted_and_compiled_kernels_agree(definition, rows):
    interpreted = pytest.MonkeyPatch()
    with interpreted.context() as patch:
        patch.setattr(Kernel, "__call__", lambda kernel, *args: kernel.plain(*args))
        plain = value(*rows, definition)
    with compile_at_once():
        assert value(*rows, definition) == plain


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_many_rows_against_the_definition(definition):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(7, 0.3), 300)
    y, w = rng.integers(0, 7, 300), rng.random(300)
    expected = oracle.DEFINITIONS[definition](y.tolist(), p.tolist(), w.tolist())
    assert value(y, p, w, definition) == close(expected, rel=1e-12)
    assert value(y, p.astype(np.float32), w, definition) == close(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("y", "p", "expected"),
    [
        ([0], [[1.0, 0.0, 0.0]], 0.0),
        ([1], [[1.0, 0.0, 0.0]], 2.0),
        ([2], [[0.5, 0.25, 0.25]], 0.25 + 0.0625 + 0.5625),
        ([0, 1, 2], [[1 / 3] * 3] * 3, 0.0),
        ([0, 0], [[0.5, 0.5, 0.0]] * 2, 0.5),
    ],
)
def test_values_by_hand(y, p, expected):
    assert value(y, p) == close(expected, abs=1e-15)
    assert value(y, p, definition="canonical") == close(expected, abs=1e-15)  # equal rows have the kernel 1
    assert value(y, p, definition="classwise") == close(expected / 3, abs=1e-15)


# --- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(rows=class_rows(), data=st.data())
def test_common_properties(definition, rows, data):
    y, p, w = rows
    found = value(y, p, w, definition)
    largest = 1.0 if definition in ("classwise", "top_label") else 2.0
    assert 0.0 <= found <= largest * (1 + 1e-12)
    same = {"rel": 1e-9, "abs": 1e-15}
    order = data.draw(st.permutations(range(len(y))))
    assert value([y[i] for i in order], [p[i] for i in order], [w[i] for i in order], definition) == close(
        found, **same
    )
    assert value(y, p, [1e200 * x for x in w], definition) == close(found, **same)
    nothing = [*w, 0.0]
    assert value([*y, 0], [*p, [1.0] + [0.0] * (len(p[0]) - 1)], nothing, definition) == close(found, **same)
    times = [int(4 * x) for x in w]  # weight = repetition
    repeated = [i for i, count in enumerate(times) for _ in range(count)]
    assert value([y[i] for i in repeated], [p[i] for i in repeated], None, definition) == close(found, **same)


@pytest.mark.parametrize("definition", ["vector", "classwise", "canonical"])
@given(rows=class_rows(), data=st.data())
def test_the_order_of_the_classes_does_not_matter(definition, rows, data):
    y, p, w = rows
    order = data.draw(st.permutations(range(len(p[0]))))
    permuted = [[row[k] for k in order] for row in p]
    found = tc.multiclass_atb(y, permuted, labels=order, sample_weight=w, definition=definition)
    assert found == close(value(y, p, w, definition), rel=1e-9, abs=1e-15)


def test_top_label_takes_the_first_of_tied_classes():
    p = [[0.4, 0.4, 0.2]] * 2
    assert value([0, 0], p, definition="top_label") == close(0.36)
    assert value([1, 1], p, definition="top_label") == close(0.16)


@given(rows=class_rows(2))
def test_two_classes_are_twice_the_binary_measure(rows):
    y, p, w = rows
    second = [row[1] for row in p]
    for weight in (None, w):
        assert value(y, p, weight) == 2.0 * tc.atb(y, second, sample_weight=weight)


@given(rows=class_rows(3, max_size=4))
def test_expected_value_is_bias_part_plus_noise_floor(rows):
    """For any report: E over outcomes of the truth = value with y replaced by the truth + noise of the truth."""
    _, report, w = rows
    truth = np.array(report[::-1])
    expected = sum(chance * value(y, report, w) for y, chance in oracle.outcomes(truth.tolist()) if chance > 0)
    c, total = np.array(report) - truth, sum(w)
    pairs = itertools.product(range(len(w)), repeat=2)
    bias = sum(w[i] * w[j] * (c[i] @ c[j]) * oracle.overlap(report[i], report[j]) for i, j in pairs) / total**2
    assert expected == close(bias + oracle.noise_floor(truth.tolist(), w), rel=1e-9, abs=1e-12)


@given(rows=class_rows())
def test_vector_is_at_least_classwise_with_the_thresholds_above(rows):
    """Vector adds up the squares of all classes l where k is predicted; for l = k, those are in classwise ATB."""
    y, p, w = rows
    c, n_classes = oracle.errors(y, p), len(p[0])
    own = 0.0
    for k in range(n_classes):
        cuts = sorted({0.0, 1.0, *(row[k] for row in p)})
        for left, right in itertools.pairwise(cuts):
            own += (right - left) * sum(w[i] * c[i][k] for i in range(len(y)) if p[i][k] >= right) ** 2
    assert value(y, p, w) >= own / sum(w) ** 2 * (1 - 1e-9) - 1e-15


def test_classwise_misses_what_vector_finds():
    """All orders of (0.2, 0.3, 0.5): with 0.3 and 0.5, classes happen in 4 and 4 of 10 rows, or in 2 and 6.

    Which of both depends on the order. Each class alone is calibrated, but where one has a given probability, the
    others are not.
    """
    y, p = [], []
    for even, counts in ((True, (2, 4, 4)), (False, (2, 2, 6))):
        for shift in range(3):
            classes = np.roll([0, 1, 2] if even else [0, 2, 1], shift)  # those with probability 0.2, 0.3 and 0.5
            row = np.empty(3)
            row[classes] = [0.2, 0.3, 0.5]
            y += [k for k, count in zip(classes, counts, strict=True) for _ in range(count)]
            p += [row] * 10
    assert value(y, p, definition="classwise") == close(0.0, abs=1e-15)
    assert value(y, p) > 1e-4
    assert value(y, p, definition="canonical") > 1e-4


# --- truthfulness by enumeration: 3 classes, 3 rows, all 27 outcomes ------------------------------------------------------


def grid_of_simplex(step):
    return np.array([(a, b, step - a - b) for a in range(step + 1) for b in range(step + 1 - a)]) / step


POINTS = grid_of_simplex(4)
TRIPLES = np.array(list(itertools.combinations_with_replacement(range(len(POINTS)), 3)))  # row order does not matter
REPORTS = POINTS[np.array(list(itertools.product(range(len(POINTS)), repeat=3)))]
OUTCOMES = np.array(list(itertools.product(range(3), repeat=3)))


def binary_values(p, y):
    """ATB for rows (.., 3) of one event."""
    c = p - y
    return np.einsum("...i,...j,...ij->...", c, c, 1.0 - np.abs(p[..., :, None] - p[..., None, :])) / 9.0


def values_of(definition, reports):
    """Values of all reports for all outcomes, from the definitions."""
    p, y = reports[:, None], np.eye(3)[OUTCOMES][None]
    if definition == "top_label":
        top = reports.argmax(axis=2)[:, None]
        return binary_values(reports.max(axis=2)[:, None] + np.zeros((1, 27, 1)), OUTCOMES[None] == top)
    if definition == "classwise":
        both = (
            np.broadcast_to(p, (len(reports), 27, 3, 3)).swapaxes(2, 3),
            np.broadcast_to(y, p.shape[:1] + y.shape[1:]),
        )
        return binary_values(both[0], both[1].swapaxes(2, 3)).mean(axis=2)
    distance = np.abs(reports[:, :, None] - reports[:, None])
    kernel = 1.0 - distance.sum(axis=3) / 2.0 if definition == "vector" else np.prod(1.0 - distance, axis=3)
    c = p - y
    return np.einsum("roik,rojk,rij->ro", c, c, kernel, optimize=True) / 9.0


def gains(definition):
    """Relative gain of the best lie, for every truth on the grid."""
    scores = values_of(definition, REPORTS)
    truths = POINTS[TRIPLES]
    chances = np.prod(truths[:, np.arange(3), OUTCOMES], axis=2)
    honest = np.einsum("to,to->t", chances, values_of(definition, truths))
    best = np.min(chances @ scores.T, axis=1)
    return honest, honest - best


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_values_of_the_enumeration_are_those_of_the_library(definition):
    rng = np.random.default_rng(3)
    some = REPORTS[rng.choice(len(REPORTS), 40, replace=False)]
    for report, scores in zip(some, values_of(definition, some), strict=True):
        for o in rng.choice(27, 3, replace=False):
            assert value(OUTCOMES[o], report, definition=definition) == close(scores[o], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("definition", ["vector", "classwise", "canonical"])
def test_no_lie_pays(definition):
    assert tc.DEFINITIONS[definition].truthful
    _, gain = gains(definition)
    assert gain.max() <= 1e-12


def test_lies_pay_with_top_label():
    assert not tc.DEFINITIONS["top_label"].truthful
    honest, gain = gains("top_label")
    assert np.max(gain[honest > 0.0] / honest[honest > 0.0]) == close(1.0)


def test_a_lie_that_pays_with_top_label_if_no_class_is_certain():
    """The largest gain on the grid of eighths without 0: 17 of 44."""
    truth = [[1 / 8, 6 / 8, 1 / 8], [3 / 8, 1 / 8, 4 / 8], [3 / 8, 1 / 8, 4 / 8]]
    honest, lie = (
        sum(chance * value(y, p, definition="top_label") for y, chance in oracle.outcomes(truth))
        for p in (truth, [[2 / 8, 3 / 8, 3 / 8]] * 3)
    )
    assert (honest, 1.0 - lie / honest) == close((11 / 144, 17 / 44))


def test_a_lie_that_takes_all_of_top_label():
    """A class that is certain and one that is impossible are both reported with 1/2: their errors cancel."""
    truth, report = [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]
    expected = [
        sum(chance * value(y, p, definition="top_label") for y, chance in oracle.outcomes(truth) if chance > 0.0)
        for p in (truth, report)
    ]
    assert expected == close([1 / 16, 0.0])
    for definition in ("vector", "classwise", "canonical"):
        honest, lie = (
            sum(chance * value(y, p, definition=definition) for y, chance in oracle.outcomes(truth) if chance > 0.0)
            for p in (truth, report)
        )
        assert honest < lie


# --- the table of definitions, and errors -----------------------------------------------------------------------------


def test_definitions_say_what_they_mean():
    assert [row.name for row in tc.DEFINITIONS.values()] == DEFINITIONS
    assert {row.name for row in tc.DEFINITIONS.values() if not row.truthful} == {"top_label"}
    assert "by not telling the truth" in tc.DEFINITIONS["top_label"].meaning
    assert all(row.cost.startswith("O(") for row in tc.DEFINITIONS.values())
    with pytest.raises(TypeError, match="does not support item assignment"):
        tc.DEFINITIONS["other"] = tc.DEFINITIONS["vector"]


def test_unknown_definition_and_too_many_rows():
    with pytest.raises(ValueError, match="`definition` must be one of 'vector', 'classwise', 'canonical', 'top_label'"):
        tc.multiclass_atb([0], [[0.5, 0.5]], definition="mean")
    many = np.tile([0.5, 0.3, 0.2], (20_001, 1))
    message = '"canonical" compares all pairs of rows, and 20,001 rows have 4e+08 pairs. Pass at most 20,000 rows'
    with pytest.raises(ValueError, match=re.escape(message)):
        value(np.zeros(20_001, int), many, definition="canonical")


def test_hostile_rows_have_finite_values():
    rng = np.random.default_rng(4)
    peaked = rng.dirichlet(np.full(5, 0.005), 50)
    cases = {
        "a class that is always impossible": np.c_[rng.dirichlet(np.ones(3), 40), np.zeros(40)],
        "a constant class": np.c_[0.8 * rng.dirichlet(np.ones(2), 40), np.full(40, 0.2)],
        "identical rows": np.tile([0.2, 0.3, 0.5], (40, 1)),
        "more classes than rows": rng.dirichlet(np.ones(30), 4),
        "very peaked": np.clip(peaked / peaked.sum(axis=1, keepdims=True), 0.0, 1.0),
    }
    for name, p in cases.items():
        y, w = rng.integers(0, p.shape[1], len(p)), 10.0 ** rng.uniform(-15, 15, len(p))
        for definition in DEFINITIONS:
            for weight in (None, w):
                found = multiclass_atb_of(check_class_rows(y, p, weight, range(p.shape[1])), definition)
                ratios = np.ones(len(p)) if weight is None else w / w.max()
                expected = oracle.DEFINITIONS[definition](y.tolist(), p.tolist(), ratios.tolist())
                assert found == close(expected, rel=1e-9, abs=1e-14), (name, definition)
