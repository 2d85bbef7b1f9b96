"""A small annotated text in fairseq's own batches, and the CAT task that reads it."""

from types import SimpleNamespace
from typing import Any

import torch
from random_batches import dictionary_of

from compgen.data.sememes import Annotations
from compgen_fairseq.data.sentence_pairs import SentencePairDataset
from compgen_fairseq.data.word_sememes import WordSememes
from compgen_fairseq.models.cat import CATModel

WORDS = ["the", "wa@@", "ter", "dog", "bird", "fly", "in", "air"]
SEMEMES = ["animal|兽", "attribute|属性", "bird|禽", "gas|气", "liquid|液", "move|动"]
ANNOTATIONS = Annotations(
    SEMEMES, {"air": (3,), "bird": (0, 2), "dog": (0,), "fly": (5,), "water": (1, 4)}
)
SIZES = {
    "encoder_layers": 2,
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 32,
    "encoder_attention_heads": 2,
    "codes": 8,
    "max_positions": 32,
}


def make_task() -> Any:
    """What models and criterions need of ``--task cat_pretraining``."""
    dictionary = dictionary_of(*WORDS, "<mask>")
    return SimpleNamespace(
        source_dictionary=dictionary,
        target_dictionary=dictionary,
        sememes=SEMEMES,
        word_sememes=WordSememes(ANNOTATIONS, dictionary),
    )


def make_batch(task: Any, indices: Any = range(6), word_ids: bool = False) -> dict[str, Any]:
    """A batch of pairs of three documents, of different lengths."""
    draw = torch.Generator().manual_seed(3)
    dictionary = task.source_dictionary
    text = []
    for document in range(3):
        for sentence in range(4):
            tokens = torch.randint(4, 12, (3 + 2 * sentence + document,), generator=draw)
            text.append(torch.cat([tokens, torch.tensor([dictionary.eos()])]))
        text.append(torch.tensor([dictionary.eos()]))
    sizes = [len(sentence) for sentence in text]
    dataset = SentencePairDataset(
        text, sizes, dictionary, task.word_sememes, max_tokens=27, word_ids=word_ids
    )
    return dataset.collater([dataset[index] for index in indices])


def make_model(task: Any, **options: Any) -> CATModel:
    """A tiny model."""
    torch.manual_seed(5)
    return CATModel.build_model(SimpleNamespace(**{**SIZES, **options}), task)
