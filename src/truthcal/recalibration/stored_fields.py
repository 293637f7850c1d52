"""Read dataclasses that were stored as JSON: the annotation of each field says what its value must be."""

import dataclasses
import math
from types import NoneType
from typing import Any, get_args, get_origin

from truthcal.core.params import shown

# Annotation -> types of its JSON values, and their name in errors.
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    float: ((int, float), "a number"),
    int: ((int,), "a whole number, at least 0"),
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
}
# Numbers that JSON lacks, as they are stored.
_NOT_IN_JSON = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


def read_stored(kind: Any, value: Any, place: str) -> Any:
    """Read a value of a type, which may be a dataclass; `place` is its path in the file. Unknown entries are ignored.

    Raises ValueError with the end of a sentence about the file.
    """
    arguments = get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, value, place)
    if get_origin(kind) is tuple:
        return _read_items(arguments, value, place)
    if NoneType in arguments:  # such as `int | None`
        return None if value is None else read_stored(arguments[0], value, place)
    if kind is float and (value is None or isinstance(value, str)) and value in _NOT_IN_JSON:
        return _NOT_IN_JSON[value]
    types, wanted = _KINDS[kind]
    is_bool = isinstance(value, bool)  # which is an int for Python
    negative_count = kind is int and isinstance(value, int) and value < 0
    if not isinstance(value, types) or is_bool != (kind is bool) or negative_count:
        raise _wrong(place, wanted, value)
    return float(str(value)) if kind is float else value  # as text: a whole number beyond all floats is infinite


def _read_fields(kind: Any, value: Any, place: str) -> Any:
    """Read a dataclass; entries without a default are required."""
    if not isinstance(value, dict):
        raise _wrong(place, "an object", value)
    entries = {}
    for field in dataclasses.fields(kind):
        path = f"{place}.{field.name}"
        if field.name in value:
            entries[field.name] = read_stored(field.type, value[field.name], path)
        elif field.default is dataclasses.MISSING:
            raise ValueError(f"lacks {path}")
    return kind(**entries)


def _read_items(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    """Read a tuple: of any length if its annotation ends with an ellipsis."""
    any_length = kinds[-1] is Ellipsis
    if not isinstance(value, list) or not (any_length or len(value) == len(kinds)):
        raise _wrong(place, "a list" if any_length else f"a list of length {len(kinds)}", value)
    each = kinds[:1] * len(value) if any_length else kinds
    return tuple(
        read_stored(kind, item, f"{place}[{k}]") for k, (kind, item) in enumerate(zip(each, value, strict=True))
    )


def _wrong(place: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"has {shown(value)} as {place}, which must be {wanted}")
