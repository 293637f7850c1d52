"""Write the table of all measures into guide/choosing-a-measure.md: `.venv/bin/python docs/make_tables.py`.

With `--check`, write nothing and exit with status 1 if the page is out of date.
"""

import argparse
import math
import sys
from pathlib import Path

import truthcal as tc

PAGE = Path(__file__).parent / "guide" / "choosing-a-measure.md"
START, END = "<!-- begin: docs/make_tables.py -->", "<!-- end: docs/make_tables.py -->"
FLAGS = ("truthful", "continuous", "complete", "sound")


def exactness(tolerance: float) -> str:
    """Format how close the value is to its definition."""
    if math.isnan(tolerance):
        return "random draws"
    return f"{tolerance:.0e}".replace("e-0", "e-") if tolerance else "exact"


def lies(measure: tc.Measure) -> str:
    """Format the factor by which lying can pay, with the measured ones."""
    if measure.truthful:
        return "1"
    few, many = measure.lie_ratios
    return f"{measure.lie_factor}: {few:.3g}, {many:.3g}"


def row(name: str, measure: tc.Measure) -> list[str]:
    """Return the cells of one measure."""
    flags = ["yes" if getattr(measure, flag) else "no" for flag in FLAGS]
    span = f"{measure.best:g}..{measure.worst:g}"
    facts = [lies(measure), span, measure.cost, exactness(measure.tolerance), measure.reference]
    return [f"`{name}`", measure.scale, *flags, *facts]


def table() -> str:
    """Format MEASURES as a Markdown table."""
    head = ["measure", "scale", *FLAGS, "factor of a lie", "range", "time for n rows", "exactness", "reference"]
    lines = [head, ["---"] * len(head), *(row(name, measure) for name, measure in tc.MEASURES.items())]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def page_with_table(page: str) -> str:
    """Replace the table between the markers."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> int:
    """Write the table, or check that it is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    check = parser.parse_args().check
    old = PAGE.read_text(encoding="utf-8")
    new = page_with_table(old)
    if check and new != old:
        sys.stderr.write(f"{PAGE.name} is out of date: run `python docs/make_tables.py`.\n")
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
