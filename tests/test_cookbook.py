"""Run every recipe of docs/cookbook/ as a reader would: in a new process and an empty folder; compare the output."""

import os
import subprocess
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
def test_recipe_prints_what_it_shows(path, tmp_path):
    """Writing the output into a copy of the page changes nothing, and nothing is printed to stderr."""
    page = path.read_text(encoding="utf-8")
    for library in recipes.libraries(page):
        pytest.importorskip(library)
    copy = tmp_path / path.name
    copy.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, recipes.__file__, copy],
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert copy.read_text(encoding="utf-8") == page


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
