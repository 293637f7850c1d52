"""Measures of calibration, and MEASURES: the one table of them with what is true of each."""

from collections.abc import Callable
from dataclasses import dataclass

from truthcal.core.sample import Sample
from truthcal.measures.atb import atb, atb_l1, atb_l1_of, atb_of
from truthcal.measures.binned import binned_ece, binned_ece_of, ece, ece_of
from truthcal.measures.cumulative import ks_ce, ks_ce_of, kuiper_ce, kuiper_ce_of, step_ce
from truthcal.measures.decision import decision_loss, decision_loss_of, u_calibration, u_calibration_of
from truthcal.measures.distance import distcal, distcal_of
from truthcal.measures.interval import intcal, intcal_of, intcal_surrogate, intcal_surrogate_of
from truthcal.measures.skill import ici, ici_of
from truthcal.measures.smooth import laplace_kernel_ce, laplace_kernel_ce_of, smcal, smcal_of, smece, smece_of
from truthcal.measures.subsampled import (
    subsampled_smcal,
    subsampled_smcal_of,
    subsampled_step_ce,
    subsampled_step_ce_of,
)
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

_UNIFYING = "Blasiok, Gopalan, Hu, Nakkiran (2023), A Unifying Theory of Distance from Calibration"
_ECCE = "Arrieta-Ibarra et al. (2022), Metrics of Calibration for Probabilistic Predictions"
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
        Whether the honest report has the smallest expected value, whatever the truth, for independent outcomes.
    continuous : bool
        Whether a small change of the predictions changes the value only a little.
    complete : bool
        Whether a calibrated forecaster's expected value goes to 0 as rows accumulate.
    sound : bool
        Whether a miscalibrated forecaster's value stays away from 0 as rows accumulate.
    scale : str
        What a value of 0.1 is: "probability" (an error of 10 points), "squared" (its square root is on the scale of a
        probability), "half" (a sum over half of the rows).
    whole_weights : bool
        Whether `sample_weight` must hold whole numbers.
    tolerance : float
        How far the value may be from the exact one, rounding aside; nan if it is a mean over random draws.
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
    scale: str = "probability"
    whole_weights: bool = False
    tolerance: float = 0.0
    cost: str = "O(n log n)"
    reference: str


MEASURES: dict[str, Measure] = {
    "atb": Measure(
        function=atb,
        of_sample=atb_of,
        scale="squared",
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        reference=_PAPER,
    ),
    "atb_l1": Measure(
        function=atb_l1,
        of_sample=atb_l1_of,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        reference=_PAPER,
    ),
    "multiscale_atb": Measure(
        function=multiscale_atb,
        of_sample=multiscale_atb_of,
        scale="squared",
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        reference="truthcal; a mixture of UBSEs, " + _PAPER,
    ),
    "quantile_ece": Measure(
        function=quantile_ece,
        of_sample=quantile_ece_of,
        scale="squared",
        noise_floor=quantile_ece_floor,
        worst=9 / 8,
        truthful=True,
        continuous=False,
        complete=True,
        sound=True,
        whole_weights=True,
        reference=_PAPER,
    ),
    "shifted_grid_ubse": Measure(
        function=shifted_grid_ubse,
        of_sample=shifted_grid_ubse_of,
        scale="squared",
        noise_floor=ubse_floor,
        truthful=True,
        continuous=True,
        complete=True,
        sound=True,
        reference="a UBSE, " + _PAPER,
    ),
    "smcal": Measure(
        function=smcal,
        of_sample=smcal_of,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        reference=_UNIFYING,
    ),
    "distcal": Measure(
        function=distcal,
        of_sample=distcal_of,
        tolerance=1e-5,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n), and a linear programme on a chain",
        reference=_UNIFYING,
    ),
    "intcal": Measure(
        function=intcal,
        of_sample=intcal_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        cost="O(n^2) at worst, up to 100,000 different predictions",
        reference=_UNIFYING,
    ),
    "intcal_surrogate": Measure(
        function=intcal_surrogate,
        of_sample=intcal_surrogate_of,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n), and a pass for each width",
        reference=_UNIFYING,
    ),
    "laplace_kernel_ce": Measure(
        function=laplace_kernel_ce,
        of_sample=laplace_kernel_ce_of,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        reference=_UNIFYING,
    ),
    "smece": Measure(
        function=smece,
        of_sample=smece_of,
        tolerance=1e-7,
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n), and O(1/smECE)",
        reference="Blasiok, Nakkiran (2023), Smooth ECE",
    ),
    "ks_ce": Measure(
        function=ks_ce,
        of_sample=ks_ce_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        reference=_ECCE,
    ),
    "kuiper_ce": Measure(
        function=kuiper_ce,
        of_sample=kuiper_ce_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        reference=_ECCE,
    ),
    "step_ce": Measure(
        function=step_ce,
        of_sample=ks_ce_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        reference="Qiao, Zhao (2025), Truthfulness of Decision-Theoretic Calibration Measures",
    ),
    "subsampled_smcal": Measure(
        function=subsampled_smcal,
        of_sample=subsampled_smcal_of,
        scale="half",
        whole_weights=True,
        tolerance=float("nan"),
        truthful=False,
        continuous=True,
        complete=True,
        sound=True,
        cost="O(n log n) a draw",
        reference="Haghtalab, Qiao, Yang, Zhao (2024), Truthfulness of Calibration Measures",
    ),
    "subsampled_step_ce": Measure(
        function=subsampled_step_ce,
        of_sample=subsampled_step_ce_of,
        scale="half",
        whole_weights=True,
        tolerance=float("nan"),
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        cost="O(n log n), and O(n) a draw",
        reference="Qiao, Zhao (2025), Truthfulness of Decision-Theoretic Calibration Measures",
    ),
    "ece": Measure(
        function=ece,
        of_sample=ece_of,
        truthful=False,
        continuous=False,
        complete=False,
        sound=True,
        reference="Naeini, Cooper, Hauskrecht (2015), on distinct predictions",
    ),
    "binned_ece": Measure(
        function=binned_ece,
        of_sample=binned_ece_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=False,
        reference="Naeini, Cooper, Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning",
    ),
    "decision_loss": Measure(
        function=decision_loss,
        of_sample=decision_loss_of,
        truthful=False,
        continuous=False,
        complete=False,
        sound=True,
        reference="Hu, Wu (2024), Predict to Minimize Swap Regret for All Payoff-Bounded Tasks",
    ),
    "u_calibration": Measure(
        function=u_calibration,
        of_sample=u_calibration_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=False,
        reference="Kleinberg, Leme, Schneider, Teng (2023), U-Calibration",
    ),
    "ici": Measure(
        function=ici,
        of_sample=ici_of,
        truthful=False,
        continuous=False,
        complete=True,
        sound=True,
        reference="Austin, Steyerberg (2019), with isotonic regression as the smoother",
    ),
}
