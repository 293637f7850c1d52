"""The fixture `engine`: one test body for every engine."""

import warnings

import pytest
from support.engines import ENGINES, LENIENT
from support.servers import quiet_spark, spark_session


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    """A function from an Arrow table to a frame of this engine."""
    constructor = ENGINES[request.param]

    def frame(table):
        return constructor(table, tmp_path)

    frame.name = request.param
    with quiet_spark():
        # ibis calls what DuckDB has renamed
        warnings.filterwarnings("ignore", message=r"fetch_arrow_table\(\) is deprecated", category=DeprecationWarning)
        yield frame
    if request.param == "spark, not ANSI":
        for name in LENIENT:
            spark_session().conf.set(name, "true")
