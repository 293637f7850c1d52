"""Calibration in PyTorch: `ATBMetric` for evaluation loops, and `atb_loss` to train with.

Import it explicitly, ``from truthcal.torch import ATBMetric``; ``import truthcal`` does not load torch.
"""

try:
    import torch  # noqa: F401
except ImportError:
    raise ImportError("truthcal.torch needs torch: pip install 'truthcal[torch]'.") from None

from truthcal.torch.loss import atb_loss
from truthcal.torch.metric import ATBMetric

__all__ = ["ATBMetric", "atb_loss"]
