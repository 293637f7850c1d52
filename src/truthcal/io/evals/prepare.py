"""Evaluation files recognised by their content, and converted to tables in memory that all commands can read."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from truthcal.io.evals.confidence import is_confidence, read_confidence, read_mixed
from truthcal.io.evals.inspect_logs import is_inspect_log, read_inspect
from truthcal.io.evals.lm_eval import is_lm_eval, read_lm_eval
from truthcal.io.evals.options import EvalOptions, EvalRows, Format
from truthcal.io.files.formats import INSPECT, JSON
from truthcal.io.files.source import Source, arrow
from truthcal.io.files.tables import in_memory
from truthcal.io.files.text_input import UTF8_MARK, TextInput

_READERS: dict[Format, Callable[[list[Source], EvalOptions], list[EvalRows]]] = {
    "lm-eval": read_lm_eval,
    "inspect": read_inspect,
    "confidence": read_confidence,
}
_ROWS_TO_SEE = 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """Sources that can be loaded, and the roles of columns that their format determines; empty for other files."""

    sources: list[Source]
    format: Format | None = None
    proba: tuple[str, ...] = ()
    label: str | None = None
    group: str | None = None
    missing: int = 0
    notes: tuple[str, ...] = ()


def prepare_sources(sources: list[Source], options: EvalOptions) -> Prepared:
    """Convert evaluation files to tables; return other files as they are. Raises if options do not fit the format."""
    formats = {options.format or recognise(source) for source in sources if not source.is_sketch}
    if len(formats) > 1:
        kinds = ", ".join(sorted(str(format_ or "other") for format_ in formats))
        raise ValueError(
            f"these files have different formats ({kinds}); pass those of one format, or name it: --format."
        )
    format_ = next(iter(formats), None)
    _refuse_other_options(options, format_)
    sources = [replace(source, void=options.missing) for source in sources]
    is_json = all(source.format is JSON for source in sources)
    if format_ is None and not (is_json and options.missing):
        return Prepared(sources)
    files = _READERS[format_](sources, options) if format_ else read_mixed(sources)
    tables = [in_memory(source, _table(rows)) for source, rows in zip(sources, files, strict=True)]
    first = files[0]
    group = next((rows.group for rows in files if rows.group is not None), None)
    notes = tuple(
        dict.fromkeys(
            f"{_where(source, files)}{note}" for source, rows in zip(sources, files, strict=True) for note in rows.notes
        )
    )
    return Prepared(tables, format_, first.proba, first.label, group, sum(rows.missing for rows in files), notes)


def recognise(source: Source) -> Format | None:
    """Recognise the format of an evaluation file by its content; None for other files."""
    if source.format is INSPECT:
        return "inspect"
    if source.format is not JSON:
        return None
    with TextInput(source) as text:
        head = text.head(source.BLOCK).removeprefix(UTF8_MARK)
    if is_inspect_log(head):
        return "inspect"
    rows = _first_rows(head)
    if any(map(is_lm_eval, rows[:1])):
        return "lm-eval"
    return "confidence" if any(map(is_confidence, rows)) else None


def _first_rows(head: bytes) -> list[dict[str, Any]]:
    rows = []
    for line in [line for line in head.split(b"\n", 2 * _ROWS_TO_SEE) if line.strip()][:_ROWS_TO_SEE]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break  # the reader reports what is wrong
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _refuse_other_options(options: EvalOptions, format_: Format | None) -> None:
    """Reject options that have no effect on files of this format."""
    for flag, value, formats in (
        ("--rule", options.rule, ("lm-eval",)),
        ("--answers", options.answers, ("lm-eval",)),
        ("--percent", options.percent and format_ is not None, ("confidence", "inspect")),  # or of many classes
    ):
        if value and format_ not in formats:
            raise ValueError(
                f"{flag} applies only to --format {' and '.join(formats)}; these files are not of it. Omit it."
            )


def _table(rows: EvalRows) -> Any:
    """Build a table of the columns; a column of mixed types becomes text."""
    pa = arrow()
    columns = {}
    for name, values in rows.columns.items():
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)


def _where(source: Source, files: list[EvalRows]) -> str:
    return f"{source.path.name}: " if len(files) > 1 else ""
