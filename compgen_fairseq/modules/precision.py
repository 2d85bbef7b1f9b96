"""What is too delicate for half precision is computed in float32, or in float64 in such a model."""

import torch
from torch import Tensor


def wide(x: Tensor) -> torch.dtype:
    """The wider of float32 and the type of ``x``."""
    return torch.promote_types(x.dtype, torch.float32)
