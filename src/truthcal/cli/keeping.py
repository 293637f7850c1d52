"""`sketch` and `merge`: rows reduced to small files that can be put together later."""

import argparse

from truthcal.cli.inputs import merged, one_model, read, refuse_unwritable
from truthcal.cli.showing import out, say


def sketch(args: argparse.Namespace) -> int:
    """`truthcal sketch`."""
    refuse_unwritable(args.output)
    data = read(args, exact_rows=0, n_buckets=args.buckets)
    loaded = one_model(data, args)
    kept = loaded.sketch if loaded.table is None else loaded.table
    kept.save(args.output)
    say(args, f"{loaded.n:,} rows of {data.where} are in {args.output}")
    out(args.output)
    return 0


def merge(args: argparse.Namespace) -> int:
    """`truthcal merge`."""
    refuse_unwritable(args.output)
    whole = merged(args.files)
    whole.save(args.output)
    say(args, f"{whole!r} in {args.output}")
    out(args.output)
    return 0
