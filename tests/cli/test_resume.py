"""A run that is killed, at any moment and on any number of workers, ends as if nothing happened."""

import json
import random
import signal
from pathlib import Path

import pytest
import sentence_files
import torch
from fairseq_commands import different, load, start_workers, status, statuses, user_dir
from prepare_scripts import runner
from small_models import CAT, MODELS, PROTO

PROTOTYPES = [*PROTO, "--prototypes-per-token", 2, "--prototype-min-count", 5]
PROTOTYPES += ["--weight-decay", 0.1]
STAGE_1 = ["--prototype-stage1-epochs", 1]
TRANSLATORS = {
    "sal": MODELS["sal"],
    "sal-brown": [*MODELS["sal"], "--code-classes", "brown"],
    "srl": [*MODELS["sal"], "--arch", "sq_transformer_cogs"],
    "plain": MODELS["plain"],
    "syntactic": [
        *("--arch", "syntactic_attention_scan", "--encoder-embed-dim", 12, "--semantic-dim", 8),
        *("--encoder-hidden-size", 24, "--criterion", "cross_entropy"),
    ],
    "cat-transformer": [*MODELS["cat"], "--encoder-layers", 2, "--codes", 12],
    "one-pass": [*PROTOTYPES, *STAGE_1],
    "source-and-target": [*PROTOTYPES, *STAGE_1, "--prototypes", "source-and-target"],
    "random": [*PROTOTYPES, "--prototypes", "random"],
    "two-pass": [*PROTOTYPES, "--prototypes", "two-pass"],
}
ARCHITECTURES = [*TRANSLATORS, "cat"]
#: one of each kind of state: codebooks, tables of prototypes, batches that are masked anew
KINDS = ("sal", "source-and-target", "cat")

DEADLY = """
import functools, os, signal
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer

step = Trainer.train_step

def train_step(self, *args):
    if self.get_num_updates() == {moment!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *args)

def copy_half(source, target, overwrite):
    with open(source, "rb") as whole, open(target, "wb") as half:
        half.write(whole.read(20_000))
    os.kill(os.getpid(), signal.SIGKILL)

Trainer.train_step = train_step
if {moment!r} == "copying":
    from compgen_fairseq import compat
    PathManager.copy = functools.partial(compat.copy_whole_checkpoints, copy_half)
"""


@pytest.fixture
def deadly(tmp_path):
    """Flags with which a run is killed before its update ``moment``, or while it copies."""

    def deadly(moment: int | str) -> list[object]:
        return ["--user-dir", user_dir(tmp_path, DEADLY.format(moment=moment))]

    return deadly


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """A prepared text for CAT."""
    folder = tmp_path_factory.mktemp("text")
    runner("pretraining")(folder / "data", *sentence_files.pretraining(folder))
    return folder / "data"


@pytest.fixture
def flags(tiny_data, plugin, request):
    """The flags that train an architecture by its name here, with some pairs a worker."""

    def flags(name: str, pairs: int = 30, validate: bool = False) -> list[object]:
        training = [
            *("--optimizer", "adam", "--lr", 0.01, "--required-batch-size-multiple", 1),
            *("--max-update", 24, "--seed", 3, "--num-workers", 0, "--batch-size", pairs),
            *("--save-interval-updates", 14, "--no-epoch-checkpoints"),
            *([] if validate else ["--disable-validation"]),
        ]
        if name == "cat":
            task = ["--task", "cat_pretraining", "--criterion", "cat_pretraining"]
            task += ["--tokens-per-sample", 96, "--arch", "cat_tiny", *CAT, "--save-interval", 99]
            task += ["--num-workers", 1]  # fairseq's default: it masks in all epochs
            return [request.getfixturevalue("text"), *plugin, *training, *task]
        own = TRANSLATORS[name]
        if name == "two-pass":
            own = [*own, "--prototype-table", request.getfixturevalue("with_prototypes")]
        task = ["--task", "compgen_translation", "--train-batches", "mixed"]
        return [tiny_data, *plugin, *task, *training, *own]

    return flags


def updates(path: Path) -> int:
    return load(path)["optimizer_history"][-1]["num_updates"]


def assert_same(folder: Path, other: Path) -> None:
    """Both runs ended after update 24 with the same parameters and the same optimizer."""
    whole, resumed = (load(f / "checkpoint_last.pt") for f in (folder, other))
    for state in (whole, resumed):
        assert state["optimizer_history"][-1]["num_updates"] == 24
    assert different(whole["model"], resumed["model"]) == []
    moments, again = (s["last_optimizer_state"]["state"] for s in (whole, resumed))
    torch.testing.assert_close(moments, again, rtol=0, atol=0)


def test_a_killed_run_ends_with_the_same_parameters(flags, deadly, tmp_path):
    """Epochs have 10 updates; the last checkpoint is of update 14, the end comes at update 16."""
    run = [*flags("sal-brown"), "--optimizer", "fused_adam", "--train-batches", "sorted"]
    run += ["--save-dir"]
    assert status("train", *run, tmp_path / "whole") == 0
    assert status("train", *run, tmp_path / "killed", *deadly(16)) == -signal.SIGKILL
    assert updates(tmp_path / "killed" / "checkpoint_last.pt") == 14
    assert status("train", *run, tmp_path / "killed") == 0
    assert_same(tmp_path / "whole", tmp_path / "killed")
    state = load(tmp_path / "whole" / "checkpoint_last.pt")["model"]
    frozen = [codes for name, codes in state.items() if name.endswith("type_codes")]
    assert len(frozen) == 2 and all((codes >= 0).all() for codes in frozen)


@pytest.mark.parametrize(
    "architecture",
    [
        name if name in KINDS else pytest.param(name, marks=pytest.mark.long)
        for name in ARCHITECTURES
    ],
)
def test_two_workers_that_are_killed_end_with_the_same_parameters(
    architecture, flags, deadly, tmp_path
):
    run = [*flags(architecture, 15), "--save-dir"]
    assert statuses(start_workers(2, *run, tmp_path / "whole")) == [0, 0]
    killed = start_workers(2, *run, tmp_path / "killed", *deadly(16))
    assert statuses(killed) == [-signal.SIGKILL, -signal.SIGKILL]
    assert updates(tmp_path / "killed" / "checkpoint_last.pt") == 14
    assert statuses(start_workers(2, *run, tmp_path / "killed")) == [0, 0]
    assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize("architecture", ["plain", "syntactic"])
def test_a_run_that_is_killed_while_it_copies_a_checkpoint_resumes(
    architecture, flags, deadly, tmp_path
):
    run = [*flags(architecture), "--save-dir"]
    assert status("train", *run, tmp_path / "whole") == 0
    killed = [*run, tmp_path / "killed"]
    assert status("train", *killed, "--max-update", 14) == 0
    assert status("train", *killed, "--save-interval-updates", 7, *deadly("copying")) == -9
    assert (tmp_path / "killed" / "checkpoint_last.pt.tmp").stat().st_size == 20_000
    assert updates(tmp_path / "killed" / "checkpoint_last.pt") == 20  # the end of an epoch
    assert status("train", *killed) == 0
    assert_same(tmp_path / "whole", tmp_path / "killed")


def test_a_run_that_resumes_goes_on_counting_for_patience(flags, tmp_path):
    """The loss never falls, so the fourth epoch is the third without a better one."""
    run = [*flags("plain", validate=True), "--lr", 1e-30, "--patience", 3, "--max-update", 90]
    run += ["--save-interval-updates", 0, "--save-dir", tmp_path]
    assert status("train", *run, "--max-epoch", 3) == 0
    assert updates(tmp_path / "checkpoint_last.pt") == 30
    last = tmp_path / "checkpoint_last.pt"
    fresh = [*run, "--save-dir", tmp_path / "fresh"]
    assert status("train", *fresh, "--finetune-from-model", last) == 0
    assert updates(tmp_path / "fresh" / last.name) == 40  # another training has a count of its own
    assert status("train", *run) == 0
    assert updates(last) == 40
    content = last.read_bytes()
    assert status("train", *run) == 0
    assert last.read_bytes() == content


def test_another_metric_chooses_the_best_checkpoint_anew(flags, tmp_path):
    run = flags("plain", validate=True)
    run += ["--save-interval-updates", 0, "--patience", 9, "--save-dir", tmp_path]
    best = tmp_path / "checkpoint_best.pt"
    assert status("train", *run, "--max-epoch", 1) == 0
    assert updates(best) == 10
    by = ["--eval-exact-match", "--best-checkpoint-metric", "exact_match", "--max-epoch", 2]
    assert status("train", *run, *by) == 0  # no exact match is as high as the loss
    assert updates(best) == 20
    assert load(best)["extra_state"]["patience"] == {"best": 0, "num_runs": 0}


def test_stage_1_counts_neither_for_patience_nor_for_the_best_checkpoint(flags, tmp_path):
    """Nothing is learned: the second epoch of either stage is no better than the first."""
    run = flags("one-pass", validate=True)
    run += ["--lr", 1e-30, "--weight-decay", 0, "--patience", 1, "--prototype-stage1-epochs", 3]
    run += ["--save-interval-updates", 0, "--max-update", 90, "--save-dir", tmp_path]
    assert status("train", *run) == 0
    assert updates(tmp_path / "checkpoint_last.pt") == 50
    assert len(load(tmp_path / "checkpoint_best.pt")["model"]["encoder.prototypes.counts"])


def test_a_run_whose_time_is_over_trains_no_further(flags, tmp_path):
    run = flags("plain", validate=True)
    run += ["--stop-time-hours", 1e-6, "--save-interval-updates", 0, "--save-dir", tmp_path]
    assert status("train", *run) == 0
    last = tmp_path / "checkpoint_last.pt"
    ended, content = updates(last), last.read_bytes()
    assert 0 < ended < 24
    assert status("train", *run) == 0
    assert last.read_bytes() == content


def test_without_the_optimizers_state_no_run_goes_on(flags, tmp_path, capfd):
    run = [*flags("plain"), "--no-save-optimizer-state", "--save-dir", tmp_path]
    assert status("train", *run) == 0
    last = tmp_path / "checkpoint_last.pt"
    content = last.read_bytes()
    assert status("train", *run) == 1
    assert "the checkpoint has no optimizer's state to go on with" in capfd.readouterr().err
    assert last.read_bytes() == content
    tuned = [*run[:-1], tmp_path / "tuned", "--finetune-from-model", last]
    assert status("train", *tuned) == 0
    assert status("train", *tuned) == 1
    assert status("train", *run, "--reset-optimizer", "--max-update", 2) == 0


def test_what_a_run_continues_once_is_reset_once(flags, tmp_path):
    plain = flags("plain")
    assert status("train", *plain, "--max-update", 4, "--save-dir", tmp_path / "plain") == 0
    resets = [f"--reset-{state}" for state in ("optimizer", "lr-scheduler", "dataloader", "meters")]
    run = [*plain, "--continue-once", tmp_path / "plain/checkpoint_last.pt", *resets, "--save-dir"]
    run += [tmp_path / "more", "--max-update"]
    for updated in (3, 5):
        assert status("train", *run, updated) == 0
        sessions = json.loads((tmp_path / "more/RUN.json").read_text())["sessions"]
        assert updates(tmp_path / "more/checkpoint_last.pt") == updated
    assert [session["from_update"] for session in sessions] == [0, 3]


def test_validation_on_the_training_set_counts_for_no_epoch(flags, tmp_path):
    run = flags("plain", validate=True)
    run += ["--valid-subset", "valid,train", "--train-batches", "sorted"]
    run += ["--max-epoch", 2, "--max-update", 100]
    assert status("train", *run, "--save-dir", tmp_path) == 0
    assert updates(tmp_path / "checkpoint_last.pt") == 20


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_finished_run_trains_no_further(workers, flags, tmp_path):
    run = [*flags("plain"), "--save-dir", tmp_path, "--log-file", tmp_path / "log"]
    assert set(statuses(start_workers(workers, *run))) == {0}
    checkpoints = {path: path.read_bytes() for path in tmp_path.glob("*.pt")}
    assert set(statuses(start_workers(workers, *run))) == {0}
    assert checkpoints == {path: path.read_bytes() for path in tmp_path.glob("*.pt")}
    assert set(statuses(start_workers(workers, *run, "--max-update", 26))) == {0}
    assert updates(tmp_path / "checkpoint_last.pt") == 26


AFTER_SOME_TIME = """
import pathlib, signal, time
from multiprocessing.util import Finalize
import compgen_fairseq

# the kernel ends the process when it has used so many seconds of a CPU, as SIGKILL would
signal.setitimer(signal.ITIMER_PROF, {seconds!r})
write = pathlib.Path({record!r}).write_text
Finalize(None, lambda: write(str(time.process_time())), exitpriority=1)
"""


@pytest.mark.long
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_run_that_is_killed_at_random_moments(architecture, flags, tmp_path):
    """Of a CPU's time, so that a busy machine changes nothing; some fall into writing a file."""
    run, length = [*flags(architecture), "--save-interval-updates", 2, "--save-dir"], 0.0
    user_dir = tmp_path / "after_some_time"
    user_dir.mkdir()

    def train(folder: str, seconds: float) -> int | None:
        text = AFTER_SOME_TIME.format(seconds=seconds, record=str(tmp_path / "length"))
        (user_dir / "__init__.py").write_text(text)
        return status("train", *run, tmp_path / folder, "--user-dir", user_dir)

    assert train("whole", 0) == 0
    length = float((tmp_path / "length").read_text())
    moments = [random.uniform(0.3, 0.9) * length for _ in range(4)]
    found = [train("killed", moment) for moment in moments]
    print(architecture, "after", *(f"{moment:.2f} s" for moment in moments), "ended with", *found)
    assert found[0] == -signal.SIGPROF and set(found) <= {0, -signal.SIGPROF}
    assert train("killed", 0) == 0
    assert_same(tmp_path / "whole", tmp_path / "killed")
