"""Conditions of --where: the parser against SQLite, and columns of all types and formats."""

import datetime
import json
import sqlite3
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.formats import PARQUET
from truthcal.io.files.load import load
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.io.files.where import parse_where
from truthcal.io.files.where_rows import rows_where

REGIONS = ["north", "South", "it's", "", None, "2018"]


def rows_of(text, columns, **source):
    """The rows of a record batch that meet a condition."""
    record = pa.record_batch(columns)
    return rows_where(record, Source("file.parquet", PARQUET, where=parse_where(text), **source)).tolist()


# --- against SQLite ---------------------------------------------------------------------------------------------------

numbers = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, -1.25, 2018]))
texts = st.sampled_from(REGIONS)
tables = st.lists(st.tuples(numbers, texts), min_size=1, max_size=8)


def literal(value):
    return repr(value) if not isinstance(value, str) else "'" + value.replace("'", "''") + "'"


@st.composite
def comparisons(draw):
    column, values = draw(
        st.sampled_from([("x", numbers.filter(lambda v: v is not None)), ('"a b"', texts.filter(bool))])
    )
    operator = draw(
        st.sampled_from(
            ["=", "==", "!=", "<>", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "flipped"]
        )
    )
    if operator.endswith("null"):
        return f"{column} {operator}"
    if operator.endswith("in"):
        return f"{column} {operator} ({', '.join(map(literal, draw(st.lists(values, min_size=1, max_size=3))))})"
    value = literal(draw(values))
    return f"{value} < {column}" if operator == "flipped" else f"{column} {operator} {value}"


conditions = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({})".format, inner),
        st.builds("not {}".format, inner),
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
    ),
    max_leaves=5,
)


@given(tables, conditions)
def test_against_sqlite(table, condition):
    """The first row makes the second column text, as SQLite has it: not numbers, with words for missing ones."""
    table = [(0, "north"), *table]
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t (k INTEGER, x REAL, "a b" TEXT)')
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(k, *row) for k, row in enumerate(table)])
    expected = [k for (k,) in connection.execute(f"SELECT k FROM t WHERE {condition} ORDER BY k")]
    connection.close()
    x, text = zip(*table, strict=True)
    columns = {
        "x": pa.array([None if v is None else float(v) for v in x], pa.float64()),
        "a b": pa.array(text, pa.string()),
    }
    assert rows_of(condition, columns) == expected


# --- types of columns -------------------------------------------------------------------------------------------------

DAYS = [datetime.date(2023, 12, 31), datetime.date(2024, 1, 1), None, datetime.date(2024, 6, 1)]
TIMES = [None if day is None else datetime.datetime(day.year, day.month, day.day, 12) for day in DAYS]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2017, 2018, None, 2020], pa.int16()),
        pa.array([2017, 2018, None, 2020], pa.uint64()),
        pa.array([2017, 2018, float("nan"), 2020], pa.float32()),
        pa.array([Decimal(2017), Decimal(2018), None, Decimal(2020)], pa.decimal128(10, 2)),
        pa.array(["2017", " 2018", "", "2.02e3"]),
        pa.array(["2017", "2018", "NA", "2020"]).dictionary_encode(),
        pa.array(["2017", "2018", None, "2020"], pa.large_string()),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers(column):
    assert rows_of("x >= 2018", {"x": column}) == [1, 3]
    assert rows_of("x != 2018", {"x": column}) == [0, 3]
    assert rows_of("x in (2017, 2020.0)", {"x": column}) == [0, 3]
    assert rows_of("not x > 2017.5", {"x": column}) == [0]


def test_large_integers_are_exact():
    big = 2**53 + 1
    assert rows_of(f"x = {big}", {"x": pa.array([big - 1, big], pa.int64())}) == [1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(DAYS, pa.date32()),
        pa.array(TIMES, pa.timestamp("ns")),
        pa.array(TIMES, pa.timestamp("s", "Europe/Berlin")),
        pa.array([None if day is None else day.isoformat() for day in DAYS]),
        pa.array([None if time is None else time.isoformat(" ") for time in TIMES]),
        pa.array([None if time is None else time.isoformat() + "Z" for time in TIMES]),
    ],
    ids=lambda column: str(column.type),
)
def test_times(column):
    assert rows_of("x >= '2024-01-01'", {"x": column}) == [1, 3]
    assert rows_of("x < '2024-06-01T00:00'", {"x": column}) == [0, 1]
    assert rows_of("x in ('2024-06-01 12:00', '2024-06-01')", {"x": column}) == [3]


@pytest.mark.parametrize(
    "texts", [["2024-1-5", "2024-01-10", "2023-9-1 12:00", None], ["2024-01-05", "2024-1-10", "2023-9-01", ""]]
)
def test_months_and_days_with_one_digit(texts):
    for literal in ("2024-1-5", "2024-01-05", "2024-1-05T00:00"):
        assert rows_of(f"x >= '{literal}'", {"x": pa.array(texts)}) == [0, 1]
        assert rows_of(f"x = '{literal}'", {"x": pa.array(texts)}) == [0]
        assert rows_of(f"x < '{literal}'", {"x": pa.array(texts)}) == [2]
        assert rows_of(f"x > '{literal}'", {"x": pa.array(DAYS)}) == [3]
    assert rows_of("x = '2024-2-31'", {"x": pa.array(["2024-2-31", "a"])}) == [0]  # as text


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "!=", "in"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_exact_in_every_unit(unit, operator, zone):
    """Also where microseconds would overflow, or round: 10**13 s, and 1 ns before 1970."""
    largest = 2**63 - 1
    ticks = [-largest, -(10**13), -1, 0, 1, 1_704_067_200, 1_704_067_200_000, 10**13, largest, None]
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    compared = {
        "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "in": lambda a, b: a == b,
    }[operator]  # fmt: skip
    column = pa.array(ticks, pa.timestamp(unit, zone))
    for literal in (
        "1970-01-01",
        "1970-01-01T00:00:00.000001",
        "2024-01-01",
        "9999-12-31T23:59:59.999999",
        "1969-12-31",
    ):
        time = datetime.datetime.fromisoformat(literal) - datetime.datetime(1970, 1, 1)
        wanted = Fraction(time // datetime.timedelta(microseconds=1), 10**6) * per_second
        rows = [row for row, tick in enumerate(ticks) if tick is not None and compared(tick, wanted)]
        text = f"('{literal}')" if operator == "in" else f"'{literal}'"
        assert rows_of(f"x {operator} {text}", {"x": column}) == rows


def test_dates_of_any_year():
    column = pa.array([-(2**31), 0, 2**31 - 1], pa.date32())
    assert rows_of("x >= '1970-01-01'", {"x": column}) == [1, 2]
    assert rows_of("x < '1970-1-1'", {"x": column.cast(pa.date64())}) == [0]


def test_text_in_double_quotes_is_no_column(tmp_path):
    """In place of a value, double quotes mark text, too; but not if it is the name of a column."""
    assert rows_of('"x" = "north"', {"x": pa.array(["north", "it's"])}) == [0]
    (tmp_path / "f.csv").write_text("x,it's\na,b\n")
    condition = 'x = "it\'s"'
    source = replace(find_sources([str(tmp_path / "f.csv")])[0], where=parse_where(condition))
    message = r"has \"it's\" in double quotes in place of a value, which is also a column of .*f.csv. Two columns"
    with pytest.raises(ValueError, match=f"{message} cannot be compared; put text in single quotes: 'it''s'") as error:
        preview_columns(source)
    assert error.value.pointer == (condition, 4)


def test_text_has_no_order_in_time_unless_it_is_iso():
    column = pa.array(["31/12/2023", "2024-01-01"])
    with pytest.raises(
        ValueError, match=r"column 'x' of file.parquet holds text \('31/12/2023' at row 0\) that is not a date"
    ):
        rows_of("x >= '2024-01-01'", {"x": column})
    assert rows_of("x = '2024-01-01'", {"x": column}) == [1]


@pytest.mark.parametrize(
    "column", [pa.array([True, False, None]), pa.array(["True", "false", ""]), pa.array(["1", "0", None])]
)
def test_true_and_false(column):
    assert rows_of("x = true", {"x": column}) == [0]
    assert rows_of("x != TRUE", {"x": column}) == [1]


def test_partition_columns_are_the_same_for_all_rows():
    partition = {"country": "fr", "day": datetime.date(2024, 1, 2), "none": None}
    columns = {"x": pa.array([1, 2])}
    for text, rows in [
        ("country = 'fr'", [0, 1]),
        ("country = 'de'", []),
        ("day > '2024-01-01' and x = 2", [1]),
        ("none is null", [0, 1]),
    ]:
        assert rows_of(text, columns, partition=partition) == rows


@pytest.mark.parametrize(
    ("text", "column", "message", "at"),
    [
        ("x > 5", pa.array(["5", "north"]), r"cannot be applied: column 'x' of file.parquet holds text \('north' at row 1\), which cannot be compared with a number. To compare it as text, use quotes: '5'.", 4),
        ("x > '50'", pa.array([None, " ", "9.5", "100"]), r"holds numbers \('9.5' at row 2\). Write 50 without quotes: as text, '9' comes after '10'", 4),
        ("x = '5'", pa.array([5]), "holds numbers, which cannot be compared with text; write 5 without quotes", 4),
        ("x = 'five'", pa.array([5]), "holds numbers, which cannot be compared with text; compare it with a number", 4),
        ("x = 'yes'", pa.array([True]), "holds true and false; compare it with one of these", 4),
        ("x > true", pa.array([True]), "holds true and false; use = or !=", 0),
        ("x = true", pa.array(["maybe"]), r"holds text \('maybe' at row 0\), which is neither true nor false", 4),
        ("x > 2024", pa.array(DAYS), "holds times; compare it with a date such as '2024-01-31'", 4),
        ("x > 'June'", pa.array(DAYS), "holds times; compare it with a date such as '2024-01-31'", 4),
        ("x > '2024-01-01T00:00Z'", pa.array(TIMES), "holds times without a time zone; omit that of this time", 4),
        ("x > '2024-2-31'", pa.array(["2024-02-01"]), "cannot be compared with '2024-2-31', which is not a date; write a date such as '2024-01-31'", 4),
        ("x < '2024-01-01 25:00'", pa.array(["a"]), "cannot be compared with '2024-01-01 25:00', which is not a date", 4),
        ("x > '2024-01-01T00:00:00.0000001'", pa.array(TIMES), "is compared in microseconds; write at most 6 decimals of a second", 4),
        ("x = 1", pa.array([[1]]), "holds values of type list<item: int64>, which cannot be compared", 0),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_compared(text, column, message, at):
    with pytest.raises(ValueError, match=message) as error:
        rows_of(text, {"x": column})
    assert error.value.pointer == (text, at)


# --- errors of the parser ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("", "is empty; write a condition, such as `season >= 2018`", 0),
        ("x", "needs =, !=, <, <=, >, >=, in, or is null after 'x'", 1),
        ("home team = 1", "needs =, .* after 'home'; put names with spaces or signs in double quotes", 5),
        ("x >=", "needs a number, text in quotes, true or false here", 4),
        ("x = north", "has 'north' in place of a value; put text in single quotes: 'north'. Two columns cannot be compared.", 4),
        ("\"x\" = `it's`", "has \"`it's`\" in place of a value; put text in single quotes: 'it''s'.", 6),
        ("x >= 2024-1-5", "has a date without quotes; write '2024-01-05'", 5),
        ("x >= 2024-13-5", "has '2024-13-5', which is not a date; write dates as in '2024-01-31'", 5),
        ("x = 1_000", "has '1_000', which is not a number here; write 1000.", 4),
        ("x = -0x10", "has '-0x10', which is not a number here; write -16.", 4),
        ("x > 1.5.2", "has '1.5.2', which is neither a number nor a name", 4),
        ("x = - 1", "has an unexpected character '-'; put names with spaces or signs in double quotes", 4),
        ("x not like 'a%'", "does not know `not like`; compare the whole text, or list texts: `x not in", 2),
        ("x NOT BETWEEN 1 AND 2", "does not know `NOT BETWEEN`; write `x < 1 or x > 2`", 2),
        ("x not 5", "needs =, !=, <, <=, >, >=, in, or is null after 'x'", 2),
        ("x = null", "compares with null; write `is null` or `is not null`", 4),
        ("x = 'a", "has a quote that is never closed", 4),
        ("x >= 2024-01-31", "has a date without quotes; write '2024-01-31'", 5),
        ("x = 1 && y = 2", "has '&&' here; write `and`", 6),
        ("x = 1 y = 2", "has 'y' after a complete condition; join two by `and` or `or`", 6),
        ("(x = 1", "needs a closing parenthesis here", 6),
        ("x = 1)", r"has '\)' after a complete condition", 5),
        ("x in 1", r"needs a list in parentheses after `in`: \(1, 2\)", 5),
        ("x in (1 2)", "needs a comma or a closing parenthesis here", 8),
        ("x in (1, 'a')", "mixes numbers and text in one list", 9),
        ("x between 1 and 2", "does not know `between`; write `x >= 1 and x <= 2`", 2),
        ("x like 'a%'", "does not know `like`; compare the whole text", 2),
        ("1 = 2", "needs the name of a column here, since there is none on the left", 4),
        ("= 2", "needs the name of a column here", 0),
        ("x = 1 and", "needs the name of a column here", 9),
        ("x # 1", "has an unexpected character '#'; put names with spaces or signs in double quotes", 2),
        ("5x > 1", "has '5x', which is neither a number nor a name; put names that start with a digit in double quotes", 0),
    ],
)  # fmt: skip
def test_errors_point_at_the_place(text, message, at):
    with pytest.raises(ValueError, match=message) as error:
        parse_where(text)
    assert error.value.pointer == (text, at)


def test_columns_of_a_condition():
    where = parse_where("""a = 1 and ("b c" = 'x' or not `d` in ('y')) and a is null and "e""f" > "text" """)
    assert where.columns == ("a", "b c", "d", 'e"f')
    assert where.text_columns == {"b c", "d", 'e"f'}


# --- files ------------------------------------------------------------------------------------------------------------

N = 40
TABLE = pa.table(
    {
        "y": pa.array([i % 2 for i in range(N)]),
        "p": pa.array([(i + 0.5) / N for i in range(N)]),
        "season": pa.array([2010 + i % 10 for i in range(N)]),
        "region": pa.array([["north", "south"][i % 3 == 0] for i in range(N)]),
        "day": pa.array([datetime.date(2024, 1, 1 + i % 28) for i in range(N)]),
    }
)


def write(path):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(TABLE, path, row_group_size=7)
    elif path.suffix == ".arrow":
        pyarrow.feather.write_feather(TABLE, path, chunksize=7)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in TABLE.to_pylist()))
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        lines = [mark.join(TABLE.column_names), *(mark.join(map(str, row.values())) for row in TABLE.to_pylist())]
        path.write_text("\n".join(lines) + "\n")
    return path


def loaded(paths, text):
    where = parse_where(text)
    sources = [Source(s.path, s.format, s.compression, s.partition, where=where) for s in find_sources(paths)]
    return load(sources, ColumnRoles.of("y", "p", None, None, None))["p"], where


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.parquet", "f.arrow", "f.jsonl"])
def test_same_rows_from_all_formats(tmp_path, name):
    path = write(tmp_path / name)
    result, where = loaded(path, "season >= 2015 and region = 'north' and day < '2024-01-20'")
    wanted = [
        row for row in TABLE.to_pylist() if row["season"] >= 2015 and row["region"] == "north" and row["day"].day < 20
    ]
    assert result.p.tolist() == [row["p"] for row in wanted]
    assert result.y.tolist() == [row["y"] for row in wanted]
    assert where.rows == (N, len(wanted))
    assert (
        where.note
        == f"kept {len(wanted)} of 40 rows (--where season >= 2015 and region = 'north' and day < '2024-01-20')."
    )


def test_rows_are_counted_in_all_files(tmp_path):
    result, where = loaded([write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet")], "p < 0.25")
    assert (result.n, where.rows) == (20, (80, 20))
    with pytest.raises(ValueError, match="`where` keeps none of the 80 rows of these 2 files"):
        loaded([tmp_path / "a.parquet", tmp_path / "b.parquet"], "season < 0")


def test_integers_of_json_may_be_followed_by_fractions(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text(
        "".join(json.dumps({"y": 1, "p": 0.5, "x": i if i < 60_000 else i + 0.5}) + "\n" for i in range(100_000))
    )
    assert loaded(path, "x > 99998")[0].n == 2


def test_errors_name_the_row_of_the_file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("y,p,x\n0,0.5,1\n1,7,1\n1,0.5,2\n0,9,2\n")
    with pytest.raises(ValueError, match=r"found 9.0 at row 3 of .*f.csv \(1 of 4 rows read\)"):
        loaded(path, "x = 2")


def test_words_in_rows_that_are_left_out(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("y,p\n0,0.5\n1,0.25\nvoid,0.5\n1,unknown\n")
    assert loaded(path, "y != 'void' and p != 'unknown'")[0].y.tolist() == [0, 1]
    with pytest.raises(TypeError, match="must contain numbers; its type is text"):
        loaded(path, "p != 'unknown'")


def test_memory_does_not_keep_other_rows(tmp_path):
    """Only the rows that are kept count for the limit of rows in memory."""
    path = tmp_path / "f.parquet"
    n = (1 << 20) + 10
    table = pa.table({"y": np.arange(n) % 2, "p": np.full(n, 0.5), "k": np.arange(n)})
    pyarrow.parquet.write_table(table, path)
    assert loaded(path, "k < 1000")[0].exact
    assert not loaded(path, "k >= 0")[0].exact


# --- missing values in rows that are left out -------------------------------------------------------------------------

BROKEN = {"won": 7, "prob": 10, "w": 12}


def write_with_na(path, n=300):
    """Rows of which some miss an outcome, a prediction or a weight: as NA, also after the first batch."""
    rows = []
    for i in range(n):
        row = {"won": i % 2, "prob": (i % 10) / 10, "w": 1 + i % 3, "x": i}
        row |= {name: "NA" for name, k in BROKEN.items() if i % n in (k, n - k)}
        rows.append(row)
    if path.suffix == ".csv":
        path.write_text("won,prob,w,x\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize("n", [300, 200_000])
@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("x > 20 and x < {end}", 41),
        ("won is not null and prob is not null and w is not null", 6),
        ("prob >= 0 and won in (0, 1) and w > 0", 6),
        ("won != 'NA' and prob != 'NA' and w != 'NA'", 6),
    ],
)
def test_missing_values_in_rows_that_are_left_out(tmp_path, format_, n, text, excluded):
    path = write_with_na(tmp_path / f"f.{format_}", n)
    where = text.format(end=n - 20)
    sources = [replace(source, where=parse_where(where)) for source in find_sources(path)]
    roles = ColumnRoles.of("won", "prob", "w", None, None)
    rows = load(sources, roles, exact_rows=None)["prob"]
    assert rows.n == n - excluded
    assert all(np.isfinite(column).all() for column in (rows.y, rows.p, rows.w))


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x > 8 and x < 20", r"`prob` \(y_proba\) has a missing value \(null or nan\) at row 10"),
        ("x > 5 and x != 10", r"`won` \(y_true\) has a missing value \(null or nan\) at row 7"),
        ("won is not null and x != 290", r"`prob` \(y_proba\) has a missing value \(null or nan\) at row 10"),
        (
            "prob is not null and won is not null",
            r"`w` \(sample_weight\) has a missing value \(null or nan\) at row 12",
        ),
    ],
)
def test_missing_values_in_rows_that_are_kept(tmp_path, format_, text, message):
    path = write_with_na(tmp_path / f"f.{format_}")
    sources = [replace(source, where=parse_where(text)) for source in find_sources(path)]
    with pytest.raises(ValueError, match=message):
        load(sources, ColumnRoles.of("won", "prob", "w", None, None))


def test_missing_labels_in_rows_that_are_left_out(tmp_path):
    """Labels that are numbers are read as text, too, and compared as numbers."""
    path = tmp_path / "f.csv"
    path.write_text("won,prob,x\n" + "".join(f"{'NA' if i == 250 else 1 + i % 2},0.5,{i}\n" for i in range(300)))
    sources = [replace(source, where=parse_where("x < 100")) for source in find_sources(path)]
    assert load(sources, ColumnRoles.of("won", "prob", None, None, 2))["prob"].y.sum() == 50
    sources = [replace(source, where=parse_where("x > 100")) for source in find_sources(path)]
    with pytest.raises(ValueError, match=r"`won` \(y_true\) has a missing value \(null or nan\) at row 250"):
        load(sources, ColumnRoles.of("won", "prob", None, None, 2))


def test_decimal_commas_with_a_condition(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("won;prob;x\n1;0,25;1\n0;0,5;2\n1;NA;3\n0; 0.75 ;1\n1;1_0;9\n")
    sources = [replace(source, where=parse_where("x < 3")) for source in find_sources(path)]
    assert load(sources, ColumnRoles.of("won", "prob", None, None, None))["prob"].p.tolist() == [0.25, 0.5, 0.75]
    sources = [replace(source, where=parse_where("x != 3")) for source in find_sources(path)]
    with pytest.raises(TypeError, match=r"its type is text in .*'1_0' at row 4"):
        load(sources, ColumnRoles.of("won", "prob", None, None, None))
