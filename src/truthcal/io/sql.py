"""The sums of a sketch as one SQL query, for databases that can only be sent a query."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT
from truthcal.core.params import check_choice, check_power_of_two, shown
from truthcal.core.sketch import MAX_BUCKETS
from truthcal.io import row_codes
from truthcal.io.column_roles import ColumnRoles

# What the result calls its own columns.
_RESERVED = ("code", *row_codes.WEIGHTED, *row_codes.OTHERS, *row_codes.CHECKS)

# --- what differs between databases -----------------------------------------------------------------------------------

_HUGE = "1.7976931348623157E308"  # the largest float


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Only what differs. In templates {x} is a column or an expression; new lines are lines of the query."""

    # A column as a double, such that text fails in the database instead of being converted. Adding 0 is refused for
    # text by databases that do not convert by themselves, and makes 0.0 of -0.0.
    number: str
    # The same for outcomes, where booleans should pass as well; none: `number` takes booleans, or nothing does.
    outcome: str = ""
    # A boolean as 1 or 0 where neither of the above can do it, for pos_label=True; none: one of the above can.
    boolean: str = ""
    quotes: str = '""'  # around identifiers; the closing one is doubled inside
    text: str = "VARCHAR"
    backslash: bool = True  # in a string it is an escape, or may be by some setting: doubled, it never ends a string
    apostrophe: str = "''"  # inside a string
    string: str = "'{x}'"
    constant: str = "{x}"  # a double; {x} is its text
    # True of nan and infinity. This form holds whether nan is larger than all numbers or comparable to none.
    wild: str = f"NOT ({{x}} BETWEEN -{_HUGE} AND {_HUGE})"
    floor: str = "CAST(FLOOR({x}) AS BIGINT)"
    counted: str = "CASE WHEN code >= 0 THEN {x} ELSE 0.0 END"  # a prediction or bias where the row counts
    count: str = "COUNT(*)"
    # Ends a subquery that would otherwise be merged into the next, and each column worked out wherever it is used,
    # which took PostgreSQL 5 times as long and SQLite 20 times. DuckDB and Spark know what they have worked out.
    fence: str = ""


_PLUS_ZERO = "CAST({x} + 0 AS DOUBLE PRECISION)"
_IF_TRUE = "CASE WHEN {x} THEN 1 WHEN NOT {x} THEN 0 END"

# These raise where a product of doubles vanishes, and squares of weights and biases are multiplied below. Weights are
# at least 1e-100, so what is set to 0 here could not have been seen in any sum.
_NO_UNDERFLOW = "CASE WHEN code < 0 THEN 0.0 WHEN ABS({x}) < CAST('1E-50' AS DOUBLE PRECISION) THEN 0.0 ELSE {x} END"

# `x = '1'` compares a boolean or a number with what the text means for its type, but nothing else casts both. COALESCE
# with NULL makes a domain its base type. A real must stay one, or 0.1 would not be the same number as elsewhere.
_POSTGRES_OUTCOME = """\
CASE
    WHEN pg_typeof(COALESCE({x}, NULL)) NOT IN (
        'boolean'::regtype, 'smallint'::regtype, 'integer'::regtype, 'bigint'::regtype,
        'numeric'::regtype, 'real'::regtype, 'double precision'::regtype
    ) THEN CAST('neither number nor boolean: ' || CAST({x} AS TEXT) AS DOUBLE PRECISION)
    WHEN {x} = '0' THEN 0
    WHEN {x} = '1' THEN 1
    WHEN pg_typeof(COALESCE({x}, NULL)) = 'real'::regtype THEN CAST(CAST({x} AS TEXT) AS REAL)
    ELSE CAST(CAST({x} AS TEXT) AS DOUBLE PRECISION)
END"""

# A column may hold anything, and CAST('abc' AS REAL) is 0. SQLite cannot raise in a query, but a bad JSON path does.
_SQLITE_NUMBER = """\
CASE typeof({x})
    WHEN 'real' THEN {x}
    WHEN 'integer' THEN CAST({x} AS REAL)
    WHEN 'null' THEN NULL
    ELSE json_extract('[]', 'not a number: ' || quote({x}))
END"""

_SPARK_NUMBER = """\
CASE
    WHEN typeof({x}) IN ('boolean', 'tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'void')
        OR substring(typeof({x}), 1, 7) = 'decimal' THEN CAST({x} AS DOUBLE)
    ELSE CAST(raise_error(concat('not a number: ', CAST({x} AS STRING))) AS DOUBLE)
END"""

_SNOWFLAKE_NUMBER = """\
CASE
    WHEN STARTSWITH(SYSTEM$TYPEOF({x}), 'VARCHAR') THEN CAST('not a number: ' || {x} AS DOUBLE)
    ELSE CAST({x} AS DOUBLE)
END"""

_TRINO_NUMBER = """\
CASE
    WHEN strpos(typeof({x}), 'char') > 0 THEN CAST('not a number: ' || CAST({x} AS VARCHAR) AS DOUBLE)
    ELSE CAST({x} AS DOUBLE)
END"""

# Below 5, COERCIBILITY says that a column holds text. MySQL would read it as a number up to the first letter; a query
# cannot raise an error of its own, but EXP does where its result is too large.
_MYSQL_NUMBER = """\
CASE
    WHEN COERCIBILITY({x}) < 5 THEN EXP(710 + LENGTH({x}))
    ELSE {x} + 0E0
END"""

_TSQL_NUMBER = """\
CASE
    WHEN {x} IS NULL THEN NULL
    WHEN SQL_VARIANT_PROPERTY({x}, 'BaseType') IN (
        'bit', 'tinyint', 'smallint', 'int', 'bigint', 'decimal', 'numeric', 'real', 'float', 'money', 'smallmoney'
    ) THEN CAST({x} AS FLOAT)
    ELSE CAST(CONCAT(N'not a number: ', {x}) AS FLOAT)
END"""

_SPARK = _Dialect(number=_SPARK_NUMBER, quotes="``", text="STRING", apostrophe="\\'")

_DIALECTS = {
    "duckdb": _Dialect(
        # Beside a number a boolean becomes one, and text is refused.
        number="CAST(CASE WHEN TRUE THEN {x} ELSE 0 END + 0 AS DOUBLE)",
        backslash=False,
        wild="NOT isfinite({x})",  # comparisons and isnan are answered from a Parquet file's statistics, without nan
    ),
    "sqlite": _Dialect(
        number=_SQLITE_NUMBER,
        quotes="``",  # in double quotes the name of a column that does not exist would be text
        text="TEXT",
        backslash=False,
        wild="{x} IN (9E999, -9E999)",  # infinity has no other name, and nan is stored as NULL
        floor="CAST({x} AS INTEGER)",  # truncates; FLOOR is not in every build
        fence="LIMIT -1",
    ),
    "postgres": _Dialect(
        number=_PLUS_ZERO,
        outcome=_POSTGRES_OUTCOME,
        text="TEXT",
        string="E'{x}'",  # means the same under every setting of standard_conforming_strings
        constant="CAST('{x}' AS DOUBLE PRECISION)",
        wild="{x} IN ('NaN', 'Infinity', '-Infinity')",
        counted=_NO_UNDERFLOW,
        fence="OFFSET 0",
    ),
    "bigquery": _Dialect(
        number="CAST({x} + 0 AS FLOAT64)",
        boolean=_IF_TRUE,
        quotes="``",
        text="STRING",
        apostrophe="\\'",
        wild="(IS_NAN({x}) OR IS_INF({x}))",
        floor="CAST(FLOOR({x}) AS INT64)",
    ),
    "snowflake": _Dialect(
        number=_SNOWFLAKE_NUMBER,
        boolean=_IF_TRUE,
        constant="CAST('{x}' AS DOUBLE)",
        wild="{x} IN (CAST('NaN' AS DOUBLE), CAST('inf' AS DOUBLE), CAST('-inf' AS DOUBLE))",
    ),
    "spark": _SPARK,
    "databricks": _SPARK,
    "redshift": _Dialect(
        number=_PLUS_ZERO,
        boolean=_IF_TRUE,
        text="VARCHAR(65535)",  # without a length it cuts at 256
        constant="CAST('{x}' AS DOUBLE PRECISION)",
        wild=f"NOT ({{x}} BETWEEN CAST('-{_HUGE}' AS DOUBLE PRECISION) AND CAST('{_HUGE}' AS DOUBLE PRECISION))",
        counted=_NO_UNDERFLOW,
    ),
    "trino": _Dialect(number=_TRINO_NUMBER, backslash=False, wild="NOT is_finite({x})"),
    "mysql": _Dialect(
        number=_MYSQL_NUMBER,
        quotes="``",
        text="CHAR",
        wild="",  # it holds neither nan nor infinity
        floor="CAST(FLOOR({x}) AS SIGNED)",
    ),
    "tsql": _Dialect(
        number=_TSQL_NUMBER,
        quotes="[]",
        text="NVARCHAR(4000)",
        backslash=False,
        string="N'{x}'",
        wild="",  # it holds neither nan nor infinity
        count="COUNT_BIG(*)",
    ),
}

# --- what does not ----------------------------------------------------------------------------------------------------

_SUMS = {
    "w": "weight",
    "ww": "weight * weight",
    "wp": "weight * p",
    "pos": "CASE WHEN c > 0 THEN weight * c ELSE 0.0 END",
    "neg": "CASE WHEN c < 0 THEN weight * -c ELSE 0.0 END",
    "wcp": "weight * c * p",
    "wcc": "weight * c * c",
    "wwcc": "weight * weight * c * c",
    "wwv": "weight * weight * p * (1 - p)",
}


def sketch_sql(
    table: str,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: str | int | float | bool | None = None,
    n_buckets: int = 4096,
    dialect: str = "duckdb",
) -> str:
    r"""The SQL query that reduces a table to the sums of a sketch, to be run wherever the table is.

    Parameters
    ----------
    table : str
        Name of the table, with dots between its parts (``"project.dataset.table"``); each part is quoted. Text that
        starts with ``(`` is used as it is: a subquery, with the alias that many databases want: ``"(SELECT ...) t"``.
    y_true, y_proba : str
        Columns of outcomes and of predicted probabilities.
    sample_weight : str, optional
        Column of weights, 0 or between 1e-100 and 1e100.
    by : str or list of str, optional
        Columns whose values make groups.
    pos_label : str, int, float or bool, optional
        The label in `y_true` that counts as 1; needed for text. Text is equal if the database says so: in MySQL and SQL
        Server, 'Yes' is 'yes' as a rule.
    n_buckets : int, default 4096
        As for `Sketch`. The result has at most so many rows for each group, and ten more that say what is wrong.
    dialect : str, default "duckdb"
        One of duckdb, sqlite, postgres, bigquery, snowflake, spark, databricks, redshift, trino, mysql, tsql. The
        queries for DuckDB, SQLite, PostgreSQL and Spark are tested there; the others have been parsed, but never run.

    Returns
    -------
    str
        One SELECT. Hand its result to `sketch_from_rows`, which refuses it if any row cannot be used.

    Notes
    -----
    Names are always quoted, and so are case-sensitive where the database distinguishes (upper case in Snowflake).

    Every row gets a code: its bucket, or a negative number that says what is wrong with it. Rows are then added up by
    group and code, so the database reads the table once and returns sums only. Nothing is dropped or mended.

    Outcomes may be integers, decimals, floats and booleans; in BigQuery, Redshift and Snowflake booleans need
    ``pos_label=True``. SQLite, MySQL and SQL Server have no booleans but 1 and 0. Predictions and weights
    may be integers, decimals and floats. Numbers written as text are never converted: the query fails with an
    error of the database, at the latest when it meets a value of them. In PostgreSQL and Redshift, where products
    that vanish are errors, predictions and biases below 1e-50 are added as 0.

    The text holds no parameters. Some drivers (psycopg) look for ``%`` in it once they are given any, even none at all
    as ``()``: pass the text alone.

    Examples
    --------
    >>> import sqlite3
    >>> import truthcal as tc
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE forecasts (rained INTEGER, chance REAL)")
    >>> _ = database.execute("INSERT INTO forecasts VALUES (0, 0.25), (1, 0.75), (1, 0.75), (1, NULL)")
    >>> query = tc.sketch_sql("forecasts", y_true="rained", y_proba="chance", n_buckets=4, dialect="sqlite")
    >>> for row in database.execute(query):  # one row lacks its prediction: code -5
    ...     print(row)
    (-5, 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, 4, 4)
    (1, 1, 0.25, 0.25, 0.0, 0.0625, 0.0625, 0.1875, 0.25, 0.25, 4, 4)
    (3, 2, 1.5, 0.0, 0.5, -0.375, 0.125, 0.375, 0.75, 0.75, 4, 4)
    """
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label)
    _refuse_same_in_capitals(roles.by)
    query = _Query(roles, n_buckets, _DIALECTS[check_choice(dialect, "dialect", tuple(_DIALECTS))])
    lines = query.sums(query.counted(query.coded(query.numbers(table))))
    head = "-- The sums of a sketch. In Python: truthcal.sketch_from_rows(result, ...)"
    return "\n".join([head, *lines, ""])


@dataclass(frozen=True, slots=True)
class _Query:
    """The levels of the query, from the inside out. Each takes lines and returns lines: names may hold anything."""

    roles: ColumnRoles
    n_buckets: int
    dialect: _Dialect

    def numbers(self, table: str) -> list[str]:
        """Each column once, as what it is taken for."""
        names = [(self.name(name), inside) for name, inside in zip(self.roles.by, self.groups, strict=True)]
        columns = [[f"{name} AS {inside}"] for name, inside in names]
        columns += [self.outcome(), _as(_filled(self.dialect.number, self.name(self.roles.y_proba)), "p")]
        if self.roles.sample_weight is not None:
            columns.append(_as(_filled(self.dialect.number, self.name(self.roles.sample_weight)), "weight"))
        return [*_select(columns), f"FROM {self.source(table)}"]

    def outcome(self) -> list[str]:
        """The outcome as a number, or the label as a number or text."""
        name, label, dialect = self.name(self.roles.y_true), self.roles.pos_label, self.dialect
        if isinstance(label, str):
            return [f"CAST({name} AS {dialect.text}) AS label"]
        template = dialect.outcome or dialect.number
        if isinstance(label, bool):
            template = dialect.boolean or template
        return _as(_filled(template, name), "y" if label is None else "label")

    def coded(self, inner: list[str]) -> list[str]:
        """The code of each row, by the first rule that holds."""
        whens = [f"    WHEN {rule} THEN {code}" for rule, code in self.rules() if rule]
        bucket = self.dialect.floor.format(x=f"p * {self.n_buckets}")
        code = ["CASE", *whens, f"    ELSE {bucket}", "END AS code"]
        outcome = [["y"]] if self.roles.pos_label is None else [["label"], [f"{self.positive()} AS y"]]
        return [*_select([*self.kept(), *outcome, ["p"], *self.weight(), code]), *self.from_(inner, "numbers")]

    def rules(self) -> list[tuple[str, int]]:
        """What is wrong with a row, and its code; a rule without words cannot be met in this database."""
        wild, label = self.dialect.wild, self.roles.pos_label
        y = "y" if label is None else "label"
        rules = [
            (f"{y} IS NULL", row_codes.TRUE_NULL),
            (wild.format(x=y) if not isinstance(label, str) else "", row_codes.TRUE_WILD),
            ("y < 0 OR y > 1" if label is None else "", row_codes.TRUE_OUTSIDE),
            ("p IS NULL", row_codes.PROBA_NULL),
            (wild.format(x="p"), row_codes.PROBA_WILD),
            ("p < 0 OR p > 1", row_codes.PROBA_OUTSIDE),
        ]
        if self.roles.sample_weight is not None:
            least, most = (self.constant(x) for x in (SMALLEST_WEIGHT, LARGEST_WEIGHT))
            rules += [
                ("weight IS NULL", row_codes.WEIGHT_NULL),
                (wild.format(x="weight"), row_codes.WEIGHT_WILD),
                ("weight < 0", row_codes.WEIGHT_OUTSIDE),
                ("weight = 0", row_codes.WEIGHTLESS),
                (f"weight < {least} OR weight > {most}", row_codes.WEIGHT_EXTREME),
            ]
        return [*rules, ("p = 1", self.n_buckets - 1)]

    def positive(self) -> str:
        """1 for the positive label, 0 for any other, NULL for none; nan is not a label."""
        label, dialect = self.roles.pos_label, self.dialect
        wild = "" if isinstance(label, str) else dialect.wild.format(x="label")
        nothing = f"WHEN {wild} THEN NULL " if wild else ""
        return f"CASE {nothing}WHEN label = {self.literal()} THEN 1 WHEN label IS NOT NULL THEN 0 END"

    def counted(self, inner: list[str]) -> list[str]:
        """Numbers that can be added up: 0 where a row does not count, since arithmetic with wild ones may raise."""
        outcome = "y" if self.roles.pos_label is None or isinstance(self.roles.pos_label, str) else "label"
        example = f"WHEN code BETWEEN {row_codes.TRUE_OUTSIDE} AND {row_codes.TRUE_NULL} THEN {outcome}"
        columns = [["code"], [f"{self.dialect.counted.format(x='p')} AS p"]]
        columns.append([f"{self.dialect.counted.format(x='p - y')} AS c"])
        if self.roles.sample_weight is not None:
            columns.append(["CASE WHEN code >= 0 THEN weight ELSE 0.0 END AS weight"])
            example += f" WHEN code <= {row_codes.WEIGHT_NULL} THEN weight"
        columns.append([f"CASE {example} ELSE p END AS example"])
        if self.roles.pos_label is not None:
            columns.append(["CASE WHEN y = 0 THEN label END AS other"])
        return [*_select([*self.kept(), *columns]), *self.from_(inner, "coded")]

    def sums(self, inner: list[str]) -> list[str]:
        """Sums by group and code, under the names that `codes` gives them."""
        weighted = self.roles.sample_weight is not None
        terms = {name: f"SUM({term if weighted else term.replace('weight * ', '')})" for name, term in _SUMS.items()}
        terms |= {"n": self.dialect.count, "low": "MIN(example)", "high": "MAX(example)"}
        terms |= dict(zip(row_codes.OTHERS, ("MIN(other)", "MAX(other)"), strict=True))
        wanted: tuple[str, ...] = row_codes.WEIGHTED if weighted else row_codes.UNWEIGHTED
        wanted += row_codes.OTHERS if self.roles.pos_label is not None else ()
        wanted += row_codes.CHECKS
        terms |= dict(zip(row_codes.CHECKS, (f"SUM({self.dialect.count}) OVER ()", str(self.n_buckets)), strict=True))
        # With its table before it, a name in GROUP BY cannot be mistaken for one that the result gives to a group.
        keys = [f"counted.{inside}" for inside in (*self.groups, "code")]
        columns = [(key, name) for key, name in zip(keys, (*self.roles.by, "code"), strict=True)]
        columns += [(terms[name], name) for name in wanted]
        named = [[f"{column} AS {self.name(name)}"] for column, name in columns]
        return [*_select(named), *self.from_(inner, "counted"), f"GROUP BY {', '.join(keys)}"]

    def from_(self, inner: list[str], name: str) -> list[str]:
        """The level inside, as a table."""
        fence = [self.dialect.fence] if self.dialect.fence else []
        return ["FROM (", *(f"    {line}" for line in (*inner, *fence)), f") AS {name}"]

    # --- names and values ---------------------------------------------------------------------------------------------

    @property
    def groups(self) -> list[str]:
        """Names inside the query, such that a group named `p` is in nobody's way."""
        return [f"by_{i}" for i in range(1, len(self.roles.by) + 1)]

    def kept(self) -> list[list[str]]:
        """Groups, passed on."""
        return [[inside] for inside in self.groups]

    def weight(self) -> list[list[str]]:
        """The weight, passed on, if there is one."""
        return [] if self.roles.sample_weight is None else [["weight"]]

    def name(self, name: str) -> str:
        """An identifier, quoted; what would end the quotes is doubled, or escaped where strings have such escapes."""
        opening, closing = self.dialect.quotes[0], self.dialect.quotes[1]
        if self.dialect is _DIALECTS["bigquery"]:  # the one where a backslash is an escape inside identifiers
            escaped = _escaped(name).replace("`", "\\`")
            return f"`{escaped}`"
        return f"{opening}{name.replace(closing, 2 * closing)}{closing}"

    def source(self, table: object) -> str:
        """The table after FROM."""
        if not isinstance(table, str):
            raise TypeError(f"`table` must be the name of a table, or a subquery in parentheses; got {shown(table)}.")
        table = table.strip()
        if table.startswith("("):
            return table
        parts = table.split(".")
        if not all(parts):
            raise ValueError(f"`table` must be a name, with dots only between its parts; got {shown(table)}.")
        return ".".join(self.name(part) for part in parts)

    def literal(self) -> str:
        """The positive label."""
        label, dialect = self.roles.pos_label, self.dialect
        if isinstance(label, str):
            text = _escaped(label) if dialect.backslash else label
            return dialect.string.format(x=text.replace("'", dialect.apostrophe))
        if isinstance(label, int):  # True is 1
            if abs(label) >= 2**53:
                raise ValueError(
                    f"`pos_label` must be less than 2**53, since labels are compared as floats; got {label}."
                )
            return str(int(label))
        assert label is not None
        if not math.isfinite(label):
            raise ValueError(f"`pos_label` must be finite; got {label!r}.")
        return self.constant(label)

    def constant(self, value: float) -> str:
        """A double, to the last bit."""
        return self.dialect.constant.format(x=repr(value).upper())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _filled(template: str, name: str) -> list[str]:
    """Split before it is filled in, so that a new line in a name stays in the name."""
    return [line.format(x=name) for line in template.split("\n")]


def _as(lines: list[str], name: str) -> list[str]:
    return [*lines[:-1], f"{lines[-1]} AS {name}"]


def _select(columns: list[list[str]]) -> list[str]:
    """One column a line, or several lines each; commas between."""
    lines = ["SELECT"]
    for column in columns:
        comma = "" if column is columns[-1] else ","
        lines += [f"    {line}" for line in (*column[:-1], column[-1] + comma)]
    return lines


def _refuse_same_in_capitals(by: tuple[str, ...]) -> None:
    """Most databases take N and n for the same name, and would return one of them or rename it."""
    for name in by:
        if name.lower() in _RESERVED:
            raise ValueError(
                f"`by` must not name a column {name!r}: the result has a {name.lower()!r} too. Rename it in a subquery."
            )
