"""The first screen, a phone and paper, in Chromium: nothing is cut off, whatever the report contains."""

import re

import numpy as np
import pytest
from support.report_pages import class_forecasts, forecasts, segment_table

import truthcal as tc

pytest.importorskip("matplotlib", reason="the report draws its figures with matplotlib")
pytest.importorskip("jinja2", reason="the report fills its page with jinja2")

PHONE = 390
LONG = "probability_of_readmission_within_thirty_days_after_discharge_from_the_hospital_v2"

# Text of elements that leave the page, but for those in a container that scrolls; and containers that leave it.
CUT_OFF = """() => {
  const width = document.documentElement.clientWidth, found = [];
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('svg *') || element.closest('.skip')) continue;
    const box = element.getBoundingClientRect();
    if (!box.width || element.parentElement.closest('.scroll')) continue;
    if (box.left < -0.5 || box.right > width + 0.5) found.push(element.tagName + ' ' + element.textContent.slice(0, 40));
    const style = getComputedStyle(element);
    if (element.scrollWidth > element.clientWidth + 1 && style.display !== 'inline' && element.clientWidth
        && !element.matches('.scroll') && style.overflowX !== 'visible') found.push('hidden part of ' + element.tagName);
  }
  return found;
}"""
# Heights of text in figures, in pixels.
TEXT_HEIGHTS = """() => [...document.querySelectorAll('svg[role=img] text')].map((text) => {
  const { a, b } = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
})"""
OPEN_ALL = "document.querySelectorAll('details').forEach((it) => (it.open = true))"


def one_model():
    y, proba = forecasts()
    return tc.report(y, proba["overconfident"], groups=np.arange(1500) // 2, group_name=LONG)


def three_models():
    return tc.report(*forecasts())


def segments():
    y, proba = forecasts()
    table = segment_table(y, proba["honest"], 10, lambda k: f"{LONG} {k}")
    return tc.report(tc.assess(y, proba["honest"]), segments=table)


def over_time():
    rng = np.random.default_rng(0)
    p, t = rng.random(3000), np.repeat(np.arange(30), 100)
    y = rng.random(3000) < p
    days = np.datetime64("2024-01-01") + 7 * t
    return tc.report(tc.assess(y, p), over_time=tc.assess_over_time(y, p, days, window="week"))


def many_classes():
    y, proba, labels = class_forecasts()
    return tc.report(y, proba["confused"], labels=labels)


def models_of_many_classes():
    y, proba, labels = class_forecasts()
    return tc.report(y, {LONG: proba["honest"], "short": proba["confused"]}, labels=labels)


def long_names():
    y, proba = forecasts()
    named = {LONG: proba["honest"], f"{LONG} b": proba["overconfident"]}
    notes, provenance = [f"column {LONG} was guessed"], {LONG: f"/data/{LONG}/{LONG}.csv"}
    return tc.report(y, named, title=LONG, notes=notes, provenance=provenance)


PAGES = (one_model, three_models, segments, over_time, many_classes, models_of_many_classes, long_names)


@pytest.fixture(scope="module", params=PAGES, ids=lambda make: make.__name__)
def file(request, tmp_path_factory):
    return request.param().save(tmp_path_factory.mktemp("pages") / "report.html")


def opened(browser, file, width, height=860):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(file.as_uri())
    return page


def test_nothing_is_cut_off_on_a_phone(browser, file):
    page = opened(browser, file, PHONE)
    for unfold in (False, True):
        if unfold:
            page.evaluate(OPEN_ALL)
        assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")
        assert page.evaluate(CUT_OFF) == []
    heights = page.evaluate(TEXT_HEIGHTS)
    assert min(heights) >= 9
    # The tables of models and pairs are lists here: nothing in them scrolls.
    stacked = "[...document.querySelectorAll('.stacked')].every((it) => it.scrollWidth <= it.parentElement.clientWidth)"
    assert page.evaluate(stacked)
    page.close()


def test_first_screen_has_the_verdict_and_a_diagram_beside_it(browser, file):
    page = opened(browser, file, 1280)
    words = page.locator(".beside").first.locator("> div").first.bounding_box()
    diagram = page.locator(".beside").first.locator("svg[role=img]").first.bounding_box()
    assert diagram["x"] >= words["x"] + words["width"]
    assert diagram["y"] < 450
    assert diagram["width"] > 150
    assert page.locator(".chip").first.bounding_box()["y"] < 600
    assert page.locator(".rows").first.bounding_box()["y"] < 860
    models = "[...document.querySelectorAll('.models')].every((it) => it.scrollWidth <= it.parentElement.clientWidth)"
    assert page.evaluate(models)
    page.set_viewport_size({"width": 700, "height": 860})
    words = page.locator(".beside").first.locator("> div").first.bounding_box()
    diagram = page.locator(".beside").first.locator("svg[role=img]").first.bounding_box()
    assert diagram["y"] >= words["y"] + words["height"]
    page.close()


def number_of_pages(page):
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))


def test_long_parts_are_folded_on_the_screen_and_printed(browser, file):
    page = opened(browser, file, 1280)
    folded = page.locator("details:not([open])")
    if not file.read_text(encoding="utf-8").count("Table of classes"):
        assert not page.get_by_label("Table of measures").is_visible()
    assert folded.count() > 0
    printed = number_of_pages(page)
    page.evaluate(OPEN_ALL)
    assert number_of_pages(page) == printed > 2
    page.reload()
    page.emulate_media(media="print")
    for each in folded.all():
        inside = each.locator("figure, table").first
        assert inside.bounding_box()["height"] > 40
    page.set_viewport_size({"width": 680, "height": 960})  # the width of A4 paper without margins
    assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")
    page.close()
