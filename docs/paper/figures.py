"""Figures of docs/theory/paper.md, drawn with the helpers of truthcal's plots: data first, then the drawing."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truthcal as tc
from truthcal.plots import drawing as draw
from truthcal.plots.svg import figure_svg

Array = NDArray[np.float64]
KIND = "paper"


@dataclass(frozen=True)
class Figure:
    """A figure: file name, the section of the page in which it stands ("" for the end), caption and drawing."""

    name: str
    section: str
    caption: str
    draw: Callable[[Any], None]


def curve(ax: Any, x: Array, y: Array, slot: int, label: str, *, markers: bool = False, **look: Any) -> None:
    """Draw a line in the style of the model with that number, with its label for the legend."""
    style = draw.model_style(slot)
    marker = {"marker": style.marker, "markersize": 5, "markerfacecolor": "white"} if markers else {}
    line = {"color": style.color, "linestyle": style.line, "linewidth": 1.8, "label": label}
    (drawn,) = ax.plot(x, y, **{**line, **marker, **look})
    draw.tag(drawn, KIND, slot, "curve")


def finish(ax: Any, xlabel: str, ylabel: str, height: float = 3.6) -> None:
    """Draw labels and the legend below the axes."""
    ax.set_xlabel(xlabel)
    draw.set_y_label(ax, ylabel)
    draw.hide_frame(ax)
    lines = draw.draw_legend(ax, KIND, list(zip(*ax.get_legend_handles_labels(), strict=True)), [])
    draw.resize_new_figure(ax, height, lines)


def threshold_mixture(ax: Any) -> None:
    """Draw Figure 1: the optimal weight function of four kinds of events, one threshold function, and a mixture."""
    v, truth = np.array([0.1, 0.35, 0.6, 0.9]), np.array([0.3, 0.4, 0.5, 0.6])
    w, r = tc.smcal_witness(truth, v), np.linspace(0, 1, 1001)
    level = 0.62
    steps = (np.arange(20) + 0.5) / 10 - 1
    mixture = np.mean([np.sign(w(r) - step) for step in steps], axis=0)
    curve(ax, r, w(r), 0, "weight function w of smCal")
    curve(ax, r, np.where(w(r) >= level, 1.0, -1.0), 1, f"threshold function sign(w - {level})")
    curve(ax, r, mixture, 4, "mean of 20 threshold functions", linewidth=0.9, linestyle="-")
    ax.plot(v, w(v), "o", color=draw.model_style(0).color, markersize=5, label="_predictions")
    draw.reference_line(ax.axhline(level), KIND, "level")
    ax.annotate("lambda = 0.62", (0.02, level), (0, 4), textcoords="offset points", fontsize="small")
    ax.set(xlim=(0, 1), ylim=(-1.08, 1.08))
    finish(ax, "prediction r", "weight")


def monotonicity(ax: Any) -> None:
    """Draw Figure 2 and section 1.5: errors on the way from the report 50% to the states 0, 1, 0, 1, ..."""
    y, move = np.arange(10) % 2, np.linspace(0, 1, 41)
    reports = [0.5 + m * (y - 0.5) for m in move]
    lines = {
        "distCal": [tc.distcal(y, r) for r in reports],
        "smCal": [tc.smcal(y, r) for r in reports],
        "ATB": [tc.atb(y, r) for r in reports],
        "squared error of one state": [tc.atb([1], [0.5 + m / 2]) for m in move],
    }
    for slot, (name, values) in enumerate(lines.items()):
        curve(ax, move, np.array(values), slot, name)
    ax.set(xlim=(0, 1), ylim=(0, None))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["50%, 50%", "", "25%, 75%", "", "0%, 100%"])
    finish(ax, "reports for the states 0 and 1", "error")


def validity(ax: Any) -> None:
    """Draw acceptance rates of the test ATB <= 3/(2T) as T grows, calibrated and at several distances."""
    sizes = np.array([16, 64, 256, 1024, 4096])
    options: dict[str, Any] = {"threshold": lambda t: 1.5 / t, "n_simulations": 400}
    options |= {"populations": {"30% and 70%": [0.3, 0.7]}, "families": ["shift"]}
    far = 2 + math.sqrt(2 * math.log(4))
    fast = [tc.validity("atb", constant=4 * t**-0.2, n_rows=[t], **options) for t in sizes[1:].tolist()]
    accepted = np.array([one.accept_miscalibrated[0] for one in fast])
    curve(ax, sizes[1:], accepted, 3, "distCal = 4 / T^0.7", markers=True)
    for constant in (1.0, 2.0, far):
        tried = sizes[constant / np.sqrt(sizes) < 0.3]
        found = tc.validity("atb", constant=constant, n_rows=tried, **options)
        tc.plots.ValidityDisplay(found, f"distCal = {constant:.3g} / sqrt(T)").plot(ax)
    ax.set_xlabel("rows T")


def rates(ax: Any) -> None:
    """Draw expected errors of calibrated predictions, and the error of estimating ATB, as T grows."""
    rng, sizes, draws = np.random.default_rng(0), np.array([16, 64, 256, 1024, 4096]), 200
    truth, wrong = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.4, 0.5, 0.7, 0.9])
    population, brier = tc.atb(truth, wrong), float(tc.expected_score(truth, truth, "brier"))
    means: dict[str, list[float]] = {"atb": [], "smcal": [], "error": []}
    for t in sizes:
        kinds = rng.integers(0, 4, (draws, t))
        samples = [(k, (rng.random(t) < truth[k]).astype(int)) for k in kinds]
        means["atb"].append(float(np.mean([tc.atb(y, truth[k]) for k, y in samples])))
        means["smcal"].append(float(np.mean([tc.smcal(y, truth[k]) for k, y in samples])))
        means["error"].append(float(np.mean([abs(tc.atb(y, wrong[k]) - population) for k, y in samples])))
    curve(ax, sizes, np.array(means["smcal"]), 1, "mean smCal, calibrated", markers=True)
    curve(ax, sizes, np.array(means["error"]), 2, "mean error of ATB, miscalibrated", markers=True)
    curve(ax, sizes, np.array(means["atb"]), 0, "mean ATB, calibrated", markers=True, linestyle="none")
    curve(ax, sizes, brier / sizes, 0, "Brier score / T")
    for start in (means["smcal"][0], means["error"][0]):
        label = "proportional to 1 / sqrt(T)" if start == means["smcal"][0] else "_again"
        curve(ax, sizes, start * np.sqrt(sizes[0] / sizes), 4, label, linewidth=0.8, linestyle=":")
    ax.set_xscale("log", base=4)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set_yticks([1e-4, 1e-3, 1e-2, 1e-1], ["0.0001", "0.001", "0.01", "0.1"])
    ax.minorticks_off()
    finish(ax, "rows T", "error")


def gains(setting: str) -> tuple[list[int], dict[str, list[float]]]:
    """Read the sizes and the factors of each measure from a table of docs/benchmarks/best_response.md."""
    page = (Path(__file__).parent.parent / "benchmarks" / "best_response.md").read_text(encoding="utf-8")
    lines = [line for line in page.split(f"## {setting}")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    sizes = [int(cell.removeprefix("T = ").replace(",", "")) for cell in cells[0][1:]]
    return sizes, {row[0].strip("`"): [float(re.findall(r"[\d.]+", cell)[0]) for cell in row[1:]] for row in cells[2:]}


def draw_gains(ax: Any, setting: str, measures: dict[str, str], highest: int) -> None:
    """Draw the factors that lying gains under some measures, as T grows."""
    sizes, factors = gains(setting)
    for slot, (name, label) in enumerate(measures.items()):
        curve(ax, np.array(sizes), np.array(factors[name]), slot, label, markers=True)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ticks = [2**k for k in range(highest.bit_length())]
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.set_ylim(0.93, 1.2 * highest)
    ax.minorticks_off()
    finish(ax, "events T", "factor gained by lying")


def lies_in_a_batch(ax: Any) -> None:
    """Draw the expected error of the truth over that of the best report found, as T grows."""
    names = {"atb": "ATB", "smcal": "smCal", "step_ce": "StepCE", "ece": "ECE, 15 bins", "unbinned_ece": "ECE"}
    draw_gains(ax, "Batch", names, 32)


def lies_in_sequence(ax: Any) -> None:
    """Draw the expected error of the truth over that of the best policy found, as T grows, outcome by outcome."""
    names = {"atb": "ATB", "smcal": "smCal", "step_ce": "StepCE", "subsampled_smcal": "SSCE", "brier": "Brier score"}
    draw_gains(ax, "Sequence: each outcome", names, 8)


FIGURES = (
    Figure(
        "threshold_mixture",
        "1 Introduction",
        "**Figure 1.** The 1-Lipschitz weight function w that attains smCal (0.0769) for predictions 10%, 35%, 60%,"
        " 90% (dots) of events with true probabilities 30%, 40%, 50%, 60%; one of its threshold functions; and the "
        "mean of 20 of them, which becomes w as their number grows.",
        threshold_mixture,
    ),
    Figure(
        "monotonicity",
        "1 Introduction",
        "**Figure 2 and section 1.5.** Reports move from 50% towards the states 0, 1, 0, 1, ... A truthful error of "
        "one state only falls on the way. A calibration error is 0 at both ends and positive between them, and so is "
        "ATB. It is truthful nevertheless: for independent states, which a mixture of two distributions need not be.",
        monotonicity,
    ),
    Figure(
        "validity",
        "5 Linear-time calibration tester",
        "**Power as T grows** (Theorem 5.1). The test ATB <= 3/(2T) at distances C / sqrt(T), drawn by "
        "`ValidityDisplay`: the gap to calibrated predictions (thin lines) stays, as validity requires. At distances "
        "that shrink faster, every test fails (Lemma 5.4). All predictions are 30% or 70%, and the true probabilities "
        "are shifted; 400 samples for each marker.",
        validity,
    ),
    Figure(
        "rates",
        "B ATB and Brier loss",
        "**Rates.** For calibrated predictions E[ATB] is the Brier score / T (Lemma B.1; the line is exact, the "
        "markers are means of 200 samples) and smCal falls like 1 / sqrt(T). Estimates of ATB for a miscalibrated "
        "population approach it like 1 / sqrt(T) (Theorem 4.10).",
        rates,
    ),
    Figure(
        "lies_in_a_batch",
        "3 Truthful family: unnormalized binned squared errors",
        "**Honest against the best lie as T grows, in a batch.** Expected error of the truth divided by that of the"
        " best report that `best_response` finds, for T events with true probabilities (k - 1/2)/T. For ATB no "
        "report is better than the truth (Theorem 3.2). For the others larger factors may be possible. Data: "
        "[benchmark](../benchmarks/best_response.md), `python benchmarks/best_response.py`.",
        lies_in_a_batch,
    ),
    Figure(
        "lies_in_sequence",
        "3 Truthful family: unnormalized binned squared errors",
        "**In sequence**, each outcome is revealed before the next report, and all true probabilities are 1/2. Here "
        "the paper's theorems do not apply, and lying gains under ATB too; whether a perfectly truthful, complete and "
        "sound measure exists is open (section 1.6). The factors are lower bounds of what is possible, up to the noise "
        "of 400 simulations for T of 16 or more. SSCE is `subsampled_smcal`. Data: as above.",
        lies_in_sequence,
    ),
)


def text(section: str) -> list[str]:
    """Return the figures of a section as Markdown."""
    source = "[code](../paper/figures.py)"
    return [
        f"![{str(figure.draw.__doc__).removeprefix('Draw ')}](figures/{figure.name}.svg)\n\n{figure.caption} ({source})"
        for figure in FIGURES
        if figure.section == section
    ]


def draw_all() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG text of each figure, on a white background."""
    for figure in FIGURES:
        svg = figure_svg(figure.draw, (6.0, 3.8), salt=figure.name)
        end = svg.index(">", svg.index("<svg")) + 1
        yield figure.name, f'{svg[:end]}\n <rect width="100%" height="100%" fill="#ffffff"/>{svg[end:]}'
