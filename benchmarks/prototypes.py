"""What prototypes cost: the extraction, k-means in two ways, stage 2, generation.

    python benchmarks/prototypes.py DATA [--arch proto_transformer_cognition: FLAGS]

It takes a folder that fairseq-preprocess wrote and measures, in one run,

- *extraction*: seconds to choose, compute and cluster the states, as a part of the seconds that
  an epoch of training takes. Both are measured on the same share of the pairs (``--pairs``), the
  states per type lowered in the same proportion (there are more types per pair than in the whole,
  so k-means looks dearer than it is); an epoch is estimated from batches spread evenly over the
  lengths.
- *k-means*: seconds and sum of squares, over all types with at least 10 states per prototype, of
  faiss (as used) and scikit-learn's KMeans.
- *stage 2*: tokens per second in training and in beam search, as ratios to the plain Transformer of
  that size. The models take turns on each batch; the median of the rounds counts.

Times are CPU seconds of this process (on a GPU: seconds of the clock), so that other load on the
machine does not count; ``--threads 1`` keeps that comparable.
"""

import argparse
import itertools
import json
import logging
import re
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import throughput as bench  # beside this file
import torch
from fairseq import tasks
from sklearn.cluster import KMeans

import compgen_fairseq  # noqa: F401  (registers its architectures)
from compgen.ranges import AT_LEAST_1
from compgen_fairseq.prototypes import kmeans
from compgen_fairseq.prototypes.extract import (
    PER_CENTRE,
    Settings,
    eligible,
    extract,
    source_states,
)
from compgen_fairseq.prototypes.sample import choose, survey

DEFAULT = "proto_transformer_cognition: --share-decoder-input-output-embed"


class Part:
    """Pairs of a data set, evenly spread."""

    def __init__(self, dataset: Any, pairs: int):
        self.dataset = dataset
        step = max(1, len(dataset) // pairs)
        self.indices = np.arange(0, len(dataset), step)[:pairs]
        self.collater = dataset.collater

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {**self.dataset[int(self.indices[i])], "id": i}

    def num_tokens(self, i: int) -> int:
        return self.dataset.num_tokens(int(self.indices[i]))


def group_states(model: Any, part: Part, settings: Settings) -> list[np.ndarray]:
    """The states of each type that the extraction clusters, float32."""
    indices = np.arange(len(part))
    keys, counts = survey(part, indices, kmeans.SEED)
    often = eligible(model.encoder.dictionary, counts["source"], settings.min_count)
    sample = choose(part, indices, keys, "source", often, settings.per_type, 2**40)
    states = source_states(model, part, sample, settings.max_tokens, settings.layer).numpy()
    _, bounds = sample.bounds()
    return [states[a:b] for a, b in itertools.pairwise(bounds)]


def measure(args: argparse.Namespace) -> dict[str, float]:
    """All figures."""
    arch, _, flags = args.arch.partition(":")
    label = "transformer" + arch.strip().removeprefix("proto_transformer")
    label = label.removesuffix("_wmt_en_ro").replace("_cognition", "_iwslt_de_en")
    cuda = torch.cuda.is_available() and not args.cpu
    options = argparse.Namespace(**vars(args) | {"cpu": not cuda, "fp16": False, "bf16": False})
    contenders = {}
    own = shlex.split(flags)
    others = [f"--{name}" for name in re.findall(r"--((?!prototype)\S+(?: +[^-\s]\S*)?)", flags)]
    plain_flags = shlex.split(" ".join(others))
    for name, kind, given in (("plain", label, plain_flags), ("stage 2", arch.strip(), own)):
        given = ["--criterion", "label_smoothed_cross_entropy", *given]
        cfg = bench.train_config(options, kind, given)
        task = tasks.setup_task(cfg.task)
        contenders[name] = bench.build(name, cfg, task, args.beam, args.length)
    plain, proto = contenders["plain"], contenders["stage 2"]
    model = proto.trainer.get_model()
    task.load_dataset("train")
    part = Part(task.dataset("train"), args.pairs)
    k = model.prototype_config.prototypes_per_token
    share = len(part) / max(args.full_pairs, len(part))
    count = max(1, round(model.prototype_config.prototype_min_count * share))
    size = max(2 * k, round(PER_CENTRE * k * share))
    settings = Settings(k=k, min_count=max(count, k + 1), size=size)
    figures: dict[str, float] = {"pairs": len(part), "states of a type": size}

    batches = {
        "training": bench.load_batches(task, "train", args.batches, max_tokens=args.max_tokens)
    }
    batches["generating"] = bench.load_batches(task, "valid", 1, max_sentences=args.sentences)
    tokens = sum(sample["ntokens"] for sample in batches["training"])
    plain.trainer.train_step([batches["training"][0]])  # warms up
    epoch, _ = bench.stopwatch(
        lambda: [plain.trainer.train_step([b]) for b in batches["training"]], cuda
    )
    pair_tokens = statistics.mean(len(part[i]["target"]) for i in range(len(part)))
    figures["epoch, s"] = epoch / tokens * pair_tokens * len(part)
    figures["extraction, s"], found = bench.stopwatch(
        lambda: extract(model, part, ["source"], settings), cuda
    )
    figures["extraction / epoch"] = figures["extraction, s"] / figures["epoch, s"]

    groups = group_states(model, part, Settings(k=k, min_count=10 * k, size=PER_CENTRE * k))
    figures["types"], figures["states"] = len(groups), sum(map(len, groups))
    ways: dict[str, Callable[[], float]] = {
        "faiss": lambda: sum(kmeans.kmeans(g, k)[1] for g in groups),
        "scikit-learn": lambda: sum(
            KMeans(k, n_init=kmeans.STARTS, random_state=1).fit(g).inertia_ for g in groups
        ),
    }
    squares = {}
    for way, work in ways.items():
        figures[f"k-means, {way}, s"], squares[way] = bench.stopwatch(work, False)
    figures["sum of squares, faiss / scikit-learn"] = squares["faiss"] / squares["scikit-learn"]

    for one in (model, proto.inference):
        one.tables()["source"].fill(*found["source"])
    model.train_prototype_attention(True)
    bench.measure([plain, proto], batches, args.rounds, None, cuda)
    for measured in batches:
        figures[f"{measured}, stage 2 / transformer"] = bench.ratio(measured, proto, plain)
    return figures


def lines(figures: dict[str, float]) -> Iterator[str]:
    """A Markdown table."""
    yield "| what | measured |"
    yield "| --- | ---: |"
    for name, value in figures.items():
        yield f"| {name} | {value:,.4g} |"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = p.add_argument
    add("data", metavar="DATA", help="what fairseq-preprocess wrote")
    add("--arch", default=DEFAULT, metavar="NAME[: FLAGS]", help="default: %(default)s")
    for flag, default, text in (
        ("--pairs", 2000, "of the training set that are measured"),
        ("--full-pairs", 196246, "of the training set in whose proportion states are taken"),
        ("--max-tokens", 4096, "of a training batch"),
        ("--batches", 2, "of training per round"),
        ("--rounds", 3, "after one to warm up"),
        ("--sentences", 16, "of a generation batch"),
        ("--beam", 5, "hypotheses per sentence"),
        ("--length", 12, "of the hypotheses"),
        ("--threads", 1, "on the CPU"),
    ):
        text = f"{text} (default: %(default)s)"
        add(flag, type=AT_LEAST_1.whole, default=default, help=text)
    add("--cpu", action="store_true", help="use no GPU")
    add("--json", type=Path, metavar="FILE", help="write the figures there too")
    return p


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures; a bad argument ends in one sentence."""
    args = parser().parse_args(argv)
    if not any(Path(args.data).glob("dict.*.txt")):
        sys.exit(f"prototypes: {args.data} is not a folder that fairseq-preprocess wrote")
    torch.set_num_threads(args.threads)
    logging.disable(logging.INFO)
    try:
        figures = measure(args)
        print("\n".join(lines(figures)))
        if args.json:
            args.json.write_text(json.dumps(figures, indent=1) + "\n")
    except (ValueError, OSError) as error:
        sys.exit(f"prototypes: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
