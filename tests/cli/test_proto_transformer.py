"""One fairseq-train call trains both stages; nothing but the checkpoint is needed afterwards."""

import re
import signal
from pathlib import Path

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble
from fairseq_commands import (
    different,
    every_worker_saves,
    load,
    start_workers,
    status,
    statuses,
    user_dir,
)
from omegaconf import OmegaConf
from small_models import PROTO, TRANSFORMER

from compgen_cli import prototypes
from compgen_fairseq.models.proto_transformer import ProtoTransformerModel

ARCH = [*PROTO, "--prototypes-per-token", 2, "--prototype-min-count", 5]
STAGE_1 = ["--prototype-stage1-epochs", 2]  # epochs have 10 updates

DEADLY = """
import os, signal
from compgen_fairseq.prototypes import extract
extract.prototypes_of = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
"""


def assert_same(state: dict, other: dict, names: list[str] | None = None) -> None:
    assert different(*({n: s[n] for n in names or s} for s in (state, other))) == []


@pytest.fixture(scope="module")
def flags(tiny_data, plugin) -> list[object]:
    return [
        *(tiny_data, *plugin, "--task", "compgen_translation"),
        *("--optimizer", "adam", "--lr", 0.01, "--weight-decay", 0.1, "--batch-size", 30),
        *("--required-batch-size-multiple", 1, "--num-workers", 0, "--seed", 3),
        *("--disable-validation", "--max-epoch", 4, "--max-target-positions", 12),
    ]


@pytest.fixture(scope="module")
def whole(flags, tmp_path_factory) -> Path:
    """A run of both stages, two epochs each."""
    folder = tmp_path_factory.mktemp("whole")
    log = ["--save-dir", folder, "--log-file", folder / "log"]
    assert status("train", *flags, *ARCH, *STAGE_1, *log) == 0
    return folder


@pytest.fixture(scope="module")
def transformer(flags, tmp_path_factory) -> Path:
    """A checkpoint of the plain Transformer after two epochs."""
    folder = tmp_path_factory.mktemp("transformer")
    plain = [*flags, *TRANSFORMER, "--max-epoch", 2, "--save-dir", folder]
    assert status("train", *plain) == 0
    return folder / "checkpoint2.pt"


def test_stage_1_is_the_run_of_the_plain_transformer(transformer, whole):
    theirs, ours = load(transformer), load(whole / "checkpoint2.pt")
    assert_same(theirs["model"], ours["model"], list(theirs["model"]))
    assert len(ours["model"]["encoder.prototypes.counts"]) == 0
    assert len(ours["last_optimizer_state"]["state"]) == len(
        theirs["last_optimizer_state"]["state"]
    )


def test_stage_2_has_prototypes_and_trains_with_them(whole):
    before, after = (load(whole / f"checkpoint{n}.pt")["model"] for n in (2, 4))
    assert len(after["encoder.prototypes.counts"]) == 6
    assert after["encoder.prototypes.vectors"].shape == (6, 2, 16)
    third = load(whole / "checkpoint3.pt")["model"]
    assert torch.equal(third["encoder.prototypes.vectors"], after["encoder.prototypes.vectors"])
    new = [name for name in before if "prototype_attn" in name]
    assert new and all(not torch.equal(before[name], after[name]) for name in new)


def test_the_checkpoint_is_all_that_generation_needs(whole, tiny_data, plugin, tmp_path):
    path = ["--path", whole / "checkpoint4.pt"]
    assert status("generate", tiny_data, *plugin, *path, "--results-path", tmp_path) == 0
    log = (tmp_path / "generate-test.txt").read_text()
    assert sum(line.startswith("H-") for line in log.splitlines()) == 37
    sentences = tiny_data.parent / "test.src"
    hub = ProtoTransformerModel.from_pretrained(str(whole), "checkpoint4.pt", str(tiny_data))
    assert hub.models[0].encoder.prototypes.filled
    first = next(line.split("\t")[2] for line in log.splitlines() if line.startswith("H-0\t"))
    assert hub.translate(sentences.read_text().splitlines()[0], beam=5) == first


def test_stage_2_goes_on_from_the_plain_transformer(
    flags, transformer, whole, tiny_data, run, tmp_path
):
    """Three commands instead of one: train a Transformer, extract, train with prototypes."""
    plain, table, end = (tmp_path / name for name in ("plain.pt", "table.pt", "end"))
    state = load(transformer)
    assert "patience" in state["extra_state"]
    state["extra_state"]["best"] = 1.0
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    torch.save(state, plain)
    k = ["-k", "2", "--prototype-min-count", "5", "--cpu"]
    command = ["extract", str(plain), str(tiny_data), "-o", str(table)]
    assert prototypes.main([*command, *k]) == 0
    assert not {"best", "patience"} & set(load(table)["extra_state"])
    assert status("train", *flags, *ARCH, "--restore-file", table, "--save-dir", end) == 0
    expected, found = load(whole / "checkpoint_last.pt"), load(end / "checkpoint_last.pt")
    assert_same(expected["model"], found["model"])
    said = run("fairseq_cli.train", *flags, *ARCH, "--restore-file", transformer, status=1)
    assert said.endswith("--reset-optimizer, or --finetune-from-model instead of --restore-file\n")


def test_a_run_that_is_killed_during_the_extraction_ends_as_the_whole_one(flags, whole, tmp_path):
    save = ["--save-dir", tmp_path, "--save-interval-updates", 12, "--no-epoch-checkpoints"]
    run = [*flags, *ARCH, *STAGE_1, *save]
    assert status("train", *run, "--user-dir", user_dir(tmp_path, DEADLY)) == -signal.SIGKILL
    assert status("train", *run) == 0
    expected, resumed = load(whole / "checkpoint_last.pt"), load(tmp_path / "checkpoint_last.pt")
    assert_same(expected["model"], resumed["model"])
    moments, again = (s["last_optimizer_state"]["state"] for s in (expected, resumed))
    assert all(torch.equal(moments[i]["exp_avg"], again[i]["exp_avg"]) for i in moments)


def test_two_workers_hold_the_same_model_and_spare_the_new_parameters_in_stage_1(
    flags, whole, tmp_path
):
    """Two workers with half the batch; weight decay must not touch what is not yet trained."""
    folders = [tmp_path / str(rank) for rank in range(2)]
    own = ["--user-dir", every_worker_saves(tmp_path), "--batch-size", 15, "--max-epoch", 3]
    run = [*flags, *ARCH, *STAGE_1, *own]
    assert statuses(start_workers(2, *run, folders=folders)) == [0, 0]
    first, second = (load(folder / "checkpoint3.pt")["model"] for folder in folders)
    assert_same(first, second)
    assert len(first["encoder.prototypes.counts"]) == 6
    stage_1, alone = (load(f / "checkpoint2.pt")["model"] for f in (folders[0], whole))
    assert_same(stage_1, alone, [name for name in alone if "prototype_attn" in name])


def test_optimizer_and_learning_rate_can_start_anew(flags, tmp_path):
    """With inverse_sqrt: test_hydra.py."""
    schedule = ["--lr-scheduler", "polynomial_decay", "--total-num-update", 44]
    schedule += ["--warmup-updates", 4, "--prototype-restart"]
    save = ["--save-dir", tmp_path, "--log-file", tmp_path / "log", "--log-format", "json"]
    assert status("train", *flags, *ARCH, *STAGE_1, *schedule, *save, "--max-epoch", 3) == 0
    state = load(tmp_path / "checkpoint3.pt")
    assert state["model"]["encoder.prototypes.restarted"] == 20
    steps = {int(s["step"]) for s in state["last_optimizer_state"]["state"].values()}
    assert steps == {10}
    found = re.findall(
        r'"train_num_updates": "(\d+)", "train_lr": "([^"]+)"', (tmp_path / "log").read_text()
    )
    rates = {int(update): float(rate) for update, rate in found}
    assert rates[30] == pytest.approx(0.01 * (44 - 9) / 40, rel=1e-3)
    assert rates[20] == pytest.approx(0.01 * (44 - 20) / 40, rel=1e-3)


def test_the_second_pass_takes_the_table_of_the_first(flags, whole, tiny_data, tmp_path):
    table, path = whole / "checkpoint4.pt", tmp_path / "checkpoint_last.pt"
    run = [*flags, *ARCH, "--prototypes", "two-pass", "--prototype-table", table]
    assert status("train", *run, "--max-epoch", 3, "--save-dir", tmp_path) == 0
    state, taken = (load(file)["model"] for file in (path, table))
    assert_same(state, taken, ["encoder.prototypes.vectors", "encoder.prototypes.slots"])
    (model,), _ = load_model_ensemble([str(path)], arg_overrides={"data": str(tiny_data)})
    assert all(table.filled for table in model.tables().values())
