"""The functions that benchmarks/peers.py compares: a function of another package, and truthcal's for the same quantity.

Each call takes outcomes (int64) and predictions (float64) and returns the numbers to compare. Packages are imported
inside the calls, so that a process loads only the package it measures.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import truthcal as tc

Array = np.ndarray
Call = Callable[[Array, Array], object]

BINS = 15
# PyPI name and import name of each package.
PACKAGES = {
    "relplot": "relplot",
    "torchmetrics": "torchmetrics",
    "netcal": "netcal",
    "scikit-learn": "sklearn",
    "uncertainty-calibration": "calibration",
    "probcal": "probcal",
    "model-diagnostics": "model_diagnostics",
    "MAPIE": "mapie",
}


@dataclass(frozen=True)
class Comparison:
    """A function of a package, and those of truthcal (names in OURS) for the same quantity or the nearest one."""

    section: str
    package: str
    function: str
    call: Call
    ours: tuple[str, ...]
    # Digits in which the results must agree; None if the definitions differ.
    digits: int | None
    # Why the results differ, or agree in fewer digits than rounding explains.
    difference: str = ""
    # Why the package is faster or uses less memory, where it is.
    reason: str = ""


# --- truthcal ---------------------------------------------------------------------------------------------------------


def _curve(strategy: str) -> Call:
    def call(y: Array, p: Array) -> Array:
        curve = tc.reliability_curve(y, p, strategy=strategy, n_bins=BINS)
        return np.concatenate([curve.mean_true, curve.mean_proba])

    return call


def _bias_by_bin(y: Array, p: Array) -> Array:
    curve = tc.reliability_curve(y, p, strategy="uniform", n_bins=BINS)
    return curve.mean_proba - curve.mean_true


def _parts(decomposition: tc.ScoreDecomposition) -> list[float]:
    return [decomposition.miscalibration, decomposition.discrimination, decomposition.uncertainty]


def _line(fit: tc.CalibrationLine) -> list[float]:
    return [fit.slope, fit.calibration_in_the_large]


def _like(convention: str, n_bins: int = BINS) -> Call:
    return lambda y, p: tc.binned_ece_like(convention, y, p, n_bins=n_bins)


def _path_test(measure: str) -> Call:
    return lambda y, p: tc.calibration_test(y, p, measure=measure, method="asymptotic").pvalue


def _spiegelhalter(alternative: str) -> Call:
    return lambda y, p: tc.spiegelhalter_test(y, p, method="asymptotic", alternative=alternative).pvalue


OURS: dict[str, Call] = {
    "ece": lambda y, p: tc.ece(y, p, n_bins=BINS),
    "binned_ece, norm max": lambda y, p: tc.binned_ece(y, p, n_bins=BINS, norm="max"),
    "binned_ece, quantile": lambda y, p: tc.binned_ece(y, p, n_bins=BINS, strategy="quantile"),
    "binned_ece, quantile, l2, debiased": lambda y, p: tc.binned_ece(
        y, p, n_bins=BINS, strategy="quantile", norm="l2", debias=True
    ),
    "binned_ece_like torchmetrics": _like("torchmetrics"),
    "binned_ece_like netcal": _like("netcal"),
    "binned_ece_like uncertainty-calibration": _like("uncertainty-calibration"),
    "binned_ece_like mapie": _like("mapie", BINS + 1),
    "smece": tc.smece,
    "laplace_kernel_ce": tc.laplace_kernel_ce,
    "2 laplace_kernel_ce^2": lambda y, p: 2 * tc.laplace_kernel_ce(y, p) ** 2,
    "intcal_surrogate": tc.intcal_surrogate,
    "ks_ce": tc.ks_ce,
    "ici": tc.ici,
    "reliability_curve, uniform": _curve("uniform"),
    "reliability_curve, quantile": _curve("quantile"),
    "reliability_curve, uniform, bias": _bias_by_bin,
    "brier_decomposition": lambda y, p: _parts(tc.brier_decomposition(y, p)),
    "log_loss_decomposition": lambda y, p: _parts(tc.log_loss_decomposition(y, p)),
    "calibration_slope_intercept": lambda y, p: _line(tc.calibration_slope_intercept(y, p)),
    "calibration_test, ks_ce": _path_test("ks_ce"),
    "calibration_test, kuiper_ce": _path_test("kuiper_ce"),
    "calibration_test": lambda y, p: tc.calibration_test(y, p).pvalue,
    "spiegelhalter_test": _spiegelhalter("two-sided"),
    "spiegelhalter_test, greater": _spiegelhalter("greater"),
    "hosmer_lemeshow_test": lambda y, p: tc.hosmer_lemeshow_test(y, p, method="asymptotic").pvalue,
}


# --- the packages -----------------------------------------------------------------------------------------------------


def relplot_ece(y: Array, p: Array) -> float:
    import relplot.metrics

    return relplot.metrics.binnedECE(p, y, nbins=BINS)


def relplot_smece(y: Array, p: Array) -> float:
    import relplot

    return relplot.smECE(p, y)


def relplot_laplace(y: Array, p: Array) -> float:
    import relplot.metrics

    np.random.seed(0)  # noqa: NPY002 (relplot draws from numpy's global generator)
    return relplot.metrics.laplace_calibration_approx(p, y)


def relplot_interval(y: Array, p: Array) -> float:
    import relplot.metrics

    np.random.seed(0)  # noqa: NPY002
    return relplot.metrics.intCE_rand(p, y)


def torchmetrics_ece(y: Array, p: Array) -> float:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), n_bins=BINS).item()


def netcal_ece(y: Array, p: Array) -> float:
    from netcal.metrics import ECE

    return ECE(BINS).measure(p, y)


def netcal_mce(y: Array, p: Array) -> float:
    from netcal.metrics import MCE

    return MCE(BINS).measure(p, y)


def _sklearn_curve(strategy: str) -> Call:
    def call(y: Array, p: Array) -> Array:
        from sklearn.calibration import calibration_curve

        return np.concatenate(calibration_curve(y, p, n_bins=BINS, strategy=strategy))

    return call


def sklearn_isotonic(y: Array, p: Array) -> float:
    from sklearn.isotonic import IsotonicRegression

    return float(np.mean(np.abs(p - IsotonicRegression().fit_transform(p, y))))


def uncertainty_ece(y: Array, p: Array) -> float:
    import calibration

    return calibration.get_ece(p, y, num_bins=BINS)


def uncertainty_error(y: Array, p: Array) -> float:
    import calibration

    return calibration.get_calibration_error(p, y)


def _probcal(name: str, *fields: str, **parameters: object) -> Call:
    """Call a function of probcal.metrics, and return the result or some of its fields."""

    def call(y: Array, p: Array) -> object:
        import probcal.metrics

        result = getattr(probcal.metrics, name)(y, p, **parameters)
        return [getattr(result, field) for field in fields] if fields else result

    return call


def probcal_line(y: Array, p: Array) -> list[float]:
    from probcal.metrics import calibration_intercept, calibration_slope

    return [calibration_slope(y, p), calibration_intercept(y, p)]


def probcal_decomposition(y: Array, p: Array) -> list[float]:
    from probcal.curves import corp_reliability

    result = corp_reliability(y, p, bands=None)
    return [result.brier_mcb, result.brier_dsc, result.brier_unc]


def model_diagnostics_bias(y: Array, p: Array) -> Array:
    from model_diagnostics.calibration import compute_bias

    frame = compute_bias(y_obs=y, y_pred=p, feature=p, n_bins=BINS, bin_method="uniform")
    return frame["bias_mean"].to_numpy()


def _model_diagnostics_decomposition(score: str) -> Call:
    def call(y: Array, p: Array) -> list[float]:
        from model_diagnostics import scoring

        frame = scoring.decompose(y_obs=y, y_pred=p, scoring_function=getattr(scoring, score)())
        return [frame[part][0] for part in ("miscalibration", "discrimination", "uncertainty")]

    return call


def mapie_ece(y: Array, p: Array) -> float:
    from mapie.metrics.calibration import expected_calibration_error

    return expected_calibration_error(y, p, num_bins=BINS + 1)  # it counts edges


def _mapie_pvalue(name: str) -> Call:
    def call(y: Array, p: Array) -> float:
        import mapie.metrics.calibration

        return float(getattr(mapie.metrics.calibration, name)(y, p))

    return call


# --- which functions are compared -------------------------------------------------------------------------------------

BINNED, SMOOTH = "Binned calibration error, 15 bins", "Other calibration errors"
CURVES, TESTS = "Curves, decompositions and fits", "p-values"

_TIES = "Bins of equal count are divided otherwise unless the number of rows is a multiple of 15."
_NEIGHBOURS = "also tests neighbouring rows for dependence, which takes most of the time of few rows"
_JITTER = "MAPIE adds relative noise of 1e-8 to the predictions to break ties."

COMPARISONS = [
    Comparison(
        BINNED,
        "relplot",
        "binnedECE",
        relplot_ece,
        ("ece",),
        9,
        reason="relplot does not check its input; `ece` does, in the time of its sums.",
    ),
    Comparison(
        BINNED,
        "torchmetrics",
        "binary_calibration_error",
        torchmetrics_ece,
        ("ece", "binned_ece_like torchmetrics"),
        8,
        "torchmetrics adds the rows of a bin one by one, which loses digits as rows are added.",
    ),
    Comparison(BINNED, "netcal", "ECE", netcal_ece, ("ece", "binned_ece_like netcal"), 8),
    Comparison(BINNED, "netcal", "MCE", netcal_mce, ("binned_ece, norm max",), 8),
    Comparison(
        BINNED,
        "uncertainty-calibration",
        "get_ece",
        uncertainty_ece,
        ("ece", "binned_ece_like uncertainty-calibration"),
        8,
    ),
    Comparison(
        BINNED,
        "uncertainty-calibration",
        "get_calibration_error",
        uncertainty_error,
        ("binned_ece, quantile, l2, debiased",),
        None,
        f"{_TIES} The subtracted noise is as large as the error here, so this shows in the first digits.",
    ),
    Comparison(BINNED, "probcal", 'ece(strategy="width")', _probcal("ece", strategy="width"), ("ece",), 8),
    Comparison(BINNED, "probcal", "ece", _probcal("ece"), ("binned_ece, quantile",), None, _TIES),
    Comparison(
        BINNED,
        "MAPIE",
        "expected_calibration_error",
        mapie_ece,
        ("ece", "binned_ece_like mapie"),
        8,
        reason="MAPIE looks at one bin at a time, which takes little memory but a pass over all rows for each bin.",
    ),
    Comparison(
        SMOOTH,
        "relplot",
        "smECE",
        relplot_smece,
        ("smece",),
        None,
        "relplot finds the width by ten bisections, so to 0.001 only; truthcal's relative error is below 1e-7.",
        "relplot evaluates the error on a grid, for a dozen widths; truthcal solves for the width to seven digits.",
    ),
    Comparison(
        SMOOTH,
        "probcal",
        "smooth_ece",
        _probcal("smooth_ece"),
        ("smece",),
        None,
        "probcal smooths log-odds, truthcal probabilities: different definitions. Where 8,192 cells are too coarse "
        "probcal needs a matrix of 257 numbers a row.",
        "probcal adds up the rows in 8,192 cells; truthcal sorts them, and finds errors far smaller than a cell.",
    ),
    Comparison(
        SMOOTH,
        "relplot",
        "laplace_calibration_approx",
        relplot_laplace,
        ("laplace_kernel_ce",),
        None,
        "relplot draws 10 n pairs of rows at random. For calibrated rows the result is mostly the noise of the draw; "
        "truthcal's is exact.",
    ),
    Comparison(
        SMOOTH,
        "probcal",
        'skce(estimator="biased", bandwidth=1)',
        _probcal("skce", estimator="biased", bandwidth=1.0),
        ("2 laplace_kernel_ce^2",),
        9,
        "probcal computes all n^2 pairs, truthcal a sum of squares over sorted rows: the same number.",
    ),
    Comparison(
        SMOOTH,
        "relplot",
        "intCE_rand",
        relplot_interval,
        ("intcal_surrogate",),
        None,
        "relplot averages 100 random shifts of the bins; truthcal integrates over the shift.",
    ),
    Comparison(SMOOTH, "probcal", "ecce", _probcal("ecce", "stat_max"), ("ks_ce",), 9),
    Comparison(
        SMOOTH,
        "probcal",
        "ici",
        _probcal("ici"),
        ("ici",),
        None,
        "probcal smooths by LOESS, truthcal by isotonic regression: different definitions.",
    ),
    Comparison(SMOOTH, "scikit-learn", "IsotonicRegression, mean of abs(p - fit)", sklearn_isotonic, ("ici",), 9),
    Comparison(
        CURVES, "scikit-learn", "calibration_curve", _sklearn_curve("uniform"), ("reliability_curve, uniform",), 9
    ),
    Comparison(
        CURVES,
        "scikit-learn",
        'calibration_curve(strategy="quantile")',
        _sklearn_curve("quantile"),
        ("reliability_curve, quantile",),
        None,
        _TIES,
    ),
    Comparison(
        CURVES,
        "model-diagnostics",
        'compute_bias(bin_method="uniform")',
        model_diagnostics_bias,
        ("reliability_curve, uniform, bias",),
        None,
        "model-diagnostics divides the range from the smallest to the largest prediction, truthcal that from 0 to 1.",
    ),
    Comparison(
        CURVES,
        "model-diagnostics",
        "decompose(SquaredError())",
        _model_diagnostics_decomposition("SquaredError"),
        ("brier_decomposition",),
        9,
    ),
    Comparison(
        CURVES,
        "model-diagnostics",
        "decompose(LogLoss())",
        _model_diagnostics_decomposition("LogLoss"),
        ("log_loss_decomposition",),
        9,
    ),
    Comparison(
        CURVES,
        "probcal",
        "corp_reliability(bands=None)",
        probcal_decomposition,
        ("brier_decomposition",),
        9,
        "probcal also decomposes the log loss in the same call.",
    ),
    Comparison(
        CURVES,
        "probcal",
        "calibration_slope, calibration_intercept",
        probcal_line,
        ("calibration_slope_intercept",),
        6,
        "Both use Newton's method; probcal stops at a step of 1e-10, truthcal of 1e-12.",
    ),
    Comparison(
        TESTS,
        "MAPIE",
        "kolmogorov_smirnov_p_value",
        _mapie_pvalue("kolmogorov_smirnov_p_value"),
        ("calibration_test, ks_ce",),
        4,
        _JITTER,
        f"Both sort; `calibration_test` {_NEIGHBOURS}.",
    ),
    Comparison(
        TESTS,
        "MAPIE",
        "kuiper_p_value",
        _mapie_pvalue("kuiper_p_value"),
        ("calibration_test, kuiper_ce",),
        4,
        _JITTER,
        f"Both sort; `calibration_test` {_NEIGHBOURS}.",
    ),
    Comparison(
        TESTS,
        "MAPIE",
        "spiegelhalter_p_value",
        _mapie_pvalue("spiegelhalter_p_value"),
        ("spiegelhalter_test, greater",),
        9,
        reason=f"MAPIE computes two sums over the rows; `spiegelhalter_test` {_NEIGHBOURS}.",
    ),
    Comparison(
        TESTS,
        "probcal",
        "spiegelhalter_z",
        _probcal("spiegelhalter_z", "p_value"),
        ("spiegelhalter_test",),
        9,
        reason=f"probcal computes two sums over the rows; `spiegelhalter_test` {_NEIGHBOURS}.",
    ),
    Comparison(
        TESTS,
        "probcal",
        "hosmer_lemeshow",
        _probcal("hosmer_lemeshow", "p_value"),
        ("hosmer_lemeshow_test",),
        8,
        reason=f"probcal computes the bins alone; `hosmer_lemeshow_test` {_NEIGHBOURS}.",
    ),
    Comparison(
        TESTS,
        "probcal",
        "calibration_test",
        _probcal("calibration_test", "p_value"),
        ("calibration_test",),
        None,
        "Different tests: probcal's is Cox's likelihood-ratio test of slope 1 and intercept 0, truthcal's detects "
        "errors of any shape.",
        "truthcal computes the distribution of a sum of 192 squares; probcal uses the chi-square distribution with two "
        "degrees of freedom.",
    ),
]
