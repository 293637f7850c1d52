"""Run every recipe of docs/cookbook/ as a reader would: in an empty folder, block by block, and compare the output."""

import sys
from pathlib import Path

import pytest
from support import recipes

COOKBOOK = Path(__file__).parent.parent / "docs" / "cookbook"
RECIPES = sorted(page for page in COOKBOOK.glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("path", RECIPES, ids=[page.stem for page in RECIPES])
def test_recipe_prints_what_it_shows(path, tmp_path, monkeypatch):
    page = path.read_text(encoding="utf-8")
    for library in recipes.libraries(page):
        pytest.importorskip(library)
    if "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = {"__name__": "recipe"}
    for language, code, shown in recipes.examples(page):
        assert recipes.run(language, code, names).rstrip() == shown.rstrip(), code


def test_index_lists_every_recipe():
    index = (COOKBOOK / "README.md").read_text(encoding="utf-8")
    for recipe in RECIPES:
        assert f"]({recipe.name})" in index
