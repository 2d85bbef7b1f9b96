"""What SQ-Transformer's encoder and decoder share."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.modules import PositionalEmbedding
from torch import Tensor

from compgen_fairseq.models.sq_config import SQTransformerConfig
from compgen_fairseq.modules.code_predictor import CodePredictor
from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.transformer_layer import StreamLayer
from compgen_fairseq.modules.vector_quantizer import (
    Quantized,
    VectorQuantizer,
    code_logits,
    first_argmax,
)


def build_embedding(dictionary, dim: int) -> nn.Embedding:
    """Embeddings with a deviation of ``dim ** -0.5``, zero for padding."""
    embedding = nn.Embedding(len(dictionary), dim, dictionary.pad())
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    return embedding


class StreamStack(nn.Module):
    """What encoder and decoder share: embeddings, codes, layers, and the prior over codes.

    Args:
        cfg: the resolved configuration.
        embedding: the side's word embeddings.
        dictionary: the side's dictionary.
        decoder: which side this is.
    """

    def __init__(
        self, cfg: SQTransformerConfig, embedding: nn.Embedding, dictionary, decoder: bool
    ):
        super().__init__()
        side = "decoder" if decoder else "encoder"
        dim = cfg.encoder_embed_dim
        self.attention = cfg.attention
        self.mmi = cfg.mmi
        self.dropout = cfg.dropout
        self.embedding = embedding
        self.scale = math.sqrt(dim)
        self.eos = dictionary.eos()
        self.pad = dictionary.pad()
        heads = getattr(cfg, f"{side}_attention_heads")
        ffn_dim = getattr(cfg, f"{side}_ffn_embed_dim")
        longest = cfg.max_target_positions if decoder else cfg.max_source_positions
        cross = "none"
        if decoder:
            cross = (
                "shared"
                if cfg.attention == "sal" and cfg.sal_cross_attention == "shared"
                else "own"
            )
        self.positions = (
            PositionalEmbedding(longest, dim, self.pad, learned=False)
            if cfg.positions == "sinusoidal"
            else None
        )
        self.layers = nn.ModuleList(
            StreamLayer(
                dim,
                ffn_dim,
                cfg.decoder_ffn_embed_dim,
                heads,
                cfg.dropout,
                cfg.attention_dropout,
                cfg.activation_dropout,
                relative=cfg.max_relative_distance if cfg.positions == "relative" else None,
                shared_weights=cfg.attention == "sal",
                cross=cross,
                ffn_residual=cfg.ffn_residual,
            )
            for _ in range(getattr(cfg, f"{side}_layers"))
        )
        self.quantizer: VectorQuantizer | None = None
        self.predictor: CodePredictor | None = None
        assert cfg.ema_decay is not None, "resolve() comes first"
        assert cfg.predictor_context is not None and cfg.predictor_ffn_embed_dim is not None
        if cfg.quantizer != "none":
            self.quantizer = VectorQuantizer(
                cfg.target_codes if decoder else cfg.source_codes,
                dim,
                len(dictionary),
                cfg.posterior,
                cfg.posterior_sharpness,
                cfg.ema_decay,
                cfg.straight_through == "yes",
            )
        if cfg.quantizer == "sovq" and cfg.code_classes == "learned":
            self.predictor = CodePredictor(
                getattr(cfg, f"{side}_predictor_layers"),
                dim,
                cfg.predictor_ffn_embed_dim,
                heads,
                cfg.dropout,
                "left" if decoder else cfg.predictor_context,
                cross=decoder,
                start=not decoder,
            )

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled word embeddings with dropout, ``(batch, len)`` -> ``(batch, len, dim)``."""
        x = self.embedding(tokens) * self.scale
        return apply_dropout(x, self.dropout, self.training)

    def quantize(self, x: Tensor, tokens: Tensor, structural: bool) -> Quantized | None:
        """The codes of the embeddings ``(batch, len, dim)``, where this pass needs them."""
        if self.quantizer is None or not (structural or self.needs_codes(structural)):
            return None
        return self.quantizer.quantize(x, tokens, self.quantizer.codebook())

    @property
    def learns_codes(self) -> bool:
        """Whether the MMI terms are trained: there is a predictor, and the codes may move."""
        return (
            self.predictor is not None and self.quantizer is not None and not self.quantizer.frozen
        )

    def streams(self, x: Tensor, quantized: Quantized | None, positions: Tensor | None) -> Tensor:
        """Stack the streams: ``(1 or 2, batch, len, dim)``, codes first, words last."""
        parts = [x] if quantized is None else [quantized.vectors, x]
        streams = torch.stack(parts)
        return streams if positions is None else streams + positions

    def needs_codes(self, structural: bool) -> bool:
        """Whether this pass runs the code stream: SAL always, SRL while training its terms."""
        return self.attention == "sal" or (self.attention == "srl" and structural)

    @torch.no_grad()
    def type_codes(self) -> Tensor:
        """The code of every type of the vocabulary, ``(types,)``."""
        quantizer = self.quantizer
        assert quantizer is not None
        if quantizer.frozen:
            return quantizer.type_codes
        embeddings = self.embedding.weight * self.scale
        return first_argmax(code_logits(embeddings, quantizer.codebook(), quantizer.similarity))

    def freeze_codes(self, codes: Tensor | None = None) -> None:
        """Fix every type's code for good: the nearest code's, or the given ``(types,)``."""
        assert self.quantizer is not None
        self.quantizer.type_codes.copy_(self.type_codes() if codes is None else codes)


def next_positions(keep: Tensor) -> tuple[Tensor, Tensor]:
    """Where each target token stands among ``prev_output_tokens``.

    The targets are the previous outputs moved one to the left, with the end of the sentence, which
    starts ``prev_output_tokens``, at the end.

    Args:
        keep: non-pad positions of ``prev_output_tokens``, ``(batch, len)``, bool.

    Returns:
        for each position the index of its target, ``(batch, len)``, and which of them count.
    """
    length = keep.size(1)
    index = torch.arange(1, length + 1, device=keep.device).expand(keep.shape)
    last = ~F.pad(keep, (0, 1))[:, 1:]
    first = keep.to(torch.uint8).argmax(-1, keepdim=True)
    return torch.where(last, first, index.clamp(max=length - 1)), keep
