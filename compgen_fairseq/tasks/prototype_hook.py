"""Between stage 1 and stage 2 of a Proto-Transformer: fill its tables."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Optional

import torch
from fairseq import checkpoint_utils, utils
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from fairseq.optim.lr_scheduler import build_lr_scheduler

from compgen.ranges import ABOVE_0, AT_LEAST_0, AT_LEAST_1, flag_of, ranges
from compgen_fairseq import records
from compgen_fairseq.contracts import HasPrototypes
from compgen_fairseq.options import option
from compgen_fairseq.prototypes.extract import Settings, extract

logger = logging.getLogger(__name__)


@ranges(
    (AT_LEAST_0, ("prototype_stage1_epochs", "prototype_sample_size")),
    (AT_LEAST_1, ("prototype_max_tokens",)),
    (ABOVE_0, ("prototype_memory",)),
)
@dataclass
class PrototypeTaskConfig(FairseqDataclass):
    """Options of training a Proto-Transformer with ``--task compgen_translation``."""

    prototype_stage1_epochs: Optional[int] = option(
        None,
        "train a proto_transformer as a plain Transformer for so many epochs, then "
        "extract the prototypes and go on with them; not given: stage 1 never ends",
    )
    prototype_table: Optional[str] = option(
        None,
        "for --prototypes two-pass: a checkpoint with prototypes, as "
        "'compgen-prototypes extract' makes it of a converged model",
    )
    prototype_restart: bool = option(
        False,
        "begin stage 2 with the optimizer's state empty and the learning rate at the "
        "start of its schedule; otherwise both go on",
    )
    prototype_sample_size: Optional[int] = option(
        None,
        "states of a type that are clustered; 0: all; not given: 256 per prototype, as in faiss",
    )
    prototype_memory: float = option(
        8.0, "GiB for all states; if that is too little, fewer of a type are used"
    )
    prototype_max_tokens: int = option(8192, "tokens in a batch during the extraction")


class PrototypeStages:
    """What a translation task does for a Proto-Transformer, beside what it does for any model.

    With ``--prototype-restart`` stage 2 has an optimizer and a learning rate that start anew.
    fairseq's schedule counts on; a second one of the same kind, which counts from the first update
    with prototypes, has the last word before each step. The table remembers that update, so a run
    that resumes goes on as if it had not stopped.
    """

    cfg: Any
    training_options: Any  # all options of the training, which records.py hands over
    updates = 0  # of this process
    schedule: Any = None  # the second one
    rate: float | None = None  # the last step's, by it

    def begin_valid_epoch(self, epoch: int, model: Any) -> None:
        """Have ``--patience`` count in stage 2 alone."""
        super().begin_valid_epoch(epoch, model)  # type: ignore[misc]
        staged = self.cfg.prototype_stage1_epochs is not None and isinstance(model, HasPrototypes)
        if staged and not _filled(model):
            records.early_stopping().clear()

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        if self.cfg.prototype_restart:
            self.restart(optimizer, model, update_num)
        super().optimizer_step(optimizer, model, update_num)  # type: ignore[misc]
        self.updates += 1

    def restart(self, optimizer: Any, model: Any, update: int) -> None:
        """Set the learning rate of a step, before which there were ``update`` others; before the
        first one with prototypes forget the others."""
        if self.schedule is None:  # with the first step: options that do not do are refused then
            rate = optimizer.get_lr()
            self.schedule = build_lr_scheduler(self.training_options.lr_scheduler, optimizer)
            optimizer.set_lr(rate)
        table = next(iter(model.tables().values()))
        if not table.filled:
            return
        since = int(table.restarted)
        if not 0 <= since <= update:  # never, or in the training of the model that is fine-tuned
            logger.info("prototypes: optimizer and learning rate start anew")
            since = update
            table.restarted.fill_(update)
            optimizer.optimizer.state.clear()
        self.rate = self.schedule.step_update(update - since)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)  # type: ignore[misc]
        if self.rate is not None:
            metrics.log_scalar("lr", self.rate, weight=0, priority=300)
        self.rate = None


def begin_epoch(task: Any, epoch: int, model: Any) -> None:
    """Fill the tables of a Proto-Transformer when its stage 1 is over.

    The tables are part of the model, so a run that resumes from a checkpoint of stage 2 has them;
    one that was killed before such a checkpoint was written makes the same ones again.

    Raises:
        ValueError: on options that can't go together, or a table that doesn't fit.
    """
    cfg = task.cfg
    if not isinstance(model, HasPrototypes):
        for one in fields(PrototypeTaskConfig):
            if one.name != "_name" and getattr(cfg, one.name) != one.default:
                flag = flag_of(one.name)
                raise ValueError(f"{flag} needs --arch proto_transformer or one of its presets")
        return
    config, tables = model.prototype_config, model.tables()
    _check(cfg, config.prototypes)
    if cfg.prototype_restart:
        _check_restart(task.training_options)
    if not _filled(model):
        if config.prototypes == "two-pass":
            load_tables(cfg.prototype_table, tables)
            logger.info("prototypes: taken from %s", cfg.prototype_table)
        elif cfg.prototype_stage1_epochs is not None and epoch > cfg.prototype_stage1_epochs:
            logger.info("prototypes: stage 1 is over, the training set is run once")
            if len(utils.split_paths(cfg.data)) > 1:
                logger.warning("prototypes: of several data folders only this epoch's is run")
            fill_tables(task, model, cfg.train_subset, settings_of(cfg, config))
            records.forget_the_best()  # which was a plain Transformer
        else:
            _check_training(task.training_options)
            if cfg.prototype_stage1_epochs is not None:
                if epoch == 1:
                    _announce(cfg, settings_of(cfg, config), tables)
                _foresee(cfg.prototype_stage1_epochs, epoch, task.updates, task.training_options)
            elif epoch == 1:
                logger.warning(
                    "prototypes: without --prototype-stage1-epochs this stays a plain Transformer"
                )
    elif epoch <= (cfg.prototype_stage1_epochs or 0):
        logger.warning("prototypes: the model has its prototypes already, and no stage 1")
    for side, table in tables.items():
        if table.filled and table.vectors.size(1) != config.prototypes_per_token:
            raise ValueError(
                f"the model has {table.vectors.size(1)} prototypes per token on the {side} side: "
                f"--prototypes-per-token must be that, not {config.prototypes_per_token}"
            )
    model.train_prototype_attention(_filled(model))


def _filled(model: Any) -> bool:
    """Whether stage 2 has begun."""
    return all(table.filled for table in model.tables().values())


def settings_of(cfg: Any, config: Any) -> Settings:
    """How the task's, or a command's, and the model's options say to extract.

    Raises:
        ValueError: so few states cannot give so many prototypes.
    """
    if 0 < (cfg.prototype_sample_size or 0) < config.prototypes_per_token:
        raise ValueError(
            f"--prototype-sample-size {cfg.prototype_sample_size} is below "
            f"--prototypes-per-token {config.prototypes_per_token}"
        )
    return Settings(
        k=config.prototypes_per_token,
        min_count=config.prototype_min_count,
        size=cfg.prototype_sample_size,
        memory=cfg.prototype_memory,
        max_tokens=cfg.prototype_max_tokens,
        layer=config.prototype_layer,
    )


def _announce(cfg: Any, settings: Settings, tables: Mapping[str, Any]) -> None:
    """Say before a long training what the extraction may need after it."""
    most = sum(t.slots.numel() * t.vectors.size(-1) for t in tables.values()) * settings.per_type
    logger.info(
        f"prototypes: after epoch {cfg.prototype_stage1_epochs} the extraction will hold at most "
        f"{min(settings.memory, most / 2**29):.2f} GiB of states in all"
    )


def _foresee(epochs: int, epoch: int, updates: int, options: Any) -> None:
    """Warn, as soon as that can be known, if the training will be over before stage 1 is: when the
    second epoch begins, ``updates`` are how long one is."""
    flag, unit = ("max_epoch", "epochs") if epoch == 1 else ("max_update", "updates")
    length = epochs * (1 if epoch == 1 else updates)
    most = getattr(options.optimization, flag)
    if epoch <= 2 and 0 < most <= length:
        logger.warning(
            f"prototypes: stage 1 takes {length} {unit}, {flag_of(flag)} ends the "
            f"training after {most}: this will be a plain Transformer; lower "
            "--prototype-stage1-epochs"
        )


def fill_tables(task: Any, model: Any, subset: str, settings: Settings) -> None:
    """Fill a model's tables with prototypes of its states over a loaded subset of the data."""
    tables, dataset = model.tables(), task.dataset(subset)
    positions = utils.resolve_max_positions(task.max_positions(), model.max_positions())
    for side, found in extract(model, dataset, list(tables), settings, positions).items():
        count, types = int(found.counts.sum()), len(found.types)
        logger.info(f"prototypes: {side} side, {count} prototypes of {types} types")
        tables[side].fill(*found)


def load_tables(path: str | None, tables: Mapping[str, torch.nn.Module]) -> None:
    """Fill tables from a checkpoint with prototypes; all workers get what the first one reads.

    Raises:
        ValueError: if there is no such checkpoint, or its prototypes don't fit.
    """
    parts: Any = None
    if distributed_utils.get_global_rank() == 0:
        if path is None:
            raise ValueError("--prototypes two-pass needs --prototype-table")
        state = checkpoint_utils.load_checkpoint_to_cpu(path)["model"]
        parts = {
            side: {k.removeprefix(p): v for k, v in state.items() if k.startswith(p)}
            for side, p in (("source", "encoder.prototypes."), ("target", "decoder.prototypes."))
        }
    if distributed_utils.get_global_world_size() > 1:
        parts = distributed_utils.broadcast_object(
            parts, src_rank=0, group=distributed_utils.get_global_group()
        )
    for side, table in tables.items():
        if not len(parts[side].get("counts", ())):
            raise ValueError(f"{path} has no prototypes of the {side} side")
        try:
            table.load_state_dict(parts[side])
        except RuntimeError as error:
            raise ValueError(f"{path}: {str(error).splitlines()[-1].strip()}") from None


def _check(cfg: Any, variant: str) -> None:
    """Refuse options that can't go with this value of ``--prototypes``."""
    if variant in ("random", "two-pass") and cfg.prototype_stage1_epochs is not None:
        raise ValueError(
            f"--prototypes {variant} has its prototypes from the first update: "
            "leave out --prototype-stage1-epochs"
        )
    if cfg.prototype_restart and cfg.prototype_stage1_epochs is None:
        raise ValueError("--prototype-restart needs --prototype-stage1-epochs: a stage to end")
    if variant != "two-pass" and cfg.prototype_table is not None:
        raise ValueError("--prototype-table is for --prototypes two-pass")


def _check_restart(options: Any) -> None:
    """Refuse schedules that don't go by updates alone, which could not start anew."""
    kind = getattr(options.lr_scheduler, "_name", None)
    force = getattr(options.lr_scheduler, "force_anneal", None)
    by_epoch = force is not None or len(options.optimization.lr) > 1
    if kind in ("reduce_lr_on_plateau", "manual") or (
        kind in ("fixed", "polynomial_decay") and by_epoch
    ):
        raise ValueError(
            f"--prototype-restart can't start --lr-scheduler {kind} anew, whose rate goes by "
            "epochs or scores: take inverse_sqrt, or polynomial_decay or fixed with one rate"
        )


def _check_training(options: Any) -> None:
    """Refuse what can't train a model some of whose parameters have no gradient yet."""
    workers = options.distributed_training
    backend, many = workers.ddp_backend, workers.distributed_world_size > 1
    if many and backend in ("c10d", "pytorch_ddp") and not workers.find_unused_parameters:
        raise ValueError(
            "in stage 1 the prototype attention has no gradients: "
            "add --find-unused-parameters or use --ddp-backend legacy_ddp"
        )
    if many and backend == "fully_sharded":
        raise ValueError("proto_transformer needs --ddp-backend legacy_ddp or pytorch_ddp")
    half = options.common.fp16 or options.common.bf16
    frugal = options.common.memory_efficient_fp16 or options.common.memory_efficient_bf16
    # what makes zeros of the gradients that they do not have: the optimizer, or the processes
    zeros = not frugal or (many and backend in ("legacy_ddp", "no_c10d"))
    if half and zeros and getattr(options.optimizer, "weight_decay", 0):
        raise ValueError(
            "in half precision weight decay would shrink the prototype attention in stage 1: use "
            "--amp, or --memory-efficient-fp16 with --optimizer adam (on several processes with "
            "--find-unused-parameters), or leave out --weight-decay"
        )
    if options.ema.store_ema:
        raise ValueError("--store-ema can't follow a table that grows: leave it out")
