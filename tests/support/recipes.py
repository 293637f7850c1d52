"""Run the blocks of a recipe of docs/cookbook/ in order, in the working folder.

A ```python block is run; if its first line is `# name.py`, it is written to that file instead. A ```sh block is run by
bash. A block without a language that follows either is its expected output (of sh: what it prints to stdout).

`python tests/support/recipes.py docs/cookbook/torch.md` writes the output of a recipe into its page.
"""

import ast
import contextlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FILE_NAME = re.compile(r"# ([\w-]+\.\w+)\n")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page):
    """The blocks that are run: language, code, and the output that the page shows ("" if none)."""
    found = [*BLOCK.findall(page), ("end", "")]
    for (language, code), (following, output) in itertools.pairwise(found):
        if language in ("python", "sh"):
            yield language, code, output if following == "" else ""


def libraries(page):
    """Names of the libraries that a recipe imports, without the files that it writes."""
    blocks = [code for language, code, _ in examples(page) if language == "python"]
    own = {name[1].partition(".")[0] for code in blocks if (name := FILE_NAME.match(code)) is not None}
    found = set()
    for node in [node for code in blocks for node in ast.walk(ast.parse(code))]:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names}
    return sorted(found - own)


def run(language, code, names):
    """Run one block and return what it prints. Python blocks share `names`."""
    if language == "sh":
        return _run_shell(code)
    if (name := FILE_NAME.match(code)) is not None:
        Path(name[1]).write_text(code, encoding="utf-8")
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<recipe>", "exec"), names)
    return out.getvalue()


def _run_shell(code):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(["bash", "-e", "-c", code], env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{code}\nexit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def refresh(path):
    """Run a recipe in an empty folder, and write its output into the page."""
    page, names = path.read_text(encoding="utf-8"), {"__name__": "recipe"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.path.insert(0, folder)
        for language, code, _ in examples(page):
            start = f"```{language}\n{code}```\n"
            printed = run(language, code, names).rstrip()
            new = f"{start}\n```\n{printed}\n```\n" if printed else start
            old = re.compile(re.escape(start) + r"(?:\n```\n.*?^```\n)?", re.MULTILINE | re.DOTALL)
            page = old.sub(lambda _, new=new: new, page, count=1)
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())
