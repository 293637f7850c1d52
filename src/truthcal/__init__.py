"""Can these probabilities be trusted? Calibration measured so that lying never pays.

`__init__.pyi` lists the public names and their modules. Names are loaded on first use, so that
``import truthcal`` loads nothing heavy.
"""

import sys
from typing import Any

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    """Load a public name; the error for others has the words of Python, which adds the most similar name."""
    if name in __all__:
        return _load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
