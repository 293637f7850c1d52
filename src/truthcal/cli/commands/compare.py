"""`truthcal compare`: all pairs of columns of the same rows, or two files joined on a key."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import truthcal as tc
from truthcal.cli.column_guess import Guess, guess
from truthcal.cli.commands.report import prepare_report, write_report
from truthcal.cli.input_options import (
    input_facts,
    prepare_inputs,
    refuse_class_options,
    refuse_input_options,
    row_filter_of,
)
from truthcal.cli.inputs import STDIN, Data, describe_columns, read_inputs, rows_in_memory, sketches_in
from truthcal.cli.model_result import assess_models
from truthcal.cli.name_lists import expand_names, split_names
from truthcal.cli.named_columns import UnclearColumns, flagged
from truthcal.cli.output import print_formatted, print_message
from truthcal.cli.percentages import preview_as_probabilities, refuse_probabilities, with_percentages
from truthcal.cli.request import Request, refuse_unknown_measures
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.evals.prepare import Prepared
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.join import join_files
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.io.files.where import parse_where

_TWO_MODELS = (
    "`compare` needs two models: name both columns, as in --proba old --proba new; with many classes both prefixes, as "
    "in --proba-prefix old_ --proba-prefix new_."
)
_NO_ROWS = "models are compared row by row, but a sketch has no rows; pass files of rows."


def run(request: Request) -> int:
    """Run `truthcal compare`."""
    refuse_unknown_measures(request)
    prepare_report(request, request.report)
    joins = request.key is not None and not request.proba_prefix
    data = _read_two_files_to_compare(request) if joins else _read_columns_to_compare(request)
    first, level = data.first, request.confidence_level
    table = tc.compare_models(
        first.y,
        {name: loaded.p for name, loaded in data.models.items()},
        measure=request.measure,
        confidence_level=level,
        sample_weight=first.w,
        hard=request.hard,
        groups=first.groups,
        labels=first.labels,
    )
    _print_comparisons(request, data, table)
    if request.report is not None:
        models = assess_models(request, data, alpha=1.0 - level)
        write_report(request, request.report, data, models, table)
    return 0


def _print_comparisons(request: Request, data: Data, table: tc.ComparisonTable) -> None:
    """Print the comparison of two models in full, that of more models as a table of all pairs."""
    one = table.comparisons[0] if len(table) == 1 else None
    content = {
        "input": data.to_dict(),
        "comparison": None if one is None else one.to_dict(),
        "comparisons": table.to_dict(),
        "verdict": table.verdict,
    }
    print_formatted(request, table if one is None else one, content)


def _read_columns_to_compare(request: Request) -> Data:
    if sketches_in(request.files):
        raise ValueError(_NO_ROWS)
    models = split_names(request.proba) or request.proba_prefix
    if len(request.files) == 2 and len(models) < 2:
        raise ValueError(
            f"which rows of {request.files[0]} and {request.files[1]} belong together? Name a column that both have: "
            "--key id. To compare two columns of the same rows, name both: --proba old --proba new."
        )
    if len(models) < 2 and len(request.proba) < 2:
        raise ValueError(_TWO_MODELS)
    data = read_inputs(request, exact_rows=None, digest=request.report is not None)
    if data.first.y is None:
        raise ValueError(_NO_ROWS)
    if len(data.models) < 2:
        raise ValueError(_TWO_MODELS)
    return data


def _read_two_files_to_compare(request: Request) -> Data:
    refuse_input_options(request)
    where = None if request.where is None else parse_where(request.where)
    found = [dataclasses.replace(source, where=where) for source in _find_two_files_to_compare(request)]
    if len(request.proba) == 1 and "," in request.proba[0]:
        names = [column.name for column in preview_columns(found[0], split_names(request.proba)).columns]
        request = dataclasses.replace(request, proba=expand_names(request.proba, names))
    request, sources, prepared = _prepare_two_files(request, found)
    sources = with_percentages(sources, request.percent and prepared.format is None)
    prepared = dataclasses.replace(prepared, sources=sources)
    _keep_where(sources)
    key = str(request.key)
    first = _guess_in(request, 0, sources, None)
    try:
        second = _guess_in(request, 1, sources, first.y_true)
    except UnclearColumns as question:
        if question.flags:  # one column for each file
            question.flags.insert(0, flagged("--proba", first.y_proba[0]))
        raise
    proba = [first.y_proba[0], second.y_proba[0]]
    roles = [
        ColumnRoles.of(guessed.y_true, guessed.y_proba[0], request.weight, None, guessed.pos_label, request.group)
        for guessed in (first, second)
    ]
    checksum = None if request.report is None else hashlib.sha256()
    filters = row_filter_of(request, sources, proba[0])[0], row_filter_of(request, sources, proba[1])[0]
    rows = join_files(sources[0], sources[1], key, roles[0], roles[1], checksum=checksum, filters=filters)
    for source, unmatched in zip(sources, (rows.only_a, rows.only_b), strict=True):
        if unmatched:
            print_message(request, f"{unmatched:,} rows of {source} have no match on {key!r} and are left out.")
    models = {
        name: rows_in_memory(rows.y, p, rows.w, rows.groups)
        for name, p in zip(_model_names(sources, proba), (rows.p_a, rows.p_b), strict=True)
    }
    columns = {**describe_columns(request, first, proba), "key": key}
    facts = input_facts(request, prepared, filters)
    return Data(models, tuple(map(str, sources)), columns, "" if checksum is None else checksum.hexdigest(), facts)


def _keep_where(sources: list[Source]) -> None:
    """Apply the condition of --where to the files that have its columns: rows without a match are left out anyway."""
    if sources[0].where is None:
        return
    columns = set(sources[0].where.columns)
    bare = [dataclasses.replace(source, where=None) for source in sources]
    has = [columns <= {column.name for column in preview_columns(source, columns).columns} for source in bare]
    for k in range(2):
        if any(has) and not has[k]:
            sources[k] = bare[k]


def _prepare_two_files(request: Request, sources: list[Source]) -> tuple[Request, list[Source], Prepared]:
    """Convert evaluation files to compare, each by itself: the first one determines which rows belong together."""
    first, a = prepare_inputs(request, sources[:1])
    refuse_class_options(request, a)
    second, b = prepare_inputs(dataclasses.replace(request, group=first.group), sources[1:])
    proba = request.proba or (*first.proba, *second.proba)
    notes = tuple(dict.fromkeys([*a.notes, *b.notes]))
    prepared = dataclasses.replace(a, missing=a.missing + b.missing, notes=notes)
    return dataclasses.replace(first, proba=proba), [*a.sources, *b.sources], prepared


def _find_two_files_to_compare(request: Request) -> list[Source]:
    if STDIN in request.files:
        raise ValueError("--key joins two files, and standard input cannot be one of them.")
    if sketches_in(request.files):
        raise ValueError(_NO_ROWS)
    sources = find_sources(list(request.files))
    if len(sources) != 2:
        raise ValueError(f"--key joins two files; got {len(sources)}.")
    if len(request.proba) > 2:
        raise ValueError("name one column for each of the two files: --proba in_the_first --proba in_the_second.")
    return sources


def _guess_in(request: Request, k: int, sources: list[Source], label_elsewhere: str | None) -> Guess:
    """Guess the columns of one of the files to compare. The second may have no outcomes and weights of its own."""
    proba = request.proba[k : k + 1] or request.proba[:1]
    names = [*proba, str(request.key), *([request.group] if request.group is not None and k == 0 else [])]
    preview = preview_columns(sources[k], names)
    sources[k] = preview.source
    no_weight = label_elsewhere is not None and all(column.name != request.weight for column in preview.columns)
    columns = preview_as_probabilities(preview.columns, request.label) if request.percent else preview.columns
    guessed = guess(
        columns,
        label=request.label,
        proba=proba,
        weight=None if no_weight else request.weight,
        group=request.group if label_elsewhere is None else None,
        key=request.key,
        pos_label=request.pos_label,
        where=str(sources[k]),
        label_elsewhere=label_elsewhere,
        fractional=request.fractional is not None,
    )
    if sources[k].percent:
        refuse_probabilities(preview.columns, guessed.y_proba, str(sources[k]))
    for message in guessed.messages:
        print_message(request, f"{sources[k]}: {message}")
    return guessed


def _model_names(sources: Sequence[Source], columns: list[str]) -> list[str]:
    """Name the models to compare by their columns; by their files if the columns have the same name."""
    if columns[0] != columns[1]:
        return columns
    stems = [Path(source.path).name.split(".")[0] for source in sources]
    return stems if stems[0] != stems[1] else [str(source) for source in sources]
