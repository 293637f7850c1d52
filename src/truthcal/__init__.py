"""Can these probabilities be trusted? Calibration measured so that lying never pays.

`__init__.pyi` lists the public names and their modules. Names are loaded on first use, so that
``import truthcal`` loads nothing heavy.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
