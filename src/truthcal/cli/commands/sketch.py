"""`truthcal sketch`: reduce rows to a small file that can be merged later."""

from truthcal.cli.inputs import read_inputs
from truthcal.cli.output import print_exactly, print_message
from truthcal.cli.output_files import STDOUT, refuse_unwritable, write_file
from truthcal.cli.request import Request
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.results.text import count


def run(request: Request) -> int:
    """Run `truthcal sketch`."""
    refuse_unwritable(request, request.output)
    data = read_inputs(request, exact_rows=0)
    loaded = data.only_model("sketch")
    sketch = loaded.sketch if loaded.table is None else loaded.table
    assert sketch is not None  # no rows were kept
    write_sketch(request, sketch, f"{count(loaded.n, 'row')} of {data.where}")
    for note in data.facts.notes:
        print_message(request, note)
    return 0


def write_sketch(request: Request, sketch: Sketch | SketchTable, description: str) -> None:
    """Write the output of `truthcal sketch` or `merge`, and print the name of its file."""
    path = request.output or STDOUT
    write_file(path, sketch.to_bytes())
    if path != STDOUT:
        print_message(request, f"wrote {path}: {description}")
        print_exactly(path)
