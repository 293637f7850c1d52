"""Lists of names in one argument, and columns whose names contain a comma."""

import json

import pytest
from support.cli import valid


@pytest.fixture
def data(write, events):
    return write("predictions.csv", **events)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["assess", "--proba", "score, sure"], ["assess", "--proba", "score", "--proba", "sure"]),
        (["assess", "--proba", "sure", "--by", "region,id"], ["assess", "--proba", "sure", "--by", "region", "--by", "id"]),
        (["compare", "--proba", "score,sure"], ["compare", "--proba", "score", "--proba", "sure"]),
        (["measures", "--proba", "score", "--measure", "atb,ece"], ["measures", "--proba", "score", "--measure", "atb", "--measure", "ece"]),
        (["audit", "--proba", "score", "--measure", "atb,ece"], ["audit", "--proba", "score", "--measure", "atb", "--measure", "ece"]),
    ],
)  # fmt: skip
def test_same_as_repeated_options(quick, data, short, long):
    found, wanted = (valid(quick(line[0], data, *line[1:], "--json", check=0).out) for line in (short, long))
    assert found == wanted


def test_column_with_a_comma_in_its_name(quick, tmp_path, events):
    rows = [f"{y},{p},{q},{p}" for y, p, q in zip(events["hit"], events["score"], events["sure"], strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(['hit,"a,b",a,b', *rows]) + "\n")
    for command in ("assess", "measures", "audit"):
        more = ["--measure", "atb"] if command != "assess" else []
        content = valid(quick(command, "c.csv", "--proba", "a,b", *more, "--json", check=0).out)
        if command != "audit":
            assert content["input"]["proba"] == ["a,b"]
    assert valid(quick("assess", "c.csv", "--proba", "b,a", "--json", check=0).out)["input"]["proba"] == ["b", "a"]
    content = valid(quick("compare", "c.csv", "--proba", "a,b", "--proba", "a", "--json", check=0).out)
    assert content["comparison"]["names"] == ["a,b", "a"]


def test_unknown_part_is_named(quick, data):
    assert "has no column 'sur' (named by --proba)" in quick("assess", data, "--proba", "score,sur", check=2).err
    assert "there is no measure 'at'" in quick("measures", data, "--measure", "ece,at", check=2).err


def test_one_model_only(quick, data):
    for command in ("check", "audit"):
        assert "takes one" in quick(command, data, "--proba", "score,sure", check=2).err
    assert "`compare` needs two models" in quick("compare", data, "--proba", "score", check=2).err


def test_two_files(quick, data, write, events):
    write("other.csv", id=events["id"], q=events["sure"])
    line = ["compare", data, "other.csv", "--key", "id", "--label", "hit", "--json"]
    content = valid(quick(*line, "--proba", "score,q", check=0).out)
    assert content["comparison"]["names"] == ["score", "q"]


def test_sketches_and_watch(quick, write, events):
    days = [f"2024-01-{1 + i // 50:02d}" for i in range(900)]
    write(
        "log.csv",
        hit=events["hit"],
        p=events["score"],
        region=events["region"],
        k=[i % 2 for i in range(900)],
        date=days,
    )
    quick("sketch", "log.csv", "-o", "s.sketch", "--by", "region,k", check=0)
    content = valid(quick("assess", "s.sketch", "--by", "region,k", "--json", check=0).out)
    assert content["models"][0]["segments"]["by"] == ["region", "k"]
    line = ["watch", "log.csv", "--time", "date", "--window", "7d", "--state"]
    for state, by in (("a", ["--by", "region,k"]), ("b", ["--by", "region", "--by", "k"])):
        quick(*line, state, *by, "--json")
    found, wanted = (json.loads(quick(*line, state, "--by", "region", "--by", "k", "--json").out) for state in "ab")
    assert found == wanted


def test_evaluation_files(quick, tmp_path):
    lines = [
        {"confidence": f"{40 + i % 50}%", "correct": i % 2 == 0, "topic": i % 2, "level": i % 3} for i in range(120)
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    content = valid(quick("assess", "e.jsonl", "--by", "topic,level", "--json", check=0).out)
    assert content["models"][0]["segments"]["by"] == ["topic", "level"]


def test_a_column_that_the_second_file_lacks_is_named_by_its_flag(quick, write):
    first = write("a.csv", p=[0.4, 0.1], y=[1, 0], w=[1, 1])
    second = write("b.csv", p=[0.4, 0.1], y=[1, 0])
    error = quick("measures", first, second, "--proba", "p", "--label", "y", "--weight", "w", check=2).err
    assert "b.csv has no column 'w' (named by --weight); it has 'p', 'y'." in error
