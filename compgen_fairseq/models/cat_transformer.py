"""CAT for translation: a Transformer whose encoder composes its states from trained codes.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality". The paper has an encoder alone; here fairseq's decoder reads it.
"""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerEncoderBase,
    TransformerModel,
    base_architecture,
)
from fairseq.models.transformer.transformer_legacy import transformer_iwslt_de_en
from omegaconf import OmegaConf
from torch import Tensor

from compgen.ranges import Range, ranges
from compgen_fairseq.models.known_dictionary import know_dictionaries
from compgen_fairseq.modules.cat_layer import CATLayer, CompositionOutputs
from compgen_fairseq.options import option, register_preset, take

REPRESENTATIONS = ("cont", "comp", "mix")


@ranges((Range(2), ("codes",)))
@dataclass
class CompositionConfig(FairseqDataclass):
    """Options of ``--arch cat_transformer``, on top of those of ``--arch transformer``."""

    codes: int = option(1000, "size of every encoder layer's codebook")
    detach_query: bool = option(
        False, "no gradient reaches a state through the weights of its codes"
    )
    representation: ChoiceEnum(list(REPRESENTATIONS)) = option(  # type: ignore[valid-type]
        "mix",
        "what the decoder reads of the last encoder layer: contextual, compositional "
        "or mixed states",
    )


class CATEncoder(TransformerEncoderBase):
    """fairseq's encoder with CAT layers.

    Raises:
        ValueError: on fairseq's options that can't go with CAT layers.
    """

    def __init__(
        self,
        cfg: TransformerConfig,
        dictionary: Dictionary,
        embed_tokens: Any,
        composition: CompositionConfig,
    ):
        post_norm = "(CAT's layers are post-norm, as in the paper)"
        for flag, given in {
            f"--encoder-normalize-before {post_norm}": cfg.encoder.normalize_before,
            "--encoder-layerdrop": cfg.encoder.layerdrop,
            "--checkpoint-activations": cfg.checkpoint_activations,
        }.items():
            if given:
                raise ValueError(f"cat_transformer can't take {flag}: leave it out")
        self.composition = composition  # before what calls build_encoder_layer
        super().__init__(cfg, dictionary, embed_tokens)
        if composition.representation != "mix":  # nothing reads the last layer's mixed states
            self.layers[-1].enhancement.requires_grad_(False)

    def build_encoder_layer(self, cfg: TransformerConfig) -> CATLayer:
        """A layer with a codebook of its own."""
        own = self.composition
        return CATLayer(cfg, own.codes, own.detach_query)

    def forward(
        self, src_tokens: Tensor, src_lengths: Any = None, return_all_hiddens: bool = False
    ) -> dict[str, Any]:
        """As fairseq's, for ``(batch, src_len)`` tokens; ``composition`` holds every layer's
        representations as :class:`CompositionOutputs`."""
        # fairseq collects what a layer returns beside its states, if asked for all hidden states
        out = super().forward(src_tokens, return_all_hiddens=True)
        layers, out["fc_results"] = out["fc_results"], []
        if not return_all_hiddens:
            out["encoder_states"] = []
        if self.composition.representation != "mix":
            states = getattr(layers[-1], self.composition.representation)
            out["encoder_out"] = [states.transpose(0, 1)]
        out["composition"] = CompositionOutputs(layers, src_tokens.ne(self.padding_idx))
        return out


@register_model("cat_transformer")
class CATTransformerModel(TransformerModel):
    """A CAT encoder and fairseq's decoder."""

    encoder: CATEncoder

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the flags; defaults are left to the architecture presets."""
        super().add_args(parser)
        gen_parser_from_dataclass(parser, CompositionConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "CATTransformerModel":
        """Build the model for a task with two dictionaries."""
        if OmegaConf.is_config(args):  # fairseq takes CAT's own options from a namespace alone
            args = Namespace(**args)
        return know_dictionaries(super().build_model(args, task))

    @classmethod
    def build_encoder(
        cls, cfg: TransformerConfig, src_dict: Dictionary, embed_tokens: Any
    ) -> CATEncoder:
        return CATEncoder(cfg, src_dict, embed_tokens, take(CompositionConfig, cfg))

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **options: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's, for ``(batch, src_len)`` and ``(batch, tgt_len)`` tokens; the dictionary
        has the encoder's ``composition`` too."""
        encoder_out = self.encoder(src_tokens, src_lengths)
        logits, extra = self.decoder(prev_output_tokens, encoder_out=encoder_out, **options)
        return logits, {**extra, "composition": encoder_out["composition"]}


def _sizes(layers: int, dim: int, ffn: int, heads: int) -> dict[str, int]:
    """Both sides' sizes; fairseq gives the decoder the encoder's widths where it has none."""
    return {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_embed_dim": dim,
        "encoder_ffn_embed_dim": ffn,
    }


#: The sizes of fairseq's ``transformer`` and ``transformer_iwslt_de_en``, or SQ-Transformer's, and
#: the paper's 1,000 codes in every encoder layer. With 64, COGS was learned slower. SCAN's language
#: has about 20 words, each a primitive: 32 codes leave room for what a word is in its context, and
#: the whole codebook is in use.
PRESETS = {
    "cat_transformer": {"codes": 1000},
    "cat_transformer_scan": {"codes": 32, **_sizes(3, 256, 512, 4)},
    "cat_transformer_cogs": {"codes": 1000, **_sizes(3, 256, 512, 4)},
    "cat_transformer_cognition": {"codes": 1000, **_sizes(6, 512, 1024, 8)},
}
for _name, _preset in PRESETS.items():
    register_preset("cat_transformer", _name, _preset, base_architecture)
register_preset(
    "cat_transformer", "cat_transformer_iwslt_de_en", {"codes": 1000}, transformer_iwslt_de_en
)
