"""The attention weights of a model, of whatever architecture, as it runs on a batch."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.modules import MultiheadAttention
from torch import Tensor

from compgen_fairseq.analysis.checkpoint import Loaded
from compgen_fairseq.models.syntactic_attention import SyntacticAttentionDecoder
from compgen_fairseq.modules.systematic_attention import SystematicAttention

SIDES = {
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "cross": "attention of the decoder to the source",
}
START = "<s>"  # Syntactic Attention's own marker before the source, not a word of it


def translator(loaded: Loaded) -> Loaded:
    """The same, if it has an encoder and a decoder.

    Raises:
        ValueError: if it has not.
    """
    if not isinstance(loaded.model, FairseqEncoderDecoderModel):
        raise ValueError(
            f"{loaded.path} holds a {type(loaded.model).__name__}: name a model with an encoder "
            "and a decoder"
        )
    return loaded


@torch.no_grad()
def attention_maps(model: Any, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    """Run a model and record the weights of every layer and head.

    They are the weights of the word stream; SAL has one set for both streams. In
    Syntactic Attention's one alignment the first key is :data:`START`. Attention to anything that
    is no token of the sentence, as to prototypes, is not among them.

    Args:
        model: in evaluation mode.
        inputs: a sample's ``net_input``; without ``prev_output_tokens`` only the encoder runs.

    Returns:
        by the names of :data:`SIDES` those there are, each ``(batch, layers, heads, queries,
        keys)``, float32, on the CPU. A query's weights add up to 1; those of padding are zero.

    Raises:
        ValueError: if nothing was recorded.
    """
    found: dict[str, list[Tensor]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        enter = stack.enter_context  # a hook, which is removed at the end
        for name, module in model.named_modules():
            keep = found[_side(name)].append
            if isinstance(module, SystematicAttention):
                module.observer = keep
                stack.callback(setattr, module, "observer", None)
            elif isinstance(module, MultiheadAttention):
                enter(module.register_forward_pre_hook(_ask_for_heads, with_kwargs=True))
                enter(module.register_forward_hook(partial(_read_heads, keep)))
            elif isinstance(module, SyntacticAttentionDecoder):
                enter(module.register_forward_hook(partial(_read_alignment, found["cross"])))
        if "prev_output_tokens" in inputs:
            model(**inputs)
        else:
            model.encoder(inputs["src_tokens"], src_lengths=inputs["src_lengths"])
    maps = {side: torch.stack(layers, 1).float().cpu() for side, layers in found.items() if layers}
    if not maps:
        of = "" if "prev_output_tokens" in inputs else " of an encoder without a target sentence"
        raise ValueError(f"{type(model).__name__} has no attention{of} that can be recorded")
    return maps


def _side(name: str) -> str:
    """The side of a layer by its name in the model."""
    if name.endswith(("encoder_attn", "cross_attn")):
        return "cross"
    return "decoder" if name.startswith("decoder") else "encoder"


def _ask_for_heads(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make fairseq's attention return each head's weights.

    PyTorch's function, which it calls where it can, has only their mean; with ``static_kv``, which
    means nothing without an incremental state, it computes them itself.
    """
    return args, {**kwargs, "static_kv": True, "need_head_weights": True}


def _read_heads(keep: Callable[[Tensor], None], module: Any, args: Any, output: Any) -> None:
    keep(output[1].transpose(0, 1))


def _read_alignment(layers: list[Tensor], module: Any, args: Any, output: Any) -> None:
    """The one alignment over the source, with what is left of it, the start marker's, in front."""
    (words,) = output[1]["attn"]
    start = (1 - words.sum(-1, keepdim=True)).clamp(min=0)
    layers.append(torch.cat([start, words], dim=-1).unsqueeze(1))
