"""Syntactic Attention through the real fairseq commands."""

import re

import pytest
from fairseq_commands import load

from compgen.scoring import generate_log
from compgen_fairseq import SyntacticAttentionModel

SIZES = "--encoder-embed-dim=12 --encoder-hidden-size=24 --semantic-dim=16 --dropout=0.1".split()


@pytest.fixture(scope="module")
def trained(tiny_data, plugin, tmp_path_factory, run):
    """The folder of a model trained with the project's task and optimizer, and the log."""
    folder = tmp_path_factory.mktemp("syntactic")
    log = run(
        *("fairseq_cli.train", tiny_data, *plugin, "--arch", "syntactic_attention_scan", *SIZES),
        *("--task", "compgen_translation", "--train-batches", "mixed", "--eval-exact-match"),
        *("--criterion", "cross_entropy", "--optimizer", "fused_adam", "--lr", 0.01),
        *("--clip-norm", 5, "--max-tokens", 200, "--max-epoch", 18, "--seed", 1),
        *("--save-dir", folder, "--no-epoch-checkpoints", "--validate-interval", 6),
    )
    return folder, log


@pytest.fixture(scope="module")
def generated(trained, tiny_data, plugin, run):
    """What fairseq-generate, with its default task and beam, says about the test set."""
    flags = ("--path", trained[0] / "checkpoint_last.pt", "--print-alignment", "hard")
    log = run("fairseq_cli.generate", tiny_data, *plugin, *flags)
    return log, generate_log.parse(log.splitlines(keepends=True))


def test_it_learns_a_word_by_word_code(trained, generated, tiny_data):
    values = [float(v) for v in re.findall(r"exact_match ([\d.]+)", trained[1])]
    assert len(values) == 3 and values[-1] > 50
    _, parsed = generated
    pairs = list(zip(parsed.sources, parsed.hypotheses, strict=True))
    assert len(pairs) == 37
    assert sum(h == s.upper() for s, h in pairs) > 18
    hub = SyntacticAttentionModel.from_pretrained(trained[0], "checkpoint_last.pt", tiny_data)
    assert [hub.translate(s, beam=5) for s, _ in pairs[:5]] == [h for _, h in pairs[:5]]


def test_the_alignment_is_the_words_own_order(generated):
    log, parsed = generated
    alignments = dict(re.findall(r"^A-(\d+)\t(.*)$", log, re.MULTILINE))
    right = total = 0
    for i, (source, hypothesis) in enumerate(zip(parsed.sources, parsed.hypotheses, strict=True)):
        if hypothesis == source.upper():
            pairs = [f"{k}-{k}" for k in range(len(source.split()))]
            total += len(pairs)
            right += len(set(pairs) & set(alignments[str(i)].split()))
    assert total > 0 and right / total > 0.9


def test_fairseqs_own_task_and_criterion_with_every_ablation(
    trained, tiny_data, plugin, tmp_path, run
):
    flags = "--sequential-semantics --syntax-action --semantic-mlp --encoder-layers 3"
    log = run(
        *("fairseq_cli.train", tiny_data, *plugin, "--arch", "syntactic_attention", *SIZES),
        *(*flags.split(), "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1),
        *("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--max-epoch", 2),
        *("--save-dir", tmp_path, "--no-epoch-checkpoints"),
    )
    first, last = (float(v) for v in re.findall(r"valid on .* \| loss ([\d.]+)", log))
    assert last < first
    path = tmp_path / "checkpoint_last.pt"
    state = load(path)
    assert state["model"]["encoder.sequence.forwards.weight_ih_l0"].shape == (4 * 8, 16)
    ensemble = f"{path}:{trained[0] / 'checkpoint_last.pt'}"
    beam = ["--path", ensemble, "--beam", 3, "--max-len-b", 12]
    log = run("fairseq_cli.generate", tiny_data, *plugin, *beam)
    assert len(generate_log.parse(log.splitlines(keepends=True)).hypotheses) == 37


def test_words_that_can_stand_for_each_other_share_their_syntax(tiny_data, plugin, tmp_path, run):
    """The classes come from the training set, are in the checkpoint and outlive a resumption."""

    def train(epochs):
        return run(
            *("fairseq_cli.train", tiny_data, *plugin, "--arch", "syntactic_attention", *SIZES),
            *("--task", "compgen_translation", "--syntactic-classes", "substitution"),
            *("--class-meanings", "own", "--marker-meanings", "own"),
            *("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--max-epoch", epochs),
            *("--save-dir", tmp_path, "--no-epoch-checkpoints"),
        )

    assert "substitution test, source: " in train(1)
    path = tmp_path / "checkpoint_last.pt"
    names = ("encoder.classes", "decoder.owners")
    state = load(path)["model"]
    classes, owners = (state[name] for name in names)
    assert classes.min() >= 0 and len(classes.unique()) < len(classes)
    assert len(owners.unique()) > 1 and owners.min() == -1
    assert "substitution test, source: " not in train(2)
    again = load(path)["model"]
    assert all(again[name].equal(state[name]) for name in names)
