"""Text of numbers, p-values, counts, names and tables: nothing else formats, escapes, cleans or shortens them."""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING as CEILING
from decimal import ROUND_FLOOR as FLOOR
from decimal import ROUND_HALF_EVEN, Context

from truthcal.results.column_width import check_width, fit_columns, wrap_lines, wrap_row
from truthcal.results.column_width import shorten as shorten

# Smaller values are rounding errors of 0.
_ZERO = 1e-15
# Kind of a verdict -> mood; every other kind is "bad".
_MOODS = {"calibrated": "good", "too few rows": "unsure", "unclear": "unsure", "too good": "odd"}
_MOODS |= {"not significant": "neutral"}  # of a segment
# Characters with a meaning in Markdown or HTML -> their escapes.
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\|`*_["} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})

# Characters that HTML or XML forbid, and those that reverse the direction of text.
_INVALID = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Rates below each of these are counted per so many rows: 0.002 is 2 per 1,000.
_UNITS = ((0.05, 1_000, "1,000"), (0.001, 100_000, "100,000"), (1e-5, 10**6, "million"), (1e-6, 10**9, "billion"))
# Ways to make a table narrower, in order: the gap between columns, and the parts of cells that stay together.
_TIGHTER = ((2, "phrase"), (1, "phrase"), (2, "word"), (1, "word"), (1, "short"))
# Significant digits of confidence limits, the same wherever they are printed: rounded outwards to different numbers of
# digits, one limit would look like two.
LIMIT_DIGITS = 3
# Characters of a name in a figure.
LONGEST_LABEL = 28


def number(x: float, digits: int = 4, *, sign: str = "", missing: str = "unknown") -> str:
    """Format a number with significant digits; `sign` "+" shows the sign, `missing` stands for nan."""
    if math.isnan(x):
        return missing
    if 10.0**digits <= abs(x) < 1e9:  # without an exponent
        return f"{_round(x, digits, ROUND_HALF_EVEN):{sign},.0f}"
    return f"{0.0 if abs(x) < _ZERO else x:{sign}.{digits}g}"


def without_exponent(x: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Format a positive number with two significant digits in fixed notation: "2.0", "120"."""
    return f"{_round(x, 2, rounding):.{max(1 - math.floor(math.log10(x)), 0)}f}"


def lower_limit(x: float, *, sign: str = "") -> str:
    """Format a lower confidence limit, rounded down so that it stays one."""
    return number(_round(x, LIMIT_DIGITS, FLOOR), LIMIT_DIGITS, sign=sign)


def upper_limit(x: float, *, sign: str = "") -> str:
    """Format an upper confidence limit, rounded up so that it stays one."""
    return number(_round(x, LIMIT_DIGITS, CEILING), LIMIT_DIGITS, sign=sign)


def _round(x: float, digits: int, rounding: str) -> float:
    # 12 digits first, so that 0.30000000000000004 is not rounded up to 0.3001.
    return float(Context(prec=digits, rounding=rounding).create_decimal(f"{x:.12g}")) if abs(x) >= _ZERO else x


def interval(low: float, high: float, *, sign: str = "") -> str:
    """Format both ends of an interval, rounded outwards: "0.1 to 0.2"; empty if they are nan."""
    return "" if math.isnan(low) else f"{lower_limit(low, sign=sign)} to {upper_limit(high, sign=sign)}"


def error_text(estimate: float, low: float, high: float, digits: int) -> str:
    """Format the size of an error: its estimate, or an upper limit if the interval contains 0."""
    return f"<= {upper_limit(high)}" if low == 0.0 else number(estimate, digits, missing="-")


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of probabilities and errors in text: multiply them by `rows`, and write `per` after them.

    `rows` is 1 and `per` is empty for common events; for rare ones they are, for example, 1000 and " per 1,000".
    """

    rows: int = 1
    per: str = ""


PLAIN = Unit()
PER_1000 = Unit(1000, " per 1,000")


def unit_of(*rates: float) -> Unit:
    """Choose the unit for the text of rates, from the largest of them: plain numbers from 0.05, and for 0."""
    largest = max((abs(rate) for rate in rates if not math.isnan(rate)), default=0.0)
    units = [Unit(rows, f" per {name}") for below, rows, name in _UNITS if 0.0 < largest < below]
    return units[-1] if units else PLAIN


def error_unit(mean_proba: float, mean_true: float, *errors: float) -> Unit:
    """Choose the unit for the text of errors: from the mean of the rarer outcome, or the largest error if larger."""
    return unit_of(min(max(mean_proba, mean_true), 1.0 - min(mean_proba, mean_true)), *errors)


def frequencies(*rates: float, unit: Unit | None = None) -> list[str]:
    """Format probabilities in one unit: "85%", or "1.3 per 1,000" if all are rare; or in the unit that is given.

    With at least two digits of their difference, and of their distance from 0 and 1.
    """
    unit = unit or unit_of(*rates)
    rows, name, few = (unit.rows, unit.per, 10.0) if unit.rows > 1 else (100, "%", 1.0)
    texts = []
    for rate in rates:
        sizes = ((max(rates) - min(rates), 2.0), (rate, few), (1.0 - rate, 1.0))
        decimals = [
            1 - math.floor(math.log10(size * rows)) for size, large in sizes if size > 1e-14 and size * rows < large
        ]
        texts.append(f"{rows * rate:,.{max(decimals, default=0)}f}{name}")
    return texts


def ratio_of_means(mean_proba: float, mean_true: float, bias_low: float, bias_high: float) -> tuple[str, str]:
    """Format the ratio of predicted to observed events, and its interval: "2.0", "1.8 to 2.2".

    The ends are the ratios for the mean outcomes at both ends of the interval of the bias.
    """
    ratio, low = without_exponent(mean_proba / mean_true), without_exponent(mean_proba / (mean_proba - bias_low), FLOOR)
    fewest = mean_proba - bias_high
    return ratio, f"{low} to {without_exponent(mean_proba / fewest, CEILING)}" if fewest > 0.0 else f"{low} or more"


def percent(level: float) -> str:
    """Format a confidence level with three digits: "95%", "98.3%"; above 99%, two of its distance to 100%: "99.95%"."""
    distance = 100.0 * (1.0 - level)
    digits = 3 - math.floor(math.log10(distance)) if 0.0 < distance < 1.0 else 3
    return f"{100.0 * level:.{digits}g}%"


def p_value(p: float, n_resamples: int = 0) -> str:
    """Format a p-value: "p = 0.012". `n_resamples` redraws can show that it is small, but not how small."""
    if n_resamples and p * (1 + n_resamples) < 2.5:
        return f"p <= {p:.1g}"
    if p < 1e-4:
        return f"p = {p:.1e}" if p >= 1e-300 else "p < 1e-300"
    return f"p = {p:.4f}" if p < 0.0995 else f"p = {p:.2f}"


def p_number(text: str | float, *, missing: str = "-") -> str:
    """Format a p-value, or shorten a formatted one, for a column with the header "p"."""
    if not isinstance(text, str):
        return missing if math.isnan(text) else p_number(p_value(text))
    return text.removeprefix("p = ").removeprefix("p ")


def count(n: int, noun: str) -> str:
    """Format a number of things: "1 row", "2,000 rows"."""
    return f"{n:,} {plural(n, noun)}"


def rows_in_groups(n: int, n_groups: int | None) -> str:
    """Format a number of rows, and that of their groups if these have several: "8,886 rows in 63 groups"."""
    return count(n, "row") if n_groups in (None, n) else f"{count(n, 'row')} in {count(n_groups, 'group')}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """Choose the text for `n` things; without `many`, add an s to `one`."""
    return one if n == 1 else f"{one}s" if many is None else many


def effective_rows(n: int, n_effective: float) -> str:
    """Format the effective sample size in words; nothing if all weights are equal."""
    return "" if math.isclose(n, n_effective, rel_tol=1e-9) else f"effective sample size {n_effective:,.1f}"


def join_words(words: Sequence[str]) -> str:
    """List words: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def more_rows(total: int, shown: int, rest: str = "more", *, hint: str = "") -> list[str]:
    """Format the line below a table that shows `shown` of `total` rows; no line if it shows all.

    `hint` says how to see the others.
    """
    return [f"... and {total - shown:,} {rest}" + (f" ({hint})" if hint else "")] if total > shown else []


def mood(kind: str) -> str:
    """Choose how text shows a verdict of this kind: as "good", "bad", "unsure", "odd" or "neutral"."""
    return _MOODS.get(kind, "bad")


def escape_control_characters(text: str) -> str:
    """Escape characters in text that a terminal would interpret: names may contain anything."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally, on one line."""
    return " ".join(text.translate(_MARKDOWN).split())


def clean_text(text: str) -> str:
    """Clean text for HTML and SVG: replace each character that they forbid by U+FFFD."""
    return _INVALID.sub("\ufffd", text)


def one_line(name: str, longest: int = LONGEST_LABEL) -> str:
    """Clean a name and shorten it to one line, by default short enough for a figure."""
    return shorten(" ".join(clean_text(name).split()) or "(no name)", longest)


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of a table for a terminal, Markdown or HTML. Columns listed in `right` are aligned to the right.

    A terminal shows the header (whose cells may have several lines) if `show_header`, columns `gap` spaces apart and at
    least `widths` wide, all of it indented by `indent`; with `rule`, a line of dashes below the header. Columns in
    `optional` are left out, in this order, if the others then fit without being wrapped.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    show_header: bool = True
    indent: int = 0
    gap: int = 2
    widths: Sequence[int] = ()
    rule: bool = False
    optional: Sequence[int] = ()

    def lines(self, width: int | None = None) -> list[str]:
        """Return the lines for a terminal, with aligned columns. Cells are wrapped if the table exceeds `width`."""
        check_width(width)
        if width is not None and self._natural_width() > width:
            for count in range(1, len(self.optional) + 1):
                narrow = self._without(self.optional[:count])
                if narrow._natural_width() <= width:
                    names = ", ".join(self.header[k] for k in sorted(self.optional[:count]))
                    note = wrap_lines(f"(left out to fit the width: {names})", width)
                    return [*narrow.lines(), *note.split("\n")]
        return self._wrapped_lines(width)

    def _natural_width(self) -> int:
        """Width without wrapping."""
        return max(map(len, replace(self, optional=()).lines()), default=0)

    def _without(self, columns: Sequence[int]) -> "Table":
        """Return the table without some columns."""
        kept = [k for k in range(len(self.header)) if k not in columns]
        rows = [[row[k] for k in kept] for row in self.rows]
        widths = [self.widths[k] for k in kept if k < len(self.widths)]
        right = [place for place, k in enumerate(kept) if k in self.right]
        header = [self.header[k] for k in kept]
        return replace(self, header=header, rows=rows, right=right, widths=widths, optional=())

    def _wrapped_lines(self, width: int | None) -> list[str]:
        head = self._header_lines() if self.show_header else []
        lines: list[Sequence[str]] = [*head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        widths = [max(each, least) for each, least in zip(widths, [*self.widths, *[0] * len(widths)], strict=False)]
        gap = self.gap
        if width is not None and self.indent + sum(widths) + gap * (len(widths) - 1) > width:
            for space, part in _TIGHTER:
                gap = min(space, self.gap)
                room = width - self.indent - gap * (len(widths) - 1)
                widths = fit_columns(lines, room, part)
                if sum(widths) <= room:
                    break
            head = [line for row in head for line in wrap_row(row, widths)]
            lines = [*head, *(line for row in self.rows for line in wrap_row(row, widths))]
        side = [">" if k in self.right else "<" for k in range(len(widths))]
        cells = ([f"{c:{s}{w}}" for c, s, w in zip(line, side, widths, strict=True)] for line in lines)
        rows = [(" " * self.indent + (" " * gap).join(line)).rstrip() for line in cells]
        rule = ["-" * max(map(len, rows))] if self.rule else []
        return [*rows[: len(head)], *rule, *rows[len(head) :]]

    def _header_lines(self) -> list[list[str]]:
        """Split the header's cells at line breaks; the last line is full, those above it may have empty cells."""
        cells = [cell.split("\n") for cell in self.header]
        height = max(map(len, cells))
        return [list(line) for line in zip(*([""] * (height - len(cell)) + cell for cell in cells), strict=True)]

    def markdown(self) -> str:
        """Return the table in Markdown, with escaped cells."""
        sides = ["---:" if k in self.right else "---" for k in range(len(self.header))]
        cells = [[escape_markdown(cell) for cell in row] for row in [self.header, *self.rows]]
        return "\n".join("| " + " | ".join(line) + " |" for line in [cells[0], sides, *cells[1:]])

    def html(self) -> str:
        """Return the table in HTML, with escaped cells; the first cell of each row is its header."""
        sides = [f'style="text-align:{"right" if k in self.right else "left"}"' for k in range(len(self.header))]
        header = [html.escape(" ".join(cell.split())) for cell in self.header]
        lines = ["".join(f"<th {side}>{cell}</th>" for cell, side in zip(header, sides, strict=True))]
        for row in self.rows:
            name, *cells = (html.escape(cell) for cell in row)
            start = f'<th scope="row" {sides[0]}>{name}</th>'
            pairs = zip(cells, sides[1:], strict=True)
            lines.append(start + "".join(f"<td {side}>{cell}</td>" for cell, side in pairs))
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines[0 if self.show_header else 1 :])}</table>"


@dataclass(frozen=True, slots=True)
class Page:
    """A result as text: a heading (the verdict), a table, and notes or warnings below it."""

    heading: str
    table: Table
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def text(self, width: int | None = None) -> str:
        """Return the page for a terminal; lines are at most `width` long if possible."""
        heading = [wrap_lines(self.heading, width), ""] if self.heading else []
        notes = [*self.notes, *(f"! {warning}" for warning in self.warnings)]
        return "\n".join([*heading, *self.table.lines(width), *(wrap_lines(note, width, "  ") for note in notes)])

    def markdown(self) -> str:
        """Return the page in Markdown, for a pull request or a job summary."""
        heading = [bold_first_line(self.heading, "\n")] if self.heading else []
        warnings = [f"> ⚠ {escape_markdown(warning)}" for warning in self.warnings]
        return "\n\n".join([*heading, self.table.markdown(), *map(escape_markdown, self.notes), *warnings])

    def html(self) -> str:
        """Return the page in HTML, for a notebook."""
        heading = html.escape(self.heading).replace("\n", "<br>")
        heading = f"<p><strong>{heading}</strong></p>" if heading else ""
        notes = [*self.notes, *(f"⚠ {warning}" for warning in self.warnings)]
        return heading + self.table.html() + "".join(f"<p>{html.escape(note)}</p>" for note in notes)


def bold_first_line(text: str, separator: str = "\n\n") -> str:
    """Format lines of text in Markdown, the first one bold."""
    first, *others = [escape_markdown(line) for line in text.splitlines()]
    return separator.join([f"**{first}**", *others])
