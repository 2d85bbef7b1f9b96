"""``compgen-prototypes``: put prototypes into a checkpoint, or look at those in it."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compgen.output import replacing

logger = logging.getLogger("compgen-prototypes")


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
    from fairseq import tasks, utils
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY
    from omegaconf import open_dict

    import compgen_fairseq  # noqa: F401
    from compgen_fairseq.analysis.checkpoint import read

    state = read(path)
    cfg = state["cfg"]
    arch = getattr(cfg.model, "arch", getattr(cfg.model, "_name", None))
    kind = ARCH_MODEL_NAME_REGISTRY.get(arch, arch)
    if kind not in ("transformer", "proto_transformer"):
        raise ValueError(f"{path} holds a {kind} model, not a transformer or proto_transformer")
    with open_dict(cfg):
        cfg.task.data = data
        if kind == "transformer":
            cfg.model.arch = cfg.model._name = "proto_transformer"
        for name, value in options.items():
            if value is not None:
                setattr(cfg.model, name, value)
    task = tasks.setup_task(cfg.task)
    utils.set_torch_seed(cfg.common.seed)
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


def new_file(name: str) -> Path:
    """The path of a file to write, asked for before the work begins.

    Raises:
        ValueError: if it can't be one.
    """
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise ValueError(f"--output {name}: {what}")
    return path


def extract(args: argparse.Namespace) -> None:
    """Write the checkpoint again, with prototypes of its model's states over a data folder."""
    from omegaconf import OmegaConf

    from compgen_fairseq.prototypes.extract import Settings
    from compgen_fairseq.tasks.prototype_hook import fill_tables

    output = new_file(args.output)
    if output.exists() and not args.force:
        raise ValueError(f"{output} is there already: choose another --output, or --force")
    state, task, model = load(
        args.checkpoint,
        args.data,
        prototypes=args.prototypes,
        prototypes_per_token=args.prototypes_per_token,
        prototype_min_count=args.prototype_min_count,
        prototype_layer=args.prototype_layer,
    )
    config = model.prototype_config
    if config.prototypes == "random":
        raise ValueError("--prototypes random has trained vectors: there is nothing to extract")
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    task.load_dataset(args.subset)
    settings = Settings(
        k=config.prototypes_per_token,
        min_count=config.prototype_min_count,
        size=args.prototype_sample_size,
        memory=args.prototype_memory,
        max_tokens=args.prototype_max_tokens,
        layer=config.prototype_layer,
    )
    fill_tables(task, model, args.subset, settings)
    if state.get("last_optimizer_state") is None:
        logger.warning(
            "%s has no optimizer's state by parameter: a training that goes on from %s begins with "
            "an empty one and counts its updates from 0",
            *(args.checkpoint, output),
        )
    state["model"] = {name: value.cpu() for name, value in model.state_dict().items()}
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    with replacing(output) as partial:
        torch.save(state, partial)
    print(f"{output}: the model of {args.checkpoint} with its prototypes")


def show(args: argparse.Namespace) -> None:
    """Print each type's number of prototypes, and how far they are apart."""
    _, task, model = load(args.checkpoint, args.data)
    rows = []
    for side, table in model.tables().items():
        dictionary = task.source_dictionary if side == "source" else task.target_dictionary
        slots = table.slots.tolist()
        for index in (i for i, slot in enumerate(slots) if slot >= 0):
            count = int(table.counts[slots[index]])
            vectors = table.vectors[slots[index], :count].float()
            apart = torch.pdist(vectors).mean().item() if count > 1 else 0.0
            rows.append(
                {"side": side, "type": dictionary[index], "prototypes": count}
                | {"mean_distance": round(apart, 4)}
            )
    if not rows:
        raise ValueError(f"{args.checkpoint} has no prototypes yet: it is of stage 1")
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    print("\t".join(rows[0]))
    for row in rows:
        print("\t".join(map(str, row.values())))


def states(args: argparse.Namespace) -> None:
    """Write the states of one word with their sentences and prototypes, as for figure 5."""
    from compgen_fairseq.prototypes.extract import collect_word

    output = new_file(args.output)
    _, task, model = load(args.checkpoint, args.data)
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    dictionary = task.source_dictionary
    if args.word not in dictionary:
        raise ValueError(f"{args.word!r} is not in the source dictionary in {args.data}")
    word = dictionary.index(args.word)
    task.load_dataset(args.subset)
    dataset = task.dataset(args.subset)
    layer = model.prototype_config.prototype_layer
    sample, vectors = collect_word(
        model, dataset, word, args.most, args.prototype_max_tokens, layer
    )
    if len(sample) == 0:
        raise ValueError(f"{args.word!r} does not occur in the subset {args.subset} of {args.data}")
    table = model.tables().get("source")
    slot = -1 if table is None else int(table.slots[word])
    centres = vectors[:0] if slot < 0 else table.vectors[slot, : table.counts[slot]].float().cpu()
    text = [dictionary.string(dataset[int(i)]["source"]) for i in sample.sentences]
    with replacing(output) as partial, open(partial, "wb") as file:
        np.savez(
            *(file,),
            states=vectors.numpy(),
            prototypes=np.asarray(centres),
            positions=sample.positions,
            sentences=np.array(text),
        )
    print(f"{args.output}: {len(sample)} states of {args.word!r}, {len(centres)} prototypes")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="compgen-prototypes", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for run in (extract, show, states):
        summary = (run.__doc__ or "").strip()
        one = commands.add_parser(run.__name__, help=summary, description=summary)
        one.set_defaults(run=run)
        one.add_argument("checkpoint")
        one.add_argument("data", help="the fairseq-preprocess'ed folder")
        if run is show:
            one.add_argument("--json", action="store_true", help="print JSON")
            continue
        one.add_argument("--output", "-o", required=True, help="the file to write")
        one.add_argument("--subset", default="train", help="default: %(default)s")
        text = "tokens in a batch (default: %(default)s)"
        one.add_argument("--prototype-max-tokens", type=int, default=8192, help=text)
        one.add_argument("--cpu", action="store_true", help="use no GPU")
        if run is states:
            one.add_argument("word")
            text = "the most states (default: %(default)s)"
            one.add_argument("--most", type=int, default=2000, help=text)
            continue
        one.add_argument("--force", action="store_true", help="replace the output")
        text = "which prototypes the model is to have (default: as the checkpoint says)"
        one.add_argument("--prototypes", help=text)
        text = "number of prototypes of each type (default: as the checkpoint says)"
        one.add_argument("--prototypes-per-token", "-k", type=int, help=text)
        text = "types that occur less often have none (default: as the checkpoint says)"
        one.add_argument("--prototype-min-count", type=int, help=text)
        text = "the layer whose states are clustered (default: as the checkpoint says)"
        one.add_argument("--prototype-layer", help=text)
        text = "states of a type that are clustered, 0 for all (default: 256 per prototype)"
        one.add_argument("--prototype-sample-size", type=int, help=text)
        text = "GiB for all states (default: %(default)s)"
        one.add_argument("--prototype-memory", type=float, default=8.0, help=text)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command; what can't be done ends in one sentence."""
    args = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for chatty in ("fairseq", "compgen.scoring"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        args.run(args)
    except (ValueError, OSError) as error:
        print(f"compgen-prototypes: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
