"""Write docs/theory/paper.md and its figures: every numbered item of the paper, recomputed. Run it with `make paper`.

Exits with status 1, and names the item, if a number leaves its range. Seeded; about a minute if the machine is free.
"""

import importlib
import math
import re
import sys
from pathlib import Path
from typing import Any

from paper import figures, section_2_truthfulness
from paper.items import IMPORTS, Item, Numbers, Section
from paper.section_5_appendices import AVERAGING, BRIER, CONVERGENCE, TESTING
from paper.sections_1_2 import INTRODUCTION
from paper.sections_3_4 import ATB, UBSE

THEORY = Path(__file__).parent / "theory"
SECTIONS: tuple[Section, ...] = (
    INTRODUCTION, section_2_truthfulness.PRELIMINARIES, UBSE, ATB, TESTING, AVERAGING, BRIER, CONVERGENCE,
)  # fmt: skip
# Items with more numbers than this show them in their own table only.
MOST_NUMBERS = 6
HEAD = """\
# The paper, item by item

Written by `make paper`; do not edit.

Every definition, theorem, lemma, claim, example, remark, table and figure of Hartline, Hu, Wu (2025), *A perfectly
truthful calibration measure* ([arXiv:2508.13100](https://arxiv.org/abs/2508.13100)), by its number: the function of
truthcal, the test, what is sharper here than there, and its numbers recomputed. Tests without a file are in
`tests/test_paper.py`, other files in `tests/`. Statements F1, M1, I1, A1, ... are on the theory pages
([ATB, smCal and inequalities](foundations.md), [other measures](measures.md), [inference](inference.md)). T is the
number of rows.

Below each table, every item has its code, and beside each number the paper's own and the range in which the number
must lie. `make paper` runs exactly this code and fails if a number leaves its range. To recompute an entry, run these
imports, then the code of the item, and call the function. Random numbers have fixed seeds.

```python
{imports}

Numbers = dict[str, float]
```
"""


def statement_links() -> dict[str, str]:
    """Return a Markdown link for each numbered statement of the theory pages."""
    links = {}
    for page in ("foundations.md", "measures.md", "inference.md"):
        anchor = ""
        for line in (THEORY / page).read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                anchor = re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-")
            if statement := re.match(r"\*\*[A-Z][a-z]+ ([A-Z]\d+)\b", line):
                links[statement[1]] = f"[{statement[1]}]({page}#{anchor})"
    return links


def link_statements(text: str, links: dict[str, str]) -> str:
    """Replace each {F1} by a link to that statement."""
    return re.sub(r"\{([A-Z]\d+)\}", lambda match: links[match[1]], text)


def formatted(value: float) -> str:
    """Format a number with six digits; what is 0 up to rounding is 0."""
    return f"{value:.6g}" if abs(value) > 1e-12 else "0"


def reproduced(item: Item, numbers: Numbers) -> str:
    """Return the cell "reproduced" of an item."""
    if item.see:
        return f"see [{item.see}](#{item.see.lower().replace(' ', '-').replace('.', '-')})"
    if len(numbers) > MOST_NUMBERS:
        return f"[all {len(numbers)} numbers](#{item.anchor})"
    papers = [f" (paper: {item.accepted[label].paper})" if item.accepted[label].paper else "" for label in numbers]
    cells = zip(numbers.items(), papers, strict=True)
    return "<br>".join(f"{label}: **{formatted(value)}**{paper}" for (label, value), paper in cells)


def table(rows: list[list[str]]) -> str:
    """Format a Markdown table; the first row is the head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def details(item: Item, numbers: Numbers) -> str:
    """Return the collapsed code of an item, with its numbers and their ranges."""
    head = ["number", "the paper", "must be", "reproduced"]
    rows = [
        [label, item.accepted[label].paper, str(item.accepted[label]), formatted(value)]
        for label, value in numbers.items()
    ]
    title = f'<details id="{item.anchor}"><summary>{item.number}: code and numbers</summary>'
    return f"{title}\n\n```python\n{item.source()}\n```\n\n{table([head, *rows])}\n\n</details>"


def table_1(numbers: Numbers) -> str:
    """Format the paper's Table 1."""
    measures = ("smCal", "distCal", "l2-distCal", "ATB")
    columns = [f"{measure}, {report}" for measure in measures for report in ("avg", "truth")]
    states = {"(0, 0)": "3/16", "(1, 1)": "3/16", "(0, 1)": "9/16", "(1, 0)": "1/16", "expected": ""}
    rows = [
        [chance, state, *(formatted(round(numbers[f"{column}, {state}"], 6)) for column in columns)]
        for state, chance in states.items()
    ]
    caption = (
        "**Table 1.** Errors of two predictors of two points with true probabilities 25% and 75%: avg reports 50% "
        "twice, truth reports 25% and 75%. In the paper, distCal and l2-distCal of the truth have only bounds in the "
        "last three rows: > 0, > 0 and > 0.1875; > 0, > 0 and > 0.11."
    )
    return f"{table([['prob.', 'states', *columns], *rows])}\n\n{caption}"


def constants() -> str:
    """Search for counterexamples to the constants, and format the worst ratios beside them."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    search: Any = importlib.import_module("constants")
    rows = [["statement", "constant in the paper", "here", "worst ratio found", "proof"]]
    for found in search.worst_ratios():
        if found.worst > found.proved * (1 + 1e-6):
            raise ValueError(f"{found.theorem}: {found.statement}, and a search found {found.worst:.9g}.")
        paper = "" if math.isnan(found.paper) else f"{found.paper:.4g}"
        statement = re.sub(r"\|(\w+)\|", r"abs(\1)", found.statement)
        rows.append([statement, paper, f"{found.proved:.4g}", f"{found.worst:.4g}", f"{{{found.theorem}}}"])
    caption = "**Constants.** Worst ratios of a search for counterexamples, `python benchmarks/constants.py`."
    return f"{table(rows)}\n\n{caption}"


def section_text(section: Section, links: dict[str, str]) -> str:
    """Run the code of a section's items, and return its part of the page."""
    rows = [["item", "statement", "truthcal, test", "theirs / sharper here", "reproduced"]]
    codes, extra = [], []
    for item in section:
        numbers = item.numbers()
        sharper = link_statements(item.sharper, links) or "the same"
        name = f"[{item.number}](#{item.anchor})" if item.code else item.number
        tests = "".join(f"<br>test: `{one}`" for one in item.test.split(", ") if one != "-")
        statement, uses = f"*{item.title}*: {item.statement}", f"{item.uses}{tests}"
        rows.append([name, statement, uses, sharper, reproduced(item, numbers)])
        if item.code:
            codes.append(details(item, numbers))
        if item.number == "Table 1":
            extra = [table_1(numbers)]
        if item.number == "Theorem 4.9":
            extra = [link_statements(constants(), links)]
    pictures = figures.text(section.title)
    return "\n\n".join([f"## {section.title}", table(rows), *pictures, *extra, *codes])


def main() -> int:
    """Write the page and its figures."""
    links = statement_links()
    try:
        parts = [section_text(section, links) for section in SECTIONS]
    except ValueError as error:
        sys.stderr.write(f"The paper is not reproduced. {error}\n")
        return 1
    (THEORY / "figures").mkdir(exist_ok=True)
    for name, svg in figures.draw_all():
        (THEORY / "figures" / f"{name}.svg").write_text(svg, encoding="utf-8")
    page = "\n\n".join([HEAD.format(imports=IMPORTS.rstrip()), *parts, *figures.text("")])
    (THEORY / "paper.md").write_text(page + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
