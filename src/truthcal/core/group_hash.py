"""Hashes of groups: the same number for the same group on every machine, in every engine and process.

The hash of a group is the first 8 bytes of the MD5 of its text, as an unsigned integer with the highest byte first.
Databases have MD5, too. Equal numbers have equal texts, whatever their type, and a number has the text that a CSV file
has for it: 7, 7.0, Decimal("7.00") and "7" are the same group, and "07" is another one.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_keys import plain_value

try:
    from _md5 import md5  # type: ignore[import-not-found]  # a third of the time of hashlib's, which asks OpenSSL
except ImportError:  # not in every build of Python
    from hashlib import md5

Hashes = NDArray[np.uint64]


def group_text(value: Any, name: str) -> bytes | None:
    """Return the text of a group that is hashed, in UTF-8; None if the value is missing. Bytes are their own text.

    A tuple, as for a group that two columns define, has the texts of its values, each after its length in bytes.
    """
    if isinstance(value, tuple):
        texts = [group_text(part, name) for part in value]
        return None if None in texts else b"".join(b"%d:%b," % (len(text), text) for text in texts if text is not None)
    plain = str(value) if type(value).__name__ == "UUID" else plain_value(value, name)
    if plain is None or isinstance(plain, bytes):
        return plain
    if isinstance(plain, int | float | Decimal):
        plain = _number_text(plain)
    elif isinstance(plain, datetime):
        plain = plain.isoformat(sep=" ")
    elif isinstance(plain, date):
        plain = plain.isoformat()
    return str(plain).encode("utf-8", "surrogatepass")


def _number_text(value: int | float | Decimal) -> str:
    """Return the shortest text of a number: an integer if it is one, else the shortest decimal fraction."""
    finite = isinstance(value, int) or (value.is_finite() if isinstance(value, Decimal) else abs(value) < np.inf)
    if finite and value == int(value):
        return str(int(value))
    short = repr(float(value))
    return short if not isinstance(value, Decimal) or Decimal(short) == value else str(value.normalize())


def hash_values(values: Sequence[Any], name: str) -> tuple[Hashes, NDArray[np.bool_]]:
    """Return the hash of each value of a column of groups, and whether it is missing."""
    texts = [b"%d" % value if type(value) is int else group_text(value, name) for value in values]
    missing = np.array([text is None for text in texts], np.bool_)
    digests = b"".join([md5(text or b"", usedforsecurity=False).digest()[:8] for text in texts])
    return np.frombuffer(digests, ">u8").astype(np.uint64), missing
