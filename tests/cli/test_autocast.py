"""Mixed precision, as ``--amp`` has it on a GPU, and bfloat16; SAL and SRL with ``--amp`` are in
test_sq_transformer.py."""

import pytest
import torch
from fairseq_commands import fits, load, status, with_autocast
from small_models import MODELS


def flags_of(name, precision, folder):
    flags = ["--task", "compgen_translation", *MODELS[name], precision, "--optimizer", "adam"]
    flags += ["--lr", 0.001, "--max-tokens", 200, "--max-update", 2, "--disable-validation"]
    return [*flags, "--save-dir", folder, "--num-workers", 0]


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"sal", "srl"}))
def test_every_model_trains_under_autocast(name, tiny_data, plugin, tmp_path):
    flags = flags_of(name, "--amp", tmp_path)
    more = ["--user-dir", with_autocast(tmp_path)]
    assert status("train", tiny_data, *plugin, *flags, *more) == 0


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"syntactic", "sal"}))
def test_every_transformer_trains_in_bfloat16(name, tiny_data, plugin, tmp_path):
    """fairseq takes the flag for a TPU's, and looks for one. SAL is in test_hydra.py."""
    assert status("train", tiny_data, *plugin, *flags_of(name, "--bf16", tmp_path)) == 0
    saved = load(tmp_path / "checkpoint_last.pt")["model"]
    embeddings = [saved[key] for key in saved if "embed" in key and "weight" in key]
    assert embeddings and all(fits(weight, torch.bfloat16) for weight in embeddings)
