"""`ATBMetric` as a module: copies, files, devices, collections, and processes."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from support import torch_metrics  # noqa: E402
from support.rows import assert_same  # noqa: E402
from support.torch_metrics import METRICS, filled, logits_and_outcomes, probabilities, value_of  # noqa: E402
from torchmetrics import Metric, MetricCollection, MetricTracker  # noqa: E402
from torchmetrics.classification import BinaryAUROC  # noqa: E402

import truthcal as tc  # noqa: E402
from truthcal.torch import ATBMetric  # noqa: E402


@pytest.fixture(params=METRICS)
def build(request):
    """The class, with each of its two base classes."""
    return METRICS[request.param]


# --- modules, files, devices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [lambda metric: pickle.loads(pickle.dumps(metric)), copy.deepcopy, lambda metric: metric.clone()]
)
def test_copies_go_on(build, copied):
    p, y = probabilities(200)
    original = filled(build(logits=False), p[:100], y[:100])
    metric = copied(original)
    filled(metric, p[100:], y[100:])
    assert original.sketch().n == 100
    assert_same(metric.sketch(), filled(build(logits=False), p, y).sketch())


def test_state_is_saved_with_a_model_on_request(build):
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    model.metric = filled(build(logits=False), *probabilities(100))
    assert not [name for name in model.state_dict() if name.startswith("metric")]
    model.metric.persistent(True)
    saved = model.state_dict()
    other = torch.nn.Sequential(torch.nn.Linear(1, 1))
    other.metric = build(logits=False)
    other.metric.persistent(True)
    other.load_state_dict(saved)
    assert other.metric.compute() == model.metric.compute()
    filled(other.metric, *probabilities(100))
    assert saved["metric.sums"][0].sum() == 100  # the saved tensors are not shared


def test_a_saved_state_of_other_buckets_is_refused(build):
    metric = filled(build(logits=False, n_buckets=128), *probabilities(100))
    metric.persistent(True)
    with pytest.raises(ValueError, match="`state_dict` is not the state of an ATBMetric with n_buckets=4096"):
        build(logits=False).load_state_dict(metric.state_dict())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_a_saved_state_of_lower_precision_is_refused(build, dtype):
    metric = filled(build(logits=False), *probabilities(1000))
    metric.persistent(True)
    saved, value = {name: state.to(dtype) for name, state in metric.state_dict().items()}, metric.compute()
    message = f"`state_dict` must have sums in float64; `sums` is {dtype}, which has lost digits. Save it without"
    with pytest.raises(TypeError, match=message):
        metric.load_state_dict(saved)
    assert metric.compute() == value


def test_a_state_that_was_rounded_is_refused_by_its_sums(build):
    metric = filled(build(logits=False), *probabilities(1000))
    metric.persistent(True)
    other = build(logits=False)
    other.load_state_dict({name: state.bfloat16().double() for name, state in metric.state_dict().items()})
    with pytest.raises(ValueError, match=r"the state of the metric is inconsistent: .* Call reset\(\), and update"):
        other.sketch()


@pytest.mark.parametrize("logits", [False, True])
def test_a_saved_state_does_not_change_whether_predictions_are_logits(build, logits):
    metric, other = filled(build(logits=logits), *probabilities(100)), build(logits=not logits)
    metric.persistent(True)
    saved = metric.state_dict()
    for state in (saved, {name: value for name, value in saved.items() if name != "from_logits"}):
        other.load_state_dict(state)
        assert other.from_logits == float(not logits)
        assert_same(other.sketch(), metric.sketch())


CONVERSIONS = {
    "half": lambda model: model.half(),
    "float": lambda model: model.float(),
    "to bfloat16": lambda model: model.to(torch.bfloat16),
}


@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_sums_stay_double_in_a_model_of_another_type(build, convert):
    p, y = probabilities(1000)
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    model.metric = filled(build(logits=False), p[:500], y[:500])
    convert(model)
    filled(model.metric, p[500:], y[500:])
    assert {state.dtype for state in model.metric.metric_state.values()} == {torch.float64}
    assert value_of(model.metric) == pytest.approx(value_of(filled(build(logits=False), p, y)), rel=1e-12)
    model.metric.reset()
    assert model.metric.sums.dtype == torch.float64


def test_metric_follows_its_model_to_another_device(build):
    metric = build(logits=False).to("meta")
    assert metric.device.type == "meta"
    metric.reset()
    assert {state.device.type for state in metric.metric_state.values()} == {"meta"}
    with pytest.raises(ValueError, match="`preds` is on cpu, but the metric on meta"):
        metric.update(*probabilities(3))


def test_a_device_without_double_precision_is_never_asked_for_it(build):
    """Like mps, whose conversion raises; there, sums stay on the CPU."""

    def convert(tensor):
        if tensor.dtype == torch.float64:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
            )
        return tensor

    metric = filled(build(logits=False), *probabilities(50))
    value = metric.compute()
    assert metric._apply(convert).compute() == value
    metric._device = torch.device("mps")
    assert metric._sums_device == torch.device("cpu")


def test_inference_mode_may_begin_and_end_at_any_time(build):
    p, y = probabilities(300)
    metric = build(logits=False)
    with torch.inference_mode():
        metric.reset()
        metric.update(p[:100], y[:100])
    metric.update(p[100:200], y[100:200])
    with torch.inference_mode():
        metric(p[200:], y[200:])
    metric(p[:0], y[:0])
    assert_same(metric.sketch(), filled(build(logits=False), p, y).sketch())


# --- with and without torchmetrics ------------------------------------------------------------------------------------


def test_metric_collection():
    p, y = probabilities(500)
    collection = MetricCollection({"auc": BinaryAUROC(), "atb": ATBMetric(logits=False), "coarse": ATBMetric(logits=False, n_buckets=64)}, prefix="val_")  # fmt: skip
    for part in zip(p.split(100), y.int().split(100), strict=True):
        collection.update(*part)
    values = collection.compute()
    assert values["val_atb"] == filled(ATBMetric(logits=False), p, y, 100).compute()
    assert values["val_coarse"] == filled(ATBMetric(logits=False, n_buckets=64), p, y, 100).compute()
    collection.reset()
    assert collection["atb"].sketch().n == 0


def test_metrics_of_logits_and_probabilities_share_no_state_in_a_collection():
    """Their states are equal after an empty batch, and torchmetrics would update only one of them."""
    p, y = probabilities(500)
    metrics = {"probabilities": ATBMetric(logits=False), "logits": ATBMetric(logits=True), "coarse": ATBMetric(logits=False, n_buckets=64)}  # fmt: skip
    alone = {name: value_of(filled(metric.clone(), p, y, 100)) for name, metric in metrics.items()}
    collection = MetricCollection({**metrics, "same": ATBMetric(logits=False)})
    for part in [(p[:0], y[:0]), *zip(p.split(100), y.split(100), strict=True)]:
        collection.update(*part)
    groups = sorted(sorted(group) for group in collection.compute_groups.values())
    assert groups == [["coarse"], ["logits"], ["probabilities", "same"]]
    values = {name: value.item() for name, value in collection.compute().items()}
    assert values == pytest.approx(alone | {"same": alone["probabilities"]}, rel=1e-12)
    assert values["logits"] > 2 * values["probabilities"]


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    metric = filled(ATBMetric(logits=False), *probabilities(100))
    try:
        _, axes = metric.plot()
        assert axes.lines[0].get_ydata() == pytest.approx([value_of(metric)])
        assert metric.plot([torch.tensor(0.1), torch.tensor(0.2)], ax=axes)[1] is axes
        assert axes.lines[-1].get_ydata().tolist() == pytest.approx([0.1, 0.2])
    finally:
        pyplot.close("all")


def test_plot_without_torchmetrics_says_what_it_needs():
    with pytest.raises(ImportError, match=r"ATBMetric.plot needs torchmetrics and matplotlib: pip install"):
        METRICS["plain"](logits=False).plot()


def test_metric_tracker():
    tracker = MetricTracker(ATBMetric(logits=False))
    values = []
    for epoch in range(3):
        tracker.increment()
        p, y = probabilities(200, epoch)
        tracker.update(p, y)
        values.append(tc.Sketch().update(y.numpy(), p.numpy()).atb().value)
    best, step = tracker.best_metric(return_step=True)
    assert tracker.compute_all().tolist() == pytest.approx(values, rel=1e-12)
    assert (best, step) == (pytest.approx(min(values)), int(np.argmin(values)))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of two processes, for both base classes and two ways to share the rows."""
    script, file = Path(torch_metrics.__file__), tmp_path_factory.mktemp("gloo") / "init"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(tc.__file__).parent.parent), *sys.path])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore::UserWarning", script, str(rank), "2", file],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


@pytest.mark.parametrize("case", range(len(torch_metrics.SHARES)), ids=["uneven", "one without rows"])
@pytest.mark.parametrize("base", METRICS)
def test_two_processes_compute_the_value_of_all_rows(reports, base, case):
    shares = torch_metrics.SHARES[case]
    logits, y = logits_and_outcomes(sum(shares))
    metric = filled(METRICS[base](logits=True), logits, y)
    found = [of_process[base][case] for of_process in reports]
    assert [report["value"] for report in found] == pytest.approx([value_of(metric)] * 2, rel=1e-12)
    assert [report["n"] for report in found] == [sum(shares)] * 2
    assert [report["own"] for report in found] == list(shares)
    last = slice(shares[0] - (shares[0] % 64 or 64), shares[0])
    own_batch = value_of(filled(METRICS[base](logits=True), logits[last], y[last]))
    assert found[0]["batch"] == pytest.approx(own_batch, rel=1e-12)
    filled(metric, torch.zeros(2), torch.ones(2))
    assert [report["after"] for report in found] == [[pytest.approx(value_of(metric), rel=1e-12), sum(shares) + 2]] * 2


def run_without(library, code):
    """Run code where importing the library fails."""
    lines = f"import sys; sys.modules[{library!r}] = None\n{code}"
    environ = os.environ | {"PYTHONPATH": str(Path(tc.__file__).parent.parent)}
    return subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, env=environ, check=False)


def test_metric_without_torchmetrics():
    code = (
        "import torch; from truthcal.torch import ATBMetric; metric = ATBMetric(logits=False)\n"
        "metric.update(torch.tensor([0.25, 0.75]), torch.tensor([0, 1]))\n"
        "print(ATBMetric.__mro__[2].__name__, metric.compute().item())"
    )
    done = run_without("torchmetrics", code)
    assert done.stdout.split() == ["PlainMetric", "0.015625"], done.stderr
    assert issubclass(ATBMetric, Metric)


def test_torch_is_needed():
    done = run_without("torch", "import truthcal.torch")
    assert "ImportError: truthcal.torch needs torch: pip install 'truthcal[torch]'." in done.stderr
