"""CAT: the compositionality-aware Transformer encoder, pre-trained and fine-tuned as BERT is.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality".
"""

import logging
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.roberta.model import RobertaClassificationHead, RobertaLMHead
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from torch import Tensor

from compgen.ranges import AT_LEAST_0, AT_LEAST_1, RATE, Range, ranges
from compgen_fairseq import flags
from compgen_fairseq.models.cat_transformer import REPRESENTATIONS
from compgen_fairseq.models.known_dictionary import know_dictionaries
from compgen_fairseq.modules.cat_layer import CATLayer, CompositionOutputs
from compgen_fairseq.options import option, options_of, register_preset, take

logger = logging.getLogger(__name__)


@ranges(
    (AT_LEAST_1, ("max_positions",)),
    (RATE, ("pooler_dropout",)),
    (Range(2), ("codes",)),
    (AT_LEAST_0, ("sememe_codes",)),
)
@dataclass
class CATConfig(FairseqDataclass):
    """Every option of ``--arch cat``; the sizes default to the paper's (appendix A.1)."""

    encoder_layers: int = option(4, "number of layers")
    encoder_embed_dim: int = option(768, "width of the model")
    encoder_ffn_embed_dim: int = option(3072, "inner width of the FFN")
    encoder_attention_heads: int = option(12, "attention heads")
    dropout: float = option(0.1, "dropout on embeddings and sublayer outputs")
    attention_dropout: float = option(
        0.1, "dropout on attention weights of the contextual layer, not of the enhancement"
    )
    pooler_dropout: float = option(0.1, "dropout in the heads that read [CLS]")
    max_positions: int = option(128, "longest pair of sentences, in subwords, [CLS] and [SEP] too")
    composition: ChoiceEnum(["codebook", "none"]) = option(  # type: ignore[valid-type]
        "codebook",
        "codebook: every layer composes its states from codes and mixes both; none: the plain "
        "encoder of the same size, BERT",
    )
    detach_query: bool = option(
        False, "no gradient reaches a state through the weights of its codes"
    )
    codes: int = option(1000, "size of the codebook of every layer but the last")
    sememe_codes: int = option(
        0,
        "size of the last layer's codebook (0: one code per sememe of the pre-training data; a "
        "task without sememes needs the number that the model was pre-trained with)",
    )
    representation: ChoiceEnum(list(REPRESENTATIONS)) = option(  # type: ignore[valid-type]
        "mix",
        "which states of the last layer the features and the classification heads are made from: "
        "contextual, compositional or mixed (--composition none has the contextual ones alone)",
    )
    freeze_backbone: bool = option(False, "train the classification heads alone")

    def transformer(self) -> TransformerConfig:
        """fairseq's configuration of the plain part, with BERT's choices."""
        cfg = TransformerConfig.from_namespace(self)  # sizes and dropouts have fairseq's names
        cfg.encoder.learned_pos = True
        cfg.activation_fn = "gelu"
        cfg.max_source_positions = self.max_positions
        cfg.no_scale_embedding = cfg.layernorm_embedding = True
        return cfg


def warn_of_untrained(path: str, cfg: Any) -> None:
    """Warn if the mixed states of a checkpoint with this configuration mean nothing."""
    if flag := flags.unread_mix(cfg.model, cfg.criterion):
        logger.warning(
            "nothing has trained the mixed states of %s, which had %s: take the representation "
            "cont",
            path,
            flag,
        )


@dataclass
class PretrainingOutputs:
    """What the heads make of each representation asked for: ``cont``, ``comp``, ``mix`` or
    ``nuance``, which is ``cont - comp``. B pairs, N masked positions, V subwords, K sememes."""

    words: dict[str, Tensor]  # (N, V): logits of the masked subwords
    next_sentence: dict[str, Tensor]  # (B, 2): logits; 1: the second part follows the first
    composition: CompositionOutputs | None  # None with --composition none
    attention: Tensor | None  # (B, T or words, K): weights of the last layer's codes
    scores: Tensor | None  # the same codes' scores before the ReLU, if asked for


class CATEncoder(TransformerEncoderBase):
    """fairseq's encoder with segment embeddings and, unless it is to be plain, CAT layers.

    The second segment begins after the first ``</s>``, so tokens alone say where it is. The last
    layer's codebook has one code for each of ``sememes``.
    """

    def __init__(self, cfg: CATConfig, dictionary: Dictionary, sememes: int):
        self._codebooks = iter([cfg.codes] * (cfg.encoder_layers - 1) + [sememes])
        self.plain = cfg.composition == "none"
        self.detach_query = cfg.detach_query
        dim = cfg.encoder_embed_dim
        super().__init__(
            cfg.transformer(), dictionary, nn.Embedding(len(dictionary), dim, dictionary.pad())
        )
        del self._codebooks
        self.separator = dictionary.eos()
        self.embed_segments = nn.Embedding(2, dim)
        parts = [self.embed_tokens, self.embed_positions, self.embed_segments]
        for layer in self.layers:
            parts += [layer.self_attn, layer.fc1, layer.fc2]
        for part in parts:
            part.apply(init_bert_params)

    def build_encoder_layer(self, cfg: TransformerConfig) -> TransformerEncoderLayerBase:
        """A plain layer, or one with a codebook of its own."""
        if self.plain:
            return TransformerEncoderLayerBase(cfg)
        return CATLayer(cfg, next(self._codebooks), self.detach_query)

    def segments(self, src_tokens: Tensor) -> Tensor:
        """0 up to the first ``</s>``, then 1; ``(B, T)``."""
        separators = src_tokens.eq(self.separator).long()
        return (separators.cumsum(1) - separators).clamp(max=1)

    def representations(self, src_tokens: Tensor) -> tuple[Tensor, CompositionOutputs | None]:
        """Encode.

        Args:
            src_tokens: ``(B, T)``, padded on the right.

        Returns:
            The last layer's output ``(B, T, D)`` and, unless the encoder is plain, the
            representations of every layer.
        """
        embedded = self.embed_tokens(src_tokens) + self.embed_segments(self.segments(src_tokens))
        out = self.forward(src_tokens, return_all_hiddens=True, token_embeddings=embedded)
        keep = src_tokens.ne(self.padding_idx)
        # fairseq collects here what a layer returns beside its states
        layers = None if self.plain else CompositionOutputs(out["fc_results"], keep)
        return out["encoder_out"][0].transpose(0, 1), layers


@register_model("cat", dataclass=CATConfig)
class CATModel(BaseFairseqModel):
    """A CAT or BERT encoder, BERT's two pre-training heads, and heads for classification."""

    def __init__(self, cfg: CATConfig, encoder: CATEncoder):
        super().__init__()
        self.cfg = cfg
        self.encoder = encoder
        dim, vocabulary = cfg.encoder_embed_dim, len(encoder.dictionary)
        self.lm_head = RobertaLMHead(dim, vocabulary, "gelu", encoder.embed_tokens.weight)
        self.next_sentence_head = self._head(2)
        self.classification_heads = nn.ModuleDict()
        for head in (self.lm_head.dense, self.next_sentence_head):
            head.apply(init_bert_params)
        if cfg.freeze_backbone:
            self.requires_grad_(False)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "CATModel":
        """Build the model for a task with one dictionary.

        Raises:
            ValueError: the number of sememes is not known, or a size is impossible.
        """
        chosen = take(options_of(cls, CATConfig), cfg)
        if chosen.encoder_embed_dim % chosen.encoder_attention_heads:
            raise ValueError(
                f"--encoder-embed-dim {chosen.encoder_embed_dim} is not a multiple of"
                f" --encoder-attention-heads {chosen.encoder_attention_heads}"
            )
        known = len(getattr(task, "sememes", ()))
        sememes = chosen.sememe_codes or known
        if chosen.composition == "codebook" and sememes < max(known, 1):
            raise ValueError(
                f"--sememe-codes {sememes} is less than the data's {known} sememes"
                if known
                else "this task has no sememes: give --sememe-codes, the number of lines in the"
                " sememes.txt of the data that the model was pre-trained on"
            )
        return know_dictionaries(cls(chosen, CATEncoder(chosen, task.source_dictionary, sememes)))

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        masked_tokens: Tensor | None = None,
        classification_head_name: str | None = None,
        pretraining: tuple[str, ...] = (),
        words: Tensor | None = None,
        scores: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Run the encoder and the heads that are asked for.

        Args:
            src_tokens: ``(B, T)``: ``<s> a </s> b </s>`` or ``<s> a </s>``, padded on the right.
            features_only: return states instead of logits.
            masked_tokens: where words are to be predicted, ``(B, T)``, bool; None: everywhere.
            classification_head_name: return this head's logits.
            pretraining: the representations that both pre-training heads read.
            words: ``(B, T)``: the number of each subword's word in its pair, -1 for pads. With it
                the last layer's weights in :class:`PretrainingOutputs` are those of words, whose
                contextual state is the mean of their subwords'.
            scores: also return the scores that these weights are made of.

        Returns:
            One of: the head's logits ``(B, classes)``; the states of ``--representation`` ``(B, T,
            D)``, which come with ``pretraining`` too; the logits of words, ``(B, T, V)`` or ``(N,
            V)``. And a dictionary: ``composition``, every layer's representations or None;
            ``pretraining``, if asked for, :class:`PretrainingOutputs`.
        """
        final, composition = self.encoder.representations(src_tokens)
        states = {"cont": final}
        if composition is not None:
            last = composition.layers[-1]
            states = {"cont": last.cont, "comp": last.comp, "mix": last.mix}
            states["nuance"] = last.cont - last.comp
        features = final if composition is None else states[self.cfg.representation]
        extra: dict[str, Any] = {"composition": composition}
        if classification_head_name is not None:
            return self.classification_heads[classification_head_name](features), extra
        if pretraining:
            assert masked_tokens is not None
            stacked = torch.stack([states[name] for name in pretraining])  # (R, B, T, D)
            predicted = self.lm_head(stacked[:, masked_tokens])
            first = stacked[:, :, :1].flatten(0, 1)  # [CLS], (R * B, 1, D)
            follows = self.next_sentence_head(first)
            codes: tuple[Tensor | None, Tensor | None] = (None, None)
            if composition is not None:
                codes = self._word_codes(composition, words, scores)
            extra["pretraining"] = PretrainingOutputs(
                dict(zip(pretraining, predicted, strict=True)),
                dict(zip(pretraining, follows.chunk(len(pretraining)), strict=True)),
                composition,
                *codes,
            )
        elif not features_only:
            return self.lm_head(features, masked_tokens), extra
        return features, extra

    def _word_codes(
        self, composition: CompositionOutputs, words: Tensor | None, scores: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The last layer's weights ``(B, T, K)``, or ``(B, words, K)`` of means of states, and
        their scores, if asked for."""
        last, decompose = composition.layers[-1], self.encoder.layers[-1].composition
        if words is None:
            return last.attention, last.scores if scores else None
        number = int(words.max()) + 1
        member = words.unsqueeze(1).eq(torch.arange(number, device=words.device).view(1, -1, 1))
        member = member.type_as(last.cont)  # (B, words, T)
        means = member @ last.cont / member.sum(-1, keepdim=True).clamp(min=1)
        fits = decompose.scores(means)
        return decompose.weights(fits), fits if scores else None

    def _head(self, classes: int) -> RobertaClassificationHead:
        dim = self.cfg.encoder_embed_dim
        return RobertaClassificationHead(dim, dim, classes, "tanh", self.cfg.pooler_dropout)

    def register_classification_head(self, name: str, num_classes: int = 2, **_: Any) -> None:
        """Add a head, dropout - dense - tanh - dropout - linear, that reads [CLS]; its name is that
        of :meth:`forward`'s ``classification_head_name``."""
        self.classification_heads[name] = self._head(num_classes)

    def train(self, mode: bool = True) -> "CATModel":
        """A frozen backbone gives the same states in training and evaluation: no dropout."""
        super().train(mode)
        if self.cfg.freeze_backbone:
            self.encoder.eval()
        return self

    def max_positions(self) -> int:
        """The longest input."""
        return self.cfg.max_positions

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """Take heads as they fit: a checkpoint's other heads are left out, new heads are kept.

        Raises:
            ValueError: the checkpoint has other sizes that a flag must say.
        """
        super().upgrade_state_dict_named(state_dict, name)
        own = self.state_dict()
        last = f"encoder.layers.{self.cfg.encoder_layers - 1}.composition.codebook"
        special = 1 + self.encoder.padding_idx  # fairseq's positions begin after the padding's
        for key, flag, more in (
            (last, "--sememe-codes", 0),
            ("encoder.embed_positions.weight", "--max-positions", special),
        ):
            if key in own and key in state_dict and len(own[key]) != len(state_dict[key]):
                raise ValueError(
                    f"the checkpoint was made with {flag} {len(state_dict[key]) - more}"
                )
        prefix = "classification_heads."
        for key in [key for key in state_dict if key.startswith(prefix)]:
            if key not in own or own[key].shape != state_dict[key].shape:
                logger.warning("the checkpoint's %s is left out: this model has no such head", key)
                del state_dict[key]
        state_dict.update(
            {k: v for k, v in own.items() if k.startswith(prefix) and k not in state_dict}
        )


#: For a CPU: minutes instead of days.
TINY = {
    "encoder_layers": 3,
    "encoder_embed_dim": 128,
    "encoder_ffn_embed_dim": 512,
    "encoder_attention_heads": 4,
    "codes": 128,
}
register_preset("cat", "cat_base", {})  # the paper's sizes, the defaults
register_preset("cat", "cat_tiny", TINY)
