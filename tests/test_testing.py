"""Assertions for tests of models."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import truthcal as tc
from truthcal.testing import assert_calibrated

rng = np.random.default_rng(1)
P = rng.uniform(0.1, 0.9, 6000)
Y = rng.random(6000) < P


def test_passes_and_returns_the_gate():
    gate = assert_calibrated(Y, P, max_error=0.05)
    assert gate.to_dict() == tc.check(Y, P, max_error=0.05).to_dict()
    assert assert_calibrated(pd.DataFrame({"y": Y, "p": P}), "y", "p").status == "pass"


def test_fails_with_the_verdict():
    with pytest.raises(AssertionError) as caught:
        assert_calibrated(Y, P**2, max_error=0.05)
    assert str(caught.value) == str(tc.check(Y, P**2, max_error=0.05))
    assert str(caught.value).startswith("Fail: the error is at least")
    with pytest.raises(AssertionError, match="Fail: significant miscalibration"):
        assert_calibrated(Y, P**2, alpha=0.01)


def test_too_little_data():
    with pytest.raises(AssertionError, match="Too little data to tell: the error may be as large as"):
        assert_calibrated(Y[:40], P[:40], max_error=0.05)
    assert assert_calibrated(Y[:40], P[:40], max_error=0.05, too_little_data="pass").status == "too little data"
    with pytest.raises(AssertionError, match="Fail"):
        assert_calibrated(Y, P**2, max_error=0.05, too_little_data="pass")
    with pytest.raises(ValueError, match="`too_little_data` must be one of"):
        assert_calibrated(Y, P, too_little_data="skip")


def test_segments_and_groups():
    wrong = np.arange(6000) % 3 == 0
    p = np.where(wrong, P**2, P)
    with pytest.raises(AssertionError, match="segment True is"):
        assert_calibrated(Y, p, by=wrong, groups=np.arange(6000) // 2)


def test_pytest_points_at_the_line_of_the_test(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import numpy as np\nfrom truthcal.testing import assert_calibrated\n"
        "def test_it():\n    assert_calibrated(np.arange(400) % 2, np.full(400, 0.9))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "E       AssertionError: Fail: significant miscalibration" in shown
    assert "test_it.py:4: AssertionError" in shown
    assert "frame_columns.py" not in shown
    assert "testing.py:" not in shown


def test_wrong_arguments_name_the_assertion():
    with pytest.raises(TypeError, match=r"assert_calibrated\(\) takes at most 2 .* by name, such as max_error="):
        assert_calibrated([0, 1], [0.2, 0.7], 0.05)
    match = r"assert_calibrated\(\) got an unexpected keyword argument 'max_eror'\. Did you mean 'max_error'\?"
    with pytest.raises(TypeError, match=match):
        assert_calibrated([0, 1], [0.2, 0.7], max_eror=0.05)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'\.$"):
        assert_calibrated([0, 1], [0.2, 0.7], zzz=1)
