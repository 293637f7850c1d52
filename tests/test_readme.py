"""What the README shows is what its code prints."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(code, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def test_examples_print_what_the_readme_shows():
    import truthcal as tc

    first, second = blocks("python")
    shown = README.split(first)[1].split("```")[2].lstrip("\n")
    assert run(first, {}) == shown
    assert run(second, {"tc": tc}).strip() == second.rsplit("# ", 1)[1].strip()


def test_the_two_commands_come_first():
    assert re.findall(r"^make (\w+)", blocks("sh")[0], re.MULTILINE) == ["demo", "test"]
