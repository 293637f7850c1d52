"""Figures of docs/theory/paper.md, each drawn by a Display of truthcal.plots."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import truthcal as tc
from truthcal import plots
from truthcal.plots.svg import figure_svg


@dataclass(frozen=True)
class Figure:
    """A figure: file name, the section of the page in which it stands ("" for the end), caption and drawing."""

    name: str
    section: str
    caption: str
    draw: Callable[[Any], None]


def threshold_mixture(ax: Any) -> None:
    """Draw Figure 1: the optimal weight function of four kinds of events, one threshold function, and a mixture."""
    truth, predictions = [0.3, 0.4, 0.5, 0.6], [0.1, 0.35, 0.6, 0.9]
    plots.SmoothWitnessDisplay.from_predictions(truth, predictions, n_thresholds=20, ax=ax)


def monotonicity(ax: Any) -> None:
    """Draw Figure 2 and section 1.5: errors on the way from the report 50% to the states 0, 1, 0, 1, ..."""
    y = np.arange(10) % 2
    measures = {"distCal": tc.distcal, "smCal": tc.smcal, "ATB": tc.atb}
    measures["squared error of one state"] = lambda states, reports: float(np.mean((reports - states) ** 2))
    plots.BlendDisplay.from_predictions(y, np.full(10, 0.5), y, measures=measures, ax=ax)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["50%, 50%", "", "25%, 75%", "", "0%, 100%"])
    ax.set_xlabel("reports for the states 0 and 1")


def validity(ax: Any) -> None:
    """Draw acceptance rates of the test ATB <= 3/(2T) as T grows, calibrated and at several distances."""
    sizes = np.array([16, 64, 256, 1024, 4096])
    options: dict[str, Any] = {"threshold": lambda t: 1.5 / t, "n_simulations": 400}
    options |= {"populations": {"30% and 70%": [0.3, 0.7]}, "families": ["shift"]}
    far = 2 + math.sqrt(2 * math.log(4))
    for constant in (1.0, 2.0, far):
        tried = sizes[constant / np.sqrt(sizes) < 0.3]
        found = tc.validity("atb", constant=constant, n_rows=tried, **options)
        plots.ValidityDisplay(found, f"distCal = {constant:.3g} / sqrt(T)").plot(ax)
    shrinking = [tc.validity("atb", constant=4 * t**-0.2, n_rows=[t], **options) for t in sizes[1:].tolist()]
    fields = (
        "n_rows",
        "distance",
        "threshold",
        "accept_calibrated",
        "accept_miscalibrated",
        "standard_error",
        "best_possible",
    )
    joined: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in shrinking]) for name in fields}
    plots.ValidityDisplay(replace(shrinking[0], **joined, constant=math.nan), "distCal = 4 / T^0.7").plot(ax)
    ax.set_xlabel("rows T")


def rates(ax: Any) -> None:
    """Draw expected errors of calibrated predictions, and the error of estimating ATB, as T grows."""
    truth, wrong = [0.2, 0.4, 0.6, 0.8], [0.4, 0.5, 0.7, 0.9]
    population = tc.atb(truth, wrong)

    def sampled_atb(y: Any, p: Any) -> float:
        return tc.atb(y, p)

    def error_of_atb(y: Any, p: Any) -> float:
        return abs(tc.atb(y, p) - population)

    for name, report, measure in (
        ("smCal, calibrated", truth, "smcal"),
        ("error of ATB, miscalibrated", wrong, error_of_atb),
        ("ATB, calibrated, exact", truth, "atb"),
        ("ATB, calibrated, simulated", truth, sampled_atb),
    ):
        sizes = [16, 64, 256, 1024, 4096]
        scores = [tc.expected_score(report, truth, measure, n_rows=t, n_resamples=400) for t in sizes]
        plots.ExpectedScoreDisplay(scores, name).plot(ax)
    ax.set(xlabel="rows T", ylabel="expected error")


def draw_gains(ax: Any, setting: str, truth: Callable[[int], Any], measures: dict[str, str]) -> None:
    """Draw the factors that lying gains under some measures, as T grows."""
    for measure, name in measures.items():
        found = [
            tc.best_response(truth(events), measure, setting=setting, n_resamples=400) for events in (2, 8, 128, 1024)
        ]
        plots.BestResponseDisplay(found, name).plot(ax)
    ax.set_xlabel("events T")


def lies_in_a_batch(ax: Any) -> None:
    """Draw the expected error of the truth over that of the best report found, as T grows."""
    names = {"atb": "ATB", "smcal": "smCal", "step_ce": "StepCE", "ece": "ECE, 15 bins", "unbinned_ece": "ECE"}
    draw_gains(ax, "batch", lambda events: (np.arange(events) + 0.5) / events, names)


def lies_in_sequence(ax: Any) -> None:
    """Draw the expected error of the truth over that of the best policy found, as T grows, outcome by outcome."""
    names = {"atb": "ATB", "smcal": "smCal", "step_ce": "StepCE", "subsampled_smcal": "SSCE", "brier": "Brier score"}
    draw_gains(ax, "sequential", lambda events: np.full(events, 0.5), names)


FIGURES = (
    Figure(
        "threshold_mixture",
        "1 Introduction",
        "**Figure 1.** The 1-Lipschitz weight function w that attains smCal (0.0769) for predictions 10%, 35%, 60%,"
        " 90% (dots) of events with true probabilities 30%, 40%, 50%, 60%; one of its threshold functions; and the "
        "mean of 20 of them, which becomes w as their number grows. Drawn by `SmoothWitnessDisplay`.",
        threshold_mixture,
    ),
    Figure(
        "monotonicity",
        "1 Introduction",
        "**Figure 2 and section 1.5.** Reports move from 50% towards the states 0, 1, 0, 1, ... A truthful error of "
        "one state only falls on the way. A calibration error is 0 at both ends and positive between them, and so is "
        "ATB. It is truthful nevertheless: for independent states, which a mixture of two distributions need not be. "
        "Drawn by `BlendDisplay`.",
        monotonicity,
    ),
    Figure(
        "validity",
        "5 Linear-time calibration tester",
        "**Power as T grows** (Theorem 5.1). The test ATB <= 3/(2T) at distances C / sqrt(T): the gap to calibrated "
        "predictions (thin lines) stays, as validity requires. At distances that shrink faster, every test fails "
        "(Lemma 5.4). All predictions are 30% or 70%, and the true probabilities are shifted; 400 samples for each "
        "marker. Drawn by `ValidityDisplay`.",
        validity,
    ),
    Figure(
        "rates",
        "B ATB and Brier loss",
        "**Rates.** For calibrated predictions E[ATB] is the Brier score / T (Lemma B.1, exact; the means of simulated "
        "samples agree) and smCal falls like 1 / sqrt(T). Estimates of ATB for a miscalibrated population approach it "
        "like 1 / sqrt(T) (Theorem 4.10). The legend shows the fitted power of T; 400 samples for each simulated "
        "marker. Drawn by `ExpectedScoreDisplay`.",
        rates,
    ),
    Figure(
        "lies_in_a_batch",
        "3 Truthful family: unnormalized binned squared errors",
        "**Honest against the best lie as T grows, in a batch.** Expected error of the truth divided by that of the"
        " best report that `best_response` finds, for T events with true probabilities (k - 1/2)/T. For ATB no "
        "report is better than the truth (Theorem 3.2). For the others larger factors may be possible. Drawn by "
        "`BestResponseDisplay`; more measures and sizes: [benchmark](../benchmarks/best_response.md).",
        lies_in_a_batch,
    ),
    Figure(
        "lies_in_sequence",
        "3 Truthful family: unnormalized binned squared errors",
        "**In sequence**, each outcome is revealed before the next report, and all true probabilities are 1/2. Here "
        "the paper's theorems do not apply, and lying gains under ATB too; whether a perfectly truthful, complete and "
        "sound measure exists is open (section 1.6). The factors are lower bounds of what is possible, up to the noise "
        "of 400 simulations for T of 16 or more; markers are open where no gain is shown. SSCE is `subsampled_smcal`. "
        "Drawn by `BestResponseDisplay`.",
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
