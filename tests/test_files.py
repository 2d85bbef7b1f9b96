"""What the checks of opened files let through; what they refuse is in tests/cli/test_bad_inputs."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary, data_utils
from fairseq.data.huffman import HuffmanCodeBuilder, HuffmanMMapIndexedDatasetBuilder
from fairseq.data.indexed_dataset import IndexedDatasetBuilder, MMapIndexedDatasetBuilder

import compgen_fairseq  # noqa: F401  (checks what is opened)
from compgen_fairseq import files


def test_a_pair_without_alignment(tmp_path):
    prefix = str(tmp_path / "train.align.src-tgt")
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin")
    for links in ([0, 0, 1, 1], [], [0, 1]):
        builder.add_item(torch.tensor(links))
    builder.finalize(f"{prefix}.idx")
    data = data_utils.load_indexed_dataset(prefix, None, None)
    assert [links.tolist() for links in data] == [[0, 0, 1, 1], [], [0, 1]]
    with pytest.raises(ValueError, match=r"src-tgt\.idx contradicts itself"):
        data_utils.load_indexed_dataset(prefix, Dictionary())
    (tmp_path / "train.align.src-tgt1.idx").touch()
    assert len(data_utils.load_indexed_dataset(prefix, None)) == 3
    with pytest.raises(ValueError, match=r"src-tgt1\.bin is missing beside train"):
        data_utils.load_indexed_dataset(prefix, None, combine=True)


def test_huffman_coded_sentences(tmp_path):
    prefix = str(tmp_path / "train")
    code = HuffmanCodeBuilder()
    code.add_symbols("a", "b", "b")
    with HuffmanMMapIndexedDatasetBuilder(prefix, code.build_code()) as builder:
        builder.add_item(["b", "a"])
    assert len(data_utils.load_indexed_dataset(prefix, Dictionary())) == 1


def test_sentences_of_the_older_kind(tmp_path):
    builder = IndexedDatasetBuilder(f"{tmp_path}/train.bin")
    builder.add_item(torch.tensor([4, 5, 2]))
    builder.finalize(f"{tmp_path}/train.idx")
    assert len(data_utils.load_indexed_dataset(f"{tmp_path}/train", Dictionary())) == 1


@pytest.mark.parametrize(
    ("trained", "asked", "warned"),
    [
        (("de", "en"), ("en", "de"), True),
        (("en", "de"), ("en", "de"), False),
        (("en", None), ("en", "de"), False),
    ],
)
def test_a_model_of_the_other_direction_is_warned_of(trained, asked, warned, caplog):
    names = ("source_lang", "target_lang")
    saved, task = (
        SimpleNamespace(**dict(zip(names, pair, strict=True))) for pair in (trained, asked)
    )
    loaded = [], SimpleNamespace(task=saved), SimpleNamespace(cfg=task)
    assert files.open_models(lambda *_, **__: loaded, ["model.pt"]) == loaded
    said = "translates de to en, the data are read as en to de: say -s de -t en"
    assert (said in caplog.text) == warned == bool(caplog.text)
