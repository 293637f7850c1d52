"""Theory pages: statements are numbered without gaps, and the tests and works that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
STATEMENT = re.compile(r"^\*\*(?:Definition|Lemma|Theorem|Corollary|Proposition|Remark) ([FAMIK])(\d+)\b", re.MULTILINE)


def numbers(letter):
    """Return the numbers of all statements with this letter, in the order of the pages."""
    return [int(n) for text in TEXTS.values() for found, n in STATEMENT.findall(text) if found == letter]


@pytest.mark.parametrize("letter", "FAMIK")
def test_statements_are_numbered_without_gaps(letter):
    found = numbers(letter)
    assert found == list(range(1, len(found) + 1))


def test_statements_that_are_referred_to_exist():
    for name, text in TEXTS.items():
        for letter, n in re.findall(r"\b([FAMIK])(\d+)\b", text):
            assert int(n) in numbers(letter), f"{name} refers to {letter}{n}"


def test_tests_that_are_named_exist():
    for name, text in TEXTS.items():
        path = None
        for file, test in re.findall(r"`(tests/[\w/]+\.py|(?=::))(?:::(\w+))?`", text):
            path = file or path
            assert (ROOT / path).exists(), f"{name} names {path}"
            found = not test or re.search(rf"def {test}\b", (ROOT / path).read_text(encoding="utf-8"))
            assert found, f"{name} names {path}::{test}"


def test_works_that_are_cited_are_listed():
    works = re.sub(r"\s+", " ", TEXTS["references.md"])
    cited = r"([A-Z][a-zé]+(?:-[A-Z][a-z]+)?)(?:(?:,| and) (?:Paes )?[A-Z][a-zé]+)*(?: et al\.)? \(?((?:19|20)\d\d)\b"
    for name, text in TEXTS.items() - {("references.md", TEXTS["references.md"])}:
        for author, year in re.findall(cited, re.sub(r"\s+", " ", text)):
            assert re.search(rf"- {author}[^-]*\({year}\)", works), f"{name} cites {author} {year}"
