"""The recipes of the guide to language models, run by the real libraries, and a samples file that lm-eval wrote."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import truthcal as tc
from truthcal.cli.main import main

PAGE = (Path(__file__).parent.parent / "docs" / "guide" / "language-models.md").read_text(encoding="utf-8")
# In a process of its own: importing lm_eval and datasets emits warnings, which are errors here.
RUN = """
import json
from lm_eval.api.model import LM
from lm_eval.evaluator import evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager, get_task_dict
from truthcal_metric import Calibration

class Model(LM):
    def loglikelihood(self, requests, disable_tqdm=False):
        return [(json.loads(request.args[0])[request.args[1].strip()], False) for request in requests]
    def generate_until(self, requests, disable_tqdm=False):
        return []
    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return []

# `simple_evaluate` would also describe the machine, which takes ten seconds.
tasks = get_task_dict(["capitals", "plain"], TaskManager(include_path=".", include_defaults=False))
results = evaluate(Model(), tasks, log_samples=True, bootstrap_iters=0)
samples = results.pop("samples")
tracker = EvaluationTracker(output_path="out")
tracker.general_config_tracker.model_name_sanitized = "model"
tracker.save_results_aggregated(results=results, samples=samples)
tracker.save_results_samples("plain", samples["plain"])
p, y = json.load(open("rows.json"))
metric = Calibration().compute(predictions=p, references=y)
names = {"capitals": ("acc", "atb"), "plain": ("acc", "acc_norm")}
values = {t: {m: results["results"][t][m + ",none"] for m in ms} for t, ms in names.items()}
json.dump({"lm_eval": values, "evaluate": metric}, open("results.json", "w"))
"""


def block(language, mark):
    """The code block of the page that contains some text."""
    return next(code for code in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if mark in code)


def questions(n=60):
    """Questions whose text holds the log-likelihood of each option, which the model reads off."""
    rng, lines = np.random.default_rng(0), []
    for i in range(n):
        p, choices = rng.dirichlet([1, 1, 1]), [f"a{i}", f"the town of {i}", f"Bé {i}"]
        scores = dict(zip(choices, (3 * np.log(p) - 9).round(6).tolist(), strict=True))
        lines.append({"question": json.dumps(scores), "choices": choices, "answer": int(rng.choice(3, p=p))})
    return lines


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    """Run the recipes in a folder, offline; returns it."""
    if importlib.util.find_spec("lm_eval") is None:
        pytest.skip("lm_eval is not installed (dependency group language-models)")
    folder = tmp_path_factory.mktemp("harness")
    task = block("yaml", "task: capitals")
    (folder / "truthcal_metric.py").write_text(block("python", "evaluate.Metric"))
    (folder / "calibration.py").write_text(block("python", "def process_results"))
    (folder / "capitals.yaml").write_text(task)
    plain = re.sub(r"process_results: .*\n|metric_list:(.|\n)*", "", task).replace("capitals", "plain")
    (folder / "plain.yaml").write_text(f"{plain}metric_list:\n  - metric: acc\n  - metric: acc_norm\n")
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in questions()))
    rng = np.random.default_rng(1)
    p = rng.random(200)
    (folder / "rows.json").write_text(json.dumps([p.tolist(), (rng.random(200) < p).astype(int).tolist()]))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, env=os.environ | offline, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_aggregation_of_lm_eval(harness):
    found = json.loads((harness / "results.json").read_text())["lm_eval"]["capitals"]
    scores = np.array([list(json.loads(line["question"]).values()) for line in questions()])
    correct = np.arange(3) == np.array([line["answer"] for line in questions()])[:, None]
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert found["atb"] == pytest.approx(tc.atb(correct.ravel(), p.ravel()), rel=1e-9)
    assert found["acc"] == pytest.approx(correct[np.arange(60), scores.argmax(1)].mean())


def test_the_metric_of_evaluate(harness):
    p, y = json.loads((harness / "rows.json").read_text())
    found = json.loads((harness / "results.json").read_text())["evaluate"]
    summary = tc.atb_summary(y, p)
    assert (found["atb"], found["excess"]) == pytest.approx((summary.value, summary.excess))
    assert found["pvalue"] == pytest.approx(tc.calibration_test(y, p).pvalue)


@pytest.mark.parametrize(("rule", "metric"), [("softmax", "acc"), ("length-normalised", "acc_norm")])
def test_a_samples_file_of_lm_eval_gives_a_verdict(harness, rule, metric, capsys):
    """The most likely options under each rule are those that lm-eval counts."""
    (path,) = (harness / "out").rglob("samples_plain_*.jsonl")
    assert main(["assess", str(path)]) == 0
    assert capsys.readouterr().out.startswith("Overconfident")
    assert main(["assess", str(path), "--answers", "top", "--rule", rule, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["models"][0]["assessment"]["mean_true"]
    assert found == pytest.approx(json.loads((harness / "results.json").read_text())["lm_eval"]["plain"][metric])
