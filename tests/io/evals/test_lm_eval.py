"""Samples files of lm-evaluation-harness, by the schema of several versions."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.evaluations import TEXTS, sample, samples, write_lines

from truthcal.io.evals.lm_eval import probabilities, read_lm_eval
from truthcal.io.evals.options import EvalOptions
from truthcal.io.files.find_files import find_sources


@pytest.fixture
def read(tmp_path):
    """Read lines as a samples file."""

    def run(*lines, **options):
        path = write_lines(tmp_path / "samples_toy_2026-01-31.jsonl", lines)
        (rows,) = read_lm_eval(find_sources(path), EvalOptions(**options))
        return rows

    return run


# --- rules ------------------------------------------------------------------------------------------------------------


def slow_softmax(scores):
    """The definition: exp(s) divided by the sum of all exp(s), with fractions of any size."""
    return [1.0 / sum(math.exp(min(other - score, 700.0)) for other in scores) for score in scores]


@given(st.lists(st.floats(-600, 0), min_size=2, max_size=6))
def test_softmax_equals_the_definition(scores):
    found = probabilities(scores, None, "softmax", "file")
    assert found == pytest.approx(slow_softmax(scores), abs=1e-14)
    assert math.fsum(found) == pytest.approx(1.0, abs=1e-14)


@given(st.lists(st.tuples(st.floats(-600, 0), st.integers(1, 40)), min_size=2, max_size=6))
def test_length_normalised_equals_the_definition(options):
    scores, texts = [score for score, _ in options], [" " + "é" * n for _, n in options]
    found = probabilities(scores, texts, "length-normalised", "file")
    assert found == pytest.approx(slow_softmax([score / n for score, n in options]), abs=1e-14)


def test_an_impossible_option_has_probability_0():
    assert probabilities([-1.0, -math.inf], None, "softmax", "file") == [1.0, 0.0]
    assert probabilities([-2.0, -math.inf], ["a", ""], "length-normalised", "file") == [1.0, 0.0]


def test_likelihoods_far_below_0_do_not_underflow():
    assert probabilities([-5000.0, -5000.0], None, "softmax", "file") == [0.5, 0.5]


def test_length_normalised_needs_texts(read):
    with pytest.raises(ValueError, match=r"does not tell the texts of the options \(`arguments`\); use --rule softmax"):
        read(sample(0, [-1.0, -2.0], 0, arguments=...), rule="length-normalised")


# --- rows -------------------------------------------------------------------------------------------------------------


def test_each_option_is_a_row_of_its_question(read):
    rows = read(sample(0, [-1.0, -2.0, -4.0], 1), sample(1, [-1.0, -1.0], 0))
    assert rows.columns["doc_id"] == ["0", "0", "0", "1", "1"]
    assert len(set(rows.columns["question"])) == 2
    assert rows.columns["correct"] == [0, 1, 0, 1, 0]
    assert rows.columns["option"] == [0, 1, 2, 0, 1]
    assert rows.columns["probability"] == pytest.approx([*slow_softmax([-1, -2, -4]), 0.5, 0.5])
    assert len(set(rows.columns["row"])) == 5
    assert (rows.proba, rows.label, rows.group) == (("probability",), "correct", "question")
    (about, rows_note) = rows.notes
    assert about.startswith("lm-eval samples: 2 questions with 5 options. Rule softmax")
    assert "neither the probability of its tokens nor self-reported" in about
    assert "the bias of all rows is 0 by construction" in rows_note


def test_only_the_top_answer(read):
    rows = read(sample(0, [-1.0, -2.0, -4.0], 1), sample(1, [-3.0, -1.0], 1), answers="top")
    assert rows.columns["probability"] == pytest.approx([slow_softmax([-1, -2, -4])[0], slow_softmax([-3, -1])[1]])
    assert rows.columns["correct"] == [0, 1]
    assert rows.group is None
    assert "This can be gamed" in rows.notes[1]


def test_the_top_answer_is_that_of_the_rule(read):
    likelihoods = [-4.0, -6.0]  # per character: -4/5 and -6/16
    assert read(sample(0, likelihoods, 1), answers="top").columns["correct"] == [0]
    rows = read(sample(0, likelihoods, 1), answers="top", rule="length-normalised")
    assert rows.columns["correct"] == [1]
    assert len(TEXTS[1]) == 16
    assert rows.columns["probability"] == pytest.approx(slow_softmax([-4 / 5, -6 / 16])[1:])
    assert "Rule length-normalised" in rows.notes[0]
    assert "as in acc_norm" in rows.notes[0]


def test_fields_of_the_document_are_columns_if_named(read):
    rare = sample(2, [-1.0, -2.0], 1, doc={"rare": 1})
    rows = read(*(sample(i, [-1.0, -2.0], 1) for i in (0, 1)), rare, names=("doc.subject", "doc.rare", "option"))
    assert rows.columns["doc.subject"] == ["north", "north", "south", "south", None, None]
    assert rows.columns["doc.rare"] == [None] * 4 + [1, 1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("doc.Subject", r"no row has the field 'doc\.Subject'\. Did you mean 'doc\.subject'\?"),
        ("doc.none", r"no row has the field 'doc\.none'\. The fields are '(doc\.\w+', ')*doc\.subject'"),
    ],
)
def test_a_field_that_no_row_has_is_refused(read, name, message):
    with pytest.raises(ValueError, match=message):
        read(*samples(2), names=(name,))


def test_one_question_is_singular(read):
    assert read(samples(1)[0]).notes[0].startswith("lm-eval samples: 1 question with ")


def test_a_field_that_only_one_file_has_is_accepted(tmp_path):
    paths = [write_lines(tmp_path / f"{i}.jsonl", [sample(i, [-1.0, -2.0], 1, doc={f"f{i}": i})]) for i in (0, 1)]
    a, b = read_lm_eval(find_sources(paths), EvalOptions(names=("doc.f1",)))
    assert (a.columns["doc.f1"], b.columns["doc.f1"]) == ([None] * 2, [1] * 2)
    with pytest.raises(ValueError, match=r"these files: no row has the field 'doc\.f9'"):
        read_lm_eval(find_sources(paths), EvalOptions(names=("doc.f9",)))


@pytest.mark.parametrize(
    "change",
    [
        {"filtered_resps": [[-1.0, False], [-2.0, True]], "target": 1},  # numbers, as of older versions
        {"filtered_resps": [[["-1.0", "False"]], [["-2.0", "True"]]]},
        {"filtered_resps": ...},
        {"filtered_resps": None},
        {"filtered_resps": ["text", "text"]},
        {"arguments": [["Capital?", " Paris"], ["Capital?", " the city of Rome"]]},
        {"arguments": [{"arg_0": "", "arg_1": " Paris"}, {"arg_0": "", "arg_1": " the city of Rome"}]},
        {"arguments": None, "doc_hash": ..., "doc": ..., "acc": ..., "filter": ...},
        {"target": [1]},
        {"target": "[1]"},
        {"target": " the city of Rome"},
        {"target": "B"},
        {"target": "(b)"},
        {"target": "b."},
    ],
)
def test_versions_of_the_schema(read, change):
    line = {**sample(0, [-1.0, -2.0], 1), **change}
    rows = read({name: value for name, value in line.items() if value is not ...})
    assert rows.columns["probability"] == pytest.approx(slow_softmax([-1, -2]))
    assert rows.columns["correct"] == [0, 1]


def test_arguments_are_ordered_by_number(read):
    n = 12
    texts = [" " + "x" * (k + 1) for k in range(n)]
    arguments = {f"gen_args_{k}": {"arg_0": "", "arg_1": texts[k]} for k in sorted(range(n), key=str)}
    line = sample(0, [-1.0] * n, 0, arguments=arguments)
    rows = read(line, rule="length-normalised")
    assert rows.columns["probability"] == pytest.approx(slow_softmax([-1 / (k + 1) for k in range(n)]))


def test_unconditional_likelihoods_of_mutual_information_are_no_options(read):
    pairs = [["-1.0", "False"], ["-2.0", "False"], ["-9.0", "False"], ["-9.5", "False"]]
    rows = read(sample(0, [-1.0, -2.0], 1, filtered_resps=pairs, arguments=..., acc_mutual_info=1.0))
    assert rows.columns["probability"] == pytest.approx(slow_softmax([-1, -2]))


# --- targets ----------------------------------------------------------------------------------------------------------


def numbered(target, **more):
    """A question whose options are the texts 1 and 0, so that the target 1 may be an index or a text."""
    arguments = [["", " 1"], ["", " 0"]]
    return sample(0, [-1.0, -2.0], 0, target=target, arguments=arguments, **more)


def test_digits_are_an_index_unless_only_the_text_fits_the_accuracy(read):
    assert read(numbered("1", acc=...)).columns["correct"] == [0, 1]
    assert read(numbered("1", acc=0.0)).columns["correct"] == [0, 1]
    assert read(numbered("1", acc=1.0)).columns["correct"] == [1, 0]


def test_two_options_with_the_same_text_are_told_apart_by_the_accuracy(read):
    """Winogrande: the contexts differ, and the target is the text after them."""
    arguments = [["The cup", " was full."], ["The jug", " was full."]]
    for acc, expected in ((1.0, [1, 0]), (0.0, [0, 1])):
        line = sample(0, [-1.0, -2.0], 0, target="was full.", arguments=arguments, acc=acc)
        assert read(line).columns["correct"] == expected


def test_several_correct_options_are_noted(read):
    rows = read(sample(0, [-1.0, -2.0, -3.0], 0, target="[0, 2]"))
    assert rows.columns["correct"] == [1, 0, 1]
    assert "1 questions have several correct options" in rows.notes[-1]


def test_an_accuracy_that_contradicts_the_target_is_noted(read):
    rows = read(sample(0, [-1.0, -2.0, -3.0], 0, acc=0.0))
    assert rows.columns["correct"] == [1, 0, 0]
    assert rows.notes[-1] == "In 1 questions, `acc` does not fit the target: the task may score in its own way."


@pytest.mark.parametrize("target", ["7", "Z", "Madrid", "", None, "-1", "[0, 9]", "__import__('os')", "[" * 500])
def test_targets_that_are_no_option(read, target):
    with pytest.raises(
        ValueError, match=r"row 0 \(doc_id 0\): the target .* is none of its 3 options, by index, text or"
    ):
        read(sample(0, [-1.0, -2.0, -3.0], 0, target=target))


def test_partial_accuracy_is_refused(read):
    with pytest.raises(
        ValueError, match=r"`acc` is 0.43, so several options are correct to some degree, as in TruthfulQA"
    ):
        read(sample(0, [-1.0, -2.0, -3.0], 0, acc=0.43))


# --- files ------------------------------------------------------------------------------------------------------------


def test_lines_of_further_filters_are_left_out_and_counted(read):
    lines = samples(3, options=2)
    others = [{**line, "filter": "flexible"} for line in lines]
    rows = read(*lines, *others)
    assert len(rows.columns["row"]) == 6
    assert rows.notes[-1] == "3 lines of other filters than 'none' (flexible) repeat questions and are left out."


def test_a_question_that_occurs_twice_is_refused(read):
    with pytest.raises(ValueError, match=r"row 2: the question with doc_id 0 occurs twice, .* two runs"):
        read(*samples(2), samples(1)[0])


def test_questions_of_several_files_are_told_apart(tmp_path):
    lines = samples(2)
    paths = [write_lines(tmp_path / f"{name}.jsonl", lines) for name in ("a", "b")]
    without = [{name: value for name, value in line.items() if name != "doc_hash"} for line in lines]
    plain = [write_lines(tmp_path / f"plain-{name}.jsonl", without) for name in ("a", "b")]
    same = read_lm_eval(find_sources(paths), EvalOptions())
    assert same[0].columns["question"] == same[1].columns["question"]  # the same document
    a, b = read_lm_eval(find_sources(plain), EvalOptions())
    assert set(a.columns["question"]).isdisjoint(b.columns["question"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "has no rows; at least one is needed"),
        ([{"a": 1}], "row 0 is no sample of lm-eval: it has no `doc_id`, or neither `filtered_resps` nor `resps`"),
        ([sample(0, [-1.0], 0)], "each question has only one option, whose probability would always be 1"),
        (
            [sample(0, [-1.0, -2.0], 0, resps=[["42"]], filtered_resps=["42"])],
            r"row 0 has no log-likelihoods, as of a task that generates text \(filtered_resps is \[\"42\"\]\); truthcal",
        ),
        ([sample(0, [-1.0, -2.0], 0, resps=[["4", "0"]], filtered_resps=[["4", "0"]])], "has no log-likelihoods"),
        ([sample(0, [-1.0, -2.0], 0, resps=[], filtered_resps=[])], "has no log-likelihoods"),
        ([sample(0, [-1.0, math.nan], 0)], "the log-likelihood of an option must be a number; found 'nan'"),
        ([sample(0, [-1.0, math.inf], 0)], "the log-likelihood of an option must be a number; found 'inf'"),
        (
            [sample(0, [-1.0, -2.0], 0, filtered_resps=[["x", "False"], [None, "False"]])],
            "the log-likelihood of an option must be a number; found 'x'",
        ),
        ([sample(0, [-math.inf, -math.inf], 0)], "all log-likelihoods are -inf, so no option has a probability"),
        ([samples(1)[0], [1, 2]], r"row 1 is not an object \('\[1, 2\]'\); each line must be one object"),
    ],
)
def test_files_that_are_refused(read, lines, message):
    with pytest.raises(ValueError, match=message):
        read(*lines)


def test_a_line_that_is_cut_off(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(samples(1)[0]) + "\n" + json.dumps(samples(2)[1])[:50])
    with pytest.raises(ValueError, match=r"row 1 is not JSON \(.*\); each line must be one object"):
        read_lm_eval(find_sources(path), EvalOptions())


def test_long_files_with_blank_lines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "samples.jsonl"
    lines = [json.dumps({**line, "doc": {"text": "é" * 3000}}, ensure_ascii=False) for line in samples(900)]
    path.write_text("\ufeff" + "\n\n".join(lines), encoding="utf-8")
    (rows,) = read_lm_eval(find_sources(path), EvalOptions())
    assert len(rows.columns["row"]) == 3600


# --- what rows of options are worth -----------------------------------------------------------------------------------


def expected_atb(truth, report):
    """The expected ATB of all options as rows, by its definition: the mean of c_a c_b (1 - |p_a - p_b|).

    Errors of different questions are independent; the options of one question exclude each other.
    """
    bias, p = (report - truth).ravel(), report.ravel()
    total = bias @ (1 - np.abs(p[:, None] - p)) @ bias
    for q, r in zip(truth, report, strict=True):
        total += ((np.diag(q) - np.outer(q, q)) * (1 - np.abs(r[:, None] - r))).sum()
    return total / p.size**2


def test_lies_gain_less_with_more_questions():
    """As the guide says: rows of options are not independent, so that a small lie gains a little."""
    gains = []
    for n in (20, 100):
        truth = np.random.default_rng(0).dirichlet(np.ones(4), n)
        lies = [expected_atb(truth, 0.25 + (1 - shrink) * (truth - 0.25)) for shrink in np.linspace(0, 0.2, 201)]
        gains.append(1 - min(lies) / lies[0])
    assert 0.01 < gains[0] < 0.06
    assert 0.001 < gains[1] < 0.01
