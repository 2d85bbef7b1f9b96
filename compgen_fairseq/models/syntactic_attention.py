"""Syntactic Attention: meanings without context, and syntax that only says where to look.

Russin, Jo, O'Reilly and Bengio (2020), "Systematicity in a Recurrent Neural Network by Factorizing
Syntax and Semantics" (CogSci), and the longer report arXiv:1904.09708.

The source has the paper's markers of start and end ("Experimental procedure details"): fairseq's
final ``</s>``, and the dictionary's ``<s>``, which fairseq leaves out and the encoder puts before
every sentence. The decoder's first step writes the first word. With the authors' weights the four
published variants have their log-probabilities and gradients (tests/golden).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import (
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from torch import Tensor

from compgen.ranges import AT_LEAST_1, flag_of, ranges
from compgen_fairseq.models.known_dictionary import know_dictionaries
from compgen_fairseq.modules.dropout import apply_dropout
from compgen_fairseq.modules.masks import padding_mask, same_words
from compgen_fairseq.modules.syntactic_decoder import SyntacticDecoder
from compgen_fairseq.modules.syntactic_encoder import BidirectionalLSTM, SyntacticEncoder, frame
from compgen_fairseq.options import option, options_of, register_preset, take


@ranges((AT_LEAST_1, ("encoder_hidden_size", "semantic_dim")))
@dataclass
class SyntacticAttentionConfig(FairseqDataclass):
    """Every option of ``--arch syntactic_attention``. Sizes default to the paper's best model."""

    encoder_embed_dim: int = option(100, "width of the syntactic embeddings")
    encoder_hidden_size: int = option(
        200, "width of each direction of the encoder; the decoder's is twice that"
    )
    encoder_layers: int = option(
        2,
        "bidirectional layers of the encoder; after the first, which is half as wide as the "
        "others, a word's states are replaced by its neighbours'",
    )
    semantic_dim: int = option(120, "width of the semantic embeddings")
    dropout: float = option(0.5, "dropout on the embeddings of both streams")
    syntactic_classes: ChoiceEnum(["none", "substitution"]) = option(  # type: ignore[valid-type]
        "none",
        "beyond the paper: which words share a syntactic embedding; substitution: those that the "
        "training set shows to be exchangeable (compgen_fairseq/clustering/substitution.py)",
    )
    marker_meanings: ChoiceEnum(["free", "own"]) = option(  # type: ignore[valid-type]
        "free",
        "free: the start and end markers can take any meaning, as words can; own, beyond the "
        "paper: they can mean only the target's end, and words anything but that",
    )
    class_meanings: ChoiceEnum(["free", "own"]) = option(  # type: ignore[valid-type]
        "free",
        "free: any word can mean any target words; own, beyond the paper: only the words of a "
        "class can mean the target words that they exchange, and where a word stands twice in a "
        "sentence both places get the same gradient through attention (with --syntactic-classes "
        "substitution)",
    )
    scaled_attention: bool = option(
        False,
        "beyond the paper: divide the scores by the square root of the states' width, so that "
        "attention does not settle on the end marker before any word means something",
    )
    sequential_semantics: bool = option(
        False,
        "ablation: a bidirectional layer over the semantic embeddings, so that a word's "
        "meaning depends on its sentence",
    )
    syntax_action: bool = option(
        False, "ablation: the output layer also sees the attended syntactic states"
    )
    semantic_mlp: bool = option(
        False, "ablation: a hidden ReLU layer, as wide as its input, before the output layer"
    )
    semantic_relu: bool = option(
        False, "with --semantic-mlp: a ReLU before the hidden layer, too, as in the authors' code"
    )

    def check(self) -> None:
        """Refuse what can't be.

        Raises:
            ValueError: naming the flags.
        """
        if self.encoder_layers > 1 and self.encoder_hidden_size % 2:
            raise ValueError(
                "--encoder-hidden-size must be even: the first of several layers has half of it"
            )
        if self.sequential_semantics and self.semantic_dim % 2:
            raise ValueError(
                "--semantic-dim must be even with --sequential-semantics: each direction has half"
            )
        if self.semantic_relu and not self.semantic_mlp:
            raise ValueError("--semantic-relu goes with --semantic-mlp")
        for name in ("marker_meanings", "class_meanings"):
            if getattr(self, name) == "own" and (self.syntax_action or self.semantic_mlp):
                flag = flag_of(name)
                raise ValueError(
                    f"{flag} own goes with the paper's output layer alone: leave out "
                    f"--syntax-action and --semantic-mlp, or take {flag} free"
                )
        if self.class_meanings == "own" and self.syntactic_classes == "none":
            raise ValueError("--class-meanings own goes with --syntactic-classes substitution")


class SyntacticAttentionEncoder(FairseqEncoder):
    """Encodes both streams: the words' meanings ``m_j`` and their roles ``h_j``."""

    classes: Tensor | None  # (types,): whose syntactic embedding each type has, if any are shared

    def __init__(self, cfg: SyntacticAttentionConfig, dictionary):
        super().__init__(dictionary)
        self.pad, self.start, self.end = dictionary.pad(), dictionary.bos(), dictionary.eos()
        self.dropout = cfg.dropout
        shared = cfg.syntactic_classes == "substitution"
        # until classes are assigned, of which padding is one by itself, all types are one
        self.register_buffer("classes", torch.full((len(dictionary),), 0) if shared else None)
        self.semantics = nn.Embedding(len(dictionary), cfg.semantic_dim, self.pad)
        self.sequence = (
            BidirectionalLSTM(cfg.semantic_dim, cfg.semantic_dim // 2)
            if cfg.sequential_semantics
            else None
        )
        self.embedding = nn.Embedding(len(dictionary), cfg.encoder_embed_dim, self.pad)
        self.syntax = SyntacticEncoder(
            cfg.encoder_embed_dim, cfg.encoder_hidden_size, cfg.encoder_layers
        )

    def forward(self, src_tokens: Tensor, **_: Any) -> dict[str, Tensor]:
        """Encode.

        Args:
            src_tokens: ``(batch, src_len)``, padded on either side.

        Returns:
            of the framed sentences, ``len = src_len + 1``: ``meanings`` ``(batch, len,
            semantic_dim)``; ``tokens``, ``kinds``, the types whose syntactic embedding they have,
            and ``markers``, whether they are start or end, ``(batch, len)``; ``roles`` ``(batch,
            len, dim)``; ``summary`` ``(batch, dim)``; ``mask`` ``(batch, 1, len)``. And where the
            source tokens are among them: ``framed`` and ``keep`` ``(batch, 1, src_len)``.
        """
        tokens, lengths, framed = frame(src_tokens, self.pad, self.start)
        meanings = apply_dropout(self.semantics(tokens), self.dropout, self.training)
        if self.sequence is not None:
            meanings = self.sequence(meanings, lengths)
        kinds = tokens if self.classes is None else self.classes[tokens]
        x = apply_dropout(self.embedding(kinds), self.dropout, self.training)
        roles, summary = self.syntax(x, lengths)
        return {
            "meanings": meanings,
            "tokens": tokens,
            "kinds": kinds,
            "markers": tokens.eq(self.start) | tokens.eq(self.end),
            "roles": roles,
            "summary": summary,
            "mask": padding_mask(tokens.ne(self.pad), roles.dtype)[:, 0],
            "framed": framed[:, None],
            "keep": src_tokens.ne(self.pad)[:, None],
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, Tensor], new_order: Tensor
    ) -> dict[str, Tensor]:
        """Select sentences by ``new_order``, ``(new_batch,)``."""
        return {name: x.index_select(0, new_order) for name, x in encoder_out.items()}


class SyntacticAttentionDecoder(FairseqIncrementalDecoder):
    """Writes the meanings of the words that the syntactic stream attends to."""

    _STATE, _SAID = "syntactic_attention.state", "syntactic_attention.said"
    owners: Tensor | None  # (types,): the class of source words that exchanges it, or -1
    forward = FairseqDecoder.forward  # extract_features, then output_layer

    def __init__(self, cfg: SyntacticAttentionConfig, dictionary):
        super().__init__(dictionary)
        self.pad, self.end = dictionary.pad(), dictionary.eos()
        self.marked = cfg.marker_meanings == "own"
        owned = cfg.class_meanings == "own"
        self.register_buffer("owners", torch.full((len(dictionary),), -1) if owned else None)
        self.syntax_action = cfg.syntax_action
        dim = 2 * cfg.encoder_hidden_size
        self.syntax = SyntacticDecoder(dim, cfg.scaled_attention)
        width = cfg.semantic_dim + (dim if cfg.syntax_action else 0)
        self.hidden = nn.Linear(width, width) if cfg.semantic_mlp else None
        self.relu_first = cfg.semantic_relu
        self.output = nn.Linear(width, len(dictionary))

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Tensor],
        incremental_state: dict[str, Any] | None = None,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Decode ``f(d_i)``, ``d_i = sum_j alpha_ij m_j`` (equation 3).

        Args:
            prev_output_tokens: ``(batch, len)``; only the length and the padding are read.
            encoder_out: what :meth:`SyntacticAttentionEncoder.forward` returned.
            incremental_state: fairseq's dictionary of cached states; with it only the step after
                the cached one is taken.

        Returns:
            ``d`` (with ``--syntax-action`` ``[d; c]``; where words are restricted, the logits
            without the bias) ``(batch, len, width)`` and a dictionary with ``attn``: a list with
            ``alpha`` over the source tokens, ``(batch, len, src_len)``; the start marker, which is
            none of them, keeps its share.
        """
        roles, mask = encoder_out["roles"], encoder_out["mask"]
        cached = None if incremental_state is None else incremental_state.get(self._SAID)
        said = self.say(encoder_out) if cached is None else cached[0]
        if incremental_state is None:
            steps = prev_output_tokens.size(1)
            tied = self.training and self.owners is not None
            same = same_words(encoder_out["tokens"], roles.dtype) if tied else None
            lengths = prev_output_tokens.ne(self.pad).sum(1)
            weights = self.syntax(roles, encoder_out["summary"], mask, steps, same, lengths)
            weights = self._start_after_padding(weights, prev_output_tokens)
        else:
            state = incremental_state.get(self._STATE)
            if state is None:
                state = self.syntax.begin(roles, encoder_out["summary"])
            weights, incremental_state[self._STATE] = self.syntax.step(roles, mask, state)
            if self.restricted:
                incremental_state[self._SAID] = [said]
        features = torch.bmm(weights, said)
        if self.syntax_action:
            features = torch.cat([features, torch.bmm(weights, roles)], dim=-1)
        attention = weights.take_along_dim(encoder_out["framed"], 2) * encoder_out["keep"]
        return features, {"attn": [attention]}

    @property
    def restricted(self) -> bool:
        """Whether some words can say some things only; then features are what words say."""
        return self.marked or self.owners is not None

    def say(self, encoder_out: dict[str, Tensor]) -> Tensor:
        """What attention to each place adds up: ``m_j``, ``(batch, len, semantic_dim)``. If what
        words can say is restricted: their logits without the bias, ``(batch, len,
        vocabulary)``."""
        meanings = encoder_out["meanings"]
        if not self.restricted:
            return meanings
        said = F.linear(meanings, self.output.weight)
        if self.owners is not None:
            own = encoder_out["kinds"].unsqueeze(-1).eq(self.owners)
            said = said * (own | self.owners.lt(0))
        if self.marked:
            end = torch.arange(said.size(-1), device=said.device) == self.end
            said = said * (encoder_out["markers"].unsqueeze(-1) == end)
        return said

    def _start_after_padding(self, weights: Tensor, prev_output_tokens: Tensor) -> Tensor:
        """Move each target's first step, ``(batch, len, ...)``, behind padding on its left."""
        padding = prev_output_tokens.eq(self.pad).cumprod(1)
        if not bool(padding[:, 0].any()):
            return weights
        steps = torch.arange(weights.size(1), device=weights.device) - padding.sum(1, keepdim=True)
        return weights.take_along_dim(steps.clamp(min=0).unsqueeze(-1), 1)

    def output_layer(self, features: Tensor) -> Tensor:
        """What :meth:`extract_features` gives, ``(..., width)``, -> ``(..., vocabulary)``."""
        if self.hidden is not None:
            features = self.hidden(features.relu() if self.relu_first else features).relu()
        if not self.restricted:
            return self.output(features)
        bias = self.output.bias
        return features + (bias if self.owners is None else bias * self.owners.lt(0))

    def reorder_incremental_state(
        self, incremental_state: dict[str, Any], new_order: Tensor
    ) -> None:
        """Follow the beams."""
        for name in (self._STATE, self._SAID):
            if (state := incremental_state.get(name)) is not None:
                incremental_state[name] = [x.index_select(0, new_order) for x in state]


@register_model("syntactic_attention", dataclass=SyntacticAttentionConfig)
class SyntacticAttentionModel(FairseqEncoderDecoderModel):
    """Syntactic Attention and its ablations."""

    encoder: SyntacticAttentionEncoder
    decoder: SyntacticAttentionDecoder
    _started = False

    @classmethod
    def build_model(cls, cfg, task) -> "SyntacticAttentionModel":
        """Build the model for a task with two dictionaries.

        Raises:
            ValueError: on options that can't go together.
        """
        config = take(options_of(cls, SyntacticAttentionConfig), cfg)
        config.check()
        encoder = SyntacticAttentionEncoder(config, task.source_dictionary)
        decoder = SyntacticAttentionDecoder(config, task.target_dictionary)
        return know_dictionaries(cls(encoder, decoder))

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """The decoder's results for the encoder's.

        Raises:
            RuntimeError: nobody has handed in the classes that the options ask for.
        """
        if self.training and not self._started:
            self._started = True
            if self.missing_classes() is not None:
                raise RuntimeError(
                    "--syntactic-classes substitution: the classes come from --task "
                    "compgen_translation, which this run does not use"
                )
        return super().forward(*args, **kwargs)

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """Refuse what is another model.

        Raises:
            ValueError: the checkpoint's decoder writes a start marker before the first word, or has
                every word say something of what a class exchanges.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if not state_dict.keys().isdisjoint(("decoder.output.0.weight", "decoder.classes")):
            raise ValueError(
                "the checkpoint is of an earlier Syntactic Attention, whose decoder writes other "
                "words: train it again"
            )

    def missing_classes(self) -> tuple[str, None] | None:
        """Which classes, and how many (any), are still to be handed to :meth:`assign_classes`."""
        classes = self.encoder.classes
        known = classes is None or classes[self.encoder.pad] > 0
        return None if known else ("substitution", None)

    def assign_classes(self, source: Tensor, target: Tensor, owners: Tensor) -> None:
        """Let source types share syntactic embeddings.

        Args:
            source: the class of every source type, ``(source types,)``, long.
            target: that of every target type, ``(target types,)``, long; read by none.
            owners: the source class that exchanges each target type, or -1, ``(target types,)``.
        """
        assert self.encoder.classes is not None
        self.encoder.classes.copy_(source)
        if self.decoder.owners is not None:
            self.decoder.owners.copy_(owners)


# the paper's best model on SCAN (arXiv version, "Experimental procedure details") is the default
register_preset("syntactic_attention", "syntactic_attention_scan", {})
