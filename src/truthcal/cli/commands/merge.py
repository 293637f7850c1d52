"""`truthcal merge`: merge sketches into one."""

from truthcal.cli.commands.sketch import save
from truthcal.cli.inputs import merge_sketches
from truthcal.cli.output_files import refuse_unwritable
from truthcal.cli.request import Request


def run(request: Request) -> int:
    """Run `truthcal merge`."""
    refuse_unwritable(request, request.output, may_be_input=True)
    whole = merge_sketches(request.files)
    save(request, whole, f"{whole!r}")
    return 0
