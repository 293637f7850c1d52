"""`truthcal merge`: merge sketches into one."""

from truthcal.cli.commands.sketch import write_sketch
from truthcal.cli.inputs import merge_input_sketches
from truthcal.cli.output_files import refuse_unwritable
from truthcal.cli.request import Request


def run(request: Request) -> int:
    """Run `truthcal merge`."""
    refuse_unwritable(request, request.output, may_be_input=True)
    whole = merge_input_sketches(request.files)
    write_sketch(request, whole, f"{whole!r}")
    return 0
