"""The report on many classes: what it says of classes, their confusion and the definition of calibration."""

import dataclasses
import re

import numpy as np
import pytest
from support.report_pages import IMAGE, SCRIPT, class_forecasts, plain, read, text_of

import truthcal as tc
from truthcal.measures.multiclass import DEFINITIONS
from truthcal.reports.class_data import class_report_data, confusion_data
from truthcal.reports.class_wording import class_chips, class_meaning
from truthcal.results.multiclass import Confusion

pytest.importorskip("matplotlib", reason="the report draws its figures with matplotlib")
pytest.importorskip("jinja2", reason="the report fills its page with jinja2")


def test_verdict_and_chips_come_first(class_assessments, classes):
    text, found = text_of(classes), class_assessments["confused"]
    assert found.kind == "miscalibrated"
    assert (
        f"Verdict Miscalibrated 2 of 13 classes off {plain(found.verdict)} Rows are assumed to be independent." in text
    )
    assert SCRIPT in text
    assert IMAGE in text


def test_every_number_is_shown_and_explained(class_assessments, classes):
    text, found = text_of(classes), class_assessments["confused"]
    for row in found.evidence(3):
        assert plain(row.text) in text
        assert plain(row.explanation) in text
        assert class_meaning([found])[row.name] in text


def test_classes_are_in_a_table_worst_first(class_assessments, classes):
    table = re.search(r'aria-label="Table of classes".*?</table>', classes.html, re.DOTALL)[0]
    names = re.findall(r'<tr><th scope="row">([^<]+)</th>', table)
    assert len(names) == 13
    assert set(names[:2]) == {"&lt;script&gt;alert(1)&lt;/script&gt;", "&#34;&gt;&lt;img src=x onerror=alert(1)&gt;"}
    worst = class_assessments["confused"].classes.segments[0]
    assert f"<td>{worst.mean_proba:.3g}</td><td>{worst.mean_true:.3g}</td>" in table


def rows_of_table(html, noun):
    table = re.search(rf'aria-label="Table of {noun}".*?</table>', html, re.DOTALL)[0]
    heading = re.findall(r'<th scope="col">([^<]*)</th>', table)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_page_says_why_a_definition_has_no_value():
    reason = "“canonical” compares all pairs of rows, so it is computed for up to 2,000 rows."
    rng = np.random.default_rng(6)
    p = rng.dirichlet([1.0, 1.0, 1.0], 2001)
    y = (p.cumsum(axis=1) > rng.random((2001, 1))).argmax(axis=1)
    assert [reason in text_of(tc.report(y[:n], p[:n])) for n in (2000, 2001)] == [False, True]


@pytest.mark.parametrize("weighted", [False, True])
def test_events_of_each_class_and_column_are_counted(weighted):
    rng = np.random.default_rng(6)
    p = rng.dirichlet([5.0, 2.0, 1.0], 3000)
    weight = (np.arange(3000) % 4).astype(float) if weighted else None
    counted = np.ones(3000, bool) if weight is None else weight > 0
    y = (p.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    table = rows_of_table(tc.report(y, p, sample_weight=weight).html, "classes")
    assert {row["Class"]: row["Rows"] for row in table} == {str(k): f"{(y[counted] == k).sum():,}" for k in range(3)}
    events = (rng.random(p.shape) < p).astype(int)
    table = rows_of_table(tc.report(events, p, sample_weight=weight, multilabel=True).html, "columns")
    assert {row["Column"]: row["Events"] for row in table} == {
        str(k): f"{events[counted, k].sum():,}" for k in range(3)
    }


def test_twelve_worst_classes_have_diagrams(class_assessments, classes, class_models):
    page = read(classes.html)
    assert len(page.all("figure")) == 12
    described = page.text("desc")
    assert all(text.startswith("Mean gap of ") for text in described)
    assert "The 12 clearest findings have a diagram." in text_of(classes)
    assert len(read(class_models.html).all("figure")) == 3 * 4
    y, proba, labels = class_forecasts()
    (data,) = class_report_data({"": class_assessments["confused"]})
    k = labels.index(data.panels[0].segment.key)
    curve = tc.reliability_curve(np.array(y) == labels[k], proba["confused"][:, k])
    np.testing.assert_allclose(data.panels[0].curve.mean_true, curve.mean_true)


def test_confusion_marks_significant_pairs(class_assessments, classes):
    confusion = class_assessments["confused"].confusion
    assert confusion.significant[0, 1]
    assert confusion.significant[1, 0]
    assert confusion.sentence in text_of(classes)
    gap = 100 * (confusion.observed - confusion.predicted)[0, 1]
    assert re.search(rf'<td class="more[123]"><strong>{re.escape(f"{gap:+.1f}")}\*</strong></td>', classes.html)
    assert "12 of 13 classes with the clearest differences are shown" in text_of(classes)


def test_table_of_confusion_has_shades_and_short_headings():
    gap = np.array([[-0.12, 0.12, 0.0], [0.02, -0.02, 0.0], [np.nan, np.nan, np.nan]])
    significant = gap > 0.1
    data = confusion_data(Confusion(("a", "b", "c"), np.zeros((3, 3)), gap, gap, None, significant))
    assert [[cell.shade for cell in row] for row in data.rows] == [[-3, 3, 0], [1, -1, 0], [0, 0, 0]]
    assert data.rows[0][1].significant
    assert (data.labels, data.headings) == (["a", "b", "c"], ["a", "b", "c"])
    long = confusion_data(Confusion(("a" * 11, "b", "c"), np.zeros((3, 3)), gap, gap, None, significant))
    assert long.headings == ["1", "2", "3"]
    assert long.labels == [f"1. {'a' * 11}", "2. b", "3. c"]


def test_definitions_are_named_and_the_gameable_one_is_said_to_be(classes, class_assessments):
    text = text_of(classes)
    for row in DEFINITIONS.values():
        assert row.meaning in text
    y, proba, labels = class_forecasts()
    for name in ("classwise", "canonical", "top_label"):
        value = tc.multiclass_atb(y, proba["confused"], definition=name, labels=labels)
        truthful = "no" if name == "top_label" else "yes"
        assert f"{name} {value:.3g} {truthful} {DEFINITIONS[name].meaning}" in text
    assert "It can be gamed" in text


def test_several_models_are_side_by_side(class_models, class_assessments):
    text = text_of(class_models)
    assert "Which of these 3 models can be trusted?" in text
    assert "honest has the better" in text
    for found in class_assessments.values():
        assert plain(found.verdict) in text


def test_no_green_tick_if_the_error_may_be_large(class_assessments):
    found = dataclasses.replace(class_assessments["honest"], kind="calibrated")
    wide = dataclasses.replace(found, error=dataclasses.replace(found.error, high=0.2))
    narrow = dataclasses.replace(found, error=dataclasses.replace(found.error, high=0.02))
    assert class_chips(narrow)[0].mood == "good"
    assert class_chips(wide)[0].mood == "unsure"


def test_a_few_wrong_classes_are_said_with_a_verdict_that_is_not_bad(class_assessments):
    found = dataclasses.replace(class_assessments["confused"], kind="calibrated", verdict="Calibrated.")
    assert f"Calibrated. But {found.classes.verdict}" in text_of(tc.report(found))


def test_groups_weights_and_two_classes_make_a_report():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 400)
    y = (p.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    page = tc.report(tc.assess(y, p, groups=np.arange(400) // 4, sample_weight=rng.uniform(0.5, 1.0, 400)))
    assert "Groups of rows are independent" in text_of(page)
    two = tc.report(tc.assess(y > 0, np.column_stack([p[:, 0], 1.0 - p[:, 0]])))
    assert len(read(two.html).all("figure")) == 2


def test_independent_columns_make_a_report_without_confusion():
    rng = np.random.default_rng(3)
    p = rng.random((200, 3))
    page = tc.report(tc.assess((rng.random(p.shape) < p).astype(int), p, multilabel=True))
    text = text_of(page)
    assert "Columns are independent events" in text
    assert "How often the event of each column happened" in text
    assert "Rows are assumed to be independent." in text
    assert "Confusion" not in text
    assert "top_label" not in text


def test_many_models_of_many_classes_stay_small(class_assessments, reuse_figures):
    reuse_figures(2)
    page = tc.report({f"model {i}": class_assessments["confused"] for i in range(12)})
    assert len(page.html.encode()) < 300_000


@pytest.mark.parametrize("name", ["classes", "class_models"])
def test_file_is_small(request, name):
    assert len(request.getfixturevalue(name).html.encode()) < 150_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": "mixed"}, r"`y_true` mixes predictions of one event \('a'\) and of many classes \('b'\)"),
        ({"y_true": "copied"}, r"`y_true` contains an assessment without rows or sketch to draw curves from"),
        ({"segments": "table"}, r"`segments` is for predictions of one event, not for many classes\. Omit it\."),
        ({"exact_distcal": True}, r"`exact_distcal` is for predictions of one event, not for many classes"),
    ],
)
def test_wrong_arguments_get_clear_errors(models, class_assessments, segments, change, message):
    found = class_assessments["honest"]
    known = {
        "mixed": {"a": models["honest"], "b": found},
        "copied": dataclasses.replace(found, _rows=None),
        "table": segments,
    }
    arguments = {"y_true": found} | {
        name: known.get(value, value) if isinstance(value, str) else value for name, value in change.items()
    }
    with pytest.raises(ValueError, match=message):
        tc.report(**arguments)
