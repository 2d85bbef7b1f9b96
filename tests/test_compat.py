"""Nothing is lost in batching, and loading a checkpoint stays safe."""

import argparse
import collections
import contextlib
import functools
import json
import os
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data import (
    BucketPadLengthDataset,
    Dictionary,
    LanguagePairDataset,
    ListDataset,
    data_utils,
)
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass.configs import EMAConfig, FairseqConfig
from fairseq.dataclass.initialize import add_defaults
from fairseq.models.ema import EMA
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf
from sq_models import build

from compgen.data import scan
from compgen_fairseq import compat, compat_batches, records
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
    resumed._grad_scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for steps in (1, 2):
        optimizer.zero_grad()
        optimizer.backward(3 * parameter.sum())
        assert optimizer.clip_grad_norm(0).item() == 3
        optimizer.step()
        assert parameter.item() == -3 * steps
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.scaler.get_scale() == 128


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


@pytest.mark.parametrize(("words", "processes"), [("--cpu", 1), ("", 4)])
def test_a_training_without_the_gpus_is_one_process(words, processes):
    with mock.patch("torch.cuda.device_count", return_value=4):
        args = parse(f"data --arch transformer {words}")
    assert args.distributed_world_size == processes


def test_one_of_torchruns_processes_stays_one_of_them(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    args = parse("data --arch transformer --cpu --distributed-world-size 2")
    assert args.distributed_world_size == 2


def test_a_parser_that_leaves_out_defaults():
    words = "data --task translation --path x --distributed-world-size 2"
    assert parse(words, "validation", suppress_defaults=True).distributed_world_size == 2


def test_validation_on_the_training_set_leaves_it_in_its_epoch():
    trainer = mock.Mock(epoch=3)
    trainer.cfg.dataset.train_subset = "train"
    apart = []
    for subset in ("valid", "train"):
        compat_batches.validate_apart(lambda *call: apart.append(call[1:]), trainer, subset)
    assert apart == [("valid", False), ("train", True)]
    trainer.task.dataset.assert_called_once_with("train")
    trainer.task.dataset.return_value.set_epoch.assert_called_once_with(3)


def batch_iterator(shards=1):
    numbers = ListDataset(torch.arange(40))
    batches = [[i] for i in range(40)]
    return EpochBatchIterator(
        numbers, torch.stack, batches, num_shards=shards, reuse_dataloader=True
    )


def order(batches, shuffle):
    return [int(batch) for batch in batches.next_epoch_itr(shuffle=shuffle)]


def test_batches_are_shuffled_after_the_curriculum():
    whole = batch_iterator()
    assert order(whole, False) == list(range(40))
    resumed = batch_iterator()
    resumed.load_state_dict(whole.state_dict())
    second = order(whole, True)
    assert second == order(resumed, True) != list(range(40)) == sorted(second)


def test_a_place_in_an_epoch_is_of_as_many_processes():
    one, two = batch_iterator(), batch_iterator(2)
    next(one.next_epoch_itr())
    assert one.state_dict()["processes"] == 1
    with pytest.raises(ValueError, match="of 1 processes, not 2: train with 1, go on from"):
        two.load_state_dict(one.state_dict())
    two.load_state_dict({**one.state_dict(), "iterations_in_epoch": 0})
    batch_iterator().load_state_dict(one.state_dict())


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


def test_buckets_of_lengths():
    texts = ListDataset([torch.ones(n, dtype=torch.long) for n in range(1, 12)])
    dataset = BucketPadLengthDataset(texts, np.arange(1, 12), 2, pad_idx=1, left_pad=False)
    assert dataset.buckets.tolist() == [6, 11]
    assert [len(dataset[i]) for i in range(11)] == [6] * 6 + [11] * 5


def batches(n, batch_by_size=None, seed=0, **limits):
    """Length-sorted batches of ``n`` sentences, and the lengths."""
    lengths = np.sort(np.random.default_rng(seed).integers(1, 30, size=n))
    batch_by_size = batch_by_size or data_utils.batch_by_size
    return batch_by_size(np.arange(n), lengths.__getitem__, lengths, **limits), lengths


@pytest.mark.parametrize("n", [1, 7, 8, 9, 37, 40, 1003])
@pytest.mark.parametrize("multiple", [1, 3, 8])
@pytest.mark.parametrize("limits", [{"max_tokens": 100}, {"max_sentences": 12}, {}])
def test_every_index_is_batched_once_in_order_and_within_the_limits(n, multiple, limits):
    made, lengths = batches(n, required_batch_size_multiple=multiple, **limits)
    np.testing.assert_array_equal(np.concatenate(made), np.arange(n))
    assert max(map(len, made)) <= limits.get("max_sentences", n)
    assert max(len(b) * lengths[b].max() for b in made) <= limits.get("max_tokens", 30 * n)


@pytest.mark.parametrize("multiple", [3, 8])
def test_only_the_missing_batch_is_added_to_those_of_fairseq(multiple):
    limits = {"max_tokens": 100, "required_batch_size_multiple": multiple}
    added = 0
    for seed in range(10):
        mended, _ = batches(1003, seed=seed, **limits)
        fairseqs, _ = batches(1003, data_utils.batch_by_size.__wrapped__, seed=seed, **limits)
        for ours, theirs in zip(mended, fairseqs, strict=False):
            np.testing.assert_array_equal(ours, theirs)
        added += len(mended) - len(fairseqs)
    assert 0 < added <= 10  # 0: fairseq loses nothing any more, so the fix can go


def test_lengths_may_come_from_a_function_and_indices_from_a_list():
    made = data_utils.batch_by_size(
        list(range(21)), lambda i: 1 + i, max_tokens=40, required_batch_size_multiple=8
    )
    assert np.concatenate(made).tolist() == list(range(21))
    assert max(len(b) * (1 + b.max()) for b in made) <= 40


def test_nothing_to_batch():
    assert data_utils.batch_by_size([], len, required_batch_size_multiple=8) == []


def test_what_is_left_out_is_counted_where_scores_look(capsys):
    """By the task of any command: ``fairseq-generate`` takes fairseq's own."""
    data = LanguagePairDataset([[4, 5, 2], [4, 2]], [3, 2], Dictionary())
    task = FairseqTask(None)
    kept = task.filter_indices_by_size(np.arange(2), data, 2, ignore_invalid_inputs=True)
    assert list(kept) == [1]
    assert capsys.readouterr().out == "1 samples have invalid sizes and will be skipped\n"


def test_what_is_translated_as_it_comes_is_not_kept(tiny_data):
    """As by ``fairseq-interactive``, a data set for each buffer."""
    task = TranslationTask.setup_task(TranslationConfig(data=str(tiny_data)))
    for _ in range(3):
        dataset = task.build_dataset_for_inference([torch.tensor([5, 6, 2])], [3])
        (sample,) = task.get_batch_iterator(dataset, max_tokens=200).next_epoch_itr(shuffle=False)
        assert sample["id"].tolist() == [0]
    assert task.dataset_to_epoch_iter == {}


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
            torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(2, 4).state_dict())
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
    ],
)
def test_other_errors_end_in_a_sentence_with_their_place(hook, capsys, error, told):
    hook(error)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fairseq-train: ") and told in line


@pytest.mark.parametrize("answered", [False, True])
def test_what_a_worker_died_of_is_told(hook, capsys, answered):
    trace = 'Traceback (most recent call last):\n  File "{}", line 3, in check\n{}\n'
    died = trace.format(compat.__file__, "ValueError: --lr is too high")
    if answered:
        died += "\nDuring handling of the above exception, another exception occurred:\n\n"
        died += trace.format("fairseq/trainer.py", "Exception: Cannot load model parameters")
    hook(RuntimeError(f"\n\n-- Process 1 terminated:\n{died}"))
    assert capsys.readouterr().err == "fairseq-train: --lr is too high\n"


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


INTERRUPTED = """
import torch
import compgen_fairseq
from fairseq.data.iterators import BufferedIterator

class Batches:
    def __len__(self):
        return 10**6

    def __iter__(self):
        while True:
            yield torch.stack([torch.ones(50), torch.zeros(50)])

fetching, waiting = BufferedIterator(10**6, Batches()), BufferedIterator(10, Batches())
print(len(next(fetching)), len(next(waiting)))
"""


def test_batches_that_are_fetched_ahead_do_not_abort_python_at_its_end():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2 2\n"), done.stderr


def test_no_checkpoint_is_left_of_an_update_that_failed():
    """From fairseq's ``crash.pt`` no training goes on."""
    save = mock.Mock()
    records.record_the_checkpoint(save, mock.Mock(), "folder/crash.pt", {})
    save.assert_not_called()
