"""The real fairseq commands, with the plugin, on 37 sentences and fairseq's default flags."""

import re

import pytest

from compgen.scoring import generate_log


def figures(log: str, name: str, of: str = "valid") -> list[float]:
    """The values of ``name`` in fairseq's lines about training or validation, in order."""
    lines = (line for line in log.splitlines() if f"| {of} |" in line)
    return [float(m[1]) for m in (re.search(rf"\| {name} ([\d.]+)", line) for line in lines) if m]


def test_training_sees_every_pair_and_reports_exact_match(tiny_model):
    log = (tiny_model / "train.log").read_text()
    updates = [0, *figures(log, "num_updates", "train")]
    sizes = figures(log, "bsz", "train")
    assert len(sizes) == 8
    for before, after, size in zip(updates, updates[1:], sizes, strict=False):
        assert size * (after - before) == pytest.approx(203 + 82, abs=0.05 * (after - before))
    scores = figures(log, "exact_match")
    assert len(scores) == len(figures(log, "bleu")) == 8
    assert figures(log, "best_exact_match")[-1] == max(scores) > 0
    assert figures(log, "exact_match", "train") == []


def test_generate_loses_no_sentence_and_agrees_with_validation(tiny_data, tiny_model, tiny_log):
    generation = generate_log.read(tiny_log, expected=37)
    assert generation.sources[:3] == (tiny_data.parent / "test.src").read_text().split("\n")[:3]
    pairs = zip(generation.hypotheses, generation.targets, strict=True)
    correct = sum(hypothesis == target for hypothesis, target in pairs)
    percent = 100 * correct / 37
    validated = figures((tiny_model / "train.log").read_text(), "exact_match")[-1]
    assert validated == pytest.approx(percent, abs=1e-3) and correct > 0
