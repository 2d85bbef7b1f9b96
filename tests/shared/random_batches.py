"""Random sentences in fairseq's own batches, for the tests of the models."""

from types import SimpleNamespace

import torch
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate


def dictionary(words: int) -> Dictionary:
    """A dictionary of so many words."""
    made = Dictionary()
    for word in range(words):
        made.add_symbol(f"w{word}")
    return made


TASK = SimpleNamespace(source_dictionary=dictionary(16), target_dictionary=dictionary(12))
PAD, EOS = TASK.source_dictionary.pad(), TASK.source_dictionary.eos()
LENGTHS = [(7, 3), (5, 6), (2, 1), (1, 4)]  # the longest source first, as fairseq sorts them


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
