"""What current PyTorch and NumPy need from fairseq: the only place that works around fairseq."""

import argparse
import atexit
import contextlib
import functools
import inspect
import logging
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import torch

# At its import fairseq says that tensorboardX is missing, before every message of ours.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from fairseq import checkpoint_utils, hub_utils  # noqa: E402
from fairseq import options as command_line  # noqa: E402
from fairseq import utils as fairseq_utils  # noqa: E402
from fairseq.data import Dictionary, data_utils  # noqa: E402
from fairseq.data.iterators import BackgroundConsumer  # noqa: E402
from fairseq.dataclass import utils as dataclass_utils  # noqa: E402
from fairseq.distributed import utils as distributed_utils  # noqa: E402
from fairseq.file_io import PathManager  # noqa: E402
from fairseq.logging import metrics  # noqa: E402
from fairseq.models import (  # noqa: E402
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
)
from fairseq.models.ema.ema import EMA  # noqa: E402
from fairseq.optim.amp_optimizer import AMPOptimizer  # noqa: E402
from fairseq.tasks import FairseqTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402

from compgen import errors  # noqa: E402
from compgen_fairseq import files, flags, records  # noqa: E402
from compgen_fairseq.around import around  # noqa: E402

logger = logging.getLogger(__name__)
SECONDS_FOR_A_BATCH = 5  # how long Python's end waits for a batch that is being fetched


def apply() -> None:
    """Mend what is no function of fairseq; importing this module mends those."""
    trust_what_checkpoints_hold()
    say_errors_in_sentences()
    quieten()


# The files that fairseq opens are looked at first; one that is missing or broken is named.
around(Dictionary, "add_from_file")(files.open_dictionary)
around(data_utils, "load_indexed_dataset")(files.open_sentences)
around(data_utils, "infer_language_pair")(files.find_language_pair)
around(checkpoint_utils, "load_checkpoint_to_cpu")(files.open_checkpoint)
around(hub_utils, "from_pretrained")(files.open_run)


@around(data_utils, "batch_by_size")
def keep_the_last_batch(
    batch_by_size: Callable[..., Any], indices: Iterable[int], *args: Any, **kwargs: Any
) -> list[Any]:
    """Return every index in a batch.

    fairseq drops the last batch when its size is no multiple of
    ``--required-batch-size-multiple`` (8 by default), so that training, validation, generation
    and interactive use each lose up to 7 sentences; without any index it fails instead.  What is
    dropped is one whole batch within the limits, so it is put back as it was.
    """
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64)
    if len(indices) == 0:
        return []
    batches = batch_by_size(indices, *args, **kwargs)
    n = sum(map(len, batches))
    return batches if n == len(indices) else [*batches, indices[n:]]


@around(FairseqTask, "get_batch_iterator")
def resume_with_the_same_batches(
    get_batch_iterator: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Make a run that resumes after its first epoch draw the batches it was interrupted in.

    fairseq forms the batches once, with a seed that depends on the epoch in which it does so, and
    keeps them for all epochs. A resumed run forms them in a later epoch, hence other ones, and
    counts the batches it has done already among those: some pairs come twice, some not at all.
    Here they are always formed as in epoch 1; the order of the batches still changes by epoch.
    Where a dataset forms others each epoch, the processes of ``--num-workers`` end with the epoch:
    fairseq has them stay until Python collects cycles, which it does seldom.
    """
    call = inspect.signature(get_batch_iterator).bind(*args, **kwargs)
    call.apply_defaults()
    given = call.arguments
    task, dataset, epoch = given["self"], given["dataset"], given["epoch"]
    kept = task.can_reuse_epoch_itr(dataset) and not given["update_epoch_batch_itr"]
    if not kept or given["disable_iterator_cache"] or dataset in task.dataset_to_epoch_iter:
        iterator = get_batch_iterator(*call.args, **call.kwargs)
        iterator.persistent_workers &= kept
        return iterator
    if not any(dataset is known for known in task.datasets.values()):
        given["disable_iterator_cache"] = True  # a buffer of fairseq-interactive comes but once
    given["epoch"] = 1
    iterator = get_batch_iterator(*call.args, **call.kwargs)
    iterator.epoch = max(epoch, 1)
    dataset.set_epoch(epoch)
    return iterator


@around(FairseqTask, "train_step")
def tell_dummy_batches(
    train_step: Callable[..., Any],
    task: FairseqTask,
    sample: dict[str, Any],
    model: Any,
    criterion: Any,
    optimizer: Any,
    update_num: int,
    ignore_grad: bool = False,
) -> Any:
    """Let the criterion know, by ``sample["ignore_grad"]``, a batch that counts for nothing, and
    count it for nothing.

    A worker that has run out of batches repeats its first one, to keep the others company.
    """
    sample["ignore_grad"] = ignore_grad
    loss, size, log = train_step(task, sample, model, criterion, optimizer, update_num, ignore_grad)
    if ignore_grad:
        size, log = 0 * size, {name: 0 * value for name, value in log.items()}
    return loss, size, log


@around(AMPOptimizer, "step")
def unscale_once(step: Callable[..., Any], optimizer: AMPOptimizer) -> None:
    """Divide the gradients of ``--amp`` by the loss's scale once.

    fairseq does so for PyTorch's optimizer, and names its own wrapper of it for the step, which
    divides again, as it was not told of the first time.
    """
    optimizer.scaler.step(optimizer.optimizer)
    optimizer.scaler.update()


@around(Trainer, "train_step")
def dummy_batches_first(
    train_step: Callable[..., Any], trainer: Trainer, samples: list[Any], raise_oom: bool = False
) -> Any:
    """Keep the real batches of an update whose last batch is a dummy (``--update-freq``).

    fairseq takes the last for all: it would count nothing of what such a worker has done.
    """
    return train_step(trainer, sorted(samples, key=bool), raise_oom)


@around(distributed_utils, "_broadcast_object_slow")
def send_what_checkpoints_hold(
    broadcast: Callable[..., Any], state: Any, *args: Any, **kwargs: Any
) -> Any:
    """Let several processes resume: what the first one reads must reach the others.

    fairseq turns the options of a loaded checkpoint into its configuration class and sends that;
    PyTorch's safe loader refuses it at the other end. Here the options are sent as the plain
    containers that the checkpoint holds, so that the safe loader also serves what is sent.
    """
    if isinstance(state, dict):
        state = {
            name: OmegaConf.to_container(value, resolve=True, enum_to_str=True)
            if OmegaConf.is_config(value)
            else value
            for name, value in state.items()
        }
    return broadcast(state, *args, **kwargs)


@around(PathManager, "copy")
def copy_whole_checkpoints(
    copy: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False
) -> Any:
    """Copy files under another name and rename the copy.

    fairseq writes one checkpoint and copies it to ``checkpoint_best.pt`` and ``checkpoint_last.pt``
    byte by byte. A run that is killed meanwhile leaves half a file, from which nothing resumes.
    """
    if not PathManager.supports_rename(dst_path):
        return copy(src_path, dst_path, overwrite=overwrite)
    copied = copy(src_path, f"{dst_path}.tmp", overwrite=True)
    PathManager.rename(f"{dst_path}.tmp", dst_path)
    return copied


@around(checkpoint_utils, "load_checkpoint")
def begin_a_training(
    load_checkpoint: Callable[..., Any], cfg: Any, trainer: Trainer, **kwargs: Any
) -> Any:
    """Keep a training that is called again after its last update from doing one more, have it go on
    counting for ``--patience``, and refuse a ``--best-checkpoint-metric`` that validation does not
    report.

    fairseq compares the number of updates with ``--max-update`` only after an update, and looks
    for the metric only after the first validation.
    """
    try:
        loaded = load_checkpoint(cfg, trainer, **kwargs)
    except KeyError as error:
        if trainer.cfg.ema.store_ema and error.args == ("model",):  # it is deleted, then read
            raise ValueError("--store-ema: the checkpoint has no average; leave it out") from None
        raise
    if trainer.get_num_updates() and not cfg.reset_meters:  # not to fine-tune, from 0 updates
        records.early_stopping().update(loaded[0].get(records.PATIENCE, {}))
    options = trainer.cfg.optimization
    if 0 < options.max_update <= trainer.get_num_updates():
        logger.info(
            "nothing is left to train: the checkpoint has %d updates, --max-update is %d",
            trainer.get_num_updates(),
            options.max_update,
        )
        options.max_epoch = -1  # the epoch after which the training ends
    elif cfg.best_checkpoint_metric not in flags.KNOWN_SCORES or (
        cfg.best_checkpoint_metric.startswith("cter_")
        and "," in trainer.cfg.dataset.valid_subset  # of which one may have no compounds
    ):
        _find_score(trainer, cfg.best_checkpoint_metric)
        trainer.reset_dummy_batch(loaded[1].first_batch)
    return loaded


def _find_score(trainer: Any, name: str) -> None:
    """Raise a ValueError if the first batch of a validation set has no such score."""
    options = trainer.cfg.dataset
    subsets = [] if options.disable_validation else options.valid_subset.split(",")
    for subset in subsets:
        batches = trainer.get_valid_iterator(subset, disable_iterator_cache=True)
        with metrics.aggregate(new_root=True) as scores:
            trainer.valid_step(batches.first_batch)
        found = [score for score in scores.get_smoothed_values() if not score.startswith("_")]
        if name not in found:
            raise ValueError(
                f"--best-checkpoint-metric {name} is no score of the validation set {subset!r}; "
                f"these are: {', '.join(found)}"
            )


@around(EMA, "__init__")
def average_numbers_only(
    init: Callable[..., None],
    ema: EMA,
    model: torch.nn.Module,
    config: Any,
    device: Any = None,
    skip_keys: Iterable[str] | None = None,
) -> None:
    """Have ``--store-ema`` copy buffers of integers, which have no average."""
    state = {name: value for name, value in model.state_dict().items() if torch.is_tensor(value)}
    whole = {name for name, value in state.items() if not value.is_floating_point()}
    init(ema, model, config, device, whole | set(skip_keys or ()))


@around(EMA, "_step_internal")
def average_what_is_tied_once(
    step: Callable[..., None], ema: EMA, model: torch.nn.Module, *args: Any
) -> None:
    """Move the average of a weight that has two names, as a tied embedding, once an update.

    fairseq moves it at each of its names, so that its decay is squared.
    """
    named = {
        value.data_ptr() if torch.is_tensor(value) and value.numel() else name: (name, value)
        for name, value in model.state_dict().items()
    }
    step(ema, SimpleNamespace(state_dict=lambda: dict(named.values())), *args)


@around(command_line, "parse_args_and_arch")
def read_flags(
    parse_args_and_arch: Callable[..., Any],
    parser: argparse.ArgumentParser,
    input_args: list[str] | None = None,
    **kwargs: Any,
) -> Any:
    """Refuse flags that make no sense (:mod:`compgen_fairseq.flags`), have ``fairseq-train --help``
    list the flags of the model, task and criterion it is called with, too, and keep
    ``--bf16`` and ``--cpu`` to their words.

    fairseq parses twice, first to find those names, and that first time answers ``--help``. It
    takes ``--bf16`` for a TPU's, and starts a process for each GPU whether or not it may use them.
    """

    def first(words: list[str] | None = None, *_: Any) -> Any:
        del parser.parse_known_args  # the class's again, for the second time
        given = sys.argv[1:] if words is None else words
        return parser.parse_known_args([w for w in given if w not in ("-h", "--help")])

    parser.parse_known_args = first  # type: ignore[method-assign, assignment]
    parsed = parse_args_and_arch(parser, input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if hasattr(args, "tpu") and (fairseq_utils.xm is None or torch.cuda.is_available()):
        args.tpu = False
    flags.check(args)
    several = getattr(args, "distributed_world_size", 1) > 1
    if several and args.cpu and args.distributed_init_method is None:
        args.distributed_world_size = 1
    return parsed


@around(dataclass_utils, "merge_with_parent")
def apply_presets_to_yaml(
    merge: Callable[..., Any], parent: Any, config: Any, *args: Any, **kwargs: Any
) -> Any:
    """Let ``model: {_name: sq_transformer_scan}`` of ``fairseq-hydra-train`` mean that preset.

    fairseq fills in the model's own defaults, after which the preset finds nothing to set.
    """
    name = config.get("_name") if OmegaConf.is_config(config) else None
    model = ARCH_MODEL_NAME_REGISTRY.get(name, name)
    if model != name and MODEL_DATACLASS_REGISTRY.get(model) is parent:
        with open_dict(config):
            ARCH_CONFIG_REGISTRY[name](config)
    return merge(parent, config, *args, **kwargs)


def trust_what_checkpoints_hold() -> None:
    """Let PyTorch's safe loader read fairseq's own checkpoints.

    PyTorch >= 2.6 unpickles only tensors and plain containers unless told which other types are
    harmless.  fairseq also stores the model's options (``argparse.Namespace``) and, with
    ``--eval-bleu``, NumPy arrays of counts: integers, or floats once summed over workers.
    Whatever else a checkpoint names is still refused.
    """
    rebuild_array: Any = np.zeros(0).__reduce__()[0]
    counts = [np.ndarray, np.dtype, type(np.dtype(np.int64)), type(np.dtype(np.float64))]
    sent = distributed_utils._TensorPlaceholder  # by what one process reads to the others
    torch.serialization.add_safe_globals([argparse.Namespace, rebuild_array, *counts, sent])


def say_errors_in_sentences() -> None:
    """Let what ends a command of fairseq be told in one sentence, not where it was raised.

    ``COMPGEN_TRACEBACK=1`` has fairseq's commands show the way there; programs that are no command
    of fairseq are left as they are.
    """
    command = Path(sys.argv[0])
    if not (command.name.startswith("fairseq-") or command.parent.name == "fairseq_cli"):
        return
    if os.environ.get("COMPGEN_TRACEBACK") or hasattr(sys.excepthook, "__wrapped__"):
        return
    hook = sys.excepthook

    @functools.wraps(hook)
    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            print(f"{Path(sys.argv[0]).name}: {errors.sentence(error)}", file=sys.stderr)
        else:
            hook(kind, error, trace)

    sys.excepthook = say


def quieten() -> None:
    """Leave out warnings that a user of fairseq can do nothing about."""
    for module in ("fairseq", "hydra", r"torch\.(jit|utils\.data)"):
        for category in (FutureWarning, DeprecationWarning, UserWarning):
            warnings.filterwarnings("ignore", category=category, module=module)
    for message in (
        r"\s*'config' is validated against ConfigStore",  # Hydra, of fairseq's configuration
        r"Support for mismatched key_padding_mask and attn_mask",  # PyTorch, of fairseq's encoder
    ):
        warnings.filterwarnings("ignore", message=message)
    logging.getLogger("hydra").setLevel(logging.INFO)  # the root logger may be at DEBUG


@atexit.register
def end_prefetching() -> None:
    """Let fairseq's threads that fetch batches ahead end before Python does.

    Python stops a thread at whatever it is doing; one that is inside PyTorch takes the process with
    it, and a training that ``--max-update`` ended in the middle of an epoch exits with SIGABRT.
    """
    for thread in threading.enumerate():
        if isinstance(thread, BackgroundConsumer):
            thread._max_len = 0  # it ends after the batch that it is at
            give_up = time.monotonic() + SECONDS_FOR_A_BATCH
            while thread.is_alive() and time.monotonic() < give_up:
                with contextlib.suppress(queue.Empty):  # it may be waiting for room
                    thread._queue.get(timeout=0.01)
