"""Forecasts whose calibration error is known, for simulations."""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch

Array = np.ndarray
# Outcomes, predictions, truth (the probability of the outcome given the prediction), and weights or None.
Rows = tuple[Array, Array, Array, Array | None]
Shape = Callable[[np.random.Generator, int], Rows]


def tilted(p: Array, slope: float) -> Array:
    """Multiply log-odds by `slope`."""
    return 1.0 / (1.0 + ((1.0 - p) / p) ** slope)


def outcomes(rng: np.random.Generator, p: Array, truth: Array, weight: Array | None = None) -> Rows:
    """Draw outcomes that follow the truth."""
    return (rng.random(len(p)) < truth).astype(int), p, truth, weight


def _steep(slope: float) -> Shape:
    """Predictions whose log-odds are `slope` times those of the truth, which is uniform."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        truth = rng.uniform(0.001, 0.999, n)
        return outcomes(rng, tilted(truth, slope), truth)

    return draw


def _of_predictions(truth_of: Callable[[Array], Array]) -> Shape:
    """Uniform predictions with a truth that is a function of them."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        p = rng.random(n)
        return outcomes(rng, p, np.clip(truth_of(p), 0.0, 1.0))

    return draw


def _bimodal(rng: np.random.Generator, n: int) -> Rows:
    p = np.clip(rng.beta(0.4, 0.4, n), 1e-4, 1.0 - 1e-4)
    return outcomes(rng, p, tilted(p, 0.7))


def _rare(factor: float) -> Shape:
    def draw(rng: np.random.Generator, n: int) -> Rows:
        truth = rng.beta(1.0, 49.0, n) / factor
        return outcomes(rng, truth * factor, truth)

    return draw


def _ties(rng: np.random.Generator, n: int) -> Rows:
    p = rng.integers(0, 11, n) / 10
    return outcomes(rng, p, 0.1 + 0.8 * p)


def _pareto(rng: np.random.Generator, n: int) -> Rows:
    y, p, truth, _ = _steep(1.6)(rng, n)
    return y, p, truth, 1.0 + rng.pareto(1.5, n)


SHAPES: dict[str, Shape] = {
    "none": _of_predictions(lambda p: p),
    "log-odds x 1.6": _steep(1.6),
    "log-odds x 1.2": _steep(1.2),
    "log-odds x 0.6": _steep(0.6),
    "shift 0.05": _of_predictions(lambda p: p - 0.05),
    "sine-3 of 0.1": _of_predictions(lambda p: p + 0.1 * np.sin(6.0 * math.pi * p)),
    "local bump": _of_predictions(lambda p: p + 0.12 * ((p >= 0.4) & (p < 0.5))),
    "bimodal overconfident": _bimodal,
    "rare calibrated": _rare(1.0),
    "rare doubled": _rare(2.0),
    "11 values": _ties,
    "Pareto weights": _pareto,
}


def summaries(rows: Rows) -> dict[str, Sample | Sketch]:
    """Summarize the same rows as a sample and as a sketch."""
    y, p, _, weight = rows
    return {"rows": Sample.of(y, p, weight), "sketch": tc.Sketch().update(y, p, weight)}


def true_size(rows: Rows) -> float:
    """Return the true root mean square error of the rows."""
    _, p, truth, weight = rows
    return math.sqrt(float(np.average((p - truth) ** 2, weights=weight)))


def true_mean_error(rows: Rows, low: float, high: float) -> float:
    """Return the true mean error of the predictions between two limits."""
    _, p, truth, weight = rows
    inside = (p >= low - 1e-12) & (p <= high + 1e-12)
    return float(np.average((p - truth)[inside], weights=None if weight is None else weight[inside]))


# --- closer to the outcomes than chance allows, or not ----------------------------------------------------------------


Forecasts = tuple[Array, Array]


def _calibrated(predictions: Callable[[np.random.Generator], Array]) -> Callable[[np.random.Generator], Forecasts]:
    def draw(rng: np.random.Generator) -> Forecasts:
        p = predictions(rng)
        return (rng.random(len(p)) < p).astype(int), p

    return draw


def _both_teams(rng: np.random.Generator) -> Forecasts:
    p = rng.uniform(0.2, 0.8, 500)
    y = (rng.random(500) < p).astype(int)
    return np.concatenate([y, 1 - y]), np.concatenate([p, 1.0 - p])


def _one_vs_rest(rng: np.random.Generator) -> Forecasts:
    p = rng.dirichlet(np.full(5, 3.0), 500)
    y = (rng.random((500, 1)) < np.cumsum(p, axis=1)).argmax(axis=1)
    return (y[:, None] == np.arange(5)).astype(int).ravel(), p.ravel()


def _fitted(rng: np.random.Generator) -> Forecasts:
    y, p = _calibrated(lambda rng: rng.random(1000))(rng)
    order = np.argsort(p)
    return y[order], isotonic_regression(y[order]).x.clip(1e-3, 1.0 - 1e-3)


def _stratified(rng: np.random.Generator) -> Forecasts:
    return np.repeat([0, 1], 10_000), np.full(20_000, 0.5)


HONEST: dict[str, Callable[[np.random.Generator], Forecasts]] = {
    "300 uniform": _calibrated(lambda rng: rng.random(300)),
    "1,000 uniform": _calibrated(lambda rng: rng.random(1000)),
    "1,000 rare, Beta(1, 49)": _calibrated(lambda rng: rng.beta(1.0, 49.0, 1000)),
    "1,000 of 11 values": _calibrated(lambda rng: rng.integers(0, 11, 1000) / 10),
    "1,000 of two values": _calibrated(lambda rng: rng.choice([0.3, 0.6], 1000)),
    "1,000 times 0.5": _calibrated(lambda rng: np.full(1000, 0.5)),
    "100 times 0.5": _calibrated(lambda rng: np.full(100, 0.5)),
}
TOO_GOOD: dict[str, Callable[[np.random.Generator], Forecasts]] = {
    "both teams of 500 matches": _both_teams,
    "one-vs-rest columns, 500 events of 5 classes": _one_vs_rest,
    "isotonic fit of 1,000 rows to their outcomes": _fitted,
    "10,000 of 20,000 rows chosen by outcome, 0.5 predicted": _stratified,
}
