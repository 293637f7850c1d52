"""`truthcal sketch`: reduce rows to a small file that can be merged later."""

from truthcal.cli.inputs import read
from truthcal.cli.output import print_message, print_result
from truthcal.cli.output_files import STDOUT, refuse_unwritable, write_file
from truthcal.cli.request import Request
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable


def run(request: Request) -> int:
    """Run `truthcal sketch`."""
    refuse_unwritable(request, request.output)
    data = read(request, exact_rows=0)
    loaded = data.only_model("sketch")
    sketch = loaded.sketch if loaded.table is None else loaded.table
    save(request, sketch, f"{loaded.n:,} rows of {data.where}")
    return 0


def save(request: Request, sketch: Sketch | SketchTable, description: str) -> None:
    """Write a sketch, and print the name of its file."""
    path = request.output or STDOUT
    write_file(path, sketch.to_bytes())
    if path != STDOUT:
        print_message(request, f"wrote {path}: {description}")
        print_result(path)
