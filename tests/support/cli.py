"""What tests of the command line share."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "truthcal"]
SCHEMA = json.loads((ROOT / "docs" / "reference" / "cli-schema-v1.json").read_text())


class Done(NamedTuple):
    status: int
    out: str
    err: str


def valid(text):
    """JSON as the documented schema has it, without NaN."""
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    return content
