"""ATB as a function to train with: value, exact gradient and further derivatives from one sort."""

from typing import Any

import torch

from truthcal.core import checks
from truthcal.core.params import check_flag
from truthcal.torch import rows

_SWAPPED = "the arguments look swapped: predictions come first, atb_loss(p, y)."


def atb_loss(p: torch.Tensor, y: torch.Tensor, *, unbiased: bool = False) -> torch.Tensor:
    """ATB of a batch, differentiable in the predictions: a calibration penalty for training.

    Add it to a proper loss, such as cross-entropy: a constant prediction can minimise it alone.

    Parameters
    ----------
    p : Tensor
        Predicted probabilities of shape (N,) or (N, 1), for example ``torch.sigmoid(logits)``: float16, bfloat16,
        float32 or float64.
    y : Tensor
        Outcomes of the same length: 0/1, True/False, or fractions (soft labels). There is no gradient in them.
    unbiased : bool, default False
        If False, the value of `truthcal.atb`, whose mean falls as the batch grows, since it contains the mean squared
        error divided by N. If True, the mean over pairs of different rows only: its mean is the ATB of the population
        for any batch size, and it may be negative. It is not truthful: the true probabilities have the expectation 0,
        and errors of few rows that cancel have one below 0. It needs at least two rows.

    Returns
    -------
    Tensor
        A scalar: float64 if `p` is float64, otherwise float32.

    Notes
    -----
    With c = p - y, ATB is the mean of ``c_i c_j (1 - |p_i - p_j|)`` over all pairs of rows. Its derivative in p_k is
    ``(2 / N^2) * (sum_j c_j (1 - |p_k - p_j|) - c_k sum_j c_j sign(p_k - p_j))``. At ties ATB has a kink, and with
    sign(0) = 0 this is the mean of the derivatives on both sides. The value, and derivatives of any order by reverse
    mode (``backward``, ``torch.autograd.grad``, ``torch.func.grad``), take O(N log N) each, in float64 unless the
    device has none (mps). Forward mode (``torch.func.jvp``, ``jacfwd``) raises NotImplementedError or RuntimeError.

    Each process of a distributed run penalises its own batch: the mean of these losses is not the loss of all rows,
    except on average with ``unbiased=True``.

    ``torch.compile`` works, with a graph break. ``torch.compile(fullgraph=True)`` does not, because invalid values
    raise an error. Neither does ``torch.vmap``, nor what uses it, such as ``torch.func.hessian``: the derivatives have
    no rule for it. ``torch.autograd.functional.hessian`` works.

    Examples
    --------
    >>> import torch
    >>> from truthcal.torch import atb_loss
    >>> logits = torch.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    >>> loss = atb_loss(torch.sigmoid(logits), torch.tensor([0, 1, 1]))
    >>> loss.backward()
    >>> print(f"{loss.item():.4f}", logits.grad.numpy().round(4))
    0.0155 [-0.0068 -0.0076 -0.0072]
    """
    unbiased = check_flag(unbiased, "unbiased")
    predictions, outcomes = rows.as_vector(p, "p"), rows.as_vector(y, "y")
    rows.refuse_integers(predictions, "p", "y")
    _refuse_float8(predictions, "p")
    _refuse_float8(outcomes, "y")
    rows.refuse_unlike(predictions, "p", outcomes, "y")
    _refuse_few_rows(len(predictions), unbiased)
    _check_values(predictions, outcomes)
    precise = torch.float32 if predictions.device.type == "mps" else torch.float64
    total = _sum_over_pairs(predictions.to(precise), outcomes.detach().to(precise), unbiased)
    n = len(predictions)
    return (total / (n * (n - 1 if unbiased else n))).to(torch.promote_types(predictions.dtype, torch.float32))


def _refuse_few_rows(n: int, unbiased: bool) -> None:
    if n == 0:
        raise checks.invalid("p", "is empty; at least one row is needed.")
    if unbiased and n == 1:
        cure = "Use DataLoader(..., drop_last=True), or larger batches."
        raise checks.invalid("p", f"has one row, but unbiased=True needs at least two. {cure}")


def _refuse_float8(values: torch.Tensor, name: str) -> None:
    """Reject floats of one byte, for which torch has no comparisons."""
    if values.is_floating_point() and values.element_size() < 2:
        rule = f"must have floats of at least 16 bits; got {values.dtype}. Convert it with .float()."
        raise checks.invalid(name, rule, TypeError)


def _check_values(p: torch.Tensor, y: torch.Tensor) -> None:
    """Check all values with one synchronisation with the device."""
    if y.requires_grad and not p.requires_grad:
        problem = f"requires a gradient, but `p` does not; {_SWAPPED} If they are not swapped, pass y.detach()."
        raise checks.invalid("y", problem)
    # A prediction with a gradient comes from a model, whose sigmoid may round to 0 and 1 in a whole batch.
    swapped = rows.is_binary(p).all() & ~rows.is_binary(y).all() & (not p.requires_grad)
    if bool(rows.inside_unit(p) & rows.inside_unit(y) & ~swapped):
        return
    rows.refuse_predictions(p, "p", "Logits? Pass torch.sigmoid(logits).")
    rows.refuse_outside_unit(y, "y", "For one class k against the rest pass `y == k`.")
    raise checks.invalid("p", f"has only 0 and 1, but `y` has fractions; {_SWAPPED}")


def _sum_over_pairs(p: torch.Tensor, y: torch.Tensor, unbiased: bool) -> torch.Tensor:
    """Sum c_i c_j (1 - |p_i - p_j|) over all pairs of rows, or over those of different rows."""
    order = torch.argsort(p.detach())
    p, y = p[order], y[order]
    fixed = p.detach()
    ends = torch.searchsorted(fixed, fixed), torch.searchsorted(fixed, fixed, right=True)  # of the ties of each row
    c = p - y
    total = _PairSum.apply(p, c, *ends)
    return total - (c * c).sum() if unbiased else total


# --- sums over pairs of sorted rows, from cumulative sums; each backward pass consists of such sums again -------------


class _PairSum(torch.autograd.Function):
    """Sum of c_i c_j (1 - |p_i - p_j|) over all pairs."""

    @staticmethod
    def forward(p: torch.Tensor, c: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        before, gaps = _cumulative(c), _gaps(p)
        return (gaps * (before**2 + (before[-1] - before) ** 2)).sum()  # all terms positive, so nothing cancels

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        p, c, *ends = ctx.saved_tensors
        slope = -2.0 * upstream * c * _SignSum.apply(c, *ends)
        return slope, 2.0 * upstream * _KernelSum.apply(p, c, *ends), None, None


class _KernelSum(torch.autograd.Function):
    """Sum of x_j (1 - |p_k - p_j|) over j, for each row k."""

    @staticmethod
    def forward(p: torch.Tensor, x: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        before, gaps = _cumulative(x), _gaps(p)
        # As a function of p_k, the sum starts at 0 with the first term, and has the slope sum of x after - before p_k.
        return (x * (1.0 - p)).sum() + torch.cumsum(gaps * (before[-1] - 2.0 * before), 0)[:-1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        p, x, *ends = ctx.saved_tensors
        slope = -upstream * _SignSum.apply(x, *ends) - x * _SignSum.apply(upstream, *ends)
        return slope, _KernelSum.apply(p, upstream, *ends), None, None


class _SignSum(torch.autograd.Function):
    """Sum of x_j sign(p_k - p_j) over j, for each row k; sign(0) = 0. Constant in p between ties."""

    @staticmethod
    def forward(x: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        before = _cumulative(x)
        return before[first] + before[last] - before[-1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return -_SignSum.apply(upstream, *ctx.saved_tensors), None, None


def _cumulative(x: torch.Tensor) -> torch.Tensor:
    """Sums of the first 0, 1, ..., n values."""
    return torch.nn.functional.pad(torch.cumsum(x, 0), (1, 0))


def _gaps(p: torch.Tensor) -> torch.Tensor:
    """Distances from 0 to the first prediction, from each one to the next, and from the last to 1."""
    return torch.diff(p, prepend=p.new_zeros(1), append=p.new_ones(1))
