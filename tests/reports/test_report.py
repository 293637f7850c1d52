import base64
import dataclasses
import datetime
import hashlib
import re
import sys

import numpy as np
import pytest
from support.report_pages import IMAGE, SCRIPT, forecasts, plain, read, segment_table, text_of

import truthcal as tc
from truthcal.reports import provenance
from truthcal.reports.data import unique_labels
from truthcal.reports.wording import MEANING

pytest.importorskip("matplotlib", reason="the report draws its figures with matplotlib")
pytest.importorskip("jinja2", reason="the report fills its page with jinja2")


def rows_of(html):
    """The measures: name and value."""
    return dict(re.findall(r'<tr><th scope="row">(\w+)<small>[^<]+</small></th><td class="n">([^<]+)</td>', html))


@pytest.fixture(params=["single", "several", "classes", "class_models"])
def made(request):
    return request.getfixturevalue(request.param)


# --- the page ---------------------------------------------------------------------------------------------------------


def test_page_is_one_html_document(made):
    page = read(made.html)
    assert made.html.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert page.text("title")[0] == made.title
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    assert page.all("meta")[0] == {"charset": "utf-8"}
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    for _, attributes, _ in page.elements:
        assert set(attributes.get("aria-labelledby", "").split()) <= set(ids)


def test_page_has_no_script_no_address_and_no_style_of_its_own(made):
    page = read(made.html)
    allowed = {"html", "head", "meta", "title", "style", "body", "a", "header", "main", "footer", "nav", "section"}
    allowed |= {"h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "div", "span", "strong", "small", "code", "figure"}
    allowed |= {"figcaption", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    allowed |= {"svg", "desc", "defs", "path", "g", "use", "text", "clippath", "rect"}
    assert {tag for tag, _, _ in page.elements} <= allowed
    for tag, attributes, _ in page.elements:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith("#"), tag
        assert not {"src", "srcset", "action", "xlink:href"} & attributes.keys()
    assert "url(" not in re.sub(r"url\(#f\d+-\d+\)", "", made.html)
    assert "@import" not in made.html
    assert "http://" not in made.html
    assert "https://" not in made.html


def test_policy_lets_in_the_one_style_sheet_and_nothing_else(made):
    page = read(made.html)
    style = re.search(r"<style>(.*?)</style>", made.html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert len(page.all("style")) == 1


def test_headings_are_in_order(made):
    levels = [int(tag[1]) for tag, _, _ in read(made.html).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1


def test_figures_and_tables_say_what_they_are(made):
    page = read(made.html)
    images = [attributes for attributes in page.all("svg") if attributes.get("role") == "img"]
    assert len(images) == len(page.all("figure")) == len(page.all("figcaption")) > 3
    described = page.text("desc")
    assert all(re.search(r"\d", text) for text in described)
    assert len(described) == len(images)
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))
    scrolling = [attributes for attributes in page.all("div") if attributes.get("class") == "scroll"]
    wide = [attributes for attributes in page.all("figure") if attributes.get("class") == "wide"]
    assert len(scrolling) == len(page.all("table")) + len(wide)  # the wide figure of segments scrolls, too
    assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in scrolling)
    assert len({attributes["aria-label"] for attributes in scrolling}) == len(scrolling)


def test_every_number_of_the_assessment_is_shown_and_explained(models, single):
    text = text_of(single)
    evidence = models["overconfident"].evidence(digits=3)
    assert {row.name for row in evidence} == set(MEANING) - {"groups", "event"}  # rows without groups, outcomes 0 and 1
    for row in evidence:
        assert row.name in text
        assert plain(row.text) in text
        assert plain(row.explanation) in text
        assert MEANING[row.name] in text


def test_verdict_comes_first(models, single):
    text = text_of(single)
    chip, verdict = text.index("Verdict Overconfident"), text.index(plain(models["overconfident"].verdict))
    assert 0 < chip < verdict < text.index("Key numbers")


def test_miscalibrated_segments_are_said_with_the_verdict(models, one_off, several, segments, single):
    """Before the diagram and the key numbers, right below what is said of all rows."""
    verdict = plain(models["honest"].verdict)
    assert f"Calibrated 1 of 4 segments off {verdict} But {one_off.verdict} " in text_of(several)
    over = plain(models["overconfident"].verdict)
    whole = f"Overconfident 4 of 4 segments off {over} And {segments.verdict} Rows are assumed to be independent. "
    assert whole in text_of(single)


def test_segments_in_which_nothing_was_found_are_not_called_calibrated(several):
    cells = re.findall(r'<td class="(\w+)">([^<]+)</td><td>375</td>', several.html)
    assert cells.count(("bad", "Too high")) == 1
    assert cells.count(("neutral", "Not significant")) == 3
    assert not [text for _, text in cells if text == "Calibrated"]


def test_page_is_html_without_errors(made):
    html5lib = pytest.importorskip("html5lib", reason="a strict reader of HTML")
    html5lib.HTMLParser(strict=True).parse(made.html)


@pytest.mark.parametrize("made", ["single", "several"], indirect=True)
def test_only_the_verdict_says_where_it_is_worst(made):
    assert made.html.count("Worst place: at least") == 1
    assert "largest part" not in made.html


def test_shared_diagram_has_a_line_for_each_model(several):
    items = re.search(r"<figcaption>.*?<ul>(.*?)</ul>", several.html, re.DOTALL)[1]
    lines = re.findall("<li>(.*?)</li>", items)
    assert [line.split(":")[0] for line in lines] == [
        "honest",
        "overconfident",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ]
    assert all(
        re.search(
            r": mean gap of [\d.]+ between predictions and frequencies in \d+ isotonic pools? \(1,500 rows\)", line
        )
        for line in lines
    )


def test_mean_gap_is_that_of_the_curve(models, single):
    outcome, proba = forecasts()
    curve = tc.reliability_curve(outcome, proba["overconfident"])
    gap = sum(w * abs(p - y) for w, p, y in zip(curve.weight, curve.mean_proba, curve.mean_true, strict=True))
    assert (
        f"Mean gap of {gap:.3g} between predictions and frequencies in {len(curve.weight)} isotonic pools"
        in text_of(single)
    )


def test_no_number_pretends_to_four_digits(made):
    """But for certified bounds, which a sketch has: these reports are of rows."""
    text = re.sub(r"truthcal \S+, Python .*", "", text_of(made))
    numbers = re.findall(r"(?<![\w.,])[+-]?(\d\.\d+)(?:e-\d+)?(?![\w.%])", text)
    assert len(numbers) > 50
    assert [number for number in numbers if len(number.replace(".", "").lstrip("0")) > 3] == []


def test_texts_say_what_atb_and_scales_are(single):
    text = text_of(single)
    assert "the squared bias below a threshold plus the squared bias above it, averaged over all thresholds" in text
    for unclear in (
        "integrates its square",
        "its root is where",
        "lengths of the mean error",
        "the measure that no lie",
    ):
        assert unclear not in text
    assert "Truthful measures are marked" in text


def test_measures_are_those_of_the_rows(models, several):
    outcome, proba = forecasts()
    table = tc.all_measures(outcome, proba["honest"])
    assert rows_of(several.html) == {row.name: f"{row.value:.3g}" for row in table.rows} | {"distcal": "\N{EN DASH}"}
    text = text_of(several)
    for row in table.rows:
        what = tc.MEASURES[row.name].function.__doc__.strip().splitlines()[0].replace("`", "")
        assert f"{row.name} {what} " in text


def test_gameable_measures_are_named(single):
    (sentence,) = re.findall(r"can be gamed: ([\w, ]+)\.", single.html)
    assert set(sentence.split(", ")) == {name for name, measure in tc.MEASURES.items() if not measure.truthful}
    assert "truthcal audit" in single.html


def test_segments_are_shown_with_their_intervals(single, segments):
    text = text_of(single)
    assert " ".join(segments.verdict.split()) in text
    worst = segments.segments[0]
    assert worst.bias_interval.ends("+") in text
    assert f"{worst.error.low:.3g} to {worst.error.high:.3g}" in text
    assert len(re.findall('<tr><th scope="row">(?:segment|&#34;)', single.html)) == 4


def test_warnings_are_shown(models, several):
    (warning,) = models["gamed"].warnings
    text = text_of(several)
    assert warning in text
    assert (
        text.count("errors of neighbouring rows are correlated (z = 9.1 in the order of the rows of each segment)") == 1
    )
    assert text.count("errors of neighbouring rows have opposite signs (z = -9.2 in the order of the rows)") == 1


def test_several_models_are_named_and_compared_by_name(models, several):
    outcome, proba = forecasts()
    found = tc.compare(outcome, proba["honest"], proba["gamed"])
    text = text_of(several)
    assert dataclasses.replace(found, names=("honest", SCRIPT)).verdict in text
    for name, assessment in {"honest": models["honest"], "overconfident": models["overconfident"]}.items():
        error, size = assessment.error, assessment.error.size(3).replace("<=", "\N{LESS-THAN OR EQUAL TO}")
        ends = f" {error.ends()}" if error.low > 0.0 else ""
        off = {"overconfident": "4 of 4 segments off", "honest": "1 of 4 segments off"}[name]
        assert f" {name} {size}{ends} " in text
        scores = f"{assessment.brier:.3g} {assessment.decomposition.discrimination:.3g}"
        assert f"{scores} {assessment.kind.capitalize()} {off}" in text
    assert "Each has 1,500 rows." in text


def test_how_to_reproduce(single):
    text = text_of(single)
    assert "Command truthcal report rain.csv" in text
    assert f"truthcal {tc.__version__}, Python 3." in text
    assert f"numpy {np.__version__}, scipy " in text


def test_same_input_gives_the_same_bytes_but_for_the_date(models, monkeypatch):
    def make(day):
        monkeypatch.setattr(provenance, "today", lambda: datetime.date(2026, 11, day))
        made = tc.report({"gamed": models["gamed"]})
        assert made.title == "Can the probabilities of gamed be trusted?"
        return made.html

    first, second = make(16), make(17)
    assert first.count("2026-11-16") == 1
    assert first.replace("2026-11-16", "2026-11-17") == second


# --- what comes from the user -----------------------------------------------------------------------------------------


def test_names_stay_text(single, several):
    for made in (single, several):
        assert "<script" not in made.html
        assert "<img" not in made.html
    assert read(single.html).text("title")[:1] == [f"Rain \"in\" 'May' {SCRIPT}"]
    assert f"column {SCRIPT} was guessed" in text_of(single)
    assert f"{SCRIPT}.csv" in text_of(single)
    assert IMAGE in read(single.html).text("th")
    assert SCRIPT in read(several.html).text("h2")
    assert any("<script>" in text for text in read(several.html).text("text"))


def test_twelve_models_of_strange_names_are_shown_as_they_are(models, reuse_figures):
    reuse_figures(2)
    names = ["{{ 7*7 }} {% raw %}", "$\\frac{1}$", "_hidden", "a\nb\x00\x1b\x85\ud800\u202e", "long" * 500, ""]
    names += ["\u6f22\u5b57 \U0001f600", "</style></svg>-->]]>"]
    names += ["  ", "n" * 100_000, "\u200e\u200f\u061c", "model"]
    made = tc.report(dict.fromkeys(names, models["gamed"]), notes=names)
    page = read(made.html)
    assert len(names) == 12
    assert len(page.all("figure")) == 1 + 12 * 2  # many models have two figures each
    assert len(made.html.encode()) < 300_000
    headings = page.text("h2")
    for name in names[:3] + names[6:8]:
        assert name in headings
    for name in ("a b" + 5 * "\ufffd", 3 * "\ufffd", "n" * 133 + "\u2026" + "n" * 66):
        assert name in headings
    assert headings.count("(no name)") == 2
    assert "n" * 1000 not in made.html  # in notes neither
    assert made.html.encode().decode() == made.html
    legend = " ".join(page.text("text"))
    for shown in (
        "{{ 7*7 }} {% raw %}",
        "$\\frac{1}$",
        "_hidden",
        "longlonglonglonglo\u2026glonglong",
        "(no name)",
        "\u6f22",
    ):
        assert shown in legend


# --- any data ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "proba"),
    [
        ([1], [0.3]),
        ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0]),
        ([0, 1, 1, 0], [0.0, 0.0, 1.0, 1.0]),
        ([0, 0, 0], [0.5, 0.5, 0.5]),
        ([0, 1], [0.2, 0.2]),
    ],
    ids=["one row", "always right", "half wrong", "one class", "two rows"],
)
def test_few_rows_make_a_report(outcome, proba):
    found = tc.assess(outcome, proba, hard=True)
    made = tc.report(found)
    assert made.title == "Can these probabilities be trusted?"
    assert plain(found.verdict) in text_of(made)
    assert "nan" not in re.findall(r"[a-z]+", text_of(made))
    assert "NaN" not in made.html


def test_sketch_makes_a_report_with_certified_bounds():
    outcome, proba = forecasts()
    sketch = tc.Sketch(64).update(outcome, proba["overconfident"])
    text = text_of(tc.report(tc.assess(sketch)))
    bounds = sketch.atb()
    assert (
        f"with 64 buckets. ATB is {bounds.value:.6g}; its exact value is certain to lie between {bounds.low:.6g} and {bounds.high:.6g}."
        in text
    )
    assert re.search(rf"atb_l1 ATB with [^.]*\. {sketch.atb_l1().value:.3g} ", text)
    assert "Only measures that can be computed from a sketch are shown" in text


def test_weighted_rows_make_a_report_with_the_measures_of_these_weights():
    outcome, proba = forecasts(300)
    weight = np.arange(300) % 4
    assessment = tc.assess(outcome, proba["honest"], sample_weight=weight)
    made = tc.report(assessment, exact_distcal=True)
    expected = tc.all_measures(outcome, proba["honest"], sample_weight=weight)
    assert rows_of(made.html) == {row.name: f"{row.value:.3g}" for row in expected.rows}
    (low, high) = re.findall(
        r"distcal: between ([\d.]+) and ([\d.]+), by atb_l1, smcal", text_of(tc.report(assessment))
    )[0]
    assert float(low) <= expected["distcal"] <= float(high)


def test_six_models_with_sixty_segments_each_stay_small_and_show_fifty(reuse_figures):
    """The same model six times: intervals of segments and figures, which take long, are made once."""
    drawn = reuse_figures(5)
    outcome, proba = forecasts(2000)
    p = np.clip(proba["honest"] + np.random.default_rng(1).normal(0, 0.1, 2000), 0, 1)
    names = [f"model number {i}" for i in range(6)]
    table = segment_table(outcome, p, 60, lambda i: f"segment number {i}")
    made = tc.report(dict.fromkeys(names, tc.assess(outcome, p)), segments=dict.fromkeys(names, table))
    assert len(made.html.encode()) < 300_000
    assert len(re.findall('<tr><th scope="row">segment number', made.html)) == 300
    assert made.html.count("10 more are not shown.") == 6
    assert len(re.findall("<figure", made.html)) == 31
    assert len(drawn) == 6


# --- what is returned, and errors -------------------------------------------------------------------------------------


def test_report_prints_in_one_line_and_saves_whole(models, tmp_path):
    made = tc.report(models["gamed"], title='a\n"b" & {{ 7*7 }}\x00')
    assert read(made.html).text("title")[0] == 'a\n"b" & {{ 7*7 }}\ufffd'
    line = r"Report 'a\\n\"b\" & \{\{ 7\*7 \}\}\\x00': \d+ kB of HTML in one file; \.save\(path\) writes it\."
    assert re.fullmatch(line, str(made))
    assert repr(made) == str(made)
    made.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == made.html.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match=r"missing/report\.html"):
        made.save(tmp_path / "missing" / "report.html")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.title = "Snow"


def test_report_without_jinja2_says_how_to_get_it(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=re.escape("the report needs jinja2 and matplotlib: pip install 'truthcal[report]'.")
    ):
        tc.report(models["gamed"])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_true": {}}, ValueError, "`y_true` is empty; it needs at least one model."),
        ({"y_true": [1]}, TypeError, "`y_true` must be outcomes beside `y_proba`, a Sketch, a result of truthcal.assess, or a mapping of names to sketches or results; got [1]."),
        ({"y_true": {"a": 3}}, TypeError, "`y_true` must contain results of truthcal.assess; 'a' is 3."),
        ({"y_true": {3: "gamed"}}, TypeError, "`y_true` must have names that are str; got 3. Use str(name)."),
        ({"y_true": dict.fromkeys(map(str, range(13)), "gamed")}, ValueError, "`y_true` has 13 models, but a report can show at most 12"),
        ({"y_true": {"a": "bare"}}, ValueError, "`y_true` contains an assessment of 'a' without rows or sketch to draw curves from"),
        ({"segments": 3}, TypeError, "`segments` must be a result of truthcal.assess_segments; got 3."),
        ({"segments": {"b": "segments"}}, ValueError, "`segments` names 'b', but the report has 'a'."),
        ({"segments": {"a": 3}}, TypeError, "`segments` must contain results of truthcal.assess_segments; 'a' is 3."),
        ({"y_true": "gamed", "segments": {"b": "segments"}}, ValueError, "`segments` names 'b', but the report has one model without a name; pass a mapping."),
        ({"y_true": {"a": "gamed", "b": "gamed"}, "segments": "segments"}, ValueError, "`segments` must be a mapping of names to tables if there are 2 models, for example {'a': segments}."),
        ({"over_time": 3}, TypeError, "`over_time` must be a result of truthcal.assess_over_time; got 3."),
        ({"over_time": {"a": 3}}, TypeError, "`over_time` must contain results of truthcal.assess_over_time; 'a' is 3."),
        ({"comparisons": 3}, TypeError, "`comparisons` must be a result of truthcal.compare_models, or a mapping of pairs of names to results of truthcal.compare; got 3."),
        ({"comparisons": {"ab": 3}}, TypeError, "`comparisons` must have pairs of names as keys, like ('old', 'new'); got 'ab'."),
        ({"comparisons": {("a", "b"): 3}}, ValueError, "`comparisons` names 'b', but the report has 'a'."),
        ({"comparisons": {("a", "a"): 3}}, ValueError, "`comparisons` compares 'a' with itself; it needs two models."),
        ({"y_true": {"a": "gamed", "b": "gamed"}, "comparisons": {("a", "b"): 3}}, TypeError, "`comparisons` must contain results of truthcal.compare; ('a', 'b') is 3."),
        ({"group_name": 3}, TypeError, "`group_name` must be str; got 3."),
        ({"sample_weight": [1, 2]}, ValueError, "`sample_weight` is for rows, but `y_true` holds results or sketches. Pass it to truthcal.assess, or pass the rows: truthcal.report(y_true, y_proba)."),
        ({"y_proba": [0.2]}, ValueError, "`y_proba` is for rows, but `y_true` holds results or sketches."),
        ({"multilabel": True}, ValueError, "`multilabel` is for rows, but `y_true` holds results or sketches."),
        ({"y_true": [0, 1], "y_proba": {}}, ValueError, "`y_proba` is empty; it needs at least one model."),
        ({"y_true": [0, 1], "y_proba": {1: [0.2, 0.3]}}, TypeError, "`y_proba` must have names that are str; got 1. Use str(name)."),
        ({"title": 3}, TypeError, "`title` must be str; got 3."),
        ({"provenance": [1]}, TypeError, "`provenance` must be a mapping of str to str; got [1]."),
        ({"provenance": {"rows": 3}}, TypeError, "`provenance` must map str to str; got 'rows': 3."),
        ({"notes": "one"}, TypeError, "`notes` must be a sequence of str, like ['column p was guessed']; got 'one'."),
        ({"notes": [3]}, TypeError, "`notes` must contain str; got 3."),
    ],
)  # fmt: skip
def test_wrong_arguments_get_clear_errors(models, segments, change, error, message):
    def real(value):
        if isinstance(value, dict):
            return {key: real(own) for key, own in value.items()}
        if value == "bare":
            return dataclasses.replace(models["gamed"], _summary=None)
        return {"gamed": models["gamed"], "segments": segments}.get(value, value) if isinstance(value, str) else value

    arguments = {"y_true": {"a": models["gamed"]}} | {
        key: value if key == "notes" else real(value) for key, value in change.items()
    }
    with pytest.raises(error, match=re.escape(message)):
        tc.report(arguments.pop("y_true"), **arguments)


def test_labels_are_all_different():
    names = ["m" * 40 + str(i) + "m" * 40 for i in range(3)]
    found = unique_labels(names)
    assert len(set(found)) == 3
    assert max(map(len, found)) <= 28


# --- over time --------------------------------------------------------------------------------------------------------


def over_time(factor, windows=12):
    rng = np.random.default_rng(0)
    p, t = rng.random(200 * windows), np.repeat(np.arange(windows), 200)
    y = rng.random(len(t)) < np.where(t < windows // 2, 1.0, factor) * p
    day = np.datetime64("2024-01-01") + 7 * t
    return tc.assess(y, p), tc.assess_over_time(y, p, day, window="week")


def test_a_change_is_in_the_verdict_and_in_its_own_section():
    assessment, result = over_time(0.6)
    report = tc.report(assessment, over_time=result)
    page, text = read(report.html), text_of(report)
    assert result.kind == "changed"
    assert plain(result.verdict) in text
    assert f"Changed around {result.change.label}" in page.text("span")
    assert "Over time" in page.text("h2")
    assert "Error over time" in page.text("strong")
    assert all(window.label in page.text("th") for window in result.windows)


def test_stable_models_have_no_chip_and_many_windows_are_cut():
    assessment, result = over_time(1.0, windows=70)
    assert result.kind == "stable"
    report = tc.report({"a": assessment, "b": assessment}, over_time={"b": result})
    page = read(report.html)
    assert page.text("h3").count("Over time") == 1
    assert not any("Changed around" in text for text in page.text("span"))
    assert "Only the last 60 of 70 windows are shown." in text_of(report)
    labels = [window.label for window in result.windows]
    assert labels[9] not in page.text("th")
    assert labels[10] in page.text("th")


def test_columns_of_a_frame_are_named_at_the_end():
    pandas, rng = pytest.importorskip("pandas"), np.random.default_rng(3)
    frame = pandas.DataFrame({"clicked <b>": rng.integers(0, 2, 200), "score": rng.random(200)})
    page = tc.report(frame, "clicked <b>", "score", provenance={"Predictions": "of mine"}).html
    outcomes, predictions = page[page.index("How to reproduce") :].split("Predictions")
    assert "clicked &lt;b&gt;" in outcomes.split("Outcomes")[1]
    assert "of mine" in predictions
    assert "score" not in predictions[:60]
