"""Results in Markdown: what comes from data shows as it is, and tables have the rows of the printed ones."""

import dataclasses

import numpy as np
import pytest

import truthcal as tc
from truthcal.results.text import Table, escape_markdown

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


def test_tables_have_a_line_a_row():
    table = Table(["name", "value"], [["a|b", "1"], ["c", "2"]], right=[1]).markdown()
    assert table.splitlines() == ["| name | value |", "| --- | ---: |", "| a\\|b | 1 |", "| c | 2 |"]


def test_assessments_have_verdict_table_and_warnings():
    found = tc.assess(np.ones(300), P)
    text = found.to_markdown()
    assert text.startswith(f"**{escape_markdown(found.verdict.splitlines()[0])}**")
    assert "| rows | 300 |" in text
    assert "> ⚠ all outcomes are 1: nothing is known of the other class." in text


def test_comparisons_are_told_by_name():
    found = tc.compare(Y, P, np.full(300, 0.5))
    named = dataclasses.replace(found, names=("old|1", "new"))
    assert str(named).startswith("old|1 is more skilful")
    assert named.verdict == str(named).splitlines()[0]
    assert "| old\\|1 | new | old\\|1 - new |" in named.to_markdown()
    assert found.verdict.startswith("a is more skilful")
    assert named.to_dict()["names"] == ["old|1", "new"]


def test_segments_say_how_many_are_not_shown():
    sketches = {f"<{i}>": tc.Sketch().update(Y, P) for i in range(25)}
    text = tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="a_b")).to_markdown()
    assert text.count("\n| &lt;") == 20
    assert text.endswith("... and 5 more")
    assert "| a\\_b | rows |" in text


def test_tests_and_measures_print_the_same_numbers():
    test = tc.calibration_test(Y, P, rng=0)
    assert f"{test.statistic:.4g}" in test.to_markdown()
    table = tc.all_measures(Y, P, ["atb", "intcal"])
    assert f"| atb | {table['atb']:.4g} | squared | yes |" in table.to_markdown()
