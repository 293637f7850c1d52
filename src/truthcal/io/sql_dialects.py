"""Differences between the SQL dialects of databases."""

from dataclasses import dataclass

from truthcal.core.params import check_choice

_HUGE = "1.7976931348623157E308"  # the largest float


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between databases. In templates {x} is a column or an expression; line breaks are kept."""

    # A column as a double. Text must fail in the database instead of being converted: adding 0 is an error for text in
    # databases that do not convert implicitly, and makes 0.0 of -0.0.
    number: str
    outcome: str = ""  # the same for outcomes, booleans too; "": `number` takes booleans, or no expression does
    boolean: str = ""  # a boolean as 1 or 0 for pos_label=True; "": one of the above does it
    quotes: str = '""'  # around identifiers; the closing one is doubled inside
    text: str = "VARCHAR"
    backslash: bool = True  # whether it may be an escape in strings: then it is doubled, so that it never ends a string
    apostrophe: str = "''"  # inside a string
    string: str = "'{x}'"
    constant: str = "{x}"  # a double; {x} is its text
    # True for nan and infinity. This form holds whether nan is larger than all numbers or not comparable.
    nonfinite: str = f"NOT ({{x}} BETWEEN -{_HUGE} AND {_HUGE})"
    floor: str = "CAST(FLOOR({x}) AS BIGINT)"
    counted: str = "CASE WHEN code >= 0 THEN {x} ELSE 0.0 END"  # a prediction or bias where the row counts
    count: str = "COUNT(*)"
    # Ends a subquery that would otherwise be merged into the next one, and each column computed wherever it is used,
    # which took PostgreSQL 5 times as long and SQLite 20 times. DuckDB and Spark reuse computed columns.
    fence: str = ""
    double_type: str = "DOUBLE PRECISION"
    ln: str = "LN"  # the natural logarithm
    escaped_names: bool = False  # whether a backslash is an escape inside identifiers

    def quoted(self, name: str) -> str:
        """Return a quoted identifier; a closing quote inside it is doubled, or escaped."""
        opening, closing = tuple(self.quotes)
        if self.escaped_names:
            return opening + escape_in_sql(name).replace(closing, f"\\{closing}") + closing
        return f"{opening}{name.replace(closing, 2 * closing)}{closing}"

    def double(self, value: float) -> str:
        """Return a double as a literal, exactly. Without an exponent it would be a decimal in some databases."""
        text = repr(value).upper()
        return self.constant.format(x=text if "E" in text else f"{text}E0")


_PLUS_ZERO = "CAST({x} + 0 AS DOUBLE PRECISION)"
_IF_TRUE = "CASE WHEN {x} THEN 1 WHEN NOT {x} THEN 0 END"

# These databases raise if a product of doubles underflows, and squares of weights and biases are multiplied below.
# Weights are at least 1e-70, so the values set to 0 here could not change any sum.
_NO_UNDERFLOW = "CASE WHEN code < 0 THEN 0.0 WHEN ABS({x}) < CAST('1E-50' AS DOUBLE PRECISION) THEN 0.0 ELSE {x} END"

# `x = '1'` compares both booleans and numbers with the text, converted to their type; no cast accepts both. COALESCE
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

# A column may hold any type, and CAST('abc' AS REAL) is 0. SQLite cannot raise in a query, but a bad JSON path does.
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

# A COERCIBILITY below 5 means text. MySQL would read it as a number up to the first letter; a query cannot raise an
# error of its own, but EXP does if its result is too large.
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

_SPARK = Dialect(number=_SPARK_NUMBER, quotes="``", text="STRING", apostrophe="\\'", double_type="DOUBLE")

DIALECTS = {
    "duckdb": Dialect(
        # In a CASE with a number, booleans are converted to numbers, and text is an error.
        number="CAST(CASE WHEN TRUE THEN {x} ELSE 0 END + 0 AS DOUBLE)",
        double_type="DOUBLE",
        backslash=False,
        nonfinite="NOT isfinite({x})",  # comparisons and isnan are answered from Parquet statistics, which ignore nan
    ),
    "sqlite": Dialect(
        number=_SQLITE_NUMBER,
        double_type="REAL",
        quotes="``",  # in double quotes, a column that does not exist would be text
        text="TEXT",
        backslash=False,
        nonfinite="{x} IN (9E999, -9E999)",  # infinity has no other literal, and nan is stored as NULL
        floor="CAST({x} AS INTEGER)",  # truncates; FLOOR is not in every build
        fence="LIMIT -1",
    ),
    "postgres": Dialect(
        number=_PLUS_ZERO,
        outcome=_POSTGRES_OUTCOME,
        text="TEXT",
        string="E'{x}'",  # independent of the setting standard_conforming_strings
        constant="CAST('{x}' AS DOUBLE PRECISION)",
        nonfinite="{x} IN ('NaN', 'Infinity', '-Infinity')",
        counted=_NO_UNDERFLOW,
        fence="OFFSET 0",
    ),
    "bigquery": Dialect(
        number="CAST({x} + 0 AS FLOAT64)",
        double_type="FLOAT64",
        boolean=_IF_TRUE,
        quotes="``",
        escaped_names=True,
        text="STRING",
        apostrophe="\\'",
        nonfinite="(IS_NAN({x}) OR IS_INF({x}))",
        floor="CAST(FLOOR({x}) AS INT64)",
    ),
    "snowflake": Dialect(
        number=_SNOWFLAKE_NUMBER,
        double_type="DOUBLE",
        boolean=_IF_TRUE,
        constant="CAST('{x}' AS DOUBLE)",
        nonfinite="{x} IN (CAST('NaN' AS DOUBLE), CAST('inf' AS DOUBLE), CAST('-inf' AS DOUBLE))",
    ),
    "spark": _SPARK,
    "databricks": _SPARK,
    "redshift": Dialect(
        number=_PLUS_ZERO,
        boolean=_IF_TRUE,
        text="VARCHAR(65535)",  # the default length is 256
        constant="CAST('{x}' AS DOUBLE PRECISION)",
        nonfinite=f"NOT ({{x}} BETWEEN CAST('-{_HUGE}' AS DOUBLE PRECISION) AND CAST('{_HUGE}' AS DOUBLE PRECISION))",
        counted=_NO_UNDERFLOW,
    ),
    "trino": Dialect(number=_TRINO_NUMBER, double_type="DOUBLE", backslash=False, nonfinite="NOT is_finite({x})"),
    # MySQL and SQL Server hold neither nan nor infinity.
    "mysql": Dialect(
        number=_MYSQL_NUMBER,
        double_type="DOUBLE",
        quotes="``",
        text="CHAR",
        nonfinite="",
        floor="CAST(FLOOR({x}) AS SIGNED)",
    ),
    "tsql": Dialect(
        number=_TSQL_NUMBER,
        double_type="FLOAT",
        quotes="[]",
        text="NVARCHAR(4000)",
        backslash=False,
        string="N'{x}'",
        nonfinite="",
        count="COUNT_BIG(*)",
        ln="LOG",
    ),
}


def escape_in_sql(text: str) -> str:
    """Escape backslashes and line breaks for databases in which a backslash is an escape."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


# Names of the same dialects in SQLAlchemy, and common ones.
_ALIASES = {"postgresql": "postgres", "mssql": "tsql", "sqlserver": "tsql", "mariadb": "mysql", "pyspark": "spark"}


def dialect_of(name: object) -> Dialect:
    """Check the parameter `dialect` and return the dialect of that name."""
    known = _ALIASES.get(name.casefold(), name.casefold()) if isinstance(name, str) else name
    return DIALECTS[check_choice(known, "dialect", tuple(DIALECTS))]
