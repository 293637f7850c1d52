"""Reports that the command line writes: what they say of where they come from, and that they are written whole."""

import hashlib
import html
import re
import shlex

import numpy as np
import pytest
from support.cli import ROOT

import truthcal as tc


def text_of(page):
    """What a reader sees."""
    body = re.sub(r"(?s)<(style|svg).*?</\1>", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.fixture
def file(write, events):
    return write("days & nights.csv", **{name: events[name] for name in ("region", "score", "sure", "hit")})


def test_report_says_how_to_make_it_again(quick, file, tmp_path, events):
    done = quick("report", file, "--proba", "score", "-o", "out.html", check=0)
    assert done.out == "out.html\n"
    shown = text_of((tmp_path / "out.html").read_text())
    assert tc.assess(events["hit"], events["score"]).verdict.splitlines()[0] in shown
    assert hashlib.sha256(file.read_bytes()).hexdigest() in shown
    assert shlex.join(["truthcal", "report", str(file), "--proba", "score", "-o", "out.html"]) in shown
    assert "'hit'" in shown
    assert "guessed" in shown


def test_assess_writes_the_same_report(quick, file, tmp_path):
    quick("assess", file, "--proba", "score", "--label", "hit", "--report", "a.html", "--title", "Mine <b>", check=0)
    page = (tmp_path / "a.html").read_text()
    assert "<title>Mine &lt;b&gt;</title>" in page
    assert "guessed" not in text_of(page)


def test_report_is_named_after_the_data_unless_told_otherwise(quick, file, tmp_path):
    assert quick("report", file, "--proba", "score", check=0).out == "days & nights.html\n"
    assert quick("report", "-", "--proba", "score", stdin=file.read_bytes(), check=0).out == "report.html\n"
    assert "standard input" in text_of((tmp_path / "report.html").read_text())


def test_report_of_several_models_compares_them(quick, file, tmp_path, events):
    quick("report", file, "--proba", "score", "--proba", "sure", "--by", "region", "-o", "two.html", check=0)
    shown = text_of((tmp_path / "two.html").read_text())
    assert "score has the better ATB and the better Brier score" in shown
    assert "north" in shown
    assert (tmp_path / "two.html").stat().st_size < 300_000


def test_report_of_three_models_has_all_pairs(quick, write, events, tmp_path):
    columns = {"score": events["score"], "sure": events["sure"], "flat": np.full(len(events["hit"]), 0.4)}
    path = write("three.csv", hit=events["hit"], **columns)
    options = [word for name in columns for word in ("--proba", name)]
    quick("report", path, *options, "-o", "three.html", check=0)
    page = (tmp_path / "three.html").read_text()
    pairs = re.findall(r'<span class="pair">(\w+)</span> <span class="pair">(\w+)</span>', page)
    assert pairs == [("score", "sure"), ("score", "flat"), ("sure", "flat")]
    for line in tc.compare_models(events["hit"], columns).verdict.splitlines():
        assert line in text_of(page)


def test_report_names_the_groups_at_the_top(quick, write, events, tmp_path):
    patient = np.arange(len(events["hit"])) // 2
    path = write("grouped.csv", hit=events["hit"], score=events["score"], patient=patient)
    quick("report", path, "--proba", "score", "--label", "hit", "--group", "patient", "-o", "g.html", check=0)
    groups = f"{patient.max() + 1:,} groups"
    assert f'<p class="rows">Rows are grouped by patient: {groups}.</p>' in (tmp_path / "g.html").read_text()


def test_compare_and_check_write_reports_too(quick, file, tmp_path):
    quick("compare", file, "--proba", "score", "--proba", "sure", "--report", "c.html", check=0)
    assert "score has the better ATB" in text_of((tmp_path / "c.html").read_text())
    quick("check", file, "--proba", "sure", "--report", "k.html", check=1)
    assert "Overconfident" in text_of((tmp_path / "k.html").read_text())


def test_report_of_a_sketch_says_that_it_is_one(quick, file, tmp_path):
    quick("sketch", file, "--proba", "score", "-o", "s.sketch", check=0)
    quick("report", "s.sketch", "-o", "s.html", check=0)
    assert "The input is a sketch" in text_of((tmp_path / "s.html").read_text())


def test_a_report_that_fails_leaves_what_was_there(quick, file, tmp_path, monkeypatch):
    kept = tmp_path / "out.html"
    kept.write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = quick("report", file, "--proba", "score", "-o", "out.html", "-q", check=2)
    assert done.err == "truthcal: out.html: no space left on device.\n"
    assert kept.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["days & nights.csv", "out.html"]


def check_that_only_ece_rewards_the_gamed_forecaster(out, folder):
    """Audit each column of the demo's table: the answer is the printed one, and only for ECE a lie pays."""
    header, *rows = re.search(r"^ +ECE.*\n(?:  \w+ .*\n){3}", out, re.MULTILINE).group().splitlines()
    heads = re.split(r" {2,}| (?=ATB)", header.strip())
    values = {row.split()[0]: dict(zip(heads, map(float, row.split()[1:]), strict=True)) for row in rows}
    table = np.genfromtxt(folder / "predictions.csv", delimiter=",", names=True)
    names = {"ECE, 15 bins": "ece", "ATB": "atb", "Brier score": "brier"}
    audited = tc.audit(table["honest"], list(names.values()), strategies={"gamed": lambda truth: table["gamed"]})
    assert set(heads) == set(names)
    for head, name in names.items():
        row = audited[name]
        assert re.search(rf"^  {head} +\S+ +\S+   {re.escape(row.answer)}$", out, re.MULTILINE)
        assert row.pays == (head == "ECE, 15 bins")
        assert (row.scores["gamed"] < row.honest) == row.pays
        assert (values["gamed"][head] < values["honest"][head]) == row.pays


def test_demo_judges_three_forecasters_and_writes_their_report(quick, tmp_path):
    done = quick("demo", check=0)
    assert f"\n```\n{done.out}```\n" in (ROOT / "README.md").read_text()
    verdicts = re.findall(r"^(honest|overconfident|gamed): .*\n  (\w+)", done.out, re.MULTILINE)
    assert verdicts == [("honest", "Calibrated"), ("overconfident", "Overconfident"), ("gamed", "Calibrated")]
    check_that_only_ece_rewards_the_gamed_forecaster(done.out, tmp_path / "truthcal-demo")
    shown = text_of((tmp_path / "truthcal-demo" / "report.html").read_text())
    assert "honest has the best Brier score (3 models" in shown
    assert "Rank models by the Brier score" in shown
    # The data are a file like any other.
    line = ["assess", "truthcal-demo/predictions.csv", "--label", "outcome", "--proba", "overconfident"]
    assert quick(*line, check=0).out.startswith("Overconfident: ")
