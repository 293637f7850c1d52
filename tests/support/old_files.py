"""Files of earlier format versions, written from docs/reference/sketch-format.md."""

import hashlib
import struct


def sealed(body):
    """Return the bytes with their checksum."""
    return body + hashlib.sha256(body).digest()


def version_1(sketch):
    """Return the bytes of a sketch as version 1 wrote them: without the sums of w^2 c, w^3, w^4 and the top weights."""
    filled, columns = sketch._filled()
    columns = columns[[*range(10), 13, 14]]
    header = struct.pack("<8sIII", b"TRUTHCAL", 1, sketch.n_buckets, len(filled))
    return sealed(header + filled.astype("<u4").tobytes() + columns.astype("<f8").tobytes())
