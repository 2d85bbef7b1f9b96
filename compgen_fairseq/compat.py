"""What current PyTorch and NumPy need from fairseq: the only place that works around fairseq."""

import argparse
import contextlib
import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable
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
from fairseq.data import Dictionary, bucket_pad_length_dataset, data_utils  # noqa: E402
from fairseq.dataclass import utils as dataclass_utils  # noqa: E402
from fairseq.dataclass.configs import CommonConfig  # noqa: E402
from fairseq.distributed import utils as distributed_utils  # noqa: E402
from fairseq.file_io import PathManager  # noqa: E402
from fairseq.logging import metrics  # noqa: E402
from fairseq.models import (  # noqa: E402
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_NAME_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    BaseFairseqModel,
)
from fairseq.models.ema.ema import EMA  # noqa: E402
from fairseq.modules import FairseqDropout  # noqa: E402
from fairseq.optim.amp_optimizer import AMPOptimizer  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402

from compgen import errors  # noqa: E402
from compgen_fairseq import files, flags, records  # noqa: E402
from compgen_fairseq.around import around  # noqa: E402

logger = logging.getLogger(__name__)

NEW_FOLDERS: list[str] = []  # of checkpoints: a command that fails takes them away if empty


def apply() -> None:
    """Mend what is no function of fairseq; importing this module mends those."""
    vars(np)["compat"] = SimpleNamespace(long=np.int64)  # for buckets of lengths; NumPy 2 has none
    trust_what_checkpoints_hold()
    say_errors_in_sentences()
    quieten()


# The files that fairseq opens are looked at first; one that is missing or broken is named.
around(Dictionary, "add_from_file")(files.open_dictionary)
around(data_utils, "load_indexed_dataset")(files.open_sentences)
around(data_utils, "infer_language_pair")(files.find_language_pair)
around(checkpoint_utils, "load_checkpoint_to_cpu")(files.open_checkpoint)
around(hub_utils, "from_pretrained")(files.open_run)
around(checkpoint_utils, "load_model_ensemble_and_task")(files.open_models)


@around(AMPOptimizer, "step")
def unscale_once(step: Callable[..., Any], optimizer: AMPOptimizer) -> None:
    """Divide the gradients of ``--amp`` by the loss's scale once.

    fairseq does so for PyTorch's optimizer, and names its own wrapper of it for the step, which
    divides again, as it was not told of the first time.
    """
    optimizer.scaler.step(optimizer.optimizer)
    optimizer.scaler.update()


@around(AMPOptimizer, "__init__")
def scale_as_told(
    init: Callable[..., None], optimizer: AMPOptimizer, cfg: Any, *args: Any, **kwargs: Any
) -> None:
    """Have ``--amp-init-scale`` and ``--amp-scale-window`` do what they say.

    fairseq takes ``--fp16-init-scale``, which still counts, and the one for the other.
    """
    init(optimizer, cfg, *args, **kwargs)
    first, window = cfg.common.amp_init_scale, cfg.common.amp_scale_window
    told = {"growth_interval": window} if window is not None else {}
    if first == CommonConfig().amp_init_scale:
        first = cfg.common.fp16_init_scale
    optimizer._grad_scaler = torch.amp.GradScaler("cuda", init_scale=first, **told)


@around(AMPOptimizer, "state_dict")
def keep_the_scale(state_dict: Callable[..., Any], optimizer: AMPOptimizer) -> dict[str, Any]:
    """Save the scale of ``--amp`` too, so that a resumed training goes on with it."""
    return {**state_dict(optimizer), "scaler": optimizer.scaler.state_dict()}


@around(AMPOptimizer, "load_state_dict")
def take_the_scale(
    load: Callable[..., Any], optimizer: AMPOptimizer, state: dict[str, Any], *args: Any, **kw: Any
) -> None:
    """Take what :func:`keep_the_scale` has saved."""
    if scaler := state.get("scaler"):  # an empty one is of a machine without GPUs
        window = optimizer.scaler.get_growth_interval()  # --amp-scale-window may be another now
        optimizer.scaler.load_state_dict({**scaler, "growth_interval": window})
    load(optimizer, {k: v for k, v in state.items() if k != "scaler"}, *args, **kw)


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


@around(checkpoint_utils, "checkpoint_paths")
def find_negative_scores(
    find: Callable[..., Any], path: str, pattern: str = r"checkpoint(\d+)\.pt", **kwargs: Any
) -> Any:
    """Have ``--keep-best-checkpoints`` count those of a negative loss, which SQ-Transformer's is;
    fairseq looks for numbers without a sign, so that all of them stay."""
    return find(path, pattern=pattern.replace(r"_(\d+\.?", r"_(-?\d+\.?"), **kwargs)


@around(checkpoint_utils, "load_checkpoint")
def begin_a_training(
    load_checkpoint: Callable[..., Any], cfg: Any, trainer: Trainer, **kwargs: Any
) -> Any:
    """Keep a training that is called again after its end from doing one more update, have it go on
    counting for ``--patience``, unless by another ``--best-checkpoint-metric``, and refuse one that
    validation does not report. The ``--reset-...`` of ``--continue-once`` count once, too.

    fairseq looks whether a training has ended only after an update, and for the metric only after
    the first validation. fairseq-hydra-train has no flags to look at before.
    """
    if "job_logging_cfg" in trainer.cfg:  # of fairseq-hydra-train
        flags.check(flags.of_config(trainer.cfg))
    flags.choose_the_best(cfg)
    if getattr(cfg, "continue_once", None) and flags.has_begun(cfg.save_dir):
        for state in ("optimizer", "lr_scheduler", "dataloader", "meters"):
            setattr(cfg, f"reset_{state}", False)
    metric = cfg.best_checkpoint_metric
    try:
        loaded = load_checkpoint(cfg, trainer, **kwargs)
    except KeyError as error:
        if trainer.cfg.ema.store_ema and error.args == ("model",):  # it is deleted, then read
            raise ValueError("--store-ema: the checkpoint has no average; leave it out") from None
        raise
    except ValueError as error:
        if "parameter group" not in str(error):
            raise
        raise ValueError(
            "the checkpoint's optimizer is of a model with other parameters: say "
            "--reset-optimizer, or --finetune-from-model instead of --restore-file"
        ) from None
    options, updates = trainer.cfg.optimization, trainer.get_num_updates()
    history = getattr(trainer, "_optim_history", None) or [{}]
    fine_tunes = cfg.finetune_from_model and not flags.has_begun(cfg.save_dir)
    if history[-1].get("num_updates", 0) and not (updates or cfg.reset_optimizer or fine_tunes):
        raise ValueError(  # of --no-save-optimizer-state
            "the checkpoint has no optimizer's state to go on with: say --reset-optimizer to "
            "begin again from its weights, or name another --save-dir"
        )
    reached = {"--max-update": (options.max_update, updates)}
    if updates and not cfg.reset_meters:  # not to fine-tune, from 0 updates
        if loaded[0].get(records.METRIC, metric) == metric:
            records.early_stopping().update(loaded[0].get(records.PATIENCE, {}))
        else:
            logger.info("the best checkpoint is chosen anew, by %s", metric)
            records.forget_the_best()
        reached["--patience"] = (cfg.patience, records.early_stopping().get("num_runs", 0))
        hours = trainer.cumulative_training_time() / 3600
        reached["--stop-time-hours"] = (options.stop_time_hours, hours)
    ended = [f"{flag} {limit}" for flag, (limit, at) in reached.items() if 0 < limit <= at]
    if ended:
        text = "nothing is left to train: the checkpoint has %d updates and has reached %s"
        logger.info(text, updates, ", ".join(ended))
        options.max_epoch = -1  # the epoch after which the training ends
        return loaded
    one_lacks_it = metric.startswith("cter_") and "," in trainer.cfg.dataset.valid_subset
    if one_lacks_it or not flags.is_scored(metric, trainer.cfg.task):
        _find_score(trainer, metric)
    return loaded


def _find_score(trainer: Any, name: str) -> None:
    """Raise a ValueError if the first batch of a validation set has no such score."""
    options = trainer.cfg.dataset
    subsets = [] if options.disable_validation else options.valid_subset.split(",")
    for subset in subsets:
        batches = trainer.get_valid_iterator(subset, disable_iterator_cache=True)
        with metrics.aggregate(new_root=True) as scores:
            trainer.valid_step(batches.first_batch)
        found = list(scores.get_smoothed_values())
        if name not in found:
            raise ValueError(
                f"--best-checkpoint-metric {name} is not a score of the validation set {subset!r}; "
                f"these are: {', '.join(found)}"
            )


@around(EMA, "_step_internal")
def average_what_is_tied_once(
    step: Callable[..., None], ema: EMA, model: torch.nn.Module, *args: Any
) -> None:
    """Move the average of a weight that has two names, as a tied embedding, once an update.

    fairseq moves it at each of its names, so that its decay is squared. Buffers of integers, which
    have no average, are copied.
    """
    state = model.state_dict().items()
    ema.skip_keys |= {n for n, v in state if torch.is_tensor(v) and not v.is_floating_point()}
    named = {
        value.data_ptr() if torch.is_tensor(value) and value.numel() else name: (name, value)
        for name, value in state
    }
    step(ema, SimpleNamespace(state_dict=lambda: dict(named.values())), *args)


@around(BaseFairseqModel, "prepare_for_inference_")
def retain_what_is_there(prepare: Callable[..., None], model: torch.nn.Module, cfg: Any) -> None:
    """Refuse ``--retain-dropout`` for a model without fairseq's dropout, where it does nothing."""
    if cfg.generation.retain_dropout and not any(
        isinstance(module, FairseqDropout) for module in model.modules()
    ):
        raise ValueError("--retain-dropout: this model's dropout ends with its training")
    prepare(model, cfg)


@around(command_line, "parse_args_and_arch")
def read_flags(
    parse_args_and_arch: Callable[..., Any],
    parser: argparse.ArgumentParser,
    input_args: list[str] | None = None,
    **kwargs: Any,
) -> Any:
    """Refuse flags that make no sense, in a sentence (:mod:`compgen_fairseq.flags`), have
    ``fairseq-train --help`` list the flags of the model, task and criterion it is called with, too,
    and keep ``--bf16`` and ``--cpu`` to their words.

    fairseq parses twice, first to find those names, and that first time answers ``--help``. It
    takes ``--bf16`` for a TPU's, and starts a process for each GPU whether or not it may use them.
    """

    def first(words: list[str] | None = None, *_: Any) -> Any:
        del parser.parse_known_args  # the class's again, for the second time
        given = sys.argv[1:] if words is None else words
        found = parser.parse_known_args([w for w in given if w not in ("-h", "--help")])
        for name in ("arch", "task"):
            if getattr(found[0], name, "") is None:
                parser.parse_known_args(given)  # which may be --help
                raise ValueError(f"say --{name}: docs/options.md and --help name what there is")
        return found

    flags.refuse_shortly(parser)
    parser.parse_known_args = first  # type: ignore[method-assign, assignment]
    parsed = parse_args_and_arch(parser, input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if hasattr(args, "tpu") and (fairseq_utils.xm is None or torch.cuda.is_available()):
        args.tpu = False
    _count_processes(args)
    flags.check(args)
    folder = getattr(args, "save_dir", None)
    if folder and not os.path.exists(folder):
        NEW_FOLDERS.append(folder)
    return parsed


def _count_processes(args: argparse.Namespace) -> None:
    """Keep ``--cpu`` to one process; refuse several that would not know of each other."""
    count = getattr(args, "distributed_world_size", 1)
    if getattr(args, "distributed_init_method", None):
        return
    started = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    if hasattr(args, "save_dir") and started > count == 1:
        raise ValueError(
            f"{started} processes were started, and each would train alone: give them the flags of "
            "examples/process.sh"
        )
    if count > 1 and getattr(args, "cpu", False) and started == 1:
        if count != torch.cuda.device_count():  # which is fairseq's default
            raise ValueError(
                f"--distributed-world-size {count} with --cpu: start the processes with torchrun, "
                "and give them the flags of examples/process.sh"
            )
        args.distributed_world_size = 1


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


@around(bucket_pad_length_dataset, "get_buckets")
def divide_lengths(_: Callable[..., Any], sizes: Any, num_buckets: int) -> Any:
    """The lengths of ``--num-batch-buckets``; fairseq names an argument that NumPy renamed."""
    shares = np.linspace(0, 100, num_buckets + 1)
    return np.unique(np.percentile(sizes, shares, method="lower")[1:])


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
            for folder in NEW_FOLDERS:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
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
