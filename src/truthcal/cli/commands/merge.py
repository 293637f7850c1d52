"""`truthcal merge`: merge sketches into one."""

from truthcal.cli.commands.sketch import write_sketch
from truthcal.cli.inputs import merge_input_sketches, roll_up_sketch
from truthcal.cli.output_files import refuse_unwritable
from truthcal.cli.request import Request
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.results.text import count, rows_in_groups


def run(request: Request) -> int:
    """Run `truthcal merge`."""
    refuse_unwritable(request, request.output, may_be_input=True)
    whole = merge_input_sketches(request.files)
    sketch = roll_up_sketch(whole, request.by, request.files[0]) or whole
    write_sketch(request, sketch, _describe(sketch))
    return 0


def _describe(sketch: Sketch | SketchTable) -> str:
    if isinstance(sketch, Sketch):
        return rows_in_groups(sketch.n, None if sketch.flips is None else sketch.flips.n_groups)
    return f"{count(sketch.total().n, 'row')} in {count(len(sketch), 'segment')} by {', '.join(sketch.by)}"
