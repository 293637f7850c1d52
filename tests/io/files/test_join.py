"""Two files joined on a key: against a dictionary, and every way in which keys can be wrong."""

import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.join import join_files

ROLES = ColumnRoles.of("y", "p", None, None, None)
A = {"id": [3, 1, 2, 9], "y": [1, 0, 1, 0], "p": [0.3, 0.1, 0.2, 0.9]}
B = {"id": [2, 3, 1, 7, 8], "y": [1, 1, 0, 0, 0], "p": [0.25, 0.35, 0.15, 0.7, 0.8]}


def written(folder, name, columns):
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table(columns), path)
    elif name.endswith(".jsonl"):
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("\n".join(",".join("" if v is None else str(v) for v in line) for line in lines) + "\n")
    return find_sources(path)[0]


def join(folder, a, b, names=("a.csv", "b.csv"), roles_a=ROLES, roles_b=ROLES):
    return join_files(written(folder, names[0], a), written(folder, names[1], b), "id", roles_a, roles_b)


def keyed(key, columns=A):
    return {**columns, "id": [key(i) for i in columns["id"]]}


def text(i):
    return f"case-{i}"


def day(i):
    return datetime.date(2026, 1, i)


def time(i):
    return datetime.datetime(2026, 1, i)


def same(i):
    return i


KEYS = [
    (same, same, ("a.csv", "b.csv")),
    (text, text, ("a.csv", "b.parquet")),
    (same, same, ("a.csv", "b.parquet")),
    (float, same, ("a.parquet", "b.parquet")),
    (lambda i: i * 1e15, lambda i: i * 10**15, ("a.parquet", "b.parquet")),
    (day, day, ("a.csv", "b.parquet")),
    (day, time, ("a.parquet", "b.parquet")),
    (text, text, ("a.jsonl", "b.csv")),
    (same, same, ("a.jsonl", "b.jsonl")),
]


@pytest.mark.parametrize(("key_a", "key_b", "names"), KEYS)
def test_rows_with_the_same_key_are_side_by_side(tmp_path, key_a, key_b, names):
    both = join(tmp_path, keyed(key_a), keyed(key_b, B), names)
    assert both.y.tolist() == [1, 0, 1]
    assert both.p_a.tolist() == [0.3, 0.1, 0.2]
    assert both.p_b.tolist() == [0.35, 0.15, 0.25]
    assert both.w is None
    assert (both.only_a, both.only_b) == (1, 2)


def test_many_rows_against_a_dictionary(tmp_path):
    rng = np.random.default_rng(6)
    n = 5000
    keys_a, keys_b = rng.permutation(2 * n)[:n], rng.permutation(2 * n)[:n]
    outcome = rng.integers(0, 2, 2 * n)
    a = {"id": keys_a, "y": outcome[keys_a], "p": rng.random(n), "w": rng.random(n) + 0.5}
    b = {"id": [str(key) for key in keys_b], "q": rng.random(n)}
    roles_a, roles_b = ColumnRoles.of("y", "p", "w", None, None), ColumnRoles.of("y", "q", "w", None, None)
    both = join(tmp_path, a, b, ("a.parquet", "b.parquet"), roles_a, roles_b)
    other = dict(zip(b["id"], b["q"], strict=True))
    rows = [i for i, key in enumerate(keys_a) if str(key) in other]
    assert both.p_b.tolist() == [other[str(keys_a[i])] for i in rows]
    for name, column in (("y", both.y), ("p", both.p_a), ("w", both.w)):
        assert column.tolist() == a[name][rows].tolist()
    assert both.only_a == both.only_b == n - len(rows)


def test_labels_may_be_named_and_written_otherwise(tmp_path):
    a = {**A, "y": ["yes", "no", "yes", "no"]}
    b = {"id": B["id"], "won": [bool(y) for y in B["y"]], "q": B["p"]}
    both = join(
        tmp_path,
        a,
        b,
        roles_a=ColumnRoles.of("y", "p", None, None, "yes"),
        roles_b=ColumnRoles.of("won", "q", None, None, None),
    )
    assert both.y.tolist() == [1, 0, 1]


def test_without_labels_in_the_second_file_those_of_the_first_count(tmp_path):
    a = {**A, "y": ["yes", "no", "yes", "no"]}
    b = {"id": B["id"], "p": B["p"]}
    roles = ColumnRoles.of("y", "p", None, None, "yes")
    both = join(tmp_path, a, b, roles_a=roles, roles_b=roles)
    assert both.y.tolist() == [1, 0, 1]
    assert both.p_b.tolist() == [0.35, 0.15, 0.25]
    with pytest.raises(ValueError, match=r"`p` \(y_proba\) must lie in \[0, 1\]; found 70\.0 at row 3 of .*b\.csv"):
        join(tmp_path, a, {**b, "p": [0.25, 0.35, 0.15, 70, 0.8]}, roles_a=roles, roles_b=roles)
    with pytest.raises(TypeError, match=r"`p` \(y_proba\) must contain numbers; .*b\.csv \('x' at row 3\)"):
        join(tmp_path, a, {**b, "p": [0.25, 0.35, 0.15, "x", 0.8]}, roles_a=roles, roles_b=roles)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            {**A, "id": [3, 1, 3, 9]},
            B,
            r"the key 'id' must be unique, but '3' occurs 2 times in .*a\.csv \(1 of 3 keys occur more than once\)",
        ),
        (
            A,
            {**B, "id": [2, 3, 1, None, 8]},
            r"the key 'id' is missing at row 3 of .*b\.csv \(1 of 5 rows\)\. Drop those rows",
        ),
        (
            A,
            {**B, "y": [0, 1, 0, 0, 0]},
            r"`y` must be the same in both files, but where 'id' is '2' it is 1 in .*a\.csv and 0 in .*b\.csv \(1 of 3 rows differ\)",
        ),
        (
            A,
            {**B, "id": ["2.0", "3.0", "1.0", "7.0", "8.0"]},
            r"no row of .*a\.csv has a match in .*b\.csv: no value of 'id' occurs in both files\. The first keys are '3' \(string\) and '2\.0'",
        ),
        ({**A, "p": [0.3, 0.1, 7, 0.9]}, B, r"`p` \(y_proba\) must lie in \[0, 1\]; found 7\.0 at row 2 of .*a\.csv"),
        ({"id": [], "y": [], "p": []}, B, r"a\.csv has no rows"),
    ],
)
def test_what_cannot_be_joined_is_told_by_key(tmp_path, a, b, message):
    with pytest.raises(ValueError, match=message):
        join(tmp_path, a, b)


def test_a_key_that_is_not_a_number_is_missing(tmp_path):
    with pytest.raises(ValueError, match=r"the key 'id' is missing at row 2 of .*a\.parquet \(1 of 4 rows\)"):
        join(tmp_path, {**A, "id": [3.0, 1.0, float("nan"), 9.0]}, B, ("a.parquet", "b.parquet"))


def test_weights_must_be_the_same_in_both(tmp_path):
    roles = ColumnRoles.of("y", "p", "w", None, None)
    a, b = {**A, "w": [3, 1, 2, 9]}, {**B, "w": [2, 3, 1, 7, 8]}
    assert join(tmp_path, a, b, roles_a=roles, roles_b=roles).w.tolist() == [3, 1, 2]
    with pytest.raises(
        ValueError, match=r"`w` must be the same in both files, but where 'id' is '3' it is 3 in .* and 4 in"
    ):
        join(tmp_path, a, {**b, "w": [2, 4, 1, 7, 8]}, roles_a=roles, roles_b=roles)


def test_keys_that_cannot_be_keys(tmp_path):
    lists = {**A, "id": [[1], [2], [3], [4]]}
    with pytest.raises(TypeError, match=r"the key 'id' must contain text, numbers or dates; it is list<.*a\.parquet"):
        join(tmp_path, lists, B, ("a.parquet", "b.csv"))
    with pytest.raises(ValueError, match=r"the key 'p' is also the column of outcomes, predictions or weights"):
        join_files(written(tmp_path, "a.csv", A), written(tmp_path, "b.csv", B), "p", ROLES, ROLES)
    raw = {**A, "id": [b"\xff", b"a", b"b", b"c"]}
    with pytest.raises(
        ValueError, match=r"the key 'id' is binary in .*a\.parquet but int64 in .*b\.parquet, which cannot be"
    ):
        join(tmp_path, raw, B, ("a.parquet", "b.parquet"))
    with pytest.raises(ValueError, match=r"has no column 'id'"):
        join(tmp_path, {"y": [0, 1], "p": [0.1, 0.2]}, B)
