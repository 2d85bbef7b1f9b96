"""The real fairseq commands, with the plugin, on 37 sentences and fairseq's default flags."""

import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models.transformer import TransformerModel

import compgen_fairseq  # noqa: F401
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


def test_the_run_is_recorded(tiny_data, tiny_model):
    record = json.loads((tiny_model / "RUN.json").read_text())
    log = (tiny_model / "train.log").read_text()
    assert record["updates"] == figures(log, "num_updates", "train")[-1]
    assert f"params: {record['parameters']:,} " in log
    (session,) = record["sessions"]
    assert f" {tiny_data} " in session["command"] and session["settings"]["common"]["seed"] == 1
    assert session["settings"]["model"]["encoder_embed_dim"] == 16
    assert session["cpu_minutes"] > 0 and session["minutes"] > 0


def test_generate_loses_no_sentence_and_agrees_with_validation(tiny_data, tiny_model, tiny_log):
    generation = generate_log.read(tiny_log, expected=37)
    assert generation.sources[:3] == (tiny_data.parent / "test.src").read_text().split("\n")[:3]
    pairs = zip(generation.hypotheses, generation.targets, strict=True)
    correct = sum(hypothesis == target for hypothesis, target in pairs)
    percent = 100 * correct / 37
    assert f"ExactMatch = {percent:.2f} ({correct} / 37)" in tiny_log.read_text()
    validated = figures((tiny_model / "train.log").read_text(), "exact_match")[-1]
    assert validated == pytest.approx(percent, abs=1e-3) and correct > 0


def test_validate_counts_every_sentence(tiny_data, tiny_model, plugin, run):
    log = run(
        *("fairseq_cli.validate", tiny_data, *plugin, "--task", "compgen_translation"),
        *("--path", tiny_model / "checkpoint_last.pt", "--batch-size", 37),
    )
    assert figures(log, "bsz") == [37]  # the sum; fairseq alone drops the last 5
    train_log = (tiny_model / "train.log").read_text()
    assert figures(log, "exact_match") == figures(train_log, "exact_match")[-1:]
    assert figures(log, "bleu") == figures(train_log, "bleu")[-1:]


def test_interactive_answers_every_line(tiny_data, tiny_model, tiny_log, plugin, run):
    source = (tiny_data.parent / "test.src").read_text()
    log = run(
        *("fairseq_cli.interactive", tiny_data, *plugin, "--task", "compgen_translation"),
        *("--path", tiny_model / "checkpoint_last.pt", "--buffer-size", 64, "--max-tokens", 200),
        input=source,
    )
    generation = generate_log.parse(log.splitlines(keepends=True))
    assert generation.targets == []
    assert generation.hypotheses == generate_log.read(tiny_log).hypotheses


def test_from_pretrained(tiny_data, tiny_model, tiny_log):
    generation = generate_log.read(tiny_log)
    model = TransformerModel.from_pretrained(
        str(tiny_model), "checkpoint_last.pt", str(tiny_data), generation_args={"beam": 5}
    )
    known = [i for i, source in enumerate(generation.sources) if "<unk>" not in source]
    translations = model.translate([generation.sources[i] for i in known])
    assert translations == [generation.hypotheses[i] for i in known]


def test_hydra_train(tiny_data, plugin, tmp_path, run):
    config = f"""
        common: {{user_dir: {plugin[1]}, cpu: true, no_progress_bar: true}}
        task: {{_name: compgen_translation, data: {tiny_data}, eval_exact_match: true,
                repeated_pairs: spread}}
        model: {{_name: transformer, encoder_layers: 1, decoder_layers: 1, encoder_embed_dim: 16,
                 decoder_embed_dim: 16}}
        criterion: {{_name: cross_entropy}}
        optimizer: {{_name: adam}}
        lr_scheduler: {{_name: fixed}}
        optimization: {{lr: [0.01], max_epoch: 1}}
        dataset: {{max_tokens: 200}}
        checkpoint: {{save_dir: {tmp_path}, best_checkpoint_metric: exact_match,
                      maximize_best_checkpoint_metric: true}}
        distributed_training: {{distributed_world_size: 1}}
    """
    (tmp_path / "tiny.yaml").write_text(config)
    folders = ("--config-dir", tmp_path, "--config-name", "tiny", f"hydra.run.dir={tmp_path}")
    log = run("fairseq_cli.hydra_train", *folders)
    assert len(re.findall(r"valid on 'valid' subset .* exact_match [\d.]+ ", log)) == 1
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_best.pt"))
    assert state["cfg"].task.repeated_pairs == "spread"


class Foreign:
    """Unpickled without care, this calls a function that leaves a folder behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def test_generate_refuses_a_checkpoint_that_would_run_code(
    tiny_data, tiny_model, plugin, tmp_path, run
):
    state = torch.load(tiny_model / "checkpoint_last.pt")
    state["extra_state"]["harmless"] = Foreign(tmp_path / "mark")
    poisoned = tmp_path / "poisoned.pt"
    torch.save(state, poisoned)
    log = run("fairseq_cli.generate", tiny_data, *plugin, "--path", poisoned, status=1)
    assert log.splitlines()[-1].endswith(
        "could run code when it is loaded, by posix.mkdir, so it is not"
    )
    assert not (tmp_path / "mark").exists()
    torch.load(poisoned, weights_only=False)
    assert (tmp_path / "mark").exists(), "the checkpoint of this test does no harm"


def test_two_workers_count_every_sentence_once(
    tiny_data, plugin, tiny_sizes, tiny_training, tmp_path, run
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    workers = "--distributed-backend gloo --ddp-backend legacy_ddp --distributed-world-size 2"
    flags = [
        *(tiny_data, *plugin, *tiny_sizes, *tiny_training, "--max-epoch", 8),
        *("--task", "compgen_translation", "--eval-exact-match", "--save-dir", tmp_path),
        *(*workers.split(), "--distributed-init-method", f"tcp://127.0.0.1:{port}"),
        *("--no-epoch-checkpoints", "--max-tokens", 100, "--distributed-no-spawn"),
        *("--batch-size-valid", 8),  # 5 batches: one worker gets a dummy
    ]
    with ThreadPoolExecutor() as pool:
        ranks = [
            pool.submit(run, "fairseq_cli.train", *flags, "--distributed-rank", r) for r in (0, 1)
        ]
        log = ranks[0].result()
        ranks[1].result()

    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(tmp_path / "checkpoint_last.pt")]
    )
    task.load_dataset("valid")
    batches = task.get_batch_iterator(task.dataset("valid"), max_sentences=37)
    score = [
        task._decode_and_compare(sample, model) for sample in batches.next_epoch_itr(shuffle=False)
    ]
    assert [part.total for part in score] == [37] and score[0].correct > 0
    assert figures(log, "exact_match")[-1] == pytest.approx(score[0].percent, abs=1e-3)
