"""Row codes: each row gets an integer, and engines, SQL and files aggregate by it.

From 0 on the code is the row's bucket. A negative code is the first rule in ROW_RULES that the row breaks, so that the
pass that adds up rows also finds invalid ones.
"""

from dataclasses import dataclass
from typing import Literal

from truthcal.core.cell_codec import SUMS

Check = Literal["missing", "nonfinite", "outside_unit", "negative", "zero", "extreme"]


@dataclass(frozen=True, slots=True)
class RowRule:
    """A reason why a row is not counted, with the code of such rows.

    Backends translate the check: "missing" (null; nan in numpy), "nonfinite" (nan or infinite), "outside_unit" (not in
    [0, 1]), "negative", "zero", "extreme" (beyond the range of weights in a sketch).
    """

    code: int
    role: str  # of the column: "y_true", "y_proba" or "sample_weight"
    check: Check
    # Follows the column's name; has the fields value (that of the first such row, or the worst one), place and fix.
    # "" if `core.checks` has the error.
    message: str = ""


_NO_VALUE = "has a missing value (null or nan) {place}. Drop those rows."  # an imputed outcome is no evidence
_MISSING = f"{_NO_VALUE.removesuffix('.')}, or impute the values."
_NONFINITE = (
    "must contain finite numbers; found {value!r} {place}; null and nan are counted too. Drop or correct those rows; "
    "apply the sigmoid to log-odds first."
)
_NO_OUTCOME = (
    "must contain 0/1, True/False or probabilities in [0, 1]; found {value!r} {place}. For two labels other than 0 "
    "and 1, name the positive one with"
)
_NO_PROBABILITY = "must lie in [0, 1]; found {value!r} {place}. {fix}"
_NEGATIVE = "must not be negative; found {value!r} {place}. Drop or correct these rows."

ZERO_WEIGHT = -1  # the only code that is not an error
# In this order: a row has the code of the first rule that applies. Codes of one role are consecutive.
ROW_RULES = (
    RowRule(-2, "y_true", "missing", _NO_VALUE),
    RowRule(-3, "y_true", "nonfinite", _NONFINITE),
    RowRule(-4, "y_true", "outside_unit", _NO_OUTCOME),
    RowRule(-5, "y_proba", "missing", _MISSING),
    RowRule(-6, "y_proba", "nonfinite", _NONFINITE),
    RowRule(-7, "y_proba", "outside_unit", _NO_PROBABILITY),
    RowRule(-8, "sample_weight", "missing", _MISSING),
    RowRule(-9, "sample_weight", "nonfinite", _NONFINITE),
    RowRule(-10, "sample_weight", "negative", _NEGATIVE),
    RowRule(ZERO_WEIGHT, "sample_weight", "zero"),
    RowRule(-11, "sample_weight", "extreme"),
)


def rules_for(*, weighted: bool) -> list[RowRule]:
    """Return the row code rules in order, those of weights only if there are weights."""
    return [rule for rule in ROW_RULES if weighted or rule.role != "sample_weight"]


def code_of(role: str, check: Check) -> int:
    """Return the row code of a rule."""
    return next(rule.code for rule in ROW_RULES if (rule.role, rule.check) == (role, check))


def error_codes(role: str) -> tuple[int, int]:
    """Return the lowest and highest row code of invalid values in this column; those between are its codes, too."""
    codes = [rule.code for rule in ROW_RULES if rule.role == role and rule.check != "zero"]
    return min(codes), max(codes)


# The columns of an aggregated table, apart from its groups: `code`, and for each code `n`, the number of rows; the sums
# of a sketch (c = p - y, v = p(1 - p)); the smallest and largest prediction, or outcome or weight if the code is about
# those; and `top`, the largest weight. Sums of invalid rows may be anything. Without weights w = 1, and
# `assemble.columns_without_weights` computes those that are left out.
UNWEIGHTED = ("n", "wp", "pos", "neg", "wcp", "wcc", "wwv", "low", "high")
WEIGHTED = (*SUMS, "low", "high", "top")
# With `pos_label`, also the smallest and largest of the other labels: more than one other label is an error.
OTHERS = ("first_other", "last_other")
# In each line of a query's result, also the number of all rows and of buckets, to notice if a tool has returned only
# the first thousand lines.
CHECKS = ("total", "n_buckets")
