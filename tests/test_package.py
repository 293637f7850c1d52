"""Importing is light, compiling happens once per machine, and the lists of public names agree."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import truthcal as tc

ROOT = Path(__file__).parent.parent
ATB = "truthcal.atb([0, 1], [0.25, 0.75])"
ATB_COMPILED = f"import truthcal, truthcal.kernels.jit as jit\nwith jit.compile_at_once(): print({ATB})"


def run(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light():
    code = "import sys, truthcal; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(run(code).split())
    assert not loaded & {"numba", "scipy", "matplotlib", "narwhals", "pandas", "polars", "pyarrow", "torch", "sklearn"}


def test_the_table_of_measures_loads_no_measure():
    code = "import sys, truthcal; truthcal.MEASURES['atb'].truthful; print(*sorted(sys.modules))"
    loaded = set(run(code).split())
    assert {name for name in loaded if name.startswith("truthcal.")} <= {
        "truthcal.measures",
        "truthcal.measures.registry",
    }
    assert not loaded & {"numpy", "numba", "scipy"}


def test_measuring_loads_no_optional_library():
    code = (
        "import sys, truthcal; truthcal.atb([0, 1], [0.2, 0.7]); truthcal.Sketch().update([0, 1], [0.2, 0.7]).atb();"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = set(run(code).split())
    assert not loaded & {"matplotlib", "narwhals", "pandas", "polars", "pyarrow", "torch", "sklearn", "duckdb"}


def test_names():
    assert "atb" in dir(tc)
    for name in tc.__all__:
        assert getattr(tc, name) is not None
    with pytest.raises(AttributeError, match="module 'truthcal' has no attribute 'nonsense'"):
        _ = tc.nonsense


def test_names_for_type_checkers_and_readers_agree():
    source = (ROOT / "src/truthcal/__init__.pyi").read_text()
    declared = set(re.findall(r"^from \.\S* import \w+ as (\w+)$", source, re.MULTILINE))
    documented = set(re.findall(r"^- `(\w+)(?![\w.])", (ROOT / "docs/reference/api.md").read_text(), re.MULTILINE))
    assert declared == set(tc.__all__) - {"__version__"}
    assert documented == declared


@pytest.mark.parametrize("integration", ["sklearn"])
def test_names_of_integrations_are_documented(integration):
    pytest.importorskip(integration)
    module = importlib.import_module(f"truthcal.{integration}")
    page = (ROOT / "docs/reference/api.md").read_text()
    assert set(re.findall(rf"^- `{integration}\.(\w+)", page, re.MULTILINE)) == set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__doc__


def test_without_scikit_learn_the_error_says_how_to_install_it():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "try: import truthcal.sklearn\n"
        "except ImportError as error: print(error)"
    )
    assert run(code) == "truthcal.sklearn needs scikit-learn: pip install 'truthcal[sklearn]'."


def test_few_rows_load_no_numba():
    """Compiling, or only importing numba, would take longer than running the loops in Python. Tests still need it."""
    code = (
        "import sys, numpy as np, truthcal as tc; p = np.linspace(0.1, 0.9, 3000); y = np.arange(3000) % 2\n"
        "tc.atb(y, p); tc.ece(y, p); tc.information_atb(y, p); tc.brier_decomposition(y, p)\n"
        "print('numba' in sys.modules); tc.atb(np.resize(y, 100_000), np.resize(p, 100_000))\n"
        "print('numba' in sys.modules)"
    )
    assert run(code).split() == ["False", "True"]


def copied_package(folder):
    shutil.copytree(ROOT / "src" / "truthcal", folder / "truthcal", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_compiled_code_is_kept_on_disk(tmp_path):
    """The second process finds what the first compiled, and compiles nothing."""
    package = copied_package(tmp_path)
    cache = tmp_path / "cache"
    stats = (
        "from truthcal.kernels.rows import pack; s = pack.compiled.stats; print(len(s.cache_hits), len(s.cache_misses))"
    )
    code = f"{ATB_COMPILED}\n{stats}"
    env = {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(cache)}
    assert run(code, **env).split() == ["0.015625", "0", "1"]
    assert any(cache.rglob("*.nbc"))
    assert run(code, **env).split() == ["0.015625", "1", "0"]


def test_where_no_cache_can_be_written_it_compiles_and_goes_on(tmp_path):
    """Numba is told that no directory is writable; root, who runs CI, can write everywhere."""
    package = copied_package(tmp_path)
    code = (
        "import numba.core.caching as c\n"
        "def refuse(self): raise OSError('read-only')\n"
        "c._CacheLocator.ensure_cache_path = refuse\n" + ATB_COMPILED
    )
    assert run(code, PYTHONPATH=str(package)) == "0.015625"
    assert not any(tmp_path.rglob("*.nbc"))


def test_a_disk_that_fills_up_while_caching_is_a_warning(tmp_path):
    package = copied_package(tmp_path)
    code = (
        "import truthcal, truthcal.kernels.jit as jit, warnings, numba.core.caching as c\n"
        "def full(self, *args): raise OSError(28, 'No space left on device')\n"
        "c.IndexDataCacheFile.save = full\n"
        "with warnings.catch_warnings(record=True) as caught, jit.compile_at_once():\n"
        "    warnings.simplefilter('always')\n"
        f"    print({ATB})\n"
        "print(any('could not cache compiled code' in str(w.message) for w in caught))"
    )
    assert run(code, PYTHONPATH=str(package)).split() == ["0.015625", "True"]
