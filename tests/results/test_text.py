"""Results in Markdown: what comes from data shows as it is, and tables have the rows of the printed ones."""

import dataclasses
import math

import numpy as np
import pytest

import truthcal as tc
from truthcal.results import text
from truthcal.results.text import Table, clean_text, escape_markdown, one_line

rng = np.random.default_rng(4)
P = rng.random(300)
Y = rng.random(300) < P


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain text", "plain text"),
        ("a|b", "a\\|b"),
        ("<script>", "&lt;script&gt;"),
        ("*bold* _it_ `code`", "\\*bold\\* \\_it\\_ \\`code\\`"),
        ("back\\slash", "back\\\\slash"),
        ("[a](http://b)", "\\[a](http://b)"),
        ("two\nlines\r\nof it", "two lines of it"),
        ("a & b", "a &amp; b"),
    ],
)
def test_text_shows_as_it_is(given, shown):
    assert escape_markdown(given) == shown


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (text.number(0.0456789), "0.04568"),
        (text.without_exponent(2.04), "2.0"),
        (text.without_exponent(118.7), "120"),
        (text.error_text(0.0172, 0.0, 0.0353, 3), "<= 0.0353"),
        (text.error_text(0.0172, 0.01, 0.0353, 3), "0.0172"),
        (text.number(0.0456789, 3), "0.0457"),
        (text.number(-0.99999, 3), "-1"),
        (text.number(74123.0, 2, sign="+"), "+74,000"),
        (text.upper_limit(74123.0), "74,200"),
        (text.number(1.2345e-05, 3, sign="+"), "+1.23e-05"),
        (text.number(-1e-17, sign="+"), "+0"),
        (text.number(math.nan), "unknown"),
        (text.number(math.nan, missing="-"), "-"),
        (text.interval(0.04567, 0.1234), "0.0456 to 0.124"),  # rounded outwards
        (text.interval(-0.12341, -0.12341), "-0.124 to -0.123"),
        (text.lower_limit(1.0 - 0.7), "0.3"),
        (text.upper_limit(1.0 - 0.7), "0.3"),  # 0.30000000000000004: a rounding error
        (text.upper_limit(0.09991), "0.1"),
        (text.lower_limit(-1e-17), "0"),
        (text.upper_limit(math.inf), "inf"),
        (text.lower_limit(math.nan), "unknown"),
        (text.interval(-0.1, 0.0, sign="+"), "-0.1 to +0"),
        (text.interval(math.nan, math.nan), ""),
        (text.percent(0.9995), "99.95%"),
        (text.percent(0.95), "95%"),
        (text.percent(1.0), "100%"),
        (text.percent(0.99), "99%"),
        (text.percent(0.999999), "99.9999%"),
        (text.percent(1.0 - 0.05 / 3), "98.3%"),
        (text.percent(0.95 ** (1 / 30)), "99.83%"),
        (text.percent(0.0012345), "0.123%"),
        (text.p_value(0.5), "p = 0.50"),
        (text.p_value(0.01852), "p = 0.0185"),
        (text.p_value(1.25e-7), "p = 1.2e-07"),
        (text.p_value(0.0), "p < 1e-300"),
        (text.p_value(1e-4, 9999), "p <= 0.0001"),
        (text.p_number(0.5), "0.50"),
        (text.p_number(0.0), "< 1e-300"),
        (text.p_number("p <= 0.0001"), "<= 0.0001"),
        (text.p_number(math.nan), "-"),
        (text.count(1, "row"), "1 row"),
        (text.rows_in_groups(2011, 2011), "2,011 rows"),
        (text.rows_in_groups(2011, 40), "2,011 rows in 40 groups"),
        (text.count(0, "row"), "0 rows"),
        (text.count(2000, "row"), "2,000 rows"),
        (text.plural(2, "is", "are"), "are"),
        (text.join_words(["a"]), "a"),
        (text.join_words(["a", "b", "c"]), "a, b and c"),
        (text.shorten("x" * 50 + "end", 28), "x" * 18 + "\u2026" + "x" * 6 + "end"),
        (text.shorten("short", 28), "short"),
        (text.escape_control_characters("a\x1b[31m\n\u202eb \u00e9"), "a\\x1b[31m\\n\\u202eb \u00e9"),
        (text.mood("calibrated"), "good"),
        (text.mood("too few rows"), "unsure"),
        (text.mood("too good"), "odd"),
        (text.mood("overconfident"), "bad"),
    ],
)
def test_numbers_and_words(formatted, expected):
    assert formatted == expected


def test_tables_are_aligned():
    table = Table(["name", "of two\nlines"], [["a", "1"], ["long name", "22"]], right=[1], indent=2)
    assert table.lines() == ["             of two", "  name        lines", "  a               1", "  long name      22"]
    wide = Table(["a", "b"], [["1", "2"]], show_header=False, gap=1, widths=(4,))
    assert wide.lines() == ["1    2"]
    assert ">a</th>" not in wide.html()
    assert Table(["<a>"], [["<b>"]]).html() == (
        '<table><tr><th style="text-align:left">&lt;a&gt;</th></tr>'
        '<tr><th scope="row" style="text-align:left">&lt;b&gt;</th></tr></table>'
    )


def test_tables_have_a_line_a_row():
    table = Table(["name", "value"], [["a|b", "1"], ["c", "2"]], right=[1]).markdown()
    assert table.splitlines() == ["| name | value |", "| --- | ---: |", "| a\\|b | 1 |", "| c | 2 |"]


def test_assessments_have_verdict_table_and_warnings():
    found = tc.assess(np.ones(300), P)
    markdown = found.to_markdown()
    assert markdown.startswith(f"**{escape_markdown(found.verdict.splitlines()[0])}**")
    assert "| rows | 300 |" in markdown
    assert "> ⚠ all outcomes are 1; there are no rows of the other class." in markdown


def test_comparisons_are_told_by_name():
    found = tc.compare(Y, P, np.full(300, 0.5))
    named = dataclasses.replace(found, names=("old|1", "new"))
    assert str(named).startswith("old|1 has the better Brier score")
    assert named.verdict == str(named).splitlines()[0]
    assert "| old\\|1 | new | old\\|1 - new |" in named.to_markdown()
    assert found.verdict.startswith("a has the better Brier score")
    assert named.to_dict()["names"] == ["old|1", "new"]


def test_segments_say_how_many_are_not_shown():
    sketches = {f"<{i}>": tc.Sketch().update(Y, P) for i in range(25)}
    markdown = tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="a_b")).to_markdown()
    assert markdown.count("\n| &lt;") == 20
    assert markdown.endswith("... and 5 more")
    assert "| a\\_b | rows |" in markdown


def test_tests_and_measures_print_the_same_numbers():
    test = tc.calibration_test(Y, P, rng=0)
    assert f"{test.statistic:.4g}" in test.to_markdown()
    table = tc.all_measures(Y, P, ["atb", "intcal"])
    assert f"| atb | {table['atb']:.4g} | squared | yes |" in table.to_markdown()


# --- names ------------------------------------------------------------------------------------------------------------


def test_clean_marks_what_no_page_may_hold():
    assert (
        clean_text("a\x00\x1b\x85\ufffe\u202eb\tc\nd \u00e9\U0001f600")
        == "a" + 5 * "\ufffd" + "b\tc\nd \u00e9\U0001f600"
    )


def test_clean_marks_all_that_turns_the_order_of_letters_around():
    """Unicode's own list: the characters of property Bidi_Control."""
    controls = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert clean_text(f"a{controls}b") == "a" + 12 * "\ufffd" + "b"
    assert clean_text("\u200d\u05d0\u0627") == "\u200d\u05d0\u0627"  # joiners and letters from right to left stay


def test_one_line_keeps_both_ends():
    assert one_line("x" * 50 + "end") == "x" * 18 + "\u2026" + "x" * 6 + "end"
    assert one_line(" a\n b ") == "a b"
    assert one_line("\n") == "(no name)"


@pytest.mark.parametrize(
    ("rate", "words", "per"),
    [
        (0.0, "0%", ""),
        (1e-9, "1.0 per billion", " per billion"),
        (2.5e-6, "2.5 per million", " per million"),
        (7.6e-5, "7.6 per 100,000", " per 100,000"),
        (0.00099, "99 per 100,000", " per 100,000"),
        (0.001, "1.0 per 1,000", " per 1,000"),
        (0.0021, "2.1 per 1,000", " per 1,000"),
        (0.0495, "50 per 1,000", " per 1,000"),
        (0.05, "5%", ""),
        (0.5, "50%", ""),
        (0.999, "99.90%", ""),
        (1.0, "100%", ""),
    ],
)
def test_words_for_a_probability_follow_its_size(rate, words, per):
    assert text.frequencies(rate) == [words]
    unit = text.unit_of(rate)
    assert unit.per == per
    assert unit.rows == 1 or 1 <= round(unit.rows * rate, 9) < 100


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((0.032, 0.013), ["32 per 1,000", "13 per 1,000"]),
        ((0.0068, 0.0), ["6.8 per 1,000", "0 per 1,000"]),
        ((0.0201, 0.0199), ["20.10 per 1,000", "19.90 per 1,000"]),
        ((0.85, 0.97), ["85%", "97%"]),
        ((0.976, 0.989), ["97.6%", "98.9%"]),
        ((0.06, 0.002), ["6%", "0.20%"]),
    ],
)
def test_probabilities_side_by_side_have_one_unit(rates, words):
    assert text.frequencies(*rates) == words


@pytest.mark.parametrize(
    ("means", "errors", "per"),
    [
        ((0.01, 0.005), (), " per 1,000"),
        ((0.99, 0.995), (), " per 1,000"),  # the other outcome is rare
        ((0.5, 0.4), (0.0001,), ""),
        ((0.0002, 0.0003), (0.00016,), " per 100,000"),
        ((0.0002, 0.0003), (0.004,), " per 1,000"),
        ((0.02, 0.02), (math.nan,), " per 1,000"),
        ((0.0, 0.0), (0.0,), ""),
        ((0.01, 0.9), (0.9,), ""),
    ],
)
def test_unit_of_errors_is_that_of_the_rarer_outcome(means, errors, per):
    assert text.error_unit(*means, *errors).per == per


def test_ratio_of_means_is_rounded_outwards():
    assert text.ratio_of_means(0.01, 0.005, 0.0041, 0.0056) == ("2.0", "1.6 to 2.3")
    assert text.ratio_of_means(0.01, 0.005, 0.001, 0.01) == ("2.0", "1.1 or more")
    assert text.ratio_of_means(0.01, 0.02, -0.0151, -0.0052) == ("0.50", "0.39 to 0.66")
