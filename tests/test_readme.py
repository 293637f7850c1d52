"""Run the examples in the README and docs/, and compare their output with the text."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import recipes
from support.servers import quiet_spark, spark_session

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHOOSING = (ROOT / "docs" / "guide" / "choosing-a-measure.md").read_text(encoding="utf-8")


def blocks(language, page=README):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run(code, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def shown_after(code, page=README):
    return page.split(code)[1].split("```")[2].lstrip("\n")


def test_examples_print_what_the_readme_shows():
    import truthcal as tc

    verdict, classes, recalibration, sketch, *others = blocks("python")
    names = {}
    assert run(verdict, names) == shown_after(verdict)
    assert run(classes, names).rstrip() == shown_after(classes).rstrip()
    assert run(recalibration, names) == shown_after(recalibration)
    assert run(sketch, {"tc": tc}).strip() == sketch.rsplit("# ", 1)[1].strip()
    assert len(others) == 2
    for code in others:
        assert run(code, names) == shown_after(code)


@pytest.mark.parametrize(
    "name", ["inference", "classes", "groups", "monitoring", "rare-events", "recalibration", "scikit-learn", "torch"]
)
def test_examples_print_what_the_guide_shows(name, tmp_path, monkeypatch):
    page, names = (ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8"), {}
    for library in recipes.libraries(page):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    for code in blocks("python", page):
        assert run(code, names) == shown_after(code, page)


@pytest.mark.parametrize(
    ("name", "written"), [("plots", ["reliability.png"]), ("report", ["churn.html", "models.html"])]
)
def test_code_of_the_pages_on_plots_and_reports_runs(tmp_path, monkeypatch, name, written):
    """Run the code unchanged, on rows with the names that it uses."""
    matplotlib, tc = pytest.importorskip("matplotlib"), pytest.importorskip("truthcal")
    sklearn = pytest.importorskip("sklearn.linear_model")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    p, x = rng.random(300), rng.normal(size=(300, 2))
    y = rng.random(300) < p
    model = sklearn.LogisticRegression().fit(x, y)
    table = tc.SketchTable.from_sketches({"all": tc.Sketch().update(y, p)}, by="region")
    names = {"y_true": y, "y_proba": p, "outcomes": y, "predictions": p, "y": y, "old": p, "new": p**2, "table": table}
    names |= {"model": model, "X_test": x, "y_test": y, "time": np.arange(300), "patients": np.arange(300) // 2}
    found = blocks("python", (ROOT / "docs" / "guide" / f"{name}.md").read_text(encoding="utf-8"))
    assert found
    for code in found:
        run(code, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(written)


def days_of_predictions(folder):
    """Write the data of the page on engines: one Parquet file per day."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for day in ("2026-01-29", "2026-01-30", "2026-01-31"):
        score, country = rng.random(4000) ** 2, rng.choice(["de", "fr", "it"], 4000)
        clicked = rng.random(4000) < np.where(country == "it", 0.8 * score, score)
        (folder / "predictions" / f"day={day}").mkdir(parents=True)
        table = pa.table({"clicked": clicked, "score": score, "country": country})
        pq.write_table(table, folder / "predictions" / f"day={day}" / "part-0.parquet")


@pytest.mark.spark
def test_examples_print_what_the_page_on_engines_shows(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    spark_session()  # with our settings; the page's own call returns this session
    page, names = (ROOT / "docs" / "guide" / "engines.md").read_text(encoding="utf-8"), {}
    days_of_predictions(tmp_path)
    monkeypatch.chdir(tmp_path)
    for code in blocks("python", page):
        with quiet_spark():
            # Spark resolves names where its Java was started, so that one is absolute
            assert run(code.replace("/data/", f"{tmp_path}/"), names) == shown_after(code, page)


def test_examples_print_what_choosing_a_measure_shows():
    for code in blocks("python", CHOOSING):
        assert run(code, {}) == shown_after(code, CHOOSING)


def test_the_table_of_measures_is_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_two_commands_come_first():
    assert re.findall(r"^make (\w+)", blocks("sh")[0], re.MULTILINE) == ["demo", "test"]


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
