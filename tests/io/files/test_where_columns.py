"""Columns compared by --where: the same rows however they are cut into batches, exact numbers, times, missing values."""

import datetime
import itertools
import operator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthcal.io.files.formats import PARQUET
from truthcal.io.files.source import Source
from truthcal.io.files.where import exact_number, parse_where, quote_name
from truthcal.io.files.where_rows import rows_where
from truthcal.io.files.where_texts import hint_of_values
from truthcal.io.files.where_times import parse_time

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MISSING = ["", " ", "NA", "n/a", "NaN", "nan", "null", "None"]
UTC = datetime.UTC


def rows_in_batches(text, column, cuts=()):
    """The rows of a column x that meet a condition, if it is read in batches that end at these rows."""
    source = Source(Path("f.parquet"), PARQUET, where=parse_where(text))
    ends = [0, *sorted(cut for cut in cuts if cut < len(column)), len(column)]
    parts = [
        first + rows_where(pa.record_batch({"x": column.slice(first, last - first)}), source, first)
        for first, last in itertools.pairwise(ends)
    ]
    return np.concatenate(parts).tolist()


def rows_or_error(*arguments):
    try:
        return rows_in_batches(*arguments)
    except ValueError:
        return "an error"


# --- batches ----------------------------------------------------------------------------------------------------------

numbers = ["0", "1", " 2", "+3", "1.5", "-1e3", "9007199254740992", "9007199254740993", "18446744073709551616"]
times = ["2024-01-01", " 2024-01-01 00:00", "2024-01-02T12:00:30.25", "2024-W01-1", "2024-01-01T00:00:00.1234567"]
zoned_times = ["2024-01-01T00:00Z", "2024-01-01T01:00+01:00", "2024-01-02T00:00:00+0000"]
words = ["unknown", "north", "2024-02-31", "0000-01-01", "1_000", "0x10"]
cells = st.lists(
    st.sampled_from([numbers, times, zoned_times, [*times, *words], [*zoned_times, *words], [*numbers, *words], words])
).flatmap(
    lambda kinds: st.lists(
        st.sampled_from([None, *MISSING, *itertools.chain.from_iterable(kinds[:2])]), min_size=1, max_size=8
    )
)
literals = ["1", "9007199254740993", "9007199254740992.0", "0.5", "'2024-01-01'", "'2024-01-02T00:00Z'", "'north'", "true"]  # fmt: skip
comparisons = st.one_of(
    st.builds("x {} {}".format, st.sampled_from(list(OPERATORS)), st.sampled_from(literals)),
    st.sampled_from(
        [
            "x in ('2024-01-01', 'unknown')",
            "x not in (1, 9007199254740993)",
            "x > 0 or x is null",
            "x in ('NA', 'north')",
        ]
    ),
)


@given(cells, comparisons, st.sets(st.integers(1, 7)))
def test_several_batches_give_the_result_of_one(texts, condition, cuts):
    column = pa.array(texts, pa.string())
    assert rows_or_error(condition, column, cuts) == rows_or_error(condition, column)


@given(cells, st.sampled_from(["x is null", "x is not null"]), st.sets(st.integers(1, 7)))
def test_missing_values_do_not_depend_on_batches(texts, condition, cuts):
    """It is an error if a whole batch may or may not be missing; never another result."""
    column = pa.array(texts, pa.string())
    assert rows_or_error(condition, column, cuts) in (rows_or_error(condition, column), "an error")


def test_a_word_in_the_last_batch_does_not_change_how_dates_are_compared():
    column = pa.array(["2024-01-01 00:00"] * 9 + ["unknown"])
    for cuts in ((), (5,), (9,)):
        assert rows_in_batches("x = '2024-01-01'", column, cuts) == list(range(9))
        assert rows_in_batches("x != '2024-01-01'", column, cuts) == [9]
        assert rows_in_batches("x not in ('2024-01-01')", column, cuts) == [9]
        assert rows_in_batches("x in ('2024-01-01', 'unknown')", column, cuts) == list(range(10))
        with pytest.raises(ValueError, match=r"holds text \('unknown' at row 9\) that is not a date such as"):
            rows_in_batches("x > '2023-01-01'", column, cuts)


@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 3, 4)])
def test_the_first_value_of_the_file_decides_whether_text_holds_numbers(cuts):
    with pytest.raises(ValueError, match=r"holds numbers \('9' at row 1\)\. Write 50 without quotes"):
        rows_in_batches("x > '50'", pa.array(["", "9", "a", "7", "b"]), cuts)
    assert rows_in_batches("x > '50'", pa.array(["", "a", "9", "7", "b"]), cuts) == [1, 2, 3, 4]


def test_words_that_may_be_missing_in_earlier_batches():
    column = pa.array(["NA", "na", "DE", "NA"])
    message = r"\('NA' at row 0\), before text \('DE' at row 2\)\. If they do not, name one: `x != 'NA'`"
    with pytest.raises(ValueError, match=f"starts with words that may stand for missing values {message}"):
        rows_in_batches("x is null", column, (2,))
    assert rows_in_batches("x is null", column) == []
    assert rows_in_batches("x is null and x != 'NA'", column, (2,)) == []


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [(), (1,)])
@pytest.mark.parametrize("texts", [["2024-01-10T00:00Z", "2024-01-11"], ["2024-01-11", "2024-01-10T00:00Z"]])
def test_times_with_and_without_a_time_zone(texts, cuts):
    rows = {text: row for row, text in enumerate(texts)}
    message = rf"time zone \('2024-01-10T00:00Z' at row {rows['2024-01-10T00:00Z']}\) and without one"
    with pytest.raises(ValueError, match=rf"{message} \('2024-01-11' at row {rows['2024-01-11']}\), which cannot be"):
        rows_in_batches("x < '2024-01-12'", pa.array(texts), cuts)


def test_batches_without_times_do_not_decide_about_the_time_zone():
    column = pa.array([None, "unknown", "2024-01-01T00:00Z"])
    assert rows_in_batches("x = '2024-01-01T01:00+01:00'", column, (1, 2)) == [2]
    with pytest.raises(ValueError, match="holds times without a time zone; omit that of this time"):
        rows_in_batches("x = '2024-01-01T01:00+01:00'", pa.array([None, "2024-01-01"]), (1,))


@given(st.datetimes(), st.sampled_from(["T", " "]), st.sampled_from([None, UTC]), st.sampled_from(list(OPERATORS)))
def test_all_formats_of_times_that_python_writes(time, separator, zone, sign):
    """Beside a word, times are parsed in another way than alone; both against the times themselves."""
    time = time.replace(tzinfo=zone)
    other = datetime.datetime(2024, 1, 1, tzinfo=zone)
    texts = [
        time.isoformat(separator),
        f" {time.isoformat()} ",
        time.date().isoformat() + f"T00:00{'Z' if zone else ''}",
    ]
    midnight = datetime.datetime.combine(time.date(), datetime.time(), zone)
    expected = [row for row, each in enumerate([time, time, midnight]) if OPERATORS[sign](each, other)]
    assert rows_in_batches(f"x {sign} '2024-01-01'", pa.array(texts)) == expected
    if sign == "=":
        assert rows_in_batches(f"x {sign} '2024-01-01'", pa.array([*texts, "2024-02-31"])) == expected


def test_years_that_python_does_not_know_are_words_in_any_batch():
    column = pa.array(["0000-01-01", "2024-01-01", "unknown"])
    for cuts in ((), (1,), (2,)):
        assert rows_in_batches("x != '2024-01-01'", column, cuts) == [0, 2]
        with pytest.raises(ValueError, match=r"\('0000-01-01' at row 0\) that is not a date"):
            rows_in_batches("x < '2024-01-01'", column, cuts)


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3)])
@pytest.mark.parametrize(
    ("texts", "condition", "rows"),
    [
        (["2024-03-01", "unknown", "2023-01-01", None], "x != 'unknown' and x > '2024-01-01'", [0]),
        (["2024-03-01", "unknown", "2023-01-01", None], "x = 'unknown' or x > '2024-01-01'", [0, 1]),
        (["2024-03-01", "unknown", "2023-01-01", None], "not (x > '2024-01-01') and x not in ('unknown', '?')", [2]),
        (["2024-03-01", "unknown", "2023-01-01", None], "not (x > '2024-01-01' and x != 'unknown')", [1, 2]),
        (["2024-03-01", "unknown", "2023-01-01"], "x != 'unknown' or x != '2023-01-01'", [0, 1, 2]),
        (["5", "unknown", "2", "n/a"], "x != 'unknown' and x > 3", [0]),
        (["5", "unknown", "2", "n/a"], "x != 'unknown' and not x > 3", [2]),
        (["5", "unknown", "2", "n/a"], "x = 'unknown' or x = 2", [1, 2]),
        (["5", "3", "2"], "x != '3' or x > 2", [0, 1, 2]),
    ],
)
def test_words_that_the_condition_names_have_no_order_and_are_no_error(texts, condition, rows, cuts):
    assert rows_in_batches(condition, pa.array(texts), cuts) == rows


def test_the_error_of_a_word_has_the_comparison_that_leaves_it_out():
    texts = pa.array(["2024-03-01", "don't know", "later"])
    cure = r"To leave out such rows, add: and x != 'don''t know'$"
    with pytest.raises(ValueError, match=r"don't know. at row 1\) .* so it has no order in time\. " + cure):
        rows_in_batches("x > '2024-01-01'", texts)
    with pytest.raises(ValueError, match=r"\('later' at row 2\) .* add: and x != 'later'$"):
        rows_in_batches("x > '2024-01-01' and x != 'don''t know'", texts)
    with pytest.raises(ValueError, match=r"cannot be compared with a number\. .* add: and x != 'one'$"):
        rows_in_batches("x > 1", pa.array(["2", "one"]))
    with pytest.raises(ValueError, match=r"add: and x != '\.\.\.'$"):
        rows_in_batches("x > 1", pa.array(["2", "one" * 20]))


def test_digits_alone_are_no_date():
    assert [parse_time(text) for text in ("2024", "20240131", "31/01/2024", None)] == [None] * 4
    assert parse_time("0001-01-01T00:00+01:00") is None  # out of Python's range in UTC


# --- numbers ----------------------------------------------------------------------------------------------------------

LARGE = [2**53 - 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1]
INTEGERS = {
    "int64": pa.array([*LARGE, -(2**53) - 1]),
    "uint64": pa.array([*LARGE, 2**64 - 1], pa.uint64()),
    "text": pa.array([*map(str, LARGE), str(2**64)]),
    "text with fractions": pa.array([*map(str, LARGE), "0.5"]),
    "decimal": pa.array([*map(Decimal, LARGE), Decimal(0)], pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("sign", OPERATORS)
def test_integers_are_exact(kind, sign):
    column = INTEGERS[kind]
    values = [exact_number(str(value)) for value in column.to_pylist()]
    for literal in [*LARGE, 2**63, 2**64, -1, 0.5, -(2**53) - 1]:
        expected = [row for row, value in enumerate(values) if OPERATORS[sign](value, literal)]
        assert rows_in_batches(f"x {sign} {literal}", column) == expected
    assert rows_in_batches(f"x in ({2**53 + 1}, 0.5, {2**80})", column) == [
        row for row, value in enumerate(values) if value in (2**53 + 1, 0.5)
    ]


def test_exact_numbers():
    assert exact_number("9007199254740993.0") == 2**53 + 1
    assert exact_number("1e17") == 10**17
    assert exact_number("9007199254740993.5") == 9007199254740993.5  # a float, as all fractions
    assert exact_number("1e999999999") == float("inf")
    assert rows_in_batches(f"x < {'9' * 5000}", pa.array([1])) == [0]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_literals_are_rounded_to_the_type_of_floats(kind):
    dtype = kind.to_pandas_dtype()
    column = pa.array([dtype(0.1), dtype(0.2), dtype(0.3), dtype(np.nan)], kind)
    for condition, rows in [
        ("x = 0.1", [0]),
        ("x <= 0.1", [0]),
        ("x < 0.2", [0]),
        ("x >= 0.3", [2]),
        ("x > 0.3", []),
        ("x in (0.1, 0.3)", [0, 2]),
        ("x != 0.2", [0, 2]),
        ("x < 1e300", [0, 1, 2]),
    ]:
        assert rows_in_batches(condition, column) == rows


@pytest.mark.parametrize("word", ["north", "1_000", "0x10", "٣"])
def test_the_first_word_among_numbers_is_named(word):
    column = pa.array(["1", "+2", ".5", "2.", "NA", word, "3", "south"])
    with pytest.raises(ValueError, match=rf"holds text \('{word}' at row 5\), which cannot be compared with a number"):
        rows_in_batches("x > 1", column)


# --- missing values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", "2024-01-01", "true"])
@pytest.mark.parametrize("word", MISSING)
def test_missing_words_are_missing_for_all_comparisons(word, value):
    column, literal = pa.array([word, value, None]), value if "-" not in value else f"'{value}'"
    assert rows_in_batches("x is null", column) == [0, 2]
    assert rows_in_batches("x is not null", column) == [1]
    assert rows_in_batches(f"x = {literal}", column) == [1]
    assert rows_in_batches(f"x != {literal}", column) == []
    assert rows_in_batches(f"x = {literal} or x is null", column) == [0, 1, 2]


def test_missing_words_are_words_where_text_is_compared_with_text():
    column = pa.array(["NA", "DE", "", None])
    assert rows_in_batches("x = 'NA'", column) == [0]
    assert rows_in_batches("x != 'NA'", column) == [1, 2]
    assert rows_in_batches("x is null", column) == [3]
    assert rows_in_batches("x is not null and x != 'FR'", pa.array(["1", "NA", None])) == [0, 1]
    assert rows_in_batches("x is null or x > 0", pa.array(["NA", "1", "0"])) == [0, 1]


# --- long conditions, names and hints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("join", ["or", "and"])
def test_thousands_of_conditions(join):
    signs = {"or": "=", "and": "!="}
    text = f" {join} ".join(f"x {signs[join]} {i}" for i in range(3000))
    expected = {"or": [0, 1], "and": [2]}
    assert rows_in_batches(text, pa.array([0, 2999, 3000])) == expected[join]
    assert rows_in_batches("not " * 3001 + "x = 1", pa.array([1, 2])) == [1]


def test_nested_parentheses():
    column = pa.array([1, 2])
    assert rows_in_batches("(" * 100 + "x = 1" + ")" * 100, column) == [0]
    assert rows_in_batches(" or ".join(["(x = 1)"] * 200), column) == [0]
    with pytest.raises(ValueError, match="has more than 100 parentheses within each other") as error:
        parse_where("(" * 5000 + "x = 1" + ")" * 5000)
    assert error.value.pointer[1] == 101


@given(st.one_of(st.text(min_size=1), st.sampled_from(["true", "In", "NULL", "and", "or", "Not", "is", "x", "a.b"])))
def test_quoted_names_are_read_back(name):
    assert parse_where(f"{quote_name(name)} != 'draw'").columns == (name,)


def test_only_names_that_need_quotes_get_them():
    assert [quote_name(name) for name in ("season", "Null", "a b", 'a"b')] == ["season", '"Null"', '"a b"', '"a""b"']


def test_hints_name_values_of_the_column():
    column = pa.array([f"r{i}" for i in range(9)] + ["north "])
    where = parse_where("x = 'North'")
    assert hint_of_values(where) == ""
    source = Source(Path("f.parquet"), PARQUET, where=where)
    assert rows_where(pa.record_batch({"x": column}), source).size == 0
    expected = " Did you mean 'north '? Column 'x' has 'r0', 'r1', 'r2', 'r3', 'r4', ...."
    assert hint_of_values(where) == expected
    rows_where(pa.record_batch({"x": ["North"]}), source, 10)
    assert hint_of_values(where) == ""  # some other part of the condition keeps no row
