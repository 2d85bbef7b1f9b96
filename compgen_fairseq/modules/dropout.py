"""Dropout with cheap random numbers on the CPU."""

import torch
import torch.nn.functional as F
from torch import Tensor


def apply_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    PyTorch's CPU dropout draws one Bernoulli variable after another, which takes more time than
    the layers around it at the widths used here. Four elements share a 64-bit draw instead, 16
    bits each, so ``p`` is rounded to a multiple of 1/65536. Elsewhere PyTorch's own kernel is used.

    Args:
        x: any shape.
        p: probability, at least 0 and below 1.
        training: False returns ``x``.
    """
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p, True)
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    threshold = min(round(p * 65536), 65535) - 32768
    keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
    return x * keep.to(x.dtype).mul_(1 / (1 - p))
