"""``fairseq-generate --print-alignment`` with every architecture; averages of checkpoints."""

import pytest
import torch
from fairseq_commands import load, status
from small_models import MODELS, PROTO

ARCHITECTURES = {
    "sal": MODELS["sal"],
    "proto-target": [
        *(*PROTO, "--prototypes", "target-side"),
        *("--prototype-stage1-epochs", 1, "--prototype-min-count", 5),
    ],
}


def averaging_keeps_what_is_equal(path):
    """fairseq's average_checkpoints.py sums up to ten tensors, and divides."""
    for name, value in load(path)["model"].items():
        limits = torch.finfo if value.is_floating_point() else torch.iinfo  # of bool there are none
        assert (value.abs() <= limits(value.dtype).max / 10).all(), name


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_alignment(name, tiny_data, plugin, tmp_path):
    task = ["--task", "compgen_translation", "--optimizer", "adam", "--lr", 0.01]
    training = ["--max-update", 12, "--batch-size", 60, "--disable-validation"]
    saved = [*training, "--save-dir", tmp_path, "--no-epoch-checkpoints", "--num-workers", 0]
    assert status("train", tiny_data, *plugin, *task, *ARCHITECTURES[name], *saved) == 0
    averaging_keeps_what_is_equal(tmp_path / "checkpoint_last.pt")
    test = (tiny_data.parent / "test.src").read_text().splitlines()
    for kind in ("hard", "soft") if name == "sal" else ("soft",):
        path = ["--path", tmp_path / "checkpoint_last.pt", "--results-path", tmp_path / kind]
        beam = ["--beam", 3, "--max-len-b", 12, "--print-alignment", kind, "--num-workers", 0]
        assert status("generate", tiny_data, *plugin, *path, *beam) == 0
        lines = (tmp_path / kind / "generate-test.txt").read_text().splitlines()
        hypotheses = {line.split("\t")[0][2:]: line for line in lines if line.startswith("H-")}
        alignments = {line.split("\t")[0][2:]: line for line in lines if line.startswith("A-")}
        assert len(hypotheses) == len(test) and alignments.keys() == hypotheses.keys()
        for number, line in alignments.items():
            target = hypotheses[number].split("\t")[2].split()
            source = test[int(number)].split()
            _, _, text = line.partition("\t")
            if kind == "hard":
                pairs = [tuple(map(int, pair.split("-"))) for pair in text.split()]
                assert [there for _, there in pairs] == list(range(len(target)))
                assert all(0 <= here < len(source) for here, _ in pairs)
            elif target:
                rows = [list(map(float, row.split(","))) for row in text.split()]
                assert len(rows) == len(target) + 1 and len(rows[0]) == len(source) + 1
                for row in rows:
                    assert sum(row) == pytest.approx(1, abs=1e-3)
                    assert all(0 <= share <= 1 for share in row)
