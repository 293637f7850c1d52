"""Advice for files of other programs, which are not read: how to convert them, by extension and by first bytes."""

import shlex
from pathlib import Path

_PANDAS = "python -c 'import pandas as pd; {read}.to_parquet(\"{stem}.parquet\")'"
_PICKLE = (
    "a pickle, which is not read because loading one runs any code in it. If you trust it, load it where it was "
    'written, and save the table: frame.to_parquet("{stem}.parquet")'
)
_ARRAY = (
    "a file of numpy arrays, which have no column names. Write a table: "
    'pd.DataFrame({{"y": y, "p": p}}).to_parquet("{stem}.parquet")'
)
_MODEL = "a file of model weights, not of predictions. Predict first, and write outcomes and probabilities as a table."
_EXCEL = "an Excel workbook. Save the sheet as CSV, or convert it: " + _PANDAS
_HDF = "an HDF5 file. Convert it: " + _PANDAS
_SQLITE = 'a SQLite database. Export the table: sqlite3 -csv -header {name} "SELECT * FROM predictions" > {stem}.csv'
_ARCHIVE = "an archive. Unpack it, and pass the files in it."
_XZ = "compressed with xz. Decompress it: xz -dk {name}. Or pipe it: xz -dc {name} | truthcal assess -"

# Extension -> the kind of file, and how to convert it.
_ADVICE = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _EXCEL),
    **dict.fromkeys((".npy", ".npz"), _ARRAY),
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".p"), _PICKLE),
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".safetensors", ".onnx"), _MODEL),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _HDF),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _SQLITE),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), _ARCHIVE),
    ".xz": _XZ,
    ".duckdb": "a DuckDB database. Export the table: duckdb {name} \"COPY predictions TO '{stem}.parquet'\"",
    ".orc": "an ORC file. Convert it: " + _PANDAS,
    ".avro": "an Avro file. Convert it with DuckDB: COPY (FROM read_avro('{stem}.avro')) TO '{stem}.parquet'",
    ".sas7bdat": "a SAS file. Convert it: " + _PANDAS,
    ".xpt": "a SAS file. Convert it: " + _PANDAS,
    ".sav": "an SPSS file. Convert it: " + _PANDAS,
    ".dta": "a Stata file. Convert it: " + _PANDAS,
    ".rds": 'a file of R. In R: arrow::write_parquet(readRDS("{stem}.rds"), "{stem}.parquet")',
    ".rda": 'a file of R. In R, load it, and save the table: arrow::write_parquet(predictions, "{stem}.parquet")',
    ".rdata": 'a file of R. In R, load it, and save the table: arrow::write_parquet(predictions, "{stem}.parquet")',
    ".mat": "a file of MATLAB. In MATLAB: writetable(predictions, '{stem}.csv')",
    ".xml": "an XML file. Convert it: " + _PANDAS,
    ".html": "a web page. Convert the table: " + _PANDAS,
    ".yaml": "a YAML file. Write a table: a header, and a line for each row.",
    ".yml": "a YAML file. Write a table: a header, and a line for each row.",
    ".pdf": "a PDF. Pass the table itself, as CSV.",
}
# Extension -> the function of pandas that reads it.
_READERS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "read_excel"),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), "read_hdf"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "read_sas"),
    ".orc": "read_orc",
    ".sav": "read_spss",
    ".dta": "read_stata",
    ".xml": "read_xml",
    ".html": "read_html",
}
# First bytes -> the kind of file, and how to convert it.
_MAGIC = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV, or unpack it with `unzip -p`",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\xfd7zXZ": "compressed with xz; decompress it with `xz -dc`",
    b"\x93NUMPY": "a numpy array; write it as CSV or Parquet, with column names",
    b"\x89HDF": "an HDF5 file; convert it to CSV or Parquet",
    b"\x80\x04": "a pickle, which is not read because loading one runs any code in it; write a CSV or Parquet file",
    b"\x80\x05": "a pickle, which is not read because loading one runs any code in it; write a CSV or Parquet file",
    b"SQLite format": "a SQLite database; write the table as CSV: `sqlite3 -csv -header`",
    b"Obj\x01": "an Avro file; convert it to Parquet",
    b"%PDF": "a PDF; pass the table itself",
}


def advice_for_path(path: Path) -> str:
    """Return the kind of a file that is not read, by its extension, and how to convert it; "" if it is not known."""
    extension = path.suffix.lower()
    advice = _ADVICE.get(extension, "")
    reader = _READERS.get(extension, "")
    read = f'pd.{reader}("{path.name}")' + "[0]" * (extension == ".html")
    return advice.format(read=read, stem=path.stem, name=shlex.quote(path.name))


def advice_for_content(head: bytes) -> str:
    """Return the kind of a file that is not read, by its first bytes, and how to convert it; "" if it is not known."""
    return next((advice for magic, advice in _MAGIC.items() if head.startswith(magic)), "")
