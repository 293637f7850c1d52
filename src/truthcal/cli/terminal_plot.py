"""The reliability diagram in text, for a terminal: the curve, band and axes of the report's diagram."""

import shutil
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truthcal as tc
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
from truthcal.plots.probability_axes import ProbabilityAxis, round_numbers, tick_label
from truthcal.plots.reliability import ReliabilityDisplay
from truthcal.reports.class_data import class_panels
from truthcal.reports.data import SEED
from truthcal.results.column_width import wrap_lines
from truthcal.results.text import count, one_line, percent, shorten

_Array = NDArray[np.float64]
_HEIGHT = 13
_WIDEST, _NARROWEST = 100, 40
# Columns between the labels of ticks, and lines between those of the y axis.
_GAP, _LINES = 2, 3
_SMALLER = "The test combines all predictions, so it can detect smaller errors than the band shows."


@dataclass(frozen=True, slots=True)
class _Signs:
    """The characters of the plot. `density` are those of few to many rows."""

    curve: str
    band: str
    diagonal: str
    side: str
    tick: str
    corner: str
    floor: str
    mark: str
    density: str


_UNICODE = _Signs("●", "░", "·", "│", "┤", "└", "─", "┬", "▁▂▃▄▅▆▇█")
_ASCII = _Signs("o", ":", ".", "|", "+", "+", "-", "+", ".-=+*#%@")


def terminal_plot(assessment: tc.Assessment | tc.MulticlassAssessment, name: str = "") -> str:
    """Return the reliability diagram of an assessment for stdout; with many classes, that of the worst class.

    It is as wide as the terminal, or as COLUMNS says, up to 100 characters.
    """
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    if isinstance(assessment, tc.MulticlassAssessment):
        panel = class_panels(assessment, 1)[0]
        display = ReliabilityDisplay(panel.curve, panel.band, panel.density)
        noun = assessment.classes.noun
        rest = " against the rest" if noun == "class" else ""
        event = f"{noun} {one_line(panel.segment.name)}{rest} (smallest p-value)"
    else:
        summary = assessment._summary
        band = consistency_band_of(summary, rng=SEED, simultaneous=True)
        display = ReliabilityDisplay(reliability_curve_of(summary), band, density_of(summary))
        event = one_line(name) if name else ""
    title = ", ".join(filter(None, ["Reliability diagram", event, count(assessment.n, "row")]))
    return draw_reliability(display, title, width, _UNICODE if _is_encodable() else _ASCII)


def _is_encodable() -> bool:
    """Whether stdout can show the characters of the plot."""
    signs = "".join(getattr(_UNICODE, name) for name in _UNICODE.__slots__)
    try:
        return bool(signs.encode(sys.stdout.encoding or "ascii"))
    except (UnicodeEncodeError, LookupError):
        return False


def draw_reliability(display: ReliabilityDisplay, title: str, width: int, signs: Any = _UNICODE) -> str:
    """Draw a reliability diagram in lines of at most `width` characters.

    Each column shows the band at the prediction in its middle, and the curve if there are predictions in it.
    """
    axis = ProbabilityAxis.choose([display.predictions()])
    labels = _labels_of_lines(axis)
    margin = max(map(len, [*labels.values(), "rows"])) + 1
    n_columns = width - margin - 2
    cells = _cells(display, axis, n_columns, signs)
    lines = [shorten(title, width), *wrap_lines(axis.label("observed frequency"), width).split("\n")]
    for line in range(_HEIGHT):
        label = labels.get(line, "")
        lines.append(f"{label:>{margin - 1}} {signs.tick if label else signs.side}{''.join(cells[line])}".rstrip())
    ticks = _ticks_of_columns(axis, n_columns)
    floor = "".join(signs.mark if column in ticks else signs.floor for column in range(n_columns))
    lines += [f"{'':{margin}}{signs.corner}{floor}", f"{'':{margin + 1}}{_line_of_labels(ticks, n_columns)}".rstrip()]
    if display.density is not None:
        lines.append(f"{'rows':>{margin - 1}}  {_density(display, axis, n_columns, signs)}".rstrip())
    below = wrap_lines(axis.label("predicted probability"), width - 1).split("\n")
    lines += [f"{line:>{width - 1}}" for line in below]
    lines += _legend(display, axis, width, signs)
    return "\n".join([*lines, *(wrap_lines(_SMALLER, width).split("\n") if display.band is not None else [])])


def _cells(display: ReliabilityDisplay, axis: ProbabilityAxis, n_columns: int, signs: _Signs) -> list[list[str]]:
    """Return the characters of the plot, line by line: the diagonal and the curve are above the band."""
    cells = [[" "] * n_columns for _ in range(_HEIGHT)]
    middle = (np.arange(n_columns) + 0.5) / n_columns
    band, curve = display.band, display.curve
    if band is not None:
        ends = [_at(axis.share(band.q), axis.share(limit), middle) for limit in (band.low, band.high)]
        for column in np.flatnonzero(~np.isnan(ends[0])).tolist():
            bottom, top = (_line(end[column]) for end in ends)
            for line in range(max(top, 0), min(bottom, _HEIGHT - 1) + 1):
                cells[line][column] = signs.band
    for column in range(n_columns):
        cells[_line(middle[column])][column] = signs.diagonal
    values = _frequencies(axis.share(curve.left), axis.share(curve.right), axis.share(curve.mean_true), middle)
    for column in np.flatnonzero(~np.isnan(values)).tolist():
        place = _line(values[column])
        if 0 <= place < _HEIGHT:
            cells[place][column] = signs.curve
    return cells


def _at(x: _Array, y: _Array, middle: _Array) -> _Array:
    """Interpolate at the middles of columns; nan outside, except in the columns of both ends."""
    half = 0.5 / len(middle)
    inside = (middle >= x[0] - half) & (middle <= x[-1] + half)
    return np.where(inside, np.interp(middle, x, y), np.nan)


def _frequencies(left: _Array, right: _Array, mean: _Array, middle: _Array) -> _Array:
    """Return the height of the pool nearest to the middle of each column; nan in columns without a part of a pool.

    A pool is a flat part of the curve, from its smallest to its largest prediction.
    """
    pool = np.clip(np.searchsorted(left, middle, side="right") - 1, 0, len(left) - 1)
    following = np.minimum(pool + 1, len(left) - 1)
    distance = np.maximum(np.maximum(left[pool] - middle, middle - right[pool]), 0.0)
    nearer = np.abs(left[following] - middle) < distance
    distance = np.where(nearer, np.abs(left[following] - middle), distance)
    in_column = distance <= 0.5 / len(middle) * (1.0 + 1e-9)
    return np.where(in_column, mean[np.where(nearer, following, pool)], np.nan)


def _line(share: float) -> int:
    """Return the line of a share of the axis: 0 is the top."""
    return _HEIGHT - 1 - int(np.floor(np.clip(share, -1.0, 2.0) * (_HEIGHT - 1) + 0.5))


def _labels_of_lines(axis: ProbabilityAxis) -> dict[int, str]:
    """Return the labels of the y axis by line, the roundest numbers first, some lines apart."""
    labels: dict[int, str] = {}
    for tick in _round_probabilities(axis, 2):
        line = _line(float(axis.share(tick)))
        if all(abs(line - other) >= _LINES for other in labels):
            labels[line] = tick_label(tick, axis)
    return labels


def _ticks_of_columns(axis: ProbabilityAxis, n_columns: int) -> dict[int, str]:
    """Return the labels of the x axis by column: those of round numbers that have room."""
    ticks: dict[int, str] = {}
    used = np.zeros(n_columns + 2 * _GAP, np.bool_)
    for tick in _round_probabilities(axis, 4):
        column = min(int(float(axis.share(tick)) * n_columns), n_columns - 1)
        label = tick_label(tick, axis)
        first = _start(column, label, n_columns)
        if first >= 0 and not used[first : first + len(label) + 2 * _GAP].any():
            used[first + _GAP : first + _GAP + len(label)] = True
            ticks[column] = label
    return ticks


def _start(column: int, label: str, n_columns: int) -> int:
    """Return the column where the label of a tick starts, so that it ends within the plot."""
    return min(max(column - len(label) // 2, 0), n_columns - len(label))


def _line_of_labels(ticks: dict[int, str], n_columns: int) -> str:
    line = [" "] * n_columns
    for column, label in ticks.items():
        first = _start(column, label, n_columns)
        line[first : first + len(label)] = label
    return "".join(line)


def _round_probabilities(axis: ProbabilityAxis, parts: int) -> list[float]:
    """Return round numbers on the axis, the most important ones first; a linear one has `parts` intervals or more."""
    if axis.scale == "linear":
        length = (axis.end - axis.start) * (1.0 + 1e-9) / parts
        step = next(s for k in range(0, 16) for s in (0.5 * 10.0**-k, 0.2 * 10.0**-k, 0.1 * 10.0**-k) if s <= length)
        numbers = [round(k * step, 15) for k in range(int(1.0 / step + 1.5))]
        ends = [number for number in (0.0, 1.0) if axis.start <= number <= axis.end]
        return [*ends, *(number for number in numbers if axis.start <= number <= axis.end and number not in ends)]
    mirrored = axis.scale == "logit"
    return [number for number in round_numbers(mirrored=mirrored) if axis.start <= number <= axis.end]


def _density(display: ReliabilityDisplay, axis: ProbabilityAxis, n_columns: int, signs: _Signs) -> str:
    """Return a line that shows in which columns most rows are."""
    assert display.density is not None
    share = axis.share(display.density.mean_proba)
    column = np.minimum((share * n_columns).astype(np.int64), n_columns - 1)
    on_axis = (share >= 0.0) & (share <= 1.0)
    weight = np.bincount(column[on_axis], display.density.weight[on_axis], minlength=n_columns)
    height = np.ceil(weight / max(float(weight.max()), 1e-300) * len(signs.density)).astype(int)
    return "".join(signs.density[h - 1] if h else " " for h in height)


def _legend(display: ReliabilityDisplay, axis: ProbabilityAxis, width: int, signs: _Signs) -> list[str]:
    entries = [f"{signs.curve} observed", f"{signs.diagonal} calibrated"]
    if display.band is not None:
        level = percent(display.band.confidence_level)
        whole, each = f"contains {level} of calibrated curves", f"{level} band at each point if calibrated"
        entries.append(f"{signs.band} {whole if display.band.simultaneous else each}")
    return wrap_lines("   ".join([*entries, *filter(None, [axis.note])]), width).split("\n")
