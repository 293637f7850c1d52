"""The report in Chromium: it is readable, loads nothing and runs nothing."""

import re

import pytest
from support.report_pages import IMAGE, SCRIPT

pytest.importorskip("matplotlib", reason="the report draws its figures with matplotlib")
pytest.importorskip("jinja2", reason="the report fills its page with jinja2")

# The smallest contrast of all text that is shown, and whose: WCAG's formula, on the nearest ground that is not clear.
CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color[3] > 0) return color;
    }
    return [255, 255, 255, 1];
  };
  let worst = [99, ""], count = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), below = ground(element);
    let ink = parse(element instanceof SVGElement ? style.fill : style.color);
    let alpha = ink[3] * (element instanceof SVGElement ? style.fillOpacity : 1);
    for (let e = element; e; e = e.parentElement) alpha *= getComputedStyle(e).opacity;
    ink = ink.map((c, i) => alpha * c + (1 - alpha) * below[i]);
    const [high, low] = [light(ink), light(below)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    count += 1;
    if (contrast < worst[0]) worst = [contrast, walk.currentNode.data.slice(0, 60)];
  }
  return { worst, count };
}"""


FITS = "document.scrollingElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module", params=["single", "several", "classes"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "a report.html"
    request.getfixturevalue(request.param).save(path)
    return path


# For what does not depend on how many models there are.
one_is_enough = pytest.mark.parametrize("file", ["single"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def open_page(browser, file):
    """Opens the report as a reader would, from a file, and records its messages and requests."""
    contexts = []

    def open_page(width=1400, scheme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def opened(open_page):
    """Opens a page for one test, which may change it."""
    pages = []

    def open_for_test(*arguments, **options):
        pages.append(open_page(*arguments, **options))
        return pages[-1]

    yield open_for_test
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def unfolded(open_page):
    """Opens a page with all details shown, once for all tests, which only look at it."""
    pages = {}

    def open_details(width=1400, scheme="light"):
        if (width, scheme) not in pages:
            page = pages[width, scheme] = open_page(width, scheme)
            page.fitted_folded = page.evaluate(FITS)
            page.evaluate("document.querySelectorAll('details').forEach((it) => (it.open = true))")
        return pages[width, scheme]

    return open_details


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
def test_page_is_quiet_asks_for_nothing_and_fits(unfolded, file, width, scheme):
    page = unfolded(width, scheme)
    assert page.fitted_folded
    assert page.evaluate(FITS)
    assert page.complaints == []
    assert page.requests == [file.as_uri()]


def test_headings_and_figures_are_visible(opened, unfolded):
    page = opened()
    assert page.locator("h1").is_visible()
    for heading in page.locator("h2").all():
        assert heading.is_visible()
    page = unfolded()
    figures = page.locator("figure > svg, figure > .scroll > svg")
    assert figures.count() == page.locator("figure").count() > 3
    for figure in figures.all():
        box = figure.bounding_box()
        assert box["width"] > (190 if figure.locator("xpath=ancestor::*[@class='panels']").count() else 250)
        assert box["height"] > 100
        assert figure.locator("path").count() > 2


def test_nothing_drawn_or_written_leaves_its_figure(unfolded):
    page = unfolded()
    outside = page.evaluate(
        """() => [...document.querySelectorAll('svg[role=img]')].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text')].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
          }).map((text) => text.textContent);
        })"""
    )
    assert outside == []


@pytest.mark.parametrize("width", [400, 1400])
def test_text_in_figures_is_large_enough_to_read(unfolded, width):
    page = unfolded(width)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('svg[role=img] text')].map((text) => {
          const { a, b } = text.getScreenCTM();
          return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
        })"""
    )
    assert len(sizes) > 80
    assert 11 <= min(sizes) <= max(sizes) <= 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(unfolded, scheme):
    page = unfolded(1400, scheme)
    found = page.evaluate(CONTRAST)
    assert found["count"] > 200
    assert found["worst"][0] >= 4.5, found["worst"]


@one_is_enough
def test_dark_mode_turns_ground_and_ink_around(opened):
    look = "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color] })()"
    line = "getComputedStyle(document.querySelector('svg[role=img] text')).fill"
    light, dark = opened(scheme="light"), opened(scheme="dark")
    assert light.evaluate(look) == ["rgb(255, 255, 255)", "rgb(27, 30, 34)"]
    assert dark.evaluate(look) == ["rgb(21, 24, 27)", "rgb(231, 233, 236)"]
    assert light.evaluate(line) == "rgb(27, 30, 34)"
    assert dark.evaluate(line) == "rgb(231, 233, 236)"


@pytest.mark.parametrize("file", ["single", "several"], indirect=True, scope="module")
def test_page_prints_light_with_all_details(opened):
    page = opened(700, "dark")
    hidden = page.locator("details figure").first
    assert not hidden.is_visible()
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 2
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert hidden.bounding_box()["height"] > 100
    assert page.evaluate(FITS)
    assert not page.locator(".skip").is_visible()
    assert page.evaluate(CONTRAST)["worst"][0] >= 4.5


@pytest.mark.parametrize("file", ["classes"], indirect=True, scope="module")
def test_page_of_classes_prints_light_and_fits(opened):
    page = opened(700, "dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(FITS)
    assert page.locator(".confusion").bounding_box()["width"] <= 700
    assert page.evaluate(CONTRAST)["worst"][0] >= 4.5


@pytest.mark.parametrize("file", ["several"], indirect=True, scope="module")
def test_keyboard_reaches_the_skip_link_and_all_that_scrolls(opened):
    page = opened(400)
    page.evaluate("document.querySelectorAll('details').forEach((it) => (it.open = true))")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#verdict"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    scrolling = page.evaluate("[...document.querySelectorAll('.scroll')].map((it) => it.getAttribute('aria-label'))")
    assert set(scrolling) <= reached


@one_is_enough
def test_wide_table_scrolls_by_keyboard(opened):
    page = opened(400)
    page.get_by_text("Table of 22 measures").click()
    table = page.get_by_label("Table of measures")
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(it) => it.scrollLeft > 0", arg=table.element_handle(), timeout=5000)


def test_names_stay_text_and_nothing_runs(opened):
    page = opened()
    assert page.locator("script, img, iframe, object, embed, link").count() == 0
    text = page.locator("body").inner_text()
    assert SCRIPT in text
    assert IMAGE in text
    assert page.complaints == []


@one_is_enough
def test_policy_is_enforced(opened):
    page = opened()
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
          const style = document.createElement('style');
          style.textContent = 'body { background: rgb(1, 2, 3) !important }';
          document.body.append(style);
          document.body.insertAdjacentHTML('beforeend', '<p id="late" style="color: rgb(1, 2, 3)" onclick="window.ran = true">late</p>');
          document.getElementById('late').click();
        }"""
    )
    assert page.evaluate("window.ran") is None
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.getElementById('late')).color") == "rgb(27, 30, 34)"
    assert sum("Content Security Policy" in message for message in page.complaints) >= 3


@one_is_enough
def test_reader_of_the_page_hears_what_figures_show(opened):
    page = opened()
    heard = page.get_by_role("img", name="Reliability diagram").first
    assert heard.is_visible()
    words = heard.get_attribute("aria-labelledby").split()
    assert re.search(r"\d+ isotonic pools", page.locator(f"#{words[1]}").text_content())
