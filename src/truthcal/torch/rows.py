"""Checks of tensors: predictions, outcomes and weights become valid vectors, or one clear error.

Values are checked on their device, all at once, so that valid rows cost one synchronisation. Only if one is invalid are
the rows copied to find and explain it.
"""

from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from truthcal.core import checks


def as_vector(values: object, name: str) -> torch.Tensor:
    """Check that a tensor is one column of real numbers, (N,) or (N, 1), and return it with shape (N,)."""
    if not isinstance(values, torch.Tensor):
        cure = "Convert it with torch.as_tensor(...), or use truthcal.Sketch, which takes any column."
        raise checks.invalid(name, f"must be a torch tensor; got {type(values).__name__}. {cure}", TypeError)
    if values.is_complex():
        raise checks.invalid(name, f"must contain real numbers; got {values.dtype}.", TypeError)
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.reshape(-1)
    raise checks.invalid(name, f"must have shape (N,) or (N, 1); got {tuple(values.shape)}. {_cure_shape(values)}")


def _cure_shape(values: torch.Tensor) -> str:
    if values.ndim == 2:
        one_class = "A column for each class? Pass one class k against the rest, column [:, k] and `target == k`"
        return f"{one_class}, or all rows to truthcal.assess."
    return "Pass a batch of rows." if values.ndim == 0 else "Flatten predictions and outcomes, with .flatten()."


def refuse_unlike(first: torch.Tensor, name: str, second: torch.Tensor, other_name: str) -> None:
    """Reject vectors of different lengths or on different devices."""
    if len(first) != len(second):
        problem = f"has {len(first)} rows but `{other_name}` has {len(second)}"
        raise checks.invalid(name, f"{problem}; they must match row by row.")
    refuse_other_device(first, name, second.device, f"`{other_name}`")


def refuse_other_device(values: torch.Tensor, name: str, device: torch.device, owner: str) -> None:
    """Reject a tensor that is not on the device of `owner`."""
    if values.device != device:
        raise checks.invalid(name, f'is on {values.device}, but {owner} on {device}. Move one with .to("{device}").')


def refuse_integers(predictions: torch.Tensor, name: str, other_name: str) -> None:
    """Reject predictions that are not floats: they are probably classes, or outcomes."""
    if not predictions.is_floating_point():
        cure = f"Predicted classes cannot be judged; if it has the outcomes, exchange it with `{other_name}`."
        raise checks.invalid(name, f"must contain floats; got {predictions.dtype}. {cure}", TypeError)


def to_double(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return float64 on a device that has it, without a graph. From mps, copy first: it has no float64."""
    return values.detach().to(device).to(torch.float64)


def is_binary(values: torch.Tensor) -> torch.Tensor:
    """Return where values are 0 or 1. nan is neither."""
    return (values == 0) | (values == 1)


def inside_unit(values: torch.Tensor) -> torch.Tensor:
    """Whether all values lie in [0, 1], as a tensor. nan does not."""
    return ((values >= 0) & (values <= 1)).all()


def refuse_predictions(values: torch.Tensor, name: str, cure_logits: str) -> None:
    """Raise if a prediction is missing or outside of [0, 1]; suggest what the values are."""
    p = to_numpy(values)
    low, high = float(p.min()), float(p.max())
    other_scale = low >= 0 and high <= 100
    refuse_outside_unit(values, name, checks.cure_outside_unit(low, high) if other_scale else cure_logits)


def refuse_outside_unit(values: torch.Tensor, name: str, cure: str) -> None:
    """Raise if a value is missing or outside of [0, 1]."""
    p = to_numpy(values)
    checks.refuse_missing_values(np.isnan(p), name, "nan")
    bad = ~((p >= 0) & (p <= 1))
    if not bad.any():
        return
    if p.min() >= -1e-6 and p.max() <= 1 + 1e-6:
        cure = "Rounding error? Clip with .clamp(0, 1)."
    raise checks.invalid(name, f"must lie in [0, 1]; found {checks.where_found(p, bad)}. {cure}")


def refuse_outcomes(y: torch.Tensor, name: str) -> None:
    """Raise if an outcome is not 0 or 1."""
    values = to_numpy(y)
    checks.refuse_missing_values(np.isnan(values), name, "nan")
    bad = (values != 0) & (values != 1)
    if bad.any():
        cure = "For one class k against the rest pass `target == k`; drop rows without an outcome."
        rule = f"must contain 0/1 or True/False; found {checks.where_found(values, bad)}"
        raise checks.invalid(name, f"{rule}. {cure}")


def refuse_padding(p: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> None:
    """Raise if a column is invalid in rows of weight 0 only: say how to make padding valid."""
    for name, values, valid in (("preds", p, (p >= 0) & (p <= 1)), ("target", y, is_binary(y))):
        bad = ~valid
        if bool(bad.any() & (w[bad] == 0).all()):
            value = checks.where_found(to_numpy(values), bad.cpu().numpy())
            cure = f"Padding must be valid, too: pass torch.where(sample_weight > 0, {name}, 0)."
            raise checks.invalid(name, f"is invalid in a row of weight 0: found {value}. {cure}")


def refuse_weights(w: torch.Tensor) -> NoReturn:
    """Raise for weights of which at least one cannot be added to a sketch."""
    weights = checks.check_weights(to_numpy(w))
    positive = weights[weights > 0]
    checks.refuse_weights_between(float(positive.min()), float(positive.max()))


def to_numpy(values: torch.Tensor) -> NDArray[Any]:
    """Copy a vector to numpy, as float64; numpy has no bfloat16."""
    array: NDArray[Any] = to_double(values, torch.device("cpu")).numpy()
    return array
