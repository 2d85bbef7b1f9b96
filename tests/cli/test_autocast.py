"""Mixed precision, as ``--amp`` has it on a GPU; SAL and SRL are in test_sq_transformer.py."""

import pytest
from fairseq_commands import status, with_autocast
from small_models import MODELS


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"sal", "srl"}))
def test_every_model_trains_under_autocast(name, tiny_data, plugin, tmp_path):
    flags = ["--task", "compgen_translation", *MODELS[name], "--amp", "--optimizer", "adam"]
    flags += ["--lr", 0.001, "--max-tokens", 200, "--max-update", 2, "--disable-validation"]
    flags += ["--save-dir", tmp_path, "--num-workers", 0, "--user-dir", with_autocast(tmp_path)]
    assert status("train", tiny_data, *plugin, *flags) == 0
