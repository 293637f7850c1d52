"""Record batches as the arrays that are added to buckets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.frames import codes
from truthcal.frames.files import Source, arrow, said_of
from truthcal.frames.finishing import Groups
from truthcal.frames.refusals import refuse_mixed_groups, refuse_other_kind_of_label, refuse_type
from truthcal.frames.roles import Roles

_Rows = NDArray[Any]


class Reader:
    """Turns batches into arrays, and keeps what must be the same in all of them."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._others: set[Any] = set()
        self._kinds: dict[str, tuple[str, Source]] = {}

    def columns_of(self, batch: Any, source: Source) -> tuple[_Rows, _Rows, _Rows | None, Groups | None]:
        """Outcomes, predictions, weights if any, groups if any. A missing number is nan."""
        roles = self._roles
        with said_of(source):
            p = _numbers(batch.column(roles.y_proba), roles.y_proba, "y_proba", source)
            if roles.pos_label is None:
                y = _numbers(batch.column(roles.y_true), roles.y_true, "y_true", source)
            else:
                y = self._labels(batch.column(roles.y_true), source)
            w = None
            if roles.sample_weight is not None:
                w = _numbers(batch.column(roles.sample_weight), roles.sample_weight, "sample_weight", source)
                w = w.astype(np.float64)
            if p.dtype.kind != "f":  # whole numbers: certain events
                p = p.astype(np.float64)
            return y, p, w, self._groups(batch, source) if roles.by else None

    def other_labels(self) -> dict[str, list[Any]]:
        """All labels but the positive one, as a table of sums by code has them."""
        return {name: list(self._others) for name in codes.OTHERS} if self._roles.pos_label is not None else {}

    def _labels(self, column: Any, source: Source) -> _Rows:
        """1 for the positive label, 0 for others, nan where it is missing."""
        encoded = _encoded(column)
        kind, types = encoded.type.value_type, arrow().types
        number = types.is_boolean(kind) or _is_number(kind)
        refuse_other_kind_of_label(self._roles, f"{kind} in {source}", text=_is_text(kind), number=number)
        values = encoded.dictionary.to_pylist()
        missing = [value is None or value != value for value in values]
        self._others |= {v for v, gone in zip(values, missing, strict=True) if not gone and v != self._roles.pos_label}
        is_one = np.array([value == self._roles.pos_label for value in values], dtype=np.float64)
        is_one[np.array(missing, dtype=bool)] = np.nan
        kinds: _Rows = is_one if any(missing) else is_one.astype(np.uint8)
        return kinds[encoded.indices.to_numpy()] if len(values) else np.empty(0, np.uint8)

    def _groups(self, batch: Any, source: Source) -> Groups:
        """Each row's group, and the keys of the groups. Values that are not there make a group of their own."""
        index = np.zeros(len(batch), np.int64)
        keys: list[tuple[Any, ...]] = [()]
        for name in self._roles.by:
            if name not in batch.schema.names:  # it is in the path, the same for all rows
                own, values = np.zeros(len(batch), np.int64), [source.partition[name]]
                self._refuse_mixed(name, "text", source)
            else:
                encoded = _encoded(batch.column(name))
                self._refuse_mixed(name, _kind(encoded.type.value_type), source)
                own, values = encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
            if keys == [()]:
                index, keys = own, [(value,) for value in values]
                continue
            index = index * len(values) + own
            keys = [(*key, value) for key in keys for value in values]
            if len(keys) > len(batch):  # most of them do not occur
                there, index = np.unique(index, return_inverse=True)
                keys = [keys[i] for i in there]
        return index.astype(np.int32), keys

    def _refuse_mixed(self, name: str, kind: str, source: Source) -> None:
        """The group 1 of one file and the group "1" of another would be two without a word."""
        before = self._kinds.setdefault(name, (kind, source))
        if kind not in ("nothing", before[0]):
            if before[0] == "nothing":
                self._kinds[name] = (kind, source)
            else:
                refuse_mixed_groups(name, before, (kind, source))


def _encoded(column: Any) -> Any:
    """As indices into the different values, None among them if it occurs."""
    if arrow().types.is_dictionary(column.type):
        if column.null_count == 0:
            return column
        column = column.cast(column.type.value_type)
    return column.dictionary_encode(null_encoding="encode")


def _numbers(column: Any, name: str, role: str, source: Source) -> _Rows:
    """Plain numbers without a copy where possible; nan where there is none."""
    types, kind = arrow().types, column.type
    if types.is_null(kind):  # nothing but missing values, so far
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        column = column.cast(arrow().uint8())
    elif not _is_number(kind):
        refuse_type(name, role, f"{kind} in {source}", text=_is_text(kind))
    if column.null_count or types.is_decimal(kind) or types.is_int8(kind):
        column = column.cast(arrow().float64(), safe=False)
    elif types.is_float16(kind):
        column = column.cast(arrow().float32())
    values: _Rows = column.to_numpy(zero_copy_only=False)
    return values


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_text(kind: Any) -> bool:
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _kind(kind: Any) -> str:
    if arrow().types.is_null(kind):
        return "nothing"
    return "text" if _is_text(kind) else "a number" if _is_number(kind) else str(kind)
