"""A product that a recurrent net takes at every step, with one product for its gradient."""

from typing import Any

import torch
from torch import Tensor


class _Matrix(torch.autograd.Function):
    """Stands between a matrix and its steps, and hands it the gradient after the last of them."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.seen = seen
        return matrix.new_zeros(1)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[Tensor, None]:
        x, gradients = (torch.cat(parts, dim=-2) for parts in zip(*ctx.seen, strict=True))
        ctx.seen.clear()
        return x.mT @ gradients, None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, matrix: Tensor, addend: Tensor | None, token: Tensor, seen: list
    ) -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.seen = seen
        return multiply(x, matrix, addend)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor):
        (gradient,) = gradients
        x, matrix = ctx.saved_tensors
        ctx.seen.append((x, gradient))
        return gradient @ matrix.mT, None, gradient if ctx.needs_input_grad[2] else None, None, None


def multiply(x: Tensor, matrix: Tensor, addend: Tensor | None) -> Tensor:
    """``x @ matrix + addend``, for two or three dimensions."""
    if addend is None:
        return x @ matrix
    return (torch.addmm if x.dim() == 2 else torch.baddbmm)(addend, x, matrix)


class RecurrentProduct:
    """``x @ matrix + addend`` for all steps of one pass over a batch.

    Left to autograd, the gradient of the matrix is a sum of one product per step, each as large
    as the matrix and with only a step's rows to it. Here it is one product over all steps, the
    same up to the order of the sum. There is no second derivative.

    Args:
        matrix: ``(dim, out)`` or ``(batch, dim, out)``.
    """

    def __init__(self, matrix: Tensor):
        self.matrix = matrix
        self.seen: list[tuple[Tensor, Tensor]] = []
        late = torch.is_grad_enabled() and not torch.is_autocast_enabled(matrix.device.type)
        self.token = _Matrix.apply(matrix, self.seen) if late else None

    def __call__(self, x: Tensor, addend: Tensor | None = None) -> Tensor:
        """``(batch, dim)``, or ``(batch, rows, dim)`` for a matrix per sentence, and what is added
        -> ``(batch, out)`` or ``(batch, rows, out)``."""
        if self.token is None:
            return multiply(x, self.matrix, addend)
        return _Step.apply(x, self.matrix.detach(), addend, self.token, self.seen)
