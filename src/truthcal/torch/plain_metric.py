"""The part of torchmetrics.Metric that `ATBMetric` needs, for installations without torchmetrics."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import torch
import torch.distributed as dist


class _Reduction(NamedTuple):
    """Two forms of one reduction: a function of two tensors, and the name of its `torch.distributed.ReduceOp`."""

    of_two: Callable[..., torch.Tensor]
    op_name: str


_REDUCTIONS = {
    "sum": _Reduction(torch.add, "SUM"),
    "min": _Reduction(torch.minimum, "MIN"),
    "max": _Reduction(torch.maximum, "MAX"),
}


class PlainMetric(torch.nn.Module):
    """Base class of metrics with a state of tensors: some methods of torchmetrics.Metric, without its options.

    `compute` of a subclass calls `sync_context` to combine the states of all processes.
    """

    dist_sync_fn: None = None
    _is_synced: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._device = torch.empty(0).device
        self._defaults: dict[str, torch.Tensor] = {}
        self._reductions: dict[str, _Reduction] = {}
        self._persistent = False
        self._to_sync = True  # False while `forward` computes the value of one batch
        self._update_count = 0
        self._computed: None = None  # nothing is cached

    @property
    def device(self) -> torch.device:
        """The device of the metric, which is that of the rows."""
        return self._device

    @property
    def metric_state(self) -> dict[str, torch.Tensor]:
        """The tensors of the state by name."""
        return {name: getattr(self, name) for name in self._defaults}

    def add_state(self, name: str, default: torch.Tensor, dist_reduce_fx: str) -> None:
        """Add a tensor to the state; `reset` sets it to `default`."""
        self._defaults[name] = default
        self._reductions[name] = _REDUCTIONS[dist_reduce_fx]
        setattr(self, name, default.clone())

    def reset(self) -> None:
        """Remove all rows."""
        self._update_count = 0
        for name, default in self._defaults.items():
            setattr(self, name, default.clone())

    def clone(self) -> Self:
        """Return a copy with its own state."""
        return copy.deepcopy(self)

    def _plot(self, *_: object) -> None:
        raise ImportError("ATBMetric.plot needs torchmetrics and matplotlib: pip install torchmetrics matplotlib.")

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Add the rows of a batch, and return the value of this batch alone."""
        before = self.metric_state
        self.reset()
        self._to_sync = False
        self.update(*args, **kwargs)
        value: torch.Tensor = self.compute()
        self._to_sync = True
        self._reduce_states(before)
        return value

    def _reduce_states(self, incoming_state: dict[str, torch.Tensor]) -> None:
        for name, reduction in self._reductions.items():
            setattr(self, name, reduction.of_two(incoming_state[name], getattr(self, name)))

    @contextlib.contextmanager
    def sync_context(self, *, should_sync: bool = True, **_: object) -> Iterator[None]:
        """Inside the context, the state is that of all processes combined; afterwards it is restored."""
        before = self.metric_state
        if should_sync and dist.is_available() and dist.is_initialized():
            for name, reduction in self._reductions.items():
                state = before[name].clone()
                dist.all_reduce(state, op=getattr(dist.ReduceOp, reduction.op_name))
                setattr(self, name, state)
        try:
            yield
        finally:
            for name, state in before.items():
                setattr(self, name, state)

    def persistent(self, mode: bool = False) -> None:
        """Say whether `state_dict` contains the state."""
        self._persistent = mode

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._persistent:
            destination.update({f"{prefix}{name}": state.clone() for name, state in self.metric_state.items()})

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], exclude_state: object = ()) -> "PlainMetric":
        """Change the device of the metric like that of a model; the subclass moves the state."""
        super()._apply(fn)
        self._device = fn(torch.zeros(1, device=self._device)).device
        return self
