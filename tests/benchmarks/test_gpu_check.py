"""The check of an installation, on a machine without a GPU."""

import json
import sys

import gpu_check
import pytest
import torch


@pytest.mark.parametrize("passes", [True, False])
def test_without_a_gpu_it_checks_what_it_can(passes, tmp_path, monkeypatch, capsys):
    commands = []
    monkeypatch.setattr(gpu_check, "step", lambda *step: commands.append(step[2]) or (passes, 1.0))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", str(tmp_path / "out")])
    assert gpu_check.main() == (0 if passes else 1)
    said, verdict = capsys.readouterr(), "passed" if passes else "FAILED"
    assert "PyTorch sees no GPU here" in said.err and said.out.count(f"| {verdict} |") == 2
    found = json.loads((tmp_path / "out" / "gpu-check.json").read_text())
    assert found["device"] == "no GPU" and [row[1] for row in found["checks"]] == [verdict] * 2
    assert (gpu_check.ROOT / commands[1][-1]).is_file()
