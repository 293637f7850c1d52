"""Results of audits: the expected scores of the truth and of lies under a measure."""

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import PageResult, Result, columns
from truthcal.results.column_width import check_width
from truthcal.results.text import Page, Table, count, join_words, number, plural

_WIDTH = 110
# Reports of up to this many events are printed in full.
_SHOWN = 4
# Columns of an audit, in addition to one for each lie.
COLUMNS = (
    *("measure", "honest", "best_lie", "gain", "standard_error", "relative_gain"),
    *("higher_is_better", "truthful", "pays", "undecided", "verdict", "method"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExpectedScore(Result):
    """The expected score of a report. Returned by `expected_score`.

    Attributes
    ----------
    measure : str
        Name of the measure.
    value, standard_error : float
        The expected score, and its standard error from drawing outcomes at random; 0 if exact.
    method, n_resamples : str, int
        "enumeration", "decomposition" or "draws", and the number of random outcomes; 0 if exact.
    outcomes : ndarray of shape (k, n) or None
        If enumerated: every possible outcome, in the order of the rows; all 2^n unless some events are certain.
    probabilities, values : ndarray of shape (k,) or None
        Probability of each outcome, and the score of the report there.
    n_rows : int or None
        Number of rows in a sample if the report is for a population.
    """

    measure: str
    value: float
    standard_error: float
    method: str
    n_resamples: int = 0
    outcomes: NDArray[np.uint8] | None = None
    probabilities: NDArray[np.float64] | None = None
    values: NDArray[np.float64] | None = None
    n_rows: int | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        start = f"expected {self.measure} " + (f"of {count(self.n_rows, 'row')} " if self.n_rows else "")
        if self.method == "draws":
            draws = f"{self.n_resamples:,} simulations"
            return f"{start}{self.value:.4g}, standard error {self.standard_error:.2g} from {draws}"
        if self.n_rows is not None:
            return f"{start}{self.value:.6g} (exact)"
        if self.probabilities is None:
            return f"{start}{self.value:.6g} (exact: sum of the bias of the report and the noise of the outcomes)"
        return f"{start}{self.value:.6g} (exact: mean over all {len(self.probabilities):,} outcomes)"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class AuditRow(Result):
    """The gain from lying under one measure: a row of an `Audit`.

    Attributes
    ----------
    measure : str
        Name of the measure.
    honest, scores : float, dict
        Expected score of the truth, and of each lie.
    best_lie, best_report : str, ndarray
        The lie with the best expected score, and its report: the truth itself if "searched" found nothing better.
    gain, standard_error : float
        Difference of ``honest`` and ``scores[best_lie]``, negative if every lie costs something; its standard error, 0
        if exact.
    relative_gain : float
        The gain as a share of the honest score. nan if this says nothing: the honest score is 0 up to rounding, the
        tolerance of the measure and three standard errors, or the two scores differ in sign.
    higher_is_better : bool
        Whether a high score is good, as for a p-value; false for measures.
    truthful : bool
        Whether it is proved that no lie can gain.
    pays : bool
        Whether a lie gains: by more than rounding and three standard errors.
    undecided : bool
        Whether a lie seems to gain, but only by changing events too rare for the number of simulations.
    method : {"decomposition", "enumeration", "draws"}
        How the scores were computed.
    """

    measure: str
    honest: float
    scores: dict[str, float]
    best_lie: str
    best_report: NDArray[np.float64]
    gain: float
    standard_error: float
    relative_gain: float
    higher_is_better: bool
    truthful: bool
    pays: bool
    undecided: bool
    method: str
    _derived: ClassVar = ("verdict",)

    @property
    def verdict(self) -> str:
        """The finding in words."""
        if self.truthful:
            return "truthful: lying never pays (proved)"
        if self.pays:
            return f'lying pays; the lie "{self.best_lie}" scores {self.better} better'
        return "cannot tell: too few simulations for such rare events" if self.undecided else "no lie found that pays"

    @property
    def answer(self) -> str:
        """The finding in a word or two."""
        if self.truthful:
            return "never (proved)"
        if self.pays:
            return f"yes: {self.better} better"
        return "cannot tell" if self.undecided else "no lie found"

    @property
    def better(self) -> str:
        """The gain in percent; as a score if `relative_gain` is nan."""
        if math.isnan(self.relative_gain):
            return f"{self.gain:.3g}"
        return f"{self.relative_gain:.0%}" if self.relative_gain >= 0.0095 else f"{100 * self.relative_gain:.2g}%"

    def __str__(self) -> str:
        return f"{self.measure}: {self.verdict}."

    def table(self) -> dict[str, list[Any]]:
        """Return one row, with a column for the score of each lie."""
        return columns([self._values()])

    def _values(self) -> dict[str, Any]:
        first, others = ({name: getattr(self, name) for name in part} for part in (COLUMNS[:2], COLUMNS[2:]))
        return first | self.scores | others


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Audit(PageResult, Mapping[str, AuditRow]):
    """Whether lying pays, measure by measure. Returned by `audit` and `audit_on`.

    A mapping from names of measures to rows: ``result["smcal"]``, ``"smcal" in result``, ``dict(result)``.

    Attributes
    ----------
    rows : tuple of AuditRow
        One for each measure.
    truth, source : ndarray, str
        The true chances of the events (or of the classes of each row), and their source; empty if they were passed by
        the caller.
    lies : tuple of str
        Names of the lies.
    n_resamples : int
        Number of random outcomes behind the rows whose method is "draws".
    n_rows : int or None
        Number of events in a sample, in the ex ante stage; None in the interim stage.
    """

    rows: tuple[AuditRow, ...]
    truth: NDArray[np.float64]
    lies: tuple[str, ...]
    n_resamples: int
    source: str = ""
    n_rows: int | None = None

    def __iter__(self) -> Iterator[str]:
        return (row.measure for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> AuditRow:
        for row in self.rows:
            if row.measure == name:
                return row
        raise KeyError(f"{name!r} is not in this audit; it has {', '.join(self)}.")

    def table(self) -> dict[str, list[Any]]:
        """Return columns of equal length, one row for each measure, with a column for the score of each lie."""
        return columns(row._values() for row in self.rows)

    def to_text(self, width: int | None = None) -> str:
        """Return the printed text, in lines of at most `width` characters where possible (default: 110)."""
        check_width(width)
        width = min(width or _WIDTH, _WIDTH)
        choices = (self._table(lies, digits) for lies, digits in ((self.lies, 4), (self.lies, 3), ((), 4)))
        fitting = (lines for lines in (table.lines() for table in choices) if max(map(len, lines)) <= width)
        lines = next(fitting, None) or self._table((), 3).lines(width)
        closing = [line for sentence in self._closing() for line in _wrap_sentence(sentence, width)]
        return "\n".join([*_wrap_sentence(self._opening(), width), "", *lines, "", *closing])

    def _page(self) -> Page:
        return Page(self._opening(), self._table(self.lies, 4), self._closing())

    def _opening(self) -> str:
        events = f"{self._events()} A forecaster who knows the truth either reports it (honest) or lies."
        star = "* marks the best lie if it pays, the truth if no lie was found that does"
        return f"{events} The table shows the expected score of each report; {self._better()}, and {star}."

    def _events(self) -> str:
        true = f"true {plural(len(self.truth), 'probability', 'probabilities')}"
        truth = f"{true} {_list_truth(self.truth)}" if len(self.truth) <= _SHOWN else f"known {true}"
        source = f"True probabilities: {self.source}."
        if self.n_rows is None:
            return source if self.source else f"{count(len(self.truth), self._noun)} with {truth}."
        kinds = f"{count(len(self.truth), 'kind')} of events, equally frequent"
        samples = f"Ex ante: samples of {count(self.n_rows, 'event')} from {kinds}"
        return f"{samples}. {source}" if self.source else f"{samples}, with {truth}."

    @property
    def _noun(self) -> str:
        return "event" if self.truth.ndim == 1 else "row"

    def _better(self) -> str:
        higher = [row.measure for row in self.rows if row.higher_is_better]
        if len(higher) == len(self.rows):
            return "higher is better"
        return f"lower is better (higher for {join_words(higher)})" if higher else "lower is better"

    def _table(self, lies: tuple[str, ...], digits: int) -> Table:
        """Return the table, whose headers have two lines. Without `lies`: only the best lie of each row."""
        scores = [_header_in_two_lines(name) for name in lies] or ["best lie", "its score"]
        header = ["measure", "honest", *scores, "does lying pay?"]
        rows = [self._cells(row, lies, digits) for row in self.rows]
        left = {0, len(header) - 1} if lies else {0, 2, len(header) - 1}
        heads = [head.replace("\n", " \n") + " " for head in header]  # room for the star of the cells
        return Table(heads, rows, right=[k for k in range(len(header)) if k not in left], gap=1, rule=True)

    def _cells(self, row: AuditRow, lies: tuple[str, ...], digits: int) -> list[str]:
        """Format a row. Each cell ends with a star or a space."""

        def score(value: float, best: bool) -> str:
            return number(value, digits, missing="nan") + ("*" if best else " ")

        scores = [score(row.scores[name], row.pays and name == row.best_lie) for name in lies]
        if not lies:
            scores = [f"{row.best_lie} ", score(row.scores[row.best_lie], row.pays)]
        return [f"{row.measure} ", score(row.honest, not (row.pays or row.undecided)), *scores, row.answer]

    def _closing(self) -> list[str]:
        paying = [row for row in self.rows if row.pays]
        proved = [row.measure for row in self.rows if row.truthful]
        rare = [row.measure for row in self.rows if row.undecided]
        unknown = [row.measure for row in self.rows if not (row.truthful or row.pays or row.undecided)]
        sentences = [self._paying(paying)] if paying else []
        if proved:
            known = "any truth and any lie" if self.n_rows is None else "any population and any lie"
            sentences.append(f"It never pays under {join_words(proved)} (proved for {known}).")
        if unknown:
            names = join_words(unknown)
            sentences.append(f"No lie was found that pays under {names}; this does not prove that none exists.")
        if rare:
            sentences.append(
                f"The result is unclear under {join_words(rare)}: the best lie changes only rare events, and "
                f"{self.n_resamples:,} simulations are too few for them. Increase n_resamples."
            )
        return [*sentences, self._how()]

    def _paying(self, paying: list[AuditRow]) -> str:
        best = max(paying, key=lambda row: -1.0 if math.isnan(row.relative_gain) else row.relative_gain)
        lie = f"reporting {_list_truth(best.best_report)}" if len(self.truth) <= _SHOWN else f'"{best.best_lie}"'
        names = join_words([row.measure for row in paying])
        comparable = not math.isnan(best.relative_gain)
        where = "" if len(paying) == 1 else f". {'It pays most under' if comparable else 'Under'} {best.measure}"
        return f"Lying pays under {names}{where}: {lie} scores {best.better} better than the truth."

    def _how(self) -> str:
        drawn = [row for row in self.rows if row.method == "draws"]
        if not drawn:
            return "All scores are exact."
        who = "Scores" if len(drawn) == len(self.rows) else f"Scores of {join_words([row.measure for row in drawn])}"
        rest = "" if len(drawn) == len(self.rows) else "; the others are exact"
        return f"{who} are means over {self.n_resamples:,} simulations, the same for all reports{rest}."


def _header_in_two_lines(head: str) -> str:
    """Break a header of the audit's table into two lines of about equal length."""
    words = head.split()
    if len(words) < 2:
        return head
    halves = [(" ".join(words[:k]), " ".join(words[k:])) for k in range(1, len(words))]
    return "\n".join(min(halves, key=lambda half: max(map(len, half))))


def _list_truth(values: NDArray[np.float64]) -> str:
    """List probabilities; those of several classes in parentheses."""
    if values.ndim == 2:
        return join_words([f"({', '.join(f'{value:.4g}' for value in row)})" for row in values.tolist()])
    return join_words([f"{value:.4g}" for value in values.tolist()])


def _wrap_sentence(sentence: str, width: int) -> list[str]:
    """Wrap a sentence of an audit to lines of the table's width."""
    return textwrap.wrap(sentence, width, break_long_words=False, break_on_hyphens=False)
