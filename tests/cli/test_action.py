"""The GitHub Action: its scripts are run by bash with the inputs in the environment, as GitHub runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import ROOT

yaml = pytest.importorskip("yaml")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"] if "id" in step}


def run_step(name, folder, **inputs):
    """Run a step of the action; return its exit status, its outputs and the job summary."""
    known = {key: value.get("default", "") for key, value in ACTION["inputs"].items()}
    assert inputs.keys() <= known.keys()
    given = known | inputs
    env = {
        key: given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]] for key, value in STEPS[name]["env"].items()
    }
    files = {key: folder / key.lower() for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = folder / "script.sh"
    script.write_text(STEPS[name]["run"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder,
        env=os.environ | env | {"PATH": path, **{key: str(file) for key, file in files.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return done, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.fixture
def data(write, events, tmp_path):
    write("good.csv", hit=events["hit"], score=events["score"], region=events["region"])
    write("bad.csv", hit=events["hit"], score=events["sure"], region=events["region"])
    write("few.csv", hit=events["hit"][:20], score=events["score"][:20])
    return tmp_path


@pytest.mark.parametrize(
    ("inputs", "code", "status"),
    [
        ({"files": "good.csv"}, 0, "pass"),
        ({"files": "bad.csv", "label": "hit", "proba": "score", "max-error": "0.03"}, 1, "fail"),
        ({"files": "bad.csv", "alpha": "0.01", "args": "--by\nregion\n"}, 1, "fail"),
        ({"files": "few.csv"}, 3, "too little data"),
        ({"files": "none.csv"}, 2, "error"),
        ({"files": "good.csv", "max-error": "-1"}, 2, "error"),
    ],
)
def test_status_is_that_of_check(data, inputs, code, status):
    done, outputs, summary = run_step("check", data, **inputs)
    assert done.returncode == code, done.stderr
    assert outputs == {"status": status, "exit-status": str(code)}
    assert ("Calibration of score" in summary) == (code != 2)


def test_too_little_data_may_be_accepted(data):
    done, outputs, _ = run_step("check", data, **{"files": "few.csv", "accept-too-little-data": "true"})
    assert done.returncode == 0
    assert outputs["status"] == "too little data"


def test_several_files_and_patterns(data):
    header, *lines = (data / "good.csv").read_text().splitlines()
    for name, part in (("a b.csv", lines[:500]), ("c.csv", lines[500:])):
        (data / name).write_text("\n".join([header, *part]) + "\n")
    done, outputs, _ = run_step("check", data, files="a b.csv\nc.*\n")
    assert outputs["status"] == "pass", done.stderr
    assert "900" in done.stdout


@pytest.mark.parametrize(
    "name", ["files", "label", "proba", "max-error", "alpha", "args", "accept-too-little-data", "version"]
)
def test_inputs_run_no_commands(data, name):
    attack = "$(touch pwned) `touch pwned` \"; touch pwned; \" '; touch pwned; ' & touch pwned"
    run_step("install" if name == "version" else "check", data, **{"files": "few.csv", name: attack})
    assert not (data / "pwned").exists()


def test_scripts_contain_no_inputs():
    """GitHub would paste them into the script."""
    for step in STEPS.values():
        assert "${{" not in step["run"]


def test_documented_inputs_are_those_of_the_action():
    guide = (ROOT / "docs" / "guide" / "cli.md").read_text()
    for name in ACTION["inputs"]:
        assert f"`{name}`" in guide
