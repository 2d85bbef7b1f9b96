"""Mixed precision, as ``--amp`` has it on a GPU, and bfloat16; SAL and SRL with ``--amp`` are in
test_sq_transformer.py. SRL's word stream is ``plain``, and ``meanings`` has fixed codes as
``brown`` has."""

import pytest
import torch
from fairseq_commands import fits, load, status, with_autocast
from small_models import MODELS


def flags_of(name, precision, folder):
    flags = ["--task", "compgen_translation", *MODELS[name], precision, "--optimizer", "adam"]
    flags += ["--lr", 0.001, "--batch-size", 60, "--max-update", 9, "--disable-validation"]
    return [*flags, "--save-dir", folder, "--num-workers", 0]  # 5 updates are an epoch


def model_of(name, folder):
    """The state of the model, whose prototypes, if it has some, have been extracted."""
    saved = load(folder / "checkpoint_last.pt")["model"]
    assert name != "proto" or len(saved["encoder.prototypes.counts"])
    return saved


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"sal", "srl", "plain", "brown"}))
def test_every_model_trains_under_autocast(name, tiny_data, plugin, tmp_path):
    flags = flags_of(name, "--amp", tmp_path)
    more = ["--user-dir", with_autocast(tmp_path)]
    assert status("train", tiny_data, *plugin, *flags, *more) == 0
    saved = model_of(name, tmp_path)
    assert all(torch.isfinite(value).all() for value in saved.values())
    state = load(tmp_path / "checkpoint_last.pt")["last_optimizer_state"]["state"]
    assert any((one["exp_avg"] != 0).any() for one in state.values())


@pytest.mark.parametrize("name", ["meanings", "proto"])
def test_transformers_train_in_bfloat16(name, tiny_data, plugin, tmp_path):
    """fairseq takes the flag for a TPU's, and looks for one. SAL is in test_hydra.py; half
    precision of SRL and CAT in tests/models."""
    assert status("train", tiny_data, *plugin, *flags_of(name, "--bf16", tmp_path)) == 0
    saved = model_of(name, tmp_path)
    embeddings = [saved[key] for key in saved if "embed" in key and "weight" in key]
    assert embeddings and all(fits(weight, torch.bfloat16) for weight in embeddings)
