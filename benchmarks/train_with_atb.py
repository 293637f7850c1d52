"""Train a small network with and without a calibration penalty, and write docs/benchmarks/training.md. Needs torch.

Penalties are added to the cross-entropy of each batch: `atb_loss`, and a soft-binned ECE. The simple alternatives,
early stopping and temperature scaling, take some of the rows for themselves. Takes about 1.5 minutes of one core.
"""

import argparse
import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pages import write_page
from torch.nn.functional import binary_cross_entropy_with_logits

import truthcal as tc
from truthcal.torch import atb_loss

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "training.md"
FEATURES, ROWS, TEST_ROWS, BATCH, EPOCHS, HELD_OUT = 6, 1000, 20_000, 200, 100, 200
COLUMNS = ("accuracy", "log loss", "Brier score", "ATB x 1,000", "error")
Tensor = torch.Tensor
Penalty = Callable[[Tensor, Tensor], Tensor]


class Method(NamedTuple):
    """A penalty with its weight in the loss, or a use of rows that are held out: "stop" or "temperature"."""

    name: str
    penalty: Penalty | None = None
    weight: float = 0.0
    held_out: str = ""


def soft_ece(p: Tensor, y: Tensor) -> Tensor:
    """Soft-binned ECE of Karandikar et al. (2021): the root mean square gap of 15 bins with soft edges."""
    share = torch.softmax(-((p[:, None] - (torch.arange(15) + 0.5) / 15) ** 2) / 0.01, 1)
    rows = share.sum(0)
    gaps = (share * (p - y)[:, None]).sum(0) / rows
    return (rows / len(p) * gaps**2).sum().sqrt()


def unbiased_atb(p: Tensor, y: Tensor) -> Tensor:
    return atb_loss(p, y, unbiased=True)


ECE = [Method(f"+ {weight:g} soft ECE", soft_ece, weight) for weight in (0.3, 0.5, 0.7, 1.0)]
ATB = [Method(f"+ {weight:g} ATB", atb_loss, weight) for weight in (10.0, 30.0, 100.0)]
PLAIN = Method("cross-entropy")
OTHERS = [
    Method("+ 30 ATB, unbiased", unbiased_atb, 30.0),
    Method("cross-entropy, stopped early", held_out="stop"),
    Method("cross-entropy, then temperature", held_out="temperature"),
]
METHODS = [PLAIN, *ECE, *ATB, *OTHERS]


def draw(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw features and noisy outcomes: most are hard to predict, three features do not matter."""
    x = torch.randn(n, FEATURES, generator=generator)
    logits = 1.5 * torch.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2]
    return x, (torch.rand(n, generator=generator) < torch.sigmoid(logits)).float()


def train(x: Tensor, y: Tensor, method: Method, held_out: tuple[Tensor, Tensor]) -> torch.nn.Module:
    """Train for so many epochs that the network becomes overconfident, or return the network of its best epoch."""
    layers = (torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU())
    network = torch.nn.Sequential(*layers, torch.nn.Linear(64, 1), torch.nn.Flatten(0))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    best, best_loss = network, math.inf
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            logits = network(x[batch])
            loss = binary_cross_entropy_with_logits(logits, y[batch])
            if method.penalty is not None:
                loss = loss + method.weight * method.penalty(torch.sigmoid(logits), y[batch])
            loss.backward()
            optimizer.step()
        if method.held_out == "stop" and (new := log_loss(network, *held_out)) < best_loss:
            best, best_loss = copy.deepcopy(network), new
    return best


@torch.no_grad()
def log_loss(network: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    return binary_cross_entropy_with_logits(network(x), y).item()


@torch.no_grad()
def best_temperature(logits: Tensor, y: Tensor) -> float:
    """Temperature with the smallest log loss, on a fine grid."""
    grid = torch.exp(torch.linspace(-1.5, 3.0, 451))
    losses = [binary_cross_entropy_with_logits(logits / t, y).item() for t in grid]
    return grid[int(np.argmin(losses))].item()


def results(method: Method, seed: int) -> list[float]:
    """Train on the rows of one seed; return COLUMNS on test rows."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    (x, y), (x_test, y_test) = draw(ROWS, generator), draw(TEST_ROWS, generator)
    fit = ROWS - HELD_OUT if method.held_out else ROWS
    held_out = x[fit:], y[fit:]
    network = train(x[:fit], y[:fit], method, held_out)
    with torch.no_grad():
        scaled = method.held_out == "temperature"
        temperature = best_temperature(network(held_out[0]), held_out[1]) if scaled else 1.0
        logits = network(x_test).double() / temperature
    loss = binary_cross_entropy_with_logits(logits, y_test.double()).item()
    p, outcomes = torch.sigmoid(logits).numpy(), y_test.numpy()
    summary = tc.atb_summary(outcomes, p)
    accuracy = float(np.mean((p > 0.5) == (outcomes == 1)))
    return [accuracy, loss, summary.brier, 1000 * summary.value, tc.error_size(outcomes, p).estimate]


def line(method: Method, found: list[list[float]]) -> str:
    """Return a row of the table: mean and standard error over seeds."""
    means, errors = np.mean(found, 0), np.std(found, 0, ddof=1) / math.sqrt(len(found))
    cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
    return f"| {method.name} | {' | '.join(cells)} |"


def smallest(found: dict[str, list[list[float]]], column: str, methods: list[Method]) -> str:
    """Name of the method with the smallest mean of a column."""
    return min((m.name for m in methods), key=lambda name: np.mean(found[name], 0)[COLUMNS.index(column)])


def difference(found: dict[str, list[list[float]]], first: str, second: str) -> str:
    """Return the differences of log loss and error, paired by seed."""
    gaps = np.array(found[first]) - np.array(found[second])
    means, errors = gaps.mean(0), gaps.std(0, ddof=1) / math.sqrt(len(gaps))
    log_loss, error = (COLUMNS.index(name) for name in ("log loss", "error"))
    return (
        f'"{first}" minus "{second}": log loss {means[log_loss]:+.3f} ± {errors[log_loss]:.3f}, '
        f"error {means[error]:+.3f} ± {errors[error]:.3f}"
    )


INTRODUCTION = """# Training with a calibration penalty

Written by `benchmarks/train_with_atb.py`; do not edit. A network with two hidden layers of 64 units is trained on
{rows:,} rows with noisy outcomes, in batches of {batch}, for {epochs} epochs, which is too long. Each line adds
a penalty to the cross-entropy of each batch, with the given weight. It is the mean over {seeds} seeds with its standard
error, on {test:,} test rows for each seed. "Error" is the root mean square calibration error (`error_size`).
Soft ECE is the soft-binned ECE of Karandikar et al. (2021). Early stopping and temperature scaling use
{held_out} of the {rows:,} rows to choose the epoch or the temperature, and train on the others.
"""
NOTES = """
The penalty sees only rows that the network is fitted to, so it cannot remove all of its overconfidence; it limits how
closely the network fits them. A weight that is too large leaves predictions near the base rate, which are calibrated
and useless. So choose the weight by the log loss of rows that were held out, not by ATB. Temperature scaling needs no
penalty and corrects the probabilities afterwards, without a change of the ranking; both can be combined.
"""


def page(found: dict[str, list[list[float]]], seeds: int) -> str:
    start = INTRODUCTION.format(rows=ROWS, batch=BATCH, epochs=EPOCHS, seeds=seeds, test=TEST_ROWS, held_out=HELD_OUT)
    lines = [f"| loss | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    lines += [line(method, found[method.name]) for method in METHODS]
    ece, atb = (smallest(found, "log loss", methods) for methods in (ECE, ATB))
    pairs = [(atb, PLAIN.name), (ece, PLAIN.name), (atb, ece), *((atb, method.name) for method in OTHERS)]
    differences = "".join(f"- {difference(found, *pair)}\n" for pair in pairs)
    heading = "Differences, paired by seed, with the weights of the smallest log loss on the test rows:"
    return "\n".join([start, *lines, "", heading, "", differences + NOTES])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--print", action="store_true", dest="show", help="print the page instead of writing it")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {method.name: [results(method, seed) for seed in range(arguments.seeds)] for method in METHODS}
    text = page(found, arguments.seeds)
    write_page(PAGE, text, show=arguments.show)


if __name__ == "__main__":
    main()
