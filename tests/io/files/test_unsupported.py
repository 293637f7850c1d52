"""Files of other programs: each error says what the file is and how to convert it."""

import subprocess
import sys

import pandas as pd
import pyarrow.feather
import pytest

import truthcal as tc
from truthcal.io.files.unsupported import advice_for_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("f.xlsx", r"""f.xlsx: is an Excel workbook. Save the sheet as CSV, or convert it: python -c 'import pandas as pd; pd.read_excel\("f.xlsx"\).to_parquet\("f.parquet"\)'"""),
        ("f.XLS", "is an Excel workbook"),
        ("f.npy", r'numpy arrays, which have no column names. Write a table: pd.DataFrame\({"y": y, "p": p}\).to_parquet\("f.parquet"\)'),
        ("f.npz", "is a file of numpy arrays"),
        ("f.pkl", "is a pickle, which is not read because loading one runs any code in it"),
        ("f.pickle", "is a pickle"),
        ("f.joblib", "is a pickle"),
        ("f.pt", "is a file of model weights, not of predictions"),
        ("f.h5", r'is an HDF5 file. Convert it: .*pd.read_hdf\("f.h5"\)'),
        ("f.sas7bdat", r"is a SAS file. Convert it: .*read_sas"),
        ("f.sav", r"is an SPSS file. Convert it: .*read_spss"),
        ("f.dta", r"is a Stata file. Convert it: .*read_stata"),
        ("f.db", r"is a SQLite database. Export the table: sqlite3 -csv -header f.db"),
        ("f.duckdb", "is a DuckDB database. Export the table: duckdb f.duckdb"),
        ("f.orc", "is an ORC file"),
        ("f.avro", "is an Avro file"),
        ("f.rds", "is a file of R"),
        ("f.mat", "is a file of MATLAB"),
        ("f.zip", "is an archive. Unpack it"),
        ("f.csv.xz", "is compressed with xz. Decompress it: xz -dk f.csv.xz"),
        ("my file.html", r"""is a web page. Convert the table: .*read_html\("my file.html"\)\[0\]"""),
        ("f.pdf", "is a PDF"),
    ],
)  # fmt: skip
def test_extensions(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=message):
        tc.scan(tmp_path / name, y_true="y", y_proba="p")


def test_folder_of_such_files(tmp_path):
    (tmp_path / "f.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match="is an Excel workbook"):
        tc.scan(tmp_path, y_true="y", y_proba="p")


def test_advised_command_works(tmp_path):
    """The one for Stata, which pandas reads without another library."""
    pd.DataFrame({"y": [0, 1], "p": [0.25, 0.75]}).to_stata(tmp_path / "f.dta", write_index=False)
    advice = advice_for_path(tmp_path / "f.dta")
    code = advice.split("python -c '")[1].removesuffix("'")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert tc.scan(tmp_path / "f.parquet", y_true="y", y_proba="p").n == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"PK\x03\x04rest",
            "could not be read as CSV, whatever its name says: it is an Excel workbook or a zip archive",
        ),
        (b"\x93NUMPYrest", "it is a numpy array"),
        (b"\x89HDFrest", "it is an HDF5 file"),
        (b"\x80\x04rest", "it is a pickle"),
        (b"Obj\x01rest", "it is an Avro file"),
    ],
)
def test_content_that_is_not_what_the_name_says(tmp_path, content, message):
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        tc.scan(tmp_path / "f.csv", y_true="y", y_proba="p")


def test_feather(tmp_path):
    table = pyarrow.table({"y": [0, 1], "p": [0.25, 0.75]})
    pyarrow.feather.write_feather(table, tmp_path / "two.feather")
    assert tc.scan(tmp_path / "two.feather", y_true="y", y_proba="p").n == 2
    (tmp_path / "one.feather").write_bytes(b"FEA1" + bytes(60) + b"FEA1")  # as files of version 1 start and end
    with pytest.raises(
        ValueError, match=r"it is a Feather file of version 1; write it with pyarrow.feather.write_feather"
    ):
        tc.scan(tmp_path / "one.feather", y_true="y", y_proba="p")


def test_header_that_looks_like_a_format(tmp_path):
    (tmp_path / "f.csv").write_text("ORC,FEA1\n0,0.5\n1,0.5\n")
    assert tc.scan(tmp_path / "f.csv", y_true="ORC", y_proba="FEA1").n == 2
