"""The task of CAT's pre-training hands its options to the text."""

import pytest
import torch
from fairseq.data import indexed_dataset
from pretraining_batches import ANNOTATIONS, WORDS
from random_batches import dictionary_of

from compgen_fairseq.tasks.cat_pretraining import CATPretrainingTask, CATPretrainingTaskConfig

DICTIONARY = dictionary_of(*WORDS, "<mask>")


@pytest.fixture
def read(tmp_path):
    """``read(seed=2)``: all pairs of a binarised text, read with these options."""
    file = str(tmp_path / "train")
    text = indexed_dataset.make_builder(f"{file}.bin", "mmap", vocab_size=len(DICTIONARY))
    for sentence in range(40):
        words = " ".join(WORDS[(sentence * word) % len(WORDS)] for word in range(9))
        line = words if sentence % 8 else ""
        text.add_item(DICTIONARY.encode_line(line, add_if_not_exist=False).long())
    text.finalize(f"{file}.idx")

    def read(seed=1, **options):
        cfg = CATPretrainingTaskConfig(data=str(tmp_path), seed=seed, **options)
        pairs = CATPretrainingTask(cfg, DICTIONARY, ANNOTATIONS).load_dataset("train")
        return pairs.collater([pairs[index] for index in range(len(pairs))])

    return read


def test_the_options_reach_the_text(read):
    def masked(batch):
        return int((batch["target"] != DICTIONARY.pad()).sum()) / batch["ntokens"]

    usual = read()
    assert masked(usual) < 0.2 and 0.3 < masked(read(mask_prob=0.5)) < 0.6
    assert not torch.equal(read(seed=2)["target"], usual["target"])
    assert torch.equal(read(seed=1)["target"], usual["target"])
    assert read(tokens_per_sample=9)["net_input"]["src_tokens"].shape[1] == 9
    assert "words" in read(word_average=True)["net_input"] and "words" not in usual["net_input"]
