"""`ATBMetric`, on torchmetrics' base class and on our own: the same sums as a `Sketch` of the rows."""

import pickle
import resource
import warnings

import numpy as np
import pytest
from hypothesis import given

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from oracles.measures import atb, exact  # noqa: E402
from support.grid_cases import grid_cases  # noqa: E402
from support.rows import assert_same  # noqa: E402
from support.strategies import rows, weighted_rows  # noqa: E402
from support.torch_metrics import METRICS, assert_state, filled, logits_and_outcomes, probabilities, state_of, value_of  # noqa: E402

import truthcal as tc  # noqa: E402
from truthcal.torch import ATBMetric  # noqa: E402

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(params=METRICS)
def build(request):
    """The class, with each of its two base classes."""
    return METRICS[request.param]


def half(state):
    return {name: value.half() for name, value in state.items()}


def doubles(tensor):
    return tensor.double().numpy()


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_probabilities_give_the_sums_of_a_sketch(build, dtype):
    p, y = probabilities(3000, dtype=dtype)
    metric, sketch = filled(build(logits=False), p, y), tc.Sketch().update(y.numpy(), doubles(p))
    assert_same(metric.sketch(), sketch)
    assert value_of(metric) == pytest.approx(sketch.atb().value, rel=1e-12)
    assert metric.compute().dtype == torch.float64


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_logits_become_probabilities_in_double_precision(build, dtype):
    logits, y = logits_and_outcomes(3000, dtype=dtype)
    metric = filled(build(logits=True), logits, y)
    assert_same(metric.sketch(), tc.Sketch().update(y.numpy(), doubles(torch.sigmoid(logits.double()))))


def test_infinite_logits_are_certain_predictions(build):
    metric = build(logits=True)
    metric.update(torch.tensor([torch.inf, -torch.inf, 30.0]), torch.tensor([1, 0, 1]))
    assert metric.sketch().table()["min"].tolist() == [0.0, 1.0 / (1.0 + np.exp(-30.0))]
    assert metric.sketch().table()["max"].tolist() == [0.0, 1.0]


@given(rows())
def test_bounds_contain_the_exact_value(data):
    y, p = data
    metric = ATBMetric(logits=False)
    metric.update(torch.tensor(p, dtype=torch.float64), torch.tensor(y))
    bounded, value = metric.sketch().atb(), float(atb(y, exact(p)))
    assert bounded.low <= value <= bounded.high
    assert metric.compute().item() == bounded.value


@given(weighted_rows())
def test_weights_give_the_sums_of_a_weighted_sketch(data):
    y, p, w = data
    metric = ATBMetric(logits=False)
    metric.update(torch.tensor(p, dtype=torch.float64), torch.tensor(y), torch.tensor(w, dtype=torch.float64))
    assert_same(metric.sketch(), tc.Sketch().update(y, p, w))


def test_a_mask_as_weight_leaves_rows_out(build):
    p, y = probabilities(500)
    mask = torch.arange(500) % 3 > 0
    metric = build(logits=False)
    metric.update(p, y, mask)
    assert_same(metric.sketch(), filled(build(logits=False), p[mask], y[mask]).sketch())


@pytest.mark.parametrize("logits", [False, True])
def test_padding_is_left_out_once_it_is_valid(build, logits):
    """The one-line cure of the guide, for nan and -100 in padding."""
    (p, y), mask = probabilities(500), torch.arange(500) % 3 > 0
    preds, target = p.where(mask, torch.nan), y.long().where(mask, -100)
    metric = build(logits=logits)
    metric.update(torch.where(mask, preds, 0), torch.where(mask, target, 0), sample_weight=mask)
    assert_same(metric.sketch(), filled(build(logits=logits), p[mask], y[mask]).sketch())


@pytest.mark.parametrize("n_buckets", [1, 2, 64, 128, 4096])
def test_buckets_are_those_of_bucket_index_at_every_edge(build, n_buckets):
    edges = np.unique(tc.bucket_index(np.linspace(0, 1, 5 * n_buckets), n_buckets))
    assert len(edges) > n_buckets // 8
    grid = tc.core.grid.Grid.of_size(n_buckets)
    near = [grid.edges, np.nextafter(grid.edges, 0), np.nextafter(grid.edges, 1), grid_cases(max(n_buckets, 128))]
    p = np.concatenate(near)
    for values in (p, np.float32(p), np.nextafter(np.float32(p), np.float32(1)).clip(0, 1)):
        metric = build(logits=False, n_buckets=n_buckets)
        metric.update(torch.from_numpy(values), torch.zeros(len(values)))
        counts = np.bincount(tc.bucket_index(values, n_buckets), minlength=n_buckets)
        assert metric.sums[0].tolist() == counts.tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_every_short_float_is_in_its_bucket(dtype):
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    p = every[(every >= 0) & (every <= 1)]
    assert len(p) > 15_000
    metric = ATBMetric(logits=False)
    metric.update(p, torch.ones(len(p)))
    assert metric.sums[0].tolist() == np.bincount(tc.bucket_index(doubles(p)), minlength=4096).tolist()


def test_verdict_of_all_batches(build):
    logits, y = logits_and_outcomes(4000)
    assessment = filled(build(logits=True), logits, y).assess(confidence_level=0.9)
    assert assessment.kind == "overconfident"
    assert assessment.error.confidence_level == 0.9
    assert assessment.n == 4000


EXTREMES = torch.tensor([0.0, 1.0])
ASKED = "all logits lie between 0 and 1: are they probabilities? Then build the metric with logits=False."


@pytest.mark.parametrize(
    ("logits", "preds", "asked"),
    [
        (True, torch.cat([torch.rand(98), EXTREMES]), True),
        (True, torch.cat([torch.rand(97), EXTREMES]), False),  # too few rows
        (True, torch.cat([torch.rand(98), EXTREMES, torch.tensor([-0.01])]), False),
        (True, torch.cat([torch.rand(98), EXTREMES, torch.tensor([1.01])]), False),
        (False, 0.5 + 0.2 * torch.rand(100), False),
    ],
    ids=["probabilities", "99 rows", "below 0", "above 1", "logits=False"],
)
def test_probabilities_in_place_of_logits_are_noticed(build, logits, preds, asked):
    metric = build(logits=logits)
    for part in preds.split(40):
        metric.update(part, torch.arange(len(part)) % 2)
    assessment, plain = metric.assess(), tc.assess(metric.sketch())
    assert assessment.warnings == (*plain.warnings, *([ASKED] if asked else []))
    assert assessment.verdict == plain.verdict


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.bfloat16], ids=str)
def test_outcomes_of_any_type_and_columns_of_one(build, kind):
    p, y = probabilities(100)
    metric, expected = build(logits=False), filled(build(logits=False), p, y)
    metric.update(p[:50, None], y[:50].to(kind))
    metric.update(p[50:], y[50:, None].to(kind))
    assert value_of(metric) == pytest.approx(value_of(expected), rel=1e-12)


def test_graph_and_autocast_do_not_matter(build):
    logits, y = logits_and_outcomes(200)
    metric, expected = build(logits=True), filled(build(logits=True), logits, y, 200)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        metric(logits.clone().requires_grad_(), y)
    assert_state(metric, expected.metric_state)
    assert not metric.sums.requires_grad


# --- batches ----------------------------------------------------------------------------------------------------------


def test_forward_returns_the_batch_and_adds_it(build):
    p, y = probabilities(300)
    metric, expected = build(logits=False), filled(build(logits=False), p, y, 100)
    for part in zip(p.split(100), y.split(100), strict=True):
        batch = metric(*part)
        assert batch.item() == pytest.approx(tc.atb(part[1].numpy(), part[0].numpy()), abs=1e-7)
    assert_same(metric.sketch(), expected.sketch())
    assert value_of(metric) == pytest.approx(value_of(expected), rel=1e-12)


def test_merge_equals_all_rows(build):
    p, y = probabilities(900)
    parts = [filled(build(logits=False), p[k::3], y[k::3]) for k in range(3)]
    first, second, third = parts
    first.compute()  # torchmetrics would return this value again
    first.merge_state(second)
    first.merge_state(third.metric_state)
    everything = filled(build(logits=False), p, y)
    assert_same(first.sketch(), everything.sketch())
    assert value_of(first) == pytest.approx(value_of(everything), rel=1e-12)
    assert second.sketch().n == 300


def test_merge_into_a_new_metric_warns_of_nothing(build):
    p, y = probabilities(10)
    metric = build(logits=True)
    metric.merge_state(filled(build(logits=False), p, y))
    assert metric.compute() == filled(build(logits=False), p, y).compute()


@pytest.mark.parametrize("logits", [False, True])
def test_merge_does_not_change_whether_predictions_are_logits(build, logits):
    p, y = probabilities(10)
    metric = build(logits=logits)
    metric.merge_state(filled(build(logits=not logits), p, y))
    assert metric.from_logits == float(logits)
    assert repr(metric).endswith(f"(logits={logits}, n_buckets=4096)")


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (lambda build: build(logits=True, n_buckets=64), ValueError, r"`incoming_state` is not the state of an ATBMetric with n_buckets=4096: .*\(64,\)"),
        (lambda build: build(logits=True, n_buckets=1), ValueError, "n_buckets=4096"),
        (lambda build: {"sums": torch.zeros(13, 4096)}, ValueError, "n_buckets=4096"),
        (lambda build: half(build(logits=False).metric_state), TypeError, "`incoming_state` must have sums in float64; `sums` is torch.float16, .* Save it without a conversion, or leave it out and update"),
        (lambda build: 3.0, TypeError, "`incoming_state` must be an ATBMetric or its metric_state; got float"),
    ],
)  # fmt: skip
def test_other_states_are_not_merged(build, other, error, message):
    metric = filled(build(logits=False), *probabilities(50))
    before = state_of(metric)
    with pytest.raises(error, match=message):
        metric.merge_state(other(build))
    assert_state(metric, before)


def test_reset_removes_all_rows(build):
    metric = filled(build(logits=False), *probabilities(50))
    metric.reset()
    assert_state(metric, build(logits=False).metric_state)


def test_state_is_as_large_after_1000_updates_as_after_one(build):
    metric = filled(build(logits=False), *probabilities(8192), 8192)
    before, peak = len(pickle.dumps(metric)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    p, y = probabilities(8192)
    for _ in range(999):
        metric.update(p.double(), y.long())  # new tensors of 131 kB, as from a model
    assert metric.sketch().n == 8_192_000
    assert len(pickle.dumps(metric)) < before + 10  # bytes; torchmetrics counts updates
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 20_000  # kB; all rows are 131,000


def test_memory_is_that_of_the_docstring(build):
    """264 bytes for each bucket: state, default of `reset`, and edge."""
    sizes = [len(pickle.dumps(build(logits=False, n_buckets=n))) for n in (4096, 8192)]
    assert sizes[1] - sizes[0] == pytest.approx(264 * 4096, abs=100)
    assert sizes[0] == pytest.approx(1.1e6, rel=0.02)


def test_no_rows_have_no_value(build):
    metric = build(logits=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torchmetrics: compute before update
        assert torch.isnan(metric.compute())
    assert metric.sketch().n == 0
    with pytest.raises(ValueError, match=r"the metric has no rows yet: call update\(preds, target\) before assess"):
        metric.assess()


def test_an_empty_batch_adds_nothing(build):
    metric = filled(build(logits=False), *probabilities(50))
    before = state_of(metric)
    metric.update(torch.empty(0), torch.empty(0, dtype=torch.int64))
    assert_state(metric, before)


# --- invalid rows -----------------------------------------------------------------------------------------------------

ONE = torch.tensor([1])
INVALID = [
    ((torch.tensor([0.5, -2.5]), torch.tensor([0, 1])), ValueError, r"`preds` must lie in \[0, 1\]; found -2.5 at row 1 \(1 of 2 rows\). Logits\? Build the metric with ATBMetric\(logits=True\)"),
    ((torch.tensor([0.5, 250.0]), torch.tensor([0, 1])), ValueError, "found 250.0 .* Logits"),
    ((torch.tensor([0.5, torch.inf]), torch.tensor([0, 1])), ValueError, "found inf .* Logits"),
    ((torch.tensor([0.0, 25.0, 100.0]), torch.tensor([0, 1, 1])), ValueError, r"`preds` must lie in \[0, 1\]; found 25.0 at row 1 \(2 of 3 rows\). Percentages\? Divide by 100.$"),
    ((torch.tensor([0.5, torch.nan]), torch.tensor([0, 1]), torch.tensor([1, 0])), ValueError, r"`preds` is invalid in a row of weight 0: found nan at row 1 .* pass torch.where\(sample_weight > 0, preds, 0\)"),
    ((torch.tensor([0.5, 0.5]), torch.tensor([0, -100]), torch.tensor([1, 0])), ValueError, r"`target` is invalid in a row of weight 0: found -100.0 at row 1 .* pass torch.where\(sample_weight > 0, target, 0\)"),
    ((torch.tensor([0.5, 0.5]), torch.tensor([-100, -100]), torch.tensor([1, 0])), ValueError, "`target` must contain 0/1 or True/False; found -100.0 at row 0"),
    ((torch.tensor([1.0000001]), ONE), ValueError, r"`preds` must lie in \[0, 1\]; .* Rounding error\? Clip with .clamp\(0, 1\)"),
    ((torch.tensor([0.5, torch.nan]), torch.tensor([0, 1])), ValueError, r"`preds` has a missing value \(nan\) at row 1"),
    ((torch.tensor([0.5, 0.5]), torch.tensor([0, 2])), ValueError, r"`target` must contain 0/1 or True/False; found 2.0 at row 1 .* pass `target == k`"),
    ((torch.tensor([0.0, 1.0]), torch.tensor([0.3, 0.6])), ValueError, r"`target` has fractions, and `preds` only 0 and 1; the arguments look swapped: predictions come first, update\(preds, target\)"),
    ((torch.tensor([0.5]), torch.tensor([0.3])), ValueError, "`target` must contain 0/1 or True/False; found 0.3"),
    ((torch.tensor([0.5]), torch.tensor([torch.nan])), ValueError, r"`target` has a missing value \(nan\)"),
    ((torch.tensor([0.5, 0.5]), ONE), ValueError, "`preds` has 2 rows but `target` has 1"),
    ((torch.tensor([0, 1]), torch.tensor([0.2, 0.7])), TypeError, "`preds` must contain floats; got torch.int64. .* exchange it with `target`"),
    ((torch.tensor([0.5]), torch.tensor([1j])), TypeError, "`target` must contain real numbers; got torch.complex64"),
    (([0.5], ONE), TypeError, "`preds` must be a torch tensor; got list. Convert it with torch.as_tensor"),
    ((torch.rand(4, 3), torch.zeros(4)), ValueError, r"`preds` must have shape \(N,\) or \(N, 1\); got \(4, 3\). A column for each class\? .*`target == k`"),
    ((torch.rand(2, 3, 4), torch.zeros(24)), ValueError, r"got \(2, 3, 4\). Flatten predictions and outcomes"),
    ((torch.tensor(0.5), torch.tensor(1)), ValueError, r"got \(\). Pass a batch of rows"),
    ((torch.rand(2, device="meta"), torch.zeros(2)), ValueError, r'`preds` is on meta, but the metric on cpu. Move one with .to\("cpu"\)'),
    ((torch.rand(2), torch.zeros(2, device="meta")), ValueError, "`preds` is on cpu, but `target` on meta"),
    ((torch.rand(2), torch.zeros(2), torch.tensor([1.0, -1.0])), ValueError, "`sample_weight` must be finite and not negative; found -1.0 at row 1"),
    ((torch.rand(2), torch.zeros(2), torch.tensor([1.0, torch.nan])), ValueError, "`sample_weight` has a missing value"),
    ((torch.rand(2), torch.zeros(2), torch.tensor([1.0, 1e80], dtype=torch.float64)), ValueError, "`sample_weight` must be 0 or between 1e-70 and 1e.70"),
    ((torch.rand(2), torch.zeros(2), torch.ones(3)), ValueError, "`preds` has 2 rows but `sample_weight` has 3"),
]  # fmt: skip


@pytest.mark.parametrize("method", ["update", "forward"])
@pytest.mark.parametrize(("arguments", "error", "message"), INVALID, ids=range(len(INVALID)))
def test_invalid_rows_are_refused_and_the_others_kept(build, method, arguments, error, message):
    p, y = probabilities(200)
    metric = filled(build(logits=False), p[:100], y[:100])
    before = state_of(metric)
    with pytest.raises(error, match=message):
        getattr(metric, method)(*arguments)
    assert_state(metric, before)
    filled(metric, p[100:], y[100:])
    assert value_of(metric) == pytest.approx(value_of(filled(build(logits=False), p, y)), rel=1e-12)


def test_nan_logits_are_refused(build):
    with pytest.raises(ValueError, match=r"`preds` has a missing value \(nan\) at row 0"):
        build(logits=True).update(torch.tensor([torch.nan]), ONE)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, r"`logits` must be given: True if predictions are logits \(log-odds\), False if they are prob"),
        ({"logits": "yes"}, TypeError, "`logits` must be True or False; got 'yes'"),
        ({"logits": True, "n_buckets": 100}, ValueError, "`n_buckets` must be a power of two"),
        ({"logits": True, "n_bins": 100}, (TypeError, ValueError), "n_bins"),
    ],
)
def test_invalid_parameters_are_refused(build, arguments, error, message):
    with pytest.raises(error, match=message):
        build(**arguments)


def test_logits_by_position_are_refused(build):
    message = r"`logits` must be given by name: write ATBMetric\(logits=True\) for log-odds, ATBMetric\(logits=False\)"
    with pytest.raises(TypeError, match=message):
        build(True)
