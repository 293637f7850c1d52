"""The named conventions: the last bit against the packages themselves, and values worked out by hand."""

import contextlib
import io
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples, rows

from truthcal.measures import conventions
from truthcal.measures.conventions import CONVENTIONS, binned_ece_like

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "conventions.md").read_text(encoding="utf-8")
ALL = [(name, norm) for name, rule in CONVENTIONS.items() for norm in rule.norms]
EXACT = [pair for pair in ALL if pair != ("torchmetrics", "l2")]


# --- the packages -----------------------------------------------------------------------------------------------------


def need(module):
    reason = f"{module} is not installed; it takes torch and the dependency group `peers`"
    return pytest.importorskip(module, reason=reason)


def torch_with_avx2():
    torch = need("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("without AVX2 torch rounds the edges otherwise; see docs/reference/conventions.md")
    return torch


def torchmetrics(y, p, norm, **bins):
    classification, torch = need("torchmetrics.functional.classification"), torch_with_avx2()
    return classification.binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), norm=norm, **bins).item()


def netcal(y, p, norm, n_bins=None):
    metric = getattr(need("netcal.metrics"), {"l1": "ECE", "max": "MCE"}[norm])
    return (metric() if n_bins is None else metric(n_bins)).measure(p, y)


def sklearn(y, p, norm, strategy="uniform", **bins):
    """What the docs say that truthcal makes of the curve."""
    observed, predicted = need("sklearn.calibration").calibration_curve(y, p, strategy=strategy, **bins)
    gaps = np.abs(observed - predicted)
    if norm == "max":
        return gaps.max()
    cuts = np.linspace(0, 1, bins.get("n_bins", 5) + 1)
    cuts = (np.percentile(p, cuts * 100) if strategy == "quantile" else cuts)[1:-1]
    counts = np.unique(np.sum(p[:, None] > cuts, axis=1), return_counts=True)[1]
    return np.sum(counts * gaps) / len(p)


def sklearn_quantile(y, p, norm, **bins):
    return sklearn(y, p, norm, strategy="quantile", **bins)


def uncertainty_calibration(y, p, norm, n_bins=15):
    utils = need("calibration.utils")
    if norm == "l1":
        return utils.get_ece(p, y) if n_bins == 15 else utils.get_ece(p, y, num_bins=n_bins)
    return utils.lower_bound_scaling_ce(
        p, y, p=2, debias=False, num_bins=n_bins, binning_scheme=utils.get_equal_prob_bins
    )


def mapie(y, p, norm, n_bins=None):
    error = need("mapie.metrics.calibration").expected_calibration_error
    return error(y, p) if n_bins is None else error(y, p, num_bins=n_bins)


PEERS = {
    "torchmetrics": torchmetrics,
    "netcal": netcal,
    "sklearn": sklearn,
    "sklearn-quantile": sklearn_quantile,
    "uncertainty-calibration": uncertainty_calibration,
    "mapie": mapie,
}


def predictions(rng, n):
    """By kind. Edges of 5, 10 and 15 bins with both neighbours; ends; and sums of very different sizes."""
    edges = rng.integers(0, 16, n) / rng.choice([5, 10, 15])
    return {
        "uniform": rng.random(n),
        "edges": np.minimum(edges, 1.0),
        "next to edges": np.clip(np.nextafter(edges, rng.integers(0, 2, n)), 0.0, 1.0),
        "ends": np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), rng.beta(0.3, 0.3, n)),
    }


def cases(sizes, bins, seed=0):
    """(y, p, n_bins) for each size, number of bins, type and kind of prediction."""
    rng = np.random.default_rng(seed)
    for n, n_bins, dtype in itertools.product(sizes, bins, (np.float32, np.float64)):
        for p in predictions(rng, n).values():
            yield (rng.random(n) < p).astype(np.int64), p.astype(dtype), n_bins


def defined(name, p, n_bins):
    """With one bin MAPIE looks only at predictions of exactly 0."""
    return not (name == "mapie" and n_bins == 1 and (p > 0).all())


def different(name, norm, all_cases):
    """The cases in which truthcal and the package differ."""
    return [
        (ours, theirs, len(p), p.dtype.name, n_bins)
        for y, p, n_bins in all_cases
        if defined(name, p, n_bins)
        and (ours := binned_ece_like(name, y, p, n_bins=n_bins, norm=norm))
        != (theirs := PEERS[name](y, p, norm, n_bins=n_bins))
    ]


@pytest.mark.peers
@pytest.mark.parametrize(("name", "norm"), EXACT)
def test_equals_the_package_to_the_last_bit(name, norm):
    assert not different(name, norm, cases((1, 2, 3, 10, 1000), (1, 2, 5, 10, 15, 50, 100)))


@pytest.mark.peers
@pytest.mark.parametrize(("name", "norm"), EXACT)
def test_equals_the_package_to_the_last_bit_on_many_rows(name, norm):
    assert not different(name, norm, cases((20_000,), (1, 5, 10, 15), seed=1))


@pytest.mark.peers
@pytest.mark.parametrize(("name", "norm"), EXACT)
@examples(60)
@given(data=rows(max_size=12), n_bins=st.integers(1, 40), dtype=st.sampled_from([np.float32, np.float64]))
def test_equals_the_package_on_delicate_numbers(name, norm, data, n_bins, dtype):
    y, p = np.array(data[0]), np.array(data[1]).astype(dtype)
    assert not different(name, norm, [(y, p, n_bins)])


@pytest.mark.peers
@pytest.mark.parametrize(("name", "norm"), EXACT)
def test_default_bins_are_those_of_the_package(name, norm):
    y, p, _ = next(cases((1000,), (None,), seed=2))
    assert binned_ece_like(name, y, p, norm=norm) == PEERS[name](y, p, norm)


@pytest.mark.peers
def test_torchmetrics_l2_is_equal_before_the_root_and_one_unit_after_it():
    """The root is MKL's, which does not always round to nearest."""
    torch = torch_with_avx2()
    for y, p, n_bins in cases((1, 2, 10, 1000, 20_000), (1, 5, 10, 15, 100)):
        theirs = torchmetrics(y, p, "l2", n_bins=n_bins)
        gaps, shares = conventions._torch_gaps(p, y, n_bins)
        square = conventions._torch_sum(gaps * gaps * shares)
        assert torch.sqrt(torch.from_numpy(np.array(square))).item() == theirs
        ours = binned_ece_like("torchmetrics", y, p, n_bins=n_bins, norm="l2")
        assert abs(ours - theirs) <= np.spacing(p.dtype.type(theirs))


@pytest.mark.peers
def test_torchmetrics_class_in_batches_gives_the_same_number():
    metric, torch = need("torchmetrics.classification").BinaryCalibrationError(), torch_with_avx2()
    y, p, _ = next(cases((1000,), (None,), seed=3))
    for part in (slice(0, 300), slice(300, 1000)):
        metric.update(torch.from_numpy(p[part]), torch.from_numpy(y[part]))
    assert metric.compute().item() == binned_ece_like("torchmetrics", y, p)


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_edges_are_torchs(dtype):
    """Also for more bins than the tests above have, where the order of torch's sums has more stages."""
    torch, rng = torch_with_avx2(), np.random.default_rng(4)
    for n in [*range(1, 300), 511, 512, 513, 1000, 4099, 32768]:
        x = (rng.random(n) * rng.random(n) ** 4).astype(dtype)
        assert conventions._torch_sum(x) == torch.sum(torch.from_numpy(x)).item(), n
        edges = torch.linspace(0, 1, n + 1, dtype=getattr(torch, dtype)).numpy()
        assert np.array_equal(conventions._torch_edges(n, np.dtype(dtype)), edges), n


SHOWN = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)


@pytest.mark.peers
@pytest.mark.parametrize(("code", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_docs_print_what_they_show(code, shown):
    for module in re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE):
        need(module)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == shown


def test_docs_table_is_the_table():
    shown = re.findall(r'^\| `"([\w-]+)"` \|[^|]*\|[^|]*\| (\d+) \| ([\w, ]+) \|', DOCS, re.MULTILINE)
    assert shown == [(name, str(rule.n_bins), ", ".join(rule.norms)) for name, rule in CONVENTIONS.items()]


# --- without the packages ---------------------------------------------------------------------------------------------

Y, P = [1, 0, 1, 1, 0], [0.0, 0.25, 0.5, 0.75, 1.0]

BY_HAND = [
    # [0, 1/2): -1 + 1/4; [1/2, 1): -1/2 - 1/4; {1}: 1
    ("torchmetrics", 2, "l1", (0.75 + 0.75 + 1) / 5),
    ("torchmetrics", 2, "l2", math.sqrt((0.75**2 / 2 + 0.75**2 / 2 + 1) / 5)),
    ("torchmetrics", 2, "max", 1.0),
    # [0, 1/2): -1 + 1/4; [1/2, 1]: -1/2 - 1/4 + 1
    ("netcal", 2, "l1", (0.75 + 0.25) / 5),
    ("netcal", 2, "max", 0.75 / 2),
    # [0, 1/2]: -1 + 1/4 - 1/2; (1/2, 1]: -1/4 + 1
    ("sklearn", 2, "l1", (1.25 + 0.75) / 5),
    ("sklearn", 2, "max", 1.25 / 3),
    ("uncertainty-calibration", 2, "l1", (1.25 + 0.75) / 5),
    ("uncertainty-calibration", 2, "l2", math.sqrt((1.25**2 / 3 + 0.75**2 / 2) / 5)),
    # [0, 1/4]: -1 + 1/4; then each alone
    ("sklearn-quantile", 4, "l1", (0.75 + 0.5 + 0.25 + 1) / 5),
    ("sklearn-quantile", 4, "max", 1.0),
    # {0}: -1; (0, 1]: 1/4 - 1/2 - 1/4 + 1
    ("mapie", 2, "l1", (1 + 0.5) / 5),
    # {0} alone, and the rest dropped
    ("mapie", 1, "l1", 1.0),
]


def test_every_convention_is_worked_out_by_hand():
    assert {(name, norm) for name, _, norm, _ in BY_HAND} == set(ALL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "n_bins", "norm", "expected"), BY_HAND)
def test_by_hand(name, n_bins, norm, expected, dtype):
    value = binned_ece_like(name, Y, np.array(P, dtype), n_bins=n_bins, norm=norm)
    assert type(value) is float
    assert value == pytest.approx(expected, rel=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize(("name", "norm"), ALL)
def test_one_row(name, norm):
    assert binned_ece_like(name, [1], [0.25], norm=norm) == pytest.approx(0.75)


def test_conventions_agree_away_from_edges():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.01, 0.99, 500)
    y = rng.random(500) < p
    values = [
        binned_ece_like(name, y, p, n_bins=7) for name in CONVENTIONS if name not in ("mapie", "sklearn-quantile")
    ]
    values.append(binned_ece_like("mapie", y, p, n_bins=8))
    assert values == pytest.approx([values[0]] * len(values), rel=1e-12)


def test_netcal_counts_and_averages_float32_between_different_edges():
    assert binned_ece_like("netcal", [0], np.array([0.9], np.float32)) == 0.0
    assert binned_ece_like("netcal", [0], [0.9]) == 0.9


def test_netcal_clips_the_predictions():
    assert binned_ece_like("netcal", [0, 1], [0.0, 1.0]) == np.finfo(np.float64).eps
    assert binned_ece_like("netcal", [0, 1], np.array([0, 1], np.float32)) == np.finfo(np.float32).eps


def test_torchmetrics_stops_counting_in_float32():
    rows = np.zeros(2**24 + 3, np.intp)
    assert conventions._torch_counts(rows, 1, np.dtype(np.float32))[0] == 2**24
    assert conventions._torch_counts(rows, 1, np.dtype(np.float64))[0] == 2**24 + 3


def test_torchmetrics_adds_float32_one_by_one():
    p = np.full(200_000, 0.1, np.float32)
    gap = binned_ece_like("torchmetrics", np.zeros(len(p)), p, n_bins=1)
    assert gap == float(np.cumsum(p)[-1] / np.float32(len(p)))
    assert abs(gap - 0.1) > 1e-5


def test_labels_can_be_named():
    words = ["yes" if outcome else "no" for outcome in Y]
    assert binned_ece_like("sklearn", words, P, pos_label="yes") == binned_ece_like("sklearn", Y, P)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"convention": "keras"},
            ValueError,
            "`convention` must be one of 'torchmetrics', 'netcal', 'sklearn', 'sklearn-quantile', "
            "'uncertainty-calibration', 'mapie'; got 'keras'.",
        ),
        ({"convention": None}, ValueError, "'mapie'; got None."),
        (
            {"norm": "l3"},
            ValueError,
            "`norm` for the convention 'torchmetrics' must be one of 'l1', 'l2', 'max'; got 'l3'.",
        ),
        (
            {"convention": "netcal", "norm": "l2"},
            ValueError,
            "`norm` for the convention 'netcal' must be one of 'l1', 'max'; got 'l2'.",
        ),
        (
            {"convention": "mapie", "norm": "max"},
            ValueError,
            "`norm` for the convention 'mapie' must be 'l1'; got 'max'.",
        ),
        ({"n_bins": 0}, ValueError, "`n_bins` must be between 1 and 65536; got 0."),
        ({"n_bins": 2.0}, TypeError, "`n_bins` must be a whole number; got 2.0."),
        ({"y_proba": [0.1, 1.5]}, ValueError, "`y_proba` must lie in [0, 1]; found 1.5 at row 1"),
        (
            {"y_true": [1.0, 0.25]},
            ValueError,
            "`y_true` must contain 0/1 outcomes for the convention 'torchmetrics'; found 0.25 at row 1 (1 of 2 rows). "
            "For fractional outcomes use a measure of truthcal, such as atb.",
        ),
        (
            {"convention": "mapie", "n_bins": 1},
            ValueError,
            "`n_bins` must be at least 2 for the convention 'mapie' unless a prediction is exactly 0; got 1, for which "
            "mapie returns nan. Pass n_bins=2 to put all rows into one bin.",
        ),
    ],
)
def test_errors_say_what_to_do(change, error, message):
    arguments = {"convention": "torchmetrics", "y_true": [0, 1], "y_proba": [0.1, 0.9]} | change
    with pytest.raises(error, match=re.escape(message)):
        binned_ece_like(**arguments)
