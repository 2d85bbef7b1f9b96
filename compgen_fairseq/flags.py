"""The flags of fairseq's commands, looked at before anything is read or made."""

import ast
import difflib
import json
import logging
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import (
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
)
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

from compgen import ranges

logger = logging.getLogger(__name__)

#: what validation's search reads of fairseq-generate's options
SEARCH = set(
    "beam max_len_a max_len_b min_len match_source_len unnormalized lenpen unkpen temperature "
    "no_repeat_ngram_size sampling sampling_topk sampling_topp diverse_beam_groups "
    "diverse_beam_strength diversity_rate".split()
)
GENERATION = {one.name: one.type for one in fields(GenerationConfig) if one.name in SEARCH}

MANY = 12  # choices are not listed in an error

#: the flag without which validation has no such score
SCORED_BY = {
    "exact_match": "eval_exact_match",
    "cter_instance": "eval_cter",
    "cter_aggregate": "eval_cter",
    "bleu": "eval_bleu",
}

#: how the names of scores begin whose highest, or lowest, value is the best
HIGHEST = re.compile("(nsp_)?accuracy|bleu|exact_match|pearson")
LOWEST = re.compile("(nll_)?loss|ppl|cter_|mlm_|nsp_(?!accuracy)")


def refuse_shortly(parser: ArgumentParser) -> None:
    """Have a parser of fairseq say what it refuses in one sentence, with the nearest names.

    Otherwise 200 lines of usage go before it, and hundreds of architectures follow an unknown one.
    """

    def error(message: str) -> NoReturn:
        if found := re.fullmatch(r"(.+ invalid choice: '?([^']+)'?) \(choose from (.+)\)", message):
            choices = re.findall(r"[^\s',]+", found[3])
            if len(choices) > MANY:
                message = f"{found[1]}{_near(found[2], choices)}; --help lists what there is"
        elif message.startswith("unrecognized arguments"):
            flags = re.findall(r"(?<=\s)--?[a-z][\w-]*", message)
            known = parser._option_string_actions
            hints = "".join(_owners(flag) or _near(flag, known) for flag in flags)
            message += f"{hints}; --help lists the flags of this --arch, --task and --criterion"
        parser.exit(2, f"{parser.prog}: error: {message}\n")

    parser.error = error  # type: ignore[method-assign]


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 2, cutoff=0.75)
    return f" ({' or '.join(near)}?)" if near else ""


def _owners(flag: str) -> str:
    """Our models, tasks and criterions that have the flag, none of which was asked for."""
    found = []
    registries = {"arch": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
    for kind, registry in registries.items():
        for name, owner in registry.items():
            if owner.__module__.startswith(__package__):
                owner.add_args(own := ArgumentParser(add_help=False))
                if flag in own._option_string_actions:
                    found.append(f"--{kind} {name}")
    return f" ({flag} is of {' or '.join(found)})" if found else ""


def check(args: Namespace) -> None:
    """Refuse flags of a command of fairseq that make no sense, alone or together.

    Raises:
        ValueError: naming the flags.
    """
    ranges.check(args)
    _folders(args)
    _sizes(args)
    _criterion(args)
    _best_checkpoint(args)
    _precision(args)
    _unused(args)
    _adam_betas(args)
    _schedule(args)
    for name in ("eval_exact_match_args", "eval_cter_args", "eval_bleu_args"):
        own = name != "eval_bleu_args" or args.task in ("translation", "compgen_translation")
        if own and (text := getattr(args, name, None)) is not None:
            generation_options(ranges.flag_of(name), text)


def of_config(config: Any) -> Namespace:
    """The flags that a configuration of fairseq-hydra-train, which has no flags, stands for."""
    parts: Any = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    groups = {name: part for name, part in parts.items() if isinstance(part, dict)}
    flat = {name: value for part in groups.values() for name, value in part.items()}
    names = {name: groups[name]["_name"] for name in ("task", "criterion")}
    return Namespace(**flat | names | {"arch": groups["model"]["_name"]})


def generation_options(flag: str, text: str) -> dict[str, Any]:
    """Read the generation options that follow a flag.

    Args:
        flag: which names it in errors.
        text: JSON, an object with names of fairseq-generate's options: ``{"beam": 5}``.

    Raises:
        ValueError: it is something else, or a number makes no sense.
    """
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise ValueError(f"{flag} must be a JSON object, not {text[:80]!r}")
    for name, value in options.items():
        if name not in GENERATION:
            raise ValueError(f"{flag}: {name!r} is not a generation option, as beam is")
        if GENERATION[name] is bool and type(value) is not bool:
            raise ValueError(f"{flag}: {name} must be true or false, not {value!r}")
        if GENERATION[name] is int and type(value) is not int:
            raise ValueError(f"{flag}: {name} must be a whole number, not {value!r}")
        if GENERATION[name] is float and type(value) not in (int, float):
            raise ValueError(f"{flag}: {name} must be a number, not {value!r}")
    try:
        ranges.check(Namespace(**options))
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None
    return options


def has_begun(folder: str) -> bool:
    """Whether a training in this ``--save-dir`` resumes, for which what it began from counts no
    more."""
    return Path(folder, "checkpoint_last.pt").is_file()


def _folders(args: Namespace) -> None:
    if (folder := getattr(args, "save_dir", None)) is not None:
        path = Path(folder).absolute()
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir():
            raise ValueError(f"--save-dir {folder}: {there} is not a folder")
    first = () if folder and has_begun(folder) else ("finetune_from_model", "continue_once")
    for name in ("restore_file", *first):
        file = getattr(args, name, None) or "checkpoint_last.pt"
        if file != "checkpoint_last.pt" and "//" not in file and not Path(file).is_file():
            raise ValueError(f"{ranges.flag_of(name)} {file} does not exist")


def _sizes(args: Namespace) -> None:
    for side in ("encoder", "decoder"):
        names = (f"{side}_embed_dim", f"{side}_attention_heads")
        given: list[Any] = [getattr(args, name, None) for name in names]
        if None not in given and given[0] % given[1]:
            raise ValueError(
                f"--{side}-embed-dim {given[0]} can't be divided among "
                f"--{side}-attention-heads {given[1]}"
            )
    seeded = getattr(args, "update_ordered_indices_seed", False)
    if seeded and not args.update_epoch_batch_itr:
        raise ValueError(
            "--update-ordered-indices-seed needs --update-epoch-batch-itr: alone, a run that "
            "resumes forms other batches"
        )
    if getattr(args, "num_batch_buckets", 0) and getattr(args, "left_pad_target", False):
        raise ValueError(
            "--num-batch-buckets and the left padding of --left-pad-target do not go together"
        )
    if getattr(args, "task", "") == "cat_pretraining" and hasattr(args, "arch"):
        limit = getattr(args, "max_positions", MODEL_DATACLASS_REGISTRY["cat"].max_positions)
        if args.tokens_per_sample > limit:
            raise ValueError(f"--tokens-per-sample must be at most --max-positions, {limit}")
    if getattr(args, "shard_id", 0) >= getattr(args, "num_shards", 1):
        raise ValueError(f"--shard-id must be below --num-shards, {args.num_shards}")
    widths = [getattr(args, f"{side}_embed_dim", None) for side in ("encoder", "decoder")]
    if None not in widths and widths[0] != widths[1]:
        logger.warning(
            "--encoder-embed-dim %d, but --decoder-embed-dim %d: is that meant?", *widths
        )
    if getattr(args, "nbest", 1) > getattr(args, "beam", 1):
        raise ValueError(f"--nbest must be at most --beam, {args.beam}")


def _criterion(args: Namespace) -> None:
    """A criterion may name the models that it is for; subclasses of the first one will do, too. And
    the task of a model that is trained in stages has to be able to."""
    from compgen_fairseq.tasks.prototype_hook import PrototypeStages

    if not (hasattr(args, "arch") and hasattr(args, "criterion")):
        return
    arch, model = args.arch, ARCH_MODEL_REGISTRY[args.arch]
    models: Any = getattr(CRITERION_REGISTRY[args.criterion], "models", ())
    if issubclass(model, MODEL_REGISTRY["cat_transformer"]) and "cat_transformer" not in models:
        logger.warning(
            "this criterion trains none of cat_transformer's own terms (reconstruction, "
            "sparsity): use --criterion composition_cross_entropy to train them"
        )
    named = not models or ARCH_MODEL_NAME_REGISTRY.get(arch, arch) in models
    if not (named or issubclass(model, MODEL_REGISTRY[models[0]])):
        raise ValueError(
            f"--criterion {args.criterion} is for --arch {' or '.join(models)}, not {arch}"
        )
    if getattr(args, "freeze_backbone", False) and args.task == "cat_pretraining":
        raise ValueError("--freeze-backbone leaves pre-training nothing to train: leave it out")
    if (
        getattr(args, "ablation", "none") != "none"
        and getattr(args, "composition", "codebook") == "none"
    ):
        raise ValueError(f"--ablation {args.ablation}: --composition none leaves nothing to ablate")
    known = any(getattr(args, name, None) for name in ("finetune_from_model", "continue_once"))
    for name, own in (("code_classes", "learned"), ("syntactic_classes", "none")):
        value = getattr(args, name, own)
        finds = issubclass(TASK_REGISTRY[args.task], TASK_REGISTRY["compgen_translation"])
        if value != own and not (finds or known):
            flag = f"{ranges.flag_of(name)} {value}"
            raise ValueError(f"{flag} needs --task compgen_translation, which finds the classes")
    extracts = getattr(args, "prototypes", "") != "random"
    staged = extracts and issubclass(model, MODEL_REGISTRY["proto_transformer"])
    if staged and not issubclass(TASK_REGISTRY[args.task], PrototypeStages):
        raise ValueError(
            f"--task {args.task} extracts no prototypes, and --arch {arch} would stay a plain "
            "Transformer: add --task compgen_translation"
        )


def is_scored(metric: str, options: Any) -> bool:
    """Whether validation with these options surely reports a metric, whatever the criterion."""
    return metric == "loss" or bool(getattr(options, SCORED_BY.get(metric, ""), False))


def _best_checkpoint(args: Namespace) -> None:
    metric = getattr(args, "best_checkpoint_metric", None)
    option = SCORED_BY.get(metric or "")
    if option and not is_scored(str(metric), args):
        flag = ranges.flag_of(option)
        raise ValueError(f"--best-checkpoint-metric {metric} is a score of {flag}: say it, too")
    every, saved = (getattr(args, f"{what}_interval_updates", 0) for what in ("validate", "save"))
    if every and (not saved or every % saved):
        logger.warning(
            "--validate-interval-updates %d without --save-interval-updates %d: only a checkpoint "
            "that is saved can be chosen, not every one that is validated",
            every,
            every,
        )


def choose_the_best(options: Any) -> None:
    """Set ``--maximize-best-checkpoint-metric`` as the metric asks for, if it is a known one: a
    recipe's flag cannot be taken back, and without it fairseq keeps the lowest exact match."""
    metric = options.best_checkpoint_metric
    best = "highest" if HIGHEST.match(metric) else "lowest" if LOWEST.match(metric) else ""
    if best and options.maximize_best_checkpoint_metric != (best == "highest"):
        options.maximize_best_checkpoint_metric = best == "highest"
        logger.info("--best-checkpoint-metric %s: the %s is the best", metric, best)


def _precision(args: Namespace) -> None:
    if not (hasattr(args, "arch") and getattr(args, "fp16", False)):
        return
    flat = not (args.memory_efficient_fp16 or args.fp16_no_flatten_grads)
    if flat and (getattr(args, "cpu", False) or not torch.cuda.is_available()):
        raise ValueError("--fp16 needs a GPU; say --bf16")


def _unused(args: Namespace) -> None:
    """Without CAT's equation 6 nothing reads the last layer's mixed states, without H(q, p) nothing
    trains SQ-Transformer's predictors, with another criterion nothing its codebooks either."""
    unread = unread_mix(args, args)
    arch = ARCH_MODEL_REGISTRY.get(getattr(args, "arch", None))
    if arch is not None and hasattr(args, "criterion"):
        cont = getattr(args, "representation", "mix") == "cont"
        if issubclass(arch, MODEL_REGISTRY["sq_transformer"]):
            unread = _unused_codes(args)
        elif args.find_unused_parameters:
            pass  # which finds the others
        elif cont and issubclass(arch, MODEL_REGISTRY["cat_transformer"]):
            if not getattr(args, "reconstruction", 0):
                unread = "--representation cont without --reconstruction"
        elif args.task == "sentence_prediction" and not getattr(args, "freeze_backbone", True):
            unread = "--task sentence_prediction"
    many = getattr(args, "distributed_world_size", 1) > 1
    if unread and many and args.ddp_backend not in ("legacy_ddp", "no_c10d"):
        raise ValueError(
            f"{unread} leaves parameters without gradients, on several "
            "processes: add --ddp-backend legacy_ddp"
        )


def unread_mix(model: Any, criterion: Any) -> str:
    """Why nothing reads, or trains, the mixed states of CAT's last layer: the flag, or nothing. By
    the options of the model and of its pre-training."""
    if getattr(model, "composition", "codebook") == "none":  # there are none
        return ""
    ablation = getattr(criterion, "ablation", None)
    if ablation in ("sufficiency", "semantics-composition"):
        return f"--ablation {ablation}"
    return "--sufficiency 0" if getattr(criterion, "sufficiency", 1) == 0 else ""


def _unused_codes(args: Namespace) -> str:
    """Why parameters of SQ-Transformer's codes would have no gradients."""
    attention = getattr(args, "attention", "srl")
    quantizer = getattr(args, "quantizer", None) or ("none" if attention == "plain" else "sovq")
    if quantizer == "none":
        return ""
    if CRITERION_REGISTRY[args.criterion].__module__.startswith("fairseq."):
        return "" if args.find_unused_parameters else f"--criterion {args.criterion}"
    if quantizer == "sovq" and getattr(args, "code_classes", "learned") == "learned":
        return "--mmi-cross-entropy 0" if getattr(args, "mmi_cross_entropy", 1) == 0 else ""
    for side in ("encoder", "decoder"):
        if attention != "srl" and getattr(args, f"{side}_code_prediction", 1) == 0:
            return f"--{side}-code-prediction 0"
    return ""


def _adam_betas(args: Namespace) -> None:
    if (text := getattr(args, "adam_betas", None)) is None:
        return
    try:
        betas = ast.literal_eval(str(text))
        right = len(betas) == 2 and all(beta in ranges.RATE for beta in betas)
    except (ValueError, SyntaxError, TypeError):
        right = False
    if not right:
        raise ValueError(f"--adam-betas must be two numbers below 1, '(0.9, 0.98)', not {text!r}")


def _schedule(args: Namespace) -> None:
    most, rises = getattr(args, "max_update", 0), getattr(args, "warmup_updates", 0)
    if 0 < most <= rises:
        logger.warning(
            "the learning rate still rises when the training ends: --warmup-updates %d, "
            "--max-update %d",
            rises,
            most,
        )
    if getattr(args, "lr_scheduler", "") == "polynomial_decay":
        end = args.total_num_update
        if end and float(end) < most:
            logger.warning(
                "the learning rate ends at update %d (--total-num-update), the training at %d "
                "(--max-update; UPDATES of a recipe sets both)",
                float(end),
                most,
            )
