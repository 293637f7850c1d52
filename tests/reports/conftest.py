"""Reports and a browser, built once for all test files."""

import dataclasses
import shutil

import numpy as np
import pytest
from support.report_pages import IMAGE, SCRIPT, class_forecasts, forecasts, segment_table

import truthcal as tc


@pytest.fixture(scope="session")
def models():
    outcome, proba = forecasts()
    return {name: tc.assess(outcome, p) for name, p in proba.items()}


@pytest.fixture(scope="session")
def segments():
    outcome, proba = forecasts()
    return segment_table(outcome, proba["overconfident"], 4, lambda i: IMAGE if i == 0 else f"segment {i}")


@pytest.fixture(scope="session")
def one_off():
    """Segments of the honest forecaster, one of them by far too high."""
    outcome, proba = forecasts()
    first = np.arange(outcome.size) % 4 == 0
    return segment_table(outcome, np.where(first, np.clip(proba["honest"] + 0.3, 0, 1), proba["honest"]), 4)


@pytest.fixture(scope="session")
def single(models, segments):
    """One model, with segments."""
    return tc.report(
        models["overconfident"],
        segments=segments,
        title=f"Rain \"in\" 'May' {SCRIPT}",
        provenance={"File": f"{SCRIPT}.csv", "Command": "truthcal report rain.csv"},
        notes=[f"column {SCRIPT} was guessed"],
    )


@pytest.fixture(scope="session")
def several(models, segments, one_off):
    """Three models, one with a name that is a script, compared."""
    outcome, proba = forecasts()
    compared = tc.compare(outcome, proba["honest"], proba["gamed"])
    named = {SCRIPT if name == "gamed" else name: assessment for name, assessment in models.items()}
    return tc.report(
        named,
        segments={"overconfident": segments, "honest": dataclasses.replace(one_off, neighbour_z=9.1)},
        comparisons={("honest", SCRIPT): dataclasses.replace(compared, neighbour_z=-9.2)},
    )


@pytest.fixture(scope="session")
def class_assessments():
    y, proba, labels = class_forecasts()
    return {name: tc.assess(y, p, labels=labels) for name, p in proba.items()}


@pytest.fixture(scope="session")
def classes(class_assessments):
    """One model of many classes."""
    return tc.report(class_assessments["confused"], title=f"Kinds {SCRIPT}", notes=[f"column {SCRIPT} was guessed"])


@pytest.fixture(scope="session")
def class_models(class_assessments):
    """Three models of many classes, compared."""
    y, proba, labels = class_forecasts()
    compared = tc.compare(y, proba["honest"], proba["confused"], labels=labels)
    return tc.report(class_assessments, comparisons={("honest", "confused"): compared})


@pytest.fixture
def reuse_figures(monkeypatch):
    """For reports of the same model several times: draws the shared figure and those of the first model only."""

    def reuse(figures_per_model):
        from truthcal.reports import figures

        drawn, draw_svg = {}, figures.figure_svg

        def draw_once(draw, size, *, salt, font_size):
            number = int(salt.removeprefix("f"))
            kind = 0 if number == 1 else 1 + (number - 2) % figures_per_model
            if kind not in drawn:
                drawn[kind] = draw_svg(draw, size, salt=salt, font_size=font_size)
            return drawn[kind]

        monkeypatch.setattr(figures, "figure_svg", draw_once)
        return drawn

    return reuse


@pytest.fixture(scope="session")
def browser():
    """Real Chromium, headless, one for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()
