"""`truthcal test`: a p-value for any measure."""

import truthcal as tc
from truthcal.cli.inputs import read_inputs
from truthcal.cli.model_result import rows_or_sketch
from truthcal.cli.output import print_formatted
from truthcal.cli.request import Request, refuse_unknown_measures


def run(request: Request) -> int:
    """Run `truthcal test`."""
    refuse_unknown_measures(request)
    data = read_inputs(request)
    loaded = data.only_model("test")
    rows, weight = rows_or_sketch(loaded)
    result = tc.calibration_test(
        *rows,
        measure=request.measure,
        method=request.method,
        alternative=request.alternative,
        n_resamples=request.n_resamples,
        rng=request.seed,
        sample_weight=weight,
        hard=request.hard,
        groups=loaded.groups,
        labels=loaded.labels,
    )
    print_formatted(request, result, {"input": data.to_dict(), "test": result.to_dict()})
    return 0
