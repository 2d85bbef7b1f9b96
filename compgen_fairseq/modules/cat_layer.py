"""One layer of the compositionality-aware Transformer (CAT)."""

from dataclasses import dataclass

from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor

from compgen_fairseq.modules.primitive_composition import PrimitiveComposition
from compgen_fairseq.modules.representation_enhancement import RepresentationEnhancement


@dataclass
class CompositionLayer:
    """The three representations of one layer. B sentences, T positions, D width, K codes."""

    cont: Tensor  # (B, T, D): contextual, the plain Transformer layer's output
    comp: Tensor  # (B, T, D): compositional, a weighted sum of codes
    mix: Tensor  # (B, T, D): both, enhanced; the next layer's input
    attention: Tensor  # (B, T, K): the weights of the codes, not negative, many of them 0
    scores: Tensor  # (B, T, K): how well the codes fit, what the weights come from


@dataclass
class CompositionOutputs:
    """Every layer of an encoder, first to last, and which positions are words."""

    layers: list[CompositionLayer]
    keep: Tensor  # (B, T) bool: non-pad positions


class CATLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer, then primitive composition, then representation enhancement.

    The enhancement has half of the layer's heads, of the same width. A word stands in its sequence
    twice, so it has as many numbers to attend by as in the plain layer. With all heads the two
    modules would cost nearly as much as the layer itself (``docs/notes/speed.md``).

    Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
    Compositionality", section 3.

    Args:
        cfg: fairseq's configuration of the Transformer.
        num_codes: number K of codes.
        detach_query: as for :class:`PrimitiveComposition`.
    """

    def __init__(self, cfg: TransformerConfig, num_codes: int, detach_query: bool = False):
        super().__init__(cfg)
        self.composition = PrimitiveComposition(self.embed_dim, num_codes, detach_query)
        heads = cfg.encoder.attention_heads
        self.enhancement = RepresentationEnhancement(
            self.embed_dim, (heads + 1) // 2, self.embed_dim // heads, cfg.dropout
        )

    def forward(
        self, x: Tensor, encoder_padding_mask: Tensor | None, attn_mask: Tensor | None = None
    ) -> tuple[Tensor, CompositionLayer]:
        """Run the layer.

        Args:
            x: ``(T, B, D)``.
            encoder_padding_mask: ``(B, T)`` bool, True for padding; None where there is none.
            attn_mask: of the plain layer, as fairseq's.

        Returns:
            ``h_mix`` as ``(T, B, D)``, the next layer's input, and all representations.
        """
        cont = super().forward(x, encoder_padding_mask, attn_mask).transpose(0, 1).contiguous()
        comp, attention, scores = self.composition(cont)
        mix = self.enhancement(comp, cont, encoder_padding_mask)
        return mix.transpose(0, 1), CompositionLayer(cont, comp, mix, attention, scores)
