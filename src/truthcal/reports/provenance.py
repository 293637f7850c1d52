"""How to reproduce a report: what the caller says of it, versions, and the date."""

import datetime
import platform
from collections.abc import Mapping
from importlib.metadata import version

import truthcal


def origin(provenance: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Rows of the table that says how the report was made."""
    return [
        *(provenance or {}).items(),
        ("Versions", f"truthcal {truthcal.__version__}, Python {platform.python_version()}, {_versions()}"),
        ("Date", f"{today():%Y-%m-%d} (UTC)"),
    ]


def today() -> datetime.date:
    """The date, by which alone two reports of the same input differ."""
    return datetime.datetime.now(datetime.UTC).date()


def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
