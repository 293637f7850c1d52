"""Recalibration maps as SQL expressions."""

import math
from collections.abc import Iterator

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.params import shown
from truthcal.core.roots import find_root
from truthcal.io.sql_dialects import Dialect, dialect_of
from truthcal.recalibration.maps import LARGEST_LOG_ODDS, LEAST, InterpolatedMap, LogisticMap, RecalibrationMap

_Branch = tuple[str, str]  # a condition on the prediction, and the value where it is the first to hold


def map_sql(recalibration: RecalibrationMap, dialect: str, column: str) -> str:
    """Write the expression that recalibrates a column; NULL where it holds no probability between 0 and 1."""
    rules = dialect_of(dialect)
    if not isinstance(column, str) or not column:
        raise invalid("y_proba", f"must be the name of a column; got {shown(column)}.", TypeError)
    name = rules.quoted(column)
    p = f"CAST({name} AS {rules.double_type})"
    branches: list[_Branch] = []
    last = p
    if isinstance(recalibration, LogisticMap):
        branches, last = _logistic_branches(recalibration, rules, p)
    elif isinstance(recalibration, InterpolatedMap):
        *branches, (_, last) = _line_branches(np.array(recalibration.x), np.array(recalibration.y), rules, p)
    nonfinite = [f"    WHEN {rules.nonfinite.format(x=p)} THEN NULL"] if rules.nonfinite else []
    number = rules.number.replace("\n", " ").format(x=name)  # an error of the database if the column is text
    whens = [f"    WHEN {condition} THEN {value}" for condition, value in branches]
    outside = f"    WHEN {number} NOT BETWEEN 0 AND 1 OR {name} IS NULL THEN NULL"
    return "\n".join(["CASE", outside, *nonfinite, *whens, f"    ELSE {last}", "END"])


def _logistic_branches(logistic: LogisticMap, rules: Dialect, p: str) -> tuple[list[_Branch], str]:
    """Write the ends, beyond which the map is constant, and the formula between them."""
    low, high = (_end_of_formula(logistic, sign) for sign in (-1.0, 1.0))
    # not those at `low` and `high`, whose rounding errors a steep map would multiply
    lowest, highest = logistic(np.array([0.0, 1.0])).tolist()
    terms = [f"{rules.double(logistic.a)} * {rules.ln}({p})", f"{rules.double(logistic.b)} * {rules.ln}(1 - {p})"]
    formula = f"1 / (1 + EXP(-({terms[0]} - {terms[1]} + {rules.double(logistic.c)})))"
    branches = [(f"{p} <= {rules.double(low)}", rules.double(lowest))]
    branches.append((f"{p} >= {rules.double(high)}", rules.double(highest)))
    return branches, formula


def _end_of_formula(logistic: LogisticMap, sign: float) -> float:
    """Return the smallest (sign -1) or largest prediction at which the logistic formula is not clipped."""

    def log_odds(x: float) -> float:  # of the prediction with log-odds x
        return float(logistic.b * np.logaddexp(0.0, x) - logistic.a * np.logaddexp(0.0, -x) + logistic.c)

    last = sign * LARGEST_LOG_ODDS
    if sign * (log_odds(last) - last) <= 0.0:
        return LEAST if sign < 0.0 else 1.0 - LEAST
    if sign * (log_odds(-last) - last) >= 0.0:  # clipped everywhere
        return 1.0 - LEAST if sign < 0.0 else LEAST
    x = find_root(lambda x: log_odds(x) - last, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, xtol=1e-15, rtol=1e-15)
    return 1.0 / (1.0 + math.exp(-x))


def _line_branches(x: np.ndarray, y: np.ndarray, rules: Dialect, p: str) -> Iterator[_Branch]:
    """Write the pieces of a map that connects points; the last one has no condition."""
    yield f"{p} <= {rules.double(float(x[0]))}", rules.double(float(y[0]))
    for k in range(len(x) - 1):
        value = rules.double(float(y[k]))
        if y[k + 1] > y[k]:
            slope = rules.double(float((y[k + 1] - y[k]) / (x[k + 1] - x[k])))
            value = f"{value} + {slope} * ({p} - {rules.double(float(x[k]))})"
        yield f"{p} < {rules.double(float(x[k + 1]))}", value
    yield "", rules.double(float(y[-1]))
