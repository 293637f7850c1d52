"""The Poisson binomial distribution: the number of events with different probabilities."""

from truthcal.kernels.jit import Rows, compiled


@compiled
def poisson_binomial(p: Rows, probability: Rows) -> None:
    """Poisson binomial distribution: chances of 0 to p.size of the independent events with probabilities p."""
    probability[:] = 0.0
    probability[0] = 1.0
    for k in range(p.size):
        for j in range(k + 1, 0, -1):
            probability[j] = probability[j] * (1.0 - p[k]) + probability[j - 1] * p[k]
        probability[0] *= 1.0 - p[k]
