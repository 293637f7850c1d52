"""Compiled loops: valid arrays in, numbers out.

Nothing here raises, has a default or knows the public API. A loop over rows takes them as arrays of one length:
predictions ``p``, outcomes ``y`` and weights ``w`` (a broadcast 1.0 when there are none), sorted by ``p`` where it
integrates.

Running sums of signed terms are kept as an unevaluated pair (high, low), exact to about 1e-31, so that cancellation in
the cumulative bias costs nothing.

A kernel calls only kernels of its own file and what `_compile.py` holds: numba's disk cache watches the file of the
kernel it loads, so a helper edited in another file leaves its callers stale. After editing `_compile.py`, `make clean`.
"""
