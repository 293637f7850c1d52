"""How tests of the command line run it: as a process of its own, in a terminal, or (quickly) in this one."""

import contextlib
import io
import os
import pty
import select
import subprocess
import sys
import time

import numpy as np
import pytest
from support.cli import COMMAND, Done

from truthcal.cli.main import main


@pytest.fixture
def process(tmp_path):
    """Run the command line as a user does."""

    def run(*arguments, stdin=None, env=None, cwd=tmp_path, check=None):
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            capture_output=True,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            check=False,
            timeout=300,
            **given,
        )
        result = Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        assert check is None or result.status == check, result
        return result

    return run


@pytest.fixture
def terminal(tmp_path):
    """Run the command line in a pseudo-terminal: all that a person would see, as one text."""

    def run(*arguments, env=None, seconds=300):
        pid, master = pty.fork()
        if pid == 0:  # the child, whose stdin, stdout and stderr are the terminal
            os.chdir(tmp_path)
            os.environ.update({"TERM": "xterm-256color", "COLUMNS": "120", **(env or {})})
            os.execv(COMMAND[0], [*COMMAND, *map(str, arguments)])
        text, end = b"", time.monotonic() + seconds
        with contextlib.suppress(OSError):  # the terminal is gone when the child is
            while time.monotonic() < end:
                if select.select([master], [], [], 1.0)[0]:
                    part = os.read(master, 65536)
                    if not part:
                        break
                    text += part
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return Done(os.waitstatus_to_exitcode(status), text.decode(), "")

    return run


@pytest.fixture
def quick(capsys, monkeypatch, tmp_path):
    """Run the command line in this process, where what is compiled and imported need not be so again."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None, check=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as stop:  # argparse ends the program itself
            status = stop.code
        result = Done(status, *capsys.readouterr())
        assert check is None or result.status == check, result
        return result

    return run


@pytest.fixture
def write(tmp_path):
    """Write columns as a CSV file."""

    def run(name="predictions.csv", **columns):
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return run


@pytest.fixture(scope="session")
def events():
    """Calibrated and overconfident predictions of 900 events in three regions."""
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.02, 0.98, 900).round(5)
    outcome = (rng.random(900) < truth).astype(int)
    odds = (truth / (1 - truth)) ** 2.5
    return {
        "hit": outcome.tolist(),
        "score": truth.tolist(),
        "sure": (odds / (1 + odds)).round(5).tolist(),
        "region": [("north", "south", "west")[i % 3] for i in range(900)],
        "id": list(range(900)),
    }
