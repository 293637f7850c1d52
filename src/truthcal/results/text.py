"""Tables in Markdown, in which text that comes from data stays text."""

from collections.abc import Iterable, Sequence

# What Markdown or HTML would take for its own. A backslash comes first, or it would escape what escapes the others.
_MEANT = {
    "\\": "\\\\",
    "|": "\\|",
    "`": "\\`",
    "*": "\\*",
    "_": "\\_",
    "[": "\\[",
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
}


def literal(text: str) -> str:
    """Text that shows as it is."""
    return " ".join("".join(_MEANT.get(letter, letter) for letter in text).split())


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table with columns of text that shows as it is; those numbered in `right` are aligned to the right."""
    lines = [header, ["---:" if k in right else "---" for k in range(len(header))]]
    body = [[literal(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*lines, *body])
