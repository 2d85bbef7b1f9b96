"""The prior p(z | context): a Transformer that predicts a token's code from its context."""

from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.packing import Packing, pack, unpack
from compgen_fairseq.modules.precision import wide
from compgen_fairseq.modules.transformer_layer import StreamLayer


class CodePredictor(nn.Module):
    """Predicts codes from the codes (or words) around them (paper, section 3.1.2, appendix A.4).

    Its layers are the model's own kind; its output layer is the codebook, with a bias.

    Args:
        layers: number of layers.
        dim: width of the model.
        ffn_dim: inner width of the FFN and of its gate.
        heads: number of attention heads.
        codes: number of classes, the [MASK] code among them where there is one.
        dropout: dropout of the layers.
        cross: the layers also attend to the encoder's output.
    """

    def __init__(
        self,
        layers: int,
        dim: int,
        ffn_dim: int,
        heads: int,
        codes: int,
        dropout: float = 0.0,
        cross: bool = False,
    ):
        super().__init__()
        self.layers: Any = nn.ModuleList(
            StreamLayer(dim, ffn_dim, ffn_dim, heads, dropout, cross="own" if cross else "none")
            for _ in range(layers)
        )
        self.bias = nn.Parameter(torch.zeros(codes))

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        where: Tensor | tuple[Tensor, ...],
        vectors: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        packed: Packing | None = None,
    ) -> Tensor:
        """Logits at some positions.

        Args:
            x: the context's vectors ``(batch, len, dim)``.
            mask: added to the self-attention's scores, ``(batch, 1, 1 or len, len)``.
            where: the positions to predict from, ``(batch, len)``, bool, or their rows and columns.
            vectors: the output layer, ``(codes, dim)``.
            memory: the encoder's output ``(batch, src_len, dim)``.
            memory_mask: ``(batch, 1, 1, src_len)``, added to the cross-attention's scores.
            packed: where the words are; None: padding is not left out.

        Returns:
            ``(positions, codes)``, float32, or float64 from such a model.
        """
        streams = pack(x.unsqueeze(0), packed)
        source = None if memory is None else memory.unsqueeze(0)
        for layer in self.layers[:-1]:
            streams, _ = layer(streams, mask, source, memory_mask, packed=packed)
        last = self.layers[-1]
        streams, _ = last.attend(streams, mask, source, memory_mask, packed=packed)
        found = last.ffn(unpack(streams, packed)[0][where])  # of the last layer no others are read
        with torch.autocast(x.device.type, enabled=False):
            kind = wide(found)
            return F.linear(found.to(kind), vectors.to(kind), self.bias.to(kind))


def draw_positions(candidates: Tensor, anew: bool = True) -> Tensor:
    """One position per row, uniform over the row's candidates; none where there are none. Unless
    they are drawn anew, the same batch always has the same ones. ``(rows, positions)``, bool, to
    the same shape."""
    device = candidates.device
    generator = None if anew else torch.Generator(device).manual_seed(0)
    draws = torch.rand(candidates.shape, device=device, generator=generator) + 1.0
    draws = draws * candidates
    index = draws.argmax(-1, keepdim=True)
    return torch.zeros_like(candidates).scatter(-1, index, True) & candidates
