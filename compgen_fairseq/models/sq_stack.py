"""What SQ-Transformer's encoder and decoder share."""

import math
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.models.sq_config import SQTransformerConfig
from compgen_fairseq.modules.code_predictor import CodePredictor
from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.packing import pack, packing, unpack
from compgen_fairseq.modules.structural_outputs import SideOutputs
from compgen_fairseq.modules.systematic_attention import Cache
from compgen_fairseq.modules.transformer_layer import StreamLayer
from compgen_fairseq.modules.vector_quantizer import VectorQuantizer


class StreamStack(nn.Module):
    """Embeddings, codes, layers and the prior over codes of one side; ``cfg`` is resolved."""

    def __init__(
        self, cfg: SQTransformerConfig, embedding: nn.Embedding, dictionary, decoder: bool
    ):
        super().__init__()
        side = "decoder" if decoder else "encoder"
        dim = cfg.encoder_embed_dim
        self.attention = cfg.attention
        self.mmi = cfg.mmi
        self.predictor_share = cfg.predictor_share
        self.dropout = cfg.dropout
        self.embedding = embedding
        self.scale = math.sqrt(dim)
        self.eos = dictionary.eos()
        self.pad = dictionary.pad()
        heads = getattr(cfg, f"{side}_attention_heads")
        sal = cfg.attention == "sal"
        shared = sal and cfg.sal_cross_attention == "shared"
        cross = "none"
        if decoder:
            cross = "shared" if shared else "own"
        #: whether nothing reads the code stream of the last layer
        self.words_only = sal and (decoder or shared) and cfg.class_meanings != "own"
        self.layers: Any = nn.ModuleList(
            StreamLayer(
                dim,
                getattr(cfg, f"{side}_ffn_embed_dim"),
                cfg.decoder_ffn_embed_dim,
                heads,
                cfg.dropout,
                cfg.attention_dropout,
                cfg.activation_dropout,
                shared_weights=sal,
                cross=cross,
            )
            for _ in range(getattr(cfg, f"{side}_layers"))
        )
        self.quantizer: VectorQuantizer | None = None
        self.predictor: CodePredictor | None = None
        predicts = cfg.quantizer == "sovq" and cfg.code_classes == "learned"
        self.masks = predicts and sal and not decoder
        if cfg.quantizer != "none":
            assert cfg.code_ema_decay is not None  # as resolved
            self.quantizer = VectorQuantizer(
                cfg.target_codes if decoder else cfg.source_codes,
                dim,
                len(dictionary),
                cfg.posterior,
                cfg.code_ema_decay,
                straight_through=sal,
                mask_code=self.masks,
            )
        if predicts:
            assert self.quantizer is not None
            self.predictor = CodePredictor(
                getattr(cfg, f"{side}_predictor_layers"),
                dim,
                cfg.decoder_ffn_embed_dim,
                heads,
                len(self.quantizer.weight),
                cfg.dropout,
                cross=decoder,
            )

    def embed(self, tokens: Tensor) -> Tensor:
        """Scaled word embeddings, ``(batch, len)`` -> ``(batch, len, dim)``."""
        return self.embedding(tokens) * self.scale

    def drop(self, x: Tensor) -> Tensor:
        """Dropout on embeddings."""
        return apply_dropout(x, self.dropout, self.training)

    def needs_codes(self, structural: bool) -> bool:
        """Whether this pass runs the code stream: SAL always, SRL while training its terms."""
        return self.attention == "sal" or (self.attention == "srl" and structural)

    def run(
        self,
        streams: Tensor,
        mask: Tensor | None,
        keep: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[Cache] | None = None,
        need_weights: bool = False,
    ) -> tuple[list[Tensor], Tensor | None]:
        """Run the layers; arguments as of :meth:`StreamLayer.forward`.

        Args:
            keep: whose outputs are read, ``(batch, len)``, bool; in training on a CPU those of
                others may be 0.

        Returns:
            the output of each layer, ``(streams, batch, len, dim)``, the last one's alone but for
            SRL, and, if needed, the last one's weights. Where nothing reads the code stream of
            SAL's last layer, it has the word stream alone.
        """
        packed = packing(keep, self.training)
        x = pack(streams, packed)
        layers, weights = [], None
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            last = i + 1 == len(self.layers)
            x, weights = layer(
                *(x, mask, memory, memory_mask, cache),
                *(need_weights and last, packed, last and self.words_only),
            )
            if last or self.attention == "srl":
                layers.append(unpack(x, packed))
        return layers, weights

    def predict_codes(
        self,
        side: SideOutputs,
        x: Tensor,
        mask: Tensor,
        where: Tensor,
        following: Tensor | None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> None:
        """Fill in p(z|context) and the q(z|x) that it is compared with.

        Args:
            side: the side's tensors.
            x: the context ``(batch, len, dim)``.
            mask: added to the predictor's attention scores, ``(batch, 1, 1 or len, len)``.
            where: the positions to predict from, ``(batch, len)``, bool.
            following: the index of the token that each position predicts, ``(batch, len)``; None
                if each predicts its own.
            memory: the encoder's output ``(batch, src_len, dim)``.
            memory_mask: added to the predictor's attention to it.
        """
        assert self.predictor is not None and self.quantizer is not None
        posterior, keep = side.posterior, side.keep
        if following is not None:
            posterior = posterior.gather(1, following.unsqueeze(-1).expand_as(posterior))
        if self.training and self.predictor_share < 1:
            drawn = torch.randperm(len(x), device=x.device)
            drawn = drawn[: math.ceil(self.predictor_share * len(x))]
            x, mask, where, posterior = x[drawn], mask[drawn], where[drawn], posterior[drawn]
            keep = keep[drawn]
            if memory is not None and memory_mask is not None:
                memory, memory_mask = memory[drawn], memory_mask[drawn]
        packed = packing(keep, self.training)
        vectors = self.quantizer.vectors()
        places = where.nonzero(as_tuple=True)
        side.prior = self.predictor(x, mask, places, vectors, memory, memory_mask, packed)
        side.predicted = posterior[places]

    @torch.no_grad()
    def type_codes(self) -> Tensor:
        """The code of every type of the vocabulary, ``(types,)``."""
        assert self.quantizer is not None
        types = torch.arange(self.embedding.num_embeddings, device=self.embedding.weight.device)
        return self.quantizer.quantize(self.embed(types), types).codes


def next_positions(keep: Tensor) -> Tensor:
    """Where each target token stands among ``prev_output_tokens``, ``(batch, len)``.

    The targets are the previous outputs moved one to the left, with the end of the sentence, which
    starts ``prev_output_tokens``, at the end.

    Args:
        keep: non-pad positions of ``prev_output_tokens``, ``(batch, len)``, bool.
    """
    length = keep.size(1)
    index = torch.arange(1, length + 1, device=keep.device).expand(keep.shape)
    last = ~F.pad(keep, (0, 1))[:, 1:]
    first = keep.to(torch.uint8).argmax(-1, keepdim=True)
    return torch.where(last, first, index.clamp(max=length - 1))
