"""The check of an installation, on a machine with or without a GPU."""

import json

import gpu_check
import pytest
import torch


@pytest.mark.skipif(torch.cuda.is_available(), reason="make gpu-check takes 20 minutes with a GPU")
def test_without_a_gpu_it_checks_what_it_can(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "step", lambda *_, **__: (True, 0.0))
    monkeypatch.setattr("sys.argv", ["gpu_check.py", str(tmp_path / "out")])
    assert gpu_check.main() == 0
    told = capsys.readouterr()
    assert "PyTorch sees no GPU here" in told.err and told.out.count("| passed |") == 2
    found = json.loads((tmp_path / "out" / "gpu-check.json").read_text())
    assert found["device"] == "no GPU" and [row[1] for row in found["checks"]] == ["passed"] * 2
