"""MEASURES: the one table of calibration measures, with every fact about them that other modules need.

A row names its functions by convention: the measure "smcal" of the module `smooth` has `smcal`, the public function;
`smcal_of`, the same for a sorted sample; and, if it is a norm of the bias, `smcal_norm`. Modules are imported on first
use, so that the table itself loads none of them.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from truthcal.core.sample import Sample

    BiasNorm = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]

_UNIFYING = "Blasiok, Gopalan, Hu, Nakkiran (2023), A Unifying Theory of Distance from Calibration"
_ECCE = "Arrieta-Ibarra et al. (2022), Metrics of Calibration for Probabilistic Predictions"
_PAPER = "Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure"
_NAEINI = "Naeini, Cooper, Hauskrecht (2015)"
_DECISIONS = "Qiao, Zhao (2025), Truthfulness of Decision-Theoretic Calibration Measures"
_MIXTURE = f"truthcal; a mixture of UBSEs, {_PAPER}"
_SMECE = "Blasiok, Nakkiran (2023), Smooth ECE"
_BINNING = f"{_NAEINI}, Obtaining Well Calibrated Probabilities Using Bayesian Binning"
_SWAP_REGRET = "Hu, Wu (2024), Predict to Minimize Swap Regret for All Payoff-Bounded Tasks"
_UCAL = "Kleinberg, Leme, Schneider, Teng (2023), U-Calibration"
_SSCE = "Haghtalab, Qiao, Yang, Zhao (2024), Truthfulness of Calibration Measures"

_WIDTHS = tuple(0.5**k for k in range(6))
_PER_WIDTH = "O(n log n), plus one pass per width"
_SQUARE = "O(n^2) at worst; at most 100,000 distinct predictions"
_PROGRAM = "O(n log n), plus a chain-structured linear program"


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of MEASURES.

    Attributes
    ----------
    name, module : str
        The key in MEASURES, and the module in `truthcal.measures` that holds its functions.
    function : callable
        The public function ``f(y_true, y_proba, *, sample_weight=None, pos_label=None, ...) -> float``.
    of_sample : callable
        The same for rows that are checked and sorted already, so that many measures share one sort.
    noise_floor : callable or None
        Function of a sample: the expected value, with default parameters, if outcomes follow the predictions. None if
        there is no closed form.
    norm : callable or None
        Function ``f(r, bias)`` of the different predictions and of many biases, one a row: the norm of each.
    best, worst : float
        Range of the value.
    truthful : bool
        Whether the honest report has the smallest expected value, whatever the truth, for independent outcomes.
    lie_factor : str
        Factor by which the expected value of the truth can exceed that of a lie, for T independent events: "1" if the
        measure is truthful, "bounded" by a constant, or "growing" with T. See docs/theory/truthful_numbers.md.
    lie_ratios : tuple of float
        That factor for the best lie found by an audit of 200 and of 2,000 events with uniform probabilities, as in
        docs/benchmarks/truthfulness.md.
    continuous : bool
        Whether a small change of the predictions changes the value only a little.
    complete : bool
        Whether a calibrated forecaster's expected value goes to 0 as rows accumulate.
    sound : bool
        Whether a miscalibrated forecaster's value stays away from 0 as rows accumulate.
    scale : str
        Meaning of a value of 0.1: "probability" (an error of 10 points), "squared" (its square root is on the scale of
        a probability), "half" (a sum over half of the rows).
    whole_weights : bool
        Whether `sample_weight` must contain whole numbers.
    tolerance : float
        Largest error of the value, rounding aside; nan if it is a mean over random draws.
    is_norm : bool
        Whether the value times the total weight is a norm of the bias, the vector of sums of w (p - y) at the different
        predictions. Norms have intervals and can be compared.
    tent_widths : tuple of float
        Widths of the tents max(0, 1 - |p - q| / width) whose mixture is the kernel of the measure, with default
        parameters; empty if it has no such kernel. Measures with tents have intervals, limits, bounds and plans, also
        from a sketch. Their estimates can have the noise removed.
    axis : str
        Axis of the tents: "probability", the predictions themselves, or "information", the share of the information
        (the sum of w p(1 - p)) below a prediction.
    path_limit : str or None
        Functional of a Brownian motion that the value converges to: "maximum" (of its absolute value) or "range".
    sketchable : bool
        Whether a `Sketch` has a method of this name.
    slow : bool
        Whether even a few rows take milliseconds.
    relative_time, cost : float, str
        Rough time for a million uniform predictions, in multiples of ``np.argsort``; time for n rows.
    label, reference : str
        Name in text where it differs from the key; source of the definition.
    alias_of : str or None
        The measure that has the same value under another name.
    floor : str or None
        Function behind `noise_floor`, as "module:function".
    """

    name: str
    module: str
    _: KW_ONLY
    best: float = 0.0
    worst: float = 1.0
    truthful: bool = False
    continuous: bool = False
    complete: bool = True
    sound: bool = True
    scale: Literal["probability", "squared", "half"] = "probability"
    whole_weights: bool = False
    tolerance: float = 0.0
    is_norm: bool = False
    tent_widths: tuple[float, ...] = ()
    axis: Literal["probability", "information"] = "probability"
    path_limit: Literal["maximum", "range"] | None = None
    sketchable: bool = False
    slow: bool = False
    relative_time: float = 1.0
    cost: str = "O(n log n)"
    label: str = ""
    alias_of: str | None = None
    floor: str | None = None
    reference: str

    @property
    def function(self) -> Callable[..., float]:
        """The public function."""
        return _load_measure(self.module, self.name)

    @property
    def of_sample(self) -> Callable[..., float]:
        """The function of a sorted sample."""
        return _load_measure(self.module, f"{self.alias_of or self.name}_of")

    @property
    def noise_floor(self) -> "Callable[[Sample], float] | None":
        """Expected value of calibrated predictions, or None."""
        return _load_measure(*self.floor.split(":")) if self.floor else None

    @property
    def norm(self) -> "BiasNorm | None":
        """The norm of many biases at once, or None."""
        return _load_measure(self.module, f"{self.alias_of or self.name}_norm") if self.is_norm else None

    @property
    def lie_factor(self) -> Literal["1", "bounded", "growing"]:
        """Factor by which lying can pay: "1", "bounded" or "growing"."""
        return "1" if self.truthful else _LIES[self.alias_of or self.name][0]

    @property
    def lie_ratios(self) -> tuple[float, float]:
        """Measured factor for 200 and 2,000 events."""
        return (1.0, 1.0) if self.truthful else _LIES[self.alias_of or self.name][1:]

    @property
    def batched(self) -> bool:
        """True if many outcomes of the same predictions are measured in one call."""
        return self.is_norm or bool(self.tent_widths)


@functools.cache
def _load_measure(module: str, function: str) -> Callable[..., Any]:
    loaded: Callable[..., Any] = getattr(importlib.import_module(f"truthcal.measures.{module}"), function)
    return loaded


_KS_CE = Measure("ks_ce", "cumulative", is_norm=True, path_limit="maximum", reference=_ECCE)
_truthful = functools.partial(Measure, scale="squared", truthful=True)
_ubse = functools.partial(_truthful, floor="ubse:ubse_floor", continuous=True)
_smooth = functools.partial(Measure, continuous=True)
_slow = functools.partial(_smooth, slow=True)
_subsampled = functools.partial(
    Measure, module="subsampled", scale="half", whole_weights=True, tolerance=float("nan"), slow=True
)
_ROWS = (
    _ubse("atb", "atb", label="ATB", tent_widths=(1.0,), sketchable=True, reference=_PAPER),
    _smooth("atb_l1", "atb", is_norm=True, sketchable=True, reference=_PAPER),
    _ubse("multiscale_atb", "ubse", label="Multiscale ATB", tent_widths=_WIDTHS, relative_time=4.0, reference=_MIXTURE),
    _ubse(
        "information_atb",
        "ubse",
        label="Information ATB",
        continuous=False,
        tent_widths=_WIDTHS,
        axis="information",
        relative_time=2.5,
        reference=_MIXTURE,
    ),
    _truthful(
        "quantile_ece", "ubse", floor="ubse:quantile_ece_floor", worst=9 / 8, whole_weights=True, reference=_PAPER
    ),
    _ubse("shifted_grid_ubse", "ubse", label="Shifted-grid UBSE", tent_widths=(0.1,), reference="a UBSE, " + _PAPER),
    _smooth("smcal", "smooth", is_norm=True, relative_time=1.4, reference=_UNIFYING),
    _slow("distcal", "distcal", tolerance=1e-5, relative_time=100.0, cost=_PROGRAM, reference=_UNIFYING),
    Measure("intcal", "intcal", relative_time=10.0, cost=_SQUARE, reference=_UNIFYING),
    _smooth("intcal_surrogate", "intcal", relative_time=8.0, cost=_PER_WIDTH, reference=_UNIFYING),
    _smooth("laplace_kernel_ce", "smooth", is_norm=True, reference=_UNIFYING),
    _slow("smece", "smooth", tolerance=1e-7, relative_time=2.0, cost="O(n log n + 1/smECE)", reference=_SMECE),
    _KS_CE,
    Measure("kuiper_ce", "cumulative", is_norm=True, path_limit="range", reference=_ECCE),
    dataclasses.replace(_KS_CE, name="step_ce", alias_of="ks_ce", reference=_DECISIONS),
    _subsampled("subsampled_smcal", continuous=True, relative_time=5.0, cost="O(n log n) per draw", reference=_SSCE),
    _subsampled("subsampled_step_ce", relative_time=1.3, cost="O(n log n), plus O(n) per draw", reference=_DECISIONS),
    Measure("ece", "binned", sound=False, is_norm=True, cost="O(n)", reference=_BINNING),
    Measure("unbinned_ece", "binned", complete=False, is_norm=True, reference=f"{_NAEINI}, on distinct predictions"),
    Measure("decision_loss", "decision", complete=False, reference=_SWAP_REGRET),
    Measure("u_calibration", "decision", sound=False, reference=_UCAL),
    Measure("ici", "isotonic", reference="Austin, Steyerberg (2019), with isotonic regression as the smoother"),
)
# Lies under measures that are not truthful: order of the factor by which they pay, and the factors measured by
# benchmarks/truthfulness.py for 200 and 2,000 events.
_LIES: dict[str, tuple[Literal["bounded", "growing"], float, float]] = {
    "atb_l1": ("bounded", 1.29, 1.29),
    "smcal": ("bounded", 1.2, 1.2),
    "distcal": ("bounded", 1.06, 1.07),
    "intcal": ("growing", 3.3, 4.4),
    "intcal_surrogate": ("growing", 6.73, 9.79),
    "laplace_kernel_ce": ("bounded", 1.12, 1.12),
    "smece": ("growing", 2.31, 3.37),
    "ks_ce": ("bounded", 1.55, 1.57),
    "kuiper_ce": ("bounded", 1.95, 2.0),
    "subsampled_smcal": ("bounded", 1.03, 1.01),
    "subsampled_step_ce": ("bounded", 1.32, 1.33),
    "ece": ("bounded", 3.87, 3.79),
    "unbinned_ece": ("growing", 14.8, 46.2),
    "decision_loss": ("growing", 7.74, 27.7),
    "u_calibration": ("growing", 29.7, 954.0),
    "ici": ("growing", 2.8, 3.92),
}
MEASURES: dict[str, Measure] = {row.name: row for row in _ROWS}

# Measures with a tent kernel, and norms of the bias.
TENTS = tuple(name for name, row in MEASURES.items() if row.tent_widths)
NORMS = tuple(name for name, row in MEASURES.items() if row.is_norm)
