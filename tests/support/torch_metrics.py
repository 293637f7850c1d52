"""`ATBMetric` on both of its base classes; run as a script, one process of a distributed run."""

import json
import sys

import torch
import torch.distributed as dist

from truthcal.torch.metric import ATBMetric, SketchMetric
from truthcal.torch.plain_metric import PlainMetric


class PlainATBMetric(SketchMetric, PlainMetric):
    """`ATBMetric` as it is defined where torchmetrics is not installed."""


METRICS = {"torchmetrics": ATBMetric, "plain": PlainATBMetric}
# Rows of each of two processes.
SHARES = [(500, 300), (400, 0)]


def logits_and_outcomes(n, seed=0, dtype=torch.float32):
    """Logits of overconfident predictions, and outcomes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, generator=generator).mul(2).to(dtype)
    return logits, torch.rand(n, generator=generator) < torch.sigmoid(0.7 * logits.double())


def probabilities(n, seed=0, dtype=torch.float32):
    logits, y = logits_and_outcomes(n, seed)
    return torch.sigmoid(logits).to(dtype), y


def filled(metric, p, y, batch=64):
    for part in zip(p.split(batch), y.split(batch), strict=True):
        metric.update(*part)
    return metric


def value_of(metric):
    return metric.compute().item()


def state_of(metric):
    return {name: value.clone() for name, value in metric.metric_state.items()}


def assert_state(metric, expected):
    assert metric.metric_state.keys() == expected.keys()
    for name, value in metric.metric_state.items():
        assert torch.equal(value, expected[name]), name


def report_of_process(build, rank, shares):
    """Add this process's share of the rows, and return what the metric says."""
    logits, y = logits_and_outcomes(sum(shares))
    start = sum(shares[:rank])
    mine = slice(start, start + shares[rank])
    metric, batch = build(logits=True), None
    for x, outcomes in zip(logits[mine].split(64), y[mine].split(64), strict=True):
        batch = metric(x, outcomes)
    report = {"value": metric.compute().item(), "n": metric.sketch().n, "own": int(metric.sums[0].sum())}
    report["batch"] = batch.item() if shares[rank] else None
    metric.update(torch.tensor([0.0]), torch.tensor([1]))  # the state is that of this process again
    return report | {"after": (metric.compute().item(), metric.sketch().n)}


if __name__ == "__main__":
    rank, world, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    found = {name: [report_of_process(build, rank, shares) for shares in SHARES] for name, build in METRICS.items()}
    sys.stdout.write(json.dumps(found))
    dist.destroy_process_group()
