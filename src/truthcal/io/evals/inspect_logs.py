"""Logs of Inspect, read with `inspect_ai.analysis`: the only user of inspect_ai."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from truthcal.core.params import list_shown
from truthcal.io.evals.confidence import convert_answers, is_confidence
from truthcal.io.evals.options import EvalOptions, EvalRows
from truthcal.io.files.source import Source

_JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')


def is_inspect_log(head: bytes) -> bool:
    """Whether a JSON file with these first bytes is a log of Inspect."""
    return _JSON_LOG.match(head) is not None


def read_inspect(sources: list[Source], options: EvalOptions) -> list[EvalRows]:
    """Read Inspect logs: one row for each sample and epoch that has a score.

    The confidence is a field named confidence in the metadata of a score, in a score that has several values, or in the
    metadata of the sample. Outcomes are the values of the same scorer, or of the only one.
    """
    files = [_samples(source) for source in sources]
    names = list(dict.fromkeys(name for rows in files for row in rows for name in row))
    options = replace(options, proba=options.proba or (_confidence_column(names, str(sources[0])),))
    label = options.label or _score_column(names, options.proba[0], str(sources[0]))
    scored = [[row for row in rows if row.get(label) is not None] for rows in files]
    converted = convert_answers(sources, scored, options, label)
    return [_with_unscored(rows, len(samples)) for rows, samples in zip(converted, files, strict=True)]


def _with_unscored(rows: EvalRows, n: int) -> EvalRows:
    unscored = n - rows.n - rows.missing
    note = (f"{unscored:,} of {n:,} samples have no score and are left out.",) if unscored else ()
    epochs = ("Samples of the same id (epochs) answer the same question.",) if rows.group else ()
    return EvalRows(rows.columns, rows.proba, rows.label, rows.group, rows.missing, (*note, *epochs, *rows.notes))


def _samples(source: Source) -> list[dict[str, Any]]:
    """Read the samples of a log as flat dicts: id, epoch, metadata, and values and metadata of scores."""
    try:
        from inspect_ai.analysis import SampleColumn, SampleScores, samples_df
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise ImportError(
            f"{source}: reading logs of Inspect needs inspect-ai: pip install 'truthcal[inspect]'."
        ) from None
    columns: list[Any] = [SampleColumn("id", path="id", required=True, type=str), SampleColumn("epoch", path="epoch")]
    columns += [SampleColumn("metadata_*", path="metadata"), *SampleScores]
    try:
        # The log itself: samples_df skips paths whose names are not those that Inspect gives to logs.
        frame = samples_df(read_eval_log(str(source.path)), columns=columns, quiet=True)
    except Exception as error:  # whatever the library raises for a damaged log
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{source}: could not be read as a log of Inspect ({reason}).") from error
    rows = [_flat(record) for record in json.loads(frame.to_json(orient="records"))]
    if not rows:
        raise ValueError(f"{source}: the log has no samples.")
    return rows


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Replace objects, which inspect_ai writes as JSON text, by their fields: score_grader_metadata.confidence."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        fields = value
        if isinstance(value, str) and value.startswith("{"):
            try:
                fields = json.loads(value)
            except ValueError:
                fields = value
        if isinstance(fields, dict):
            flat |= {f"{name}.{key}": item for key, item in fields.items() if not isinstance(item, list | dict)}
        elif not isinstance(fields, list):
            flat[name] = fields
    return flat


def _confidence_column(names: Sequence[str], where: str) -> str:
    """Return the only field that is a confidence by its name; scorers may have such names, too, and are not meant."""
    fields = [name for name in names if "." in name or name.startswith("metadata_")]
    found = [name for name in fields if is_confidence({name: None})]
    if not found:
        problem = f"{where}: no sample has a confidence; the fields are {list_shown(names)}"
        cure = 'Let the scorer return Score(..., metadata={"confidence": 0.85}), or name a field with --proba'
        raise ValueError(f"{problem}. {cure}.")
    if len(found) > 1:
        raise ValueError(f"{where} has several confidences: {list_shown(found)}. Name one with --proba.")
    return found[0]


def _score_column(names: Sequence[str], proba: str, where: str) -> str:
    """Return the column of the scores that belong to a column of confidences."""
    details = re.compile(r"_(answer|explanation|reason|metadata)(\.|$)")
    scores = [name for name in names if name.startswith("score_") and not details.search(name) and name != proba]
    scores = [name for name in scores if not any(other.startswith(f"{name}.") for other in names)]
    own = [name for name in scores if proba.startswith(f"{name}_metadata.")]
    own = own or [name for name in scores if name.rpartition(".")[0] == proba.rpartition(".")[0] != ""]
    if len(own or scores) != 1:
        question = f"Which score of {where} says whether the answer is correct?"
        raise ValueError(f"{question} It has {list_shown(scores)}. Name one with --label.")
    return (own or scores)[0]
