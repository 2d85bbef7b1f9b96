"""Proto-Transformer: a Transformer whose tokens also attend to prototypes of their type.

Yin, Li, Meng, Zhou and Zhang (2022), "Categorizing Semantic Representations for Neural Machine
Translation".
"""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
    TransformerModel,
    base_architecture,
)
from fairseq.models.transformer.transformer_legacy import transformer_iwslt_de_en
from torch import Tensor

from compgen_fairseq.modules.prototype_attention import (
    PrototypeAttention,
    PrototypeLayerNorm,
    PrototypeTable,
)
from compgen_fairseq.prototypes.vocabulary import fingerprint, word_types

SIDES = {
    "one-pass": ("source",),
    "two-pass": ("source",),
    "random": ("source",),
    "target-side": ("target",),
    "source-and-target": ("source", "target"),
}


@dataclass
class PrototypeConfig(FairseqDataclass):
    """Options of ``--arch proto_transformer``, on top of those of ``--arch transformer``."""

    prototypes: ChoiceEnum(list(SIDES)) = field(  # type: ignore[valid-type]
        default="one-pass",
        metadata={
            "help": "where prototypes come from: 'one-pass' clusters the encoder's states after "
            "stage 1; 'two-pass' takes those of another, converged model (--prototype-table); "
            "'random' are trained vectors; 'target-side' clusters the decoder's states for the "
            "decoder; 'source-and-target' does so on both sides"
        },
    )
    prototypes_per_token: int = field(
        default=3, metadata={"help": "number k of prototypes of each type"}
    )
    prototype_min_count: int = field(
        default=10,
        metadata={"help": "types that occur less often in the training set have no prototypes"},
    )

    @classmethod
    def of(cls, args: Any) -> "PrototypeConfig":
        """Take the options out of a namespace with others.

        Raises:
            ValueError: if a number makes no sense.
        """
        names = [f.name for f in fields(cls) if hasattr(args, f.name)]
        config = cls(**{name: getattr(args, name) for name in names})
        if config.prototypes not in SIDES:
            raise ValueError(f"--prototypes is one of {', '.join(SIDES)}, not {config.prototypes}")
        for name in ("prototypes_per_token", "prototype_min_count"):
            if getattr(config, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1")
        return config


def add_prototypes(stack: Any, dictionary: Dictionary, side: Any, cfg: TransformerConfig) -> None:
    """Give every layer of an encoder or decoder its prototype attention, and the stack a table.

    What is drawn for the new parameters leaves the random numbers of everything else alone, so
    that before stage 2 a run is the plain Transformer's run with the same seed.

    Raises:
        ValueError: on layers that normalize before their sublayers.
    """
    if side.normalize_before:
        raise ValueError(
            "proto_transformer has post-norm layers, as in the paper: "
            "leave out --encoder-normalize-before and --decoder-normalize-before"
        )
    table = PrototypeTable(len(dictionary), side.embed_dim, fingerprint(dictionary))
    stack.prototypes = table
    with torch.random.fork_rng():
        for layer in stack.layers.children():
            layer.self_attn_layer_norm = PrototypeLayerNorm(
                side.embed_dim,
                PrototypeAttention(
                    side.embed_dim, side.attention_heads, table, cfg.dropout, cfg.attention_dropout
                ),
            )


class ProtoTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder, which looks up the prototypes of its tokens if it has a table."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.prototypes: PrototypeTable | None = None

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As fairseq's, for ``(batch, src_len)`` tokens."""
        if self.prototypes is not None:
            self.prototypes.select(src_tokens)
        return super().forward(src_tokens, *args, **kwargs)


class ProtoTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder, which looks up the prototypes of its input tokens if it has a table."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.prototypes: PrototypeTable | None = None

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any] | None,
        incremental_state: dict[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's; with ``incremental_state`` only the last of ``(batch, len)`` is run."""
        if self.prototypes is not None:
            new = prev_output_tokens if incremental_state is None else prev_output_tokens[:, -1:]
            self.prototypes.select(new)
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
        config = PrototypeConfig.of(args)
        model = super().build_model(args, task)
        model.prototype_config = config
        sides = {
            "source": (model.encoder, task.source_dictionary, model.cfg.encoder),
            "target": (model.decoder, task.target_dictionary, model.cfg.decoder),
        }
        for name in SIDES[config.prototypes]:
            stack, dictionary, side = sides[name]
            add_prototypes(stack, dictionary, side, model.cfg)
            if config.prototypes == "random":
                frequent = np.array(dictionary.count) >= config.prototype_min_count
                types = torch.from_numpy(np.flatnonzero(word_types(dictionary) & frequent))
                with torch.random.fork_rng():
                    stack.prototypes.draw(types, config.prototypes_per_token)
        return model

    @classmethod
    def build_encoder(cls, args: Any, src_dict: Dictionary, embed_tokens: Any):
        return ProtoTransformerEncoder(
            TransformerConfig.from_namespace(args), src_dict, embed_tokens
        )

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Dictionary, embed_tokens: Any):
        cfg = TransformerConfig.from_namespace(args)
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
        """A checkpoint of the plain Transformer is one of stage 1."""
        super().upgrade_state_dict_named(state_dict, name)
        own = {key: value for key, value in self.state_dict().items() if "prototype" in key}
        if not any("prototype" in key for key in state_dict):
            state_dict.update(own)


def _preset(args: Namespace, k: int) -> None:
    if not hasattr(args, "prototypes_per_token"):
        args.prototypes_per_token = k


@register_model_architecture("proto_transformer", "proto_transformer")
def proto_transformer(args: Namespace) -> None:
    """fairseq's ``transformer`` with three prototypes per type."""
    _preset(args, 3)
    base_architecture(args)


@register_model_architecture("proto_transformer", "proto_transformer_iwslt_de_en")
def proto_transformer_iwslt_de_en(args: Namespace) -> None:
    """IWSLT'14 (table 7: k = 4; train stage 1 for 12 epochs)."""
    _preset(args, 4)
    transformer_iwslt_de_en(args)


@register_model_architecture("proto_transformer", "proto_transformer_cognition")
def proto_transformer_cognition(args: Namespace) -> None:
    """CoGnition (table 7: k = 3; train stage 1 for 8 epochs)."""
    _preset(args, 3)
    transformer_iwslt_de_en(args)


@register_model_architecture("proto_transformer", "proto_transformer_wmt_en_de")
def proto_transformer_wmt_en_de(args: Namespace) -> None:
    """WMT'16 En-De (table 7: k = 5; train stage 1 for 15 epochs)."""
    _preset(args, 5)
    base_architecture(args)


@register_model_architecture("proto_transformer", "proto_transformer_wmt_en_ro")
def proto_transformer_wmt_en_ro(args: Namespace) -> None:
    """WMT'16 En-Ro (table 7: k = 6; train stage 1 for 11 epochs)."""
    _preset(args, 6)
    base_architecture(args)
