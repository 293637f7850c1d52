"""Evaluation files of language models on the command line: from the file to a verdict without a flag."""

import json

import numpy as np
import pytest
from support.cli import valid
from support.evaluations import samples, write_lines

import truthcal as tc


@pytest.fixture
def harness(tmp_path):
    """Write a samples file of lm-eval."""

    def run(n=120, name="samples_toy_2026-01-31.jsonl", **options):
        return write_lines(tmp_path / name, samples(n, **options))

    return run


def answers(n=300, *, missing=0.0, seed=0):
    """Overconfident answers."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        p = round(rng.uniform(0.3, 1), 3)
        written = [p, f"{100 * p:.1f}%", str(p)][i % 3]
        rows.append({"confidence": None if i < missing * n else written, "correct": "IC"[int(rng.random() < p**3)]})
    return rows


def test_samples_of_lm_eval_give_a_verdict_without_a_flag(quick, harness):
    done = quick("assess", harness(exponent=3.0), check=0)
    assert done.out.startswith("Overconfident: predictions are too extreme.")
    assert "Rule softmax" in done.out
    assert "neither the probability of its tokens nor self-reported" in " ".join(done.out.split())
    assert done.err == (
        "truthcal: the content determines, as if you had typed: --format lm-eval --label correct --proba probability\n"
        "truthcal: rows are grouped by doc_id: 480 rows of 120 questions, as if you had typed: --group question\n"
    )


def test_calibrated_samples_of_lm_eval(quick, harness):
    path = harness()
    content = valid(quick("assess", path, "--json", check=0).out)
    found, about = content["models"][0]["assessment"], content["input"]
    assert found["n_groups"] == 120
    assert (about["format"], about["rule"], about["group"]) == ("lm-eval", "softmax", "question")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    scores = np.array([[float(pair[0]) for pair in line["filtered_resps"]] for line in lines])
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    y = np.arange(4) == np.array([int(line["target"]) for line in lines])[:, None]
    expected = tc.assess(y.ravel(), p.ravel(), groups=np.repeat(np.arange(120), 4))
    assert found["kind"] == expected.kind
    assert found["atb"] == pytest.approx(expected.atb, rel=1e-9)
    assert found["test"]["pvalue"] == pytest.approx(expected.test.pvalue, rel=1e-6)


def test_the_rule_and_the_rows_are_chosen_by_flags(quick, harness):
    path = harness()
    done = quick("assess", path, "--answers", "top", "--rule", "length-normalised", "--json", check=0)
    about = valid(done.out)["input"]
    assert (about["rows"], about["group"], about["rule"]) == (120, None, "length-normalised")
    assert any("can be gamed" in note for note in about["notes"])


def test_segments_of_fields_of_the_documents(quick, harness):
    content = valid(quick("assess", harness(), "--by", "doc.subject", "--json", check=0).out)
    assert [segment["key"] for segment in content["models"][0]["segments"]["segments"]] == ["north", "south"]


def test_every_command_reads_samples(quick, harness, tmp_path):
    path = harness()
    assert "multiscale" in quick("test", path, check=0).out or "p = " in quick("test", path, check=0).out
    assert "Rule softmax" in quick("measures", path, "--measure", "atb", check=0).out
    assert "Rule softmax" in quick("check", path, "--max-error", "0.5", check=0).out
    quick("sketch", path, "-o", tmp_path / "out.sketch", check=0)
    assert "120 groups" in quick("assess", tmp_path / "out.sketch", check=0).out


def test_report_names_the_rule(quick, harness, tmp_path):
    pytest.importorskip("jinja2")
    quick("assess", harness(), "--report", tmp_path / "out.html", check=0)
    page = (tmp_path / "out.html").read_text()
    assert "Rule softmax" in page
    assert "were guessed from the column names" not in page


def test_two_models_are_compared_option_by_option(quick, harness):
    a, b = harness(name="a.jsonl"), harness(name="b.jsonl", exponent=3.0)
    content = valid(quick("compare", a, b, "--key", "row", "--json", check=0).out)
    assert content["comparison"]["n_groups"] == 120
    assert content["comparison"]["names"] == ["a", "b"]
    assert "a has the better ATB" in content["verdict"]


def test_too_few_questions(quick, harness):
    done = quick("assess", harness(15), check=2)
    assert "several rows answer the same question, and there are only 15 questions. At least 20 are needed" in done.err
    assert "--answers top, one row per question" in done.err
    quick("assess", harness(15), "--answers", "top", check=0)
    quick("measures", harness(15), "--measure", "atb", check=0)


def test_samples_on_standard_input(quick, harness):
    done = quick("assess", "-", stdin=harness().read_bytes(), check=0)
    assert "lm-eval samples: 120 questions" in done.out


def test_markdown_lists_the_notes(quick, harness):
    done = quick("assess", harness(), "--markdown", check=0)
    assert "\n- lm-eval samples: 120 questions" in done.out


def test_missing_confidences_are_reported(quick, tmp_path):
    path = write_lines(tmp_path / "answers.jsonl", answers(200, missing=0.15))
    done = quick("assess", path, check=0)
    assert "15% of the confidences are missing (30 of 200 rows); these rows are left out." in done.out
    assert "The file does not tell what 'confidence' means" in done.out
    about = valid(quick("assess", path, "--json", check=0).out)["input"]
    assert (about["rows"], about["dropped"]["missing_probabilities"]) == (170, 30)


def test_answers_of_the_same_question_are_grouped(quick, tmp_path):
    rows = [{"question_id": i // 3, **row} for i, row in enumerate(answers(90))]
    path = write_lines(tmp_path / "answers.jsonl", rows)
    done = quick("assess", path, check=0)
    assert "rows are grouped by 'question_id': 90 rows of 30 questions" in done.err
    assert "groups          30 " in done.out
    own = quick("assess", path, "--group", "confidence", check=0)
    assert "rows are grouped by" not in own.err


def test_recalibrate_groups_the_answers_of_a_question(quick, tmp_path):
    """The same fit as with --group; fewer questions than a test needs are an error, as in `assess`."""
    rows = [{"question_id": i // 3, **row} for i, row in enumerate(answers(600))]
    path = write_lines(tmp_path / "answers.jsonl", rows)
    done = quick("recalibrate", path, "-o", "a.json", check=0)
    assert "rows are grouped by 'question_id': 600 rows of 200 questions" in done.err
    typed = quick("recalibrate", path, "--group", "question_id", "-o", "b.json", check=0)
    assert typed.out.replace("b.json", "a.json") == done.out
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    few = write_lines(tmp_path / "few.jsonl", rows[:45])
    assert "several rows answer the same question" in quick("recalibrate", few, check=2).err


def test_questions_cannot_be_grouped_over_time(quick, tmp_path):
    rows = [{"question_id": i // 3, "day": f"2026-01-{1 + i % 20:02d}", **row} for i, row in enumerate(answers(90))]
    done = quick("assess", write_lines(tmp_path / "a.jsonl", rows), "--time", "day", "--window", "week", check=0)
    assert "rows with the same 'question_id' answer the same question, but --time takes rows as independent" in done.err


def test_percentages_need_a_flag(quick, tmp_path):
    rows = [
        {"confidence": 100 * float(row["confidence"].rstrip("%")) / (100 if "%" in row["confidence"] else 1)}
        | {"correct": row["correct"]}
        for row in answers()
        if isinstance(row["confidence"], str)
    ]
    path = write_lines(tmp_path / "answers.jsonl", rows)
    assert "If all numbers of this column are percentages, use --percent" in quick("assess", path, check=2).err
    quick("assess", path, "--percent", check=0)


def test_a_wrong_format_is_named(quick, tmp_path):
    path = write_lines(tmp_path / "answers.jsonl", answers())
    assert "is no sample of lm-eval" in quick("assess", path, "--format", "lm-eval", check=2).err
    assert "--rule applies only to --format lm-eval" in quick("assess", path, "--rule", "softmax", check=2).err
    assert "invalid choice: 'eval'" in quick("assess", path, "--format", "eval", check=2).err


def test_a_bias_of_0_by_construction_is_no_error(quick, harness):
    """The bias is 0 up to rounding, and so is its interval."""
    for seed in range(4):
        found = valid(quick("assess", harness(seed=seed), "--json", check=0).out)["models"][0]["assessment"]
        assert found["bias_interval"]["low"] < 0 < found["bias_interval"]["high"]
        assert found["error"]["low"] == 0
