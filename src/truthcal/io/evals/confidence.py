"""Answers with a confidence each: JSON lines whose confidences are numbers, text such as "85%", or missing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from truthcal.core.frame_columns import require_columns
from truthcal.core.params import list_shown
from truthcal.io.evals.json_lines import read_objects
from truthcal.io.evals.options import EvalOptions, EvalRows, repeats
from truthcal.io.evals.values import parse_confidence, parse_outcome
from truthcal.io.files.source import Source

_WORD = re.compile(r"[a-z]+|[0-9]+")
_CONFIDENCE = {"confidence", "confidences", "conf", "certainty"}
# Names of columns that say whether an answer is correct, the most certain first.
_CORRECT = ("correct", "is_correct", "iscorrect", "answer_correct", "right", "is_right", "passed", "score", "acc")
_QUESTION = {"question_id", "questionid", "question_idx", "question", "doc_id", "qid", "sample_id", "problem_id"}
_QUESTION |= {"prompt_id", "prompt", "task_id", "item_id", "example_id", "instance_id", "id"}
_TOKENS = {"token", "tokens", "logprob", "logprobs", "perplexity", "sequence"}
_SELF = {"self", "verbal", "verbalized", "verbalised", "stated", "reported", "elicited", "said"}
_ANSWER = {"answer", "option", "choice", "class", "softmax"}
_UNKNOWN = (
    "The file does not tell what {names} means: the probability of the answer, the probability of its tokens, or a "
    "confidence that the model reported itself."
)
_MEANINGS = (
    (_SELF, "{names}, by its name, is self-reported: what the model said about its answer."),
    (
        _TOKENS,
        "{names}, by its name, is the probability of the tokens of the answer, not of all texts that say the same.",
    ),
    (_ANSWER, "{names}, by its name, is the probability of the answer."),
)


def is_confidence(row: dict[str, Any]) -> bool:
    """Whether a JSON line has a column that is a confidence by its name."""
    return any(map(_is_confidence_name, row))


def read_confidence(sources: list[Source], options: EvalOptions) -> list[EvalRows]:
    """Read JSON lines with confidences; rows whose confidence is missing are left out and counted."""
    files = [[_flat(row) for _, row in read_objects(source)] for source in sources]
    for source, rows in zip(sources, files, strict=True):
        if not rows:
            raise ValueError(f"{source} has no rows; at least one is needed.")
    return convert_answers(sources, files, options)


def read_mixed(sources: list[Source]) -> list[EvalRows]:
    """Read JSON lines whose columns may hold text among numbers; nothing is converted."""
    files = [[_flat(row) for _, row in read_objects(source)] for source in sources]
    names = list(dict.fromkeys(name for rows in files for row in rows for name in row))
    return [EvalRows({name: [row.get(name) for row in rows] for name in names}) for rows in files]


def convert_answers(
    sources: list[Source], files: list[list[dict[str, Any]]], options: EvalOptions, label: str | None = None
) -> list[EvalRows]:
    """Convert the confidences and outcomes of answers, given as one dict for each row of each file.

    `label` is the column of outcomes if the user named none and the format determines it.
    """
    names = list(dict.fromkeys(name for rows in files for row in rows for name in row))
    probas = options.proba or tuple(filter(_is_confidence_name, names))
    if not probas:
        problem = f"{sources[0]}: no column is a confidence by its name; it has {list_shown(names)}"
        raise ValueError(f"{problem}. Name the column with --proba.")
    named = [("--proba", name) for name in options.proba] + [("--label", options.label)] * (options.label is not None)
    require_columns([(flag, str(name)) for flag, name in named], names, str(sources[0]))
    correct = options.label or label or _correct_column(names)
    group = _question_column(names, [row for rows in files for row in rows])
    converted = []
    for source, rows in zip(sources, files, strict=True):
        parsed = [_parse_row(row, i, probas, str(source), options) for i, row in enumerate(rows)]
        if correct is not None:
            _parse_outcomes(parsed, correct, str(source), options)
        if options.percent:
            _refuse_small_percentages(rows, probas, str(source))
        present = [row for row in parsed if all(row.get(name) is not None for name in probas)]
        columns = {name: [row.get(name) for row in present] for name in names}
        missing = len(rows) - len(present)
        notes = tuple(_notes(source, len(rows), missing, probas))
        converted.append(EvalRows(columns, options.proba or probas[: len(probas) == 1], correct, group, missing, notes))
    return converted


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row without lists and objects, which have no role; a confidence that is one is refused later."""
    return {
        name: value for name, value in row.items() if not isinstance(value, list | dict) or _is_confidence_name(name)
    }


def _is_confidence_name(name: str) -> bool:
    last = name.rpartition(".")[2].casefold()  # of a nested field
    return not _CONFIDENCE.isdisjoint(_WORD.findall(last))


def _correct_column(names: Sequence[str]) -> str | None:
    """Return the column that says whether the answer is correct, by its name; None if that is to be guessed."""
    by_name = {name.casefold(): name for name in reversed(names)}
    return next((by_name[name] for name in _CORRECT if name in by_name), None)


def _question_column(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str | None:
    """Return the column that identifies questions by its name, if a value of it is repeated; None otherwise.

    Of several such columns, such as an id and a text, the first one counts if all of them divide the rows alike. A
    prompt may be a template that is shared by many questions, so an id goes before it.
    """
    candidates = [name for name in names if name.casefold() in _QUESTION]
    repeated = [name for name in candidates if all(row.get(name) is not None for row in rows)]
    repeated = [name for name in repeated if repeats([row[name] for row in rows])]
    if any(name.casefold() != "prompt" for name in repeated):
        repeated = [name for name in repeated if name.casefold() != "prompt"]
    alike = len({tuple(row[name] for name in repeated) for row in rows})
    return repeated[0] if repeated and all(len({row[name] for row in rows}) == alike for name in repeated) else None


def _refuse_small_percentages(rows: Sequence[dict[str, Any]], probas: Sequence[str], where: str) -> None:
    """Reject --percent for numbers most of which are below 1: they are probabilities already."""
    for name in probas:
        numbers = [value for row in rows if isinstance(value := row.get(name), int | float) and value not in (0, 1)]
        small = sum(value < 1.0 for value in numbers)
        if 2 * small > len(numbers):
            problem = (
                f"{where}: {small:,} of {len(numbers):,} numbers in {name!r} are below 1, so they are not percentages"
            )
            raise ValueError(f'{problem}. Omit --percent, and write the others as text such as "85%".')


def _parse_row(row: dict[str, Any], i: int, probas: Sequence[str], where: str, options: EvalOptions) -> dict[str, Any]:
    parsed = dict(row)
    for name in probas:
        try:
            parsed[name] = parse_confidence(row.get(name), percent=options.percent)
        except ValueError as error:
            raise ValueError(f"{where}: {name!r} at row {i}: {error}") from None
    return parsed


def _parse_outcomes(rows: Sequence[dict[str, Any]], label: str, where: str, options: EvalOptions) -> None:
    """Convert the outcomes of all rows, in place.

    If the user named a column with other labels, such as "A" and "B", all stay as they are: labels are converted like
    those of other files.
    """
    outcomes = {}
    for i, row in enumerate(rows):
        try:
            outcomes[i] = parse_outcome(row[label]) if label in row else None
        except ValueError:
            if options.label is not None:
                return
            problem = f"{where}: {label!r} at row {i} does not say whether the answer is correct: {row[label]!r}"
            cure = 'Write true/false, 0/1 or "C"/"I", or name another column with --label'
            raise ValueError(f"{problem}. {cure}.") from None
    for i, outcome in outcomes.items():
        rows[i][label] = outcome


def _notes(source: Source, n: int, missing: int, probas: Sequence[str]) -> Iterator[str]:
    if missing == n:
        raise ValueError(f"{source}: all {n:,} confidences are missing; nothing can be assessed.")
    if missing:
        share = "Less than 0.1%" if missing / n < 0.001 else f"{missing / n:.1%}".replace(".0%", "%")
        yield f"{share} of the confidences are missing ({missing:,} of {n:,} rows); these rows are left out."
    yield meaning_of(probas)


def meaning_of(names: Iterable[str]) -> str:
    """Say which of the three meanings of confidence these columns have by their names, or that it is unknown."""
    listed = list(names)
    words = {word for name in listed for word in _WORD.findall(name.casefold())}
    text = next((text for known, text in _MEANINGS if not known.isdisjoint(words)), _UNKNOWN)
    return text.format(names=" and ".join(map(repr, listed)))
