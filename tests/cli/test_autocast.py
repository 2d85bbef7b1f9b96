"""Mixed precision, as ``--amp`` has it on a GPU."""

import pytest
from fairseq_commands import status
from small_models import MODELS

PLUGIN = """
import functools
import torch
import compgen_fairseq
torch.cuda.amp.autocast = functools.partial(torch.autocast, "cpu", torch.bfloat16)
"""


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_under_autocast(name, tiny_data, plugin, tmp_path):
    """fairseq's autocast is CUDA's and does nothing on a CPU; the CPU's, in bfloat16, stands in."""
    user_dir = tmp_path / "autocast"
    user_dir.mkdir()
    (user_dir / "__init__.py").write_text(PLUGIN)
    flags = ["--task", "compgen_translation", *MODELS[name], "--amp", "--optimizer", "adam"]
    flags += ["--lr", 0.001, "--max-tokens", 200, "--max-update", 2, "--disable-validation"]
    flags += ["--save-dir", tmp_path, "--num-workers", 0]
    assert status("train", tiny_data, *plugin, *flags, "--user-dir", user_dir) == 0
