"""Result of a best response: what a forecaster who knows the truth can gain by lying."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import Result
from truthcal.results.text import count, join_words, number, plural

# Reports that are printed in full, up to this many.
_SHOWN = 9


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class BestResponse(Result):
    """The best way found to report under a measure. Returned by `best_response`.

    Attributes
    ----------
    measure, setting : str
        Name of the measure; "batch" or "sequential".
    n_events : int
        Number of events.
    honest, best : float
        Expected score of the truth, and of the best way found.
    gain, standard_error : float
        Difference of the two, at least 0; its standard error, 0 if exact.
    relative_gain : float
        The gain as a share of the honest score; nan if that is 0 up to its error, or if the scores differ in sign.
    higher_is_better : bool
        Whether a high score is good, as for a p-value; false for measures.
    truthful : bool
        Whether it is proved that nothing can gain in this setting.
    pays : bool
        Whether the gain exceeds rounding and three standard errors, and the events are not too rare for the number of
        simulations. A gain is a lower bound of the largest possible one. If none is found, this proves nothing, unless
        `truthful`.
    method : str
        How the scores were computed. In a batch: "decomposition", "enumeration" or "draws". In sequence: "dynamic
        programming", then `best` is exact and the best of all policies whose reports are in `grid`; or "simulation" of
        some policies.
    report : ndarray or None
        In a batch: the best report found, which is the truth if nothing gains.
    grid, policy : ndarray or None, dict or None
        For dynamic programming: the reports allowed, and the best policy, as a dict from the outcomes so far, such as
        "01", to the next report.
    strategy : str
        The best way found, in words.
    n_resamples : int
        Number of random outcomes; 0 if exact.
    """

    measure: str
    setting: str
    n_events: int
    honest: float
    best: float
    gain: float
    standard_error: float
    relative_gain: float
    higher_is_better: bool
    truthful: bool
    pays: bool
    method: str
    strategy: str
    n_resamples: int = 0
    report: NDArray[np.float64] | None = None
    grid: NDArray[np.float64] | None = None
    policy: dict[str, float] | None = None
    _derived: ClassVar = ("ratio",)

    @property
    def ratio(self) -> float:
        """The factor by which lying improves the score, 1 if nothing gains; nan if a score is 0 or negative."""
        low, high = sorted((self.honest, self.best))
        if self.gain == 0.0:
            return 1.0
        return high / low if low > 0.0 else math.nan

    def __str__(self) -> str:
        setting = "in a batch" if self.setting == "batch" else "in sequence"
        scores = f"the truth scores {number(self.honest)} and the best {self._what()} found {number(self.best)}"
        return f"{self.measure}, {count(self.n_events, 'event')} {setting}: {scores} {self._how()}.\n{self._finding()}"

    def _what(self) -> str:
        return "report" if self.setting == "batch" else "policy"

    def _how(self) -> str:
        if self.n_resamples:
            return f"({self.n_resamples:,} simulations)"
        if self.grid is None:
            return "(exact)"
        values = f": {join_words([f'{value:.4g}' for value in self.grid])}" if len(self.grid) <= _SHOWN else ""
        return f"(exact; the best of all policies with {len(self.grid)} {plural(len(self.grid), 'report')}{values})"

    def _finding(self) -> str:
        if self.truthful:
            return f"No {self._what()} gains (proved)."
        if not self.pays:
            found = "The difference may be chance: no gain is shown" if self.gain else "No gain was found"
            return f"{found}. This does not prove that there is none."
        factor = "" if math.isnan(self.ratio) else f", a factor of {self.ratio:.3g}"
        gain = f"at least {number(self.gain, 3)}"
        if self.n_resamples:
            gain = f"about {number(self.gain, 3)} (standard error {self.standard_error:.2g})"
        return f"Lying gains {gain}{factor}: {self.strategy}. More may be possible."
