"""All steps of the syntactic decoder with an LSTM, and their gradients, written out."""

from typing import Any

import torch
import torch.nn.functional as F
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


def grow(x: Tensor, rows: int) -> Tensor:
    """Put rows of zeros behind those of a matrix."""
    return x if len(x) == rows else F.pad(x, (0, 0, 0, rows - len(x)))


def softmax_gradient(d_alpha: Tensor, alpha: Tensor) -> Tensor:
    """The gradient of the scores, of that of their softmax."""
    d_score = d_alpha * alpha
    return torch.addcmul(d_score, alpha, d_score.sum(-1, keepdim=True), value=-1)


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
        counts: how many sentences, from the first one on, take each step: at least one step, at
            least one sentence, and never more than took the step before.
        same: what the gradient that the scores get through the result is multiplied with, but not
            the one through later steps, ``(batch, src_len, src_len)``, or None.

    Returns:
        ``(batch, len(counts), src_len)``, zero where a sentence takes no step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        messages: Tensor,
        query: Tensor,
        mask: Tensor,
        weight: Tensor,
        counts: list[int],
        same: Tensor | None = None,
    ) -> Tensor:
        batch = len(query)
        state, cell = query[: counts[0]], torch.zeros_like(query[: counts[0]])
        states, cells, attention = [state], [cell], []
        products: list[Tensor] = []
        for step, n in enumerate(counts):
            scores = torch.baddbmm(mask[:n], state.unsqueeze(1), keys[:n].mT)
            alpha = scores.softmax(dim=-1).squeeze(1)
            attention.append(grow(alpha, batch))
            if step + 1 < len(counts):
                n = counts[step + 1]
                product = torch.bmm(alpha[:n].unsqueeze(1), messages[:n]).squeeze(1)
                if step:
                    product.addmm_(state[:n], weight.t())
                products.append(product)
                state, cell = lstm(product, cell[:n])
                states.append(state)
                cells.append(cell)
        alphas = torch.stack(attention, dim=1)
        ctx.save_for_backward(keys, messages, weight, alphas, same)
        ctx.steps = counts, states, cells, products
        return alphas

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        keys, messages, weight, alphas, same = ctx.saved_tensors
        counts, states, cells, products = ctx.steps
        batch, last, going_on = len(keys), len(products), counts[1:]
        if last:
            # d p = slopes * [d cell, d cell, d cell, d state]; d cell gets through * d state
            i, f, g, o = torch.cat(products).chunk(4, dim=-1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            tanh = torch.cat(cells[1:]).tanh()
            before = torch.cat([cell[:n] for cell, n in zip(cells[:-1], going_on, strict=True)])
            slopes = [g * i * (1 - i), before * f * (1 - f)]
            slopes += [i * (1 - g * g), tanh * o * (1 - o)]
            slope = torch.stack(slopes, dim=1).split(going_on)
            through = (o * (1 - tanh * tanh)).split(going_on)
            forget = f.split(going_on)
        d_said = softmax_gradient(gradient, alphas)
        if same is not None:
            d_said = torch.bmm(d_said, same)
        d_scores: list[Tensor] = []
        d_products: list[Tensor] = []
        d_state = d_cell = torch.zeros_like(states[-1])
        for step in range(last, -1, -1):
            n = counts[step]
            alpha = alphas[:n, step]
            d_score = d_said[:n, step]
            if step < last:
                d_cell = torch.addcmul(d_cell, d_state, through[step])
                d_product = torch.stack([d_cell, d_cell, d_cell, d_state], dim=1)
                d_product = d_product.mul_(slope[step]).flatten(1)
                d_products.append(d_product)
                d_cell = grow(d_cell * forget[step], n)
                d_later = torch.bmm(d_product.unsqueeze(1), messages[: len(d_product)].mT)
                d_score = d_score + softmax_gradient(grow(d_later.squeeze(1), n), alpha)
            d_scores.append(grow(d_score, batch))
            d_state = torch.bmm(d_score.unsqueeze(1), keys[:n]).squeeze(1)
            if 0 < step < last:
                d_state[: len(d_product)].addmm_(d_product, weight)
        queries = torch.stack([grow(state, batch) for state in states], dim=1)
        d_keys = torch.stack(d_scores[::-1], dim=1).mT @ queries
        d_query = grow(d_state, batch)
        if not last:
            return d_keys, None, d_query, None, None, None, None
        d_p = torch.stack([grow(d_product, batch) for d_product in d_products[::-1]], dim=1)
        d_messages = alphas[:, :-1].mT @ d_p
        d_weight = torch.zeros_like(weight)
        if last > 1:
            later = [state[:n] for state, n in zip(states[1:last], counts[2:], strict=True)]
            d_weight = torch.cat(d_products[-2::-1]).t() @ torch.cat(later)
        return d_keys, d_messages, d_query, None, d_weight, None, None
