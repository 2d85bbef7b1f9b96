"""What current PyTorch and NumPy need from fairseq: the only place that works around fairseq."""

import argparse
import functools
import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

# At its import fairseq says that tensorboardX is missing, before every message of ours.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from fairseq import checkpoint_utils  # noqa: E402
from fairseq import options as command_line  # noqa: E402
from fairseq.data import Dictionary, data_utils  # noqa: E402
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
from fairseq.tasks import FairseqTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402

from compgen import errors  # noqa: E402
from compgen.provenance import Record  # noqa: E402
from compgen_fairseq import files, flags  # noqa: E402

logger = logging.getLogger(__name__)


def apply() -> None:
    """Mend everything below; calling it again changes nothing."""
    keep_the_last_batch()
    resume_with_the_same_batches()
    trust_what_checkpoints_hold()
    record_runs()
    send_what_checkpoints_hold()
    copy_whole_checkpoints()
    begin_a_training()
    average_numbers_only()
    open_files_first()
    say_errors_in_sentences()
    read_flags()
    apply_presets_to_yaml()
    quieten()


def keep_the_last_batch() -> None:
    """Make ``data_utils.batch_by_size`` return every index it is given.

    fairseq drops the last batch when its size is no multiple of
    ``--required-batch-size-multiple`` (8 by default), so that training, validation, generation
    and interactive use each lose up to 7 sentences; without any index it fails instead.  What is
    dropped is one whole batch within the limits, so it is put back as it was.  Every caller in
    fairseq looks the function up in its module, hence one replacement reaches them all.
    """
    if hasattr(data_utils.batch_by_size, "__wrapped__"):
        return
    data_utils.batch_by_size = _without_loss(data_utils.batch_by_size)


def _without_loss(batch_by_size: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    @functools.wraps(batch_by_size)
    def batch_all_by_size(indices: Iterable[int], *args: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64)
        if len(indices) == 0:
            return []
        batches = batch_by_size(indices, *args, **kwargs)
        n = sum(map(len, batches))
        return batches if n == len(indices) else [*batches, indices[n:]]

    return batch_all_by_size


def resume_with_the_same_batches() -> None:
    """Make a run that resumes after its first epoch draw the batches it was interrupted in.

    fairseq forms the batches once, with a seed that depends on the epoch in which it does so, and
    keeps them for all epochs. A resumed run forms them in a later epoch, hence other ones, and
    counts the batches it has done already among those: some pairs come twice, some not at all.
    Here they are always formed as in epoch 1; the order of the batches still changes by epoch.
    """
    if not hasattr(FairseqTask.get_batch_iterator, "__wrapped__"):
        FairseqTask.get_batch_iterator = _batches_of_epoch_1(FairseqTask.get_batch_iterator)


def _batches_of_epoch_1(get_batch_iterator: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(get_batch_iterator)

    @functools.wraps(get_batch_iterator)
    def get_same_batches(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        given = call.arguments
        task, dataset, epoch = given["self"], given["dataset"], given["epoch"]
        kept = task.can_reuse_epoch_itr(dataset) and not given["update_epoch_batch_itr"]
        if not kept or given["disable_iterator_cache"] or dataset in task.dataset_to_epoch_iter:
            return get_batch_iterator(*call.args, **call.kwargs)
        given["epoch"] = 1
        iterator = get_batch_iterator(*call.args, **call.kwargs)
        iterator.epoch = max(epoch, 1)
        dataset.set_epoch(epoch)
        return iterator

    return get_same_batches


def trust_what_checkpoints_hold() -> None:
    """Let PyTorch's safe loader read fairseq's own checkpoints.

    PyTorch >= 2.6 unpickles only tensors and plain containers unless told which other types are
    harmless.  fairseq also stores the model's options (``argparse.Namespace``) and, with
    ``--eval-bleu``, NumPy arrays of counts: integers, or floats once summed over workers.
    Whatever else a checkpoint names is still refused.
    """
    rebuild_array: Any = np.zeros(0).__reduce__()[0]
    counts = [type(np.dtype(np.int64)), type(np.dtype(np.float64))]
    torch.serialization.add_safe_globals(
        [argparse.Namespace, rebuild_array, np.ndarray, np.dtype, *counts]
    )


def record_runs() -> None:
    """Let every training, of whatever task, keep ``RUN.json`` beside its checkpoints.

    It is written when an epoch begins and when a checkpoint is saved. No ``crash.pt`` is, which
    fairseq leaves when an update fails and from which no training goes on.
    """
    if not hasattr(Trainer.begin_epoch, "__wrapped__"):
        Trainer.begin_epoch = _recorded(Trainer.begin_epoch)
        Trainer.save_checkpoint = _unless_crashed(_recorded(Trainer.save_checkpoint))


def _unless_crashed(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def save_unless_crashed(self: Trainer, filename: str, extra_state: Any) -> Any:
        return None if Path(filename).name == "crash.pt" else save(self, filename, extra_state)

    return save_unless_crashed


def _recorded(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def record(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        if self.is_data_parallel_master and not self.cfg.checkpoint.no_save:
            if not hasattr(self, "run_record"):
                self.run_record = _new_record(self)
            parameters = sum(p.numel() for p in self.model.parameters())
            self.run_record.save(self.get_num_updates(), parameters)
        return result

    return record


def _new_record(trainer: Trainer) -> Record:
    config = trainer.cfg
    if OmegaConf.is_config(config):
        config = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    sections = {name: options for name, options in config.items() if isinstance(options, dict)}
    elsewhere = {name for options in sections.values() for name in options} | set(config)
    for name, options in config.items():  # an old kind of model has all options as its own
        if isinstance(options, argparse.Namespace):
            own = {k: v for k, v in vars(options).items() if k not in elsewhere}
            sections[name] = {"_name": getattr(options, "arch", None), **own}
    return Record(
        Path(config["checkpoint"]["save_dir"]),
        sections,
        trainer.get_num_updates(),
        [torch.cuda.get_device_name()] if trainer.cuda else [],
        config["distributed_training"]["distributed_world_size"],
    )


def send_what_checkpoints_hold() -> None:
    """Let several processes resume: what the first one reads must reach the others.

    fairseq turns the options of a loaded checkpoint into its configuration class and sends that;
    PyTorch's safe loader refuses it at the other end. Here the options are sent as the plain
    containers that the checkpoint holds, so that the safe loader also serves what is sent.
    """
    if hasattr(distributed_utils._broadcast_object_slow, "__wrapped__"):
        return
    torch.serialization.add_safe_globals([distributed_utils._TensorPlaceholder])
    distributed_utils._broadcast_object_slow = _in_plain_containers(
        distributed_utils._broadcast_object_slow
    )


def _in_plain_containers(broadcast: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(broadcast)
    def broadcast_plain(state: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state, dict):
            state = {
                name: OmegaConf.to_container(value, resolve=True, enum_to_str=True)
                if OmegaConf.is_config(value)
                else value
                for name, value in state.items()
            }
        return broadcast(state, *args, **kwargs)

    return broadcast_plain


def copy_whole_checkpoints() -> None:
    """Copy files under another name and rename the copy.

    fairseq writes one checkpoint and copies it to ``checkpoint_best.pt`` and ``checkpoint_last.pt``
    byte by byte. A run that is killed meanwhile leaves half a file, from which nothing resumes.
    """
    if not hasattr(PathManager.copy, "__wrapped__"):
        PathManager.copy = staticmethod(_then_renamed(PathManager.copy))


def _then_renamed(copy: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(copy)
    def copy_and_rename(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite=overwrite)
        copied = copy(src_path, f"{dst_path}.tmp", overwrite=True)
        PathManager.rename(f"{dst_path}.tmp", dst_path)
        return copied

    return copy_and_rename


def begin_a_training() -> None:
    """Keep a training that is called again after its last update from doing one more, and refuse a
    ``--best-checkpoint-metric`` that validation does not report.

    fairseq compares the number of updates with ``--max-update`` only after an update, and looks
    for the metric only after the first validation.
    """
    if not hasattr(checkpoint_utils.load_checkpoint, "__wrapped__"):
        checkpoint_utils.load_checkpoint = _then_begin(checkpoint_utils.load_checkpoint)


def _then_begin(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_checkpoint)
    def load_and_begin(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        loaded = load_checkpoint(cfg, trainer, **kwargs)
        options = trainer.cfg.optimization
        if 0 < options.max_update <= trainer.get_num_updates():
            logger.info(
                "nothing is left to train: the checkpoint has %d updates, --max-update is %d",
                *(trainer.get_num_updates(), options.max_update),
            )
            options.max_epoch = -1  # the epoch after which the training ends
        elif cfg.best_checkpoint_metric not in flags.KNOWN_SCORES:
            _find_score(trainer, cfg.best_checkpoint_metric)
            trainer.reset_dummy_batch(loaded[1].first_batch)
        return loaded

    return load_and_begin


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


def average_numbers_only() -> None:
    """Have ``--store-ema`` copy buffers of integers, which have no average."""
    if not hasattr(EMA.__init__, "__wrapped__"):
        EMA.__init__ = _without_integers(EMA.__init__)


def _without_integers(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_without(
        self: Any, model: Any, config: Any, device: Any = None, skip_keys: Any = None
    ) -> None:
        whole = {
            n
            for n, v in model.state_dict().items()
            if torch.is_tensor(v) and not v.is_floating_point()
        }
        init(self, model, config, device, whole | set(skip_keys or ()))

    return init_without


def open_files_first() -> None:
    """Look at the files that fairseq opens, and name the one that is missing or broken
    (:mod:`compgen_fairseq.files`)."""
    for owner, name, checked in (
        (Dictionary, "add_from_file", files.open_dictionary),
        (data_utils, "load_indexed_dataset", files.open_sentences),
        (data_utils, "infer_language_pair", files.find_language_pair),
        (checkpoint_utils, "load_checkpoint_to_cpu", files.open_checkpoint),
    ):
        fairseqs = getattr(owner, name)
        if not hasattr(fairseqs, "__wrapped__"):
            setattr(owner, name, _through(checked, fairseqs))


def _through(checked: Callable[..., Any], fairseqs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fairseqs)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checked(fairseqs, *args, **kwargs)

    return call


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
    sys.excepthook = _in_a_sentence(sys.excepthook)


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def _in_a_sentence(hook: Hook) -> Hook:
    @functools.wraps(hook)
    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            print(f"{Path(sys.argv[0]).name}: {errors.sentence(error)}", file=sys.stderr)
        else:
            hook(kind, error, trace)

    return say


def read_flags() -> None:
    """Refuse flags that make no sense (:mod:`compgen_fairseq.flags`), and have ``fairseq-train
    --help`` list the flags of the model, task and criterion it is called with, too.

    fairseq parses twice, first to find those names, and that first time answers ``--help``. Its
    commands look the function up in its module.
    """
    if not hasattr(command_line.parse_args_and_arch, "__wrapped__"):
        parse = _help_last(command_line.parse_args_and_arch)
        command_line.parse_args_and_arch = _checked(parse)


def _checked(parse: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(parse)
    def parse_and_check(*args: Any, **kwargs: Any) -> Any:
        parsed = parse(*args, **kwargs)
        flags.check(parsed[0] if isinstance(parsed, tuple) else parsed)
        return parsed

    return parse_and_check


def _help_last(parse_args_and_arch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(parse_args_and_arch)
    def parse(
        parser: argparse.ArgumentParser, input_args: list[str] | None = None, **kwargs: Any
    ) -> Any:
        def first(words: list[str] | None = None, *_: Any) -> Any:
            del parser.parse_known_args  # the class's again, for the second time
            given = sys.argv[1:] if words is None else words
            return parser.parse_known_args([w for w in given if w not in ("-h", "--help")])

        parser.parse_known_args = first  # type: ignore[method-assign, assignment]
        return parse_args_and_arch(parser, input_args, **kwargs)

    return parse


def apply_presets_to_yaml() -> None:
    """Let ``model: {_name: sq_transformer_scan}`` of ``fairseq-hydra-train`` mean that preset.

    fairseq fills in the model's own defaults, after which the preset finds nothing to set.
    """
    if not hasattr(dataclass_utils.merge_with_parent, "__wrapped__"):
        dataclass_utils.merge_with_parent = _preset_first(dataclass_utils.merge_with_parent)


def _preset_first(merge: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(merge)
    def merge_after_preset(parent: Any, config: Any, *args: Any, **kwargs: Any) -> Any:
        name = config.get("_name") if OmegaConf.is_config(config) else None
        model = ARCH_MODEL_NAME_REGISTRY.get(name, name)
        if model != name and MODEL_DATACLASS_REGISTRY.get(model) is parent:
            with open_dict(config):
                ARCH_CONFIG_REGISTRY[name](config)
        return merge(parent, config, *args, **kwargs)

    return merge_after_preset


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
