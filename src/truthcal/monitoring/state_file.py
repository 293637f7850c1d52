"""The file of a monitor: its parameters, clock, pending rows and blocks as bytes. No pickle."""

import json
from collections.abc import Hashable
from typing import Any

import numpy as np

from truthcal.core.cell_codec import compress, decompress
from truthcal.core.group_keys import to_json, value_from_json
from truthcal.monitoring.blocks import WIDTH, Blocks
from truthcal.monitoring.pending import PendingRow, PendingRows, ScoredRow


def pack_blocks(blocks: Blocks) -> bytes:
    """Compress the sums of all blocks. Most are 0; those of one kind stand together."""
    return compress(np.ascontiguousarray(np.vstack([blocks.starts, blocks.sums.T]).astype("<i8")).tobytes())


def unpack_blocks(data: memoryview, n_blocks: int, now: int) -> Blocks | None:
    """Read blocks up to the window `now`; None if they are not what `pack_blocks` writes."""
    raw = decompress(data, 8 * (WIDTH + 1) * n_blocks)
    if raw is None:
        return None
    content = np.frombuffer(raw, "<i8").astype(np.int64).reshape(WIDTH + 1, n_blocks)
    expected = Blocks()
    expected.advance(now)
    if not np.array_equal(expected.starts, content[0]):
        return None
    expected.sums = np.ascontiguousarray(content[1:].T)
    return expected


def pack_pending(pending: PendingRows) -> dict[str, Any]:
    """Return pending rows in JSON types."""
    rows = [
        [to_json(row_id), row.p.hex(), row.due, to_json(row.group), row.y, row.left_out]
        for row_id, row in pending.rows.items()
    ]
    return {"rows": rows, "known": [value.hex() for value in pending.known], "too_late": pending.too_late}


def unpack_pending(content: dict[str, Any]) -> PendingRows:
    """Read what `pack_pending` returns."""
    rows: dict[Hashable, PendingRow] = {
        value_from_json(row_id): PendingRow(float.fromhex(p), due, value_from_json(group), y, left_out)
        for row_id, p, due, group, y, left_out in content["rows"]
    }
    return PendingRows(rows, [float.fromhex(value) for value in content["known"]], content["too_late"])


def pack_open(rows: list[ScoredRow]) -> list[Any]:
    """Return rows of groups in the current window in JSON types."""
    return [[row.p.hex(), row.y, to_json(row.group)] for row in rows]


def unpack_open(content: list[Any]) -> list[ScoredRow]:
    """Read what `pack_open` returns."""
    return [ScoredRow(float.fromhex(p), y, value_from_json(group)) for p, y, group in content]


def pack_meta(meta: dict[str, Any]) -> bytes:
    """Compress the JSON part of a file."""
    return json.dumps(meta, separators=(",", ":")).encode("ascii")
