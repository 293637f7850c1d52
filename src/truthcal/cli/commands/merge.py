"""`truthcal merge`: merge sketches into one."""

from truthcal.cli.commands.sketch import write_sketch
from truthcal.cli.inputs import merge_input_sketches, roll_up_sketch
from truthcal.cli.output_files import refuse_unwritable
from truthcal.cli.request import Request


def run(request: Request) -> int:
    """Run `truthcal merge`."""
    refuse_unwritable(request, request.output, may_be_input=True)
    whole = merge_input_sketches(request.files)
    sketch = roll_up_sketch(whole, request.by, request.files[0]) or whole
    write_sketch(request, sketch, f"{sketch!r}")
    return 0
