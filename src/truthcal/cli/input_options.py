"""Options about the input: formats of evaluation files, rows to leave out, and one forecast per question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from truthcal.cli.named_columns import flagged
from truthcal.cli.output import print_message
from truthcal.cli.percentages import NOTE as PERCENT_NOTE
from truthcal.cli.request import Request
from truthcal.core.checks import invalid
from truthcal.core.group_sums import FEWEST_GROUPS
from truthcal.io.evals.options import EvalOptions
from truthcal.io.evals.prepare import Prepared, prepare_sources
from truthcal.io.files.forecasts import ForecastColumns, choose_forecasts, parse_horizon
from truthcal.io.files.preview import Column
from truthcal.io.files.row_filter import RowFilter
from truthcal.io.files.source import Source
from truthcal.io.files.where import Where
from truthcal.io.files.where_rows import require_where_columns, rows_where
from truthcal.results.text import count, plural

# Commands whose results depend on which rows belong together, and those that accept fractional outcomes.
_GROUPED = ("assess", "test", "compare", "report", "check", "sketch", "recalibrate")
_FRACTIONAL = ("measures", "sketch")
# Names of columns that identify a question which several rows may answer, in lower case without punctuation.
_QUESTIONS = ("question", "questionid", "qid", "docid", "marketid", "eventid", "matchid", "gameid", "promptid")
# The same for people and other units with several rows each, whose outcomes are alike.
_UNITS = ("patient", "subject", "person", "user", "customer", "client", "household", "hospital", "store", "account")


@dataclass(frozen=True, slots=True)
class InputFacts:
    """Facts about the input that every output states: its format, notes in words, and numbers of rows left out."""

    format: str | None = None
    rule: str | None = None
    notes: tuple[str, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    where: Where | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        where = None
        if self.where is not None:
            read, kept = self.where.rows
            where = {"condition": self.where.text, "rows_read": read, "rows_kept": kept}
        facts = {"format": self.format, "rule": self.rule, "notes": list(self.notes), "dropped": self.dropped}
        return {**facts, "where": where}


def refuse_input_options(request: Request) -> None:
    """Reject options about the input that are invalid or do not fit each other, before any file is read."""
    if request.fractional == "keep" and request.command not in _FRACTIONAL:
        problem = (
            f"--fractional keep is not possible in `{request.command}`: tests and intervals need outcomes of 0 and 1"
        )
        raise ValueError(f"{problem}. Use --fractional drop, or `truthcal measures --fractional keep`.")
    parts = {"--question": request.question, "--close": request.close, "--horizon": request.horizon}
    if not any(parts.values()):
        return
    parts["--time"] = request.time
    missing = [flag for flag, value in parts.items() if value is None]
    if missing:
        problem = f"one forecast per question needs --question, --time, --close and --horizon; {missing[0]} is missing"
        raise ValueError(f"{problem}. To use all forecasts of a question, name its column with --group.")
    if request.key is not None:
        raise ValueError("--horizon cannot be combined with --key; choose the forecasts of each file first.")
    if not str(request.horizon).strip().isdecimal():
        parse_horizon(str(request.horizon))


def prepare_inputs(request: Request, sources: list[Source]) -> tuple[Request, Prepared]:
    """Convert evaluation files; return the request with the columns that their format determines, too."""
    where = sources[0].where
    extra = [request.weight, *request.by, request.group, request.key, request.time]
    extra += [] if where is None else where.columns
    options = EvalOptions(
        request.input_format,
        request.rule,
        request.answers,
        request.percent,
        request.proba,
        request.label,
        tuple(name for name in extra if name is not None),
        request.missing == "drop",
    )
    prepared = prepare_sources(sources, options)
    request = _with_columns(request, prepared)
    if prepared.group is not None and request.group is None and request.command in _GROUPED:
        request = _grouped_by_question(request, prepared, prepared.group)
    return request, prepared


def refuse_class_options(request: Request, prepared: Prepared) -> None:
    """Reject options for the probabilities of many classes if there is one event."""
    if request.normalize:
        raise ValueError("--normalize applies only to the probabilities of many classes: see --proba-prefix. Omit it.")


def _with_columns(request: Request, prepared: Prepared) -> Request:
    """Return the request with the format and columns that the content determines, and say which these are."""
    chosen: dict[str, str] = {"--format": prepared.format} if request.input_format is None and prepared.format else {}
    chosen |= {"--label": prepared.label} if request.label is None and prepared.label else {}
    chosen |= {"--proba": prepared.proba[0]} if not request.proba and prepared.proba else {}
    if chosen:
        flags = " ".join(flagged(flag, value) for flag, value in chosen.items())
        print_message(request, f"the content determines, as if you had typed: {flags}")
    return replace(request, proba=request.proba or prepared.proba, label=request.label or prepared.label)


def _grouped_by_question(request: Request, prepared: Prepared, column: str) -> Request:
    """Group the rows by question, and say so. Raises if there are too few questions."""
    if request.time is not None and request.horizon is None:
        message = f"rows with the same {column!r} answer the same question, but --time takes rows as independent"
        print_message(request, message)
        return request
    questions = [value for source in prepared.sources for value in _kept_values(source, column)]
    name, n = "doc_id" if prepared.format == "lm-eval" else repr(column), len(set(questions))
    if n < FEWEST_GROUPS and request.command != "sketch":
        top = "; or use --answers top, one row per question" if prepared.format == "lm-eval" else ""
        are = plural(n, "there is", "there are")
        subject = f"{prepared.sources[0]}: several rows answer the same question, and"
        cure = f"At least {FEWEST_GROUPS} are needed for a verdict: collect more{top}. `truthcal measures` needs none."
        raise invalid("groups", f"{are} only {count(n, 'question')}. {cure}", subject=subject, cause="too few groups")
    rows = f"{count(len(questions), 'row')} of {count(n, 'question')}"
    print_message(request, f"rows are grouped by {name}: {rows}, as if you had typed: --group {column}")
    return replace(request, group=column)


def _kept_values(source: Source, column: str) -> list[Any]:
    """Return a column of a converted file, without the rows that do not meet the condition of --where."""
    values = source.table.column(column)
    if source.where is not None:
        require_where_columns(source, source.table.column_names)
        values = values.take(rows_where(source.table.combine_chunks().to_batches()[0], source))
    return list(values.to_pylist())


def row_filter_of(request: Request, sources: list[Source], proba: str) -> tuple[RowFilter | None, tuple[str, ...]]:
    """Return the filter of rows that the request asks for, None if it asks for none, and notes about it."""
    wanted = request.missing, request.fractional, request.horizon
    if wanted == (None, None, None) and request.command != "measures":
        return None, ()
    row_filter, notes = RowFilter(request.missing == "drop", request.fractional), tuple[str, ...]()
    if request.horizon is not None:
        names = [str(name) for name in (request.question, request.time, request.close, request.horizon)]
        columns = ForecastColumns(names[0], names[1], names[2], names[3], request.time_unit)
        choice = choose_forecasts(sources, proba, columns)
        row_filter.chosen, notes = choice.chosen, (choice.note(columns),)
        if not choice.chosen.any():
            problem = f"{sources[0]}: no question has a forecast at least {names[3]} before {names[2]!r}"
            raise ValueError(f"{problem}; use a shorter --horizon.")
    return row_filter, notes


def input_facts(
    request: Request, prepared: Prepared, filters: Sequence[RowFilter | None] = (), notes: Sequence[str] = ()
) -> InputFacts:
    """Collect the facts about the input, after all rows were read."""
    used = [row_filter for row_filter in filters if row_filter is not None]
    where = next((source.where for source in prepared.sources if source.where is not None), None)
    lines = [*prepared.notes, *([] if where is None else [where.note]), *notes]
    lines += [PERCENT_NOTE] if request.percent and any(source.percent for source in prepared.sources) else []
    lines += [note for row_filter in used for note in _filter_notes(request, row_filter)]
    dropped = {
        "missing_outcomes": sum(x.n_missing_outcomes for x in used),
        "missing_probabilities": prepared.missing + sum(x.n_missing_probabilities for x in used),
        "fractional": sum(x.n_fractional for x in used if x.fractional == "drop"),
        "other_forecasts": sum(int((~x.chosen).sum()) for x in used if x.chosen is not None),
    }
    rule = (request.rule or "softmax") if prepared.format == "lm-eval" else None
    return InputFacts(prepared.format, rule, tuple(lines), dropped, where)


def _filter_notes(request: Request, row_filter: RowFilter) -> list[str]:
    """Say in words which rows a filter has left out."""
    n, notes = row_filter.n_rows if row_filter.chosen is None else int(row_filter.chosen.sum()), []
    counts = {"outcome": row_filter.n_missing_outcomes, "probability": row_filter.n_missing_probabilities}
    for what, left_out in counts.items():
        if left_out:
            notes.append(f"{_share(left_out, n)} have no {what} (missing or void) and are left out (--missing drop).")
    if row_filter.n_fractional and row_filter.fractional == "drop":
        notes.append(
            f"{_share(row_filter.n_fractional, n)} have a fractional outcome and are left out (--fractional drop)."
        )
    elif row_filter.n_fractional:
        notes.append(
            f"{_share(row_filter.n_fractional, n)} have a fractional outcome, which is taken as a true probability."
        )
    return notes


def _share(count: int, n: int) -> str:
    return (
        f"{count:,} of {n:,} rows ({count / n:.2g})"
        if count / n < 0.001
        else f"{count:,} of {n:,} rows ({count / n:.1%})"
    )


def warn_of_repeated_questions(request: Request, columns: Sequence[Column]) -> None:
    """Print a message if a column looks like the id of questions or units with several rows, and has no role."""
    if request.group is not None or request.question is not None or request.command not in _GROUPED:
        return
    used = {*request.by, request.key, request.time, request.label, *request.proba}
    for column in columns:
        if not column.repeats or not column.many or column.name in used:
            continue
        problem, group = f"values of {column.name!r} are repeated; if rows of one", flagged("--group", column.name)
        if _is_name_of(column.name, _QUESTIONS):
            one = f"{flagged('--question', column.name)} --time ... --close ... --horizon 7d"
            cure = f"share their outcome, add {group}, or use one forecast of each: {one}"
        elif _is_name_of(column.name, _UNITS):
            cure = f"have similar outcomes, add {group}"
        else:
            continue
        print_message(request, f"{problem} {column.name!r} {cure}")
        return


def _is_name_of(name: str, known: Sequence[str]) -> bool:
    """Tell whether a name is a known one, with or without "id": also ``Question ID`` and ``patient-id``."""
    plain = re.sub(r"[\W_]+", "", name).casefold()
    return plain in known or plain.removesuffix("id") in known
