"""`compare`: two columns of the same rows, or two files joined on a key."""

import argparse
import dataclasses
import hashlib
from pathlib import Path

import truthcal as tc
from truthcal.cli.column_guess import Guess, guess
from truthcal.cli.commands.assess import Levels, assessed, prepare_report, write_report
from truthcal.cli.commands.test import refuse_unknown, show
from truthcal.cli.inputs import STDIN, Data, read, sketches_in
from truthcal.cli.output import say
from truthcal.core.sketch import Sketch
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.join import join_files
from truthcal.io.files.load import Loaded
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.io.files.sources import find_sources


def compare(args: argparse.Namespace) -> int:
    """`truthcal compare`."""
    refuse_unknown([args.measure])
    prepare_report(args, args.report)
    data = _of_two_files(args) if args.key is not None else _of_two_columns(args)
    (name_a, a), (name_b, b) = data.models.items()
    found = tc.compare(a.y, a.p, b.p, measure=args.measure, confidence_level=args.confidence_level, sample_weight=a.w)
    result = dataclasses.replace(found, names=(name_a, name_b))
    show(args, result, {"input": data.to_dict(), "comparison": result.to_dict(), "verdict": result.verdict})
    if args.report is not None:
        levels = Levels(1.0 - args.confidence_level, args.confidence_level)
        each = [assessed(name, loaded, levels) for name, loaded in data.models.items()]
        write_report(args, args.report, data, each, {(name_a, name_b): result})
    return 0


def _of_two_columns(args: argparse.Namespace) -> Data:
    named = len(args.proba or [])
    if len(args.files) == 2 and named < 2:
        raise ValueError(
            f"which rows of {args.files[0]} and {args.files[1]} belong together? Name a column that both have: --key "
            "id (or, for two columns of the same rows, both: --proba old --proba new)."
        )
    if named != 2:
        raise ValueError("two models are compared: name both columns, as in --proba old --proba new.")
    data = read(args, exact_rows=None, digest=args.report is not None)
    if len(data.models) != 2 or data.first.y is None:
        raise ValueError("models are compared row by row, and a sketch has no rows; name files of rows.")
    return data


def _of_two_files(args: argparse.Namespace) -> Data:
    if STDIN in args.files:
        raise ValueError("with --key two files are compared, and standard input cannot be one of them.")
    if sketches_in(args.files):
        raise ValueError("models are compared row by row, and a sketch has no rows; name files of rows.")
    sources = find_sources(args.files)
    if len(sources) != 2:
        raise ValueError(f"with --key two files are compared; got {len(sources)}.")
    if len(args.proba or []) > 2:
        raise ValueError("name one column for each of the two files: --proba in_the_first --proba in_the_second.")
    first = _guessed(args, 0, sources[0], None)
    meant = [first, _guessed(args, 1, sources[1], first.y_true)]
    roles = [ColumnRoles.of(g.y_true, g.y_proba[0], args.weight, None, g.pos_label) for g in meant]
    checksum = hashlib.sha256()
    rows = join_files(sources[0], sources[1], args.key, *roles, checksum=checksum if args.report else None)
    for source, alone in zip(sources, (rows.only_a, rows.only_b), strict=True):
        if alone:
            say(args, f"{alone:,} rows of {source} have no partner by {args.key!r} and are left out.")
    names = _names(sources, [g.y_proba[0] for g in meant])
    both = {
        name: Loaded(rows.y, p, rows.w, Sketch().update(rows.y, p, rows.w), None, len(p))
        for name, p in zip(names, (rows.p_a, rows.p_b), strict=True)
    }
    columns = {
        "label": meant[0].y_true,
        "proba": [g.y_proba[0] for g in meant],
        "weight": args.weight,
        "pos_label": meant[0].pos_label,
        "by": [],
        "key": args.key,
    }
    return Data(both, tuple(map(str, sources)), columns, checksum.hexdigest() if args.report else "")


def _guessed(args: argparse.Namespace, k: int, source: Source, elsewhere: str | None) -> Guess:
    """Which column is what in one of the two files. The second may do without outcomes and weights of its own."""
    named = (args.proba or [])[k : k + 1] or (args.proba or [])[:1]
    columns = preview_columns(source, [*named, args.key]).columns
    lacks = elsewhere is not None and all(column.name != args.weight for column in columns)
    meant = guess(
        columns,
        label=args.label,
        proba=named,
        weight=None if lacks else args.weight,
        by=[],
        key=args.key,
        pos_label=args.pos_label,
        where=str(source),
        label_elsewhere=elsewhere,
    )
    for line in meant.said:
        say(args, f"{source}: {line}")
    return meant


def _names(sources: list[Source], columns: list[str]) -> list[str]:
    """What the two are called: what tells them apart."""
    if columns[0] != columns[1]:
        return columns
    stems = [Path(source.path).name.split(".")[0] for source in sources]
    return stems if stems[0] != stems[1] else [str(source) for source in sources]
