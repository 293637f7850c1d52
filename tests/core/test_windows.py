"""Windows of time: aligned to the calendar, the same for parts of the rows as for all of them."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthcal.core.times import Times, times_of
from truthcal.core.windows import Window, check_order, choose_window, nested_windows, parse_window, time_label

EPOCH = datetime(1970, 1, 1)
SPECIFICATIONS = ["1s", "5min", "12h", "day", "7d", "week", "2 weeks", "month", "quarter", "5 months", "year"]
moments = st.datetimes(datetime(1001, 1, 1), datetime(8999, 12, 31))


def micros(time):
    return (time - EPOCH) // timedelta(microseconds=1)


def start_by_calendar(time, text):
    """The start of the window of a time, by Python's calendar."""
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    if text == "week":
        return midnight - timedelta(days=midnight.weekday())
    if text == "day":
        return midnight
    if text == "12h":
        return midnight + timedelta(hours=12 * (time.hour >= 12))
    if text == "month":
        return midnight.replace(day=1)
    if text == "quarter":
        return midnight.replace(month=time.month - (time.month - 1) % 3, day=1)
    if text == "year":
        return midnight.replace(month=1, day=1)
    days = (midnight - EPOCH).days
    return EPOCH + timedelta(days=days - days % 7)  # 7d


@given(moments, st.sampled_from(["day", "12h", "7d", "week", "month", "quarter", "year"]))
def test_starts_by_calendar(time, text):
    (start,) = parse_window(text).starts(times_of([time])).tolist()
    assert EPOCH + timedelta(microseconds=start) == start_by_calendar(time, text)


@given(moments, st.sampled_from(SPECIFICATIONS))
def test_windows_cover_time_without_overlap(time, text):
    window = parse_window(text)
    (start,) = window.starts(times_of([time])).tolist()
    end = window.next_start(start)
    assert start <= micros(time) < end
    bounds = window.starts_of(np.array([start, end - 1, end])).tolist()
    assert bounds == [start, start, end]
    assert window.number_between(start, end - 1) == 1
    assert window.number_between(start, end) == window.number_between(start - 1, start) == 2
    assert window.start_of_key(window.key(start)) == start


@given(st.lists(moments, min_size=1, max_size=20), st.integers(0, 20), st.sampled_from([*SPECIFICATIONS, "3 rows"]))
def test_parts_have_the_windows_of_the_whole(times, cut, text):
    window, values = parse_window(text), np.sort([micros(time) for time in times])
    cut = min(cut, len(values))
    parts = [window.starts(Times(values[:cut].copy()), 0), window.starts(Times(values[cut:].copy()), cut)]
    assert np.concatenate(parts).tolist() == window.starts(Times(values)).tolist()


@given(st.lists(moments, min_size=1, max_size=20), st.sampled_from(["month", "quarter", "year", "week", "7d"]))
def test_days_make_up_longer_windows(times, text):
    values, window = np.array([micros(time) for time in times]), parse_window(text)
    days = parse_window("day").starts_of(values)
    assert window.starts_of(days).tolist() == window.starts_of(values).tolist()


def test_equal_times_in_other_zones_are_in_the_same_window():
    same = ["2024-03-10T23:30:00-05:00", "2024-03-11T04:30:00+00:00", "2024-03-11T10:00:00+05:30"]
    window = parse_window("day")
    assert {window.label(start) for start in window.starts(times_of(same)).tolist()} == {"2024-03-11"}


def test_windows_of_rows_and_of_counters():
    assert parse_window("3 rows").starts(times_of([7, 7, 8, 9, 9])).tolist() == [0, 0, 0, 3, 3]
    assert parse_window("3 rows").starts(times_of([9, 9]), first_row=5).tolist() == [3, 6]
    assert parse_window("10", counter=True).starts(times_of([-1, 0, 9, 10])).tolist() == [-10, 0, 0, 10]


@pytest.mark.parametrize(
    ("text", "kind", "size", "name"),
    [
        ("day", "duration", 86_400_000_000, "day"),
        (" Days ", "duration", 86_400_000_000, "day"),
        ("1d", "duration", 86_400_000_000, "day"),
        ("7d", "duration", 604_800_000_000, "7d"),
        ("12h", "duration", 43_200_000_000, "12h"),
        ("90 min", "duration", 5_400_000_000, "90min"),
        ("30 seconds", "duration", 30_000_000, "30s"),
        ("month", "months", 1, "month"),
        ("2 quarters", "months", 6, "2 quarters"),
        ("year", "months", 12, "year"),
        ("1000 rows", "rows", 1000, "1,000 rows"),
        ("1000", "rows", 1000, "1,000 rows"),
        (1000, "rows", 1000, "1,000 rows"),
        (np.int64(1), "rows", 1, "1 row"),
    ],
)
def test_specifications(text, kind, size, name):
    window = parse_window(text)
    assert (window.kind, window.size, str(window)) == (kind, size, name)
    assert parse_window(window) is window


def test_a_plain_number_counts_integers():
    window = parse_window("1000", counter=True)
    assert (window.kind, window.size, str(window)) == ("steps", 1000, "1,000")


ALLOWED = "'day', 'week', 'month', 'quarter', 'year', a duration such as '7d' or '12h', or a number of rows such as '1000 rows'"


@pytest.mark.parametrize("text", ["", "d7", "0d", "-1d", "1.5h", "fortnight", "0", "0 rows", "1000 apples", "7 d d"])
def test_other_specifications(text):
    with pytest.raises(ValueError, match="window") as caught:
        parse_window(text)
    assert str(caught.value) == f"`window` must be {ALLOWED}; got {text!r}."


def test_more_specifications_that_are_refused():
    with pytest.raises(ValueError, match=r"got '5m'. For minutes write '5min', for months '5 months'."):
        parse_window("5m")
    with pytest.raises(TypeError, match=r"`bin` must be text: .*; got 3.5."):
        parse_window(3.5, name="bin")
    with pytest.raises(TypeError, match="got True"):
        parse_window(True)
    with pytest.raises(ValueError, match="must be at most 1000 years; got '400000d'"):
        parse_window("400000d")
    with pytest.raises(ValueError, match="must be at most 1,000,000,000,000,000; got '10000000000000000 rows'"):
        parse_window("10000000000000000 rows")


def test_durations_need_times():
    with pytest.raises(ValueError, match=r"`window` is '7d', but the times are integers.* `time_unit`\.$"):
        parse_window("7d").starts(times_of([1, 2]))
    with pytest.raises(ValueError, match=r"`window` is '10', but the times are not integers\.$"):
        parse_window("10", counter=True).starts(times_of(["2024-01-01"]))


def test_rows_must_be_in_order():
    assert check_order(times_of([1, 1, 5])) == 5
    with pytest.raises(ValueError, match=r"row 1 is earlier than the row before it\. Sort the rows by time"):
        check_order(times_of([3, 2]))
    with pytest.raises(ValueError, match="row 0 is earlier"):
        check_order(times_of([3, 4]), last_before=5)


@pytest.mark.parametrize(
    ("text", "label", "key"),
    [
        ("month", "2024-03", datetime(2024, 3, 1).date()),
        ("year", "2024", datetime(2024, 1, 1).date()),
        ("week", "2024-03-04", datetime(2024, 3, 4).date()),
        ("12h", "2024-03-09 12:00", datetime(2024, 3, 9, 12)),
        ("30s", "2024-03-09 17:30:30", datetime(2024, 3, 9, 17, 30, 30)),
    ],
)
def test_labels(text, label, key):
    window = parse_window(text)
    (start,) = window.starts(times_of(["2024-03-09T17:30:59"])).tolist()
    assert (window.label(start), window.key(start)) == (label, key)


def test_labels_of_rows_and_times():
    assert parse_window("10 rows").label(3000) == "3000"
    assert parse_window("10 rows").key(3000) == 3000
    assert time_label(1) == "1970-01-01 00:00:00.000001"


@pytest.mark.parametrize(
    ("days", "rows", "window"),
    [
        (365, 100_000, "month"),
        (90, 100_000, "week"),
        (30, 100_000, "day"),
        (14, 100_000, "day"),
        (60, 100_000, "week"),
        (1, 100_000, "hour"),
        (3650, 100_000, "year"),
        (365, 2_000, "quarter"),
        (365, 100, "quarter"),
        (0, 100_000, "second"),
        (300 * 365, 10**6, "20 years"),
    ],
)
def test_automatic_choice(days, rows, window):
    first = micros(datetime(2021, 1, 1))
    assert str(choose_window(first, first + days * 86_400_000_000 - (days > 0), rows)) == window


@given(moments, moments, st.integers(1, 10**7))
def test_automatic_windows_are_neither_many_nor_small(one, other, rows):
    first, last = sorted(map(micros, (one, other)))
    window = choose_window(first, last, rows)
    number = window.number_between(first, last)
    assert number <= 31 or window.text == "100 years"
    assert number <= max(8, rows // 200) or window.text == "100 years"
    assert number > 1 or parse_window("1s").number_between(first, last) == 1


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.integers(1, 10**6))
def test_automatic_windows_of_counters(first, width, rows):
    window = choose_window(first, first + width, rows, counter=True)
    number = window.number_between(first, first + width)
    assert window.kind == "steps"
    assert (number > 1) is (width > 0)
    assert number <= max(8, min(31, rows // 200))


@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=20), st.booleans(), st.integers(1, 10**7))
def test_chosen_windows_consist_of_nested_windows(values, counter, rows):
    values = np.array(values) * (1 if counter else 10**6)
    chosen = choose_window(int(values.min()), int(values.max()), rows, counter=counter)
    for window in nested_windows(counter=counter):
        assert chosen.starts_of(window.starts_of(values)).tolist() == chosen.starts_of(values).tolist()
        if window.number_between(int(values.min()), int(values.max())) <= 512:
            break


def test_each_value_of_a_short_counter_is_a_window():
    assert str(choose_window(2010, 2024, 10**5, counter=True)) == "1"
    assert choose_window(1, 5200, 10**5, counter=True) == Window("steps", 500, text="500")
