"""A data frame and names of its columns give the same result as the columns themselves."""

import inspect
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.engines import ENGINES

import truthcal as tc

N = 400
rng = np.random.default_rng(8)
P = rng.uniform(0.05, 0.95, N)
COLUMNS = {
    "y": (rng.random(N) < P).astype(np.int64),
    "p": P,
    "q": np.clip(0.1 + 0.8 * P, 0.0, 1.0),
    "w": rng.integers(1, 4, N).astype(float),
    "patient": rng.integers(0, 60, N),
    "day": rng.integers(0, 5, N),
    "region": np.array(["north", "south", "west"])[rng.integers(0, 3, N)],
    'odd name, "quoted"': P,
    "0": 1.0 - P,
    "1": P,
}
TABLE = pa.table(COLUMNS)
FRAME = TABLE.to_pandas()
ELSEWHERE = ("dask", "ibis", "spark", "spark, not ANSI")
MEASURES = ("atb", "smcal", "ks_ce", "information_atb")
# Function -> names of columns after the frame, and options; the same as columns.
CALLS = {
    "assess": (["y", "p"], {"groups": "patient", "sample_weight": "w"}),
    "assess_segments": (["y", "p", "region"], {"groups": "patient"}),
    "assess_over_time": (["y", "p", "day"], {"window": 1}),
    "calibration_test": (["y", "p"], {"groups": "patient"}),
    "check": (["y", "p"], {"by": "region"}),
    "compare": (["y", "p", "q"], {"sample_weight": "w", "names": ("old", "new")}),
    "compare_models": (["y", {"old": "p", "new": "q"}], {"sample_weight": "w"}),
    "confidence_interval": (["y", "p"], {}),
    "consistency_band": (["p"], {"rng": 0, "n_resamples": 99}),
    "bias_band": (["p"], {"rng": 0, "n_resamples": 99}),
    "detectable_error": (["p"], {}),
    "error_size": (["y", "p"], {"groups": "patient"}),
    "scale_profile": (["y", "p"], {"rng": 0, "n_resamples": 99}),
    "subsampled_estimate": (["y", "p"], {"rng": 0, "n_resamples": 20}),
    "subsampled_smcal": (["y", "p"], {"rng": 0, "n_resamples": 20}),
    "subsampled_step_ce": (["y", "p"], {"rng": 0, "n_resamples": 20}),
    "atb_approx": (["y", "p"], {"tolerance": 1e-3}),
    "atb_l1_approx": (["y", "p"], {"tolerance": 1e-3}),
    "ubse": (["y", "p"], {"binning": tc.ShiftedGrid(0.1)}),
    "multiclass_atb": (["y", ["0", "1"]], {}),
    "all_measures": (["y", "p"], {"names": MEASURES, "sample_weight": "w"}),
}
# Functions whose arguments are no columns of one frame: probabilities of two kinds, or a frame already.
OTHERS = {"acceptance_probability", "power", "audit_on", "bucket_index", "binned_ece_like", "validity_curve"}
OTHERS |= {"atb_frame", "sketch_frame", "sketch_sql", "scan", "report", "required_sample_size"}


def functions_of_columns():
    for name in tc.__all__:
        function = getattr(tc, name)
        if inspect.isfunction(function) and name not in OTHERS:
            first = next(iter(inspect.signature(function).parameters), "")
            if first.startswith("y_"):
                yield name


def columns_of(name):
    if isinstance(name, dict):
        return {model: COLUMNS[column] for model, column in name.items()}
    if isinstance(name, list):
        return np.column_stack([COLUMNS[one] for one in name])
    return {"y": COLUMNS["y"], "region": {"region": COLUMNS["region"]}}.get(name, COLUMNS.get(name))


def as_text(result):
    return str(result.to_dict() if hasattr(result, "to_dict") else result)


@pytest.mark.parametrize("name", list(functions_of_columns()))
def test_every_function_of_columns_takes_a_frame(name):
    names, options = CALLS.get(name, (["y", "p"], {}))
    function = getattr(tc, name)
    roles = ("sample_weight", "groups", "by")
    arrays = {key: columns_of(value) if key in roles else value for key, value in options.items()}
    expected = function(*map(columns_of, names), **arrays)
    assert as_text(function(FRAME, *names, **options)) == as_text(expected)


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=pytest.mark.spark if "spark" in name else ()) for name in ENGINES]
)
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # of ibis
def test_frames_of_every_library(engine, tmp_path):
    frame = ENGINES[engine](TABLE, tmp_path)
    if engine in ELSEWHERE:
        options = "y_true='y', y_proba='p', groups='patient', by='region'"
        with pytest.raises(TypeError, match=re.escape(f"sketch_frame(frame, {options}).")):
            tc.assess(frame, "y", "p", by="region", groups="patient")
        return
    found = tc.assess(frame, "y", "p", by="region", groups="patient", sample_weight="w")
    expected = tc.assess(FRAME, "y", "p", by="region", groups="patient", sample_weight="w")
    assert found.to_dict() == expected.to_dict()
    assert tc.atb(frame, "y", 'odd name, "quoted"') == tc.atb(COLUMNS["y"], P)


@pytest.mark.parametrize("frame", [COLUMNS, FRAME.to_records(index=False)], ids=["mapping", "structured array"])
def test_other_containers_with_names(frame):
    assert tc.atb(frame, "y", "p", sample_weight="w") == tc.atb(COLUMNS["y"], P, sample_weight=COLUMNS["w"])


def test_names_and_columns_may_be_mixed():
    expected = tc.calibration_test(COLUMNS["y"], P, groups=COLUMNS["patient"], rng=0).pvalue
    assert tc.calibration_test(FRAME, "y", "p", groups=COLUMNS["patient"], rng=0).pvalue == expected
    assert tc.calibration_test(FRAME, "y", P, groups="patient", rng=0).pvalue == expected
    assert tc.calibration_test(FRAME, y_true="y", y_proba="p", groups="patient", rng=0).pvalue == expected
    assert tc.atb(FRAME, FRAME.y, FRAME.p) == tc.atb(FRAME, "y", "p")


def test_names_that_are_numbers():
    frame = pd.DataFrame(np.column_stack([COLUMNS["y"], P]))
    assert tc.atb(frame, 0, 1) == tc.atb(COLUMNS["y"], P)


def test_many_classes():
    p = rng.dirichlet(np.ones(3), 300)
    animal = np.array(["cat", "dog", "fox"])[rng.integers(0, 3, 300)]
    frame = pd.DataFrame(p, columns=["p_cat", "p_dog", "p_fox"]).assign(animal=animal)
    expected = tc.assess(animal, p, labels=["cat", "dog", "fox"])
    found = tc.assess(frame, "animal", ["p_cat", "p_dog", "p_fox"])
    assert found.labels == ("cat", "dog", "fox")
    assert found.to_dict() == expected.to_dict()
    mixed = tc.assess(frame, "animal", ["p_fox", "p_cat", "p_dog"])
    assert mixed.labels == ("fox", "cat", "dog")
    assert mixed.atb == pytest.approx(expected.atb, rel=1e-12)
    same = tc.compare(frame, "animal", ["p_cat", "p_dog", "p_fox"], ["p_cat", "p_dog", "p_fox"])
    assert same.difference == 0.0


def test_compared_columns_give_the_models_their_names():
    assert tc.compare(FRAME, "y", "p", "q").names == ("p", "q")
    assert tc.compare(FRAME, "y", y_proba_a="p", y_proba_b="1").names == ("p", "1")
    assert tc.compare(FRAME, "y", "p", "q", names=("old", "new")).names == ("old", "new")
    assert tc.compare(FRAME, "y", "p", "p").names == ("a", "b")
    assert tc.compare(FRAME.y, FRAME.p, FRAME.q).names == ("a", "b")
    with pytest.raises(ValueError, match=r"`names` must be two different names; got \('x', 'x'\)"):
        tc.compare(FRAME, "y", "p", "q", names=("x", "x"))
    with pytest.raises(TypeError, match=r"`names` must be two str, such as \('old', 'new'\); got 'pq'"):
        tc.compare(FRAME, "y", "p", "q", names="pq")


def test_independent_columns():
    p = rng.random((200, 2))
    y = rng.random((200, 2)) < p
    frame = pd.DataFrame({"rain": y[:, 0], "hail": y[:, 1], "p_rain": p[:, 0], "p_hail": p[:, 1]})
    found = tc.assess(frame, ["rain", "hail"], ["p_rain", "p_hail"], multilabel=True)
    assert found.labels == ("p_rain", "p_hail")
    assert found.atb == tc.assess(y, p, multilabel=True).atb


def test_frames_in_place_of_columns_are_still_matrices():
    y, p = pd.DataFrame({"a": [0, 1] * 20, "b": [1, 0] * 20}), pd.DataFrame({"a": [0.4] * 40, "b": [0.6] * 40})
    assert tc.assess(y, p, multilabel=True).labels == ("a", "b")


def test_displays_take_frames():
    figure = pytest.importorskip("matplotlib.figure")
    for display in (tc.plots.ReliabilityDisplay, tc.plots.BiasCurveDisplay, tc.plots.BinnedReliabilityDisplay):
        found = display.from_predictions(FRAME, "y", "p", sample_weight="w", ax=figure.Figure().subplots())
        expected = display.from_predictions(COLUMNS["y"], P, sample_weight=COLUMNS["w"], ax=figure.Figure().subplots())
        assert as_text(found.table()) == as_text(expected.table())
    over_time = tc.plots.OverTimeDisplay.from_predictions(
        FRAME, "y", "p", "day", window=1, ax=figure.Figure().subplots()
    )
    assert len(over_time.frame()) == 5


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (("Y", "p"), {}, ValueError, r"the frame has no column 'Y' \(named by `y_true`\); it has 'y', 'p', .* Did you mean 'y'\?"),
        (("y", "p"), {"groups": "patients"}, ValueError, r"no column 'patients' \(named by `groups`\).* Did you mean 'patient'\?"),
        (("y", "p"), {"groups": ["patient", "day"]}, TypeError, r"`groups` must name one column of the frame; got \['patient', 'day'\]\."),
        (("y", ["p", "zzz"]), {}, ValueError, r"the frame has no column 'zzz' \(named by `y_proba`\)"),
        ((), {}, TypeError, r"`y_true` is a data frame; name the columns after it, as in \(frame, \"y\", \"p\"\)\. It has 'y', 'p'"),
        (("y",), {}, TypeError, r"`y_proba` is missing: pass \(y_true, y_proba\), or the names of both columns after a data frame: \(frame, "),
        (("y", "p", "q"), {}, TypeError, r"assess\(\) takes at most 2 positional arguments \(y_true, y_proba\), but 3 were given\. Pass the others by name, such as alpha="),
        (("y", "p"), {"y_proba": "p"}, TypeError, "multiple values for argument 'y_proba'"),
        (("y", "region"), {}, TypeError, "`y_proba` must contain probabilities; got dtype object"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_names(arguments, options, error, match):
    with pytest.raises(error, match=match):
        tc.assess(FRAME, *arguments, **options)


def test_missing_values_are_refused_as_in_columns():
    frame = FRAME.assign(p=FRAME.p.where(FRAME.index != 7))
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 7 \(1 of 400 rows\)"):
        tc.assess(frame, "y", "p")
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(TABLE).project("y, CASE WHEN p > 0.9 THEN NULL ELSE p END AS p")
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(masked\) at row"):
        tc.assess(relation, "y", "p")


def test_duplicate_names_are_refused():
    frame = pd.DataFrame(np.column_stack([COLUMNS["y"], P, P]), columns=["y", "p", "p"])
    with pytest.raises(ValueError, match="the frame has 2 columns named 'p'; rename all but one"):
        tc.atb(frame, "y", "p")


def test_signature_and_docstring_are_those_of_columns():
    assert list(inspect.signature(tc.atb).parameters) == ["y_true", "y_proba", "sample_weight", "pos_label"]
    assert tc.atb.__name__ == "atb"
    assert tc.atb.__doc__


def test_report_of_a_frame():
    title = "A frame"
    expected = tc.report(
        COLUMNS["y"],
        {"old": P, "new": COLUMNS["q"]},
        sample_weight=COLUMNS["w"],
        title=title,
        provenance={"Outcomes": "y"},
    )
    found = tc.report(FRAME, "y", {"old": "p", "new": "q"}, sample_weight="w", title=title)
    assert len(found.html) == len(expected.html)


@pytest.mark.parametrize("lazy", ["polars", "duckdb"])
def test_lazy_frames_of_models(lazy):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": COLUMNS["p"], "b": COLUMNS["q"]})
    given = frame.lazy() if lazy == "polars" else pytest.importorskip("duckdb").sql("SELECT * FROM frame")
    by_name = {"a": COLUMNS["p"], "b": COLUMNS["q"]}
    assert str(tc.compare_models(COLUMNS["y"], given)) == str(tc.compare_models(COLUMNS["y"], by_name))


class Estimator:
    def predict_proba(self, X):
        return X


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda y, p: tc.assess(y, p, group=y), r"assess\(\) got an unexpected .* 'group'\. Did you mean 'groups'\?"),
        (
            lambda y, p: tc.ece(y, p, bins=3),
            r"ece\(\) got an unexpected keyword argument 'bins'\. Did you mean 'n_bins'",
        ),
        (lambda y, p: tc.assess(y, p, zzz=3), r"unexpected keyword argument 'zzz'\.$"),
        (
            lambda y, p: tc.compare(y, p),
            r"compare\(\) needs a third column, `y_proba_b`\. To compare more than two models",
        ),
        (lambda y, p: tc.compare(y, {"a": p, "b": p}), r"compare\(\) needs a third column.*use compare_models"),
        (lambda y, p: tc.assess(Estimator(), p, y), r"To assess an estimator, use truthcal\.sklearn\.assess_estimator"),
    ],
)
def test_calls_that_do_not_fit(call, match):
    with pytest.raises(TypeError, match=match):
        call(COLUMNS["y"], COLUMNS["p"])


def test_compare_takes_columns_by_keyword():
    by_keyword = tc.compare(COLUMNS["y"], COLUMNS["p"], y_proba_b=COLUMNS["q"])
    assert str(by_keyword) == str(tc.compare(COLUMNS["y"], COLUMNS["p"], COLUMNS["q"]))
