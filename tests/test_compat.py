"""What compat.py changes in fairseq: flags, checkpoints, errors."""

import argparse
import collections
import contextlib
import functools
import json
import logging
import os
import sys
from unittest import mock

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data import BucketPadLengthDataset, Dictionary, ListDataset
from fairseq.dataclass.configs import EMAConfig, FairseqConfig
from fairseq.dataclass.initialize import add_defaults
from fairseq.models.ema import EMA
from fairseq.optim.amp_optimizer import AMPOptimizer
from omegaconf import OmegaConf
from sq_models import build

from compgen.data import scan
from compgen_fairseq import compat, flags, records
from compgen_fairseq.models.known_dictionary import KnownDictionary


def parse(words, command="training", **kwargs):
    """What fairseq's command makes of its flags."""
    parser = getattr(options, f"get_{command}_parser")()
    return options.parse_args_and_arch(parser, words.split(), **kwargs)


def amp(parameter, **common):
    """An optimizer of ``--amp`` around plain SGD."""
    sgd = {"_name": "sgd", "lr": [1.0], "momentum": 0, "weight_decay": 0}
    cfg = OmegaConf.create(OmegaConf.to_container(OmegaConf.structured(FairseqConfig())))
    cfg = OmegaConf.merge(cfg, {"common": common, "optimizer": sgd})
    return AMPOptimizer.build_optimizer(cfg, [parameter])


def test_amp_divides_by_the_scale_once_and_keeps_it():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer, resumed = amp(parameter), amp(parameter)
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)  # without CUDA
    resumed._grad_scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=7)
    for steps in (1, 2):
        optimizer.zero_grad()
        optimizer.backward(3 * parameter.sum())
        assert optimizer.clip_grad_norm(0).item() == 3
        optimizer.step()
        assert parameter.item() == -3 * steps
    resumed.load_state_dict(optimizer.state_dict())
    assert (resumed.scaler.get_scale(), resumed.scaler.get_growth_interval()) == (128, 7)
    resumed.load_state_dict({**optimizer.state_dict(), "scaler": {}})  # of a machine without GPUs


@pytest.mark.parametrize(
    ("given", "first", "window"),
    [
        ({}, 128, None),
        ({"fp16_init_scale": 4}, 4, None),
        ({"amp_init_scale": 8, "amp_scale_window": 500}, 8, 500),
    ],
)
def test_amp_has_the_scale_that_its_flags_name(given, first, window):
    with mock.patch("torch.amp.GradScaler") as made:
        amp(torch.nn.Parameter(torch.zeros(1)), **given)
    told = made.call_args.kwargs
    assert (told["init_scale"], told.get("growth_interval")) == (first, window)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--arch transformer --fp16 --cpu", "--fp16 needs a GPU"),
        ("--arch sq_transformer --mmi-cross-entropy 0", "--mmi-cross-entropy 0 leaves parameters"),
        ("--arch sq_transformer --attention plain --mmi-cross-entropy 0", ""),
        ("--arch sq_transformer", "--criterion cross_entropy leaves parameters"),
        ("--arch sq_transformer --find-unused-parameters", ""),
        (
            "--arch sq_transformer --mmi-cross-entropy 0 --find-unused-parameters",
            "--mmi-cross-entropy 0 leaves parameters",
        ),
        ("--arch sq_transformer --attention plain", ""),
        ("--arch transformer --mmi-cross-entropy 0", ""),
        ("--arch cat --sufficiency 0", "--sufficiency 0 leaves parameters without gradients"),
        ("--arch cat --ablation sufficiency", "--ablation sufficiency .*--ddp-backend legacy_ddp"),
        ("--arch cat --sufficiency 0 --composition none", ""),
        ("--arch cat --ablation sufficiency --composition none", "leaves nothing to ablate"),
        ("--arch cat --tokens-per-sample 129", "must be at most --max-positions, 128"),
        ("--arch cat_transformer --representation cont", "cont without --reconstruction leaves"),
        ("--arch cat_transformer", ""),
        ("--arch sq_transformer --mmi-entropy 1 --encoder-code-prediction 0", ""),
        (
            "--arch sq_transformer --mmi-entropy 1 --attention sal --quantizer vq "
            "--encoder-code-prediction 0",
            "--encoder-code-prediction 0 leaves parameters",
        ),
        ("--arch sq_transformer --code-classes brown", "needs --task compgen_translation"),
        ("--arch cat --freeze-backbone", "--freeze-backbone leaves pre-training nothing"),
    ],
)
def test_what_a_gpu_or_several_cannot_train(words, reason):
    task = "cat_pretraining" if "--arch cat " in words else "translation"
    trained = "structural_cross_entropy" if "--mmi" in words else "cross_entropy"
    trained = "cat_pretraining" if "--arch cat " in words else trained
    refused = pytest.raises(ValueError, match=reason) if reason else contextlib.nullcontext()
    devices = mock.patch("torch.cuda.device_count", return_value=2)
    with refused, devices, mock.patch("torch.cuda.is_available", return_value=True):
        parse(f"data --task {task} --criterion {trained} {words}")


def test_a_criterion_without_the_models_own_terms_is_warned_of(caplog):
    parse("data --arch cat_transformer --criterion cross_entropy")
    assert "trains none of cat_transformer's own terms" in caplog.text


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("--validate-interval-updates 6 --save-interval-updates 3", ""),
        (
            "--validate-interval-updates 6 --save-interval-updates 4",
            "only a checkpoint that is saved",
        ),
        ("--validate-interval-updates 6", "without --save-interval-updates 6"),
        ("--encoder-embed-dim 8 --decoder-embed-dim 16", "8, but --decoder-embed-dim 16"),
        ("--encoder-embed-dim 8", ""),
        ("--lr-scheduler polynomial_decay --total-num-update 9 --max-update 9", ""),
        (
            "--lr-scheduler polynomial_decay --total-num-update 9 --max-update 10",
            "ends at update 9 (--total-num-update), the training at 10",
        ),
        (
            "--lr-scheduler inverse_sqrt --warmup-updates 9 --max-update 9",
            "still rises when the training ends: --warmup-updates 9, --max-update 9",
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_of(words, warning, caplog):
    parse(f"data --arch transformer --encoder-attention-heads 4 {words}")
    assert warning in caplog.text and bool(caplog.text) == bool(warning)


@pytest.mark.parametrize(
    ("metric", "highest"),
    [
        *(("loss", False), ("nll_loss", False), ("ppl_mix", False), ("cter_aggregate", False)),
        *(("nsp_mix", False), ("mlm_mix", False), ("pearson", True), ("nsp_accuracy_mix", True)),
        *(("bleu", True), ("exact_match", True), ("accuracy", True)),
    ],
)
def test_whether_the_highest_value_is_the_best_goes_by_the_metric(metric, highest, caplog):
    caplog.set_level(logging.INFO)
    for told in (highest, not highest):
        caplog.clear()
        chosen = argparse.Namespace(
            best_checkpoint_metric=metric, maximize_best_checkpoint_metric=told
        )
        flags.choose_the_best(chosen)
        assert chosen.maximize_best_checkpoint_metric == highest
        said = f"{metric}: the {'highest' if highest else 'lowest'} is the best" in caplog.text
        assert said == (told != highest)


@pytest.mark.parametrize("told", [True, False])
def test_an_unknown_metric_is_what_the_flag_says(told):
    chosen = argparse.Namespace(best_checkpoint_metric="own", maximize_best_checkpoint_metric=told)
    flags.choose_the_best(chosen)
    assert chosen.maximize_best_checkpoint_metric == told


@pytest.mark.parametrize(("words", "processes"), [("--cpu", 1), ("", 4)])
def test_a_training_without_the_gpus_is_one_process(words, processes):
    with mock.patch("torch.cuda.device_count", return_value=4):
        args = parse(f"data --arch transformer {words}")
    assert args.distributed_world_size == processes


def test_one_of_torchruns_processes_stays_one_of_them(monkeypatch):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    args = parse("data --arch transformer --cpu --distributed-world-size 2")
    assert args.distributed_world_size == 2
    with pytest.raises(ValueError, match="2 processes were started, and each would train alone"):
        parse("data --arch transformer --cpu")


def test_a_parser_that_leaves_out_defaults():
    words = "data --task translation --path x --distributed-world-size 2"
    assert parse(words, "validation", suppress_defaults=True).distributed_world_size == 2


@pytest.mark.parametrize(
    "words",
    [
        'compgen_translation --eval-exact-match-args {"lenpen":1,"sampling":false}',
        'translation_lev --eval-bleu-args {"iter_decode_max_iter":9}',  # as another task decodes
    ],
)
def test_how_validation_may_decode(words):
    parse(f"data --arch transformer --task {words}")


def test_what_a_training_began_from_may_be_gone_when_it_resumes(tmp_path):
    (tmp_path / "checkpoint_last.pt").touch()
    parse(f"data --arch transformer --finetune-from-model /none.pt --save-dir {tmp_path}")


def test_checkpoints_of_negative_scores_are_found(tmp_path):
    for score in ("-1.500", "-0.2500", "0.1250"):
        (tmp_path / f"checkpoint.best_loss_{score}.pt").touch()
    (tmp_path / "checkpoint3.pt").touch()
    find = checkpoint_utils.checkpoint_paths
    best = find(str(tmp_path), pattern=r"checkpoint\.best_loss_(\d+\.?\d*)\.pt")
    assert [path.rpartition("_")[2] for path in best] == ["0.1250.pt", "-0.2500.pt", "-1.500.pt"]
    assert find(str(tmp_path)) == [str(tmp_path / "checkpoint3.pt")]


@pytest.mark.parametrize(("command", "missing"), [("training", "--arch"), ("validation", "--task")])
def test_what_is_not_said_is_named(command, missing, capsys):
    with pytest.raises(ValueError, match=f"say {missing}: "):
        parse("data", command)
    with pytest.raises(SystemExit):
        parse("--help", command)
    assert missing in capsys.readouterr().out


def test_folders_that_were_there_are_not_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(compat, "NEW_FOLDERS", made := [])
    for folder in (tmp_path, tmp_path / "new"):
        parse(f"data --arch transformer --save-dir {folder}")
    assert made == [str(tmp_path / "new")]


def test_buckets_of_lengths():
    texts = ListDataset([torch.ones(n, dtype=torch.long) for n in range(1, 12)])
    dataset = BucketPadLengthDataset(texts, np.arange(1, 12), 2, pad_idx=1, left_pad=False)
    assert dataset.buckets.tolist() == [6, 11]
    assert [len(dataset[i]) for i in range(11)] == [6] * 6 + [11] * 5


@pytest.mark.parametrize("ema_fp32", [False, True])
def test_every_weight_is_averaged_once_an_update(ema_fp32):
    """Also a tied embedding, which has two names."""
    model = build("sal")
    ema = EMA(model, EMAConfig(ema_decay=0.75, ema_fp32=ema_fp32))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.data += 1
    ema.step(model, 1)
    average = ema.get_model().state_dict()
    for name, _ in model.named_parameters(remove_duplicate=False):
        torch.testing.assert_close(average[name], before[name] + 0.25)


def save_and_load(value, tmp_path):
    torch.save({"value": value}, tmp_path / "checkpoint.pt")
    return torch.load(tmp_path / "checkpoint.pt")["value"]


def test_what_fairseq_stores_can_be_loaded(tmp_path):
    options = argparse.Namespace(arch="transformer", dropout=0.3, betas=(0.9, 0.98))
    assert save_and_load(options, tmp_path) == options
    for counts in (np.arange(4), np.arange(4) / 3):
        np.testing.assert_array_equal(save_and_load(counts, tmp_path), counts)


@pytest.mark.parametrize(
    "foreign",
    [os.system, eval, getattr, functools.partial(print), collections.deque([1]), np.array([print])],
    ids=repr,
)
def test_anything_else_in_a_checkpoint_is_refused(foreign, tmp_path):
    with pytest.raises(Exception, match="Weights only load failed"):
        save_and_load(foreign, tmp_path)


@pytest.fixture
def hook(monkeypatch):
    """What prints uncaught errors in a command of fairseq."""
    monkeypatch.setattr("sys.excepthook", lambda *_: print("as ever", file=sys.stderr))
    monkeypatch.setattr("sys.argv", ["/bin/fairseq-train"])
    monkeypatch.delenv("COMPGEN_TRACEBACK", raising=False)
    compat.say_errors_in_sentences()
    return lambda error: sys.excepthook(type(error), error, error.__traceback__)


def raised(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def test_what_this_package_refuses_ends_in_a_sentence(hook, capsys, tmp_path):
    file = tmp_path / "tasks.txt"
    file.write_text("jump\n")
    hook(raised(scan.read_official, file))
    reason = "line 1 is not of the form 'IN: ... OUT: ...'."
    assert capsys.readouterr().err == f"fairseq-train: {file}, {reason}\n"


def test_what_this_package_refuses_is_told_where_fairseq_says_something_else(hook, capsys):
    def load():
        try:
            kept = {"fingerprint": torch.tensor(1)}
            KnownDictionary(Dictionary())._load_from_state_dict(kept, "")
        except Exception:  # as fairseq's trainer does
            raise Exception("please ensure that the architectures match.")  # noqa: B904

    hook(raised(load))
    assert "was trained with a dictionary of other words" in capsys.readouterr().err


def test_what_differs_in_weights_is_told(hook, capsys):
    def load():
        try:
            own = {**torch.nn.Linear(2, 4).state_dict(), "own": torch.zeros(1)}
            torch.nn.Linear(2, 3).load_state_dict(own)
        except Exception:
            raise Exception("please ensure that the architectures match.")  # noqa: B904

    hook(raised(load))
    assert "architectures match: size mismatch for weight: copying" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, told",
    [
        (raised(int, "x"), "invalid literal for int() with base 10: 'x' (ValueError in "),
        (raised(json.loads, "{"), "(JSONDecodeError in json/decoder.py:"),
        (raised({}.__getitem__, "x"), "KeyError: 'x' (KeyError in "),
        (raised(open, "/none"), "/none: No such file or directory"),
        (AssertionError(), "AssertionError (AssertionError in no known line; COMPGEN_TRACEBACK=1"),
        (raised(exec, "assert 0", {"__name__": "fairseq"}), "AssertionError (AssertionError in "),
        (raised(exec, "assert 0, 'no x'", {"__name__": "fairseq"}), ": no x\n"),
        (raised(exec, "raise ValueError('no x')", {"__spec__": compat.__spec__}), ": no x\n"),
        (raised(exec, "open('/none')", {"__spec__": compat.__spec__}), ": /none: No such file"),
        (FileNotFoundError("Dataset not found: x"), ": Dataset not found: x\n"),
        (RuntimeError("many words " * 90), "many words many w ... (RuntimeError in "),
    ],
)
def test_other_errors_end_in_a_sentence_with_their_place(hook, capsys, error, told):
    hook(error)
    said = capsys.readouterr().err
    assert said.startswith("fairseq-train: ") and told in said and said.count("\n") == 1


@pytest.mark.parametrize(("answered", "kind"), [(False, "ValueError"), (True, "FileNotFoundError")])
def test_what_a_worker_died_of_is_told(hook, capsys, answered, kind):
    trace = 'Traceback (most recent call last):\n  File "torch/spawn.py", line 1, in wrap\n'
    trace += '  File "{}", line 3, in check\n{}\n'
    died = trace.format(compat.__file__, f"{kind}: --lr is too high")
    if answered:
        died += "\nDuring handling of the above exception, another exception occurred:\n\n"
        died += trace.format("fairseq/trainer.py", "Exception: Cannot load model parameters")
    hook(RuntimeError(f"\n\n-- Process 1 terminated:\n{died}"))
    assert capsys.readouterr().err == "fairseq-train: --lr is too high\n"
    hook(RuntimeError(trace.format("fairseq/trainer.py", "errors.ValueError: not ours")))
    assert "not ours (ValueError in fairseq/trainer.py:3; " in capsys.readouterr().err


def test_an_interrupt_is_shown_as_ever(hook, capsys):
    hook(KeyboardInterrupt())
    assert capsys.readouterr().err == "as ever\n"


@pytest.mark.parametrize(
    "command, wanted", [("/bin/fairseq-train", "1"), ("script.py", ""), ("/bin/pytest", "")]
)
def test_tracebacks_can_be_had_and_other_programs_are_left_alone(monkeypatch, command, wanted):
    monkeypatch.setattr("sys.argv", [command])
    monkeypatch.setenv("COMPGEN_TRACEBACK", wanted)
    before = sys.excepthook
    compat.say_errors_in_sentences()
    assert sys.excepthook is before


def test_a_preset_named_in_yaml_is_that_preset():
    config = OmegaConf.create({"model": {"_name": "sq_transformer_scan", "dropout": 0.1}})
    add_defaults(config)
    model = config.model
    assert (model.encoder_layers, model.encoder_embed_dim, str(model.attention)) == (3, 256, "sal")
    assert (model.dropout, model.loss_recipe, model.activation_dropout) == (0.1, "scan", 0.0)
    again = OmegaConf.create({"model": {"_name": "sq_transformer", "encoder_layers": 2}})
    add_defaults(again)
    assert (again.model.encoder_layers, again.model.encoder_embed_dim) == (2, 512)


def test_no_checkpoint_is_left_of_an_update_that_failed():
    """From fairseq's ``crash.pt`` no training goes on."""
    save = mock.Mock()
    records.record_the_checkpoint(save, mock.Mock(), "folder/crash.pt", {})
    save.assert_not_called()


@pytest.mark.parametrize(("first", "no_save"), [(True, False), (True, True), (False, False)])
def test_who_keeps_checkpoints_keeps_their_record(first, no_save):
    trainer = mock.Mock(is_data_parallel_master=first)
    trainer.cfg.checkpoint.no_save = no_save
    trainer.model.parameters.return_value = [torch.zeros(2, 3)]
    records.record_the_epoch(mock.Mock(), trainer, 5)
    assert (trainer.epoch, trainer.task.training_options) == (5, trainer.cfg)
    kept = [mock.call(trainer.get_num_updates(), 6)] if first and not no_save else []
    assert trainer.run_record.save.call_args_list == kept


def test_the_options_of_an_old_model_are_its_own(tmp_path):
    model = argparse.Namespace(arch="old", task="translation", seed=1, depth=3)
    sections = {
        "common": {"seed": 1},
        "checkpoint": {"save_dir": str(tmp_path)},
        "distributed_training": {"distributed_world_size": 2},
        "task": {"_name": "translation"},
    }
    trainer = mock.Mock(cfg={**sections, "model": model}, cuda=True)
    trainer.get_num_updates.return_value = 0
    with mock.patch("torch.cuda.get_device_name", return_value="H100"):
        session = records._new_record(trainer).session
    own = {"_name": "old", "arch": "old", "depth": 3}
    assert session["settings"] == {**sections, "model": own}
    assert (session["machine"]["gpus"], session["machine"]["processes"]) == (["H100"], 2)
