"""All pairs of several models: each is that of `compare`, and p-values are adjusted for the number of pairs."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

import truthcal as tc


def forecasters(n=800, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    outcome = (rng.random(n) < truth).astype(int)
    return outcome, {"honest": truth, "timid": 0.25 + truth / 2, "constant": np.full(n, outcome.mean())}


def holm_by_definition(pvalues):
    """The smallest level at which Holm's procedure, step by step, rejects each hypothesis."""
    adjusted, largest = {}, 0.0
    for step, k in enumerate(sorted(range(len(pvalues)), key=lambda k: pvalues[k])):
        largest = max(largest, min((len(pvalues) - step) * pvalues[k], 1.0))
        adjusted[k] = largest
    return [adjusted[k] for k in range(len(pvalues))]


@pytest.mark.parametrize("options", [{}, {"groups": np.arange(800) // 4}, {"sample_weight": np.arange(800) % 3 + 1.0}])
def test_each_pair_is_that_of_compare(options):
    y, proba = forecasters()
    found = tc.compare_models(y, proba, **options)
    pairs = [("honest", "timid"), ("honest", "constant"), ("timid", "constant")]
    assert [comparison.names for comparison in found.comparisons] == pairs
    for (a, b), comparison in zip(pairs, found.comparisons, strict=True):
        assert comparison == dataclasses.replace(tc.compare(y, proba[a], proba[b], **options), names=(a, b))
    assert found.adjusted == pytest.approx(holm_by_definition([each.pvalue for each in found.comparisons]))
    assert found.brier_adjusted == pytest.approx(holm_by_definition([each.brier_pvalue for each in found.comparisons]))
    assert found.names == ("honest", "timid", "constant")
    assert len(found) == 3


def test_each_pair_of_classes_is_that_of_compare():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 300)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    proba = {"a": p, "b": p[:, ::-1], "c": (p + 0.25) / 2}
    found = tc.compare_models(y, proba)
    for comparison in found.comparisons:
        a, b = comparison.names
        assert comparison == dataclasses.replace(tc.compare(y, proba[a], proba[b]), names=(a, b))


def test_findings_need_the_adjusted_p_value():
    """Two of three pairs have p = 0.03: alone they would be findings, together they are none."""
    y, proba = forecasters()
    (pair,) = tc.compare_models(y, {name: proba[name] for name in ("honest", "timid")}).comparisons
    changed = [
        dataclasses.replace(pair, names=names, pvalue=p, brier_pvalue=p)
        for names, p in ((("a", "b"), 0.001), (("a", "c"), 0.03), (("b", "c"), 0.03))
    ]
    adjusted = tuple(holm_by_definition([each.pvalue for each in changed]))
    table = tc.ComparisonTable(tuple(changed), adjusted, adjusted)
    words = [finding.words("ATB") for finding in table.findings()]
    assert words == ["a (both)", "not significant", "not significant"]


def test_verdict_names_the_best_by_both_scores():
    y, proba = forecasters()
    found = tc.compare_models(y, proba)
    best = min(proba, key=lambda name: np.mean((proba[name] - y) ** 2))
    assert found.verdict.splitlines() == [
        f"{best} has the best Brier score (3 models, 800 rows).",
        "constant has the lowest ATB, but not significantly lower than honest.",
    ]
    assert "honest (both)" in str(found)
    assert str(found).count("adjusted for the number of pairs") == 1
    same = tc.compare_models(y, {name: proba["honest"] for name in ("a", "b", "c")})
    assert "No significant difference in Brier score between any two models" in same.verdict
    two = tc.compare_models(y, {name: proba[name] for name in ("honest", "timid")})
    assert two.verdict == two.comparisons[0].verdict
    assert "adjusted" not in " ".join(two.notes())


def test_many_rivals_of_the_best_are_counted():
    rng = np.random.default_rng(4)
    truth = rng.random(300)
    proba = {f"m{k}": np.clip(truth + rng.normal(0, 0.001, 300), 0, 1) for k in range(6)} | {"bad": 1 - truth}
    found = tc.compare_models(rng.random(300) < truth, proba)
    assert "Brier score, but not significantly lower than 5 others" in found.verdict


def test_table_has_a_row_for_each_pair():
    y, proba = forecasters()
    found = tc.compare_models(y, proba)
    columns = found.table()
    assert {len(column) for column in columns.values()} == {3}
    assert columns["model_a"] == ["honest", "honest", "timid"]
    assert columns["brier_better"] == ["honest", "honest", "timid"]
    assert columns["adjusted"] == list(found.adjusted)
    assert all(math.isfinite(value) for value in columns["low"])
    assert found.to_dict()["verdict"] == found.verdict


def test_warnings_are_said_once():
    y, proba = forecasters(400)
    order = np.argsort(y)  # neighbouring rows have the same outcome
    found = tc.compare_models(y[order], {name: p[order] for name, p in proba.items()})
    assert len(found.warnings()) == 1
    assert str(found).count("! ") == 1


@pytest.mark.parametrize(
    ("y", "proba", "error", "message"),
    [
        ([0, 1], [0.2, 0.7], TypeError, r"`y_proba` must be a mapping of names to the predictions of two or more models"),
        ([0, 1], {"a": [0.2, 0.7]}, TypeError, r"`y_proba` must be a mapping of names to the predictions of two or more"),
        ([0, 1], {"a": [0.2, 0.7], 3: [0.2, 0.7]}, TypeError, r"`y_proba` must have names that are str; got 3\. Use str"),
        ([0, 1], {"a": [0.2, 0.7], "b": [0.2, 7]}, ValueError, r"`y_proba\['b'\]` must lie in \[0, 1\]; found 7"),
        ([0, 1], {"a": [0.2, 0.7], "b": [0.2]}, ValueError, r"`y_proba\['b'\]`"),
        ([0, 1, 2], {"a": np.full((3, 3), 1 / 3), "b": [0.2, 0.3, 0.4]}, ValueError, r"`y_proba\['b'\]`|`y_true`"),
    ],
)  # fmt: skip
def test_wrong_arguments_get_clear_errors(y, proba, error, message):
    with pytest.raises(error, match=message):
        tc.compare_models(y, proba)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_are_models(library):
    y, proba = forecasters(300)
    expected = tc.compare_models(y, proba)
    frame = pytest.importorskip(library).DataFrame({"won": y, **proba})
    assert tc.compare_models(frame, "won", list(proba)) == expected
    assert tc.compare_models(frame["won"], frame[list(proba)]) == expected


def test_frames_that_are_not_several_models():
    y, proba = forecasters(300)
    frame = pd.DataFrame({"won": y, **proba})
    with pytest.raises(TypeError, match=r"predictions of two or more models, .*; got one column, 'timid'\."):
        tc.compare_models(frame, "won", ["timid"])
    for repeated in ((frame, "won", ["timid", "timid"]), (y, frame[["timid", "timid"]])):
        with pytest.raises(
            ValueError, match="`y_proba` has more than one column 'timid'; each model needs its own name"
        ):
            tc.compare_models(*repeated)


def test_compare_names_the_function_for_more_than_two():
    y, proba = forecasters(300)
    match = r"compare\(\) takes at most 3 positional arguments .*, but 4 were given\. .* use compare_models\(y_true, {"
    with pytest.raises(TypeError, match=match):
        tc.compare(pd.DataFrame({"won": y, **proba}), "won", *proba)
    with pytest.raises(TypeError, match=match):
        tc.compare(y, *proba.values())
