"""Files of rows with many classes: the same rows from every format, and one clear error for each invalid row."""

import dataclasses
import json

import numpy as np
import pytest

import truthcal as tc
from truthcal.io.files import class_rows
from truthcal.io.files.class_labels import LabelMatcher
from truthcal.io.files.class_rows import ClassColumns, load_classes
from truthcal.io.files.find_files import find_sources

pa = pytest.importorskip("pyarrow", reason="files are read by pyarrow")

LABELS = ("cat", "dog", "owl")
COLUMNS = ClassColumns("kind", LABELS, {"p": ("p_cat", "p_dog", "p_owl")})
ROWS = {
    "kind": ["cat", "dog", "owl", "dog"],
    "p_cat": [0.7, 0.1, 0.2, 0.5],
    "p_dog": [0.2, 0.8, 0.3, 0.5],
    "p_owl": [0.1, 0.1, 0.5, 0.0],
    "w": [1.0, 2.0, 0.0, 1.0],
    "g": ["a", "a", "b", "b"],
}


def write(folder, rows=ROWS, name="rows.csv"):
    path = folder / name
    if name.endswith(".parquet"):
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.table(rows), path)
        return find_sources([str(path)])
    lines = zip(*rows.values(), strict=True)
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(dict(zip(rows, line, strict=True))) + "\n" for line in lines))
    else:
        path.write_text("\n".join([",".join(rows), *(",".join(map(str, line)) for line in lines)]) + "\n")
    return find_sources([str(path)])


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_rows_of_every_format_are_the_same(tmp_path, name):
    columns = ClassColumns("kind", LABELS, COLUMNS.models, "w", "g")
    (loaded,) = load_classes(write(tmp_path, name=name), columns)[0].values()
    assert loaded.y.tolist() == ROWS["kind"]
    np.testing.assert_array_equal(loaded.p, np.column_stack([ROWS[x] for x in ("p_cat", "p_dog", "p_owl")]))
    assert loaded.w.tolist() == ROWS["w"]
    assert loaded.groups[0] == loaded.groups[1] != loaded.groups[2] == loaded.groups[3]
    assert (loaded.n, loaded.labels, loaded.exact) == (4, LABELS, True)


@pytest.mark.parametrize(
    ("name", "numbers"), [("rows.csv", [3, 7, 3, 1]), ("rows.parquet", [3.0, 7.0, 3.0, 1.0]), ("x.jsonl", [3, 7, 3, 1])]
)
def test_numbers_are_labels_too(tmp_path, name, numbers):
    columns = ClassColumns("kind", ("1", "3", "7"), COLUMNS.models)
    (loaded,) = load_classes(write(tmp_path, ROWS | {"kind": numbers}, name), columns)[0].values()
    assert loaded.y.tolist() == ["3", "7", "3", "1"]


def test_labels_are_compared_as_text():
    values = [7, "7", 7.0, "7.0", "007", 3, 3.0, "3", "x", "X", "7.5"]
    code = LabelMatcher(["7", "007", "3.0", "x"]).exact_code
    assert list(map(code, values)) == [0, 0, 0, 0, 1, 2, 2, 2, 3, -1, -1]


def test_labels_that_differ_in_case_or_spaces_are_matched_if_that_is_unambiguous():
    matcher = LabelMatcher(["new_york", "Bonn", "US", "us", "3"])
    assert [matcher.code(value) for value in ["New York", "bonn", "Us", "us", "3.0"]] == [0, 1, -1, 3, 4]
    assert matcher.notes("city") == [
        "Labels in 'city' and names of columns differ in case or spaces; they were matched: 'New York' with 'new_york', "
        "'bonn' with 'Bonn'."
    ]
    assert matcher.code("BONN") == -1
    assert matcher.conflict("BONN") == (
        "but the class 'Bonn' also has the label 'bonn': they differ in case or spaces. Make them the same."
    )
    assert matcher.conflict("Us") == ""


def test_a_long_list_of_matches_is_shortened():
    matcher = LabelMatcher(list("abcdef"))
    assert [matcher.code(value) for value in "ABCDEF"] == list(range(6))
    assert matcher.notes("x")[0].endswith("'D' with 'd', and 2 more.")


def test_two_models_and_several_files_are_read_in_one_pass(tmp_path):
    rows = ROWS | {"q_cat": ROWS["p_dog"], "q_dog": ROWS["p_cat"], "q_owl": ROWS["p_owl"]}
    sources = write(tmp_path, rows, "a.csv") + write(tmp_path, rows, "b.csv")
    models = {"p": ("p_cat", "p_dog", "p_owl"), "q": ("q_cat", "q_dog", "q_owl")}
    loaded, _ = load_classes(sources, ClassColumns("kind", LABELS, models))
    assert loaded["p"].n == 8
    assert loaded["p"].y is loaded["q"].y
    np.testing.assert_array_equal(loaded["q"].p[4:, 0], ROWS["p_dog"])


def changed(name, row, value):
    return {name: [value if i == row else old for i, old in enumerate(ROWS[name])]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            changed("kind", 2, "emu"),
            r"column 'kind' has the label 'emu' at row 2 \(1 of 4 rows .*only for 'cat', 'dog'",
        ),
        (changed("kind", 1, ""), r"column 'kind' has a missing value at row 1\. Drop these rows\.$"),
        (
            changed("p_cat", 3, 0.4),
            r"p_owl'.* must add up to 1 in each row \(within 0.001\); found 0.9 at row 3 .*Is the",
        ),
        (
            changed("p_cat", 3, 0.49),
            r"found 0.99 at row 3 \(1 of 4 .*Rounded probabilities\? Add --normalize, which divides",
        ),
        (changed("p_dog", 0, 1.2), r"`p_dog` \(y_proba\) must lie in \[0, 1\]; found 1.2 at row 0 of .*rows.csv"),
        (changed("p_dog", 0, ""), r"`p_dog` \(y_proba\).* missing .*at row 0 of .*rows.csv"),
        (changed("p_dog", 0, "x"), r"`p_dog` \(y_proba\) .*text in .*'x' at row 0"),
        ({name: [] for name in ROWS}, r"rows.csv has no rows"),
    ],
)
def test_invalid_rows_are_named(tmp_path, change, message):
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        load_classes(write(tmp_path, ROWS | change), COLUMNS)


def test_more_rows_than_fit_are_refused_with_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(class_rows, "MOST_NUMBERS", 11)
    message = r"has at least 4 rows with 3 classes, 12 numbers; the limit is 11 numbers, .* Pass a random sample"
    with pytest.raises(ValueError, match=message):
        load_classes(write(tmp_path), COLUMNS)
    models = {"p": ("p_cat", "p_dog", "p_owl"), "q": ("p_cat", "p_dog", "p_owl")}
    with pytest.raises(ValueError, match="4 rows with 3 classes and 2 models, 24 numbers"):
        load_classes(write(tmp_path), ClassColumns("kind", LABELS, models))


def test_loaded_rows_are_those_of_the_library(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0, 1.0, 1.0], 300)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    rows = {"kind": [LABELS[k] for k in y], **{f"p_{label}": p[:, k] for k, label in enumerate(LABELS)}}
    (loaded,) = load_classes(write(tmp_path, rows, "rows.parquet"), COLUMNS)[0].values()
    assert str(tc.assess(loaded.y, loaded.p, labels=loaded.labels)) == str(tc.assess(rows["kind"], p))


# --- percentages and rounded rows -------------------------------------------------------------------------------------

ROUNDED = {"p_cat": [0.7, 0.1, 0.2, 0.5], "p_dog": [0.2, 0.8, 0.31, 0.5], "p_owl": [0.09, 0.1, 0.5, 0.0]}


def times(factor, columns):
    return {name: [factor * x for x in values] for name, values in columns.items()}


def load_with(folder, rows, **options):
    models, notes = load_classes(write(folder, ROWS | rows), dataclasses.replace(COLUMNS, **options))
    return models["p"].p, notes


@pytest.mark.parametrize(("percent", "ends"), [(False, "0.99 and 1.01"), (True, "99 and 101")])
def test_rows_are_divided_by_their_sums(tmp_path, percent, ends):
    p, notes = load_with(tmp_path, times(100.0 if percent else 1.0, ROUNDED), percent=percent, normalize=True)
    wanted = [[a / (a + b + c), b / (a + b + c), c / (a + b + c)] for a, b, c in zip(*ROUNDED.values(), strict=True)]
    np.testing.assert_allclose(p, wanted, rtol=1e-15)
    assert notes[-1] == f"Rows add up to between {ends}; each was divided by its sum (--normalize)."
    assert len(notes) == 1 + percent


def test_percentages_are_divided_by_100(tmp_path):
    percentages = {name: [100.0 * x for x in ROWS[name]] for name in ROUNDED}
    p, notes = load_with(tmp_path, percentages, percent=True)
    np.testing.assert_allclose(p, np.column_stack([ROWS[name] for name in ROUNDED]), rtol=1e-15)
    assert notes == ["Probabilities are percentages: they were divided by 100 (--percent)."]
    assert load_with(tmp_path, {}, normalize=True)[1] == [
        "Rows add up to 1; each was divided by its sum (--normalize)."
    ]


EXACT = {name: ROWS[name] for name in ROUNDED}


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (times(100.0, EXACT), {}, r"within 0.001\); found 100 at row 0 \(4 of 4 .* Percentages\? Add --percent\.$"),
        (times(100.0, EXACT), {"normalize": True}, r"within 0.05\); found 100 .* Percentages\? Add --percent\.$"),
        (times(100.0, ROUNDED), {}, r"found 99 at row 0 .*Rounded percentages\? Add --percent --normalize, which"),
        (ROUNDED, {}, r"found 0.99 at row 0 \(2 of 4 .*Rounded probabilities\? Add --normalize, which divides each row"),
        (times(100.0, ROUNDED), {"percent": True}, r"add up to 100 in each row \(within 0.1\); found 99 at .*--normalize"),
        (EXACT, {"percent": True}, r"must add up to 100 .*found 1 at row 0 .* Probabilities already\? Omit --percent\.$"),
        (times(0.9, EXACT), {"normalize": True}, r"1 in each row \(within 0.05\); found 0.9 .*column of a class missing"),
        (times(90.0, EXACT), {"percent": True}, r"100 in each row \(within 0.1\); found 90 .*column of a class missing"),
    ],
)  # fmt: skip
def test_other_sums_are_refused_with_the_option_that_accepts_them(tmp_path, rows, options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        load_with(tmp_path, rows, **options)
