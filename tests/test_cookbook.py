"""Run every recipe of docs/cookbook/ as a reader would: in an empty folder, block by block, and compare the output."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support import recipes
from support.simulation import REPEATS

import truthcal as tc

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


@pytest.mark.simulation
@pytest.mark.parametrize(("rate", "dropout"), [(0.3, 0.5), (0.3, 1.0), (1.0, 0.5), (1.5, 1.0)])
def test_survival_recipe_keeps_the_level_of_its_test(rate, dropout):
    """The function of the page, on calibrated predictions: at most 5% are rejected, up to the noise of 300 repeats."""
    page = (COOKBOOK / "survival.md").read_text(encoding="utf-8")
    (code,) = (code for _, code, _ in recipes.examples(page) if "def censoring_weights" in code)
    names = {"np": np}
    exec(code.partition("\n\n\n")[0], names)
    rng, n, rejected = np.random.default_rng(1), 1000, 0
    for _ in range(REPEATS):
        hazard = rate * np.exp(0.8 * rng.normal(size=n))
        event_time, censored_at = rng.exponential(1 / hazard), rng.exponential(1 / dropout, n)
        time, event = np.minimum(event_time, censored_at), event_time <= censored_at
        weight = names["censoring_weights"](time, event, 1.0)
        test = tc.calibration_test(
            event & (time <= 1.0), 1 - np.exp(-hazard), sample_weight=weight, groups=np.arange(n), rng=0
        )
        rejected += test.pvalue <= 0.05
    assert stats.binom.sf(rejected - 1, REPEATS, 0.05) >= 1e-3, f"{rejected} of {REPEATS}"


def test_index_lists_every_recipe():
    index = (COOKBOOK / "README.md").read_text(encoding="utf-8")
    for recipe in RECIPES:
        assert f"]({recipe.name})" in index
