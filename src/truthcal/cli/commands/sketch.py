"""`sketch` and `merge`: rows reduced to small files that can be put together later."""

import argparse

from truthcal.cli.inputs import merged, one_model, read, refuse_unwritable
from truthcal.cli.output import STDOUT, out, say, write_file
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable


def sketch(args: argparse.Namespace) -> int:
    """`truthcal sketch`."""
    refuse_unwritable(args, args.output)
    data = read(args, exact_rows=0, n_buckets=args.buckets)
    loaded = one_model(data, args)
    _save(args, loaded.sketch if loaded.table is None else loaded.table, f"{loaded.n:,} rows of {data.where} are")
    return 0


def merge(args: argparse.Namespace) -> int:
    """`truthcal merge`."""
    refuse_unwritable(args, args.output, may_be_read=True)
    whole = merged(args.files)
    _save(args, whole, f"{whole!r}")
    return 0


def _save(args: argparse.Namespace, kept: Sketch | SketchTable, what: str) -> None:
    write_file(args.output, kept.to_bytes())
    if args.output != STDOUT:
        say(args, f"{what} in {args.output}")
        out(args.output)
