"""`test`, `measures` and `audit`: one question each."""

import argparse
from typing import Any

import truthcal as tc
from truthcal.cli.column_guess import guess
from truthcal.cli.inputs import one_model, opened, read, sketches_in
from truthcal.cli.output import out, out_json, say
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.load import Loaded, load
from truthcal.io.files.preview import preview_columns
from truthcal.results.text import Table

_FLAGS = ("truthful", "continuous", "complete", "sound")


def test(args: argparse.Namespace) -> int:
    """`truthcal test`."""
    refuse_unknown([args.measure])
    data = read(args)
    rows = one_model(data, args)
    given = (rows.y, rows.p) if rows.exact else (rows.sketch,)
    result = tc.calibration_test(
        *given,
        measure=args.measure,
        method=args.method,
        alternative=args.alternative,
        n_resamples=args.n_resamples,
        rng=args.seed,
        sample_weight=rows.w if rows.exact else None,
    )
    show(args, result, {"input": data.to_dict(), "test": result.to_dict()})
    return 0


def measures(args: argparse.Namespace) -> int:
    """`truthcal measures`."""
    refuse_unknown(args.measure or [])
    if args.list:
        return _list(args)
    if not args.files:
        raise ValueError("name a file of predictions, or say --list for all measures and what is true of them.")
    data = read(args, exact_rows=None)
    rows = _all_rows(one_model(data, args))
    table = tc.all_measures(rows.y, rows.p, args.measure, sample_weight=rows.w)
    show(args, table, {"input": data.to_dict(), "measures": _rows(table.table())})
    return 0


def audit(args: argparse.Namespace) -> int:
    """`truthcal audit`."""
    refuse_unknown(args.measure or [])
    if (args.truth is None) == (not args.files):
        raise ValueError("name one file of predictions, or the true chances: --truth 0.25,0.75")
    if args.truth is not None:
        result = tc.audit(args.truth, args.measure, rng=args.seed)
    else:
        result = tc.audit_on(_predictions(args), args.measure, rng=args.seed, max_rows=args.max_rows)
    if args.markdown:
        out(f"```\n{result}\n```")
    elif args.json:
        out_json("audit", {"rows": _rows(result.table())})
    else:
        out(str(result))
    return 0


def refuse_unknown(names: list[str]) -> None:
    """Say which measures there are before any file is read."""
    for name in names:
        if name not in tc.MEASURES:
            raise ValueError(
                f"there is no measure {name!r}; truthcal measures --list shows all: {', '.join(tc.MEASURES)}."
            )


def show(args: argparse.Namespace, result: Any, content: dict[str, Any]) -> None:
    """Print a result in the wanted format."""
    if args.json:
        out_json(args.command, content)
    else:
        out(result.to_markdown() if args.markdown else str(result))


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns of equal length as one dict a row."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _all_rows(loaded: Loaded) -> Loaded:
    """Measures need the rows themselves."""
    if loaded.y is None:
        raise ValueError(
            "most measures need the rows, and a sketch has none; `truthcal assess` takes it, and shows ATB."
        )
    return loaded


def _predictions(args: argparse.Namespace) -> Any:
    """One column of predictions; outcomes are not looked at."""
    if len(args.proba or []) > 1:
        raise ValueError("`audit` looks at one column of predictions; name one with --proba.")
    if sketches_in(args.files):
        raise ValueError("`audit` looks at predictions one by one, and a sketch has none; name a file of rows.")
    with opened(args.files) as sources:
        preview = preview_columns(sources[0], args.proba or [])
        sources[0] = preview.source
        meant = guess(preview.columns, proba=args.proba or [], where=str(sources[0]), label_elsewhere="")
        for line in meant.said:
            say(args, line)
        (name,) = meant.y_proba
        return load(sources, ColumnRoles.predictions_only(name), exact_rows=None)[name].p


def _list(args: argparse.Namespace) -> int:
    rows = [
        {
            "name": name,
            "scale": measure.scale,
            **{flag: getattr(measure, flag) for flag in _FLAGS},
            "cost": measure.cost,
            "reference": measure.reference,
        }
        for name, measure in tc.MEASURES.items()
        if not args.measure or name in args.measure
    ]
    if args.json:
        out_json("measures", {"input": None, "measures": rows})
        return 0
    header = ["measure", "scale", *_FLAGS, "what it is"]
    cells = [
        [
            str(row["name"]),
            str(row["scale"]),
            *("yes" if row[flag] else "no" for flag in _FLAGS),
            _first_line(str(row["name"])),
        ]
        for row in rows
    ]
    table = Table(header, cells)
    out(table.markdown() if args.markdown else "\n".join(table.lines()))
    return 0


def _first_line(name: str) -> str:
    return (tc.MEASURES[name].function.__doc__ or "").strip().splitlines()[0]
