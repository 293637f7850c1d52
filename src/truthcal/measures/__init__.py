"""Measures of calibration, and MEASURES: the one table of them with what is true of each."""

from collections.abc import Callable
from dataclasses import dataclass

from truthcal._sample import Sample
from truthcal.measures.atb import atb, atb_l1, atb_l1_of, atb_of
from truthcal.measures.ubse import (
    multiscale_atb,
    multiscale_atb_of,
    quantile_ece,
    quantile_ece_floor,
    quantile_ece_of,
    shifted_grid_ubse,
    shifted_grid_ubse_of,
    ubse_floor,
)

_PAPER = "Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A row of MEASURES.

    Attributes
    ----------
    function : callable
        The public function ``f(y_true, y_proba, *, sample_weight=None, pos_label=None, ...) -> float``.
    of_sample : callable
        The same for rows that are checked and sorted already, so that many measures share one sort.
    noise_floor : callable or None
        Of a sample: the expected value, with default parameters, if outcomes follow the predictions. None if there is
        no closed form.
    best, worst : float
        Range of the value.
    truthful : bool
        Whether the honest report has the smallest expected value, whatever the truth.
    continuous : bool
        Whether a small change of the predictions changes the value only a little.
    complete : bool
        Whether a calibrated forecaster's expected value goes to 0 as rows accumulate.
    sound : bool
        Whether a miscalibrated forecaster's value stays away from 0 as rows accumulate.
    whole_weights : bool
        Whether `sample_weight` must hold whole numbers.
    cost : str
        Time for n rows.
    reference : str
        Where the definition comes from.
    """

    function: Callable[..., float]
    of_sample: Callable[..., float]
    noise_floor: Callable[[Sample], float] | None = None
    best: float = 0.0
    worst: float = 1.0
    truthful: bool
    continuous: bool
    complete: bool
    sound: bool
    whole_weights: bool = False
    cost: str
    reference: str


MEASURES: dict[str, Measure] = {
    "atb": Measure(
        function=atb,
        of_sample=atb_of,
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n)",
        reference=_PAPER,
    ),
    "atb_l1": Measure(
        function=atb_l1,
        of_sample=atb_l1_of,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n)",
        reference=_PAPER,
    ),
    "multiscale_atb": Measure(
        function=multiscale_atb,
        of_sample=multiscale_atb_of,
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n)",
        reference="truthcal; a mixture of UBSEs, " + _PAPER,
    ),
    "quantile_ece": Measure(
        function=quantile_ece,
        of_sample=quantile_ece_of,
        noise_floor=quantile_ece_floor,
        worst=9 / 8,
        truthful=True,
        continuous=False,
        complete=True,
        sound=True,
        whole_weights=True,
        cost="O(n log n)",
        reference=_PAPER,
    ),
    "shifted_grid_ubse": Measure(
        function=shifted_grid_ubse,
        of_sample=shifted_grid_ubse_of,
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n)",
        reference="a UBSE, " + _PAPER,
    ),
}
