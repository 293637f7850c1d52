"""Distribution of the number of events."""

from truthcal.kernels.jit import Rows, compiled


@compiled
def law_of_sum(p: Rows, law: Rows) -> None:
    """Probabilities of 0 to p.size events that are independent with probabilities p (Poisson binomial)."""
    law[:] = 0.0
    law[0] = 1.0
    for k in range(p.size):
        for j in range(k + 1, 0, -1):
            law[j] = law[j] * (1.0 - p[k]) + law[j - 1] * p[k]
        law[0] *= 1.0 - p[k]
