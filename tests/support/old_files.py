"""Files of earlier format versions, written from docs/reference/sketch-format.md."""

import hashlib
import struct


def sealed(body):
    """Return the bytes with their checksum."""
    return body + hashlib.sha256(body).digest()


def version_1(sketch):
    """Return the bytes of a sketch as version 1 wrote them."""
    filled, columns = sketch._filled()
    header = struct.pack("<8sIII", b"TRUTHCAL", 1, sketch.n_buckets, len(filled))
    return sealed(header + filled.astype("<u4").tobytes() + columns.astype("<f8").tobytes())
