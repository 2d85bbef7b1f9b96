"""Encoder and decoder layers with prototype attention between self-attention and what follows."""

from typing import Any

from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

from compgen_fairseq.modules.prototype_attention import PrototypeAttention, Selection


class WithPrototypes(nn.Module):
    """A post-norm layer of fairseq's with prototype attention behind its self-attention.

    Without prototypes it is fairseq's layer.

    Yin et al. (2022), "Categorizing Semantic Representations for Neural Machine Translation",
    section 3.2.

    Attributes:
        prototype_attn: the sublayer; None until it is set.
        prototypes: those of the batch, which the stack sets before it runs its layers.
    """

    self_attn_layer_norm: nn.Module

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.prototype_attn: PrototypeAttention | None = None
        self.prototypes: Selection | None = None
        self.self_attn_layer_norm.register_forward_hook(self._attend)

    def _attend(self, norm: nn.Module, inputs: Any, x: Tensor) -> Tensor:
        """What stands behind the self-attention's LayerNorm, ``(len, batch, dim)``."""
        if self.prototypes is None or self.prototype_attn is None:
            return x
        return self.prototype_attn(x, self.prototypes)


class PrototypeEncoderLayer(WithPrototypes, TransformerEncoderLayerBase):
    """fairseq's encoder layer, with prototype attention before the FFN."""


class PrototypeDecoderLayer(WithPrototypes, TransformerDecoderLayerBase):
    """fairseq's decoder layer, with prototype attention before the cross-attention."""
