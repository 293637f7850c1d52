"""`truthcal watch`: monitor a growing set of files. Each run scores the windows that were closed since the last one."""

import glob
import math
import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from truthcal.cli.commands.report import prepare_report
from truthcal.cli.inputs import guess_input_columns, merge_input_sketches, open_inputs, print_where, sketches_in
from truthcal.cli.name_lists import expand_names, with_expanded_names, with_split_names
from truthcal.cli.output import coloured, print_error, print_json, print_message, print_result, terminal_width
from truthcal.cli.output_files import refuse_unwritable, write_file
from truthcal.cli.percentages import NOTE, with_percentages
from truthcal.cli.request import Request
from truthcal.core.checks import invalid
from truthcal.core.sketch_table import SketchTable
from truthcal.core.times import Times, times_of
from truthcal.core.windows import Window, check_order, parse_window
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.timed_rows import TimedColumns, TimedRows, read_timed_rows
from truthcal.monitoring.watch import Watch, WindowRows
from truthcal.results.column_width import wrap_lines
from truthcal.results.text import count, plural
from truthcal.results.watch import WatchResult

_EXIT_STATUS = {"pass": 0, "fail": 1, "too little data": 3}
_VERDICTS = {"too little data": "There are too few rows to exclude a large bias."}
# The state is written at the end, and during a long run not more often than this.
SAVE_SECONDS = 1.0

Windows = dict[int, WindowRows]


def run(request: Request) -> int:
    """Run `truthcal watch`."""
    assert request.state is not None
    prepare_report(request, request.report)
    refuse_unwritable(request, request.state)
    watch = Watch.load(request.state) if Path(request.state).exists() else None
    setup, window, windows, latest = _read_windows(request)
    if watch is None:
        if not windows:
            raise ValueError("there are no rows to watch.")
        watch = Watch(setup, window, min(windows))
    _refuse_other_setup(request, watch, setup)
    _report_changes(request, watch, windows)
    _refuse_missing_rows(watch, windows, latest)
    new = _process_windows(request, watch, windows, latest)
    if not new:
        print_message(request, "no window was closed since the last run.")
    waiting = _word_open_window(watch)
    if waiting:
        print_message(request, waiting)
    result = watch.result()
    status = _EXIT_STATUS[result.decision]
    _print_watch_result(request, result, status)
    if request.report is not None:
        _write_watch_report(request, request.report, watch.window, result, waiting)
    return status


def _word_open_window(watch: Watch) -> str:
    """Say which rows are not scored yet; empty if there are none."""
    for start, seen in sorted(watch.open.items())[:1]:
        rows = f"{count(seen.n, 'row')} of {watch.window.label(start)} {plural(seen.n, 'waits', 'wait')}"
        return f"{rows} until rows of a later window, or --until, close it."
    return ""


def _process_windows(request: Request, watch: Watch, windows: Windows, latest: int) -> int:
    """Score all windows before the latest one that are not scored yet; print a line for each. Return their number."""
    assert request.state is not None
    new, saved = 0, time.monotonic()
    for start in _new_starts(watch, windows, latest):
        record = watch.process(start, windows.get(start, WindowRows()))
        if time.monotonic() - saved >= SAVE_SECONDS:
            watch.save(request.state)
            saved = time.monotonic()
        if request.format == "text":
            print_result(record.to_text(terminal_width()))
        new += 1
    if watch.remember_open(windows) or new or not Path(request.state).exists():
        watch.save(request.state)
    return new


def _new_starts(watch: Watch, windows: Windows, latest: int) -> Iterator[int]:
    """Yield the starts of all windows that are closed and not scored, also of windows without rows."""
    following = watch.next_start
    start = min(windows) if following is None else following
    while start < latest:
        yield start
        start = watch.window.next_start(start)


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_windows(request: Request) -> tuple[dict[str, Any], Window, Windows, int]:
    """Read the files; return the setup, the windows, their rows by start, and the start of the window still open."""
    sketches = sketches_in(request.files)
    if sketches:
        return _windows_of_sketches(request, sketches)
    if request.time is None:
        with open_inputs(request) as sources:
            available = ", ".join(preview_columns(sources[0]).source.header)
        raise ValueError(f"name the column of times with --time. Columns: {available}.")
    with open_inputs(request) as sources:
        split = with_split_names(request)
        names = (request.label, *split.proba, *split.by, request.time, request.due, request.group)
        preview = preview_columns(sources[0], [name for name in names if name is not None])
        sources[0] = preview.source
        request = with_expanded_names(split, request, [column.name for column in preview.columns])
        guessed = guess_input_columns(request, preview)
        if len(guessed.y_proba) > 1:
            raise ValueError("`watch` takes one model; name one column with --proba.")
        roles = ColumnRoles.of_models(guessed.y_true, guessed.y_proba, None, request.by or None, guessed.pos_label)
        assert request.time is not None
        columns = TimedColumns(request.time, request.due, request.group, request.time_unit)
        rows = read_timed_rows(with_percentages(sources, request.percent), roles, columns)
        print_where(request, sources)
        if request.percent:
            print_message(request, NOTE)
    setup = _setup(request, label=guessed.y_true, proba=guessed.y_proba[0])
    window = parse_window(request.window, counter=rows.time.counter)
    window.check_kind(rows.time)
    if window.kind == "rows":
        return setup, window, *_windows_of_rows(request, rows, window)
    times = rows.time if rows.due is None else rows.due
    return setup, window, _split(rows, window.starts(times), times), _latest_of(request, rows.time, window)


def _setup(request: Request, **columns: str | None) -> dict[str, Any]:
    """Return the options that must be the same in all runs."""
    options = {name: getattr(request, name) for name in ("window", "time", "due", "group", "alpha", "where")}
    return {**options, "by": list(request.by), "percent": request.percent or None, **columns}


def _windows_of_rows(request: Request, rows: TimedRows, window: Window) -> tuple[Windows, int]:
    """Divide rows, in the order of time, into windows of n rows. The last one is open until it is full."""
    for flag, value in (("--due", request.due), ("--until", request.until)):
        if value is not None:
            raise ValueError(f"{flag} needs windows of time, such as --window week, not of rows.")
    _refuse_other_order(rows)
    starts = window.starts(rows.time)
    return _split(rows, starts, rows.time), len(starts) - len(starts) % window.size


def _refuse_other_order(rows: TimedRows) -> None:
    """Raise if rows are not in the order of time, with the file of the first one that is not."""
    try:
        check_order(rows.time)
    except ValueError as error:
        earlier = int((np.diff(rows.time.values) < 0).argmax())
        places = rows.place(earlier + 1), rows.place(earlier)
        where = f"{places[0]} is earlier than {places[1]}"
        problem = f"must increase from row to row for windows of rows; {where}"
        cure = "Sort the rows by time, and name the files in this order, or use windows such as 'day'"
        raise invalid("time", f"{problem}. {cure}.") from error


def _split(rows: TimedRows, starts: np.ndarray[Any, np.dtype[np.int64]], times: Times) -> Windows:
    """Divide rows by the start of their window, to which `times` belong."""
    order = np.argsort(starts, kind="stable")
    ends = np.flatnonzero(np.diff(starts[order])) + 1
    return {int(starts[part[0]]): _window_rows(rows, part, times) for part in np.split(order, ends)}


def _window_rows(rows: TimedRows, part: np.ndarray[Any, np.dtype[np.int64]], times: Times) -> WindowRows:
    known = part[rows.y[part] >= 0]
    segments = groups = None
    if rows.segments is not None:
        segments = [rows.segments[1][place] for place in rows.segments[0][known]]
    if rows.groups is not None:
        groups = [rows.groups[1][place] for place in rows.groups[0][known]]
    missing = rows.p[part[rows.y[part] < 0]]
    return WindowRows(rows.y[known], rows.p[known], segments, groups, missing, times=times.values[part])


def _windows_of_sketches(request: Request, paths: list[str]) -> tuple[dict[str, Any], Window, Windows, int]:
    """Read sketches by time, and by segments if asked for; divide them by window."""
    for flag, value in (("--due", request.due), ("--group", request.group), ("--where", request.where)):
        if value is not None:
            raise ValueError(
                f"{flag} refers to a column, but {paths[0]} is a sketch, which has no columns; omit {flag}."
            )
    table = merge_input_sketches(paths)
    columns = table.by if isinstance(table, SketchTable) else ()
    request = replace(request, by=expand_names(request.by, columns))
    column = request.time or next((name for name in columns if name not in request.by), None)
    wanted = {column, *request.by}
    if not isinstance(table, SketchTable) or column not in columns or wanted != set(columns):
        has = f"it is by {', '.join(columns)}" if columns else "it has no groups"
        raise ValueError(f"{paths[0]}: a sketch must be by its times and the columns of --by; {has}.")
    table = table.rollup([column, *request.by])
    keys = list(table)
    values = [key[0] if request.by else key for key in keys]
    if None in values:
        raise ValueError(f"{paths[0]}: column {column!r} has a missing time; drop those rows.")
    times = times_of(np.fromiter(values, object, len(values)), "time", request.time_unit)
    window = parse_window(request.window, counter=times.counter)
    if window.kind == "rows":
        raise ValueError("--window must be a length of time for sketches, such as 7d, not a number of rows.")
    starts = window.starts(times)
    windows = {int(start): _sketched_rows(request, table, keys, starts == start, times) for start in np.unique(starts)}
    return _setup(request, label=None, proba=None), window, windows, _latest_of(request, times, window)


def _latest_of(request: Request, times: Times, window: Window) -> int:
    """Return the start of the first window that is still open: that of the last row, or of the time of --until."""
    latest = int(window.starts_of(times.values.max(keepdims=True))[0])
    if request.until is None:
        return latest
    try:
        until = times_of(np.array([request.until], object), "--until", request.time_unit)
    except (ValueError, TypeError):
        rule = "--until must be a time such as 2024-03-31 or 2024-03-31T12:00:00Z, or an integer if the times are"
        raise ValueError(f"{rule}; got {request.until!r}.") from None
    return max(latest, int(window.starts_of(until.values)[0]))


def _sketched_rows(request: Request, table: SketchTable, keys: list[Any], here: Any, times: Times) -> WindowRows:
    parts = {key: table[key] for key, is_here in zip(keys, here.tolist(), strict=True) if is_here}
    part = SketchTable.from_sketches(parts, by=table.by)
    segments = part.rollup(request.by) if request.by else None
    counts = np.array([sketch.n for sketch in parts.values()], np.int64)
    return WindowRows(segments=segments, sketch=part.total(), times=times.values[here], counts=counts)


# --- checks of the state ----------------------------------------------------------------------------------------------


def _refuse_other_setup(request: Request, watch: Watch, setup: dict[str, Any]) -> None:
    """Raise if the state was made with other options."""
    for name, value in setup.items():
        before = watch.setup.get(name)  # files of earlier versions have no --where
        if value != before:
            now, then = (_with_option(name, v) for v in (value, before))
            raise ValueError(f"{request.state}: was made {then}, not {now}; use the same, or another --state.")


def _with_option(name: str, value: Any) -> str:
    """Name an option and its value, or say that it was not given."""
    if value in (None, "", []):
        return f"without --{name}"
    return f"with --{name}" + ("" if value is True else f" {' '.join(value) if isinstance(value, list) else value}")


def _report_changes(request: Request, watch: Watch, windows: Windows) -> None:
    """Warn if the rows of a closed window have changed: it is final, so the difference is not scored."""
    for record in watch.history:
        rows = windows.get(record.start)
        if rows is None:
            continue
        before, now = record.n + record.n_overdue, rows.n_all
        if now < before:  # not all of its files are passed again
            continue
        if now > before:
            problem = f"{record.label} had {before:,} rows when it was closed, and has {now:,} now"
            print_error(f"warning: {problem}. Closed windows are final: the difference is not scored.")
        elif rows.n == record.n and rows.n and not math.isclose(rows.mean_proba, record.mean_proba, rel_tol=1e-9):
            _refuse_other_rows(watch, record.label)
        elif rows.n == record.n and rows.n and not math.isclose(rows.mean_true, record.mean_true, abs_tol=1e-9):
            problem = f"{record.label} has other outcomes now than when it was closed"
            print_error(f"warning: {problem}. Closed windows are final: the difference is not scored.")
        elif rows.n > record.n:
            late = rows.n - record.n
            print_message(
                request, f"{record.label}: {late:,} outcomes arrived after it was closed; they are not scored."
            )


def _refuse_missing_rows(watch: Watch, windows: Windows, latest: int) -> None:
    """Raise if a window would be closed without most rows that an earlier run saw; warn if only some are missing."""
    for start, seen in sorted(watch.open.items()):
        now = windows.get(start, WindowRows()).n_until(seen.last)
        if start >= latest or now >= seen.n:
            continue
        label = watch.window.label(start)
        problem = f"an earlier run saw {seen.n:,} rows of {label}, and these files have {now:,} of them"
        if 2 * now < seen.n:
            cure = f"Pass all files with rows of {label}: this run would close it, and a closed window is final"
            raise ValueError(f"{problem}. {cure}. Nothing was changed.")
        print_error(f"warning: {problem}. {label} is closed without the others.")


def _refuse_other_rows(watch: Watch, label: str) -> None:
    """Warn that the predictions of a closed window have changed; raise for windows of rows."""
    if watch.window.kind == "rows":
        problem = f"the rows from row {label} on are not those of earlier runs, so it is not known which rows are new"
        raise ValueError(f"{problem}. With windows of rows, pass all files in every run; or use --window with a time.")
    print_error(f"warning: {label} has other predictions now than when it was closed. Closed windows are final.")


# --- output -----------------------------------------------------------------------------------------------------------


def _print_watch_result(request: Request, result: WatchResult, status: int) -> None:
    if request.format == "json":
        print_json("watch", {"exit_status": status, **result.to_dict()})
        return
    if request.format == "markdown":
        print_result(result.to_markdown())
        return
    verdict, width = _VERDICTS.get(result.decision), terminal_width()
    parts = [coloured(result.status.to_text(width), result.decision, result.status.verdict)]
    parts += [result.segments.to_text(width)] if result.segments else []
    parts += [verdict] if verdict else []
    parts += [wrap_lines(f"! {warning}", width, "  ") for warning in result.warnings]
    print_result("\n\n".join(["", *parts]).lstrip("\n") if not result.windows else "\n" + "\n\n".join(parts))


def _name_stream(request: Request) -> str:
    """Name the stream for a title: by its only file, or by the state if a pattern or several files were named."""
    if len(request.files) == 1 and not glob.has_magic(request.files[0]):
        return Path(request.files[0]).name
    return Path(str(request.state)).stem


def _write_watch_report(request: Request, path: str, window: Window, result: WatchResult, waiting: str) -> None:
    from truthcal.reports.watch import watch_report  # loads matplotlib

    calendar = window.kind in ("duration", "months")
    title = request.title or f"Are these probabilities still calibrated? {_name_stream(request)}"
    provenance = {"data": ", ".join(request.files[:5]), "command": shlex.join(["truthcal", *request.line])}
    provenance |= {"not scored yet": waiting} if waiting else {}
    write_file(path, watch_report(result, title, provenance, calendar=calendar).html.encode())
    print_message(request, f"wrote {path}")
