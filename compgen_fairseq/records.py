"""``RUN.json``, which every training keeps beside its checkpoints."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from compgen.provenance import Record
from compgen_fairseq.around import around

PATIENCE = "patience"  # in a checkpoint: the best score and how many validations ago it was
METRIC = "best_checkpoint_metric"  # the same: by what the best checkpoint was chosen


@around(Trainer, "begin_epoch")
def record_the_epoch(begin_epoch: Callable[..., Any], trainer: Trainer, epoch: int) -> None:
    """Let every training, of whatever task, keep ``RUN.json`` beside its checkpoints, and its
    task know all options, of which the model has some."""
    trainer.task.training_options = trainer.cfg
    trainer.epoch = epoch
    begin_epoch(trainer, epoch)
    _record(trainer)


@around(Trainer, "save_checkpoint")
def record_the_checkpoint(
    save: Callable[..., Any], trainer: Trainer, filename: str, extra_state: Any
) -> Any:
    """Bring ``RUN.json`` up to date with each checkpoint, in which ``--patience``'s count is kept.

    No ``crash.pt`` is saved, which fairseq leaves when an update fails and from which no training
    goes on.
    """
    if Path(filename).name == "crash.pt":
        return None
    extra_state[PATIENCE] = dict(early_stopping())
    extra_state[METRIC] = trainer.cfg.checkpoint.best_checkpoint_metric
    saved = save(trainer, filename, extra_state)
    _record(trainer)
    return saved


def early_stopping() -> dict[str, Any]:
    """What fairseq counts for ``--patience``, in attributes of its function."""
    from fairseq_cli import train

    main = sys.modules["__main__"]  # python -m fairseq_cli.train
    return vars(getattr(main, "should_stop_early", train.should_stop_early))


def forget_the_best() -> None:
    """Have the next validation's checkpoint be the best one so far."""
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    early_stopping().clear()


def _record(trainer: Trainer) -> None:
    if trainer.is_data_parallel_master and not trainer.cfg.checkpoint.no_save:
        if not hasattr(trainer, "run_record"):
            trainer.run_record = _new_record(trainer)
        parameters = sum(p.numel() for p in trainer.model.parameters())
        trainer.run_record.save(trainer.get_num_updates(), parameters)


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
