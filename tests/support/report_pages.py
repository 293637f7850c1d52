"""Helpers for tests of the report: a strict HTML parser, and forecasters to report on."""

import functools
from html.parser import HTMLParser

import numpy as np

import truthcal as tc

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
# Elements that have no end tag.
_VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page as (tag, attributes, path of open tags), and the text in them. Strict about nesting."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self._open = [], [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}"
        self.elements.append((tag, dict(attrs), tuple(self._open)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self._open or tag == "svg", f"<{tag}/> outside of an svg"
        self.elements.append((tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and data.strip():
            self.texts.append((self._open[-1], data))

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]

    def text(self, tag):
        return [text for name, text in self.texts if name == tag]


@functools.cache
def read(html):
    """The page, read once however many tests look at it."""
    return Page(html)


def text_of(report):
    """The text of a report, on one line."""
    return " ".join(" ".join(text for _, text in read(report.html).texts).split())


def plain(text):
    """Text of a result as the page has it, on one line."""
    return " ".join(text.replace("<=", "\u2264").split())


def forecasts(n=1500, seed=0):
    """Outcomes, and three forecasters: honest, overconfident, and one who always reports the mean outcome."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(1.5, 1.5, n)
    outcome = (rng.random(n) < truth).astype(int)
    odds = truth / (1 - truth)
    return outcome, {"honest": truth, "overconfident": odds**2 / (1 + odds**2), "gamed": np.full(n, outcome.mean())}


def segment_table(outcome, proba, count, name=str):
    """Rows dealt out to `count` segments in turn."""
    group = np.arange(len(outcome)) % count
    sketches = {name(i): tc.Sketch(256).update(outcome[group == i], proba[group == i]) for i in range(count)}
    return tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="segment"))


@functools.cache
def class_forecasts(n=1500, n_classes=13, seed=0):
    """Classes with strange names, and three forecasters: honest, overconfident, and one who confuses two classes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.4), n)
    labels = [SCRIPT, IMAGE, *(f"class {k}" for k in range(2, n_classes))]
    happened = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    power = truth**2
    swapped = truth[:, [1, 0, *range(2, n_classes)]]
    proba = {"honest": truth, "overconfident": power / power.sum(axis=1, keepdims=True), "confused": swapped}
    return [labels[k] for k in happened], proba, labels
