"""The syntactic stream's decoder: which source words each step of the output is made of."""

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.syntactic_unroll import Unroll, lstm


class SyntacticDecoder(nn.Module):
    """An LSTM that attends to source states and reads nothing else.

    Step ``i`` (CogSci paper, equations 4 to 6)::

        alpha_i = softmax_j(s_i . h_j)    c_i = sum_j alpha_ij h_j    s_{i+1} = g(s_i, c_i)

    with ``s_0 = ReLU(W [the encoder's final states])`` and the LSTM's own state zero at first. No
    step needs the previous target. As the input is a mixture of source states, the input weights
    are applied to those once (the *messages*), and a step mixes the products: that spares a step
    half its matrix products. Whole targets are unrolled by :class:`Unroll`.

    Args:
        dim: width of the source states and of the LSTM's.
        scaled: divide the scores by ``sqrt(dim)`` (beyond the paper).
    """

    def __init__(self, dim: int, scaled: bool = False):
        super().__init__()
        self.scale = dim**-0.5 if scaled else 1.0
        self.initial = nn.Linear(dim, dim)
        self.layers: Any = nn.ModuleList([nn.LSTMCell(dim, dim)])  # checkpoints name it layers.0

    def begin(self, h: Tensor, summary: Tensor) -> list[Tensor]:
        """The state before the first step.

        Args:
            h: source states ``(batch, src_len, dim)``.
            summary: the encoder's final states ``(batch, dim)``.

        Returns:
            tensors whose first dimension is the batch: messages, query, the LSTM's two states.
        """
        net, query = self.layers[0], self.initial(summary).relu()
        messages = F.linear(h, net.weight_ih, net.bias_ih + net.bias_hh)
        return [messages, query, torch.zeros_like(query), torch.zeros_like(query)]

    def step(
        self, h: Tensor, mask: Tensor, state: list[Tensor], same: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """One step.

        Args:
            h: source states ``(batch, src_len, dim)``.
            mask: added to the scores, ``(batch, 1, src_len)``.
            state: what :meth:`begin` or the step before returned.
            same: what the gradient that the scores get through ``alpha`` is multiplied with, but
                not the one through the next state, ``(batch, src_len, src_len)``, or None.

        Returns:
            the attention ``alpha``, ``(batch, 1, src_len)``, and the next state.
        """
        messages, query, hidden, cell = state
        scores = torch.baddbmm(mask, query.unsqueeze(1), self._keys(h).mT)
        weights = scores.softmax(dim=-1)
        gates = torch.bmm(weights, messages).squeeze(1)
        hidden, cell = lstm(torch.addmm(gates, hidden, self.layers[0].weight_hh.t()), cell)
        if same is not None:
            shared = torch.bmm(scores, same)
            weights = (shared + (scores - shared).detach()).softmax(dim=-1)
        return weights, [messages, hidden, hidden, cell]

    def _keys(self, h: Tensor) -> Tensor:
        return h * self.scale if self.scale != 1 else h

    def forward(
        self,
        h: Tensor,
        summary: Tensor,
        mask: Tensor,
        steps: int,
        same: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """All steps.

        Args:
            h: source states ``(batch, src_len, dim)``.
            summary: the encoder's final states ``(batch, dim)``.
            mask: added to the scores, ``(batch, 1, src_len)``.
            steps: how many.
            same: as in :meth:`step`.
            lengths: how many steps of each sentence are wanted, ``(batch,)``. On a CPU the others
                may not be taken; their attention is then zero.

        Returns:
            ``(batch, steps, src_len)``.
        """
        if torch.is_autocast_enabled(h.device.type):  # Unroll's gradients want one precision
            state, attention = self.begin(h, summary), []
            for _ in range(steps):
                weights, state = self.step(h, mask, state, same)
                attention.append(weights)
            return torch.cat(attention, dim=1)
        counts, order = [len(h)] * steps, None
        if lengths is not None and h.device.type == "cpu" and len(h) > 1:
            order = lengths.argsort(descending=True)
            going_on = lengths.view(-1, 1).gt(torch.arange(steps)).sum(0)
            counts = going_on.clamp(min=1).tolist()
            h, summary, mask = (x.index_select(0, order) for x in (h, summary, mask))
            same = None if same is None else same.index_select(0, order)
        messages, query, *_ = self.begin(h, summary)
        weight = self.layers[0].weight_hh
        weights = Unroll.apply(self._keys(h), messages, query, mask, weight, counts, same)
        return weights if order is None else weights.index_select(0, order.argsort())
