"""`truthcal warmup`: compile everything now, for example while a container is built, instead of at first use."""

import importlib.util
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import truthcal as tc
from truthcal.cli.output import print_message, print_result
from truthcal.cli.request import Request
from truthcal.core.parallel import WORTH_A_THREAD
from truthcal.core.progress import progress
from truthcal.io.files.class_rows import ClassColumns, load_classes
from truthcal.io.files.find_files import find_sources
from truthcal.kernels import jit

_ROWS = 400


def run(request: Request) -> int:
    """Run `truthcal warmup`."""
    start = time.monotonic()
    print_message(request, "compiling; this takes about two minutes, or a few seconds if it was done before.")
    with jit.compile_at_once():
        steps = _warmup_steps()
        for i in progress(len(steps), "compiling"):
            steps[i]()
    kernels = jit.kernels()
    folder = next((kernel.cache_folder for kernel in kernels if kernel.cache_folder), None)
    where = f"and cached in {folder}" if folder else "but not cached: no folder is writable. Set NUMBA_CACHE_DIR"
    print_result(f"{len(kernels)} functions are compiled {where} ({time.monotonic() - start:.0f} s)")
    return 0


def _warmup_steps() -> list[Callable[[], Any]]:
    """Calls of public functions that together use every kernel, with the types of rows that users have."""
    rng = np.random.default_rng(0)
    p, w = rng.random(_ROWS).round(2), rng.integers(1, 4, _ROWS)
    y, fractions, p32 = (rng.random(_ROWS) < p).astype(np.int64), rng.random(_ROWS), p.astype(np.float32)
    many, ones = rng.random(2 * WORTH_A_THREAD), rng.random(2 * WORTH_A_THREAD) < 0.5  # in two parts
    narrow = 0.5 + 0.01 * many  # approximations divide full buckets
    rows: list[tuple[Any, ...]] = [(y, p), (y, p32), (fractions, p)]
    steps: list[Callable[[], Any]] = [partial(_warmup_sketch, y, p, w)]
    steps += [partial(_warmup_sketch, y.astype(kind), x) for kind in (int, float, bool) for x in (p, p32)]
    for measure in tc.MEASURES.values():
        steps += [partial(measure.function, *columns) for columns in rows]
        steps.append(partial(measure.function, y, p, sample_weight=w))
    for approximate in (tc.atb_approx, tc.atb_l1_approx):
        steps.append(partial(approximate, ones, narrow, tolerance=1e-6))
        steps.append(partial(approximate, ones, narrow, tolerance=1e-6, sample_weight=many + 0.5))
    return [
        *steps,
        *_warmup_many(ones, many),
        partial(tc.assess, y, p),
        partial(tc.assess, y, p, sample_weight=w),
        partial(tc.smcal_witness, y, p),
        partial(tc.compare, y, p, p[::-1].copy()),
        partial(tc.scale_profile, y, p, rng=0),
        partial(tc.consistency_band, p, rng=0),
        partial(tc.reliability_curve, y, p, strategy="uniform"),
        partial(tc.spiegelhalter_test, y, p),
        partial(tc.calibration_test, y, p, measure="ks_ce"),
        partial(tc.calibration_slope_intercept, y, 0.1 + 0.8 * p),
        partial(tc.ubse, y, p, lambda p: (p * 10).astype(int)),
        partial(tc.audit, p[:50], rng=0),
        *_warmup_files(y, p, w),
    ]


def _warmup_many(y: Any, p: Any) -> list[Callable[[], Any]]:
    """Calls that warm up the sorting and counting of many rows."""
    steps: list[Callable[[], Any]] = []
    for column in (p, p.astype(np.float32)):
        tied = column.round(2)
        steps += [partial(tc.atb, y, column), partial(tc.atb, y, tied), partial(tc.ks_ce, y, tied)]
    steps += [partial(measure, y, p) for measure in (tc.smece, tc.subsampled_smcal)]
    steps.append(partial(tc.atb, y, p, sample_weight=p + 0.5))
    steps += [partial(_warmup_groups, y, column) for column in (p, p.astype(np.float32))]
    steps += [_warmup_classes]
    return [*steps, partial(tc.reliability_curve, y, p, strategy="quantile")]


def _warmup_classes() -> None:
    """All functions of predictions with many classes."""
    y, p = np.arange(60) % 3, np.random.default_rng(0).dirichlet(np.ones(3), 60)
    tc.calibration_test(y, p, method="exact", n_resamples=9)
    tc.compare(y, p, p)
    for definition in ("vector", "canonical"):
        tc.multiclass_atb(y, p, definition=definition)
    tc.MulticlassSketch(range(3)).update(y, p).atb()


def _warmup_groups(y: Any, p: Any) -> None:
    """Sketches of few and of many groups."""
    few, many = (tc.Sketch().update(y[:rows], p[:rows], groups=np.arange(rows)) for rows in (_ROWS, len(y)))
    tc.calibration_test(few + few)
    tc.calibration_test(many + few)


def _warmup_sketch(y: Any, p: Any, w: Any = None) -> None:
    sketch = tc.Sketch().update(y, p, w)
    tc.assess(sketch.merge(tc.Sketch().update(y, p, w)))
    sketch.distcal_bracket()


def _warmup_files(y: Any, p: Any, w: Any) -> list[Callable[[], Any]]:
    """Calls that warm up the reading of files; none without pyarrow."""

    def read(columns: dict[str, str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.csv")
            lines = (f"{a},{b},{c},{a},{b / 2}" for a, b, c in zip(y, p, w, strict=True))
            path.write_text("\n".join(["y,p,w,g,half", *lines]) + "\n")
            found: Any = tc.scan(path, **{"y_true": "y", "y_proba": "p", **columns})  # type: ignore[call-overload]
            found.save(path)
            loaded = type(found).load(path)
            loaded.atb()
            if isinstance(found, tc.SketchTable):
                (loaded + found).total().atb()
            if isinstance(found, tc.SketchTable) and "y_true" not in columns:  # not with fractions
                str(tc.assess_segments(found))  # computes intervals

    def read_classes() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "classes.csv")
            path.write_text("y,a,b\na,0.5,0.5\nb,0.5,0.5\n")
            load_classes(find_sources(path), ClassColumns("y", ("a", "b"), {"": ("a", "b")}))

    if importlib.util.find_spec("pyarrow") is None:
        return []
    kinds: tuple[dict[str, str], ...] = ({}, {"sample_weight": "w"}, {"y_true": "half"})
    return [read_classes, *(partial(read, kind | by) for kind in kinds for by in ({}, {"by": "g"}))]
