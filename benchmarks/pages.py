"""Pages that simulations write: tables in Markdown, and writing or printing a page."""

import argparse
from collections.abc import Callable, Sequence
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


def simulate_page(description: str | None, path: Path, page: Callable[[int, int], str], *, repeats: int) -> None:
    """Run a script that simulates a page: parse its options, simulate, and write or print the page.

    `page` takes the numbers of repeats and of processes and returns the text.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--print", action="store_true", dest="show", help="print the page instead of writing it")
    arguments = parser.parse_args()
    write_page(path, page(arguments.repeats, arguments.processes), show=arguments.show)
