"""Encoder and decoder layers with prototype attention between self-attention and what follows."""

from typing import Any

from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor

from compgen_fairseq.modules.prototype_attention import PrototypeAttention, Selection


class PrototypeEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's post-norm encoder layer, with prototype attention before the FFN.

    Without prototypes it is fairseq's layer.

    Yin et al. (2022), "Categorizing Semantic Representations for Neural Machine Translation",
    section 3.2.

    Attributes:
        prototype_attn: the sublayer; None until it is set.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.prototype_attn: PrototypeAttention | None = None

    def forward(  # type: ignore[override]
        self, x: Tensor, encoder_padding_mask: Tensor | None, prototypes: Selection | None = None
    ) -> Tensor:
        """Run the layer.

        Args:
            x: ``(len, batch, dim)``.
            encoder_padding_mask: ``(batch, len)`` bool, True for padding; None where there is none.
            prototypes: those of the batch.

        Returns:
            ``(len, batch, dim)``.
        """
        if prototypes is None or self.prototype_attn is None:
            return super().forward(x, encoder_padding_mask)
        y, _ = self.self_attn(x, x, x, key_padding_mask=encoder_padding_mask, need_weights=False)
        x = self.self_attn_layer_norm(x + self.dropout_module(y))
        return feed_forward(self, self.prototype_attn(x, prototypes))


class PrototypeDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's post-norm decoder layer, with prototype attention before the cross-attention.

    Attributes:
        prototype_attn: the sublayer; None until it is set.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.prototype_attn: PrototypeAttention | None = None

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        incremental_state: dict[str, Any] | None = None,
        *args: Any,
        prototypes: Selection | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None, list[Tensor] | None]:
        """Run the layer; arguments and results are fairseq's, and the batch's prototypes."""
        if prototypes is None or self.prototype_attn is None:
            return super().forward(
                x, encoder_out, encoder_padding_mask, incremental_state, *args, **options
            )
        y, _ = self.self_attn(
            x,
            x,
            x,
            key_padding_mask=options.get("self_attn_padding_mask"),
            incremental_state=incremental_state,
            need_weights=False,
            attn_mask=options.get("self_attn_mask"),
        )
        x = self.self_attn_layer_norm(x + self.dropout_module(y))
        x = self.prototype_attn(x, prototypes)
        attention = None
        if self.encoder_attn is not None and encoder_out is not None:
            need_weights = options.get("need_attn") or (not self.training and self.need_attn)
            y, attention = self.encoder_attn(
                x,
                encoder_out,
                encoder_out,
                key_padding_mask=encoder_padding_mask,
                incremental_state=incremental_state,
                static_kv=True,
                need_weights=need_weights,
                need_head_weights=options.get("need_head_weights", False),
            )
            x = self.encoder_attn_layer_norm(x + self.dropout_module(y))
        return feed_forward(self, x), attention, None


def feed_forward(layer: Any, x: Tensor) -> Tensor:
    """The FFN sublayer of one of fairseq's post-norm layers, ``(len, batch, dim)``."""
    inner = layer.activation_dropout_module(layer.activation_fn(layer.fc1(x)))
    return layer.final_layer_norm(x + layer.dropout_module(layer.fc2(inner)))
