"""Files as people have them: what can be read is, and what cannot gets one line with the cure. Nothing is guessed wrong."""

import gzip
import os

import numpy as np
import pytest

import truthcal as tc

rng = np.random.default_rng(8)
P = rng.random(60).round(4)
Y = (rng.random(60) < P).astype(int)
ROWS = list(zip(Y.tolist(), P.tolist(), strict=True))


def table(line="{y},{p}", header="label,prob", rows=ROWS):
    return "\n".join([header, *(line.format(y=y, p=p) for y, p in rows)]) + "\n"


GOOD = {
    "plain.csv": table().encode(),
    "bom.csv": b"\xef\xbb\xbf" + table().encode(),
    "crlf.csv": table().replace("\n", "\r\n").encode(),
    "tabs.tsv": table("{y}\t{p}", "label\tprob").encode(),
    "decimal-comma.csv": table("{y};{p}", "label;prob").replace(".", ",").encode(),
    "zipped.csv.gz": gzip.compress(table().encode()),
    "lines.jsonl": "".join(f'{{"label": {y}, "prob": {p}}}\n' for y, p in ROWS).encode(),
    "double-but-unused.csv": table("{y},{p},1,2", "label,prob,x,x").encode(),
    "quoted.csv": table('"{y}","{p}"', '"label","prob"').encode(),
    "latin-elsewhere.csv": table("{y},{p},café", "label,prob,place").encode("latin-1"),
    "words.csv": table("{y},{p}").replace("\n1,", "\nyes,").replace("\n0,", "\nno,").encode(),
    "true-false.csv": table("{y},{p}").replace("\n1,", "\nTrue,").replace("\n0,", "\nFalse,").encode(),
}


@pytest.mark.parametrize("name", GOOD)
def test_files_as_people_have_them_are_read(quick, tmp_path, name):
    (tmp_path / name).write_bytes(GOOD[name])
    assert quick("assess", name, check=0).out == f"{tc.assess(Y, P)}\n"


@pytest.mark.parametrize("name", ["plain.csv", "zipped.csv.gz", "lines.jsonl", "decimal-comma.csv"])
def test_standard_input_tells_its_format_by_itself(quick, name):
    assert quick("assess", "-", stdin=GOOD[name], check=0).out == f"{tc.assess(Y, P)}\n"


BAD = {
    "empty.csv": (b"", "empty.csv: the file is empty"),
    "header.csv": (b"label,prob\n", "header.csv has no rows; at least one is needed"),
    "short.csv": (
        b"label,prob\n1,0.5\n0\n",
        "short.csv: could not be read as CSV (row 1: expected 2 columns, got 1: 0. Add the missing fields",  # with one thread
    ),
    "long.csv": (
        b"label,prob\n1,0.5\n0,0.5,9\n",
        "row 1: expected 2 columns, got 3: 0,0.5,9. A field with a delimiter",
    ),
    "open-quote.csv": (b'label,prob\n1,0.5\n0,"0.3\n1,0.2\n', "open-quote.csv"),
    "utf16.csv": (table().encode("utf-16"), "it is UTF-16 text). Save it as UTF-8"),
    "latin.csv": (table("{y},{p},x", "label,prob,größe").encode("latin-1"), "iconv -f latin1 -t utf-8"),
    "binary.csv": (bytes(range(256)) * 20, "binary.csv: could not be read as CSV"),
    "percent.csv": (table(rows=[(y, 100 * p) for y, p in ROWS]).encode(), "Percentages? Divide by 100."),
    "sign.csv": (table("{y},{p}%").encode(), "Percentages? Remove the sign and divide by 100."),
    "logits.csv": (table(rows=[(y, 10 * p - 5) for y, p in ROWS]).encode(), "Logits or scores?"),
    "comma-in-quotes.csv": (table('{y},"{p}"').replace("0.", "0,").encode(), "A decimal comma? Write 0.5, not 0,5."),
    "missing.csv": (
        b"label,prob\n1,0.5\n0,\n",
        "`prob` (y_proba) has a missing value (null or nan) at row 1 of missing.csv",
    ),
    "word.csv": (b"label,prob\n1,0.5\n0,high\n", "('high' at row 1)"),
    "double.csv": (
        table("{y},{p},{p}", "label,prob,prob").encode(),
        "double.csv has 2 columns named 'prob'; rename all but one.",
    ),
    "headless.csv": (table(header="1,0.5").encode(), "the first line of headless.csv holds numbers"),
    "three.csv": (
        b"label,prob\n0,0.5\n1,0.4\n2,0.3\n",
        "Which column of three.csv holds the outcomes (0/1, True/False or two labels)?",
    ),
    "fake.csv.gz": (table().encode(), "fake.csv.gz: could not be read as CSV"),
    "fake.parquet": (table().encode(), "fake.parquet: could not be read as Parquet"),
    "list.json": (b'[{"label": 1, "prob": 0.5}]', "jq -c '.[]'"),
    "ending.dat": (table().encode(), "truthcal assess - < ending.dat"),
    "team.csv": (
        table().replace("\n1,", "\nhome,").replace("\n0,", "\naway,").encode(),
        "Use --pos-label home or --pos-label away.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_used_get_a_short_error_with_the_cure(quick, tmp_path, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    done = quick("assess", name, "-q", check=2)
    assert message in done.err
    assert done.err.count("\n") == (3 if name == "three.csv" else 1)
    assert done.out == ""


def test_thousands_separators_in_weights_are_not_numbers(quick, tmp_path):
    (tmp_path / "w.csv").write_text(table('{y},{p},"1,200"', "label,prob,w"))
    err = quick("assess", "w.csv", "--weight", "w", "-q", check=2).err
    assert "`w` (sample_weight) must contain numbers" in err
    assert "Thousands separators? Write 1200, not 1,200." in err
    assert "weights: 'w' is not used" in quick("assess", "w.csv", check=0).err


def test_a_folder_without_data_is_refused(quick, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no data file in this folder" in quick("assess", "empty", check=2).err


def test_a_pattern_reads_all_files_and_a_file_named_twice_is_refused(quick, tmp_path):
    (tmp_path / "a-1.csv").write_text(table(rows=ROWS[:20]))
    (tmp_path / "a-2.csv").write_text(table(rows=ROWS[20:]))
    assert quick("assess", "a-*.csv", check=0).out == f"{tc.assess(Y, P)}\n"
    assert "named twice" in quick("assess", "a-1.csv", "a-*.csv", check=2).err


def test_a_file_without_permission_is_refused(process, tmp_path):
    """Root may read everything, so it steps down to nobody."""
    path = tmp_path / "secret.csv"
    path.write_text(table())
    path.chmod(0o000)
    if os.geteuid() == 0:
        import subprocess
        import sys

        code = (
            "import os, sys; from truthcal.cli.main import main; main(['assess', sys.argv[2]]); "  # imports everything
            "os.setegid(65534); os.seteuid(65534); sys.exit(main(['assess', sys.argv[1]]))"
        )
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.stat().st_uid == os.geteuid() and folder != folder.parent and "pytest" in str(folder):
                folder.chmod(0o755)
        (tmp_path / "open.csv").write_text(table())
        files = [str(path), str(tmp_path / "open.csv")]
        done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, check=False)
        status, err = done.returncode, done.stderr.splitlines(keepends=True)[-1]
    else:
        status, _, err = process("assess", path)
    assert status == 2
    assert "ermission denied" in err
    assert err.count("\n") == 1


def test_twenty_thousand_columns_are_no_trouble(quick, tmp_path):
    names = ",".join(f"f{i}" for i in range(20_000))
    (tmp_path / "wide.csv").write_text(table("{y},{p}" + ",1" * 20_000, f"label,prob,{names}", ROWS[:12]))
    want = tc.assess(Y[:12], P[:12])
    assert quick("assess", "wide.csv", "-q", check=0).out == f"{want}\n"
    few = ",".join(f"f{i}" for i in range(3000))
    (tmp_path / "wide.csv").write_text(table("{y},{p}" + ",1" * 3000, f"label,prob,{few}", ROWS[:12]))
    err = quick("assess", "wide.csv", "--proba", "prb", check=2).err
    assert "has no column 'prb'" in err
    assert len(err) < 2000


def test_log_probabilities_are_named_if_no_row_is_a_probability(quick, write):
    line = ("--label", "y", "--proba", "score")
    path = write("logs.csv", score=[-0.1, -2.3, -0.7, -1.2], y=[1, 0, 1, 0])
    assert "Log-probabilities? Apply np.exp first." in quick("assess", path, *line, check=2).err
    path = write("logits.csv", score=[-0.1, -2.3, 0.7, 0.2], y=[1, 0, 1, 0])
    assert "Logits or scores? Apply the sigmoid" in quick("assess", path, *line, check=2).err
