"""ATB of a frame is ATB of its columns."""

import math

import numpy as np
import pyarrow as pa
import pytest

import truthcal as tc


def rows(n, seed, ties=False):
    rng = np.random.default_rng(seed)
    p = np.concatenate([[0.0, -0.0, 1.0, 1.0, 0.5, math.nextafter(0.5, 1.0)], rng.random(n) ** 3])
    p = np.round(p, 2) if ties else p
    return {"p": p, "y": (rng.random(len(p)) < p**0.8).astype(np.int64), "w": rng.integers(0, 4, len(p)) * 0.3}


@pytest.mark.parametrize("ties", [False, True])
def test_against_columns(engine, ties):
    columns = rows(3000, 1, ties)
    frame = engine(pa.table(columns))
    y, p, w = columns["y"], columns["p"], columns["w"]
    assert tc.atb_frame(frame, y_true="y", y_proba="p") == pytest.approx(tc.atb(y, p), rel=1e-12)
    weighted = tc.atb_frame(frame, y_true="y", y_proba="p", sample_weight="w")
    assert weighted == pytest.approx(tc.atb(y, p, sample_weight=w), rel=1e-12)


def test_predictions_in_few_buckets(engine):
    """Where a sketch with 4096 buckets knows little."""
    columns = rows(500, 2)
    columns["p"] = columns["p"] * 1e-5
    exact = tc.atb(columns["y"], columns["p"])
    assert tc.atb_frame(engine(pa.table(columns)), y_true="y", y_proba="p") == pytest.approx(exact, rel=1e-12)


def test_one_row_and_fractions(engine):
    one = pa.table({"p": [0.3], "y": [0.8]})
    assert tc.atb_frame(engine(one), y_true="y", y_proba="p") == pytest.approx(0.25, rel=1e-12)
    labels = pa.table({"p": [0.25, 0.75, 0.75], "y": ["no", "yes", "no"]})
    result = tc.atb_frame(engine(labels), y_true="y", y_proba="p", pos_label="yes")
    assert result == pytest.approx(tc.atb([0, 1, 0], [0.25, 0.75, 0.75]), rel=1e-12)


def test_rows_that_cannot_be_used(engine):
    frame = engine(pa.table({"score": [0.3, math.nan, 74.5], "y": [0.0, 1.0, 0.0]}))
    with pytest.raises(ValueError, match=r"`score` \(y_proba\) has a missing value"):
        tc.atb_frame(frame, y_true="y", y_proba="score")
    frame = engine(pa.table({"score": [0.3, 0.2, 74.5], "y": ["a", "b", "b"]}))
    with pytest.raises(ValueError, match=r"`score` \(y_proba\) must lie in \[0, 1\]; found 74.5 .*Percentages\?"):
        tc.atb_frame(frame, y_true="y", y_proba="score", pos_label="a")
    frame = engine(pa.table({"score": [0.3, 0.2, 0.5], "y": ["a", "b", "c"], "certain": [0.0, 1.0, 1.0]}))
    with pytest.raises(ValueError, match=r"`y` \(y_true\) has more than two different labels"):
        tc.atb_frame(frame, y_true="y", y_proba="score", pos_label="a")
    with pytest.raises(ValueError, match=r"the arguments look swapped"):
        tc.atb_frame(frame, y_true="score", y_proba="certain")
