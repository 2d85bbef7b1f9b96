"""Small models, and random sentences in fairseq's own batches for them."""

from argparse import Namespace
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from fairseq.logging import metrics
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

import compgen_fairseq  # noqa: F401  (registers its architectures)


def dictionary_of(*words: str) -> Dictionary:
    """A dictionary of these words."""
    made = Dictionary()
    for word in words:
        made.add_symbol(word)
    return made


def dictionary(words: int) -> Dictionary:
    """A dictionary of so many words."""
    return dictionary_of(*(f"w{word}" for word in range(words)))


TASK = SimpleNamespace(source_dictionary=dictionary(16), target_dictionary=dictionary(12))
PAD, EOS = TASK.source_dictionary.pad(), TASK.source_dictionary.eos()
LENGTHS = [(7, 3), (5, 6), (2, 1), (1, 4)]  # the longest source first, as fairseq sorts them


def configured(arch: str, **options: Any) -> Namespace:
    """The options of an architecture, these among them."""
    args = Namespace(arch=arch, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def build_model(arch: str, task: Any = TASK, seed: int = 1, **options: Any) -> Any:
    """A model of an architecture with these options, its parameters drawn from the seed."""
    torch.manual_seed(seed)
    return ARCH_MODEL_REGISTRY[arch].build_model(configured(arch, **options), task)


def batch(lengths, left_pad_source=True, left_pad_target=False) -> dict:
    """fairseq's batch of random sentences of ``(source, target)`` lengths, in that order."""
    draw = torch.Generator().manual_seed(2)

    def sentence(length, words):
        tokens = torch.randint(words.nspecial, len(words), (length,), generator=draw)
        return torch.cat([tokens, torch.tensor([EOS])])

    samples = [
        {
            "id": i,
            "source": sentence(source, TASK.source_dictionary),
            "target": sentence(target, TASK.target_dictionary),
        }
        for i, (source, target) in enumerate(lengths)
    ]
    return collate(samples, PAD, EOS, left_pad_source, left_pad_target)


def step_by_step(model: Any, orders: dict[int, list[int]]) -> Iterator[tuple[Any, Any]]:
    """What the decoder returns for one step, and for a pass over the same prefix; 7 steps.

    Args:
        model: decodes two beams each of three sentences.
        orders: before which step, from 1, which beams take the places of those there are.
    """
    tokens = batch(LENGTHS[:3])["net_input"]["src_tokens"]
    beams = torch.arange(3).repeat_interleave(2)
    encoded = model.encoder.reorder_encoder_out(model.encoder(tokens), beams)
    draw = torch.Generator().manual_seed(3)
    prefix, state = torch.full((6, 1), EOS), {}
    for step in range(1, 8):
        if step in orders:
            order = torch.tensor(orders[step])
            prefix = prefix[order]
            model.decoder.reorder_incremental_state_scripting(state, order)
            encoded = model.encoder.reorder_encoder_out(encoded, order)
        one = model.decoder(prefix, encoder_out=encoded, incremental_state=state)
        yield one, model.decoder(prefix, encoder_out=encoded)
        drawn = torch.randint(4, 16, (len(prefix), 1), generator=draw)
        prefix = torch.cat([prefix, drawn], dim=1)


class Criterion(torch.nn.Module):
    """Loss 0 for any sample."""

    def forward(self, model, sample):
        return torch.zeros(()), 1, {"loss": 0.0, "sample_size": 1}

    @staticmethod
    def reduce_metrics(logging_outputs):
        metrics.log_scalar("loss", 0.0)


def both_sides(**sizes: int) -> dict[str, int]:
    """``both_sides(layers=2)``: encoder_layers and decoder_layers."""
    return {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sizes.items()}


def untrained(model: torch.nn.Module) -> set[str]:
    """The parameters that ask for a gradient and got none."""
    gradients = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    return {name for name, g in gradients.items() if g is None or not g.abs().sum() > 0}
