"""All steps of the syntactic decoder with an LSTM, and their gradients, written out."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def lstm(products: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The rest of an LSTM's step, once its products with input and state are taken.

    Args:
        products: of input, forget, candidate and output gate, ``(batch, 4 * dim)``.
        cell: ``(batch, dim)``.

    Returns:
        the next hidden state and the next cell, ``(batch, dim)``.
    """
    i, f, g, o = products.chunk(4, dim=-1)
    cell = torch.addcmul(i.sigmoid() * g.tanh(), f.sigmoid(), cell)
    return o.sigmoid() * cell.tanh(), cell


class Unroll(torch.autograd.Function):
    """The attention of all steps.

    With ``s_0`` the query, and the net's own states zero at first, step ``t`` is::

        alpha_t = softmax(keys s_t + mask)
        p_t = alpha_t messages + weight s_t (without s_0)
        s_{t+1}, cell_{t+1} = lstm(p_t, cell_t)

    Autograd would walk through a dozen nodes a step and add up a product as large as the weight,
    the keys and the messages in each; here each is one product over all steps. There is no second
    derivative.

    Args:
        keys: ``(batch, src_len, dim)``.
        messages: ``(batch, src_len, 4 * dim)``.
        query: ``(batch, dim)``.
        mask: ``(batch, 1, src_len)``; it gets no gradient.
        weight: ``(4 * dim, dim)``.
        steps: at least 1.
        same: what the gradient of the scores is multiplied with, ``(batch, src_len, src_len)``, or
            None.

    Returns:
        ``(batch, steps, src_len)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        messages: Tensor,
        query: Tensor,
        mask: Tensor,
        weight: Tensor,
        steps: int,
        same: Tensor | None = None,
    ) -> Tensor:
        states, cells, attention = [query], [torch.zeros_like(query)], []
        products: list[Tensor] = []
        for step in range(steps):
            scores = torch.baddbmm(mask, states[step].unsqueeze(1), keys.mT)
            attention.append(scores.softmax(dim=-1))
            if step + 1 < steps:
                product = torch.bmm(attention[step], messages).squeeze(1)
                if step:
                    product.addmm_(states[step], weight.t())
                products.append(product)
                state, cell = lstm(product, cells[step])
                states.append(state)
                cells.append(cell)
        alphas = torch.cat(attention, dim=1)
        ctx.save_for_backward(keys, messages, weight, alphas, same)
        ctx.steps = states, cells, products
        return alphas

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        keys, messages, weight, alphas, same = ctx.saved_tensors
        states, cells, products = ctx.steps
        last = len(products)
        if last:
            # d p = slopes * [d cell, d cell, d cell, d state]; d cell gets through * d state
            i, f, g, o = torch.stack(products).chunk(4, dim=-1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            tanh = torch.stack(cells[1:]).tanh()
            slopes = [g * i * (1 - i), torch.stack(cells[:-1]) * f * (1 - f)]
            slopes += [i * (1 - g * g), tanh * o * (1 - o)]
            slope = torch.stack(slopes, dim=2)
            through = o * (1 - tanh * tanh)
        d_scores: list[Tensor] = []
        d_products: list[Tensor] = []
        d_state = d_cell = torch.zeros_like(states[0])
        for step in range(last, -1, -1):
            d_alpha = gradient[:, step : step + 1]
            if step < last:
                d_cell = torch.addcmul(d_cell, d_state, through[step])
                d_product = torch.stack([d_cell, d_cell, d_cell, d_state], dim=1)
                d_product = d_product.mul_(slope[step]).flatten(1)
                d_products.append(d_product)
                d_cell = d_cell * f[step]
                d_alpha = torch.baddbmm(d_alpha, d_product.unsqueeze(1), messages.mT)
            alpha = alphas[:, step : step + 1]
            d_score = d_alpha * alpha
            d_score = torch.addcmul(d_score, alpha, d_score.sum(-1, keepdim=True), value=-1)
            if same is not None:
                d_score = torch.bmm(d_score, same)
            d_scores.append(d_score)
            d_state = torch.bmm(d_score, keys).squeeze(1)
            if 0 < step < last:
                d_state.addmm_(d_product, weight)
        queries = torch.stack(states, dim=1)
        d_keys = torch.cat(d_scores[::-1], dim=1).mT @ queries
        if not last:
            return d_keys, None, d_state, None, None, None, None
        d_p = torch.stack(d_products[::-1], dim=1)
        d_messages = alphas[:, :-1].mT @ d_p
        d_weight = d_p[:, 1:].flatten(0, 1).t() @ queries[:, 1:last].flatten(0, 1)
        return d_keys, d_messages, d_state, None, d_weight, None, None
