"""Times of rows: which columns are accepted, and the message for everything else."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from truthcal.core.times import times_of

TEXT = ["2024-03-09T05:00:00", "2024-03-10T05:30:00.25", "1969-12-31T23:59:59"]
NAIVE = [datetime.fromisoformat(text) for text in TEXT]
NEW_YORK = ZoneInfo("America/New_York")
MICROS = [(t - datetime(1970, 1, 1)) // timedelta(microseconds=1) for t in NAIVE]
AWARE = [t.replace(tzinfo=UTC).astimezone(NEW_YORK) for t in NAIVE]

WITHOUT_ZONE = {
    "text": TEXT,
    "text with a blank": [text.replace("T", " ") for text in TEXT],
    "numpy text": np.array(TEXT),
    "pandas text": pd.Series(TEXT, dtype="string"),
    "polars text": pl.Series(TEXT),
    "pyarrow text": pa.array(TEXT),
    "datetime": NAIVE,
    "numpy": np.array(NAIVE, "datetime64[ms]"),
    "numpy ns": np.array(NAIVE, "datetime64[ns]"),
    "pandas": pd.Series(NAIVE),
    "pandas index": pd.DatetimeIndex(NAIVE),
    "pandas arrow": pd.Series(NAIVE).astype(pd.ArrowDtype(pa.timestamp("us"))),
    "polars": pl.Series(NAIVE),
    "pyarrow": pa.array(NAIVE),
    "categories": pd.Series(TEXT, dtype="category"),
}
WITH_ZONE = {
    "text": [t.isoformat() for t in AWARE],
    "text with Z": [f"{text}Z" for text in TEXT],
    "datetime": AWARE,
    "pandas": pd.Series(NAIVE).dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
    "pandas index": pd.DatetimeIndex(NAIVE).tz_localize("UTC").tz_convert("Asia/Kolkata"),
    "pandas arrow": pd.Series(AWARE).astype(pd.ArrowDtype(pa.timestamp("us", "America/New_York"))),
    "polars": pl.Series(NAIVE).dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York"),
    "pyarrow": pa.array(AWARE, pa.timestamp("us", "America/New_York")),
    "pyarrow chunked": pa.chunked_array([pa.array(AWARE, pa.timestamp("ms", "America/New_York"))]),
}


@pytest.mark.parametrize("column", WITHOUT_ZONE.values(), ids=WITHOUT_ZONE)
def test_times_without_zone(column):
    times = times_of(column)
    assert (times.values.tolist(), times.counter, times.zoned) == (MICROS, False, False)


@pytest.mark.parametrize("column", WITH_ZONE.values(), ids=WITH_ZONE)
def test_times_with_zone_are_converted_to_utc(column):
    times = times_of(column)
    assert (times.values.tolist(), times.counter, times.zoned) == (MICROS, False, True)


@pytest.mark.parametrize(
    "column",
    [
        [date(2024, 2, 29), date(1960, 1, 1)],
        np.array(["2024-02-29", "1960-01-01"], "datetime64[D]"),
        pl.Series([date(2024, 2, 29), date(1960, 1, 1)]),
        pa.array([date(2024, 2, 29), date(1960, 1, 1)]),
        ["2024-02-29", "1960-01-01"],
    ],
)
def test_dates_are_their_midnight(column):
    assert times_of(column).values.tolist() == [19782 * 86_400_000_000, -3653 * 86_400_000_000]


def test_the_repeated_hour_is_two_hours():
    first = datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK)
    times = times_of([first, first.replace(fold=1)])
    assert np.diff(times.values).tolist() == [3_600_000_000]


def test_finer_times_are_rounded_down():
    fine = np.array(["2024-01-01T00:00:00.000000999", "1969-12-31T23:59:59.999999999"], "datetime64[ns]")
    assert times_of(fine).values.tolist() == [1_704_067_200_000_000, -1]


@pytest.mark.parametrize("column", [[5, 3, -1], np.array([5, 3, -1], np.int8), pl.Series([5, 3, -1])])
def test_integers_are_counters(column):
    times = times_of(column)
    assert (times.values.tolist(), times.counter) == ([5, 3, -1], True)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_integers_with_a_unit_are_times(unit, factor):
    times = times_of([1_700_000_000 * factor, -factor], unit=unit)
    assert (times.values.tolist(), times.counter) == ([1_700_000_000_000_000, -1_000_000], False)


ERRORS = {
    "missing time": (["2024-01-01", None], "`time` has a missing value (no time) at row 1 (1 of 2 rows). Drop those"),
    "NaT": (np.array(["2024-01-01", "NaT", "NaT"], "datetime64[s]"), "(no time) at row 1 (2 of 3 rows)"),
    "pandas NaT": (pd.Series([None, "2024-01-01"], dtype="datetime64[ns, UTC]"), "(no time) at row 0 (1 of 2 rows)"),
    "missing integer": (pd.Series([1, None], dtype="Int64"), "(no time) at row 1"),
    "no time": (["2024-01-01", "soon"], "found 'soon' at row 1. Convert it, for example with pandas.to_datetime."),
    "numpy text": (np.array(["2024-01-01", "soon"]), "found 'soon' at row 1."),
    "day first": (["31/12/2024"], "found '31/12/2024' at row 0"),
    "now": (["now"], "found 'now' at row 0"),
    "time of day": ([datetime(2024, 1, 1).time()], "found datetime.time(0, 0) at row 0"),
    "fractions": ([0.5, 1.0], "got dtype float64 (first value 0.5)"),
    "booleans": ([True, False], "got dtype bool"),
    "mixed zones": (
        ["2024-01-01", "2024-01-02T00:00Z"],
        "must have a time zone in all rows or in none: the first row lacks a time zone, '2024-01-02T00:00Z' at row 1 (1 of 2 rows) has one.",
    ),
    "sentinel": ([date(2024, 1, 1), date(9999, 12, 31)], "years 1001 to 8999; found 9999-12-31 at row 1 (1 of 2 rows)"),
    "far future": (np.array([10**9], "datetime64[Y]"), "must lie in the years 1001 to 8999"),
    "large integer": ([2**63], "must contain integers below 2**63; found 9223372036854775808"),
    "large uint64": (np.array([2**63], np.uint64), "must contain integers below 2**63"),
    "huge integer": ([2**70, 1], "must contain integers below 2**63"),
    "two columns": ([[1, 2]], "`time` must be one-dimensional"),
    "empty": ([], "`time` is empty"),
}


@pytest.mark.parametrize(("column", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(column, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        times_of(column)
    assert message in str(caught.value)


def test_errors_about_units():
    with pytest.raises(ValueError, match=r"`time_unit` must be one of 's', 'ms', 'us', 'ns'; got 'm'"):
        times_of([1], unit="m")
    with pytest.raises(ValueError, match=r"has 1700000000000 at row 0 .* if it counts s since 1970-01-01"):
        times_of([1_700_000_000_000], unit="s")


def test_offsets_of_seconds():
    odd = timezone(timedelta(hours=1, seconds=7))
    assert times_of([datetime(1970, 1, 1, 1, 0, 7, tzinfo=odd)]).values.tolist() == [0]
