"""docs/theory/paper.md, written by `make paper`, lists every numbered item, and its code gives its numbers."""

import dataclasses
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "theory" / "paper.md").read_text(encoding="utf-8")
COUNTS = {"1": 6, "2": 17, "3": 6, "4": 12, "5": 4, "A": 4, "B": 1, "C": 5}  # environments of each section
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
ITEMS = {
    match[1]: row
    for row in ROWS
    if len(row) == 5 and (match := re.match(r"\[?([A-Z][a-z]+ [\dA-C](?:\.\d+)?)\b", row[0]))
}
FAST = [
    *("Figure 2", "Section 1.5", "Definition 2.3", "Claim 2.7", "Definition 2.10", "Definition 2.16"),
    *("Definition 3.1", "Lemma 3.3", "Lemma 3.6", "Corollary 4.5", "Lemma 4.7", "Lemma 5.4", "Table 1"),
]


def block(number):
    """The imports of the page with the code of an item, and its shown numbers by label."""
    text = PAGE.split(f"<summary>{number}: code and numbers</summary>")[1].split("</details>")[0]
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    imports = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    return imports + code, {row[0]: float(row[-1]) for row in rows}


def test_every_numbered_item_is_listed_in_the_papers_order():
    theorems = [number.split()[1] for number in ITEMS if not number.startswith(("Figure", "Table", "Section"))]
    assert theorems == [f"{section}.{k}" for section, count in COUNTS.items() for k in range(1, count + 1)]
    assert {"Figure 1", "Figure 2", "Table 1", "Section 1.5"} <= ITEMS.keys()


@pytest.mark.parametrize("number", FAST)
def test_the_code_shown_gives_the_numbers_shown(number):
    code, shown = block(number)
    names = {}
    exec(code, names)
    found = names[re.findall(r"^def (\w+)", code, re.MULTILINE)[0]]()
    assert found == pytest.approx(shown, rel=1e-5, abs=2e-5)


def test_figures_exist_and_have_labels():
    figures = re.findall(r"^!\[.+\]\((figures/\w+\.svg)\)$", PAGE, re.MULTILINE)
    assert len(figures) == 6
    for figure in figures:
        texts = re.findall(r"<text[^>]*>([^<]+)", (ROOT / "docs" / "theory" / figure).read_text(encoding="utf-8"))
        words = [text for text in texts if re.search("[a-z]{3}", text)]
        assert len(words) >= 4, figure  # both axes and at least two curves


def test_named_tests_exist():
    source = (ROOT / "tests" / "test_paper.py").read_text(encoding="utf-8")
    names = {name for row in ITEMS.values() for name in re.findall(r"test: `([\w/.]+)`", row[2])}
    assert len(names) > 40
    for name in names:
        assert (ROOT / "tests" / name).exists() if name.endswith(".py") else f"def {name}" in source


@pytest.fixture
def make_paper(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import make_paper

    return make_paper


def test_the_page_shows_the_code_that_is_run(make_paper):
    items = [item for section in make_paper.SECTIONS for item in section]
    assert [item.number for item in items] == list(ITEMS)
    for item in items:
        assert item.see in ITEMS if item.code is None else f"```python\n{item.source()}\n```" in PAGE


def test_a_number_outside_its_range_is_an_error_that_names_the_item(make_paper):
    item = make_paper.UBSE[0]
    with pytest.raises(ValueError, match=r"Definition 3\.1: it returns \['b'\]"):
        dataclasses.replace(item, code=lambda: {"b": 2}).numbers()
    values = {label: 1.0 for label in item.accepted}
    with pytest.raises(ValueError, match=r"Definition 3\.1: one bin is 1; it must be 0"):
        dataclasses.replace(item, code=lambda: values).numbers()


@pytest.mark.simulation
def test_every_item_is_reproduced(make_paper):
    for section in make_paper.SECTIONS:
        for item in section:
            item.numbers()
