"""What audits return, and how it prints."""

import html
import math
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.results.measures import NamedRows

_WIDTH = 110
# Reports of so many events are written out.
_SHOWN = 4
# Columns of an audit beside one for each lie.
COLUMNS = (
    *("measure", "honest", "best_lie", "gain", "standard_error", "relative_gain"),
    *("truthful", "pays", "undecided", "verdict", "method"),
)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedScore:
    """The expected score of a report. Returned by `expected_score`.

    Attributes
    ----------
    measure : str
        Name of the measure.
    value : float
        The expected score.
    standard_error : float
        From drawing outcomes at random; 0 if exact.
    method : {"enumeration", "decomposition", "draws"}
        How it was found.
    n_resamples : int
        Number of random outcomes; 0 if exact.
    outcomes : ndarray of shape (k, n) or None
        If enumerated: every outcome that can happen, rows in the order given; all 2^n unless some events are certain.
    probabilities, values : ndarray of shape (k,) or None
        Probability of each outcome, and the score of the report there.
    """

    measure: str
    value: float
    standard_error: float
    method: str
    n_resamples: int = 0
    outcomes: NDArray[np.uint8] | None = None
    probabilities: NDArray[np.float64] | None = None
    values: NDArray[np.float64] | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        start = f"expected {self.measure} "
        if self.method == "draws":
            error = f"standard error {self.standard_error:.2g} from {self.n_resamples:,} drawn outcomes"
            return f"{start}{self.value:.4g}, {error}"
        if self.probabilities is None:
            return f"{start}{self.value:.6g}, exact: bias of the report and noise of the outcomes"
        return f"{start}{self.value:.6g}, exact: all {len(self.probabilities):,} outcomes"

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words by name, without the arrays."""
        return {
            "measure": self.measure,
            "value": self.value,
            "standard_error": self.standard_error,
            "method": self.method,
            "n_resamples": self.n_resamples,
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuditRow:
    """What lying gains under one measure: a row of an `Audit`.

    Attributes
    ----------
    measure : str
        Name of the measure.
    honest : float
        Expected score of the truth. Lower is better.
    scores : dict
        Expected score of each lie.
    best_lie : str
        The lie with the lowest one.
    best_report : ndarray
        What it reports. The truth itself if "searched" found nothing better.
    gain : float
        ``honest - scores[best_lie]``; negative if every lie costs something.
    standard_error : float
        Of the gain, from drawing outcomes at random; 0 if exact.
    relative_gain : float
        The gain as a share of the honest score (nan if that is 0 and the gain is not).
    truthful : bool
        Whether no lie can gain, by proof.
    pays : bool
        Whether a lie does gain: by more than rounding and three standard errors.
    undecided : bool
        Whether a lie seems to gain, but by changing events so rare that the drawn outcomes say too little about them.
    method : {"decomposition", "enumeration", "draws"}
        How the scores were found.
    """

    measure: str
    honest: float
    scores: dict[str, float]
    best_lie: str
    best_report: NDArray[np.float64]
    gain: float
    standard_error: float
    relative_gain: float
    truthful: bool
    pays: bool
    undecided: bool
    method: str

    @property
    def verdict(self) -> str:
        """In words."""
        if self.truthful:
            return "truthful: no lie can gain (proved)"
        if self.pays:
            return f"lying pays: {self.best_lie} scores {self.better} better"
        return "cannot tell: events are too rare for so few draws" if self.undecided else "no lie found that pays"

    @property
    def answer(self) -> str:
        """The verdict in a word or two."""
        if self.truthful:
            return "never (proved)"
        if self.pays:
            return f"yes: {self.better} better"
        return "cannot tell" if self.undecided else "no lie found"

    @property
    def better(self) -> str:
        """The gain in percent, where it has one."""
        if math.isnan(self.relative_gain):
            return f"{self.gain:.3g}"
        return f"{self.relative_gain:.0%}" if self.relative_gain >= 0.0095 else f"{100 * self.relative_gain:.2g}%"

    def __str__(self) -> str:
        return f"{self.measure}: {self.verdict}."

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """One entry for each column of the audit."""
        return {
            "measure": self.measure,
            "honest": self.honest,
            **self.scores,
            **{name: getattr(self, name) for name in COLUMNS[2:]},
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Audit(NamedRows):
    """Whether lying pays, measure by measure. Returned by `audit` and `audit_on`.

    A mapping from names of measures to rows: ``result["smcal"]``, ``"smcal" in result``, ``dict(result)``.

    Attributes
    ----------
    rows : tuple of AuditRow
        One for each measure.
    truth : ndarray
        The true chances of the events.
    lies : tuple of str
        Names of the lies.
    n_resamples : int
        Number of random outcomes behind the rows whose method is "draws".
    source : str
        Where the truth was taken from; empty if it was given.
    """

    rows: tuple[AuditRow, ...]
    truth: NDArray[np.float64]
    lies: tuple[str, ...]
    n_resamples: int
    source: str = ""

    def keys(self) -> list[str]:
        """Names of the measures."""
        return [row.measure for row in self.rows]

    def __getitem__(self, name: str) -> AuditRow:
        for row in self.rows:
            if row.measure == name:
                return row
        raise KeyError(f"{name!r} is not in this audit; it has {', '.join(self.keys())}.")

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of equal length, ready for a data frame."""
        rows = [row.to_dict() for row in self.rows]
        return {column: [row[column] for row in rows] for column in rows[0]}

    def __str__(self) -> str:
        tables = (self._table(lies, digits) for lies, digits in ((self.lies, 4), (self.lies, 3), ((), 4)))
        table = next((table for table in tables if max(map(len, table)) <= _WIDTH), self._table((), 3))
        return "\n".join([*_wrapped(self._opening()), "", *table, "", *self._closing()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ["measure", "honest", *self.lies, "does lying pay?"]
        lines = ["".join(f"<th>{html.escape(name)}</th>" for name in head)]
        lines += [
            "".join(f"<td>{html.escape(cell)}</td>" for cell in self._cells(row, self.lies, 4)) for row in self.rows
        ]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        closing = "<br>".join(map(html.escape, self._closing()))
        return f"<p>{html.escape(self._opening())}</p><table>{table}</table><p>{closing}</p>"

    # --- parts of the printed form ------------------------------------------------------------------------------------

    def _opening(self) -> str:
        events = f"{len(self.truth):,} event{'s' if len(self.truth) > 1 else ''}"
        chances = f"true chances {_listed(self.truth)}" if len(self.truth) <= _SHOWN else "known true chances"
        start = f"Taken as true chances: {self.source}." if self.source else f"{events} with {chances}."
        return (
            f"{start} A forecaster who knows the true chances reports them (honest), or lies. Below is the expected "
            "score of each report: lower is better, * marks the best."
        )

    def _table(self, lies: tuple[str, ...], digits: int) -> list[str]:
        """Aligned columns with heads of two lines. Without `lies`: the best lie of each row alone."""
        of_lies = [_in_two(name) for name in lies] or [("", "best lie"), ("", "its score")]
        heads = [("", "measure"), ("", "honest"), *of_lies, ("", "does lying pay?")]
        lines = [[f"{head[k]} " for head in heads] for k in range(2)]
        lines += [self._cells(row, lies, digits) for row in self.rows]
        width = [max(len(line[k]) for line in lines) for k in range(len(heads))]
        words = {0, len(heads) - 1} if lies else {0, 2, len(heads) - 1}  # these columns start at the left
        text = [" ".join(_aligned(line[k], width[k], k in words) for k in range(len(heads))).rstrip() for line in lines]
        rule = "-" * max(map(len, text))
        return [line for line in [*text[:2], rule, *text[2:]] if line]

    def _cells(self, row: AuditRow, lies: tuple[str, ...], digits: int) -> list[str]:
        """One row as text. Each cell ends with a star or a space."""

        def number(value: float, best: bool) -> str:
            return f"{value:.{digits}g}" + ("*" if best else " ")

        lied = [number(row.scores[name], row.pays and name == row.best_lie) for name in lies]
        if not lies:
            lied = [f"{row.best_lie} ", number(row.scores[row.best_lie], row.pays)]
        return [f"{row.measure} ", number(row.honest, not (row.pays or row.undecided)), *lied, row.answer]

    def _closing(self) -> list[str]:
        paying = [row for row in self.rows if row.pays]
        proved = [row.measure for row in self.rows if row.truthful]
        rare = [row.measure for row in self.rows if row.undecided]
        unknown = [row.measure for row in self.rows if not (row.truthful or row.pays or row.undecided)]
        said = [self._paying(paying)] if paying else []
        if proved:
            said.append(f"It never pays under {_and(proved)}: proved, for any truth and any lie.")
        if unknown:
            said.append(f"No lie that pays was found under {_and(unknown)}; that is no proof that there is none.")
        if rare:
            said.append(
                f"Nothing can be said under {_and(rare)}: the best lie changes events so rare that "
                f"{self.n_resamples:,} random outcomes say too little about them. Raise n_resamples."
            )
        said.append(self._how())
        return [line for sentence in said for line in _wrapped(sentence)]

    def _paying(self, paying: list[AuditRow]) -> str:
        row = max(paying, key=lambda each: -1.0 if math.isnan(each.relative_gain) else each.relative_gain)
        lie = f'"{row.best_lie}"'
        if len(self.truth) <= _SHOWN:
            lie = f"reporting {_listed(row.best_report)}"
        most = "" if len(paying) == 1 else f". It pays most under {row.measure}"
        names = _and([each.measure for each in paying])
        return f"Lying pays under {names}{most}: {lie} scores {row.better} better than the truth."

    def _how(self) -> str:
        drawn = [row for row in self.rows if row.method == "draws"]
        if not drawn:
            return "All scores are exact."
        who = "Scores" if len(drawn) == len(self.rows) else f"Scores of {_and([row.measure for row in drawn])}"
        rest = "" if len(drawn) == len(self.rows) else "; the others are exact"
        return f"{who} are means over {self.n_resamples:,} random outcomes, the same for all reports{rest}."


def _in_two(head: str) -> tuple[str, str]:
    """A column's head in two lines of about equal length, the last never empty."""
    words = head.split()
    if len(words) < 2:
        return "", head
    cut = min(range(1, len(words)), key=lambda k: max(len(" ".join(words[:k])), len(" ".join(words[k:]))))
    return " ".join(words[:cut]), " ".join(words[cut:])


def _aligned(cell: str, width: int, left: bool) -> str:
    return cell.ljust(width) if left else cell.rjust(width)


def _listed(values: NDArray[np.float64]) -> str:
    return _and([f"{value:.4g}" for value in values.tolist()])


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False)
