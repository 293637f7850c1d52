"""Two files with predictions for the same cases, joined on a key."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.decode import decodes_to_numbers, storage
from truthcal.io.files.load import KeptRows
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.row_filter import RowFilter
from truthcal.io.files.scan import BatchReader
from truthcal.io.files.source import Checksum, Source, arrow

_Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows of two files with the same key, in the order of the first file."""

    y: _Rows
    p_a: _Rows  # predictions of the first file
    p_b: _Rows
    w: _Rows | None
    only_a: int  # number of rows without a match in the other file, which are left out
    only_b: int
    groups: _Rows | None = None  # which rows belong together, by a column of the first file


def join_files(
    a: Source,
    b: Source,
    key: str,
    roles_a: ColumnRoles,
    roles_b: ColumnRoles,
    *,
    checksum: Checksum | None = None,
    filters: tuple[RowFilter | None, RowFilter | None] = (None, None),
) -> Joined:
    """Join two files on a key: a column of text, numbers or dates with a unique value in each row.

    Groups of rows that belong together are those of the first file. If the second file does not have the column of
    outcomes or of weights that `roles_b` names, those of the first file count; if it does, they must be the same.
    `filters` leave out rows of each file before they are joined.
    Memory grows with the files: 24 bytes a row and the keys.
    """
    import pyarrow.compute

    roles_b = _roles_in_second(b, key, roles_b)
    rows_a = _read_rows(a, key, replace(roles_a, by=()), checksum, filters[0])
    rows_b = _read_rows(b, key, roles_b, checksum, filters[1])
    keys_a, keys_b = _with_common_type(rows_a.keys, rows_b.keys, key, (a, b))
    place = pyarrow.compute.index_in(keys_a, value_set=keys_b)
    matched_a = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
    matched_b = place.drop_null().to_numpy(zero_copy_only=False)
    if not len(matched_a):
        first_a, first_b = (f"{rows.keys[0].as_py()!r} ({rows.keys.type})" for rows in (rows_a, rows_b))
        problem = f"no row of {a} has a match in {b}: no value of {key!r} occurs in both files."
        cure = f"The first keys are {first_a} and {first_b}; are these the same cases, in the same format?"
        raise ValueError(f"{problem} {cure}")
    shared = [(roles_a.y_true, rows_a.y, rows_b.y)] if roles_b.has_outcomes else []
    if rows_a.w is not None and rows_b.w is not None:
        shared.append((str(roles_a.sample_weight), rows_a.w, rows_b.w))
    for name, values_a, values_b in shared:
        _refuse_unequal(name, values_a[matched_a], values_b[matched_b], keys_a.take(matched_a), key, (a, b))
    w = None if rows_a.w is None else rows_a.w[matched_a]
    unmatched = len(rows_a.p) - len(matched_a), len(rows_b.p) - len(matched_b)
    groups = None if rows_a.groups is None else rows_a.groups[matched_a]
    return Joined(rows_a.y[matched_a], rows_a.p[matched_a], rows_b.p[matched_b], w, *unmatched, groups)


class _FileRows(NamedTuple):
    """The rows of one file, in memory."""

    y: _Rows
    p: _Rows
    w: _Rows | None
    keys: Any
    groups: _Rows | None


def _roles_in_second(source: Source, key: str, roles: ColumnRoles) -> ColumnRoles:
    """Return the roles in the second file to join, without outcomes and weights if it does not have these columns."""
    header = source.header or preview_columns(source, [*(name for _, name in roles), key]).source.header
    weight = roles.sample_weight if roles.sample_weight in header else None
    if roles.y_true not in header:
        roles = replace(roles, y_true=roles.y_proba, pos_label=None)
    return replace(roles, sample_weight=weight, by=(), groups=None)


def _read_rows(
    source: Source, key: str, roles: ColumnRoles, checksum: Checksum | None, row_filter: RowFilter | None
) -> _FileRows:
    """Read the rows of one of the files to join."""
    if key in [name for role, name in roles if role != "groups"]:
        raise ValueError(f"the key {key!r} is also the column of outcomes, predictions or weights; use another key.")
    kept, chunks, groups = KeptRows(roles, None), [], list[_Rows]()
    reader = BatchReader([source], roles, extra_columns=(key,), checksum=checksum, row_filter=row_filter)
    for rows in reader:
        if rows.hashes is not None:
            groups.append(rows.hashes)
        kept.add(rows)
        keys = storage(rows.record.column(key))
        chunks.append(keys.cast(keys.type.value_type) if arrow().types.is_dictionary(keys.type) else keys)
    y, (p,), w = kept.columns(reader)  # raises if there are no rows
    keys = arrow().chunked_array([chunk for chunk in chunks if not arrow().types.is_null(chunk.type)] or chunks)
    _check_join_keys(keys, key, source)
    assert y is not None
    return _FileRows(y, p, w, keys, np.concatenate(groups) if groups else None)


def _check_join_keys(keys: Any, key: str, source: Source) -> None:
    import pyarrow.compute

    types = arrow().types
    if types.is_nested(keys.type) or types.is_boolean(keys.type):
        raise TypeError(f"the key {key!r} must contain text, numbers or dates; it is {keys.type} in {source}.")
    missing = keys.is_null(nan_is_null=True)
    if n := pyarrow.compute.sum(missing).as_py():
        row = missing.index(True).as_py()
        problem = f"the key {key!r} is missing at row {row} of {source} ({n:,} of {len(keys):,} rows)."
        cure = "Drop those rows, or give them keys."
        raise ValueError(f"{problem} {cure}")
    values = keys.value_counts()
    if len(values) < len(keys):
        counts = values.field("counts").to_numpy(zero_copy_only=False)
        first = int(np.argmax(counts > 1))
        value, repeated = values.field("values")[first].as_py(), np.count_nonzero(counts > 1)
        raise ValueError(
            f"the key {key!r} must be unique, but {value!r} occurs {counts[first]:,} times in {source} ({repeated:,} "
            f"of {len(counts):,} keys occur more than once). Name another column, or drop rows."
        )


def _with_common_type(a: Any, b: Any, key: str, sources: tuple[Source, Source]) -> tuple[Any, Any]:
    """Return the keys of both files to join with one type: unchanged, as numbers, as times, or else as text."""
    if a.type == b.type:
        return a, b
    kind, types, both = arrow().string(), arrow().types, (a.type, b.type)
    zones = {getattr(x, "tz", None) is not None for x in both}
    if all(map(decodes_to_numbers, both)):
        kind = arrow().int64() if all(map(types.is_integer, both)) else arrow().float64()
    elif all(types.is_date(x) or types.is_timestamp(x) for x in both) and len(zones) == 1:
        kind = arrow().timestamp("us", "UTC" if zones == {True} else None)
    try:
        return a.cast(kind), b.cast(kind)
    except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError) as error:
        problem = f"the key {key!r} is {a.type} in {sources[0]} but {b.type} in {sources[1]}, which cannot be compared."
        cure = "Write it with the same type in both."
        raise ValueError(f"{problem} {cure}") from error


def _refuse_unequal(name: str, a: _Rows, b: _Rows, keys: Any, key: str, sources: tuple[Source, Source]) -> None:
    """Raise if joined rows have different outcomes or weights in the two files."""
    differ = a.astype(np.float64) != b.astype(np.float64)
    if differ.any():
        i = int(np.argmax(differ))
        raise ValueError(
            f"`{name}` must be the same in both files, but where {key!r} is {keys[i].as_py()!r} it is {float(a[i]):g} "
            f"in {sources[0]} and {float(b[i]):g} in {sources[1]} ({np.count_nonzero(differ):,} of {len(a):,} rows "
            "differ)."
        )
