"""Whom to tell that code is being compiled. Imports nothing, so that the command line can set it at no cost."""

from collections.abc import Callable

# Called before each kernel is compiled that is not in the cache.
on_compile: Callable[[], None] | None = None
