"""What an engine is asked for: one code a row, and sums by code.

From 0 on the code is the row's bucket. Below 0 it says why the row does not count, so that the pass that adds up the
rows also finds what is wrong with them. A row has the first of these codes that is true of it.
"""

# In this order. NULL: missing. WILD: nan or infinite. OUTSIDE: not in [0, 1]; of weights, negative.
TRUE_NULL, TRUE_WILD, TRUE_OUTSIDE = -2, -3, -4
PROBA_NULL, PROBA_WILD, PROBA_OUTSIDE = -5, -6, -7
WEIGHT_NULL, WEIGHT_WILD, WEIGHT_OUTSIDE, WEIGHT_EXTREME = -8, -9, -10, -11
WEIGHTLESS = -1  # the one that is not an error: a row of weight 0

# The columns of an aggregated table, beside those it was grouped by: `code`, and for each code `n`, the number of rows;
# the sums of a sketch (c = p - y, v = p(1 - p)); the smallest and largest prediction. Where the code speaks of the
# outcome or the weight, `low` and `high` are the smallest and largest of these instead. Sums of rows that do not count
# may be anything. Without weights w = 1, so `w`, `ww` and `wwcc` are left out: they are `n`, `n` and `wcc`.
UNWEIGHTED = ("n", "wp", "pos", "neg", "wcp", "wcc", "wwv", "low", "high")
WEIGHTED = ("n", "w", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv", "low", "high")
# Where a positive label was named, also the smallest and largest of the other labels: more than one is an error.
OTHERS = ("first_other", "last_other")
# What the result of a query also says in each line: the number of all rows, and of buckets. So a tool that returns only
# the first thousand lines is found out.
CHECKS = ("total", "n_buckets")
