"""Paths of an SVG in few bytes: no more points than the eye can tell apart, few decimals, relative steps."""

import re

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

# In points of a figure some 370 wide: a third of a pixel of a large screen for lines, half of one for edges of areas.
_LINE, _AREA = 0.25, 0.35
# A line that would still have more points than this is drawn more coarsely: it is a thicket, not a line.
_MOST = 200
# Lines of more points than this have one decimal, all else two: a tenth of a pixel does not show along a curve.
_LONG = 8
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_COMMAND = re.compile(r"([MLCQz])([^MLCQz]*)")
# matplotlib makes a circle of eight arcs.
_CIRCLE = re.compile("MC{8}L?z")


def rounded(text: str) -> str:
    """A text with its decimal numbers rounded to two places."""
    return re.sub(r"-?\d+\.\d+(?:e[+-]?\d+)?", lambda match: _short(round(100.0 * float(match[0])), 2), text)


def shifted(d: str, x: float, y: float) -> str:
    """The path elsewhere."""
    return " ".join(
        f"{name} {' '.join(str(number + (y if i % 2 else x)) for i, number in enumerate(numbers))}"
        for name, numbers in _commands(d)
    )


def compact(d: str) -> str:
    """The same path, to the eye, in fewer bytes. Straight lines lose points they do not need; curves keep all."""
    commands = _commands(d)
    names = "".join(name for name, _ in commands)
    if _CIRCLE.fullmatch(names):
        return _circle(np.array([numbers[-2:] for _, numbers in commands[1:9]]))
    if set(names) <= set("MLz"):
        return "".join(_polyline(points, closed) for points, closed in _runs(commands))
    return rounded(" ".join(d.split()))


def _commands(d: str) -> list[tuple[str, list[float]]]:
    """The commands of a path with their numbers, which are pairs of coordinates."""
    return [(name, [float(number) for number in _NUMBER.findall(rest)]) for name, rest in _COMMAND.findall(d)]


def _circle(ends: _Array) -> str:
    """A circle by the ends of its eight arcs: as two half circles."""
    x, y = ends.mean(axis=0)
    r = float(np.hypot(*(ends - [x, y]).T).mean())
    left, across, back = (round(100.0 * number) for number in (x - r, 2.0 * r, -2.0 * r))
    half = f"{_short(round(100.0 * r), 2)} {_short(round(100.0 * r), 2)} 0 1 0"
    return f"M{_pair(left, round(100.0 * y), 2)}a{half} {_pair(across, 0, 2)} {half} {_pair(back, 0, 2)}z"


def _runs(commands: list[tuple[str, list[float]]]) -> list[tuple[_Array, bool]]:
    """The polygons and polylines of a path."""
    runs: list[tuple[list[list[float]], bool]] = []
    for name, numbers in commands:
        if name == "M":
            runs.append(([numbers], False))
        elif name == "L" and runs:
            runs[-1][0].append(numbers)
        elif runs:
            runs[-1] = runs[-1][0], True
    return [(np.array(points), closed) for points, closed in runs if len(points) > 1]


def _polyline(points: _Array, closed: bool) -> str:
    """A polyline in whole steps of its last decimal, so that rounding does not add up along the way."""
    needed = _simplified(points, _AREA if closed else _LINE)
    places = 1 if len(needed) > _LONG else 2
    steps = np.rint(10.0**places * needed).astype(np.int64).tolist()
    (x, y), text, last = steps[0], "", ""
    start = _pair(x, y, places)
    for next_x, next_y in steps[1:]:
        command, step = _step(next_x - x, next_y - y, places)
        if step:
            text += (command if command != last else "" if step.startswith("-") else " ") + step
            x, y, last = next_x, next_y, command
    return f"M{start}{text}{'z' if closed else ''}" if text else ""


def _step(dx: int, dy: int, places: int) -> tuple[str, str]:
    if dx == 0:
        return "v", _short(dy, places) if dy else ""
    return ("h", _short(dx, places)) if dy == 0 else ("l", _pair(dx, dy, places))


def _simplified(points: _Array, tolerance: float) -> _Array:
    """The points that a polyline needs; fewer of them, more coarsely, where they would be very many."""
    kept = points[_needed(points, tolerance)]
    return kept if len(kept) <= _MOST else _simplified(kept, 1.5 * tolerance)


def _needed(points: _Array, tolerance: float) -> NDArray[np.intp]:
    """Which points a polyline needs to stay within the tolerance (Ramer, Douglas and Peucker)."""
    keep = np.zeros(len(points), bool)
    keep[[0, -1]] = True
    waiting = [(0, len(points) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        away = _distance(points[first + 1 : last], points[first], points[last])
        worst = int(away.argmax())
        if away[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            waiting += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


def _distance(points: _Array, a: _Array, b: _Array) -> _Array:
    """From each point to the straight line between a and b."""
    line, gap = b - a, points - a
    length = float(line @ line)
    along = np.clip(gap @ line / length, 0.0, 1.0) if length > 0.0 else np.zeros(len(points))
    away: _Array = np.hypot(*(gap - along[:, None] * line).T)
    return away


def _pair(x: int, y: int, places: int) -> str:
    second = _short(y, places)
    return _short(x, places) + ("" if second.startswith("-") else " ") + second


def _short(steps: int, places: int) -> str:
    """So many tenths or hundredths as a number in few characters."""
    whole, part = divmod(abs(steps), 10**places)
    digits = f"{whole or ''}" + (f".{part:0{places}d}".rstrip("0") if part else "")
    return ("-" if steps < 0 else "") + (digits or "0")
