"""Forecasts whose calibration error is known: shape -> function of a generator and n, returning (y, p, truth, weights)."""

import numpy as np
from scipy.special import expit, logit


def _forecasts(predictions, truth, weights=None):
    """Draw predictions, then outcomes with the true probabilities; weights are None or drawn, too."""

    def draw(rng, n):
        p = predictions(rng, n)
        q = np.clip(truth(p), 0.0, 1.0)
        return (rng.random(n) < q).astype(int), p, q, None if weights is None else weights(rng, n)

    return draw


def _even(rng, n):
    return rng.uniform(0.001, 0.999, n)


def _two_modes(rng, n):
    return np.where(rng.random(n) < 0.5, rng.beta(1, 12, n), rng.beta(12, 1, n))


SHAPES = {
    "none": _forecasts(_even, lambda p: p),
    "slope 1.6": _forecasts(_even, lambda p: expit(1.6 * logit(p))),
    "slope 1.2": _forecasts(_even, lambda p: expit(1.2 * logit(p))),
    "slope 0.6": _forecasts(_even, lambda p: expit(0.6 * logit(p))),
    "shift 0.05": _forecasts(_even, lambda p: p - 0.05),
    "sine-3": _forecasts(_even, lambda p: p + 0.1 * np.sin(6.0 * np.pi * p)),
    "bump": _forecasts(_even, lambda p: p - 0.12 * np.exp(-(((p - 0.7) / 0.08) ** 2) / 2.0)),
    "bimodal overconfident": _forecasts(_two_modes, lambda p: 0.5 + 0.8 * (p - 0.5)),
    "rare calibrated": _forecasts(lambda rng, n: rng.beta(1, 49, n), lambda p: p),
    "rare doubled": _forecasts(lambda rng, n: rng.beta(1, 49, n), lambda p: p / 2.0),
    "ties": _forecasts(lambda rng, n: 0.02 + 0.096 * rng.integers(0, 11, n), lambda p: p**1.2),
    "Pareto weights": _forecasts(_even, lambda p: expit(1.4 * logit(p)), lambda rng, n: 1.0 + rng.pareto(2.5, n)),
}


def true_error(p, truth, weights=None):
    """The root mean square error of the predictions."""
    return float(np.sqrt(np.average((p - truth) ** 2, weights=weights)))
