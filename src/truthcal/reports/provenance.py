"""Provenance of a report: what the caller passes, versions, and the date."""

import datetime
import platform
from collections.abc import Mapping
from importlib.metadata import version

import truthcal


def provenance_rows(provenance: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Return the rows of the provenance table, which says how the report was made."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    return [
        *(provenance or {}).items(),
        ("Versions", f"truthcal {truthcal.__version__}, Python {platform.python_version()}, {libraries}"),
        ("Date", f"{today():%Y-%m-%d} (UTC)"),
    ]


def today() -> datetime.date:
    """Return the date for the provenance, the only difference between two reports of the same input."""
    return datetime.datetime.now(datetime.UTC).date()
