"""Pages that simulations write: tables in Markdown, and writing or printing a page."""

from collections.abc import Sequence
from pathlib import Path


def table(header: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows with numbers on the right."""
    sides = ["---:" if cell[:1].isdigit() else "---" for cell in rows[0]]
    return ["", header, f"|{'|'.join(sides)}|", *(f"| {' | '.join(row)} |" for row in rows)]


def write_page(path: Path, text: str, *, show: bool) -> None:
    """Write a page, or print it instead."""
    if show:
        print(text)
    else:
        path.write_text(text, encoding="utf-8")
