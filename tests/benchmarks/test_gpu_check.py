"""The check of an installation, on a machine with or without a GPU."""

import json
import subprocess
from pathlib import Path

import pytest
import torch
from instant import instant

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu_check.py"


@pytest.mark.skipif(torch.cuda.is_available(), reason="make gpu-check takes 20 minutes with a GPU")
def test_without_a_gpu_it_checks_what_it_can(tmp_path):
    python = f"{instant()}/python"
    done = subprocess.run(
        [python, SCRIPT, tmp_path / "out"], capture_output=True, text=True, check=True
    )
    assert "PyTorch sees no GPU here" in done.stderr
    assert done.stdout.count("| passed |") == 2
    found = json.loads((tmp_path / "out" / "gpu-check.json").read_text())
    assert found["device"] == "no GPU" and [row[1] for row in found["checks"]] == ["passed"] * 2
