"""Compiled loops: valid arrays in, numbers out.

Kernels do not raise, have no default arguments and do not depend on the public API. Rows are arrays of equal length:
predictions ``p``, outcomes ``y`` and weights ``w`` (a broadcast 1.0 if there are none), sorted by ``p`` for integrals.

Running sums of signed terms are unevaluated pairs (high, low), exact to about 1e-31, so that cancellation in the
cumulative bias loses no digits.

A kernel calls only kernels of its own file and of `jit.py`: numba's disk cache checks only the file of the kernel that
it loads, so editing a helper in another file would leave its callers stale. After editing `jit.py`, run `make clean`.
"""
