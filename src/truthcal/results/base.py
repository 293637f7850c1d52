"""Methods that all results share: text, HTML, plain values, tables."""

import contextlib
import dataclasses
import html
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from truthcal.results import text
from truthcal.results.column_width import wrap_lines


class Tabular:
    """Mixin of objects with a method `table`: data frames, and HTML in notebooks."""

    __slots__ = ()

    def table(self) -> dict[str, Any]:
        """Return columns of equal length."""
        raise NotImplementedError

    def frame(self) -> Any:
        """Return `table` as a data frame: of pandas if installed, else of polars, else of pyarrow."""
        return data_frame(self.table())

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap">{html.escape(str(self))}</pre>'


class Result(Tabular):
    """Base of all results, which are frozen dataclasses: `print` shows words, the methods below return the values."""

    __slots__ = ()
    # Properties that `to_dict` includes beside the fields, and the arrays that are the columns of `table`.
    _derived: ClassVar[tuple[str, ...]] = ()
    _columns: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all public fields by name in plain JSON types: results as dicts, arrays as lists, nan as nan."""
        fields = [field.name for field in dataclasses.fields(cast(Any, self)) if not field.name.startswith("_")]
        return {name: to_plain(getattr(self, name)) for name in (*fields, *self._derived)}

    def table(self) -> dict[str, Any]:
        """Return columns of equal length: the arrays of a curve, else one row with all numbers and words."""
        if self._columns:
            return {name: getattr(self, name) for name in self._columns if getattr(self, name) is not None}
        return one_row(self.to_dict())

    def __repr__(self) -> str:  # of classes with @dataclass(repr=False)
        return str(self)

    def to_text(self, width: int | None = None) -> str:
        """Return the printed text, in lines of at most `width` characters where possible; None wraps nothing."""
        return wrap_lines(str(self), width)

    def to_markdown(self) -> str:
        """Return the printed text in Markdown."""
        return text.bold_first_line(str(self))


class Plotted:
    """Mixin of results that have a picture."""

    __slots__ = ()

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Plot the result, with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.
        **options
            Passed to `plot` of the Display; of an assessment, to `ReliabilityDisplay.from_predictions`.

        Returns
        -------
        Display
            One of `truthcal.plots`, with `ax_` and `figure_`.
        """
        # Plots are above results, which they store: loaded when one is drawn.
        plots = importlib.import_module("truthcal.plots.of_results")
        return plots.plot_result(self, ax, options)


class PageResult(Result):
    """Base of results that print a heading and a table."""

    __slots__ = ()

    def _page(self) -> text.Page:
        """Return the heading, the table and the notes that are printed."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return the printed text, in lines of at most `width` characters where possible; None wraps nothing."""
        return self._page().text(width)

    def to_markdown(self) -> str:
        """Return heading and table in Markdown, for a pull request or a job summary."""
        return self._page().markdown()

    def _repr_html_(self) -> str:
        return self._page().html()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of evidence: a named number (nan if unknown), the number as text, and how to read it."""

    name: str
    value: float
    text: str
    explanation: str


def evidence_page(
    heading: str, evidence: Sequence[Evidence], *, widths: Sequence[int], warnings: Sequence[str] = ()
) -> text.Page:
    """Return a page of any result with a table of evidence whose columns are at least `widths` wide."""
    rows = [[row.name, row.text, row.explanation] for row in evidence]
    table = text.Table(("", "value", "meaning"), rows, show_header=False, indent=2, gap=1, widths=widths)
    return text.Page(heading, table, warnings=warnings)


def to_plain(value: Any) -> Any:
    """Convert a value to plain JSON types: results to dicts, arrays to lists, dates and the like to str; nan stays."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def data_frame(columns: dict[str, Any]) -> Any:
    """Build the data frame of a result with the first library that is installed."""
    for library in ("pandas", "polars", "pyarrow"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(library)
            return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    raise ImportError("`frame` needs pandas, polars or pyarrow: pip install pandas. `table` has the columns.")


def columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn a result's rows into columns."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def one_row(values: dict[str, Any]) -> dict[str, list[Any]]:
    """Return a result's nested dict as a table with one row; lists are left out."""
    return {name: [value] for name, value in _flatten_values(values)}


def _flatten_values(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a result's nested dicts, with the names joined by underscores; lists are left out."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flatten_values(value, f"{prefix}{name}_")
        elif not isinstance(value, list):
            yield prefix + name, value
