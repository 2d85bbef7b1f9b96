"""The syntactic stream's decoder: which source words each step of the output is made of."""

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.syntactic_unroll import Unroll, lstm


class LSTMStep(nn.LSTMCell):
    """An LSTM cell whose input arrives as its product with the input weights."""

    def project(self, x: Tensor) -> Tensor:
        """``(..., input_dim)`` -> what :meth:`advance` takes, ``(..., 4 * dim)``."""
        return F.linear(x, self.weight_ih, self.bias_ih + self.bias_hh)

    def advance(self, gates: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """The input's product ``(batch, 4 * dim)`` and the two states ``(batch, dim)`` -> the
        next states."""
        return lstm(torch.addmm(gates, hidden, self.weight_hh.t()), cell)


class GRUStep(nn.GRUCell):
    """A GRU cell whose input arrives as its product with the input weights."""

    def project(self, x: Tensor) -> Tensor:
        """``(..., input_dim)`` -> what :meth:`advance` takes, ``(..., 3 * dim)``."""
        return F.linear(x, self.weight_ih, self.bias_ih)

    def advance(self, gates: Tensor, hidden: Tensor) -> tuple[Tensor]:
        """The input's product ``(batch, 3 * dim)`` and the state ``(batch, dim)`` -> the next
        state."""
        r, z, n = gates.chunk(3, dim=-1)
        own_r, own_z, own_n = F.linear(hidden, self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        n = torch.addcmul(n, (r + own_r).sigmoid(), own_n).tanh()
        return (torch.lerp(n, hidden, (z + own_z).sigmoid()),)


STEPS: dict[str, type[LSTMStep | GRUStep]] = {"lstm": LSTMStep, "gru": GRUStep}


class SyntacticDecoder(nn.Module):
    """A recurrent net that attends to source states and reads nothing else.

    Step ``i`` (CogSci paper, equations 4 to 6)::

        alpha_i = softmax_j(s_i . h_j)    c_i = sum_j alpha_ij h_j    s_{i+1} = g(s_i, c_i)

    with ``s_0 = ReLU(W [the encoder's final states])`` and the net's own state zero at first. No
    step needs the previous target. As the net's input is a mixture of source states, its input
    weights are applied to those once (the *messages*), and a step mixes the products: that spares
    a step half its matrix products. One layer of LSTM, the paper's, is unrolled by :class:`Unroll`.

    Args:
        rnn: ``"lstm"`` or ``"gru"``.
        dim: width of the source states and of the net's.
        layers: number of recurrent layers.
        dropout: on the input of every layer but the first.
        scaled: divide the scores by ``sqrt(dim)`` (beyond the paper).

    Raises:
        ValueError: on an unknown net or less than one layer.
    """

    def __init__(
        self, rnn: str, dim: int, layers: int = 1, dropout: float = 0.0, scaled: bool = False
    ):
        super().__init__()
        if rnn not in STEPS:
            raise ValueError(f"the recurrent net is one of {', '.join(STEPS)}, not {rnn!r}")
        if layers < 1:
            raise ValueError(f"the decoder needs at least one layer, not {layers}")
        self.dropout, self.scale = dropout, dim**-0.5 if scaled else 1.0
        self.states = 2 if rnn == "lstm" else 1
        self.written_out = rnn == "lstm" and layers == 1
        self.initial = nn.Linear(dim, dim)
        self.layers: Any = nn.ModuleList(STEPS[rnn](dim, dim) for _ in range(layers))

    def begin(self, h: Tensor, summary: Tensor) -> list[Tensor]:
        """The state before the first step.

        Args:
            h: source states ``(batch, src_len, dim)``.
            summary: the encoder's final states ``(batch, dim)``.

        Returns:
            tensors whose first dimension is the batch: messages, query, the layers' states.
        """
        query = self.initial(summary).relu()
        zeros = [torch.zeros_like(query)] * (self.states * len(self.layers))
        return [self.layers[0].project(h), query, *zeros]

    def step(self, h: Tensor, mask: Tensor, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """One step.

        Args:
            h: source states ``(batch, src_len, dim)``.
            mask: added to the scores, ``(batch, 1, src_len)``.
            state: what :meth:`begin` or the step before returned.

        Returns:
            the attention ``alpha``, ``(batch, 1, src_len)``, and the next state.
        """
        messages, query, *states = state
        weights = torch.baddbmm(mask, query.unsqueeze(1), self._keys(h).mT).softmax(dim=-1)
        gates = torch.bmm(weights, messages).squeeze(1)
        following: list[Tensor] = []
        for i, layer in enumerate(self.layers):
            if i > 0:
                gates = layer.project(apply_dropout(query, self.dropout, self.training))
            query, *rest = layer.advance(gates, *states[i * self.states : (i + 1) * self.states])
            following += [query, *rest]
        return weights, [messages, query, *following]

    def _keys(self, h: Tensor) -> Tensor:
        return h * self.scale if self.scale != 1 else h

    def forward(self, h: Tensor, summary: Tensor, mask: Tensor, steps: int) -> Tensor:
        """The attention of all steps, ``(batch, steps, src_len)``; arguments as in
        :meth:`begin` and :meth:`step`."""
        state = self.begin(h, summary)
        if self.written_out and not torch.is_autocast_enabled(h.device.type):
            messages, query, *_ = state
            return Unroll.apply(
                self._keys(h), messages, query, mask, self.layers[0].weight_hh, steps
            )
        attention = []
        for _ in range(steps):
            weights, state = self.step(h, mask, state)
            attention.append(weights)
        return torch.cat(attention, dim=1)
