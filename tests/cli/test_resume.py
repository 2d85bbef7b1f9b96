"""A run that is killed in the middle of an epoch ends as if nothing had happened."""

import multiprocessing
import signal
from unittest import mock

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq_cli.train import cli_main

import compgen_fairseq  # noqa: F401

# a server that has imported fairseq: each of its processes starts at once
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fairseq_cli.train"])

DEADLY = """
import os, signal
from fairseq.trainer import Trainer
import compgen_fairseq

step = Trainer.train_step

def train_step(self, *args):
    if self.get_num_updates() == 16:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *args)

Trainer.train_step = train_step
"""


def train(*flags: object) -> int | None:
    """The exit status of ``fairseq-train``; -9 if it was killed."""
    with mock.patch("sys.argv", ["fairseq-train", *map(str, flags)]):
        process = PROCESSES.Process(target=cli_main)
        process.start()
    process.join(timeout=200)
    return process.exitcode


@pytest.mark.parametrize("frozen_after", [0, 12, 15])
def test_a_killed_run_ends_with_the_same_parameters(frozen_after, tiny_data, plugin, tmp_path):
    """Epochs have 10 updates; the last checkpoint is of update 14, the end comes at update 16."""
    deadly = tmp_path / "deadly"
    deadly.mkdir()
    (deadly / "__init__.py").write_text(DEADLY)
    sizes = {"layers": 1, "ffn-embed-dim": 16, "attention-heads": 2, "predictor-layers": 1}
    flags = [
        *(tiny_data, *plugin, "--task", "compgen_translation", "--repeated-pairs", "spread"),
        *("--arch", "sq_transformer_scan", "--criterion", "structural_cross_entropy"),
        *("--ema-decay", 0.9, "--encoder-embed-dim", 16),
        *(f"--{side}-{k}={v}" for side in ("encoder", "decoder") for k, v in sizes.items()),
        *("--optimizer", "adam", "--lr", 0.01, "--batch-size", 30),
        *("--required-batch-size-multiple", 1, "--max-update", 24),
        *("--seed", 3, "--freeze-codes-after", frozen_after, "--num-workers", 0),
        *("--save-interval-updates", 14, "--disable-validation", "--no-epoch-checkpoints"),
    ]
    assert train(*flags, "--save-dir", tmp_path / "whole") == 0
    killed = [*flags, "--save-dir", tmp_path / "killed"]
    assert train(*killed, "--user-dir", deadly) == -signal.SIGKILL
    path = str(tmp_path / "killed" / "checkpoint_last.pt")
    assert load_checkpoint_to_cpu(path)["optimizer_history"][-1]["num_updates"] == 14
    assert train(*killed) == 0

    whole = load_checkpoint_to_cpu(str(tmp_path / "whole" / "checkpoint_last.pt"))
    resumed = load_checkpoint_to_cpu(path)
    assert resumed["optimizer_history"][-1]["num_updates"] == 24
    frozen = [v for name, v in whole["model"].items() if name.endswith("type_codes")]
    assert len(frozen) == 2 and all((codes >= 0).all() == (frozen_after > 0) for codes in frozen)
    assert whole["model"].keys() == resumed["model"].keys()
    assert [n for n, v in whole["model"].items() if not torch.equal(v, resumed["model"][n])] == []
    moments, again = (s["last_optimizer_state"]["state"] for s in (whole, resumed))
    assert all(torch.equal(moments[i]["exp_avg"], again[i]["exp_avg"]) for i in moments)
