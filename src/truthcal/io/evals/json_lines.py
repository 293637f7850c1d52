"""Lines of a JSON lines file as Python objects, for formats whose values have mixed types."""

import json
from collections.abc import Iterator
from typing import Any

from truthcal.io.files.source import Source, errors_naming
from truthcal.io.files.text_input import UTF8_MARK, TextInput, require_utf8


def read_objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON lines file and their row numbers, from 0. Blank lines are skipped."""
    with errors_naming(source), TextInput(source) as text:
        require_utf8(source, text.head(1 << 12))
        for row, line in enumerate(filter(bytes.strip, _lines(text))):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{source}: row {row} is not JSON ({error}); each line must be one object.") from None
            if not isinstance(value, dict):
                start = line[:40].decode("utf-8", "replace")
                raise ValueError(f"{source}: row {row} is not an object ({start!r}); each line must be one object.")
            yield row, value


def _lines(text: TextInput) -> Iterator[bytes]:
    rest = text.read(1 << 20).removeprefix(UTF8_MARK)
    while block := text.read(1 << 20):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    yield from rest.split(b"\n")
