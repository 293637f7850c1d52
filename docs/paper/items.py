"""Numbered items of the paper, each with a function that recomputes its numbers and the values it may return."""

import ast
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Numbers = dict[str, float]
IMPORTS = """\
import itertools
import math

import numpy as np
from scipy import stats

import truthcal as tc
"""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The range in which a reproduced number must lie, and the paper's own number as text."""

    low: float
    high: float
    paper: str = ""

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f">= {self.low:.6g}"
        if math.isinf(self.low):
            return f"<= {self.high:.6g}"
        middle, width = (self.low + self.high) / 2, (self.high - self.low) / 2
        return f"{middle:.6g}" + (f" +- {width:.1g}" if width > 1e-8 else "")

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def equal(value: float, within: float = 1e-9, paper: str = "") -> Accepted:
    """Accept numbers that differ from `value` by at most `within`."""
    return Accepted(value - within, value + within, paper)


def at_least(value: float, paper: str = "") -> Accepted:
    """Accept numbers that are not smaller, up to rounding."""
    return Accepted(value - 1e-12, math.inf, paper)


def at_most(value: float, paper: str = "") -> Accepted:
    """Accept numbers that are not larger, up to rounding."""
    return Accepted(-math.inf, value + 1e-12, paper)


@dataclass(frozen=True, slots=True)
class Item:
    """A numbered item of the paper. `see` names the item whose code reproduces it, if it has no code of its own."""

    number: str
    title: str
    statement: str
    uses: str
    test: str
    sharper: str
    accepted: Mapping[str, Accepted]
    code: Callable[[], Numbers] | None = None
    see: str = ""

    @property
    def anchor(self) -> str:
        """Return the name by which the page links to the item."""
        return self.number.lower().replace(" ", "-").replace(".", "-")

    def source(self) -> str:
        """Return the source of the function, without its decorator: exactly what is run."""
        source = inspect.getsource(self.code) if self.code else ""
        definition = ast.parse(source).body[0]
        return "\n".join(source.splitlines()[definition.lineno - 1 :])

    def numbers(self) -> Numbers:
        """Compute the numbers, and raise an error that names the item if one is outside its range."""
        try:
            values = {label: float(value) for label, value in self.code().items()} if self.code else {}
        except Exception as error:
            error.add_note(f"This is the code of {self.number}.")
            raise
        if values.keys() != self.accepted.keys():
            raise ValueError(f"{self.number}: it returns {list(values)}, and ranges exist for {list(self.accepted)}.")
        for label, value in values.items():
            if value not in self.accepted[label]:
                raise ValueError(f"{self.number}: {label} is {value:.9g}; it must be {self.accepted[label]}.")
        return values


class Section(list[Item]):
    """Items of one section of the paper, in the paper's order."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title

    def item(
        self,
        number: str,
        title: str,
        statement: str,
        *,
        uses: str,
        test: str,
        accepted: Mapping[str, Accepted],
        sharper: str = "",
    ) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
        """Add the item that the decorated function reproduces."""

        def add(code: Callable[[], Numbers]) -> Callable[[], Numbers]:
            self.append(Item(number, title, statement, uses, test, sharper, accepted, code))
            return code

        return add

    def same_as(self, see: str, number: str, title: str, statement: str, *, uses: str, test: str, sharper: str) -> None:
        """Add an item that another one reproduces: an informal statement, or a part of a theorem."""
        self.append(Item(number, title, statement, uses, test, sharper, {}, None, see))
