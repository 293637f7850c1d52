"""Percentages of one event: `--percent` divides the columns of probabilities by 100 as they are read."""

import re
from collections.abc import Sequence
from dataclasses import replace

from truthcal.core.params import shown
from truthcal.io.files.preview import Column
from truthcal.io.files.source import Source

NOTE = "Probabilities are percentages: they were divided by 100 (--percent)."
_PERCENTAGE = re.compile(r"\s*([0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)\s*%?\s*")


def with_percentages(sources: Sequence[Source], percent: bool) -> list[Source]:
    """Return the sources with the mark that their columns of probabilities are percentages, or without it."""
    return [replace(source, percent=percent) for source in sources]


def preview_as_probabilities(columns: Sequence[Column], label: str | None) -> list[Column]:
    """Return previewed columns; percentages that may be probabilities are divided by 100, so that they are guessed."""
    return [column if column.name == label else _as_probabilities(column) for column in columns]


def refuse_probabilities(columns: Sequence[Column], names: Sequence[str], where: str) -> None:
    """Reject --percent for columns that have only numbers of at most 1, before they are divided by 100."""
    for column in columns:
        if column.name in names and column.in_unit and column.many:
            problem = f"{shown(column.name)} of {where} has only numbers between 0 and 1 in its first rows"
            cure = "Omit --percent, or, if these are percentages of rare events, divide the column by 100 in the file"
            raise ValueError(f"--percent: {problem}, so they are not percentages. {cure}.")


def _as_probabilities(column: Column) -> Column:
    if column.kind == "text" and column.labels:
        column = _parse_percentages(column)
    low, high = column.low, column.high
    if column.kind != "number" or low is None or high is None or not (low >= 0.0 and 1.0 < high <= 100.0):
        return column
    values, numbers = (tuple(x / 100.0 for x in numbers) for numbers in (column.values, column.numbers))
    return replace(column, low=low / 100.0, high=high / 100.0, values=values, numbers=numbers)


def _parse_percentages(column: Column) -> Column:
    """Return a previewed text column as numbers if all of its texts are numbers, with or without a percent sign."""
    matches = [_PERCENTAGE.fullmatch(str(text)) for text in column.labels]
    numbers = [float(match[1].replace(",", ".")) for match in matches if match is not None]
    if len(numbers) < len(matches):
        return column
    return replace(column, kind="number", low=min(numbers), high=max(numbers), values=tuple(numbers[:3]))
