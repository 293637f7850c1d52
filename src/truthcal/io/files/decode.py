"""Record batches decoded into the arrays that are added to buckets."""

import contextlib
import itertools
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_hash import Hashes, hash_values
from truthcal.io import row_codes
from truthcal.io.assemble import Groups
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import (
    refuse_column_type,
    refuse_missing_groups,
    refuse_nested_groups,
    refuse_other_type_of_label,
)
from truthcal.io.files.source import RowNumbers, Source, arrow, errors_naming
from truthcal.io.void_words import is_null_word, is_void

_Rows = NDArray[Any]
_MAX_LABELS = 100  # to remember beside the positive one, for the error if there is more than one
_FEW_GROUPS = 1 << 10  # up to this number, it is not worth finding out which groups occur
# Types that kernels are compiled for: compiling one more takes seconds at its first use on a machine.
_KERNEL_TYPES = ("uint8", "int64", "float", "double")
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}
_array = np.from_dlpack  # without a copy; `to_numpy` would import pandas if installed, which takes 0.4 s


class BatchDecoder:
    """Decodes record batches, and checks what must be the same in all of them."""

    def __init__(self, roles: ColumnRoles) -> None:
        self._roles = roles
        self._others: set[Any] = set()
        self._group_types: dict[str, tuple[str, Source]] = {}

    def decode(
        self, batch: Any, source: Source, numbers: RowNumbers
    ) -> tuple[_Rows, list[_Rows], _Rows | None, Groups | None, Hashes | None]:
        """Return outcomes, the predictions of each model, weights, segments, and hashes of the groups of rows.

        The last three are None if the user named no such columns. A missing number is nan. `numbers` are those of the
        rows in their file.
        """
        roles = self._roles
        with errors_naming(source):
            if source.format.name == "Arrow":  # memory-mapped, so that damage could crash Python
                batch.validate(full=True)
            ps = [_decoded(batch, name, "y_proba", source, numbers) for name in roles.y_probas]
            if not roles.has_outcomes:  # predictions are checked all the same
                y = np.zeros(len(batch), np.uint8)
            elif roles.pos_label is None:
                y = _decoded(batch, roles.y_true, "y_true", source, numbers)
            else:
                y = self._is_positive(storage(batch.column(roles.y_true)), source, numbers)
            weight = roles.sample_weight
            w = None if weight is None else _decoded(batch, weight, "sample_weight", source, numbers).astype(np.float64)
            ps = [p if p.dtype.kind == "f" else p.astype(np.float64) for p in ps]  # integers: certain events
            if source.percent:
                ps = [_of_percentages(p, name, source, numbers) for name, p in zip(roles.y_probas, ps, strict=True)]
            segments = self._groups(batch, source) if roles.by else None
            return y, ps, w, segments, self._hashes(batch, roles.groups, source, numbers) if roles.groups else None

    def other_labels(self) -> dict[str, list[Any]]:
        """Return all labels but the positive one, as columns of a table of sums by code."""
        return {name: list(self._others) for name in row_codes.OTHERS} if self._roles.pos_label is not None else {}

    def _is_positive(self, column: Any, source: Source, rows: RowNumbers) -> _Rows:
        """Return 1 for the positive label, 0 for others, nan where it is missing."""
        types, kind, positive = arrow().types, column.type, self._roles.pos_label
        if source.where is not None and decodes_to_text(kind) and isinstance(positive, int | float):
            numbers = _numbers_of_text(column, self._roles.y_true, "y_true", source, rows)
            column = arrow().array(numbers, from_pandas=True)  # with null for nan
            kind = column.type
        if not types.is_null(kind):  # all values missing so far
            kind = kind.value_type if types.is_dictionary(kind) else kind
            number = types.is_boolean(kind) or decodes_to_numbers(kind)
            refuse_other_type_of_label(self._roles, f"{kind} in {source}", text=decodes_to_text(kind), number=number)
        encoded = decode_to_dictionary(column)
        values = encoded.dictionary.to_pylist()
        nulls = (None, "") if source.format.name == "CSV" else (None,)
        missing = [value in nulls or value != value or (source.void and is_void(value)) for value in values]
        if len(self._others) < _MAX_LABELS:  # a wrong column may have a different one in every row
            labels = itertools.compress(values, np.logical_not(missing))
            self._others |= {value for value in labels if value != positive}
        outcomes = np.array([value == positive for value in values], dtype=np.uint8)
        if any(missing):
            outcomes = np.where(missing, np.nan, outcomes)
        return outcomes[_array(encoded.indices)] if len(values) else outcomes

    def _hashes(self, batch: Any, name: str, source: Source, numbers: RowNumbers) -> Hashes:
        """Return the hash of each row's group of rows that belong together. None may be missing."""
        rows, values, _ = self._values(batch, name, source)
        hashes, missing = hash_values(values, name)
        if missing.any() and missing[rows].any():
            row = numbers[int(missing[rows].argmax())]
            refuse_missing_groups(name, f"at row {row} of {source}")
        return hashes[rows]

    def _groups(self, batch: Any, source: Source) -> Groups:
        """Return each row's group, and the keys of the groups. Missing values are a group of their own."""
        return combine_groups(self._group_column(batch, name, source) for name in self._roles.by)

    def _group_column(self, batch: Any, name: str, source: Source) -> tuple[_Rows, list[Any]]:
        """Return each row's index into the distinct values of a segment column, and these values."""
        rows, values, kind = self._values(batch, name, source)
        known = any(value is not None for value in values)
        self._check_type(name, _decoded_type_name(kind) if known else "nothing", source)
        return rows, values

    def _values(self, batch: Any, name: str, source: Source) -> tuple[_Rows, list[Any], Any]:
        """Return each row's index into the distinct values of a column, these values, and their type."""
        if name not in batch.schema.names:  # it is in the path, the same for all rows
            value = source.partition[name]
            return np.zeros(len(batch), np.int64), [value], arrow().scalar(value).type
        rows, values, kind = _decode_groups(batch.column(name), name, source)
        if name in source.partition:
            _refuse_other_path(name, values, source)
        return rows, values, kind

    def _check_type(self, name: str, kind: str, source: Source) -> None:
        """Raise if a grouping column changes its type: group 1 of one file would not be group "1" of another."""
        before, first = self._group_types.setdefault(name, (kind, source))
        if before == "nothing":
            self._group_types[name] = (kind, source)
        elif kind not in ("nothing", before):
            problem = f"`{name}` (by) is {before} in {first} but {kind} in {source}, so groups cannot be matched."
            cure = "Scan these files separately, or write the column with the same type."
            raise ValueError(f"{problem} {cure}")


def _decode_groups(column: Any, name: str, source: Source) -> tuple[_Rows, list[Any], Any]:
    """Decode a grouping column: each row's index into its distinct values, these values, and their type."""
    declared, column = column.type, storage(column)
    if arrow().types.is_nested(column.type):
        refuse_nested_groups(name, f"{column.type} in {source}")
    encoded = decode_to_dictionary(column)
    values, kind = encoded.dictionary.to_pylist(), encoded.type.value_type
    if getattr(declared, "extension_name", None) == "arrow.uuid":  # as text
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
        kind = arrow().string()
    return _array(encoded.indices), values, kind


def _refuse_other_path(name: str, values: list[Any], source: Source) -> None:
    """Raise if a decoded grouping column is also in the path of its file, with another value."""
    path = source.partition[name]
    for other in (value for value in values if not _equals_path_value(value, path)):
        raise ValueError(
            f"`{name}` (by) is {other!r} in {source}, but its path says {path!r}. Rename the column, or move the file."
        )


def _equals_path_value(value: Any, path: Any) -> bool:
    if value is None or path is None or value == path:
        return value is path or value == path
    if isinstance(value, bool):
        return str(value).lower() == str(path).lower()
    with contextlib.suppress(ValueError, TypeError):
        return str(value) == str(path) or (not isinstance(value, str) and float(value) == float(path))
    return False


def combine_groups(columns: Iterable[tuple[_Rows, list[Any]]]) -> Groups:
    """Return each row's group and the keys of the groups, from each row's index into the values of each column."""
    index, keys = np.empty(0, np.int64), list[tuple[Any, ...]]([()])
    for rows, values in columns:
        combined = rows if keys == [()] else index.astype(np.int64) * len(values) + rows
        occurring, index = _renumber_groups(combined, len(keys) * len(values))
        keys = [(*keys[i // len(values)], values[i % len(values)]) for i in occurring]
    return index.astype(np.int32, copy=False), keys


def _renumber_groups(index: _Rows, size: int) -> tuple[_Rows, _Rows]:
    """Return the decoded groups below `size` that occur, and each row's place among them: empty ones take memory."""
    if size <= _FEW_GROUPS:
        return np.arange(size), index
    if size > 4 * len(index):
        return np.unique(index, return_inverse=True)
    occurs = np.bincount(index, minlength=size) > 0
    return np.flatnonzero(occurs), index if occurs.all() else (np.cumsum(occurs) - 1)[index]


def storage(column: Any) -> Any:
    """Decode a column of an extension type to the plain type that stores it."""
    while isinstance(column.type, arrow().BaseExtensionType):
        column = column.storage
    return column


def decode_to_dictionary(column: Any) -> Any:
    """Decode a column to indices into its distinct values, with None among them if it occurs."""
    if arrow().types.is_dictionary(column.type):
        if column.null_count == 0:
            index = _array(column.indices)
            if len(index) and not 0 <= index.min() <= index.max() < len(column.dictionary):
                raise arrow().ArrowInvalid("a value that is not among the values of its column")
            return column
        column.validate(full=True)
        column = column.cast(column.type.value_type)
    return column.dictionary_encode(null_encoding="encode")


def _of_percentages(p: _Rows, name: str, source: Source, numbers: RowNumbers) -> _Rows:
    """Divide percentages by 100; missing ones are nan."""
    bad = (p < 0.0) | (p > 100.0)
    if bad.any():
        first = int(bad.argmax())
        problem = f"must lie in [0, 100] with --percent; found {p[first]:g} at row {numbers[first]}"
        raise ValueError(f"{source}: {name!r} {problem}. Correct or remove such rows.")
    return np.asarray(p / p.dtype.type(100.0))


def _decoded(batch: Any, name: str, role: str, source: Source, numbers: RowNumbers) -> _Rows:
    """Decode a column to plain numbers, without a copy where possible; nan where it is missing."""
    column = storage(batch.column(name))
    types, kind = arrow().types, column.type
    if types.is_null(kind):  # all values missing so far
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        column = column.cast(arrow().uint8())
    elif decodes_to_text(kind) and _may_be_text(role, source):
        return _numbers_of_text(column, name, role, source, numbers)
    elif not decodes_to_numbers(kind):
        refuse_column_type(name, role, f"{kind} in {source}", text=decodes_to_text(kind))
    if types.is_decimal(kind):
        column = column.cast(arrow().string())  # a direct cast to float64 makes 0.09999999999999999 of 0.1
    elif types.is_float16(kind):
        column = column.cast(arrow().float32())
    if column.null_count or str(column.type) not in _KERNEL_TYPES:
        column = column.cast(arrow().float64(), safe=False)
    return _array(column.fill_null(np.nan) if column.null_count else column)


def _may_be_text(role: str, source: Source) -> bool:
    """Whether a column of numbers may be read as text, since rows with words are or were left out."""
    if role == "y_proba" and source.percent:
        return True
    return source.where is not None or (source.void and role != "sample_weight")


def _numbers_of_text(column: Any, name: str, role: str, source: Source, rows: RowNumbers) -> _Rows:
    """Decode text to numbers; nan for words such as "void". Raises for other words."""
    encoded = decode_to_dictionary(column)
    has_commas = source.format.name == "CSV" and source.delimiter != ","  # decimal commas
    texts = _without_percent_signs(encoded.dictionary) if role == "y_proba" and source.percent else encoded.dictionary
    if (numbers := _parse_texts(texts, has_commas)) is None:
        numbers = np.empty(len(texts))
        for place, text in enumerate(texts.to_pylist()):
            try:
                numbers[place] = _parse_text(text, has_commas, source.void)
            except ValueError:
                row, word = rows[int((_array(encoded.indices) == place).argmax())], text.strip()
                refuse_column_type(name, role, f"text in {source} ({word[:40]!r} at row {row})", text=True, word=word)
    indices: _Rows = _array(encoded.indices)
    values: _Rows = numbers[indices]
    return values


def _without_percent_signs(texts: Any) -> Any:
    import pyarrow.compute

    return pyarrow.compute.replace_substring_regex(texts.cast(arrow().string()), r"\s*%\s*$", "")


def _parse_texts(texts: Any, has_commas: bool) -> _Rows | None:
    """Return texts as numbers, nan for null; None if one is not a number. Faster than one by one."""
    import pyarrow.compute

    try:
        texts = texts.cast(arrow().string())
        points = pyarrow.compute.replace_substring(texts, ",", ".") if has_commas else texts
        numbers: _Rows = _array(pyarrow.compute.fill_null(points.cast(arrow().float64()), np.nan))
    except arrow().ArrowInvalid:
        return None
    return numbers


def _parse_text(text: str | None, has_commas: bool, void: bool) -> float:
    """Return a text as a number; nan for null, NA and, with `void`, words such as "void". Raises for other words."""
    if text is None or is_null_word(text) or (void and is_void(text)):
        return np.nan
    word = text.strip().replace(",", ".") if has_commas else text.strip()
    if "_" in word:  # float("1_000") is 1000.0 in Python
        raise ValueError
    truth = _TRUTH_VALUES.get(word.lower())
    return float(word) if truth is None else truth


def decodes_to_numbers(kind: Any) -> bool:
    """Whether columns of an Arrow type are decoded to numbers."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def decodes_to_text(kind: Any) -> bool:
    """Whether columns of an Arrow type are decoded to text: also dictionaries of text."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _decoded_type_name(kind: Any) -> str:
    if arrow().types.is_null(kind):
        return "nothing"
    return "text" if decodes_to_text(kind) else "a number" if decodes_to_numbers(kind) else str(kind)


class KeyNumbers:
    """Keys of segments or groups in batches of rows, numbered in the order in which they occur."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._parts: list[NDArray[np.int64]] = []

    def add(self, index: NDArray[Any], keys: Sequence[Any]) -> None:
        """Add a batch: `index` has the place of each row's key in `keys`."""
        places = np.array([self._places.setdefault(key, len(self._places)) for key in keys], np.int64)
        self._parts.append(places[index])

    def result(self) -> tuple[NDArray[np.int64], list[Any]] | None:
        """Return each row's place in the list of all keys, and this list; None without rows."""
        return (np.concatenate(self._parts), list(self._places)) if self._parts else None
