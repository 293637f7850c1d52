"""Small files of rows, and the one-line errors expected of bad ones."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truthcal as tc

HEAD = "y,p\n"
CSV = HEAD + "1,0.5\n0,0.25\n"


def scan(paths, **given):
    return tc.scan(paths, **{"y_true": "y", "y_proba": "p", "n_buckets": 64, **given})


def write(path, rows):
    columns = {name: pa.array(values, pa.float64()) for name, values in rows.items()}
    pq.write_table(pa.table(columns), path, row_group_size=4)


def write_text(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refused(kind, pattern, paths, **given):
    """The scan ends with one line that has all of the pattern, in an error of this very kind."""
    with pytest.raises(kind, match=pattern) as caught:
        scan(paths, **given)
    assert "\n" not in str(caught.value)
    assert type(caught.value).__module__ == "builtins"
