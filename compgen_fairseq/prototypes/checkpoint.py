"""Checkpoints that get prototypes from the command line."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from fairseq import checkpoint_utils, tasks, utils
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from omegaconf import open_dict


def has_prototypes(arch: str | None) -> bool:
    """Whether an architecture is of ``proto_transformer`` or of a model that is built on it."""
    model = ARCH_MODEL_REGISTRY.get(arch) or MODEL_REGISTRY.get(arch)
    return model is not None and issubclass(model, MODEL_REGISTRY["proto_transformer"])


def load(path: str, data: str, **options: Any) -> tuple[dict[str, Any], Any, Any]:
    """A checkpoint, the task it was trained on, and its model as a ``proto_transformer``.

    A plain Transformer gets the new parameters that a ``proto_transformer`` has from the same seed,
    and its optimizer's state room for them, so that stage 2 can go on from it.

    Args:
        path: the checkpoint, of arch ``transformer`` or ``proto_transformer``.
        data: the fairseq-preprocess'ed folder.
        options: of the model, instead of what the checkpoint says.

    Raises:
        ValueError: if it holds another model, or was trained with other dictionaries.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    cfg = state["cfg"]
    arch = getattr(cfg.model, "arch", getattr(cfg.model, "_name", None))
    kind = ARCH_MODEL_NAME_REGISTRY.get(arch, arch)
    if kind != "transformer" and not has_prototypes(arch):
        raise ValueError(f"{path} holds a {kind} model, not a transformer or proto_transformer")
    with open_dict(cfg):
        cfg.task.data = data
        cfg.task.num_batch_buckets = 0  # which would pad the sentences
        if kind == "transformer":
            cfg.model.arch = cfg.model._name = "proto_transformer"
        for name, value in options.items():
            if value is not None:
                setattr(cfg.model, name, value)
    task = tasks.setup_task(cfg.task)
    utils.set_torch_seed(cfg.common.seed)
    with contextlib.redirect_stdout(sys.stderr):  # what a plugin of one's own prints
        model = task.build_model(cfg.model, from_checkpoint=True)
    words = state["model"]["encoder.embed_tokens.weight"].size(0)
    if words != len(task.source_dictionary):
        raise ValueError(
            f"{path} was trained with {words} source types, the dictionary in {data} has "
            f"{len(task.source_dictionary)}"
        )
    if kind == "transformer":
        known = [name in state["model"] for name, _ in model.named_parameters()]
        state["last_optimizer_state"] = make_room(state.get("last_optimizer_state"), known)
    try:
        model.load_state_dict(state["model"], strict=True)
    except RuntimeError as error:
        raise ValueError(f"{path}: {str(error).splitlines()[-1].strip()}") from None
    return state, task, model


def make_room(optimizer: dict[str, Any] | None, known: Sequence[bool]) -> dict[str, Any] | None:
    """An optimizer's state with more parameters, which have none yet.

    Args:
        optimizer: the state, as a checkpoint has it.
        known: for each parameter of the larger model whether the smaller one has it, in the same
            order. Parameters beyond those, the criterion's, come last in both.

    Returns:
        None if there is no state or it is not by parameter: half precision has it in one piece.
    """
    groups = [] if optimizer is None else optimizer.get("param_groups", [])
    if optimizer is None or len(groups) != 1 or len(groups[0]["params"]) < sum(known):
        return None
    more = len(groups[0]["params"]) - sum(known)
    places = [i for i, old in enumerate([*known, *[True] * more]) if old]
    states = {places[i]: state for i, state in optimizer["state"].items()}
    group = {**groups[0], "params": list(range(len(known) + more))}
    return {**optimizer, "state": states, "param_groups": [group]}
