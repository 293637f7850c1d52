"""Output for a terminal: its width, the plot, the order of segments; and check with and without -v."""

import re

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc
from truthcal.cli import terminal_plot
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
from truthcal.plots.reliability import ReliabilityDisplay
from truthcal.reports.data import report_data


@pytest.fixture
def data(write, events):
    return write("predictions.csv", **events)


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text.replace("\r", "")).split("\n")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_results_fit_the_terminal(terminal, data, width):
    for line in (["assess", data, "--by", "region"], ["compare", data, "--proba", "score,sure"], ["check", data, "-v"]):
        proba = [] if line[0] == "compare" else ["--proba", "sure"]
        done = terminal(*line, *proba, "--label", "hit", "-q", env={"COLUMNS": str(width)})
        assert max(map(len, plain(done.out))) <= width


def test_piped_text_is_not_wrapped(process, data):
    line = ["assess", data, "--proba", "sure", "--label", "hit", "--by", "region"]
    narrow, wide = (process(*line, env={"COLUMNS": width}, check=0).out for width in ("40", "200"))
    assert narrow == wide
    assert max(map(len, narrow.split("\n"))) > 110


def test_wrapped_verdict_is_coloured_as_a_whole(terminal, data):
    done = terminal("check", data, "--proba", "sure", "--label", "hit", "--by", "region", env={"COLUMNS": "60"})
    red = re.search(r"\x1b\[1;31m(.*?)\x1b\[0m", done.out.replace("\r", ""), re.DOTALL)[1]
    assert red.startswith("Fail: ")
    assert red.endswith(".")
    assert red.count("\n") >= 3


@pytest.mark.parametrize("line", ["assess --plot", "assess --by BY", "compare", "assess --markdown"])
def test_control_characters_of_names_do_not_reach_the_terminal(terminal, tmp_path, line):
    """Otherwise a file could move the cursor, or set the title of the window."""
    names = ["p\x1b[31mred", "q\x1b]0;title\x07", "by\x9b2J"]
    rows = [f"{i % 2},{i % 10 / 10},0.5,a{i % 2}" for i in range(200)]
    (tmp_path / "a.csv").write_text("\n".join([",".join(["y", *names]), *rows]) + "\n")
    proba = [word for name in names[:2] for word in ("--proba", name)]
    words = [names[2] if word == "BY" else word for word in line.split()]
    done = terminal(words[0], tmp_path / "a.csv", "--label", "y", *proba, *words[1:])
    shown = "\n".join(plain(done.out))
    assert "red" in shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert "\x1b[31m" not in done.out


# --- plot -------------------------------------------------------------------------------------------------------------


def display_of(y, p):
    summary = tc.assess(y, p)._summary
    band = consistency_band_of(summary, rng=0, simultaneous=True)
    return ReliabilityDisplay(reliability_curve_of(summary), band, density_of(summary))


def drawn(y, p, width=80, signs=terminal_plot._UNICODE):
    return terminal_plot.draw_reliability(display_of(y, p), "title", width, signs).split("\n")


def test_curve_and_band_are_where_the_numbers_are():
    """On a linear axis from 0 to 1, by the slow way: the character of each cell from the curve at its middle."""
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p**2
    display, lines = display_of(y, p), drawn(y, p)
    body = [line[6:].ljust(73) for line in lines[2:15]]
    curve, band = display.curve, display.band
    for column in range(73):
        x = (column + 0.5) / 73
        height = {line for line in range(13) if body[line][column] == "●"}
        gaps = [max(left - x, x - right, 0.0) for left, right in zip(curve.left, curve.right, strict=True)]
        if min(gaps) > 0.5 / 73:  # no pool in this column
            assert not height
            continue
        assert height == {12 - int(np.floor(12 * curve.mean_true[int(np.argmin(gaps))] + 0.5))}
        low, high = (int(np.floor(12 * np.interp(x, band.q, limit) + 0.5)) for limit in (band.low, band.high))
        for line in range(13):
            is_band = low <= 12 - line <= high
            assert body[line][column] in ("●·░" if is_band else "●· ")
            assert is_band or body[line][column] != "░"


def test_nothing_is_observed_between_pools():
    """Predictions of 0.1 and 0.9 only: one dot for each, and none on the way."""
    lines = drawn([0] * 18 + [1] * 2 + [0] * 2 + [1] * 18, [0.1] * 20 + [0.9] * 20)
    columns = {column for line in lines[2:15] for column, letter in enumerate(line[6:]) if letter == "●"}
    assert columns == {int(0.1 * 73), int(0.9 * 73)}


def test_band_is_that_of_the_report(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    assessment, displays = tc.assess(rng.random(400) < p, p), []
    monkeypatch.setattr(terminal_plot, "draw_reliability", lambda display, *_: displays.append(display) or "")
    terminal_plot.terminal_plot(assessment)
    (model,) = report_data({"": assessment}, {}, {}, exact_distcal=False)
    (display,) = displays
    assert display.band.simultaneous
    for name in ("q", "low", "high"):
        np.testing.assert_array_equal(getattr(display.band, name), getattr(model.band, name))


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("kind", ["plain", "rare", "common", "few", "one"])
def test_plot_has_its_size_and_labels(kind, width):
    rng = np.random.default_rng(2)
    p = {"plain": rng.random(800), "rare": rng.beta(1, 400, 20_000), "common": 1 - rng.beta(1, 400, 20_000)}
    p |= {"few": np.array([0.2, 0.7, 0.7]), "one": np.full(50, 0.2)}
    y = rng.random(len(p[kind])) < p[kind]
    lines = drawn(y, p[kind], width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert ("(log scale)" in text) == (kind == "rare")
    assert ("(logit scale)" in text) == (kind == "common")
    for word in (
        "observed frequency",
        "predicted probability",
        "● observed",
        "· calibrated",
        "contains 95% of calibrated curves",
        "The test combines all predictions, so it can detect smaller errors than the band shows.",
        "rows",
    ):
        assert word in text
    floor = next(k for k, line in enumerate(lines) if "└" in line)
    assert "●" in "".join(lines[floor - 13 : floor])
    assert sum("┤" in line for line in lines[floor - 13 : floor]) >= 2
    assert len(set(lines[floor + 1].split())) >= 2


def test_ascii_has_the_same_shape():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    text, ascii_ = ("\n".join(drawn(y, p, signs=signs)) for signs in (terminal_plot._UNICODE, terminal_plot._ASCII))
    assert ascii_.isascii()
    unicode_, plain_ = terminal_plot._UNICODE, terminal_plot._ASCII
    same = {"●": "o", "░": ":", **dict(zip(unicode_.density, plain_.density, strict=True))}
    same |= {
        getattr(unicode_, name): getattr(plain_, name)
        for name in ("diagonal", "side", "tick", "corner", "floor", "mark")
    }
    assert "".join(same.get(letter, letter) for letter in text) == ascii_


def test_plot_in_assess(process, quick, data):
    line = ["assess", data, "--proba", "sure", "--label", "hit", "--plot", "--by", "region"]
    done = process(*line, env={"PYTHONIOENCODING": "utf-8", "COLUMNS": "70"}, check=0)
    assert done.out.index("Brier score") < done.out.index("Reliability diagram, 900 rows") < done.out.index("By region")
    assert "●" in done.out
    done = process(*line, env={"PYTHONIOENCODING": "ascii"}, check=0)
    assert "\no observed   . calibrated   : contains 95% of calibrated curves\n" in done.out
    assert done.out.isascii()
    both = quick("assess", data, "--proba", "score,sure", "--label", "hit", "--plot", check=0).out
    assert "Reliability diagram, score, 900 rows" in both
    assert "Reliability diagram, sure, 900 rows" in both
    for flag in ("--json", "--markdown"):
        assert f"--plot prints text, which cannot be combined with {flag}" in quick(*line, flag, check=2).err


def test_plot_of_the_worst_class(quick, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 600)
    y = [("cat", "dog", "owl")[rng.choice(3, p=row)] for row in p]
    p[:, :2] = p[:, :2].mean(axis=1, keepdims=True) * [0.6, 1.4]
    rows = ["kind,p_cat,p_dog,p_owl", *(f"{k},{a},{b},{c}" for k, (a, b, c) in zip(y, p, strict=True))]
    (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
    done = quick("assess", "k.csv", "--plot", check=0)
    worst = valid(quick("assess", "k.csv", "--json").out)["models"][0]["assessment"]["classes"]["segments"][0]["name"]
    assert worst in ("cat", "dog")
    assert f"Reliability diagram, class {worst} against the rest (smallest p-value), 600 rows" in done.out


# --- segments ---------------------------------------------------------------------------------------------------------


def test_sort_and_all(quick, write, events):
    write("many.csv", hit=events["hit"], p=events["sure"], k=[i % 25 for i in range(900)])
    line = ["assess", "many.csv", "--by", "k"]
    assert "... and 5 more (--all shows them)\n" in quick(*line, check=0).out
    assert "... and 5 more (--all shows them)\n" in quick(*line, "--markdown", check=0).out
    names = [
        row.split()[0]
        for row in quick(*line, "--all", "--sort", "name", check=0).out.split("\n")
        if re.match(r"\d+ +36 ", row)
    ]
    assert names == [str(k) for k in range(25)]
    content = valid(quick(*line, "--sort", "rows", "--json", check=0).out)
    assert len(content["models"][0]["segments"]["segments"]) == 25
    assert quick(*line, "--all", "--markdown", check=0).out.count("\n| ") > 25
    segments = valid(quick(*line, "--sort", "error", "--json").out)["models"][0]["segments"]["segments"]
    errors = [segment["error"] for segment in segments]
    shown = [error["estimate"] if error["low"] > 0 else error["high"] for error in errors]
    clear = sum(error["low"] > 0 for error in errors)
    assert 0 < clear < 25
    assert shown[:clear] == sorted(shown[:clear], reverse=True)
    assert shown[clear:] == sorted(shown[clear:], reverse=True)


def test_sort_and_all_need_segments(quick, data):
    for flag in (["--sort", "error"], ["--all"]):
        done = quick("assess", data, "--proba", "score", "--label", "hit", *flag, check=2)
        assert f"{flag[0]} is for segments, and there are none; name their column with --by" in done.err


def test_all_classes(quick, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 300)
    rows = ["kind,p_a,p_b,p_c", *(f"{'abc'[rng.choice(3, p=q)]},{q[0]},{q[1]},{q[2]}" for q in p)]
    (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
    assert "By class: " not in quick("assess", "k.csv", check=0).out
    table = quick("assess", "k.csv", "--sort", "name", check=0).out.split("By class: ")[1]
    assert [line[0] for line in table.split("\n")[3:6]] == ["a", "b", "c"]


# --- check ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "status", "limit"),
    [
        (["--proba", "score"], 0, r"p = 0\.\d+; above 0.05 passes"),
        (["--proba", "sure"], 1, r"p = .*; 0.05 or less fails"),
        (["--proba", "sure", "--max-error", "0.01"], 1, r"the error is 0\.\d+ or more; above 0.01 fails"),
        (["--proba", "score", "--max-error", "0.3"], 0, r"the error may be up to 0\.\d+; it must be at most 0.3"),
        (["--proba", "score", "--max-error", "0.001"], 3, r"the error may be up to 0\.\d+; it must be at most 0.001"),
        (["--proba", "score", "--where", "id < 30"], 3, r"the error may be up to 0\.\d+; it must be at most 0.1"),
    ],
)
def test_check_prints_its_answer_and_three_lines(quick, data, options, status, limit):
    done = quick("check", data, "--label", "hit", *options, check=status)
    answer, first, second, third, *rest = done.out.rstrip("\n").split("\n")
    assert re.match("Pass: |Fail: |Too little data to tell: ", answer)
    assert re.fullmatch(f"  limit  {limit}", first)
    assert re.fullmatch(r"  error  (<= 0\.\d+ \(95% confidence\)|0\.\d+ \(95% between 0\.\d+ and 0\.\d+\))", second)
    assert re.fullmatch(r"  rows   \d+; p .* for miscalibration", third)
    assert rest == (["", "kept 30 of 900 rows (--where id < 30)."] if "--where" in options else [])
    long = quick("check", data, "--label", "hit", *options, "-v", check=status).out
    assert long.startswith(answer)
    assert "Brier score" in long


def test_check_names_the_segment_that_decides(quick, write, events):
    p = [s if r == "west" else t for s, t, r in zip(events["sure"], events["score"], events["region"], strict=True)]
    write("one.csv", hit=events["hit"], p=p, region=events["region"])
    done = quick("check", "one.csv", "--by", "region", "--max-error", "0.05", check=1)
    assert re.search(r"limit  the error of segment west is 0\.\d+ or more; above 0.05 fails", done.out)
    assert "west" in quick("check", "one.csv", "--by", "region", "-v", check=1).out.split("By region: ")[1]


def test_check_prints_warnings(quick, write):
    rng = np.random.default_rng(0)
    p = rng.random(3000).round(4)
    write("w.csv", y=(rng.random(3000) < p).astype(int), p=p, w=np.exp(2 * rng.normal(size=3000)).round(4))
    assert "! weights are uneven" in quick("check", "w.csv", "--weight", "w").out


def test_check_on_a_terminal_says_how_to_see_more(terminal, process, data):
    line = ["check", data, "--label", "hit", "--proba", "score"]
    assert "-v prints all numbers" in terminal(*line).out
    assert "-v prints" not in process(*line, check=0).err
