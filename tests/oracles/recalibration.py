"""Recalibration from the definitions, row by row and slowly. Uses neither truthcal nor scikit-learn."""

import numpy as np
from scipy import optimize, special

LEAST = 1e-9


def features(p, method):
    p = np.clip(p, LEAST, 1 - LEAST)
    if method == "beta":
        return np.column_stack([np.log(p), -np.log(1 - p), np.ones(len(p))])
    log_odds = np.log(p) - np.log(1 - p)
    return log_odds[:, None] if method == "temperature" else np.column_stack([log_odds, np.ones(len(p))])


def logistic(y, p, w, method):
    """The maximum likelihood, by a general optimizer: slopes (and intercept)."""
    x = features(p, method)

    def loss(beta):
        z = x @ beta
        return np.sum(w * (np.logaddexp(0, z) - y * z)) / np.sum(w)

    def gradient(beta):
        return x.T @ (w * (special.expit(x @ beta) - y)) / np.sum(w)

    return optimize.minimize(loss, np.zeros(x.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-9}).x


def isotonic(y, p, w):
    """The non-decreasing least-squares fit at each distinct prediction: the max of the min of means over ranges."""
    x = np.unique(p)
    weight = np.array([w[p == value].sum() for value in x])
    events = np.array([(w * y)[p == value].sum() for value in x])
    mean = [
        [events[a : b + 1].sum() / weight[a : b + 1].sum() if b >= a else np.inf for b in range(len(x))]
        for a in range(len(x))
    ]
    fit = [max(min(mean[a][i:]) for a in range(i + 1)) for i in range(len(x))]
    least = 1 / (w.sum() + 2)
    return x, np.clip(fit, least, 1 - least)


def log_loss(y, p):
    p = np.clip(p, LEAST, 1 - LEAST)
    return np.array([-np.log(q) if event else -np.log(1 - q) for event, q in zip(y, p, strict=True)])


def simplest_within_one_standard_error(losses, groups=None):
    """The first method whose mean loss exceeds the best by at most one standard error of the paired difference.

    The best one is the first whose mean loss is the smallest, up to one part in a billion.
    """
    smallest = min(loss.mean() for loss in losses.values())
    best = next(name for name, loss in losses.items() if loss.mean() <= smallest * (1 + 1e-9))
    for name, loss in losses.items():
        d = loss - losses[best]
        if groups is None:
            error = d.std(ddof=1) / np.sqrt(len(d))
        else:
            sums = np.array([np.sum(d[groups == g] - d.mean()) for g in np.unique(groups)]) / len(d)
            sizes = np.array([np.mean(groups == g) for g in np.unique(groups)])
            error = np.sqrt(np.sum(sums**2) / (1 - np.sum(sizes**2)))
        if d.mean() <= error:
            return name
    raise AssertionError("the best one is within zero")
