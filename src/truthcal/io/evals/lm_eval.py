"""Samples files of lm-evaluation-harness: log-likelihoods of the options of a question become probabilities.

The harness writes one line for each question and filter, with `doc_id`, `doc`, `target`, `arguments` (context and
continuation of each option), `resps` and `filtered_resps` (log-likelihood and `is_greedy` of each option) and metrics
such as `acc`. Newer versions write all numbers in `resps` and the target as text.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal.core.params import closest_name, list_shown, shown
from truthcal.io.evals.json_lines import read_objects
from truthcal.io.evals.lm_eval_target import Unknown, find_correct
from truthcal.io.evals.options import EvalOptions, EvalRows, Rule
from truthcal.io.files.source import Source
from truthcal.results.text import count

_BOOLS = ("True", "False", True, False)
_MEANING = (
    "Confidence here is the probability of an answer among the listed options, computed from log-likelihoods; it is "
    "neither the probability of its tokens nor self-reported."
)
_RULES = {
    "softmax": "softmax of the log-likelihoods of its options",
    "length-normalised": "softmax of the log-likelihoods of its options, each divided by the option's number of "
    "characters, as in acc_norm",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One line of a samples file, with numbers parsed: log-likelihoods and texts of the options, and the right ones."""

    id: str
    doc_id: Any
    fields: dict[str, Any]  # fields of `doc` that the user named, as in --by doc.subject
    filter: str
    likelihoods: list[float]
    texts: list[str] | None  # None if the file does not tell
    correct: frozenset[int]
    agrees: bool  # whether `acc` says the same of the most likely option


def is_lm_eval(first: dict[str, Any]) -> bool:
    """Whether a JSON line is a sample of lm-evaluation-harness."""
    return "doc_id" in first and ("filtered_resps" in first or "resps" in first)


def read_lm_eval(sources: list[Source], options: EvalOptions) -> list[EvalRows]:
    """Read samples files: one row for each option of each question, or for the chosen option of each.

    Lines of all filters but the first of a file are left out, because each question would count several times.
    """
    known = dict[str, None]()
    files = [_rows_of_file(source, options, known, several=len(sources) > 1) for source in sources]
    _refuse_unknown_fields(options.names, list(known), str(sources[0]) if len(sources) == 1 else "these files")
    return files


def _refuse_unknown_fields(names: Iterable[str], known: list[str], where: str) -> None:
    """Reject a named field of `doc` that no row of any file has; some rows may lack it."""
    for name in (name for name in names if name.startswith("doc.") and name.removeprefix("doc.") not in known):
        close = closest_name(name.removeprefix("doc."), known)
        listed = list_shown([f"doc.{field}" for field in known])
        cure = f"Did you mean {shown(f'doc.{close}')}?" if close else f"The fields are {listed}."
        raise ValueError(f"{where}: no row has the field {shown(name)}. {cure}")


def _rows_of_file(source: Source, options: EvalOptions, known: dict[str, None], *, several: bool) -> EvalRows:
    """Read one file; add the names of the fields of `doc` to `known`."""
    questions, filters, seen = list[Question](), Counter[str](), set[tuple[Any, ...]]()
    for row, sample in read_objects(source):
        where = f"{source}: row {row}"
        known.update(dict.fromkeys(_document(sample)))
        filters[str(sample.get("filter", "none"))] += 1
        if len(filters) > 1 and str(sample.get("filter", "none")) != next(iter(filters)):
            continue
        question = _parse_sample(sample, where, f"{source.path.name}/" if several else "", options.names)
        identity = (question.id, str(question.doc_id))
        if identity in seen:
            problem = f"{where}: the question with doc_id {question.doc_id!r} occurs twice"
            raise ValueError(f"{problem}, so it would count twice. Does the file hold two runs? Split it.")
        seen.add(identity)
        questions.append(question)
    if not questions:
        raise ValueError(f"{source} has no rows; at least one is needed.")
    if all(len(question.likelihoods) == 1 for question in questions):
        _refuse_one_option(str(source))
    return EvalRows(
        _columns(questions, options, str(source)),
        proba=("probability",),
        label="correct",
        group=None if options.answers == "top" else "question",
        notes=tuple(_notes(questions, filters, options)),
    )


# --- one sample -------------------------------------------------------------------------------------------------------


def _parse_sample(sample: dict[str, Any], where: str, prefix: str, names: tuple[str, ...]) -> Question:
    if not is_lm_eval(sample):
        raise ValueError(
            f"{where} is no sample of lm-eval: it has no `doc_id`, or neither `filtered_resps` nor `resps`."
        )
    likelihoods = _likelihoods(sample, where)
    texts = _texts(sample.get("arguments"), len(likelihoods))
    if "acc_mutual_info" in sample and len(likelihoods) % 2 == 0:  # the second half are options without the question
        likelihoods = likelihoods[: len(likelihoods) // 2]
        texts = None if texts is None else texts[: len(likelihoods)]
    try:
        correct, agrees = find_correct(sample, likelihoods, texts)
    except Unknown as error:
        raise ValueError(f"{where} (doc_id {sample['doc_id']!r}): {error}") from None
    doc = _document(sample)
    fields = {name: doc.get(name.removeprefix("doc.")) for name in names if name.startswith("doc.")}
    identity = sample.get("doc_hash") or f"{prefix}{sample['doc_id']}"
    return Question(
        str(identity), sample["doc_id"], fields, str(sample.get("filter", "none")), likelihoods, texts, correct, agrees
    )


def _document(sample: dict[str, Any]) -> dict[str, Any]:
    return sample["doc"] if isinstance(sample.get("doc"), dict) else {}


def _likelihoods(sample: dict[str, Any], where: str) -> list[float]:
    """Return the log-likelihood of each option, from `filtered_resps` or else `resps`."""
    for name in ("filtered_resps", "resps"):
        values = sample.get(name)
        pairs = [_unwrapped(value) for value in values] if isinstance(values, list) else []
        if pairs and all(_is_pair(pair) for pair in pairs):
            numbers = [_number(pair[0], where) for pair in pairs]
            if max(numbers) == -math.inf:
                raise ValueError(f"{where}: all log-likelihoods are -inf, so no option has a probability.")
            return numbers
    problem = f"{where} has no log-likelihoods, as of a task that generates text ({_example(sample)})"
    cure = "truthcal needs a probability: a multiple-choice task, or JSON lines with columns confidence and correct"
    raise ValueError(f"{problem}; {cure} (--format confidence).")


def _unwrapped(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _is_pair(value: Any) -> bool:
    """Whether a response is a log-likelihood and whether the text is the most likely one; answers are not."""
    return isinstance(value, list) and len(value) == 2 and any(value[1] is x or value[1] == x for x in _BOOLS)


def _number(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or number == math.inf:
        raise ValueError(f"{where}: the log-likelihood of an option must be a number; found {shown(value)}.")
    return number


def _example(sample: dict[str, Any]) -> str:
    return f"filtered_resps is {json.dumps(sample.get('filtered_resps', sample.get('resps')))[:60]}"


def _texts(arguments: Any, n: int) -> list[str] | None:
    """Return the continuation of each option from `arguments`, a list of pairs or a dict of dicts; None if unknown."""
    if isinstance(arguments, dict):
        numbered = sorted(arguments.items(), key=lambda item: int("0" + "".join(filter(str.isdigit, item[0]))))
        arguments = [value for _, value in numbered]
    if not isinstance(arguments, list) or len(arguments) != n:
        return None
    texts = [list(item.values()) if isinstance(item, dict) else item for item in arguments]
    if not all(isinstance(item, list) and len(item) >= 2 and isinstance(item[1], str) for item in texts):
        return None
    return [item[1] for item in texts]


# --- rows -------------------------------------------------------------------------------------------------------------


def probabilities(likelihoods: list[float], texts: list[str] | None, rule: Rule, where: str) -> list[float]:
    """Return the probability of each option by a rule of `RULES`.

    `length-normalised` divides each log-likelihood by the number of characters of its option, without the space in
    front of it, which separates it from the question.
    """
    scores = likelihoods
    if rule == "length-normalised":
        if texts is None:
            raise ValueError(f"{where} does not tell the texts of the options (`arguments`); use --rule softmax.")
        scores = [score / max(len(text.lstrip()), 1) for score, text in zip(likelihoods, texts, strict=True)]
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def _columns(questions: Iterable[Question], options: EvalOptions, where: str) -> dict[str, list[Any]]:
    rows = [row for question in questions for row in _rows_of_question(question, options, where)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _rows_of_question(question: Question, options: EvalOptions, where: str) -> Iterable[dict[str, Any]]:
    p = probabilities(question.likelihoods, question.texts, options.rule or "softmax", where)
    chosen = [p.index(max(p))] if options.answers == "top" else range(len(p))
    for k in chosen:
        yield {
            "question": question.id,
            "row": question.id if options.answers == "top" else f"{question.id}/{k}",
            "doc_id": str(question.doc_id),
            "option": k,
            "filter": question.filter,
            "probability": p[k],
            "correct": float(k in question.correct),
            **question.fields,
        }


def _notes(questions: list[Question], filters: Counter[str], options: EvalOptions) -> Iterable[str]:
    rule, n_options = options.rule or "softmax", sum(len(question.likelihoods) for question in questions)
    what = f"{count(len(questions), 'question')} with {count(n_options, 'option')}"
    yield f"lm-eval samples: {what}. Rule {rule}: a question's probabilities are the {_RULES[rule]}. {_MEANING}"
    if options.answers != "top":
        yield (
            "Each option is a row. The options of a question exclude each other: their probabilities sum to 1 and one "
            "is correct, so the bias of all rows is 0 by construction."
        )
    else:
        yield (
            "Only the top answer of each question is a row. This can be gamed: a model that reports untrue "
            "probabilities of its top answers may look better than an honest one. Use --answers all to rank models."
        )
    first, *others = filters
    if others:
        left_out = sum(filters[name] for name in others)
        names = ", ".join(others)
        yield f"{left_out:,} lines of other filters than {first!r} ({names}) repeat questions and are left out."
    several = sum(len(question.correct) > 1 for question in questions)
    if several:
        yield f"{several:,} questions have several correct options; a softmax over options assumes that one is correct."
    contradictions = sum(not question.agrees for question in questions)
    if contradictions:
        yield f"In {contradictions:,} questions, `acc` does not fit the target: the task may score in its own way."


def _refuse_one_option(where: str) -> NoReturn:
    problem = f"{where}: each question has only one option, whose probability would always be 1"
    raise ValueError(
        f"{problem}. truthcal needs the log-likelihoods of several options, as a multiple-choice task has them."
    )
