"""Two files with predictions for the same cases, put side by side by a key."""

from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.decode import is_number, plain
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.scan import scan_sources
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import Checksum, arrow

_Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows of two files that have the same key, in the order of the first file.

    Attributes
    ----------
    y, p_a, p_b : ndarray
        Outcomes, predictions of the first file and of the second one.
    w : ndarray or None
        Weights, if a column holds them.
    only_a, only_b : int
        Rows of either file that have no partner in the other one, and are not here.
    """

    y: _Rows
    p_a: _Rows
    p_b: _Rows
    w: _Rows | None
    only_a: int
    only_b: int


def join_files(
    a: Source,
    b: Source,
    key: str,
    roles_a: ColumnRoles,
    roles_b: ColumnRoles,
    *,
    checksum: Checksum | None = None,
) -> Joined:
    """Join two files on a column that tells their rows apart.

    Parameters
    ----------
    a, b : Source
    key : str
        A column of text, numbers or dates that both files have.
    roles_a, roles_b : ColumnRoles
        Which column is what in each. If the second file does not have the column of outcomes or of weights that
        `roles_b` names, those of the first file count; if it does, they must be the same.
    checksum : hashlib object, optional
        Updated with all bytes of the first file, then of the second.

    Returns
    -------
    Joined

    Raises
    ------
    ValueError
        If a key is missing or there twice, if outcomes or weights of a key differ, if no row has a partner, and where
        `scan` does.

    Notes
    -----
    Memory grows with the files: 24 bytes a row and the keys.
    """
    roles_b = _own_roles(b, key, roles_b)
    one, other = _read(a, key, replace(roles_a, by=()), checksum), _read(b, key, roles_b, checksum)
    keys_a, keys_b = _alike(one, other, key)
    import pyarrow.compute

    place = pyarrow.compute.index_in(keys_a, value_set=keys_b)
    rows_a = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
    rows_b = place.drop_null().to_numpy(zero_copy_only=False)
    if not len(rows_a):
        _refuse_strangers(one, other, key)
    outcomes, weights = (roles_a.y_true, one.y, other.y), (roles_a.sample_weight, one.w, other.w)
    if not roles_b.has_outcomes:
        outcomes = roles_a.y_true, one.y, one.y[:0]
    for name, mine, others in (outcomes, weights):
        if mine is not None and others is not None and len(others):
            _refuse_different(name, mine[rows_a], others[rows_b], keys_a.take(rows_a), key, (a, b))
    w = None if one.w is None else one.w[rows_a]
    lonely = len(one.p) - len(rows_a), len(other.p) - len(rows_b)
    return Joined(one.y[rows_a], one.p[rows_a], other.p[rows_b], w, *lonely)


@dataclass(slots=True)
class _Side:
    """One of the files, in memory."""

    source: Source
    y: _Rows
    p: _Rows
    w: _Rows | None
    keys: Any


@dataclass(slots=True)
class _Collected:
    """Columns of a file, batch by batch."""

    key: str
    rows: list[tuple[_Rows, _Rows, _Rows | None, Any]] = field(default_factory=list)

    def add(self, batch: Any, y: _Rows, ps: list[_Rows], w: _Rows | None) -> None:
        keys = plain(batch.column(self.key))
        if arrow().types.is_dictionary(keys.type):
            keys = keys.cast(keys.type.value_type)
        self.rows.append((y.copy(), ps[0].copy(), None if w is None else w.copy(), keys))


def _own_roles(source: Source, key: str, roles: ColumnRoles) -> ColumnRoles:
    """What the second file has itself. Without outcomes, those of the first file count."""
    names = [name for _, name in roles] + [key]
    there = {column.name for column in preview_columns(source, names).columns if not column.in_path}
    weight = roles.sample_weight if roles.sample_weight in there else None
    own = replace(roles, sample_weight=weight, by=())
    return own if roles.y_true in there else replace(own, y_true=roles.y_proba, pos_label=None)


def _read(source: Source, key: str, roles: ColumnRoles, checksum: Checksum | None) -> _Side:
    """All rows of a file, and their keys, each of which is there once."""
    if key in [name for _, name in roles]:
        raise ValueError(f"the key {key!r} is also the column of outcomes, predictions or weights; it must be another.")
    kept = _Collected(key)
    scan_sources([source], roles, 2, kept.add, extra_columns=(key,), checksum=checksum)
    ys, ps, ws, chunks = zip(*kept.rows, strict=True)
    keys = arrow().chunked_array([chunk for chunk in chunks if not arrow().types.is_null(chunk.type)] or chunks)
    _refuse_nested(keys, key, source)
    _refuse_missing(keys, key, source)
    _refuse_double(keys, key, source)
    weights = None if ws[0] is None else np.concatenate(ws)
    return _Side(source, np.concatenate(ys), np.concatenate(ps), weights, keys)


def _alike(one: _Side, other: _Side, key: str) -> tuple[Any, Any]:
    """Keys of one type: as they are, as numbers, or else as text."""
    a, b = one.keys, other.keys
    if a.type == b.type:
        return a, b
    kind, types = arrow().string(), arrow().types
    if is_number(a.type) and is_number(b.type):
        whole = types.is_integer(a.type) and types.is_integer(b.type)
        kind = arrow().int64() if whole else arrow().float64()
    elif _is_time(a.type) and _is_time(b.type) and _in_zone(a.type) == _in_zone(b.type):
        kind = arrow().timestamp("us", "UTC" if _in_zone(a.type) else None)
    try:
        return a.cast(kind), b.cast(kind)
    except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError) as error:
        raise ValueError(
            f"the key {key!r} is {a.type} in {one.source} but {b.type} in {other.source}, which cannot be compared. "
            "Write the column alike in both."
        ) from error


def _is_time(kind: Any) -> bool:
    return bool(arrow().types.is_date(kind) or arrow().types.is_timestamp(kind))


def _in_zone(kind: Any) -> bool:
    return getattr(kind, "tz", None) is not None


# --- refusals ---------------------------------------------------------------------------------------------------------


def _refuse_nested(keys: Any, key: str, source: Source) -> None:
    types = arrow().types
    if types.is_nested(keys.type) or types.is_boolean(keys.type):
        raise TypeError(f"the key {key!r} must hold text, numbers or dates; it is {keys.type} in {source}.")


def _refuse_missing(keys: Any, key: str, source: Source) -> None:
    missing = keys.is_null(nan_is_null=True)
    row = missing.index(True).as_py()
    if row >= 0:
        import pyarrow.compute

        n = pyarrow.compute.sum(missing).as_py()
        raise ValueError(
            f"the key {key!r} is missing at row {row} of {source} ({n:,} of {len(keys):,} rows). Drop those rows, or "
            "give them keys."
        )


def _refuse_double(keys: Any, key: str, source: Source) -> None:
    counts = keys.value_counts()
    if len(counts) == len(keys):
        return
    n = counts.field("counts").to_numpy(zero_copy_only=False)
    first = int(np.argmax(n > 1))
    value = counts.field("values")[first].as_py()
    raise ValueError(
        f"the key {key!r} must tell rows apart, but {value!r} is there {n[first]:,} times in {source} "
        f"({np.count_nonzero(n > 1):,} of {len(n):,} keys are there more than once). Name another column, or drop rows."
    )


def _refuse_strangers(one: _Side, other: _Side, key: str) -> NoReturn:
    a, b = one.keys[0].as_py(), other.keys[0].as_py()
    raise ValueError(
        f"no row of {one.source} has a partner in {other.source}: no key in {key!r} is in both. The first are {a!r} "
        f"({one.keys.type}) and {b!r} ({other.keys.type}); are these the same cases, written alike?"
    )


def _refuse_different(name: str | None, a: _Rows, b: _Rows, keys: Any, key: str, where: tuple[Source, Source]) -> None:
    differ = a.astype(np.float64) != b.astype(np.float64)
    if differ.any():
        i = int(np.argmax(differ))
        raise ValueError(
            f"`{name}` must be the same in both files, but where {key!r} is {keys[i].as_py()!r} it is {float(a[i]):g} "
            f"in {where[0]} and {float(b[i]):g} in {where[1]} ({np.count_nonzero(differ):,} of {len(a):,} rows differ)."
        )
