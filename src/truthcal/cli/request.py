"""The request: all that the user asked for on the command line, with every default."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import truthcal as tc


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed command line. Fields that a command does not have keep their defaults.

    `line` holds the arguments as typed. `measure` is the statistic of `test` and `compare`, `measures` the selection of
    `measures` and `audit`.
    """

    command: str
    line: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    label: str | None = None
    proba: tuple[str, ...] = ()
    proba_prefix: tuple[str, ...] = ()
    weight: str | None = None
    pos_label: str | None = None
    hard: bool = False
    by: tuple[str, ...] = ()
    group: str | None = None
    key: str | None = None
    time: str | None = None
    window: str = "auto"
    time_unit: str | None = None
    due: str | None = None
    until: str | None = None
    state: str | None = None
    measure: str = "information_atb"
    measures: tuple[str, ...] = ()
    output: str | None = None
    report: str | None = None
    title: str | None = None
    exact_distcal: bool = False
    summary: str | None = None
    format: Literal["text", "json", "markdown"] = "text"
    alpha: float | None = 0.05
    confidence_level: float = 0.95
    max_error: float | None = None
    adjust: str = "holm"
    sort: str | None = None
    all: bool = False
    plot: bool = False
    verbose: bool = False
    min_rows: int = 30
    alternative: str = "greater"
    method: str = "auto"
    apply: str | None = None
    sql: str | None = None
    n_resamples: int = 9999
    seed: int = 0
    max_rows: int = 500
    truth: tuple[float, ...] = ()
    input_format: Literal["lm-eval", "inspect", "confidence"] | None = None
    rule: Literal["softmax", "length-normalised"] | None = None
    answers: Literal["all", "top"] | None = None
    percent: bool = False
    normalize: bool = False
    where: str | None = None
    missing: Literal["drop"] | None = None
    fractional: Literal["drop", "keep"] | None = None
    question: str | None = None
    close: str | None = None
    horizon: str | None = None
    stage: str = "interim"
    n_rows: int | None = None
    buckets: int | None = None
    list: bool = False
    folder: str = "truthcal-demo"
    shell: str = "bash"
    quiet: bool = False
    debug: bool = False


def refuse_unknown_measures(request: Request, others: Iterable[str] = ()) -> None:
    """Reject a request for unknown measures before any file is read; `others` are known to this command, too."""
    names = [*tc.MEASURES, *others]
    for name in (request.measure, *request.measures):
        if name not in names:
            known = ", ".join(names)
            raise ValueError(f"there is no measure {name!r}; truthcal measures --list shows all: {known}.")
