"""Proto-Transformer: a Transformer whose tokens also attend to prototypes of their type.

Yin, Li, Meng, Zhou and Zhang (2022), "Categorizing Semantic Representations for Neural Machine
Translation".
"""

from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
    TransformerModel,
    base_architecture,
)
from fairseq.models.transformer.transformer_legacy import transformer_iwslt_de_en
from torch import Tensor, nn

from compgen.ranges import AT_LEAST_1, ranges
from compgen_fairseq.models.known_dictionary import fingerprint, know_dictionaries
from compgen_fairseq.modules.prototype_attention import PrototypeAttention, PrototypeTable
from compgen_fairseq.options import option, register_preset, take
from compgen_fairseq.prototypes.extract import Settings
from compgen_fairseq.prototypes.states import LAYERS
from compgen_fairseq.prototypes.vocabulary import word_types

SIDES = {
    "one-pass": ("source",),
    "two-pass": ("source",),
    "random": ("source",),
    "target-side": ("target",),
    "source-and-target": ("source", "target"),
}


@ranges((AT_LEAST_1, ("prototypes_per_token", "prototype_min_count")))
@dataclass
class PrototypeConfig(FairseqDataclass):
    """Options of ``--arch proto_transformer``, on top of those of ``--arch transformer``."""

    prototypes: ChoiceEnum(list(SIDES)) = option(  # type: ignore[valid-type]
        "one-pass",
        "where prototypes come from: 'one-pass' clusters the encoder's states after "
        "stage 1; 'two-pass' takes those of another, converged model (--prototype-table); "
        "'random' are trained vectors; 'target-side' clusters the decoder's states for the "
        "decoder; 'source-and-target' does so on both sides",
    )
    prototypes_per_token: int = option(3, "number k of prototypes of each type")
    prototype_layer: ChoiceEnum(list(LAYERS)) = option(  # type: ignore[valid-type]
        Settings.layer,
        "the layer whose states are clustered: the last but one, as for the published "
        "results (of a single layer: that one), or the last, as the paper writes",
    )
    prototype_identity: bool = option(
        False,
        "start the new sublayers as the identity, so that stage 2 begins with the "
        "outputs that stage 1 ended with (beyond the paper)",
    )
    prototype_min_count: int = option(
        10,
        "types that occur less often in the training set (random: that have a smaller count in the "
        "dictionary, a joined one's is of both sides) have no prototypes",
    )


def add_prototypes(
    stack: Any, dictionary: Dictionary, side: Any, cfg: TransformerConfig, config: PrototypeConfig
) -> None:
    """Give every layer of an encoder or decoder its prototype attention, and the stack a table.

    The attention stands behind the self-attention's LayerNorm, before the FFN or the
    cross-attention (section 3.2).

    Raises:
        ValueError: on options of fairseq's that can't go with it.
    """
    if side.normalize_before:
        raise ValueError(
            "proto_transformer has post-norm layers, as in the paper: leave out "
            "--encoder-normalize-before and --decoder-normalize-before"
        )
    if cfg.cross_self_attention:
        raise ValueError(
            "proto_transformer has self-attention alone: leave out --cross-self-attention"
        )
    if cfg.checkpoint_activations and config.prototypes == "random":
        raise ValueError(
            "proto_transformer has trained prototypes, whose gradient can't be checkpointed: "
            "leave out --checkpoint-activations"
        )
    table = PrototypeTable(len(dictionary), side.embed_dim, fingerprint(dictionary), cfg.dropout)
    stack.prototypes = table
    for layer in stack.layers.children():
        layer.prototype_attn = PrototypeAttention(
            side.embed_dim,
            side.attention_heads,
            cfg.dropout,
            cfg.attention_dropout,
            identity=config.prototype_identity,
        )
        layer.prototypes = None
        layer.self_attn_layer_norm.register_forward_hook(partial(attend, layer))


def attend(layer: Any, norm: nn.Module, inputs: Any, x: Tensor) -> Tensor:
    """Add what the prototypes of its tokens say to a layer's states ``(len, batch, dim)``."""
    return x if layer.prototypes is None else layer.prototype_attn(x, layer.prototypes)


def hand_out(stack: Any, tokens: Tensor) -> None:
    """Give the layers of a stack the prototypes of ``(batch, len)`` tokens, if there are any."""
    if (table := getattr(stack, "prototypes", None)) is not None:
        selection = table.select(tokens)
        for layer in stack.layers.children():  # the iterator of a list with LayerDrop skips some
            layer.prototypes = selection


class ProtoTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder, whose layers get the prototypes of its tokens if it has a table."""

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As fairseq's, for ``(batch, src_len)`` tokens."""
        hand_out(self, src_tokens)
        return super().forward(src_tokens, *args, **kwargs)


class ProtoTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder, whose layers get the prototypes of its input if it has a table."""

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any] | None,
        incremental_state: dict[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's; with ``incremental_state`` only the last of ``(batch, len)`` is run."""
        run = prev_output_tokens if incremental_state is None else prev_output_tokens[:, -1:]
        hand_out(self, run)
        return super().extract_features(
            prev_output_tokens, encoder_out, incremental_state, *args, **kwargs
        )


@register_model("proto_transformer")
class ProtoTransformerModel(TransformerModel):
    """The plain Transformer until its tables are filled (stage 1), then the Proto-Transformer."""

    encoder: ProtoTransformerEncoder
    decoder: ProtoTransformerDecoder
    prototype_config: PrototypeConfig

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the flags; defaults are left to the architecture presets."""
        super().add_args(parser)
        gen_parser_from_dataclass(parser, PrototypeConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "ProtoTransformerModel":
        """Build the model for a task with two dictionaries.

        Raises:
            ValueError: on options that can't go together.
        """
        config = take(PrototypeConfig, args)
        model = super().build_model(args, task)
        model.prototype_config = config
        sides = {
            "source": (model.encoder, task.source_dictionary, model.cfg.encoder),
            "target": (model.decoder, task.target_dictionary, model.cfg.decoder),
        }
        # everything else draws what it draws without prototypes: before stage 2 a run is the plain
        # Transformer's run with the same seed
        with torch.random.fork_rng(devices=[]):
            for name in SIDES[config.prototypes]:
                stack, dictionary, side = sides[name]
                add_prototypes(stack, dictionary, side, model.cfg, config)
                if config.prototypes == "random":
                    frequent = np.array(dictionary.count) >= config.prototype_min_count
                    types = torch.from_numpy(np.flatnonzero(word_types(dictionary) & frequent))
                    if not len(types):
                        raise ValueError(
                            f"no word of the {name} dictionary has a count of "
                            f"{config.prototype_min_count} in it; lower --prototype-min-count"
                        )
                    stack.prototypes.draw(types, config.prototypes_per_token)
        return know_dictionaries(model)

    @classmethod
    def build_encoder(cls, cfg: TransformerConfig, src_dict: Dictionary, embed_tokens: Any):
        return ProtoTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg: TransformerConfig, tgt_dict: Dictionary, embed_tokens: Any):
        return ProtoTransformerDecoder(cfg, tgt_dict, embed_tokens, cfg.no_cross_attention)

    def tables(self) -> dict[str, PrototypeTable]:
        """The tables by side, ``source`` before ``target``."""
        stacks: dict[str, Any] = {"source": self.encoder, "target": self.decoder}
        sides = SIDES[self.prototype_config.prototypes]
        return {side: stacks[side].prototypes for side in sides}

    def train_prototype_attention(self, on: bool) -> None:
        """Say whether the new sublayers take part in training, as they do in stage 2.

        In stage 1 they get no gradient. fairseq's own data parallelism makes zeros of that, which
        weight decay would then shrink them by; parameters that ask for no gradient it leaves out.
        The half-precision optimizer counts on the same parameters for ever, so there they keep
        asking.
        """
        for part in self.modules():
            if isinstance(part, PrototypeAttention):
                for parameter in part.parameters():
                    if parameter.dtype == torch.float32:
                        parameter.requires_grad_(on)

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """A checkpoint of the plain Transformer is one of stage 1.

        Raises:
            ValueError: on one whose new sublayers stood inside a LayerNorm.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if any("self_attn_layer_norm.prototype_attn" in key for key in state_dict):
            raise ValueError(
                "this proto_transformer is from a revision without --prototype-layer and without "
                "dropout on prototypes: train it again, or use revision a96ce48"
            )
        own = {key: value for key, value in self.state_dict().items() if "prototype" in key}
        if not any("prototype" in key for key in state_dict):
            state_dict.update(own)


#: Prototypes of each type, and the size: fairseq's ``transformer``, or the paper's data sets
#: (table 7; it trains stage 1 for 8 epochs on CoGnition, 12 on IWSLT'14 En-De, 15 on WMT'16 En-De
#: and 11 on WMT'16 En-Ro).
PRESETS = {
    "proto_transformer": (3, base_architecture),
    "proto_transformer_iwslt_de_en": (4, transformer_iwslt_de_en),
    "proto_transformer_cognition": (3, transformer_iwslt_de_en),
    "proto_transformer_wmt_en_de": (5, base_architecture),
    "proto_transformer_wmt_en_ro": (6, base_architecture),
}
for _name, (_k, _base) in PRESETS.items():
    register_preset("proto_transformer", _name, {"prototypes_per_token": _k}, _base)
