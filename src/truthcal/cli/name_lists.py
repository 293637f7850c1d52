"""Lists of names in one argument: `--proba a,b` is the same as `--proba a --proba b`."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from truthcal.cli.request import Request


def split_names(names: Iterable[str]) -> tuple[str, ...]:
    """Split all names at commas, before it is known which columns exist."""
    return tuple(part for name in names for part in _parts(name))


def expand_names(names: Sequence[str], columns: Collection[str]) -> tuple[str, ...]:
    """Split names at commas, except those of columns that exist."""
    return tuple(part for name in names for part in ([name] if name in columns else _parts(name)))


def with_split_names(request: Request) -> Request:
    """Return the request with all lists of columns split."""
    return replace(request, proba=split_names(request.proba), by=split_names(request.by))


def with_expanded_names(request: Request, typed: Request, columns: Collection[str]) -> Request:
    """Return the request with the lists of columns as `typed`, split unless such a column exists."""
    proba = expand_names(typed.proba, columns) or request.proba
    return replace(request, proba=proba, by=expand_names(typed.by, columns))


def _parts(name: str) -> list[str]:
    parts = [part.strip() for part in name.split(",")]
    return [part for part in parts if part] if any(parts) else [name]
