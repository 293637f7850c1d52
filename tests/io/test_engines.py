"""The same rows give the same sketch in every engine, and the same words where they cannot."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from support.engines import ENGINES, SLOW
from support.rows import EPS, PROBA, SITE, TRUE, WEIGHT, YEAR, B, assert_same, numbers, table

import truthcal as tc
from truthcal.io import engines, frame_batches

KINDS = {
    "bool": pa.array(TRUE),
    "int64": pa.array([int(y) for y in TRUE]),
    "int8": pa.array([int(y) for y in TRUE], pa.int8()),
    "float32": pa.array([float(y) for y in TRUE], pa.float32()),
    "decimal": pa.array([decimal.Decimal(int(y)) for y in TRUE], pa.decimal128(5, 2)),
    "fractions": pa.array([(i % 4) / 4 for i in range(len(PROBA))]),
}


def every(cases, few):
    """Each engine with each case; engines that take seconds for a query with a few of them."""
    return [(engine, case) for engine in ENGINES for case in (few if engine in SLOW else cases)]


@pytest.mark.parametrize(("engine", "kind"), every(KINDS, few=("bool", "fractions", "decimal")), indirect=["engine"])
def test_edge_cases_give_the_sketch_that_arrays_give(engine, kind):
    if kind == "decimal" and engine.name in ("pandas", "dask"):
        with pytest.raises(TypeError, match=r"`y` \(y_true\) must contain numbers; its type is (Object|String)\. "):
            tc.sketch_frame(engine(table(y=KINDS[kind])), y_true="y", y_proba="p", n_buckets=B)
        return
    frame = engine(table(y=KINDS[kind]))
    expected = tc.Sketch(B).update(numbers(KINDS[kind]), PROBA)
    assert_same(tc.sketch_frame(frame, y_true="y", y_proba="p", n_buckets=B), expected)


def test_weights(engine):
    sketch = tc.sketch_frame(engine(table()), y_true="y", y_proba="p", sample_weight="w", n_buckets=B)
    assert_same(sketch, tc.Sketch(B).update(TRUE, PROBA, WEIGHT))
    assert sketch.n == sum(w > 0 for w in WEIGHT)


def test_float32_predictions_and_decimals(engine):
    short = pa.array(PROBA, pa.float64()).cast(pa.float32())
    sketch = tc.sketch_frame(engine(table(p=short)), y_true="y", y_proba="p", n_buckets=B)
    assert_same(sketch, tc.Sketch(B).update(TRUE, numbers(short)))
    if engine.name in ("pandas", "dask"):  # for which a decimal is an object
        return
    money = pa.array([decimal.Decimal(i % 5) / 4 for i in range(len(PROBA))], pa.decimal128(9, 4))
    sketch = tc.sketch_frame(engine(table(p=money)), y_true="y", y_proba="p", n_buckets=B)
    assert_same(sketch, tc.Sketch(B).update(TRUE, numbers(money)))


@pytest.mark.parametrize(
    ("engine", "by"), every(["site", "year", ("year", "site")], few=[("year", "site")]), indirect=["engine"]
)
def test_groups(engine, by):
    result = tc.sketch_frame(engine(table()), y_true="y", y_proba="p", sample_weight="w", by=by, n_buckets=B)
    columns = {"site": SITE, "year": YEAR}
    names = [by] if isinstance(by, str) else by
    keys = list(zip(*(columns[name] for name in names), strict=True))
    assert result.by == tuple(names)
    assert set(result) == {key[0] if len(names) == 1 else key for key in keys}
    for key in set(keys):
        rows = [i for i, own in enumerate(keys) if own == key]
        expected = tc.Sketch(B).update(*([column[i] for i in rows] for column in (TRUE, PROBA, WEIGHT)))
        assert_same(result[key[0] if len(names) == 1 else key], expected)


def test_groups_of_days_and_flags(engine):
    days = [datetime.date(2026, 1, 1 + i % 3) for i in range(len(PROBA))]
    frame = engine(table(day=days, flag=TRUE))
    result = tc.sketch_frame(frame, y_true="y", y_proba="p", by=["flag", "day"], n_buckets=B)
    plain = {(flag, str(day)[:10]) for flag, day in result}
    assert plain == {(flag, str(day)) for flag, day in zip(TRUE, days, strict=True)}
    assert {type(flag) for flag, _ in result} == {bool}


LABELS = {
    "text": (["yes" if y else "no" for y in TRUE], "yes"),
    "numbers": ([2 if y else 1 for y in TRUE], 2),
    "floats": ([1.0 if y else -1.0 for y in TRUE], 1),
    "bool": (TRUE, True),
    "categories": (pa.array(["yes" if y else "no" for y in TRUE]).dictionary_encode(), "yes"),
}


@pytest.mark.parametrize(("engine", "kind"), every(LABELS, few=("text", "floats")), indirect=["engine"])
def test_labels(engine, kind):
    labels, positive = LABELS[kind]
    sketch = tc.sketch_frame(engine(table(y=labels)), y_true="y", y_proba="p", pos_label=positive, n_buckets=B)
    assert_same(sketch, tc.Sketch(B).update(TRUE, PROBA))


NAN, INF = math.nan, math.inf


BAD_ROWS = {
    ("p", "[None, NAN]"): ([None, NAN], "`p` (y_proba) has a missing value (null or nan) in the frame (2 of {} rows). Drop those rows, or impute the values."),
    ("y", "[None, NAN]"): ([None, NAN], "`y` (y_true) has a missing value (null or nan) in the frame (2 of {} rows). Drop those rows."),
    ("w", "[None, NAN]"): ([None, NAN], "`w` (sample_weight) has a missing value (null or nan) in the frame (2 of {} rows). Drop those rows, or impute the values."),
    ("p", "[NAN]"): ([NAN], "`p` (y_proba) has a missing value (null or nan) in the frame (1 of {} rows). Drop those rows, or impute the values."),
    ("p", "[INF, NAN]"): ([INF, NAN], "`p` (y_proba) must contain finite numbers; found inf in the frame (2 of {} rows); null and nan are counted too. Drop or correct those rows; apply the sigmoid to log-odds first."),
    ("p", "[-INF]"): ([-INF], "`p` (y_proba) must contain finite numbers; found -inf in the frame (1 of {} rows); null and nan are counted too. Drop or correct those rows; apply the sigmoid to log-odds first."),
    ("p", "[1.0 + 2 * EPS]"): ([1.0 + 2 * EPS], "`p` (y_proba) must lie in [0, 1]; found 1.0000000000000002 in the frame (1 of {} rows). Rounding error? Clip with np.clip(..., 0, 1)."),
    ("p", "[-5e-324]"): ([-5e-324], "`p` (y_proba) must lie in [0, 1]; found -5e-324 in the frame (1 of {} rows). Rounding error? Clip with np.clip(..., 0, 1)."),
    ("p", "[74.5, 2.0]"): ([74.5, 2.0], "`p` (y_proba) must lie in [0, 1]; found 74.5 in the frame (2 of {} rows). Percentages? Divide by 100."),
    ("p", "[-3.0, 2.0]"): ([-3.0, 2.0], "`p` (y_proba) must lie in [0, 1]; found 2.0 in the frame (2 of {} rows). Logits or scores? Apply the sigmoid (or softmax) first."),
    ("y", "[2.0]"): ([2.0], "`y` (y_true) must contain 0/1, True/False or probabilities in [0, 1]; found 2.0 in the frame (1 of {} rows). For two labels other than 0 and 1, name the positive one with `pos_label`."),
    ("y", "[-1.0]"): ([-1.0], "`y` (y_true) must contain 0/1, True/False or probabilities in [0, 1]; found -1.0 in the frame (1 of {} rows). For two labels other than 0 and 1, name the positive one with `pos_label`."),
    ("w", "[-1.0]"): ([-1.0], "`w` (sample_weight) must not be negative; found -1.0 in the frame (1 of {} rows). Drop or correct these rows."),
    ("w", "[1e-200]"): ([1e-200], "`w` (sample_weight) must be 0 or between 1e-70 and 1e+70 for a sketch; found 1e-200 to 1e-200. Only ratios matter, so multiply the weights of all updates by the same number."),
}  # fmt: skip
FEW_BAD_ROWS = [
    ("p", "[None, NAN]"),
    ("y", "[None, NAN]"),
    ("p", "[INF, NAN]"),
    ("p", "[1.0 + 2 * EPS]"),
    ("w", "[-1.0]"),
]


@pytest.mark.parametrize(("engine", "case"), every(BAD_ROWS, few=FEW_BAD_ROWS), indirect=["engine"])
def test_rows_that_cannot_be_used(engine, case):
    """In the same words everywhere, with the right count, whatever the engine makes of nan and null by itself."""
    column, (values, message) = case[0], BAD_ROWS[case]
    good = {"y": [float(y) for y in TRUE], "p": PROBA, "w": [1.0] * len(PROBA)}
    rows = {name: [*kept, *([0.5] * len(values))] for name, kept in good.items()}
    rows[column] = [*good[column], *values]
    frame = engine(pa.table({name: pa.array(values, pa.float64()) for name, values in rows.items()}))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        tc.sketch_frame(frame, y_true="y", y_proba="p", sample_weight="w", n_buckets=B)
    assert str(caught.value) == message.format(len(rows["p"]))


def test_missing_labels_beside_a_positive_one(engine):
    labels = ["yes" if y else "no" for y in TRUE]
    labels[4] = None
    with pytest.raises(ValueError, match=r"`y` \(y_true\) has a missing value .* \(1 of "):
        tc.sketch_frame(engine(table(y=labels)), y_true="y", y_proba="p", pos_label="yes", n_buckets=B)
    floats = [float(y) for y in TRUE]
    floats[4] = NAN
    with pytest.raises(ValueError, match=r"`y` \(y_true\) has a missing value .* \(1 of "):
        tc.sketch_frame(engine(table(y=floats)), y_true="y", y_proba="p", pos_label=1, n_buckets=B)


def test_more_than_two_labels(engine):
    labels = [("a", "b", "c")[i % 3] for i in range(len(PROBA))]
    with pytest.raises(ValueError, match=r"`y` \(y_true\) has more than two different labels \('a', 'b', 'c'\)"):
        tc.sketch_frame(engine(table(y=labels)), y_true="y", y_proba="p", pos_label="a", n_buckets=B)
    with pytest.raises(
        ValueError, match=r"`pos_label` must be one of the labels in `y` \('a', 'b', 'c', ...\); got 'z'"
    ):
        tc.sketch_frame(engine(table(y=labels)), y_true="y", y_proba="p", pos_label="z", n_buckets=B)


def test_types_that_are_no_numbers(engine):
    frame = engine(table(text=[str(p) for p in PROBA]))
    with pytest.raises(TypeError, match=r"`text` \(y_proba\) must contain numbers; its type is .*written as text\?"):
        tc.sketch_frame(frame, y_true="y", y_proba="text")
    with pytest.raises(TypeError, match=r"`text` \(y_true\) must contain numbers; its type is .* `pos_label`"):
        tc.sketch_frame(frame, y_true="text", y_proba="p")
    with pytest.raises(ValueError, match=r"`pos_label` must have the same type as the labels in `text`, .*; got 1"):
        tc.sketch_frame(frame, y_true="text", y_proba="p", pos_label=1)


def test_missing_columns_and_no_rows(engine):
    frame = engine(table())
    with pytest.raises(ValueError, match=r"the frame has no column 'q' \(named by `y_proba`\); it has 'y', 'p', 'w',"):
        tc.sketch_frame(frame, y_true="y", y_proba="q")
    if engine.name != "dask":  # its partitions cannot be empty
        empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
        with pytest.raises(ValueError, match=r"the frame has no rows; at least one is needed\."):
            tc.sketch_frame(engine(empty), y_true="y", y_proba="p")


def test_swapped_columns_and_no_weight(engine):
    frame = engine(table(y=[float(y) for y in TRUE], zero=[0.0] * len(PROBA)))
    with pytest.raises(ValueError, match=r"the arguments look swapped"):
        tc.sketch_frame(frame, y_true="p", y_proba="y")
    with pytest.raises(ValueError, match=r"`sample_weight` is zero in every row"):
        tc.sketch_frame(frame, y_true="y", y_proba="p", sample_weight="zero")


def test_names_that_could_be_in_the_way(engine):
    """Columns named as the expression's own, with dots, quotes and spaces."""
    odd = {"n": SITE, "code": PROBA, "y": YEAR, 'a."b c`': TRUE, "w.w": WEIGHT}
    frame = engine(pa.table(odd))
    result = tc.sketch_frame(frame, y_true='a."b c`', y_proba="code", sample_weight="w.w", n_buckets=B)
    assert_same(result, tc.Sketch(B).update(TRUE, PROBA, WEIGHT))


def test_hours_around_a_change_of_clocks(engine):
    """02:30 comes twice in Berlin on that day; Python takes both for equal."""
    utc = datetime.UTC
    hours = [datetime.datetime(2024, 10, 27, hour, 30, tzinfo=utc) for hour in (0, 1, 2)]
    frame = pa.table(
        {"h": pa.array(hours, pa.timestamp("us", tz="Europe/Berlin")), "y": [0, 1, 1], "p": [0.2, 0.9, 0.5]}
    )
    assert tc.sketch_frame(engine(frame), y_true="y", y_proba="p", by="h").n.tolist() == [1, 1, 1]


def test_numpy_labels_and_true_for_one(engine):
    numbers = pa.array([int(y) for y in TRUE])
    for positive in (np.int64(1), np.bool_(True), True, 1.0):
        sketch = tc.sketch_frame(engine(table(y=numbers)), y_true="y", y_proba="p", pos_label=positive, n_buckets=B)
        assert_same(sketch, tc.Sketch(B).update(TRUE, PROBA))


def test_groups_may_be_named_as_sums(engine):
    """`code` is an everyday column."""
    result = tc.sketch_frame(engine(table(code=SITE)), y_true="y", y_proba="p", by="code", n_buckets=B)
    assert set(result) == {"north", "south", None}


def test_double_names_and_lists():
    import pandas

    doubled = pandas.DataFrame([[0, 0.2, 0.3], [1, 0.9, 0.8]], columns=["y", "p", "p"])
    with pytest.raises(ValueError, match=r"the frame has more than one column named 'p'; rename all but one"):
        tc.sketch_frame(doubled, y_true="y", y_proba="p")
    listed = pa.table({"y": [0, 1], "p": [0.2, 0.9], "g": [[1], [2]]})
    with pytest.raises(TypeError, match=r"`g` \(by\) must contain text, numbers or dates; it is List"):
        tc.sketch_frame(listed, y_true="y", y_proba="p", by="g")


def test_categories_of_numbers_say_how_to_name_the_label():
    import pandas

    frame = pandas.DataFrame({"y": pandas.Categorical([0, 1, 1]), "p": [0.2, 0.9, 0.6]})
    with pytest.raises(ValueError, match=r"Name the label as text: pos_label='1'\."):
        tc.sketch_frame(frame, y_true="y", y_proba="p", pos_label=1)
    assert tc.sketch_frame(frame, y_true="y", y_proba="p", pos_label="1").n == 3


@pytest.mark.parametrize("name", ["duckdb", "polars", "polars, lazy", "pandas", "pandas, Arrow types", "pyarrow"])
@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"by": ["year", "site"]}, {"pos_label": True}])
def test_engines_in_this_process_stream_their_rows(name, options, tmp_path, monkeypatch):
    """Without the engine's GROUP BY, which takes several times as long."""
    monkeypatch.setattr(engines, "_aggregate_frame", None)
    frame = ENGINES[name](table(), tmp_path)
    result = tc.sketch_frame(frame, y_true="y", y_proba="p", n_buckets=B, **options)
    sketch = result.total() if "by" in options else result
    assert_same(sketch, tc.Sketch(B).update(TRUE, PROBA, WEIGHT if "sample_weight" in options else None))


@pytest.mark.parametrize("name", ["duckdb", "polars, lazy"])
def test_many_groups_are_left_to_the_engine(name, tmp_path, monkeypatch):
    """The loops index all buckets of all groups, filled or not."""
    frame, calls, aggregate = ENGINES[name](table(), tmp_path), [], engines._aggregate_frame
    monkeypatch.setattr(engines, "_aggregate_frame", lambda *args: calls.append(1) or aggregate(*args))
    monkeypatch.setattr(frame_batches, "_MOST_CELLS", B)
    result = tc.sketch_frame(frame, y_true="y", y_proba="p", by="site", n_buckets=B)
    assert len(result) > 1
    assert calls == [1]
    assert_same(result.total(), tc.Sketch(B).update(TRUE, PROBA))
