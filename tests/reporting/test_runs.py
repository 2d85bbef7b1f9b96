"""What is read of a run's folder, and what is refused."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from logs import write_log

from compgen.data.checksums import sha256
from compgen.reporting.flags import flags
from compgen.reporting.results import result, setting
from compgen.reporting.runs import (
    differences,
    fingerprint,
    named,
    read_run,
    read_runs,
    settings,
    short,
)

EXACT = {"metric": "exact_match", "score": 50.0, "correct": 1, "total": 2, "signature": "m:e|n:2"}


def session(minutes: float = 2, **changes: object) -> dict[str, Any]:
    """One start of a training; ``changes`` replace some of its options."""
    sections: dict[str, dict[str, object]] = {
        "common": {"_name": None, "seed": 1, "cpu": True, "fp16": False, "log_interval": 100},
        "distributed_training": {"distributed_world_size": 1, "distributed_port": -1},
        "dataset": {"max_tokens": 1024, "batch_size": None, "num_workers": 1},
        "optimization": {"max_update": 90, "update_freq": [1], "lr": [0.003]},
        "checkpoint": {
            **{"save_dir": "runs/sal.1", "best_checkpoint_metric": "exact_match"},
            **{"finetune_from_model": None, "keep_best_checkpoints": -1, "patience": -1},
            **{"restore_file": "checkpoint_last.pt", "continue_once": None},
        },
        "generation": {"beam": 5},
        "model": {
            **{"_name": "sq_transformer", "dropout": 0.3, "attention": "sal"},
            **{"encoder_layers": 2, "quantizer": None},
        },
        "task": {"_name": "compgen_translation", "data": "data-bin/none", "prototype_table": None},
        "ema": {"store_ema": False},
        "criterion": {"_name": "structural_cross_entropy"},
    }
    for options in sections.values():
        options.update({name: value for name, value in changes.items() if name in options})
    machine = {"cpu": "a CPU", "cores": 2, "threads": "1", "gpus": [], "processes": 1}
    command = f"fairseq-train --dropout {changes.get('dropout', 0.3)}"
    return {"minutes": minutes, "command": command, "machine": machine, "settings": sections}


def record(*sessions: dict[str, object]) -> str:
    return json.dumps({"updates": 90, "sessions": sessions or [session()]})


@pytest.fixture
def make(tmp_path):
    """``make("sal.1", session())``: the folder of an evaluated run."""

    def make(name: str = "sal.1", *sessions: dict[str, object]) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "RUN.json").write_text(record(*sessions))
        (folder / "PREPARED.json").write_text('{"sha256": {"dict.src.txt": "0a"}}')
        (folder / "test.best.json").write_text(json.dumps(EXACT))
        return folder

    return make


def test_the_record_of_a_training(tiny_data, tiny_model, make):
    folder = make("plain.1")
    shutil.copy(tiny_model / "RUN.json", folder)
    run = read_run(folder)
    assert (run.label, run.seed) == ("plain", 1)
    log = (tiny_model / "train.log").read_text()
    assert run.updates == max(map(int, re.findall(r"num_updates[ =](\d+)", log))) > 8
    assert 0 < run.minutes < 60 and run.record["sessions"][0]["cpu_minutes"] > 0
    assert f"params: {run.record['parameters']:,} " in log and f" {tiny_data} " in run.command
    expected = {
        **{"optimization.max_epoch": 8, "optimization.lr": [0.01], "dataset.max_tokens": 200},
        **{"task.train_batches": "mixed", "model._name": "transformer"},
        "optimizer._name": "adam",
        **{"model.encoder_embed_dim": 16, "checkpoint.best_checkpoint_metric": "exact_match"},
    }
    assert {name: run.settings.get(name) for name in expected} == expected
    assert "model.seed" not in run.settings  # an old kind of model has every option as its own
    options = {name.rpartition(".")[2] for name in run.settings}
    unlisted = "seed save_dir user_dir cpu log_format beam num_workers"
    assert not options & set(unlisted.split())


def test_what_a_result_is_made_of_belongs_together(make):
    """The end of the training, its checkpoint, the scores and the log that they were counted on."""
    one = session() | {"cpu_minutes": 1, "from_update": 0, "revision": "0a", "versions": {}}
    one["settings"]["dataset"]["valid_subset"] = "valid"
    one["settings"]["checkpoint"]["maximize_best_checkpoint_metric"] = True
    folder = make()
    log = folder / "train.log"
    run = {"updates": 80, "parameters": 7, "sessions": [one]}
    (folder / "RUN.json").write_text(json.dumps(run))
    for text in ("", "| done training in 3 seconds\n| begin training epoch 2\n"):
        log.write_text(f"| begin training epoch 1\n{text}")
        with pytest.raises(ValueError, match="has done 80 of 90 updates: it is not finished"):
            result(folder)
    log.write_text(log.read_text() + "early stop since …\n| done training in 3 seconds\n")
    with pytest.raises(ValueError, match="has exact_match of one checkpoint only"):
        result(folder)
    shutil.copy(folder / "test.best.json", folder / "test.last.json")
    checkpoint = folder / "checkpoint_best.pt"
    checkpoint.touch()
    os.utime(checkpoint, (1, 1))
    write_log(folder / "test.best.log", ["jump", "run"], ["JUMP", "RUN"], ["JUMP", "RUN"])
    for score in (50.0, 99.98):
        (folder / "test.best.json").write_text(json.dumps(EXACT | {"score": score}))
        with pytest.raises(ValueError, match=f"says {score:.2f} but the log beside it"):
            result(folder)
    (folder / "test.best.log").unlink()
    assert result(folder)["updates"] == 80
    for began, minutes in ((0, (6.5, 3)), (7, (None, None))):  # before it was recorded
        sessions = [one | {"from_update": began}, one | {"minutes": 4.5, "cpu_minutes": 2}]
        (folder / "RUN.json").write_text(json.dumps(run | {"sessions": sessions}))
        found = result(folder)
        assert (found["minutes"], found["cpu_minutes"]) == minutes
        assert found["settings"] == fingerprint(flags(one["command"]))
        assert read_run(folder).minutes == minutes[0]
    os.utime(checkpoint, (2, 2))
    log = folder / "other.best.log"  # decoded before the checkpoint was replaced, scored after it
    log.touch()
    for old in (log, folder / "test.best.json"):
        os.utime(old, (1, 1))
        with pytest.raises(ValueError, match=f"{old.name} is older than .*: evaluate the run"):
            result(folder)
        os.utime(old)


def test_the_setting_of_a_result():
    """Of what no flag tells as well: the GPUs of one machine, and the file of Hydra."""
    flagged = [session(distributed_world_size=n, update_freq=[3 - n]) for n in (1, 2)]
    for one in flagged:
        one["command"] += " --seed 1"
    assert setting(flagged[0]) == setting(session(seed=2)) != setting(flagged[1])
    typed = flagged[1] | {"command": flagged[1]["command"] + " --distributed-world-size 2"}
    assert setting(typed) == setting(flagged[1])
    hydra = [session(seed=seed, lr=[lr]) for seed, lr in ((1, 0.1), (2, 0.1), (1, 0.2))]
    for one in hydra:
        one["command"] = f"fairseq-hydra-train common.seed={one['settings']['common']['seed']}"
    assert setting(hydra[0]) == setting(hydra[1]) != setting(hydra[2])


def test_a_log_names_its_checkpoint(make):
    """Whatever its time, which is that of a copy; a score is no older than its checkpoint."""
    folder = make("sal.1", session())
    checkpoint, log = folder / "checkpoint_best.pt", folder / "test.best.log"
    checkpoint.write_text("1")
    log.write_text(f"data 1 2, checkpoint {sha256(checkpoint)[:16]}, flags --beam 1\nS-0\ta\n")
    os.utime(log, (1, 1))
    os.utime(checkpoint, (2, 2))
    assert read_run(folder).settings["decoding"] == "--beam 1"
    checkpoint.write_text("2")
    os.utime(checkpoint, (0, 0))
    with pytest.raises(ValueError, match=r"best.log is of another checkpoint_best\.pt: eval"):
        read_run(folder)
    log.write_text(f"data 1 2, checkpoint {sha256(checkpoint)[:16]}, flags --beam 1\nS-0\ta\n")
    os.utime(checkpoint)
    os.utime(folder / "test.best.json", (1, 1))  # an evaluation that ended after decoding
    with pytest.raises(ValueError, match=r"best\.json is older than .*: evaluate the run"):
        read_run(folder)


def test_seeds_paths_logging_and_devices_are_no_settings(make):
    one = read_run(make())
    changes = {"seed": 22, "save_dir": "x", "cpu": False, "log_interval": 1, "num_workers": 8}
    other = read_run(make("sal.22", session(7, **changes, distributed_port=99, beam=1)))
    assert (other.seed, other.label) == (22, "sal")
    assert differences(one.settings, other.settings) == []
    assert one.settings["model.attention"] == "sal" and one.settings["model.quantizer"] is None


@pytest.mark.parametrize(
    "change",
    [
        *({"dropout": 0.1}, {"attention": "srl"}, {"quantizer": "vq"}),
        *({"max_update": 91}, {"lr": [0.1]}, {"fp16": True}, {"best_checkpoint_metric": "bleu"}),
        {"finetune_from_model": "runs/stage1.1/checkpoint_best.pt"},
        {"restore_file": "runs/stage1.1/checkpoint_last.pt"},
        {"continue_once": "runs/table.1.pt"},
        *({"patience": 5}, {"store_ema": True}, {"prototype_table": "runs/table.1.pt"}),
    ],
)
def test_what_can_change_a_score_is_a_setting(change, make):
    one, other = read_run(make()), read_run(make("b", session(**change)))
    assert list(map(short, differences(one.settings, other.settings))) == list(change)


def test_workers_count_like_accumulated_steps(make):
    accumulated = read_run(make("a", session(update_freq=[4])))
    workers = read_run(make("b", session(distributed_world_size=4)))
    both = read_run(make("c", session(distributed_world_size=2, update_freq=[2])))
    assert accumulated.settings == workers.settings == both.settings
    assert accumulated.settings["optimization.update_freq"] == [4]


def test_the_model_a_run_started_from_may_lie_elsewhere(make):
    for option in ("finetune_from_model", "restore_file", "continue_once", "prototype_table"):
        sessions = [session(**{option: f"a.{seed}/c.pt"}) for seed in (1, 2)]
        runs = [read_run(make(f"{option}.{s}", one)) for s, one in enumerate(sessions)]
        assert runs[0].settings == runs[1].settings


@pytest.mark.parametrize(
    ("folder", "seed", "label"),
    [
        *(("sal.1", 1, "sal"), ("sal-brown-2", 2, "sal-brown"), ("sal_seed3", 3, "sal")),
        *(("sal-16", 1, "sal-16"), ("sal.11", 1, "sal.11"), ("sal", 1, "sal")),
        *(("sal/seed1", 1, "sal"), ("sal/7", 7, "sal"), ("lr=1e-2", 2, "lr=1e-2")),
        *(("lr=1e-2.2", 2, "lr=1e-2"), ("large-2", 2, "large")),
    ],
)
def test_the_label_is_the_folder_without_the_seed(folder, seed, label, make):
    assert read_run(make(folder, session(seed=seed))).label == label


def test_the_data_are_known_by_their_checksums(make, tmp_path):
    copied = read_run(make("a"))
    data = tmp_path / "data-bin"
    data.mkdir()
    log = session(data=str(data))
    folder = make("b", log)
    (data / "PREPARED.json").write_text('{"sha256": {"dict.src.txt": "0b"}}')
    assert read_run(folder).settings["data"] == copied.settings["data"]  # the run's copy is first
    (folder / "PREPARED.json").unlink()
    (run,) = read_runs(folder)
    assert run.settings["data"] != copied.settings["data"]
    (data / "PREPARED.json").write_text('{"versions": {}, "sha256": {"dict.src.txt": "0a"}}')
    assert read_run(folder).settings["data"] == copied.settings["data"]


def test_runs_that_are_linked_are_read_once_and_by_their_own_names(make, tmp_path):
    runs, elsewhere = tmp_path / "runs", make("job123", session(seed=2))
    make("runs/sal.1", session(seed=1))
    (runs / "again").symlink_to(runs)
    (runs / "latest").symlink_to(runs / "sal.1")
    (runs / "sal.2").symlink_to(elsewhere)
    found = read_runs(runs)
    assert [(run.path.name, run.label, run.seed) for run in found] == [
        ("sal.1", "sal", 1),
        ("sal.2", "sal", 2),
    ]


def test_the_seed_of_a_task_is_no_setting(make):
    """fairseq's sentence_prediction has one."""
    sessions = [session(seed=seed) for seed in (1, 2)]
    for one in sessions:
        one["settings"]["task"]["seed"] = one["settings"]["common"]["seed"]
    runs = [read_run(make(f"{n}", one)) for n, one in enumerate(sessions)]
    assert runs[0].settings == runs[1].settings


def test_the_order_of_names_is_no_part_of_a_fingerprint():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1}) != fingerprint({"a": 1})


def test_a_folder_of_runs_is_its_runs(make):
    runs = [make("sal.1", session(seed=1)), make("sal.2", session(seed=2))]
    assert [run.path for run in read_runs(runs[0].parent)] == runs
    alone = runs[0].parent / "sal.3" / "RESULT.json"
    alone.parent.mkdir()
    alone.touch()
    with pytest.raises(ValueError, match=r"sal\.3/RESULT\.json has no run beside it"):
        read_runs(runs[0].parent)


def test_a_resumed_run_is_one_run(make):
    run = read_run(make("sal.1", session(40), session(50)))
    assert (run.updates, run.minutes) == (90, 90)
    assert run.command == "fairseq-train --dropout 0.3"
    assert run.machine == "2 cores of a CPU, OMP_NUM_THREADS 1"


def test_a_run_that_was_resumed_with_other_settings_is_refused(make):
    folder = make("sal.1", session(), session(dropout=0.1))
    said = r"sal\.1 was resumed with another dropout \(0\.3, then 0\.1\); .* dropout$"
    with pytest.raises(ValueError, match=said):
        read_run(folder)
    run = read_run(folder, frozenset({"dropout"}))
    assert run.settings["model.dropout"] == 0.1
    assert run.command == "fairseq-train --dropout 0.3; then fairseq-train --dropout 0.1"
    with pytest.raises(ValueError, match=r"another dropout \(0\.1, then 0\.3\)"):
        read_run(make("sal.2", session(), session(dropout=0.1), session()))
    before, after = session(), session()
    del before["settings"]["model"]["dropout"]  # an option that a new version brought
    assert read_run(make("sal.3", before, after)).settings["model.dropout"] == 0.3
    assert "model.dropout" not in read_run(make("sal.4", after, before)).settings  # or dropped


def test_every_number_of_a_score_file_has_its_name(make):
    folder = make()
    files = {
        "test1.best": {**EXACT, "score": 99.0},
        "cter.last": {"metric": "cter", "instance": 20, "aggregate": 50.5, "signature": "c"},
        "cogs.best": {"metric": "cogs", "score": 80, "lexical": 90, "structural": None, "macro": 1},
        "cogs.last": {"metric": "cogs", "score": 70, "structural": 60},
        "bleu.last": {"metric": "bleu", "score": 60.5, "brevity_penalty": 1.0, "signature": "b"},
        "codes.best": {"source": [["a"]]},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    scores = read_run(folder).scores
    assert {name: score.value for name, score in scores.items()} == {
        ("exact_match", "best"): 50,
        ("exact_match (test1)", "best"): 99,
        ("cogs", "best"): 80,
        ("cogs lexical", "best"): 90,
        ("cogs macro", "best"): 1,
        ("cogs", "last"): 70,
        ("cogs structural", "last"): 60,
        ("bleu", "last"): 60.5,
        ("cter instance", "last"): 20,
        ("cter aggregate", "last"): 50.5,
    }
    assert {name.metric for name in scores if name.lower_is_better} == {"cter"}
    numbers = "score lexical structural macro instance aggregate".split()
    assert {name.number for name in scores} == set(numbers)
    assert scores["cter aggregate", "last"].signature == "c"
    (folder / "exact_match.best.json").write_text(json.dumps(EXACT))
    with pytest.raises(ValueError, match=r"exact_match\.best.* and .*test\.best.* both have exact"):
        read_run(folder)


def test_settings_are_named_like_flags():
    assert named("optimization.max_update", frozenset({"--max-update"}))
    assert named("model._name", frozenset({"dropout", "model"})) and short("data") == "data"
    assert not named("optimization.max_update", frozenset({"update"}))


def configuration(section, option, value):
    base = {"distributed_training": {"distributed_world_size": 1}}
    base |= {"optimization": {"update_freq": [1]}, "common": {}}
    base.setdefault(section, {})
    return {**base, section: {**base[section], option: value}}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "common.bf16",
            "common.amp",
            "common.memory_efficient_fp16",
            "lr_scheduler.warmup_updates",
        ),
        *("optimizer.weight_decay", "bpe._name", "tokenizer._name", "task.train_batches"),
        *("checkpoint.maximize_best_checkpoint_metric", "dataset.batch_size"),
        *("criterion.label_smoothing", "ema.store_ema", "optimization.clip_norm"),
    ],
)
def test_every_option_that_changes_a_model_is_a_setting(name):
    one, other = (settings(configuration(*name.split("."), value)) for value in (1, 2))
    assert differences(one, other) == [name]
