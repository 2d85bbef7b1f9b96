"""The syntactic stream's decoder: which source words each step of the output is made of."""

from typing import Any, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.recurrent_product import RecurrentProduct


class LSTMStep(nn.LSTMCell):
    """An LSTM cell whose input arrives as its product with the input weights."""

    def project(self, x: Tensor) -> Tensor:
        """``(..., input_dim)`` -> what :meth:`advance` takes, ``(..., 4 * dim)``."""
        return F.linear(x, self.weight_ih, self.bias_ih + self.bias_hh)

    def advance(
        self, recurrent: RecurrentProduct, gates: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The product with ``weight_hh.t()``, ``(batch, 4 * dim)``, and the two states ``(batch,
        dim)`` -> the next states."""
        i, f, g, o = recurrent(hidden, gates).chunk(4, dim=-1)
        cell = torch.addcmul(i.sigmoid() * g.tanh(), f.sigmoid(), cell)
        return o.sigmoid() * cell.tanh(), cell


class GRUStep(nn.GRUCell):
    """A GRU cell whose input arrives as its product with the input weights."""

    def project(self, x: Tensor) -> Tensor:
        """``(..., input_dim)`` -> what :meth:`advance` takes, ``(..., 3 * dim)``."""
        return F.linear(x, self.weight_ih, self.bias_ih)

    def advance(self, recurrent: RecurrentProduct, gates: Tensor, hidden: Tensor) -> tuple[Tensor]:
        """The product with ``weight_hh.t()``, ``(batch, 3 * dim)``, and the state ``(batch, dim)``
        -> the next state."""
        r, z, n = gates.chunk(3, dim=-1)
        own = recurrent(hidden, self.bias_hh.expand_as(gates))
        own_r, own_z, own_n = own.chunk(3, dim=-1)
        n = torch.addcmul(n, (r + own_r).sigmoid(), own_n).tanh()
        return (torch.lerp(n, hidden, (z + own_z).sigmoid()),)


STEPS: dict[str, type[LSTMStep | GRUStep]] = {"lstm": LSTMStep, "gru": GRUStep}


class Products(NamedTuple):
    """The products of every step of a pass: with the source states, which gives the scores; with
    the messages; and with each layer's recurrent weight."""

    score: RecurrentProduct
    mix: RecurrentProduct
    recurrent: list[RecurrentProduct]


class SyntacticDecoder(nn.Module):
    """A recurrent net that attends to source states and reads nothing else.

    Step ``i`` (CogSci paper, equations 4 to 6)::

        alpha_i = softmax_j(s_i . h_j)    c_i = sum_j alpha_ij h_j    s_{i+1} = g(s_i, c_i)

    with ``s_0 = ReLU(W [the encoder's final states])`` and the net's own state zero at first. No
    step needs the previous target. As the net's input is a mixture of source states, its input
    weights are applied to those once (the *messages*), and a step mixes the products: that spares
    a step half its matrix products.

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

    def products(self, h: Tensor, messages: Tensor) -> Products:
        """What the steps of one pass multiply with; ``messages`` is the state's first tensor."""
        weights = [RecurrentProduct(layer.weight_hh.t()) for layer in self.layers]
        keys = h.transpose(1, 2)
        keys = keys * self.scale if self.scale != 1 else keys
        return Products(RecurrentProduct(keys), RecurrentProduct(messages), weights)

    def step(
        self, products: Products, mask: Tensor, state: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """One step.

        Args:
            products: what :meth:`products` returned.
            mask: added to the scores, ``(batch, 1, src_len)``.
            state: what :meth:`begin` or the step before returned.

        Returns:
            the attention ``alpha``, ``(batch, 1, src_len)``, and the next state.
        """
        messages, query, *states = state
        weights = products.score(query.unsqueeze(1), mask).softmax(dim=-1)
        gates = products.mix(weights).squeeze(1)
        following: list[Tensor] = []
        for i, layer in enumerate(self.layers):
            if i > 0:
                gates = layer.project(apply_dropout(query, self.dropout, self.training))
            own = states[i * self.states : (i + 1) * self.states]
            query, *rest = layer.advance(products.recurrent[i], gates, *own)
            following += [query, *rest]
        return weights, [messages, query, *following]

    def forward(self, h: Tensor, summary: Tensor, mask: Tensor, steps: int) -> Tensor:
        """The attention of all steps, ``(batch, steps, src_len)``; arguments as in
        :meth:`begin` and :meth:`step`."""
        state = self.begin(h, summary)
        products = self.products(h, state[0])
        attention = []
        for _ in range(steps):
            weights, state = self.step(products, mask, state)
            attention.append(weights)
        return torch.cat(attention, dim=1)
