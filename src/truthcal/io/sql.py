"""SQL queries for the sums of a sketch, for databases that narwhals cannot reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, invalid
from truthcal.core.grid import MAX_BUCKETS, Grid
from truthcal.core.params import check_power_of_two, shown
from truthcal.io import row_codes
from truthcal.io.column_roles import KEY_ROLES, ColumnRoles
from truthcal.io.row_codes import Check, RowRule, error_codes, rules_for
from truthcal.io.sql_dialects import Dialect, dialect_of, escape_in_sql

_RESERVED = ("code", *row_codes.WEIGHTED, *row_codes.OTHERS, *row_codes.CHECKS)  # column names of the result

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
    "wwc": "weight * weight * c",
    "www": "weight * weight * weight",
    "wwww": "weight * weight * weight * weight",
}


def sketch_sql(
    table: str,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: str | int | float | bool | None = None,
    groups: str | None = None,
    n_buckets: int = 4096,
    dialect: str = "duckdb",
) -> str:
    r"""Write the SQL query that reduces a table to the sums of a sketch, to run in the database.

    Parameters
    ----------
    table : str
        Name of the table, with dots between its parts (``"project.dataset.table"``); each part is quoted. Text that
        starts with ``(`` is used as it is: a subquery, with the alias that many databases need: ``"(SELECT ...) t"``.
    y_true, y_proba, sample_weight, by, n_buckets
        As for `sketch_frame`. The result has at most `n_buckets` lines for each group, and ten more for invalid rows.
    pos_label : str, int, float or bool, optional
        The label in `y_true` that counts as 1; needed for text. The database compares text: in MySQL and SQL Server,
        'Yes' usually equals 'yes'.
    groups : str, optional
        Column that says which rows belong together, as for `sketch_frame`: text, integers or dates. The result then has
        a line for each group and bucket, at most one for each row; fewer with ``n_buckets=128``.
    dialect : str, default "duckdb"
        One of duckdb, sqlite, postgres, bigquery, snowflake, spark, databricks, redshift, trino, mysql, tsql. The
        queries for DuckDB, SQLite, PostgreSQL and Spark are tested there; the others have been parsed, but not run.

    Returns
    -------
    str
        One SELECT. Pass its result to `sketch_from_rows`, which raises if a row is invalid.

    Notes
    -----
    Names are always quoted, and thus case-sensitive in databases that distinguish case (upper case in Snowflake). Every
    row gets a code: its bucket, or a negative number that says why it is invalid. Rows are aggregated by group and
    code, so the database reads the table once and returns only sums. No row is dropped or changed.

    Outcomes may be integers, decimals, floats and booleans; in BigQuery, Redshift and Snowflake booleans need
    ``pos_label=True``. SQLite, MySQL and SQL Server have 1 and 0 for booleans. Predictions and weights may be integers,
    decimals and floats. Numbers written as text are never converted: the query fails with an error of the database, at
    the latest at the first such value. In PostgreSQL and Redshift, where underflow is an error, predictions and biases
    below 1e-50 are added as 0.

    The query has no parameters. Some drivers (psycopg) look for ``%`` in it if they are given any, even an empty
    ``()``: pass the query alone.

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
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label, groups)
    for role, name in roles:
        if role in KEY_ROLES and name.lower() in _RESERVED:  # most databases ignore case
            problem = f"must not name a column {name!r}: the result also has a column {name.lower()!r}."
            raise invalid(role, f"{problem} Rename it in a subquery.")
    query = _Query(roles, n_buckets, dialect_of(dialect))
    lines = query.sums(query.counted(query.coded(query.numbers(table))))
    return "\n".join(["-- The sums of a sketch. In Python: truthcal.sketch_from_rows(result, ...)", *lines, ""])


@dataclass(frozen=True, slots=True)
class _Query:
    """The nested subqueries, from the inside out. They are lists of lines, since names may hold line breaks."""

    roles: ColumnRoles
    n_buckets: int
    dialect: Dialect

    def numbers(self, table: str) -> list[str]:
        """Select each column once, converted to its type."""
        columns = [[f"{self.name(name)} AS {alias}"] for name, alias in zip(self.roles.keys, self.groups, strict=True)]
        columns += [self.outcome(), _sql_expression(self.dialect.number, self.name(self.roles.y_proba), "p")]
        if self.roles.sample_weight is not None:
            columns.append(_sql_expression(self.dialect.number, self.name(self.roles.sample_weight), "weight"))
        return [*_select_clause(columns), f"FROM {self.source(table)}"]

    def outcome(self) -> list[str]:
        """Return the outcome as a number, or the label as a number or text."""
        name, label, dialect = self.name(self.roles.y_true), self.roles.pos_label, self.dialect
        if isinstance(label, str):
            return [f"CAST({name} AS {dialect.text}) AS label"]
        template = dialect.outcome or dialect.number
        if isinstance(label, bool):
            template = dialect.boolean or template
        return _sql_expression(template, name, "y" if label is None else "label")

    def coded(self, inner: list[str]) -> list[str]:
        """Select the code of each row, by the first rule that applies."""
        whens = [f"    WHEN {condition} THEN {code}" for condition, code in self.rules()]
        *lower, last = self.buckets()
        whens += [f"    WHEN {condition} THEN {bucket}" for condition, bucket in lower]
        code = ["CASE", *whens, f"    ELSE {last[1]}", "END AS code"]
        outcome = [["y"]] if self.roles.pos_label is None else [["label"], [f"{self.positive()} AS y"]]
        weight = [] if self.roles.sample_weight is None else [["weight"]]
        groups = [[name] for name in self.groups]
        return [*_select_clause([*groups, *outcome, ["p"], *weight, code]), *self.from_(inner, "numbers")]

    def rules(self) -> list[tuple[str, int]]:
        """Return the condition of each rule that can apply in this database, and its code."""
        outcome = "y" if self.roles.pos_label is None else "label"
        columns = {"y_true": outcome, "y_proba": "p", "sample_weight": "weight"}
        rules = rules_for(weighted=self.roles.sample_weight is not None)
        conditions = [(self.broken(rule, columns[rule.role]), rule.code) for rule in rules]
        return [*(pair for pair in conditions if pair[0]), ("p = 1", self.n_buckets - 1)]

    def buckets(self) -> list[tuple[str, str]]:
        """Return the condition of each piece of the grid, given that p is not in one before it, and its bucket.

        Integers are exact in every database; decimal fractions might be rounded.
        """
        pieces = Grid.of_size(self.n_buckets).pieces
        ends = [piece.start.as_integer_ratio() for piece in pieces[1:]] + [(1, 1)]
        conditions = [f"p * {unit} < {end}" for end, unit in ends]
        buckets = [self.dialect.floor.format(x=f"p * {piece.scale}") + _addition(piece.offset) for piece in pieces]
        return list(zip(conditions, buckets, strict=True))

    def broken(self, rule: RowRule, x: str) -> str:
        """Return the condition under which the column x breaks a rule; "" if it cannot."""
        is_label = rule.role == "y_true" and self.roles.pos_label is not None
        is_text = is_label and isinstance(self.roles.pos_label, str)
        conditions: dict[Check, str] = {
            "missing": f"{x} IS NULL",
            "nonfinite": "" if is_text else self.dialect.nonfinite.format(x=x),
            "outside_unit": "" if is_label else f"{x} < 0 OR {x} > 1",
            "negative": f"{x} < 0",
            "zero": f"{x} = 0",
            "extreme": f"{x} < {self.dialect.double(SMALLEST_WEIGHT)} OR {x} > {self.dialect.double(LARGEST_WEIGHT)}",
        }
        return conditions[rule.check]

    def positive(self) -> str:
        """Return 1 for the positive label, 0 for any other, NULL if it is missing; nan is not a label."""
        nonfinite = "" if isinstance(self.roles.pos_label, str) else self.dialect.nonfinite.format(x="label")
        missing = f"WHEN {nonfinite} THEN NULL " if nonfinite else ""
        return f"CASE {missing}WHEN label = {self.literal()} THEN 1 WHEN label IS NOT NULL THEN 0 END"

    def counted(self, inner: list[str]) -> list[str]:
        """Select numbers to add up: 0 where a row does not count, since arithmetic with nan and infinity may raise."""
        outcome = "y" if self.roles.pos_label is None or isinstance(self.roles.pos_label, str) else "label"
        lowest, highest = error_codes("y_true")
        example = f"WHEN code BETWEEN {lowest} AND {highest} THEN {outcome}"
        counted = self.dialect.counted.format
        columns = [["code"], [f"{counted(x='p')} AS p"], [f"{counted(x='p - y')} AS c"]]
        if self.roles.sample_weight is not None:
            columns.append(["CASE WHEN code >= 0 THEN weight ELSE 0.0 END AS weight"])
            example += f" WHEN code <= {error_codes('sample_weight')[1]} THEN weight"
        columns.append([f"CASE {example} ELSE p END AS example"])
        if self.roles.pos_label is not None:
            columns.append(["CASE WHEN y = 0 THEN label END AS other"])
        return [*_select_clause([*([group] for group in self.groups), *columns]), *self.from_(inner, "coded")]

    def sums(self, inner: list[str]) -> list[str]:
        """Select the sums by group and code, under the names in `row_codes`."""
        weighted = self.roles.sample_weight is not None
        terms = {name: f"SUM({term if weighted else term.replace('weight * ', '')})" for name, term in _SUMS.items()}
        terms |= {"n": self.dialect.count, "low": "MIN(example)", "high": "MAX(example)", "top": "MAX(weight)"}
        terms |= dict(zip(row_codes.OTHERS, ("MIN(other)", "MAX(other)"), strict=True))
        terms |= dict(zip(row_codes.CHECKS, (f"SUM({self.dialect.count}) OVER ()", str(self.n_buckets)), strict=True))
        others = row_codes.OTHERS if self.roles.pos_label is not None else ()
        wanted = (*(row_codes.WEIGHTED if weighted else row_codes.UNWEIGHTED), *others, *row_codes.CHECKS)
        # With the table's name, a column in GROUP BY cannot be mistaken for a name that the result gives to a group.
        keys = [f"counted.{name}" for name in (*self.groups, "code")]
        columns = [*zip(keys, (*self.roles.keys, "code"), strict=True), *((terms[name], name) for name in wanted)]
        named = [[f"{column} AS {self.name(name)}"] for column, name in columns]
        return [*_select_clause(named), *self.from_(inner, "counted"), f"GROUP BY {', '.join(keys)}"]

    def from_(self, inner: list[str], name: str) -> list[str]:
        """Wrap a subquery as a table."""
        fence = [self.dialect.fence] if self.dialect.fence else []
        return ["FROM (", *(f"    {line}" for line in (*inner, *fence)), f") AS {name}"]

    @property
    def groups(self) -> list[str]:
        """Names of segments and groups inside the query, so that one may be named `p`."""
        return [f"by_{i}" for i in range(1, len(self.roles.keys) + 1)]

    def name(self, name: str) -> str:
        """Return a quoted identifier."""
        return self.dialect.quoted(name)

    def source(self, table: object) -> str:
        """Return the table for FROM."""
        if not isinstance(table, str):
            rule = "must be the name of a table, or a subquery in parentheses"
            raise invalid("table", f"{rule}; got {shown(table)}.", TypeError)
        table = table.strip()
        if table.startswith("("):
            return table
        parts = table.split(".")
        if not all(parts):
            raise invalid("table", f"must be a name, with dots only between its parts; got {shown(table)}.")
        return ".".join(self.name(part) for part in parts)

    def literal(self) -> str:
        """Return the positive label as a literal."""
        label, dialect = self.roles.pos_label, self.dialect
        if isinstance(label, str):
            text = escape_in_sql(label) if dialect.backslash else label
            return dialect.string.format(x=text.replace("'", dialect.apostrophe))
        if isinstance(label, int):  # True is 1
            if abs(label) >= 2**53:
                problem = f"must be less than 2**53, because labels are compared as floats; got {label}."
                raise invalid("pos_label", problem)
            return str(int(label))
        assert label is not None
        if not math.isfinite(label):
            raise invalid("pos_label", f"must be finite; got {label!r}.")
        return self.dialect.double(label)


def _addition(number: int) -> str:
    """Return the SQL that adds a number to what is before it."""
    return f" {'-' if number < 0 else '+'} {abs(number)}" if number else ""


def _sql_expression(template: str, name: str, alias: str) -> list[str]:
    """Fill in a template of SQL line by line, so that a line break in a name stays in the name."""
    return [line.format(x=name) for line in f"{template} AS {alias}".split("\n")]


def _select_clause(columns: list[list[str]]) -> list[str]:
    """Return the SELECT clause, with one column or more lines of one column per line."""
    lines = ["SELECT"]
    for column in columns:
        comma = "" if column is columns[-1] else ","
        lines += [f"    {line}" for line in (*column[:-1], column[-1] + comma)]
    return lines
