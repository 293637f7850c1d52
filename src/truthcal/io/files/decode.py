"""Record batches as the arrays that are added to buckets."""

import contextlib
import uuid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.io import row_codes
from truthcal.io.assemble import Groups
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import (
    refuse_mixed_groups,
    refuse_nested_groups,
    refuse_other_kind_of_label,
    refuse_type,
)
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import arrow, said_of

_Rows = NDArray[Any]
# Beside the positive label there may be one other; so many are kept to be told.
_MOST_LABELS = 100


# So few groups are not worth a look at which of them occur.
_FEW_GROUPS = 1 << 10
# Types that loops are compiled for: each takes seconds at its first use on a machine.
_AS_THEY_ARE = ("uint8", "int64", "float", "double")


class BatchDecoder:
    """Turns batches into arrays, and keeps what must be the same in all of them."""

    def __init__(self, roles: ColumnRoles) -> None:
        self._roles = roles
        self._others: set[Any] = set()
        self._kinds: dict[str, tuple[str, Source]] = {}

    def decode(self, batch: Any, source: Source) -> tuple[_Rows, list[_Rows], _Rows | None, Groups | None]:
        """Return outcomes, the predictions of each model, weights if any, groups if any. A missing number is nan."""
        roles = self._roles
        with said_of(source):
            if source.format == "Arrow":  # taken as it is in the file, where damage could crash Python
                batch.validate(full=True)
            ps = [_numbers(plain(batch.column(name)), name, "y_proba", source) for name in roles.y_probas]
            if not roles.has_outcomes:  # predictions are checked all the same
                y = np.zeros(len(batch), np.uint8)
            elif roles.pos_label is None:
                y = _numbers(plain(batch.column(roles.y_true)), roles.y_true, "y_true", source)
            else:
                y = self._labels(plain(batch.column(roles.y_true)), source)
            w = None
            if roles.sample_weight is not None:
                w = _numbers(plain(batch.column(roles.sample_weight)), roles.sample_weight, "sample_weight", source)
                w = w.astype(np.float64)
            ps = [p if p.dtype.kind == "f" else p.astype(np.float64) for p in ps]  # integers: certain events
            return y, ps, w, self._groups(batch, source) if roles.by else None

    def other_labels(self) -> dict[str, list[Any]]:
        """All labels but the positive one, as a table of sums by code has them."""
        return {name: list(self._others) for name in row_codes.OTHERS} if self._roles.pos_label is not None else {}

    def _labels(self, column: Any, source: Source) -> _Rows:
        """1 for the positive label, 0 for others, nan where it is missing."""
        types, kind = arrow().types, column.type
        if not types.is_null(kind):  # nothing but missing values, so far
            plain = kind.value_type if types.is_dictionary(kind) else kind
            number = types.is_boolean(plain) or is_number(plain)
            refuse_other_kind_of_label(self._roles, f"{plain} in {source}", text=is_text(plain), number=number)
        encoded = _encoded(column)
        values = encoded.dictionary.to_pylist()
        nothing = (None, "") if source.format == "CSV" else (None,)
        missing = [value in nothing or value != value for value in values]
        if len(self._others) < _MOST_LABELS:  # a wrong column may have a different one in every row
            kept = zip(values, missing, strict=True)
            self._others |= {value for value, gone in kept if not gone and value != self._roles.pos_label}
        is_one = np.array([value == self._roles.pos_label for value in values], dtype=np.float64)
        is_one[np.array(missing, dtype=bool)] = np.nan
        kinds: _Rows = is_one if any(missing) else is_one.astype(np.uint8)
        return kinds[_array(encoded.indices)] if len(values) else np.empty(0, np.uint8)

    def _groups(self, batch: Any, source: Source) -> Groups:
        """Each row's group, and the keys of the groups. Values that are not there make a group of their own."""
        index = np.zeros(len(batch), np.int64)
        keys: list[tuple[Any, ...]] = [()]
        for name in self._roles.by:
            if name not in batch.schema.names:  # it is in the path, the same for all rows
                own, values = np.zeros(len(batch), np.int64), [source.partition[name]]
                kind = arrow().scalar(values[0]).type
            else:
                own, values, kind = _coded(batch.column(name), name, source)
                if name in source.partition:
                    _refuse_other_path(name, values, source)
            some = any(value is not None for value in values)
            self._refuse_mixed(name, _kind(kind) if some else "nothing", source)
            mixed = own if keys == [()] else index.astype(np.int64) * len(values) + own
            there, index = _condensed(mixed, len(keys) * len(values))
            keys = [(*keys[i // len(values)], values[i % len(values)]) for i in there]
        return index.astype(np.int32, copy=False), keys

    def _refuse_mixed(self, name: str, kind: str, source: Source) -> None:
        """The group 1 of one file and the group "1" of another would be two without a word."""
        before = self._kinds.setdefault(name, (kind, source))
        if kind not in ("nothing", before[0]):
            if before[0] == "nothing":
                self._kinds[name] = (kind, source)
            else:
                refuse_mixed_groups(name, before, (kind, source))


def _coded(column: Any, name: str, source: Source) -> tuple[_Rows, list[Any], Any]:
    """Each row's index into the values of a column that makes groups, these values, and their type."""
    given, column = column.type, plain(column)
    if arrow().types.is_nested(column.type):
        refuse_nested_groups(name, f"{column.type} in {source}")
    encoded = _encoded(column)
    values, kind = encoded.dictionary.to_pylist(), encoded.type.value_type
    if getattr(given, "extension_name", None) == "arrow.uuid":  # as text, which is how they are written
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
        kind = arrow().string()
    return _array(encoded.indices), values, kind


def _refuse_other_path(name: str, values: list[Any], source: Source) -> None:
    """A column that is in the file and in its path must be the same in both."""
    path = source.partition[name]
    other = next((value for value in values if not _same(value, path)), path)
    if other is not path:
        raise ValueError(
            f"`{name}` (by) is {other!r} in {source}, but its path says {path!r}; which one is right cannot be told. "
            "Rename the column, or move the file."
        )


def _same(value: Any, path: Any) -> bool:
    """Whether a value is what a path says."""
    if value is None or path is None or value == path:
        return value is path or value == path
    if isinstance(value, bool):
        return str(value).lower() == str(path).lower()
    with contextlib.suppress(ValueError, TypeError):
        if not isinstance(value, str):
            return str(value) == str(path) or float(value) == float(path)
    return str(value) == str(path)


def _condensed(index: _Rows, size: int) -> tuple[_Rows, _Rows]:
    """Which of so many indices occur, and each row's place among them. A group that does not occur would take room."""
    if size <= _FEW_GROUPS:
        return np.arange(size), index
    if size > 4 * len(index):
        there, place = np.unique(index, return_inverse=True)
        return there, place
    occurs = np.bincount(index, minlength=size) > 0
    if occurs.all():
        return np.arange(size), index
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[index]


def plain(column: Any) -> Any:
    """Without the names that extensions give to plain types."""
    while isinstance(column.type, arrow().BaseExtensionType):
        column = column.storage
    return column


def _encoded(column: Any) -> Any:
    """As indices into the different values, None among them if it occurs."""
    if arrow().types.is_dictionary(column.type):
        if column.null_count == 0:
            index = _array(column.indices)
            if len(index) and not 0 <= index.min() <= index.max() < len(column.dictionary):
                raise arrow().ArrowInvalid("a value that is not among the values of its column")
            return column
        column.validate(full=True)
        column = column.cast(column.type.value_type)
    return column.dictionary_encode(null_encoding="encode")


def _numbers(column: Any, name: str, role: str, source: Source) -> _Rows:
    """Plain numbers without a copy where possible; nan where there is none."""
    types, kind = arrow().types, column.type
    if types.is_null(kind):  # nothing but missing values, so far
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        column = column.cast(arrow().uint8())
    elif not is_number(kind):
        refuse_type(name, role, f"{kind} in {source}", text=is_text(kind))
    if types.is_decimal(kind):
        column = column.cast(arrow().string())  # cast at once to float64, 0.1 would become 0.09999999999999999
    elif types.is_float16(kind):
        column = column.cast(arrow().float32())
    if column.null_count or str(column.type) not in _AS_THEY_ARE:
        column = column.cast(arrow().float64(), safe=False)
    return _array(column.fill_null(np.nan) if column.null_count else column)


def _array(column: Any) -> _Rows:
    """The numbers themselves, without a copy. `to_numpy` would import pandas wherever it is: 0.4 s before an answer."""
    return np.from_dlpack(column)


def is_number(kind: Any) -> bool:
    """Whether a type is one of numbers."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_text(kind: Any) -> bool:
    """Whether a type is one of text, or of indices into texts."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _kind(kind: Any) -> str:
    if arrow().types.is_null(kind):
        return "nothing"
    return "text" if is_text(kind) else "a number" if is_number(kind) else str(kind)
