"""--group: rows that belong together, spread over batches and files, in every command that takes it."""

import json

import numpy as np
import pytest
from scipy.special import ndtr
from support.cli import valid

import truthcal as tc


@pytest.fixture(scope="module")
def games():
    """Predictions during 63 games, the true probabilities, in file order."""
    rng = np.random.default_rng(5)
    lead = 0.7 * rng.standard_normal((63, 1)) + np.cumsum(rng.standard_normal((63, 45)), 1) / 6.5
    p = ndtr(lead[:, :40] / np.sqrt((45 - np.arange(1, 41)) / 42.25)).round(4)
    return {
        "game": [f"G{k:02d}" for k in range(63) for _ in range(40)],
        "half": [1 + (k >= 20) for _ in range(63) for k in range(40)],
        "p": p.ravel().tolist(),
        "q": np.clip(p + 0.2, 0, 1).round(4).ravel().tolist(),
        "won": np.repeat((lead[:, -1] > 0).astype(int), 40).tolist(),
    }


def columns(games, rows=slice(None)):
    return {name: np.array(values, object)[rows].tolist() for name, values in games.items()}


def expected(games, **more):
    return tc.assess(games["won"], games["p"], groups=games["game"], **more)


def test_one_command_gives_the_grouped_answer_and_without_it_a_warning(quick, write, games):
    path = write(**games)
    alone = quick("assess", path, "--proba", "p", "--label", "won", check=0)
    assert "errors of neighbouring rows are correlated" in alone.out
    assert "--group" in alone.out
    done = quick("assess", path, "--proba", "p", "--label", "won", "--group", "game", check=0)
    assert done.out.startswith("Calibrated as far as 2,520 rows in 63 groups can tell")
    assert done.out.strip() == str(expected(games)).strip()


def test_rows_of_a_group_in_several_files_and_in_any_order(quick, write, games):
    order = np.random.default_rng(0).permutation(2520)
    for part in range(3):
        write(f"part-{part}.csv", **columns(games, order[part::3]))
    done = quick("assess", "part-*.csv", "--proba", "p", "--label", "won", "--group", "game", "--json", check=0)
    content = valid(done.out)
    assert content["input"]["group"] == "game"
    found = content["models"][0]["assessment"]
    assert found["n_groups"] == 63
    assert found["test"]["pvalue"] == pytest.approx(expected(games).test.pvalue, rel=1e-9)


def test_parquet_in_small_batches_and_a_group_in_the_path(quick, tmp_path, games):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns(games)), tmp_path / "rows.parquet", row_group_size=100)
    options = "--proba", "p", "--label", "won", "--json"
    content = valid(quick("test", tmp_path / "rows.parquet", *options, "--group", "game", check=0).out)
    assert content["test"]["pvalue"] == pytest.approx(expected(games).test.pvalue, rel=1e-9)
    names = np.array(games["game"])
    for game in sorted(set(games["game"])):
        folder = tmp_path / "parts" / f"game={game}"
        folder.mkdir(parents=True)
        table = pa.table(columns(games, np.flatnonzero(names == game))).drop_columns(["game"])
        pq.write_table(table, folder / "rows.parquet")
    content = valid(quick("test", tmp_path / "parts", *options, "--group", "game", check=0).out)
    assert content["test"]["n_groups"] == 63
    assert content["test"]["pvalue"] == pytest.approx(expected(games).test.pvalue, rel=1e-9)


def test_more_rows_than_are_kept(quick, write, games, monkeypatch):
    from truthcal.cli import inputs

    monkeypatch.setitem(inputs.read_inputs.__kwdefaults__, "exact_rows", 100)
    options = "--proba", "p", "--label", "won", "--json"
    content = valid(quick("assess", write(**games), *options, "--group", "game", check=0).out)
    assert content["input"]["exact"] is False
    found = content["models"][0]["assessment"]
    assert found["n_groups"] == 63
    assert found["test"]["pvalue"] == pytest.approx(expected(games).test.pvalue, rel=0.1)


def test_sketches_with_groups_that_are_split(quick, write, games, tmp_path):
    order = np.random.default_rng(0).permutation(2520)
    options = "--proba", "p", "--label", "won", "--group", "game"
    for part in range(2):
        rows = write(f"{part}.csv", **columns(games, order[part::2]))
        quick("sketch", rows, *options, "-o", tmp_path / f"{part}.sketch", check=0)
        quick("sketch", rows, *options, "-o", tmp_path / f"{part}.table", "--by", "half", check=0)
    done = quick("merge", tmp_path / "0.sketch", tmp_path / "1.sketch", "-o", tmp_path / "week.sketch", check=0)
    assert "2,520 rows in 63 groups" in done.err
    expected_sketch = tc.Sketch(16384).update(games["won"], games["p"], groups=games["game"])
    content = valid(quick("test", tmp_path / "week.sketch", "--json", check=0).out)
    assert content["test"]["n_groups"] == 63
    assert content["test"]["pvalue"] == pytest.approx(tc.calibration_test(expected_sketch).pvalue, rel=1e-6)
    quick("merge", tmp_path / "0.table", tmp_path / "1.table", "-o", tmp_path / "week.table", check=0)
    content = valid(quick("assess", tmp_path / "week.table", "--json", check=0).out)
    for segment in content["models"][0]["segments"]["segments"]:
        rows = np.flatnonzero(np.array(games["half"]) == int(segment["key"]))
        y, p, groups = (np.array(games[name])[rows] for name in ("won", "p", "game"))
        bias = tc.confidence_interval(tc.Sketch().update(y, p, groups=groups), measure="bias")
        assert segment["bias_low"] == pytest.approx(bias.low)


def test_segments_with_groups(quick, write, games):
    path, options = write(**games), ("--proba", "p", "--label", "won", "--group", "game")
    content = valid(quick("assess", path, *options, "--by", "half", "--json", check=0).out)
    segments = content["models"][0]["segments"]["segments"]
    assert content["models"][0]["segments"]["neighbour_z"] is None
    for segment in segments:
        rows = np.flatnonzero(np.array(games["half"]) == int(segment["key"]))
        y, p, groups = (np.array(games[name])[rows] for name in ("won", "p", "game"))
        assert segment["pvalue"] == pytest.approx(tc.calibration_test(y, p, groups=groups).pvalue, rel=0.05)
        bias = tc.confidence_interval(y, p, measure="bias", groups=groups)
        assert segment["bias_low"] == pytest.approx(bias.low)
        assert segment["error"]["high"] == pytest.approx(tc.error_size(y, p, groups=groups).high)
    done = quick("assess", path, *options, "--by", "half", "--adjust", "fdr", check=2)
    assert 'truthcal: --adjust must be "holm" or "none" with groups' in done.err


def test_segments_with_few_groups_are_not_tested(quick, write, games):
    few = {**games, "region": ["a" if game < "G10" else "b" for game in games["game"]]}
    options = "--proba", "p", "--label", "won", "--group", "game", "--by", "region", "--json"
    content = valid(quick("assess", write(**few), *options, check=0).out)
    segments = {segment["key"]: segment for segment in content["models"][0]["segments"]["segments"]}
    assert segments["a"]["pvalue"] is None
    assert segments["a"]["kind"] == "too few rows"
    assert segments["b"]["pvalue"] > 0.0


def test_check_compare_and_report(quick, write, games, tmp_path):
    path = write(**games)
    one = "--proba", "p", "--label", "won", "--group", "game"
    assert quick("check", path, "--proba", "p", "--label", "won").status == 1
    done = quick("check", path, *one)
    assert done.status == 3
    assert done.out.startswith("Too little data to tell")
    two = "--proba", "p", "--proba", "q", "--label", "won", "--group", "game"
    content = valid(quick("compare", path, *two, "--json", check=0).out)
    result = tc.compare(games["won"], games["p"], games["q"], groups=games["game"])
    assert content["comparison"]["n_groups"] == 63
    assert content["comparison"]["brier_pvalue"] == pytest.approx(result.brier_pvalue)
    assert "in 63 groups" in content["verdict"]
    pytest.importorskip("jinja2"), pytest.importorskip("matplotlib")
    quick("report", path, *two, "-o", tmp_path / "out.html", check=0)
    page = (tmp_path / "out.html").read_text()
    assert "Groups of rows are independent. Rows of the same group may depend on each other." in page
    assert "in 63 groups" in page


def test_compare_two_files_with_groups_in_the_first(quick, write, games):
    ids = list(range(2520))
    a = write("a.csv", id=ids, game=games["game"], won=games["won"], p=games["p"])
    b = write("b.csv", id=ids[::-1], p=games["q"][::-1])
    done = quick("compare", a, b, "--key", "id", "--proba", "p", "--label", "won", "--group", "game", "--json", check=0)
    result = tc.compare(games["won"], games["p"], games["q"], groups=games["game"])
    assert json.loads(done.out)["comparison"]["pvalue"] == pytest.approx(result.pvalue)


def test_check_cannot_tell_with_too_few_groups(quick, write, games):
    path, options = write(**games), ("--proba", "p", "--label", "won")
    done = quick("check", path, *options, "--group", "half", check=3)
    assert done.out == ""
    assert "truthcal: --group has 2 different values; at least 20 groups are needed, because tests" in done.err
    quick("sketch", path, *options, "--group", "half", "-o", "half.sketch", check=0)
    assert "has 2 different values" in quick("check", "half.sketch", check=3).err
    quick("check", path, *options, "--group", "gam", check=2)


def test_errors(quick, write, games, tmp_path):
    path, options = write(**games), ("--proba", "p", "--label", "won")
    done = quick("assess", path, *options, "--group", "half", check=2)
    assert "truthcal: --group has 2 different values; at least 20 groups are needed, because tests" in done.err
    done = quick("assess", path, *options, "--group", "gam", check=2)
    assert "has no column 'gam'" in done.err
    assert "Did you mean 'game'?" in done.err
    missing = write("missing.csv", **{**games, "game": [*games["game"][:-1], ""]})
    done = quick("assess", missing, *options, "--group", "game", check=2)
    assert "`game` (groups) has a missing value at row 2519 of" in done.err
    sketch = tmp_path / "rows.sketch"
    tc.Sketch().update(games["won"], games["p"]).save(sketch)
    done = quick("assess", sketch, "--group", "game", check=2)
    assert "--group refers to a column, but" in done.err
