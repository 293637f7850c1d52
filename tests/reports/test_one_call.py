"""`report` of rows in one call, the result in a notebook and in the browser, and what each page says only once."""

import collections
import html
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from support.report_pages import class_forecasts, forecasts, read, text_of

import truthcal as tc

pytest.importorskip("matplotlib", reason="the report draws its figures with matplotlib")
pytest.importorskip("jinja2", reason="the report fills its page with jinja2")


def same(one, two):
    return one.html == two.html


def test_rows_in_one_call_are_assessed():
    y, proba = forecasts(300)
    weight = np.arange(300) % 3 + 1.0
    options = {"sample_weight": weight, "groups": np.arange(300) // 3}
    assert same(tc.report(y, proba["honest"], **options), tc.report(tc.assess(y, proba["honest"], **options)))
    words = np.where(y, "yes", "no")
    named = tc.report(words, proba["honest"], pos_label="yes")
    assert same(named, tc.report(tc.assess(words, proba["honest"], pos_label="yes")))
    assert "event yes the outcome whose probability is predicted" in text_of(named)
    labels = np.round(proba["honest"])
    with pytest.raises(ValueError, match="hard=True"):
        tc.report(y, labels)
    assert tc.report(y, labels, hard=True).title == "Can these probabilities be trusted?"


def test_models_in_one_call_are_assessed_and_all_pairs_compared():
    y, proba = forecasts(300)
    made = tc.report(y, proba)
    by_hand = tc.report({name: tc.assess(y, p) for name, p in proba.items()}, comparisons=tc.compare_models(y, proba))
    assert same(made, by_hand)
    table = re.search(r'aria-label="Table of pairs".*?</table>', made.html, re.DOTALL)[0]
    pairs = re.findall(r'<span class="pair">([^<]+)</span> <span class="pair">([^<]+)</span>', table)
    assert pairs == [("honest", "overconfident"), ("honest", "gamed"), ("overconfident", "gamed")]
    assert "All pairs of models" in read(made.html).text("h2")
    assert "Table of pairs" not in tc.report(y, proba, comparisons={}).html
    one = tc.report(y, {"honest": proba["honest"]})
    assert one.title == "Can the probabilities of honest be trusted?"
    assert "Table of pairs" not in one.html


def test_segments_and_windows_in_one_call():
    y, proba = forecasts(300)
    options = {"by": {"region": np.arange(300) % 2}, "time": np.arange(300), "window": 100}
    made = tc.report(y, proba["honest"], **options)
    assert same(made, tc.report(tc.assess(y, proba["honest"], **options)))
    assert {"Segments", "Over time"} <= set(re.findall(r"<h\d[^>]*>(.*?)</h", made.html))
    with pytest.raises(ValueError, match="`window` is for rows, but `y_true` holds results or sketches"):
        tc.report(tc.assess(y, proba["honest"]), window="day")


def test_only_html_is_written(tmp_path):
    y, proba = forecasts(300)
    page = tc.report(y, proba["honest"])
    for name in ("report.pdf", "report"):
        with pytest.raises(ValueError, match=r"`path` must end with \.html, the format of a report; got '.*report"):
            page.save(tmp_path / name)
    assert page.save(tmp_path / "report.HTM").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["report.HTM"]


def test_classes_and_independent_columns_in_one_call():
    y, proba, labels = class_forecasts()
    some = {name: proba[name] for name in ("honest", "confused")}
    made = tc.report(y, some, labels=labels)
    assert tc.compare_models(y, some, labels=labels).verdict in text_of(made)
    assert "Comparison" in read(made.html).text("h2")
    rng = np.random.default_rng(3)
    p = rng.random((60, 3))
    events = (rng.random(p.shape) < p).astype(int)
    assert same(tc.report(events, p, multilabel=True), tc.report(tc.assess(events, p, multilabel=True)))
    assert "Table of pairs" not in tc.report(events, {"a": p, "b": p}, multilabel=True).html


def test_sketches_alone_are_assessed():
    y, proba = forecasts(300)
    sketches = {name: tc.Sketch(256).update(y, p) for name, p in proba.items()}
    assert same(tc.report(sketches["gamed"]), tc.report(tc.assess(sketches["gamed"])))
    assert same(tc.report(sketches), tc.report({name: tc.assess(sketch) for name, sketch in sketches.items()}))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Rows are assumed to be independent."),
        ({"groups": np.arange(300) // 3}, "Rows are grouped: 100 groups."),
        ({"groups": np.arange(300) // 3, "group_name": "patient"}, "Rows are grouped by patient: 100 groups."),
        ({"groups": np.arange(300)}, "Rows are assumed to be independent."),
    ],
)
def test_page_says_directly_below_the_verdict_which_rows_are_independent(options, sentence):
    y, proba = forecasts(300)
    found = re.search(r'<p class="rows">([^<]+)</p>', tc.report(y, proba["honest"], **options).html)
    assert found[1] == sentence
    assert found.start() < tc.report(y, proba["honest"], **options).html.index("<figure")
    several = tc.report(y, {name: proba[name] for name in ("honest", "gamed")}, **options)
    assert re.findall(r'<p class="rows">([^<]+)</p>', several.html) == [sentence]


def test_groups_are_named_by_their_column():
    pandas = pytest.importorskip("pandas", reason="a Series has a name")
    y, proba = forecasts(300)
    made = tc.report(y, proba["honest"], groups=pandas.Series(np.arange(300) // 3, name="<ward>"))
    assert '<p class="rows">Rows are grouped by &lt;ward&gt;: 100 groups.</p>' in made.html


def test_models_with_and_without_groups_are_told_apart():
    y, proba = forecasts(300)
    named = {"a": tc.assess(y, proba["honest"], groups=np.arange(300) // 3), "b": tc.assess(y, proba["gamed"])}
    assert "Rows of a are grouped: 100 groups; others are assumed to be independent." in text_of(tc.report(named))


def sentences(page):
    """The sentences of a page outside its figures, without those that contain a number."""
    body = re.sub(r"(?s)<(style|svg|title|thead)\b.*?</\1>", " ", page)
    text = html.unescape(re.sub(r"<[^>]+>", "\n", body))
    parts = (part.strip() for line in text.splitlines() for part in re.split(r"(?<=[.?!;])\s+", line))
    return [part for part in parts if len(part.split()) >= 6 and not re.search(r"\d", part)]


@pytest.mark.parametrize("made", ["single", "several", "classes", "class_models"])
def test_no_explanation_is_repeated(made, request):
    counts = collections.Counter(sentences(request.getfixturevalue(made).html))
    assert len(counts) > 40
    # What a number of each model is, in a few words, belongs to the number.
    ours = "small if predictions are closer to the outcomes than chance allows"
    assert {sentence: many for sentence, many in counts.items() if many > 1 and sentence != ours} == {}


def test_notebook_shows_the_page_in_a_frame(browser):
    y, proba = forecasts(300)
    made = tc.report(y, proba["honest"], title='Rain "in" <May>')
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_content(f"<main>{made._repr_html_()}</main>")
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == 'Rain "in" <May>'
    assert frame.locator("svg[role=img]").first.bounding_box()["width"] > 250
    box = page.locator("iframe").bounding_box()
    assert (box["width"] > 900, box["height"]) == (True, 802.0)
    page.close()


def test_save_returns_the_path_and_open_shows_a_temporary_file(tmp_path):
    y, proba = forecasts(300)
    made = tc.report(y, proba["honest"])
    path = made.save(str(tmp_path / "mine.html"))
    assert path == tmp_path / "mine.html"
    assert path.read_text(encoding="utf-8") == made.html
    viewer = tmp_path / "viewer.sh"
    viewer.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/shown\n')
    viewer.chmod(0o755)
    code = "import truthcal as tc; path = tc.report([0, 1, 1], [0.2, 0.7, 0.8]).open(); print(path)"
    environment = os.environ | {"BROWSER": f"{viewer} %s", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    shown = (tmp_path / "shown").read_text().strip()
    assert shown == f"file://{done.stdout.strip()}"
    with open(done.stdout.strip(), encoding="utf-8") as file:
        assert file.read().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("kind", ["bool", "0/1", "words"])
def test_columns_of_a_frame_are_models_of_one_event(kind):
    pandas = pytest.importorskip("pandas", reason="a frame")
    y, proba = forecasts(300)
    truth = {"bool": y.astype(bool), "0/1": y.astype(int), "words": np.where(y, "yes", "no")}[kind]
    frame = pandas.DataFrame({"y": truth, **proba, "region": np.arange(300) % 2})
    options = {"pos_label": "yes"} if kind == "words" else {}
    models = ["honest", "gamed"]
    by_name, columns = {name: proba[name] for name in models}, {"Outcomes": "y"}
    expected = tc.report(truth, by_name, by=frame[["region"]], provenance=columns, **options)
    assert same(tc.report(frame, "y", models, by="region", **options), expected)
    assert same(tc.report(frame["y"], frame[models], by=frame[["region"]], **options), expected)


def test_columns_of_a_frame_are_classes_if_their_names_or_their_sums_say_so():
    pandas = pytest.importorskip("pandas", reason="a frame")
    y, proba = forecasts(300)
    p = proba["honest"]
    frame = pandas.DataFrame({"y": y.astype(int), "word": np.where(y, "b", "a"), "p_0": 1.0 - p, "p_1": p})
    expected = tc.report(tc.assess(frame, "y", ["p_0", "p_1"]), provenance={"Outcomes": "y"})
    assert same(tc.report(frame, "y", ["p_0", "p_1"]), expected)
    with pytest.raises(ValueError, match="`y_proba` must add up to 1"):
        tc.report(frame.assign(p_0=0.4), "y", ["p_0", "p_1"])
    other = frame.rename(columns={"p_0": "no", "p_1": "yes"})
    needed, sums = "`labels` is needed: `y_true` has the labels", "`y_proba` must add up to 1"
    for column, off, message in (("y", 0.0, needed), ("y", 0.01, sums), ("word", 0.3, sums)):
        with pytest.raises(ValueError, match=message):
            tc.report(other.assign(no=(other["no"] - off).clip(0.0)), column, ["no", "yes"])
    with pytest.raises(ValueError, match="`y_proba` must add up to 1"):
        tc.report(other.assign(no=0.4), "y", ["no", "yes"], labels=[0, 1])
