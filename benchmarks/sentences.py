"""Draw data of known shapes, and count how often each sentence of `assess` is true: docs/benchmarks/sentences.md.

`python benchmarks/sentences.py worst direction detectable` runs the named parts (all without names).
"""

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from shapes import HONEST, SHAPES, TOO_GOOD, Array, Rows, Shape, outcomes, summaries, true_mean_error, true_size

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference.calibration_test import Plan, calibration_test_of
from truthcal.inference.direction import kind_of_error
from truthcal.inference.error_size import error_size_of
from truthcal.inference.laws.redraw import Outcomes
from truthcal.inference.worst_stretch import worst_stretch_of

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "sentences.md"
SIZES = (300, 1000, 10_000)


# --- where it is worst ------------------------------------------------------------------------------------------------


def worst_cells(shape: Shape, n: int, repeats: int) -> list[object]:
    """Simulate one shape: how often a stretch is named, how often the sentence is false, and its median limit."""
    rng, cells = np.random.default_rng([n, 14]), []
    limits: dict[str, list[float]] = {"rows": [], "sketch": []}
    wrong = dict.fromkeys(limits, 0)
    for _ in range(repeats):
        rows = shape(rng, n)
        for name, summary in summaries(rows).items():
            stretch = worst_stretch_of(summary.points())
            if stretch is not None:
                limit = stretch.error_at_least
                limits[name].append(abs(limit))
                wrong[name] += not true_mean_error(rows, stretch.low, stretch.high) * math.copysign(1.0, limit) >= abs(
                    limit
                )
    for name, values in limits.items():
        cells += [f"{len(values) / repeats:.2f}", f"{wrong[name] / repeats:.3f}"]
    return [*cells, f"{np.median(limits['rows']):.3f}" if limits["rows"] else "-"]


def worst(repeats: int) -> str:
    """Simulate the sentence "at least 0.03 too high between 0.3 and 0.6"."""
    lines = [line(name, f"{n:,}", *worst_cells(shape, n, repeats)) for name, shape in SHAPES.items() for n in SIZES]
    return WORST.format(repeats=repeats, lines="\n".join(lines))


WORST = """\
`Assessment.worst`: "at least 0.03 too high between 0.3 and 0.6 (95% confidence)". A sentence is false if the true mean
error there is smaller, or has the other sign: this must happen in at most 5% of all samples. {repeats} samples per
line.

| shape | rows | stated | false | stated (sketch) | false (sketch) | median limit |
|---|---:|---:|---:|---:|---:|---:|
{lines}
"""


# --- direction ------------------------------------------------------------------------------------------------------


def logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def expit(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


# Predictions with these means.
BASES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "0.002": lambda rng, n: rng.beta(1.0, 499.0, n),
    "0.02": lambda rng, n: rng.beta(1.0, 49.0, n),
    "0.1": lambda rng, n: rng.beta(1.5, 13.5, n),
    "0.5": lambda rng, n: rng.beta(1.0, 1.0, n),
    "0.5, bimodal": lambda rng, n: rng.beta(0.3, 0.3, n),
}
# Truths as functions of predictions p and of their mean m.
DIRECTIONS: dict[str, Callable[[Array, float], Array]] = {
    "predictions doubled": lambda p, m: p / 2.0,
    "log-odds 0.3 too high": lambda p, m: expit(logit(p) - 0.3),
    "log-odds 0.4 too low": lambda p, m: expit(logit(p) + 0.4),
    "slope 0.6 about the mean": lambda p, m: expit(logit(np.array(m)) + 0.6 * (logit(p) - logit(np.array(m)))),
    "slope 1.5 about the mean": lambda p, m: expit(logit(np.array(m)) + 1.5 * (logit(p) - logit(np.array(m)))),
    "wave of 2.5 periods": lambda p, m: p + 0.5 * p * (1.0 - p) * np.cos(5.0 * math.pi * (1.0 - p) ** (1.0 / m - 1.0)),
}
# Each truth gets as many rows as give this evidence: twice the Kullback-Leibler divergence of truth and predictions.
EVIDENCE = (40, 100)


def right_words(p: Array, truth: Array) -> list[str]:
    """Derive the right words from a population.

    "too high", "too low": at least half of the absolute error remains if errors of both signs cancel. "overconfident",
    "underconfident": the error changes sign once, up to 30% of it, and is not nearly all on one side. "miscalibrated":
    neither holds well.
    """
    error = (p - truth)[np.argsort(p)]
    total, upto = np.sum(np.abs(error)), np.cumsum(error)
    one_sided, turned = upto[-1] / total, (upto[-1] - 2.0 * upto) / total
    turning = turned[np.argmax(np.abs(turned))]
    words = []
    if abs(one_sided) >= 0.5:
        words.append("too high" if one_sided > 0.0 else "too low")
    if abs(one_sided) <= 0.9 and abs(turning) >= 0.7:
        words.append("overconfident" if turning > 0.0 else "underconfident")
    if abs(one_sided) <= 0.8 and abs(turning) <= 0.8:
        words.append("miscalibrated")
    return words


def direction_cells(base: str, name: str, repeats: int) -> list[object]:
    """Simulate one truth: right words, rows, how often the error is found, and how often its word is right."""
    rng, truth_of = np.random.default_rng([list(BASES).index(base), list(DIRECTIONS).index(name)]), DIRECTIONS[name]

    def predictions(n: int) -> Array:
        return np.clip(BASES[base](rng, n), 1e-9, 1.0 - 1e-9)

    p = predictions(400_000)
    mean = float(np.mean(p))
    truth = truth_of(p, mean)
    divergence = np.mean(truth * np.log(truth / p) + (1.0 - truth) * np.log((1.0 - truth) / (1.0 - p)))
    right = right_words(p, truth)
    cells: list[object] = [" or ".join(right)]
    for evidence in EVIDENCE:
        n, words = int(float(f"{max(evidence / 2.0 / divergence, 500.0):.1g}")), []
        for _ in range(repeats):
            p = predictions(n)
            y, p, _, _ = outcomes(rng, p, truth_of(p, mean))
            summary = tc.Sketch().update(y, p)
            if calibration_test_of(summary, "information_atb", Plan("asymptotic")).pvalue <= 0.05:
                words.append(kind_of_error(summary.points()))
        share = sum(word in right for word in words) / max(len(words), 1)
        cells += [f"{n:,}", f"{len(words) / repeats:.2f}", f"{share:.3f}"]
    return cells


def direction(repeats: int) -> str:
    """Simulate the word of the verdict for 30 known truths."""
    lines = [line(base, name, *direction_cells(base, name, repeats)) for base in BASES for name in DIRECTIONS]
    return DIRECTION.format(repeats=repeats, evidence=" and ".join(map(str, EVIDENCE)), lines="\n".join(lines))


DIRECTION = """\
The word of the verdict, for 30 truths. The right words follow from the population: "too high" or "too low" if at least
half of the mean absolute error is left where errors of both signs cancel; "overconfident" or "underconfident" if the
error changes sign once; "miscalibrated" (no clear direction) only if neither describes it. A word counts where the
error is significant, and must be right in at least 95% of these samples. There are as many rows as give expected
likelihood ratios of {evidence} (at least 500). {repeats} samples per line and number of rows.

| base rate | truth | right words | rows | significant | word is right | rows | significant | word is right |
|---|---|---|---:|---:|---:|---:|---:|---:|
{lines}
"""


# --- detectable -------------------------------------------------------------------------------------------------------


PREDICTIONS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "uniform": lambda rng, n: rng.random(n),
    "Beta(2, 2)": lambda rng, n: rng.beta(2.0, 2.0, n),
    "rare, Beta(1, 49)": lambda rng, n: rng.beta(1.0, 49.0, n),
    "bimodal, Beta(0.3, 0.3)": lambda rng, n: rng.beta(0.3, 0.3, n),
}


def with_slope(p: Array, slope: float, mean: float) -> Array:
    """Truth whose log-odds have this slope in the predicted ones, and this mean."""
    low, high = -80.0 * (1.0 + slope), 80.0 * (1.0 + slope)
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.mean(expit(middle + slope * logit(p))) < mean else (low, middle)
    return expit(low + slope * logit(p))


def printed_truths(p: Array, words: str) -> dict[str, Array]:
    """Parse "a shift of 0.019 or more and log-odds slopes beyond 0.87 to 1.15": a truth at each size that is named."""
    mean, number = float(np.mean(p)), r"(\d+(?:\.\d+)?)"
    unit = next(size for name, size in reversed(UNITS.items()) if name in words)
    truths = {}
    for way, sign in (("high", "+"), ("low", "-")):
        if size := re.search(rf"\{sign}{number}|a shift of {number}", words):
            truths[f"too {way}"] = np.clip(p - float(sign + (size[1] or size[2])) / unit, 0.0, 1.0)
    for name, pattern in (
        ("overconfident", rf"slopes (?:beyond|below) {number}"),
        ("underconfident", rf"slopes (?:above|beyond \S+ to) {number}"),
    ):
        if slope := re.search(pattern, words):
            truths[name] = with_slope(p, float(slope[1]), mean)
    return truths


def detectable(repeats: int) -> str:
    """Simulate the power at the sizes that `detectable_error` prints."""
    lines = []
    for name, draw in PREDICTIONS.items():
        for n in SIZES:
            rng = np.random.default_rng([n, 3])
            p = np.clip(draw(rng, n), 1e-9, 1.0 - 1e-9)
            words = tc.detectable_error(p).shapes
            truths = printed_truths(p, words)
            powers = simulated_powers(p, truths, repeats, rng)
            shown = (f"{powers[key]:.3f}" if key in powers else "-" for key in KINDS)
            lines.append(line(name, f"{n:,}", words, *shown))
    return DETECTABLE.format(repeats=repeats, lines="\n".join(lines))


KINDS = ("too high", "too low", "overconfident", "underconfident")


def simulated_powers(p: Array, truths: dict[str, Array], repeats: int, rng: np.random.Generator) -> dict[str, float]:
    """Return how often the exact test at level 0.05 rejects, for each truth."""
    sample = Sample.of(np.zeros(len(p)), p)
    order = np.argsort(p, kind="stable")

    def values(chance: Array, count: int) -> Array:
        drawn = Outcomes(sample, chance)
        statistic = drawn.values("information_atb")
        return np.concatenate([statistic(drawn.draw(rng, 100)) for _ in range(count // 100)])

    critical = np.quantile(values(sample.p, 10 * repeats), 0.95)
    return {name: float(np.mean(values(truth[order], repeats) >= critical)) for name, truth in truths.items()}


DETECTABLE = """\
`detectable_error`, the sizes as printed, and the simulated power of the test (level 0.05) at these sizes: 0.75 to 0.85.
With a shift of d, the truth is p - d (too high) or p + d (too low), but at least 0 and at most 1.
{repeats} samples from each truth, and 10 times as many under calibration.

| predictions | rows | would have been detected with 80% power | too high | too low | overconfident | underconfident |
|---|---:|---|---:|---:|---:|---:|
{lines}
"""


# --- the size of the error, and the gate ------------------------------------------------------------------------------


def error_cells(shape: Shape, n: int, repeats: int) -> list[object]:
    """Simulate one shape: coverage of the true error from rows and from a sketch, and medians of the interval."""
    rng, found = np.random.default_rng([n, 15]), []
    hits: dict[str, list[bool]] = {"rows": [], "sketch": []}
    for _ in range(repeats):
        rows = shape(rng, n)
        true = true_size(rows)
        for name, summary in summaries(rows).items():
            error = error_size_of(summary.points(), 0.95)
            if not math.isnan(error.low):
                hits[name].append(error.low - 1e-12 <= true <= error.high + 1e-12)
                found += [(true, error.estimate, error.low, error.high)] if name == "rows" else []
    medians = np.median(found, axis=0)
    return [*(f"{np.mean(each):.3f}" for each in hits.values()), *(f"{value:.4f}" for value in medians)]


def error(repeats: int) -> str:
    """Simulate the sentence "the error is about 0.074 (95%: 0.06 to 0.09)"."""
    lines = [line(name, f"{n:,}", *error_cells(shape, n, repeats)) for name, shape in SHAPES.items() for n in SIZES]
    return ERROR.format(repeats=repeats, lines="\n".join(lines))


ERROR = """\
`error_size` and `Assessment.error`: how often the interval contains the true root mean square error of the
predictions, nominally 95%; the limits are 0.92 and 0.985. Coverage is larger for 300 rows where the upper end is often
that of the bias, or of the bias with signs reversed above 1/2: the error is never smaller than these, so that the
interval must not end below theirs. A sample in which a few rows have nearly all of the weight has no interval, and does
not count. {repeats} samples per line.

| shape | rows | coverage | coverage (sketch) | true error | median estimate | median low | median high |
|---|---:|---:|---:|---:|---:|---:|---:|
{lines}
"""


def gate_cells(shape: Shape, n: int, repeats: int) -> list[object]:
    """Simulate `check` for limits of 1/1.2 and 2 times the true error, or of 0.05 if there is no error.

    With `max_error` alone, `check` compares the interval of `error_size` with it: a test makes sure of that.
    """
    rng, counts = np.random.default_rng([n, 16]), np.zeros(4, int)
    for _ in range(repeats):
        rows = shape(rng, n)
        true, found = true_size(rows) or 0.025, error_size_of(summaries(rows)["rows"].points(), 0.95)
        counts += [
            decision for limit in (true / 1.2, 2.0 * true) for decision in (found.high <= limit, found.low > limit)
        ]
    shares = [f"{count / repeats:.3f}" for count in counts]
    return shares if true_size(rows) > 0.0 else ["-", "-", *shares[2:]]


def gate(repeats: int) -> str:
    """Simulate `check(max_error=...)`."""
    lines = [line(name, f"{n:,}", *gate_cells(shape, n, repeats)) for name, shape in SHAPES.items() for n in SIZES[1:]]
    return GATE.format(repeats=repeats, lines="\n".join(lines))


GATE = """\
`check(max_error=X)`: how often it passes and fails predictions whose true error is 1.2 X (it must pass at most 5% of
them) and 0.5 X (enough rows must pass at least 80%). Without an error, X is 0.05. {repeats} samples per line.

| shape | rows | 1.2 X passes | 1.2 X fails | 0.5 X passes | 0.5 X fails |
|---|---:|---:|---:|---:|---:|
{lines}
"""


# --- as printed -------------------------------------------------------------------------------------------------------


NUMBER = r"(\d[\d.]*(?:e-\d+)?)"
# Words after a number, or after the second of two, that give its unit.
UNITS = {"": 1.0, " per 1,000": 1e3, " per 100,000": 1e5, " per million": 1e6, " per billion": 1e9}
UNIT = f"({'|'.join(sorted(UNITS, reverse=True))})"
DIRECTIONS_IN_TEXT = ("Too high", "Too low", "Overconfident", "Underconfident")


def error_is_true(text: str, rows: Rows) -> bool | None:
    """Check "The error is about 0.07 (95%: 0.06 to 0.08)" or "the error is at most 0.1"; None if neither is printed."""
    true = true_size(rows)
    if found := re.search(rf"error is about {NUMBER}{UNIT} \(95%: {NUMBER} to {NUMBER}\)", text):
        return float(found[3]) <= true * UNITS[found[2]] <= float(found[4])
    found = re.search(rf"error is at most {NUMBER}{UNIT} \(95% confidence\)", text)
    return true * UNITS[found[2]] <= float(found[1]) if found else None


def worst_is_true(text: str, rows: Rows) -> bool | None:
    """Check "at least 0.03 too high between 0.3 and 0.6"; the ends are printed with three digits."""
    place = rf"(?:between|at) {NUMBER}(?: and {NUMBER})?{UNIT} \("
    found = re.search(rf"Worst place: at least {NUMBER}{UNIT} too (high|low) {place}", text)
    if not found:
        return None
    low, high = (float(end) / UNITS[found[6]] for end in (found[4], found[5] or found[4]))
    error = true_mean_error(rows, low - 0.005 * low, high + 0.005 * high) * UNITS[found[2]]
    return error * (1.0 if found[3] == "high" else -1.0) >= float(found[1])


def ratio_is_true(text: str, rows: Rows) -> bool | None:
    """Check "It predicts 2.0 times as many events as happen (95%: 1.8 to 2.2)"."""
    found = re.search(rf"times as many (non-)?events as .*? \(95%: {NUMBER} to {NUMBER}\)", text)
    _, p, truth, _ = rows
    if not found:
        return None
    ratio = np.sum(1.0 - p) / np.sum(1.0 - truth) if found[1] else np.sum(p) / np.sum(truth)
    return float(found[2]) <= ratio <= float(found[3])


def word_is_true(text: str, right: list[str]) -> bool | None:
    """Check the direction that the verdict names; None if it names none."""
    first = text.split(":")[0]
    return first.lower() in right if first in DIRECTIONS_IN_TEXT else None


def shares(answers: list[bool | None]) -> list[str]:
    """Return the share of samples in which a sentence is printed, and in which it is false."""
    return [f"{np.mean([a is not None for a in answers]):.2f}", f"{np.mean([a is False for a in answers]):.2f}"]


def printed_cells(shape: Shape, n: int, repeats: int) -> list[str]:
    """Read what `check` and `assess` print: rows and sketches in turn, limits of 1/1.2 and 2 times the true error."""
    rng = np.random.default_rng([n, 17])
    population = shape(rng, 200_000)
    right = [] if true_size(population) == 0.0 else right_words(population[1], population[2])
    answers: dict[str, list[bool | None]] = {key: [] for key in ("error", "worst", "word", "ratio")}
    unclear, passed = [], {True: [], False: []}  # verdicts without direction; passes of large errors, and of small ones
    for k in range(repeats):
        rows = shape(rng, n)
        y, p, _, weight = rows
        large, limit = k % 4 < 2, true_size(rows)
        data = (y, p) if k % 2 else (tc.Sketch().update(y, p, weight),)
        gate = tc.check(
            *data, sample_weight=weight if k % 2 else None, max_error=(limit / 1.2 if large else 2.0 * limit) or 0.05
        )
        status, text = str(gate).split("\n\n", 1)
        answers["error"].append(error_is_true(text, rows))
        answers["worst"].append(worst_is_true(text, rows))
        answers["word"].append(word_is_true(text, right))
        answers["ratio"].append(ratio_is_true(text, rows))
        unclear.append("in no clear direction" in text)
        passed[large].append(status.startswith("Pass"))
    gates = [f"{np.mean(passed[large]):.2f}" if right or not large else "-" for large in (True, False)]
    cells = {key: shares(each) for key, each in answers.items()}
    return [cells["error"][1], *cells["worst"], *cells["word"], f"{np.mean(unclear):.2f}", *cells["ratio"], *gates]


def printed(repeats: int) -> str:
    """Simulate the whole text."""
    lines = [line(name, f"{n:,}", *printed_cells(shape, n, repeats)) for name, shape in SHAPES.items() for n in SIZES]
    return PRINTED.format(repeats=repeats, lines="\n".join(lines))


PRINTED = """\
The text that `check(max_error=X)` prints, which includes that of `assess`, is parsed, and each sentence is compared
with the truth. {repeats} samples per line, rows and sketches in turn. The columns are shares of all samples: how often
a sentence is printed, and how often it is printed and false, which should happen in at most 5%.

- Error: the printed interval, or the printed upper limit, does not contain the true error.
- Worst place: the printed limit does not hold for the mean true error of the predictions in the printed range.
- Direction: "too high", "too low", "overconfident" or "underconfident" does not describe the population (see
  [Direction](#direction)). Where there is no error, each of them is false, and 5% of the samples may have one.
  "Unclear" counts verdicts "in no clear direction".
- Ratio of rare events: the printed interval does not contain the true ratio.
- Gate: the share that passes; the true error is 1.2 X (at most 0.05 may pass) or 0.5 X. Without an error, X is 0.05.

| shape | rows | error: false | worst | false | direction | false | unclear | ratio | false | pass 1.2 X | pass 0.5 X |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{lines}
"""


# --- too good ---------------------------------------------------------------------------------------------------------


def too_good(repeats: int) -> str:
    """Simulate "Unusually close: predictions are closer to the outcomes than chance allows"."""
    lines = []
    for name, draw in (HONEST | TOO_GOOD).items():
        rng = np.random.default_rng(18)
        count = repeats if name in HONEST else repeats // 5
        said = [str(tc.assess(*draw(rng))).startswith("Unusually close") for _ in range(count)]
        lines.append(line(name, "yes" if name in HONEST else "no", count, f"{np.mean(said):.3f}"))
    return CLOSE.format(lines="\n".join(lines))


CLOSE = """\
"Unusually close: predictions are closer to the outcomes than chance allows": how often `assess` prints it. For
calibrated predictions of independent outcomes this may happen in at most 1% of the samples.

| predictions | calibrated and independent | samples | printed |
|---|---|---:|---:|
{lines}
"""


# --- the page -------------------------------------------------------------------------------------------------------


def line(*cells: object) -> str:
    text = f"| {' | '.join(map(str, cells))} |"
    print(text, flush=True)
    return text


# Heading, function, and repeats by default.
PARTS: dict[str, tuple[str, Callable[[int], str], int]] = {
    "printed": ("As printed", printed, 100),
    "error": ("The size of the error", error, 500),
    "gate": ("The gate", gate, 400),
    "worst": ("Where it is worst", worst, 200),
    "direction": ("Direction", direction, 100),
    "detectable": ("Detectable", detectable, 2000),
    "too-good": ("Too good", too_good, 1000),
}
START = """\
# Sentences of `assess`

Written by `benchmarks/sentences.py`; do not edit. Data of known shapes are drawn, and each sentence that `assess`
prints about them is compared with the truth.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repeats, and no page")
    arguments = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    sections = dict(part.split("\n\n", 1) for part in old.split("\n## ")[1:])
    for part in arguments.parts or PARTS:
        heading, simulate, repeats = PARTS[part]
        sections[heading] = simulate(repeats // 10 if arguments.quick else repeats)
    if not arguments.quick:
        headings = [heading for heading, _, _ in PARTS.values() if heading in sections]
        text = "".join(f"\n## {heading}\n\n{sections[heading].rstrip()}\n" for heading in headings)
        PAGE.write_text(START + text, encoding="utf-8")


if __name__ == "__main__":
    main()
