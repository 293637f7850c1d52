"""Text and tables that fit into a terminal."""

import re

import numpy as np
import pytest

import truthcal as tc
from truthcal.results.column_width import fit_columns, shorten, wrap_lines
from truthcal.results.text import Table

ROWS = [
    ["a very long name", "1,234", "+0.0123 (-0.01 to +0.02)", "overconfident"],
    ["b", "7", "-0.5 (-0.6 to -0.4)", "not significant"],
]
TABLE = Table(["name", "rows", "bias", "verdict"], ROWS, right=[1])


def table_of(by, group, y, p):
    return tc.SketchTable.from_sketches(
        {int(k): tc.Sketch().update(y[group == k], p[group == k]) for k in set(group)}, by=by
    )


def words(lines):
    return sorted(" ".join(lines).split())


@pytest.mark.parametrize("width", range(36, 80))
def test_table_fits_and_loses_no_word(width):
    lines = TABLE.lines(width)
    assert max(map(len, lines)) <= width
    assert words(lines) == words(TABLE.lines())


def test_wide_enough_tables_are_unchanged():
    natural = max(map(len, TABLE.lines()))
    assert TABLE.lines(natural) == TABLE.lines()
    assert TABLE.lines(natural - 1) != TABLE.lines()


def test_intervals_stay_together_if_there_is_room():
    assert any(line.endswith("(-0.01 to +0.02)") or "(-0.01 to +0.02)  " in line for line in TABLE.lines(52))


def test_columns_line_up():
    lines = TABLE.lines(52)
    assert lines[0].index("verdict") == lines[1].index("overconfident")
    assert lines[0].index("rows") + 4 == lines[1].index("1,234") + 5


def test_words_are_shortened_but_numbers_are_not():
    table = Table(["measure", "value"], [["an_extremely_long_name", "5.903000000001e-05"]])
    assert table.lines(30) == ["measure     value", "an_extr…ame 5.903000000001e-05"]
    # There is no room for the number itself: the line is longer than the terminal.
    assert "5.903000000001e-05" in table.lines(12)[1]


def test_fit_columns_takes_from_the_widest_first():
    assert fit_columns([["aa bb cc", "x"]], 7, "word") == [6, 1]
    assert fit_columns([["aa bb cc", "x"]], 2, "word") == [2, 1]  # there is not enough room
    assert fit_columns([["abcdefghijkl"]], 8, "word") == [12]
    assert fit_columns([["abcdefghijkl"]], 8, "short") == [8]


def test_wrap_lines():
    assert wrap_lines("  one two three\nfour", 12, "  ") == "  one two\n    three\nfour"
    assert wrap_lines("any length", None) == "any length"
    assert shorten("abcdefghij", 2) == "a…"


def test_optional_columns_are_left_out_before_cells_are_wrapped():
    table = Table(["name", "p", "long", "verdict"], [["a", "0.01", "one two three", "bad"]], right=[1], optional=[2, 1])
    assert table.lines(34) == table.lines()
    assert table.lines(33) == ["name     p  verdict", "a     0.01  bad", "(left out to fit the width: long)"]
    assert table.lines(15) == ["name  verdict", "a     bad", "(left out to", "fit the width:", "p, long)"]
    assert "left out" not in table.lines(12)[-1]  # nothing fits: all cells are wrapped
    assert table.markdown().count("long") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_results_fit(width):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = rng.random(600) < p**2
    sketch = table_of("region", np.arange(600) % 25, y, p)
    k = rng.dirichlet(np.ones(4), 600)
    results = [
        tc.assess(y, p),
        tc.assess_segments(sketch),
        tc.compare(y, p, p**2),
        tc.calibration_test(y, p),
        tc.all_measures(y, p, ["atb", "ece"]),
        tc.audit([0.25, 0.75], ["atb", "ece"]),
        tc.assess(np.arange(600) % 4, k),
    ]
    for result in results:
        lines = result.to_text(width).split("\n")
        assert max(map(len, lines)) <= width, result
        if not isinstance(result, tc.Audit) and not any(
            "left out to" in line for line in lines
        ):  # with fewer columns then
            numbers = [[word for word in words(text) if re.search("[0-9]", word)] for text in (lines, [str(result)])]
            assert numbers[0] == numbers[1]
        assert result.to_text() == str(result)


# --- order and number of segments -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def segments():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 3000)
    group = rng.integers(0, 30, 3000) ** 2 // 30
    y = rng.random(3000) < np.clip(p + 0.02 * (group % 5), 0, 1)
    return tc.assess_segments(table_of("k", group, y, p), min_rows=60)


def test_orders(segments):
    names = {
        order: [s.key for s in segments.sort_by(order).segments] for order in ("p", "error", "bias", "rows", "name")
    }
    assert names["p"] == [s.key for s in segments.segments]
    assert names["name"] == sorted(segments)  # numbers by size, not as text
    rows = [segments[key].n for key in names["rows"]]
    assert rows == sorted(rows, reverse=True)
    bias = [abs(segments[key].bias) for key in names["bias"]]
    assert bias == sorted(bias, reverse=True)
    errors = [segments[key].error for key in names["error"]]  # as printed: estimates, then upper limits
    known = [(e.low > 0.0, e.estimate if e.low > 0.0 else e.high) for e in errors if not np.isnan(e.high)]
    assert known == sorted(known, reverse=True)
    assert not any(np.isnan(e.high) for e in errors[: len(known)])
    with pytest.raises(ValueError, match="`order` must be one of 'p', 'error', 'bias', 'rows', 'name'; got 'size'"):
        segments.sort_by("size")


def test_verdict_does_not_depend_on_the_order(segments):
    assert segments.sort_by("name").verdict == segments.verdict
    assert segments.sort_by("rows").miscalibrated == segments.miscalibrated


def test_number_of_segments(segments):
    assert len(segments) > 20
    lines = segments.to_text(limit=None).split("\n")
    assert len(lines) == len(str(segments).split("\n")) + len(segments) - 21
    assert re.search(r"\.\.\. and \d more", str(segments))
    assert not re.search(r"\.\.\. and", segments.to_text(limit=None))
    assert segments.to_markdown(limit=3).count("\n| ") == 5  # with the header


@pytest.mark.parametrize("width", [0, -1, 80.5, "80"])
def test_width_must_be_positive(width):
    y, p = [0, 1] * 50, [0.5] * 100
    audit = tc.audit([0.2, 0.7], measures=["atb"])
    for result in (tc.assess(y, p), tc.calibration_test(y, p), audit):
        with pytest.raises(
            ValueError, match=f"`width` must be a positive whole number of characters, .*; got {width!r}"
        ):
            result.to_text(width)
    with pytest.raises(ValueError, match="`width` must be a positive"):
        TABLE.lines(width)
