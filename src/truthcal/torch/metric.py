"""ATB as a metric of torchmetrics, or without it: the sums of a sketch as tensors."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch

from truthcal.core import checks
from truthcal.core.grid import MAX_BUCKETS, Grid
from truthcal.core.params import check_flag, check_power_of_two
from truthcal.core.sketch import Sketch
from truthcal.inference.assess import assess
from truthcal.kernels.buckets import N_SUMS, N
from truthcal.results.assessment import Assessment
from truthcal.torch import rows

try:
    from torchmetrics import Metric
except ImportError:
    from truthcal.torch.plain_metric import PlainMetric as Metric

# Probabilities that are passed as logits become predictions between 0.5 and the sigmoid of 1.
_ENOUGH_ROWS, _SIGMOID_OF_ONE = 100, 1.0 / (1.0 + math.exp(-1.0))
_INCONSISTENT = (
    "the state of the metric is inconsistent: no rows can have these sums. Were its tensors rounded or edited? "
    "Call reset(), and update the metric with all rows again."
)
_PROBABILITIES = "all logits lie between 0 and 1: are they probabilities? Then build the metric with logits=False."


class SketchMetric(torch.nn.Module):
    """The methods of `ATBMetric`, for torchmetrics.Metric or `PlainMetric` as the other base class."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    sums: torch.Tensor  # (N_SUMS, n_buckets)
    low: torch.Tensor  # smallest prediction of each bucket
    high: torch.Tensor  # largest prediction
    top: torch.Tensor  # largest weight
    from_logits: torch.Tensor  # 1 or 0, never changed: a MetricCollection shares the state of metrics with equal states

    def __init__(self, *positional: Any, logits: bool | None = None, n_buckets: int = 4096, **kwargs: Any) -> None:
        if positional:
            cure = "write ATBMetric(logits=True) for log-odds, ATBMetric(logits=False) for probabilities."
            raise checks.invalid("logits", f"must be given by name: {cure}", TypeError)
        if logits is None:
            rule = "must be given: True if predictions are logits (log-odds), False if they are probabilities."
            raise checks.invalid("logits", rule, TypeError)
        logits, n_buckets = check_flag(logits, "logits"), check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
        super().__init__(**kwargs)
        self.logits, self.n_buckets = logits, n_buckets
        like: dict[str, Any] = {"dtype": torch.float64, "device": self._sums_device}
        self._edges = torch.as_tensor(Grid.of_size(n_buckets).edges[1:-1], **like)
        self.add_state("sums", torch.zeros(N_SUMS, n_buckets, **like), dist_reduce_fx="sum")
        self.add_state("low", torch.full((n_buckets,), math.inf, **like), dist_reduce_fx="min")
        self.add_state("high", torch.full((n_buckets,), -math.inf, **like), dist_reduce_fx="max")
        self.add_state("top", torch.zeros(n_buckets, **like), dist_reduce_fx="max")
        self.add_state("from_logits", torch.tensor(float(logits), **like), dist_reduce_fx="max")

    def extra_repr(self) -> str:
        """Return the parameters, for `repr`."""
        return f"logits={self.logits}, n_buckets={self.n_buckets}"

    @property
    def _sums_device(self) -> torch.device:
        """The device of the sums: that of the rows, unless it has no float64."""
        return torch.device("cpu") if self.device.type == "mps" else self.device

    # --- rows --------------------------------------------------------------------------------------------------------

    def update(self, preds: torch.Tensor, target: torch.Tensor, sample_weight: torch.Tensor | None = None) -> None:
        """Add a batch of rows. If a row is invalid, the metric is unchanged.

        Parameters
        ----------
        preds : Tensor
            Logits if ``logits=True``, else probabilities: floats of shape (N,) or (N, 1), on the metric's device. N may
            be 0.
        target : Tensor
            Outcomes: 0/1 or True/False.
        sample_weight : Tensor, optional
            Weights, zero or between 1e-70 and 1e70. Rows of weight 0 are ignored, so it may be a mask; but their
            values must be valid. For padding such as -100 or nan, pass ``torch.where(mask, preds, 0)``,
            ``torch.where(mask, target, 0)`` and ``mask``.
        """
        p, y, w = self._check_rows(preds, target, sample_weight)
        bucket = torch.bucketize(p, self._edges, right=True)  # each bucket has its left edge
        self.sums = self.sums.index_add(1, bucket, _terms(p, y, w))
        counted = w > 0
        low, high = p.where(counted, math.inf), p.where(counted, -math.inf)
        self.low = self.low.scatter_reduce(0, bucket, low, "amin")
        self.high = self.high.scatter_reduce(0, bucket, high, "amax")
        self.top = self.top.scatter_reduce(0, bucket, w, "amax")

    def _check_rows(self, preds: object, target: object, sample_weight: object) -> tuple[torch.Tensor, ...]:
        """Return predictions, outcomes and weights as float64, or raise."""
        columns = {"preds": rows.as_vector(preds, "preds"), "target": rows.as_vector(target, "target")}
        if sample_weight is not None:
            columns["sample_weight"] = rows.as_vector(sample_weight, "sample_weight")
        rows.refuse_integers(columns["preds"], "preds", "target")
        rows.refuse_other_device(columns["preds"], "preds", self.device, "the metric")
        for name in list(columns)[1:]:
            rows.refuse_unlike(columns["preds"], "preds", columns[name], name)
        x, y, *weights = (rows.to_double(column, self._sums_device) for column in columns.values())
        p = torch.sigmoid(x) if self.logits else x
        w = weights[0] if weights else torch.ones_like(p)
        possible = (w == 0) | ((w >= checks.SMALLEST_WEIGHT) & (w <= checks.LARGEST_WEIGHT))
        if not bool(rows.inside_unit(p) & rows.is_binary(y).all() & possible.all()):
            rows.refuse_padding(p, y, w)
            rows.refuse_predictions(p, "preds", "Logits? Build the metric with ATBMetric(logits=True).")
            if bool(rows.is_binary(x).all() & rows.inside_unit(y)):
                swapped = "the arguments look swapped: predictions come first, update(preds, target)."
                raise checks.invalid("target", f"has fractions, and `preds` only 0 and 1; {swapped}")
            rows.refuse_outcomes(y, "target")
            rows.refuse_weights(w)
        return p, y, w

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Add a batch of rows like `update`, and return ATB of this batch alone.

        Its mean over batches is larger than ATB of all rows, which `compute` returns: small batches have more noise.
        """
        before = self.__dict__.copy()
        try:
            value: torch.Tensor = super().forward(*args, **kwargs)
        except BaseException:
            self.__dict__.update(before)  # torchmetrics removes all rows before it adds the batch
            raise
        return value

    def merge_state(self, incoming_state: "SketchMetric | dict[str, torch.Tensor]") -> None:
        """Add all rows of another metric with the same `n_buckets`, or of its `metric_state`."""
        state = incoming_state.metric_state if isinstance(incoming_state, SketchMetric) else incoming_state
        if not isinstance(state, dict):
            problem = f"must be an ATBMetric or its metric_state; got {type(state).__name__}."
            raise checks.invalid("incoming_state", problem, TypeError)
        self._reduce_states(self._fitting(state, "incoming_state"))
        self._computed = None  # torchmetrics would return the value without the new rows
        self._update_count += 1

    def _fitting(self, state: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
        """Return a state with this metric's device and `from_logits`; raise if its tensors have other shapes or types.

        States from logits and from probabilities fit together: both have sums of probabilities.
        """
        expected = {key: tuple(default.shape) for key, default in self._defaults.items() if key != "from_logits"}
        shapes = {key: tuple(state[key].shape) for key in expected if key in state}
        if shapes != expected:
            problem = f"is not the state of an ATBMetric with n_buckets={self.n_buckets}: expected {expected}"
            raise checks.invalid(name, f"{problem}, got {shapes}.")
        for key in expected:
            if state[key].dtype != torch.float64:
                cure = "Save it without a conversion, or leave it out and update the metric with all rows again."
                problem = f"must have sums in float64; `{key}` is {state[key].dtype}, which has lost digits"
                raise checks.invalid(name, f"{problem}. {cure}", TypeError)
        fitting = {key: state[key].detach().to(self._sums_device) for key in expected}
        return fitting | {"from_logits": self.from_logits}

    # --- results -----------------------------------------------------------------------------------------------------

    def compute(self) -> torch.Tensor:
        """ATB of all rows, of all processes. nan if there are none.

        Returns
        -------
        Tensor
            A scalar on the device of the metric: float64, or float32 on mps. It lies between certified bounds, which
            ``sketch().atb()`` shows.
        """
        sketch = self.sketch()
        value = sketch.atb().value if sketch.n else math.nan
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        return torch.tensor(value, dtype=dtype, device=self.device)

    def sketch(self) -> Sketch:
        """Return all rows as a `Sketch`, for everything else that truthcal can say about them.

        In a distributed run, it has the rows of all processes, and all of them must call it.
        """
        with self._synced():
            columns = torch.cat([self.sums, self.low[None], self.high[None], self.top[None]]).cpu().numpy()
        filled = columns[N].nonzero()[0]
        grid = Grid.of_size(self.n_buckets)
        return Sketch._from_columns(grid, filled, columns[:, filled], _INCONSISTENT)

    def assess(self, **kwargs: Any) -> Assessment:
        """Can these probabilities be trusted? The same as ``truthcal.assess(metric.sketch(), **kwargs)``."""
        sketch = self.sketch()
        if not sketch.n:
            raise ValueError("the metric has no rows yet: call update(preds, target) before assess().")
        assessment = cast(Assessment, assess(sketch, **kwargs))  # of one event, not of many classes
        if self.logits and _may_be_probabilities(sketch):
            return replace(assessment, warnings=(*assessment.warnings, _PROBABILITIES))
        return assessment

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot a value, or several over time, like other metrics of torchmetrics; this needs matplotlib.

        Parameters
        ----------
        val : Tensor or sequence of Tensor, optional
            Values of `compute` or `forward`. By default, the value of `compute`.
        ax : matplotlib Axes, optional
            By default, those of a new figure.

        Returns
        -------
        figure, axes
            The figure is None if `ax` is given.
        """
        return self._plot(val, ax)

    def _synced(self) -> contextlib.AbstractContextManager[None]:
        """Synchronise the state across processes, unless it already is or `forward` computes the value of a batch."""
        synced = self._is_synced
        context: contextlib.AbstractContextManager[None] = self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync and not synced, should_unsync=not synced
        )
        return context

    # --- devices and files -------------------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], exclude_state: object = ()) -> "SketchMetric":
        """Move the state to another device with the model; it stays float64, whatever the type of the model.

        ``model.to(torch.bfloat16)`` would otherwise convert them, and bfloat16 cannot count to 300.
        """
        self._computed = self._forward_cache = None
        super()._apply(fn, exclude_state=tuple(self._defaults))
        for name, default in self._defaults.items():
            self._defaults[name] = default.to(self._sums_device)
            setattr(self, name, getattr(self, name).to(self._sums_device))
        self._edges = self._edges.to(self._sums_device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Load the state, if it was saved (`persistent`)."""
        saved = {name: state_dict.pop(prefix + name) for name in self._defaults if prefix + name in state_dict}
        super()._load_from_state_dict(state_dict, prefix, *args)
        if saved:
            for name, state in self._fitting(saved, "state_dict").items():
                setattr(self, name, state)
            self._computed = None
            self._update_count += 1


class ATBMetric(SketchMetric, Metric):
    """ATB of probabilities or logits that arrive in batches: a metric of fixed memory, for torchmetrics or alone.

    The state consists of sums in buckets of predictions, those of `truthcal.Sketch`. It is added up on the device of
    the rows, and over the processes of a distributed run.

    Parameters
    ----------
    logits : bool
        Required: whether predictions are logits (log-odds) or probabilities. It is never guessed: a batch of logits may
        happen to lie in [0, 1].
    n_buckets : int, default 4096
        As for `truthcal.Sketch`.
    **kwargs
        Options of torchmetrics.Metric, such as `process_group` and `dist_sync_on_step`, if torchmetrics is installed.

    Notes
    -----
    If torchmetrics is installed, it inherits from torchmetrics.Metric, and works in `MetricCollection` and in
    Lightning's ``self.log``. Otherwise it is a torch.nn.Module (`to`, `state_dict`, `load_state_dict`) with `update`,
    `compute`, `forward`, `reset`, `merge_state`, `metric_state`, `clone`, `persistent`, `sketch` and `assess`;
    everything else of torchmetrics.Metric, such as `plot` and its options, needs torchmetrics.

    Memory: 264 bytes per bucket, 1.1 MB by default, for any number of rows: 128 are the state, which processes
    exchange, 128 the empty state for `reset`, and 8 the edge. An update takes one synchronisation with the device, to
    reject invalid rows at once. The sums are float64, also for bfloat16 and half precision. mps has no float64, so
    there the rows are copied to the CPU.

    Rows are taken as independent in `assess`. If they belong together (patients, matches), collect the predictions and
    call ``truthcal.assess(y, p, groups=...)``, or add batches to a `truthcal.Sketch` with ``update(y, p, groups=...)``.

    ATB alone must not choose a model or an epoch: a constant prediction can have a small ATB. Choose by a proper score,
    such as the log loss, and use ATB to see whether the probabilities can be trusted.

    Examples
    --------
    >>> import torch
    >>> from truthcal.torch import ATBMetric
    >>> metric = ATBMetric(logits=False)
    >>> metric.update(torch.tensor([0.1, 0.8]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.7]), torch.tensor([1]))
    >>> print(f"{metric.compute():.5f}")
    0.02356
    >>> print(metric.sketch().atb())
    0.0235556, certain to 3e-14
    """


def _may_be_probabilities(sketch: Sketch) -> bool:
    """Check whether all logits of a sketch of at least 100 rows lie in [0, 1]."""
    points = sketch.points()
    inside = points.low.min() >= 0.5 and points.high.max() <= _SIGMOID_OF_ONE + 1e-12
    return sketch.n >= _ENOUGH_ROWS and bool(inside)


def _terms(p: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Contribution of each row to the sums of its bucket, in the order of `cell_codec.SUMS`."""
    c = p - y
    wc, ww = w * c, w * w
    counts = (w > 0).to(p.dtype)
    pos, neg = wc.clamp(min=0.0), (-wc).clamp(min=0.0)
    variance = ww * p * (1.0 - p)
    return torch.stack([counts, w, ww, w * p, pos, neg, wc * p, wc * c, wc * wc, variance, w * wc, w * ww, ww * ww])
