"""The prior p(z | context): a Transformer that predicts a token's code from its context."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.transformer_layer import StreamLayer

CONTEXTS = ("masked", "left")


class CodePredictor(nn.Module):
    """Predicts codes from the codes (or words) around them (paper, section 3.1.2, appendix A.4).

    Args:
        layers, dim, ffn_dim, heads: sizes.
        dropout: dropout of the layers.
        context: ``"masked"``: bidirectional, one drawn position per sentence is replaced by the
            [MASK] code and predicted. ``"left"``: every position is predicted from those before.
        cross: the layers also attend to the encoder's output.
        start: whether position 0 is predicted too, from a start vector (the [MASK] code). False
            where the input is already shifted (the decoder's ``prev_output_tokens``).

    Raises:
        ValueError: on an unknown context.
    """

    def __init__(
        self,
        layers: int,
        dim: int,
        ffn_dim: int,
        heads: int,
        dropout: float = 0.0,
        context: str = "left",
        cross: bool = False,
        start: bool = True,
    ):
        super().__init__()
        if context not in CONTEXTS:
            raise ValueError(f"the context is one of {', '.join(CONTEXTS)}, not {context!r}")
        self.context = context
        self.mask_code = nn.Parameter(F.normalize(torch.randn(dim), dim=-1)) if start else None
        self.layers = nn.ModuleList(
            StreamLayer(
                dim,
                ffn_dim,
                0,
                heads,
                dropout,
                cross="own" if cross else "none",
                ffn_residual="add",
            )
            for _ in range(layers)
        )

    def forward(
        self,
        x: Tensor,
        keep: Tensor,
        eos: Tensor,
        codebook: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Predict codes.

        Args:
            x: code vectors of the sentence ``(batch, len, dim)``.
            keep: non-pad positions ``(batch, len)``, bool.
            eos: end-of-sentence positions, never masked, ``(batch, len)``, bool.
            codebook: the output layer, ``(codes, dim)``.
            memory: the encoder's output ``(batch, src_len, dim)``.
            memory_mask: ``(batch, 1, 1, src_len)``, added to the cross-attention's scores.

        Returns:
            logits ``(predicted, codes)`` in float32 and the predicted positions ``(batch, len)``,
            bool, in whose order the logits come.
        """
        if self.context == "masked":
            assert self.mask_code is not None
            predicted = draw_positions(keep & ~eos)
            x = torch.where(predicted.unsqueeze(-1), self.mask_code.type_as(x), x)
            mask = padding_mask(keep, x.dtype)
        else:
            predicted = keep
            if self.mask_code is not None:
                x = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
                first = keep & ~F.pad(keep, (1, 0))[:, :-1]
                x = torch.where(first.unsqueeze(-1), self.mask_code.type_as(x), x)
            mask = causal_mask(x.size(1), x) + padding_mask(keep, x.dtype)
        streams = x.unsqueeze(0)
        source = None if memory is None else memory.unsqueeze(0)
        for layer in self.layers:
            streams, _ = layer(streams, mask, source, memory_mask)
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(streams[0][predicted].float(), codebook), predicted


def draw_positions(candidates: Tensor) -> Tensor:
    """One position per row, uniform over the row's candidates; none where there are none."""
    draws = torch.rand(candidates.shape, device=candidates.device) + 1.0
    draws = draws * candidates
    index = draws.argmax(-1, keepdim=True)
    return torch.zeros_like(candidates).scatter(-1, index, True) & candidates


def lowest(dtype: torch.dtype) -> float:
    """What hides a position from attention: finite, and twice it still is, so that a row of
    hidden positions (padding) stays free of NaN."""
    return torch.finfo(dtype).min / 2


def padding_mask(keep: Tensor, dtype: torch.dtype) -> Tensor:
    """``(batch, len)`` of non-pads -> ``(batch, 1, 1, len)`` to add to attention scores."""
    mask = torch.zeros(keep.shape, dtype=dtype, device=keep.device)
    return mask.masked_fill_(~keep, lowest(dtype))[:, None, None]


def causal_mask(length: int, like: Tensor) -> Tensor:
    """``(1, 1, length, length)`` to add to attention scores: no position sees a later one."""
    mask = torch.full((length, length), lowest(like.dtype), device=like.device, dtype=like.dtype)
    return mask.triu(1)[None, None]
