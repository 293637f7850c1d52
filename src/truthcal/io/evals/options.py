"""Options for reading evaluation files, and the rows read from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Format = Literal["lm-eval", "inspect", "confidence"]
Rule = Literal["softmax", "length-normalised"]
FORMATS: tuple[Format, ...] = ("lm-eval", "inspect", "confidence")
RULES: tuple[Rule, ...] = ("softmax", "length-normalised")
# Which rows a question with several options has.
ANSWERS = ("all", "top")


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """Options for reading evaluation files; None where the default applies.

    `names` are further columns that the user named, such as those of segments. `missing`: rows without an outcome or a
    probability are left out, so that JSON lines may hold text such as "void" among numbers.
    """

    format: Format | None = None
    rule: Rule | None = None
    answers: Literal["all", "top"] | None = None
    percent: bool = False
    proba: tuple[str, ...] = ()
    label: str | None = None
    names: tuple[str, ...] = ()
    missing: bool = False


@dataclass(frozen=True, slots=True)
class EvalRows:
    """Rows of an evaluation file, column by column, and notes about them for the output."""

    columns: dict[str, list[Any]]
    proba: tuple[str, ...] = ()  # empty: to be guessed like columns of other files
    label: str | None = None
    group: str | None = None  # the column of the question, if several rows may answer one
    missing: int = 0  # rows left out because their confidence is missing
    notes: tuple[str, ...] = field(default=())

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), []))


def repeats(values: Sequence[Any]) -> bool:
    """Whether a value occurs twice, so that rows may answer the same question."""
    return len(set(values)) < len(values)
