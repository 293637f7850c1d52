"""Examples in docstrings run as tests. torch is not in `dev`: without it, leave out the modules that import it."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("torch") else ["truthcal/torch"]
