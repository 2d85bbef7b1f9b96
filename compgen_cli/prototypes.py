"""``compgen-prototypes``: put prototypes into a checkpoint, or look at those in it."""

import argparse
import json
import logging
import sys
from pathlib import Path

from compgen.errors import command
from compgen.output import replacing
from compgen.ranges import ABOVE_0, AT_LEAST_0, AT_LEAST_1
from compgen.text import naming
from compgen_cli.parser import Parser, add_user_dir

logger = logging.getLogger("compgen-prototypes")


def extract(args: argparse.Namespace) -> None:
    """Write the checkpoint again, with prototypes of its model's states over a data folder."""
    import torch
    from fairseq.models import ARCH_CONFIG_REGISTRY
    from omegaconf import OmegaConf

    from compgen_fairseq.prototypes.checkpoint import has_prototypes, load
    from compgen_fairseq.records import PATIENCE
    from compgen_fairseq.tasks.prototype_hook import fill_tables, settings_of

    output = Path(args.output)
    if output.is_dir() or not output.parent.is_dir():  # before the work begins
        what = "is a folder" if output.is_dir() else f"there is no folder {output.parent}"
        raise ValueError(f"--output {output}: {what}")
    if output.exists() and not args.force:
        raise ValueError(f"{output} is there already: choose another --output, or --force")
    k = args.prototypes_per_token
    if args.arch is not None:
        if args.arch not in ARCH_CONFIG_REGISTRY or not has_prototypes(args.arch):
            raise ValueError(f"--arch {args.arch} is not a preset of proto_transformer")
        preset = argparse.Namespace()
        ARCH_CONFIG_REGISTRY[args.arch](preset)
        k = k or getattr(preset, "prototypes_per_token", None)
    state, task, model = load(
        args.checkpoint,
        args.data,
        prototypes=args.prototypes,
        prototypes_per_token=k,
        prototype_min_count=args.prototype_min_count,
        prototype_layer=args.prototype_layer,
    )
    config = model.prototype_config
    if config.prototypes == "random":
        raise ValueError("--prototypes random has trained vectors: there is nothing to extract")
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    task.load_dataset(args.subset, combine=args.subset == task.cfg.train_subset)
    fill_tables(task, model, args.subset, settings_of(args, config))
    if state.get("last_optimizer_state") is None:
        logger.warning(
            "%s has no optimizer's state by parameter: a training that goes on from %s begins with "
            "an empty one and counts its updates from 0",
            args.checkpoint,
            output,
        )
    for name in ("best", PATIENCE):  # of a model without these prototypes
        state["extra_state"].pop(name, None)
    state["model"] = {name: value.cpu() for name, value in model.state_dict().items()}
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    with naming(output), replacing(output) as partial, partial.open("wb") as file:
        torch.save(state, file)
    print(f"{output}: the model of {args.checkpoint} with its prototypes")


def show(args: argparse.Namespace) -> None:
    """Print each type's number of prototypes, and how far they are apart."""
    import torch

    from compgen_fairseq.prototypes.checkpoint import load

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


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = Parser(prog="compgen-prototypes", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for run in (extract, show):
        summary = (run.__doc__ or "").strip()
        one = commands.add_parser(run.__name__, help=summary, description=summary)
        one.set_defaults(run=run)
        one.add_argument("checkpoint")
        one.add_argument("data", help="the fairseq-preprocess'ed folder")
        add_user_dir(one)
        if run is show:
            one.add_argument("--json", action="store_true", help="print JSON")
            continue
        one.add_argument("--output", "-o", required=True, help="the file to write")
        one.add_argument("--subset", default="train", help="default: %(default)s")
        text = "tokens in a batch (default: %(default)s)"
        one.add_argument("--prototype-max-tokens", type=AT_LEAST_1.whole, default=8192, help=text)
        one.add_argument("--cpu", action="store_true", help="use no GPU")
        one.add_argument("--force", action="store_true", help="replace the output")
        text = (
            "which prototypes the model is to have (default: as the checkpoint says, or one-pass)"
        )
        one.add_argument("--prototypes", help=text)
        text = "the preset of a plain Transformer's stage 2, which says the number of prototypes"
        one.add_argument("--arch", help=text)
        text = "number of prototypes of each type (default: as --arch or the checkpoint says, or 3)"
        one.add_argument("--prototypes-per-token", "-k", type=AT_LEAST_1.whole, help=text)
        text = "types that occur less often have none (default: as the checkpoint says, or 10)"
        one.add_argument("--prototype-min-count", type=AT_LEAST_1.whole, help=text)
        text = "whose states are clustered (default: as the checkpoint says, or last-but-one)"
        one.add_argument("--prototype-layer", help=text)
        text = "states of a type that are clustered, 0 for all (default: 256 per prototype)"
        one.add_argument("--prototype-sample-size", type=AT_LEAST_0.whole, help=text)
        text = "GiB for all states (default: %(default)s)"
        one.add_argument("--prototype-memory", type=ABOVE_0.number, default=8.0, help=text)
    return top


@command("compgen-prototypes")
def main(argv: list[str] | None = None) -> int:
    """Run a command; errors end in one sentence."""
    args = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    args.run(args)
    return 0
