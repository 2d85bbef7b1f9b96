"""SQ-Transformer: structurally quantized embeddings, systematic attention.

Jiang, Zhou and Bansal (2024), "Inducing Systematicity in Transformers by Attending to Structurally
Quantized Embeddings".
"""

import logging
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from fairseq.models import (
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from fairseq.models.transformer import Embedding
from torch import Tensor

from compgen_fairseq.models.known_dictionary import know_dictionaries
from compgen_fairseq.models.sq_config import PRESETS, SQTransformerConfig
from compgen_fairseq.models.sq_stack import StreamStack, next_positions
from compgen_fairseq.modules.class_meanings import ClassMeanings
from compgen_fairseq.modules.code_predictor import draw_positions
from compgen_fairseq.modules.masks import causal_mask, padding_mask
from compgen_fairseq.modules.structural_outputs import SideOutputs, StructuralOutputs
from compgen_fairseq.options import options_of, register_preset, take

logger = logging.getLogger(__name__)


class SQEncoder(FairseqEncoder):
    """Encodes the word stream, and the code stream beside it where there is one."""

    def __init__(self, cfg: SQTransformerConfig, dictionary, embedding: nn.Embedding):
        super().__init__(dictionary)
        self.stack = StreamStack(cfg, embedding, dictionary, decoder=False)
        self.longest = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, structural: bool = False, **_: Any) -> dict[str, Any]:
        """Encode.

        Args:
            src_tokens: ``(batch, src_len)``, padded on either side.
            structural: also return the tensors of the structural loss terms.

        Returns:
            ``memory``: the last layer's streams ``(streams, batch, src_len, dim)``, of SAL the word
            stream alone unless the decoder reads the encoder's codes;
            ``memory_mask``: ``(batch, 1, 1, src_len)``; ``words``: the embeddings ``(batch,
            src_len, dim)``; ``tokens``: the source; ``side``: :class:`SideOutputs` or None.
        """
        stack = self.stack
        keep = src_tokens.ne(stack.pad)
        x = stack.drop(stack.embed(src_tokens))
        mask = padding_mask(keep, x.dtype)
        quantized, parts = None, [x]
        if stack.quantizer is not None and (structural or stack.needs_codes(structural)):
            quantized = stack.quantizer.quantize(x, src_tokens)
            if stack.needs_codes(structural):
                parts = [quantized.vectors, x]
        layers = stack.run(torch.stack(parts), mask, keep)[0]
        side = None
        if structural and quantized is not None:
            following = torch.arange(1, keep.size(1) + 1, device=keep.device)
            following = following.clamp(max=keep.size(1) - 1).expand(keep.shape)
            next_keep = keep & F.pad(keep, (0, 1))[:, 1:]
            q, next_codes = quantized, quantized.codes.gather(1, following)
            side = SideOutputs(
                x, keep, q.codes, q.raw, q.logits, q.codebook, next_codes, next_keep, layers
            )
            if stack.masks:
                context = quantized.raw if stack.mmi == "brown" else x
                masked = draw_positions(keep & src_tokens.ne(stack.eos), anew=self.training)
                context = torch.where(masked.unsqueeze(-1), quantized.mask_code.type_as(x), context)
                stack.predict_codes(side, context, mask, masked, None)
                # one-word sentences say nothing of H(Z); the authors leave out batches of them
                side.marginal = masked & (keep.sum(1, keepdim=True) > 2)
            elif stack.predictor is not None:
                context = quantized.vectors if stack.mmi == "brown" else x
                causal = causal_mask(x.size(1), x) + mask
                stack.predict_codes(side, context, causal, next_keep, following)
        return {
            "memory": layers[-1],
            "memory_mask": mask,
            "words": x,
            "tokens": src_tokens,
            "side": side,
        }

    def reorder_encoder_out(self, encoder_out: dict[str, Any], new_order: Tensor) -> dict[str, Any]:
        """Select sentences by ``new_order``, ``(new_batch,)``."""
        names = ("memory_mask", "words", "tokens")
        return {
            "memory": encoder_out["memory"].index_select(1, new_order),
            **{name: encoder_out[name].index_select(0, new_order) for name in names},
            "side": None,
        }

    def max_positions(self) -> int:
        return self.longest


class SQDecoder(FairseqIncrementalDecoder):
    """Decodes both streams; word logits come from the word stream.

    Args:
        cfg: the resolved configuration.
        dictionary: the target's dictionary.
        embedding: the target's word embeddings.
        source_types: the size of the source's dictionary.
        left_pad: whether ``prev_output_tokens`` may be padded on the left (``--left-pad-target``).
    """

    _CACHES = "sq_transformer.caches"  # each layer's keys and values, in the incremental state
    forward = FairseqDecoder.forward  # extract_features, then output_layer

    def __init__(
        self,
        cfg: SQTransformerConfig,
        dictionary,
        embedding: nn.Embedding,
        source_types: int,
        left_pad: bool = False,
    ):
        super().__init__(dictionary)
        self.stack = StreamStack(cfg, embedding, dictionary, decoder=True)
        self.longest = cfg.max_target_positions
        self.left_pad = left_pad
        self.output = nn.Linear(cfg.encoder_embed_dim, len(dictionary), bias=False)
        self.output.weight = embedding.weight
        self.meanings = (
            ClassMeanings(cfg.encoder_embed_dim, source_types, len(dictionary))
            if cfg.class_meanings == "own"
            else None
        )

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, Any] | None = None,
        incremental_state: dict[str, Any] | None = None,
        structural: bool = False,
        **_: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Decode.

        Args:
            prev_output_tokens: ``(batch, len)``; with ``incremental_state`` only the last column
                is new.
            encoder_out: what :meth:`SQEncoder.forward` returned.
            incremental_state: fairseq's dictionary of cached states.
            structural: also return the tensors of the structural loss terms.

        Returns:
            the last layer's word stream ``(batch, len, dim)`` (with ``--class-meanings own`` the
            logits) and a dictionary with ``attn`` (a list with the last layer's cross-attention,
            mean over heads, ``(batch, len, src_len)``, or None but for a full pass in evaluation,
            where ``--print-alignment`` reads it) and ``structural``
            (:class:`StructuralOutputs`, or None).
        """
        assert encoder_out is not None
        stack = self.stack
        tokens, mask, caches = prev_output_tokens, None, None
        if incremental_state is not None:
            tokens = tokens[:, -1:]
            caches = incremental_state.setdefault(self._CACHES, [{} for _ in stack.layers])
        embedded = stack.embed(tokens)
        keep = tokens.ne(stack.pad)
        read = keep | F.pad(keep, (0, 1))[:, 1:]  # every position whose target counts
        if caches is None:
            # with --num-batch-buckets the end, moved to the beginning, stays before padding, too
            keep = keep & ~(tokens.eq(stack.eos) & keep.cumsum(1).gt(1))
            mask = causal_mask(tokens.size(1), embedded)
            if self.left_pad:  # padding on the left is not hidden by the causal mask
                mask = mask + padding_mask(keep, embedded.dtype)
        x = stack.drop(embedded)
        parts = [x]
        if stack.needs_codes(structural):  # dropout is drawn anew, as in the published runs
            assert stack.quantizer is not None
            parts = [stack.quantizer.quantize(stack.drop(embedded), tokens).vectors, x]
        streams = torch.stack(parts)
        memory, memory_mask = encoder_out["memory"], encoder_out["memory_mask"]
        need_attention = caches is None and not self.training
        layers, weights = stack.run(
            streams, mask, read, memory, memory_mask, caches, need_attention
        )
        outputs = None
        if structural and stack.quantizer is not None:
            x = stack.drop(embedded)  # a third draw, for the terms of the targets' codes
            q = stack.quantizer.quantize(x, tokens)
            following = next_positions(keep)
            next_codes = q.codes.gather(1, following)
            side = SideOutputs(
                x, keep, q.codes, q.raw, q.logits, q.codebook, next_codes, keep, layers
            )
            if stack.predictor is not None:
                context = q.vectors if stack.mmi == "brown" else x
                causal = causal_mask(tokens.size(1), x) + padding_mask(keep, x.dtype)
                stack.predict_codes(side, context, causal, keep, following, memory[-1], memory_mask)
            outputs = StructuralOutputs(encoder_out["side"], side)
        attention = None if weights is None else weights.mean(dim=1)
        streams = layers[-1]
        features = streams[-1]
        if self.meanings is not None:
            words, tokens = encoder_out["words"], encoder_out["tokens"]
            logits, weight = self.output(features), self.output.weight
            features = self.meanings(
                logits, weight, streams[0], memory[0], memory_mask, words, tokens
            )
        return features, {"attn": [attention], "structural": outputs}

    def output_layer(self, features: Tensor) -> Tensor:
        """What :meth:`extract_features` gives -> logits ``(..., vocabulary)``."""
        return self.output(features) if self.meanings is None else features

    def reorder_incremental_state(
        self, incremental_state: dict[str, Any], new_order: Tensor
    ) -> None:
        """Follow the beams. A sentence's beams share the encoder's keys and values, so those move
        only when sentences leave the batch."""
        for cache in incremental_state.get(self._CACHES, []):
            batch = cache["key"].size(0)
            for name, x in cache.items():
                if not name.startswith("memory_"):
                    cache[name] = x.index_select(0, new_order)
                elif len(new_order) != batch:
                    parts = x.unflatten(0, (-1, batch))  # the streams, one after the other
                    cache[name] = parts.index_select(1, new_order).flatten(0, 1)

    def max_positions(self) -> int:
        return self.longest


@register_model("sq_transformer", dataclass=SQTransformerConfig)
class SQTransformerModel(FairseqEncoderDecoderModel):
    """SQ-Transformer with SAL or SRL, its ablations, and the plain backbone."""

    encoder: SQEncoder
    decoder: SQDecoder
    #: ``--print-alignment`` reads the attention of a full pass over the hypothesis.
    full_context_alignment = True
    _warned = False

    def __init__(self, cfg: SQTransformerConfig, encoder: SQEncoder, decoder: SQDecoder):
        super().__init__(encoder, decoder)
        self.cfg = cfg

    @classmethod
    def build_model(cls, cfg, task) -> "SQTransformerModel":
        """Build the model for a task with two dictionaries.

        Raises:
            ValueError: on options that can't go together.
        """
        resolved = take(options_of(cls, SQTransformerConfig), cfg)
        resolved.resolve()
        source, target = task.source_dictionary, task.target_dictionary
        dim = resolved.encoder_embed_dim
        source_embedding = Embedding(len(source), dim, source.pad())
        if resolved.share_all_embeddings:
            if source != target:
                raise ValueError(
                    "--share-all-embeddings needs one dictionary for both sides: "
                    "run fairseq-preprocess with --joined-dictionary"
                )
            target_embedding = source_embedding
        else:
            target_embedding = Embedding(len(target), dim, target.pad())
        encoder = SQEncoder(resolved, source, source_embedding)
        left_pad = bool(getattr(getattr(task, "cfg", None), "left_pad_target", False))
        decoder = SQDecoder(resolved, target, target_embedding, len(source), left_pad)
        return know_dictionaries(cls(resolved, encoder, decoder))

    def forward(self, src_tokens, src_lengths, prev_output_tokens, structural=False, **kwargs):
        """Logits ``(batch, len, vocabulary)``, and a dictionary in which ``structural`` is, if
        asked for, :class:`StructuralOutputs`. Arguments as of encoder and decoder.

        Raises:
            RuntimeError: in training, if the classes that the options ask for are missing.
        """
        if self.training and self.missing_classes() is not None:
            raise RuntimeError(
                f"--code-classes {self.cfg.code_classes}: the classes come from --task "
                "compgen_translation, which this run does not use"
            )
        if self.training and not structural and self.cfg.quantizer != "none" and not self._warned:
            self._warned = True
            logger.warning(
                "this criterion trains none of the structural terms of sq_transformer (codes, MMI, "
                "SRL): use --criterion structural_cross_entropy to train them"
            )
        return super().forward(
            src_tokens, src_lengths, prev_output_tokens, structural=structural, **kwargs
        )

    def missing_classes(self) -> tuple[str, tuple[int, int]] | None:
        """Which classes, and how many a side, are still to be handed to :meth:`assign_classes`."""
        quantizer = self.encoder.stack.quantizer
        if self.cfg.code_classes == "learned" or quantizer is None or quantizer.frozen:
            return None
        return self.cfg.code_classes, (self.cfg.source_codes, self.cfg.target_codes)

    def assign_classes(self, source: Tensor, target: Tensor, *exchanged: Tensor) -> None:
        """Fix the code of every type: ``(source types,)`` and ``(target types,)``, long; and say
        which words are exchanged (:meth:`ClassMeanings.assign`)."""
        for stack, codes in ((self.encoder.stack, source), (self.decoder.stack, target)):
            assert stack.quantizer is not None
            stack.quantizer.freeze(codes)
        if self.decoder.meanings is not None:
            self.decoder.meanings.assign(*exchanged)

    def update_codebooks(self, outputs: StructuralOutputs, count: bool = True) -> None:
        """Move the codebooks by EMA; called once per mini-batch of training on every worker.

        Args:
            outputs: what :meth:`forward` returned for the step.
            count: False for a dummy batch, whose tokens don't count.
        """
        for stack, side in (
            (self.encoder.stack, outputs.source),
            (self.decoder.stack, outputs.target),
        ):
            assert stack.quantizer is not None
            stack.quantizer.update_ema(side.embeddings, side.codes, side.keep & count)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Refuse a checkpoint whose codes were learned with other predictors.

        Raises:
            ValueError: on predictors without a gate; models without predictors load.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if any(key.endswith("predictor.mask_code") for key in state_dict):
            raise ValueError(
                "this checkpoint's code predictors have no gate and no bias, as sq_transformer's "
                "had before version 0.2: train it again"
            )


for _name, _preset in PRESETS.items():
    register_preset("sq_transformer", _name, _preset)
