"""Training and generation speed and peak memory of several models, measured in one run.

    python benchmarks/throughput.py DATA --suite sq
    python benchmarks/throughput.py DATA --arch transformer --arch "sal=sq_transformer_scan"

Every model is built and trained by fairseq's own code (``Trainer``, ``SequenceGenerator``) from the
flags that ``fairseq-train`` takes. The models take turns on each batch of each round, so that a
change in the machine's load hits all of them alike. What is reported:

- *training*: target tokens per second of forward, backward and optimizer step; median over the
  rounds. The batches are spread evenly over the length-sorted batches of the training set.
- *generating*: target tokens per second of beam search. Nothing is learned here, so hypotheses
  would end anywhere: each of them gets the same length instead, the mean length of the references.
- *peak memory*: the most bytes that tensors took up during a training step: parameters, gradients
  and optimizer state plus everything allocated on top, as counted by the allocator (CUDA's
  statistics, or PyTorch's memory profiler on a CPU). The largest of the batches counts. Unlike the
  resident size of the process it is the same in every run.
- *operations*: how many operations of PyTorch, views included, an update starts. On a GPU the
  time of a small model is the time it takes to start them.
- *ratios*: to the baseline, in the same round; median over the rounds. Above 1 is faster (larger).
"""

import argparse
import copy
import functools
import itertools
import json
import logging
import shlex
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.trainer import Trainer
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

import compgen_fairseq  # noqa: F401  (registers its architectures)
from compgen.provenance import cores
from compgen.ranges import AT_LEAST_1

SUITES = {
    "sq": (
        "transformer=transformer: --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 "
        "--decoder-embed-dim 256 --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 "
        "--encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0.3 "
        "--share-decoder-input-output-embed",
        "plain=sq_transformer_scan: --attention plain",
        "sal=sq_transformer_scan",
        "srl=sq_transformer_cogs: --source-codes 6 --target-codes 4",
    ),
    "cat": (
        "transformer=transformer: --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 "
        "--encoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4 "
        "--dropout 0.3 --share-decoder-input-output-embed",
        "cat=cat_transformer_scan: --criterion composition_cross_entropy --dropout 0.3 "
        "--share-decoder-input-output-embed",
        "cat-1000=cat_transformer_scan: --codes 1000 --criterion composition_cross_entropy "
        "--dropout 0.3 --share-decoder-input-output-embed",
    ),
}
MEASURES = ("training", "generating", "memory")


@dataclass
class Contender:
    """One model and what was measured of it; ``seconds`` has one number per round."""

    label: str
    trainer: Trainer
    generator: Any
    inference: Any
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory: int = 0
    operations: int = 0

    def work(self, measured: str, sample: dict[str, Any]) -> None:
        """One update, or one beam search."""
        if measured == "training":
            self.trainer.train_step([sample])
        else:
            self.generator.generate([self.inference], sample)

    def static_bytes(self) -> int:
        """What stays between two updates: parameters, buffers, optimizer state."""
        model, optimizer = self.trainer.model, self.trainer.optimizer.optimizer
        tensors = [*model.parameters(), *model.buffers()]
        for group in optimizer.param_groups:  # with half precision, copies in single
            tensors += [t for p in group["params"] for t in (p, p.grad) if t is not None]
        for state in optimizer.state.values():
            tensors += [value for value in state.values() if torch.is_tensor(value)]
        return sum({t.data_ptr(): t.nbytes for t in tensors}.values())


def split_spec(spec: str) -> tuple[str, str, list[str]]:
    """``[label=]arch[: flags]`` -> label, architecture, flags.

    Raises:
        ValueError: on an architecture that isn't registered.
    """
    head, _, flags = spec.partition(":")
    label, _, arch = head.strip().rpartition("=")
    arch = arch.strip()
    if arch not in ARCH_MODEL_REGISTRY:
        raise ValueError(f"no architecture is called {arch!r} (of --arch {spec!r})")
    return label.strip() or " ".join([arch, *flags.split()]), arch, shlex.split(flags)


def train_config(args: argparse.Namespace, arch: str, flags: Sequence[str]) -> Any:
    """The configuration that ``fairseq-train`` would make of these flags.

    Raises:
        ValueError: on flags that it would refuse.
    """

    def refuse(_: int, message: str) -> None:
        raise ValueError(f"{arch}: {message.partition('error: ')[2]}")

    parser = options.get_training_parser()
    parser.exit = refuse  # type: ignore[method-assign, assignment]
    fixed = [args.data, "--arch", arch, "--max-tokens", str(args.max_tokens)]
    fixed += "--task compgen_translation --criterion structural_cross_entropy".split()
    fixed += "--optimizer adam --lr 1e-4 --distributed-world-size 1 --seed 1 --no-save".split()
    fixed += ["--cpu"] * args.cpu + ["--fp16"] * args.fp16 + ["--bf16"] * args.bf16
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, [*fixed, *flags]))


def build(label: str, cfg: Any, task: Any, beam: int, length: int) -> Contender:
    """Build a model with its trainer and its generator."""
    torch.manual_seed(cfg.common.seed)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    trainer.begin_epoch(1)
    inference = copy.deepcopy(trainer.model)
    inference.prepare_for_inference_(cfg)
    inference.eval()
    generation = copy.deepcopy(cfg.generation)
    generation.beam, generation.max_len_a = beam, 0
    generation.min_len = generation.max_len_b = length
    return Contender(label, trainer, task.build_generator([inference], generation), inference)


def load_batches(task: Any, split: str, number: int, **limits: int) -> list[dict[str, Any]]:
    """Some of a split's batches, spread evenly from the shortest sentences to the longest."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    batches = task.get_batch_iterator(dataset, seed=1, **limits).frozen_batches
    batches = sorted(batches, key=lambda batch: max(dataset.num_tokens(i) for i in batch))
    chosen = [batches[int((i + 0.5) / number * len(batches))] for i in range(number)]
    return [dataset.collater([dataset[i] for i in batch]) for batch in chosen]


def stopwatch(
    work: Callable[[], Any], cuda: bool, timer: Callable[[], float] | None = None
) -> tuple[float, Any]:
    """Seconds that the work takes, the GPU's part included; and its result. The timer is the
    processor's time by default, or the time of day where a GPU works beside it."""
    timer = timer or (time.perf_counter if cuda else time.process_time)
    if cuda:
        torch.cuda.synchronize()
    start = timer()
    result = work()
    if cuda:
        torch.cuda.synchronize()
    return timer() - start, result


class Operations(TorchDispatchMode):
    """Counts what PyTorch starts while it is entered."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))


def growth(work: Callable[[], None], cuda: bool) -> int:
    """The most bytes that the work's tensors take up on top of what is there before it."""
    if cuda:
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    events = recorded.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    total = peak = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        total += change
        peak = max(peak, total)
    return peak


def measure(
    contenders: Sequence[Contender],
    batches: dict[str, list[dict[str, Any]]],
    rounds: int,
    timer: Callable[[], float] | None,
    cuda: bool,
) -> None:
    """Fill in what the contenders took for the two kinds of batches; round 0 only warms up."""
    if cuda:
        batches = utils.move_to_cuda(batches)
    for turn in range(rounds + 1):
        for measured, samples in batches.items():
            totals = [0.0] * len(contenders)
            for sample, (i, c) in itertools.product(samples, enumerate(contenders)):
                work = functools.partial(c.work, measured, sample)
                totals[i] += stopwatch(work, cuda, timer)[0]
            for c, total in zip(contenders, totals, strict=True):
                c.seconds[measured] += [total] * (turn > 0)
        print(f"round {turn} of {rounds} done", file=sys.stderr)
    largest = max(batches["training"], key=lambda s: s["target"].numel())
    for c in contenders:
        c.work("training", largest)  # what is kept from then on is not counted
        with Operations() as started:
            c.work("training", largest)
        c.operations = started.number
        c.trainer.zero_grad()
        c.memory = c.static_bytes() + growth(functools.partial(c.work, "training", largest), cuda)


def ratio(measured: str, one: Contender, other: Contender) -> float:
    """How one compares with the other: of memory the quotient, else the median round's."""
    if measured == "memory":
        return one.memory / other.memory
    pairs = zip(one.seconds[measured], other.seconds[measured], strict=True)
    return statistics.median(theirs / ours for ours, theirs in pairs)


def results(contenders: Sequence[Contender], baseline: Contender, tokens: dict[str, int]) -> list:
    """One dictionary per model: label, parameters, operations, the three measures, their ratios."""
    rows = []
    for c in contenders:
        parameters = sum(p.numel() for p in c.trainer.model.parameters() if p.requires_grad)
        row: dict[str, Any] = {"label": c.label, "parameters": parameters, "memory": c.memory}
        row["operations"] = c.operations
        row |= {name: tokens[name] / statistics.median(c.seconds[name]) for name in tokens}
        row |= {f"{name}_ratio": ratio(name, c, baseline) for name in MEASURES}
        rows.append(row)
    return rows


def markdown(rows: Iterable[dict[str, Any]], baseline: str) -> str:
    """The results as a Markdown table."""
    head = "| model | parameters | training, tokens/s | x B | generating, tokens/s | x B "
    head += "| peak memory, MiB | x B | operations |"
    lines = [head.replace("x B", f"x {baseline}")]
    lines.append("| --- " + "| ---: " * 8 + "|")
    for row in rows:
        cells = [row["label"], f"{row['parameters']:,}"]
        for name, unit in zip(MEASURES, (1, 1, 2**20), strict=True):
            cells += [f"{row[name] / unit:,.0f}", f"{row[f'{name}_ratio']:.2f}"]
        cells.append(f"{row['operations']:,}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = p.add_argument
    add("data", metavar="DATA", help="what fairseq-preprocess wrote")
    text = "a registered architecture with further flags of fairseq-train; repeatable"
    add("--arch", action="append", default=[], metavar="[LABEL=]NAME[: FLAGS]", help=text)
    add("--suite", choices=sorted(SUITES), help="a ready-made comparison, before any --arch")
    add("--baseline", metavar="LABEL", help="what ratios refer to (default: the first model)")
    for flag, default, text in (
        ("--max-tokens", 4096, "of a training batch"),
        ("--sentences", 64, "of a generation batch"),
        ("--batches", 4, "of each kind per round"),
        ("--rounds", 5, "after one to warm up"),
        ("--beam", 5, "hypotheses per sentence"),
        ("--threads", cores(), "on the CPU"),
    ):
        text = f"{text} (default: %(default)s)"
        add(flag, type=AT_LEAST_1.whole, default=default, help=text)
    text = "count CPU seconds: with --threads 1 what the clock would show on an idle machine"
    add("--cpu-time", action="store_true", help=text)
    add("--cpu", action="store_true", default=not torch.cuda.is_available(), help="use no GPU")
    add("--fp16", action="store_true", help="half precision")
    add("--bf16", action="store_true", help="bfloat16")
    add("--json", type=Path, metavar="FILE", help="write the results there too")
    return p


def run(args: argparse.Namespace) -> None:
    """Measure and print the report; write the JSON file.

    Raises:
        ValueError: on arguments that make no sense.
    """
    if not any(Path(args.data).glob("dict.*.txt")):
        raise ValueError(f"{args.data} is not a folder that fairseq-preprocess wrote")
    specs = [split_spec(s) for s in [*SUITES.get(args.suite, ()), *args.arch]]
    labels = [label for label, _, _ in specs]
    if not specs:
        raise ValueError("nothing to measure: give --suite or --arch")
    if len(set(labels)) < len(labels):
        raise ValueError(f"two models have one label: {', '.join(labels)}")
    if (baseline := args.baseline or labels[0]) not in labels:
        raise ValueError(f"--baseline {baseline!r} is none of {', '.join(labels)}")
    configs = [train_config(args, arch, flags) for _, arch, flags in specs]
    torch.set_num_threads(args.threads)
    logging.disable(logging.INFO)
    task = tasks.setup_task(configs[0].task)
    batches = {
        "training": load_batches(task, "train", args.batches, max_tokens=args.max_tokens),
        "generating": load_batches(task, "valid", args.batches, max_sentences=args.sentences),
    }
    lengths = [(s["ntokens"], s["nsentences"]) for s in batches["generating"]]
    sentences = sum(n for _, n in lengths)
    length = round(sum(n for n, _ in lengths) / sentences) - 1  # without the end of the sentence
    models = zip(labels, configs, strict=True)
    contenders = [build(label, cfg, task, args.beam, length) for label, cfg in models]
    cuda = torch.cuda.is_available() and not args.cpu
    timer = time.process_time if args.cpu_time else time.perf_counter
    measure(contenders, batches, args.rounds, timer, cuda)
    tokens = {
        "training": sum(s["ntokens"] for s in batches["training"]),
        "generating": sentences * (length + 1),
    }
    rows = results(contenders, contenders[labels.index(baseline)], tokens)
    device = torch.cuda.get_device_name() if cuda else "CPU"
    precision = "fp16" if args.fp16 else "bf16" if args.bf16 else "fp32"
    setting = (
        f"{device}, {args.threads} threads{', CPU time' * args.cpu_time}, PyTorch "
        f"{torch.__version__}, {precision}; {args.rounds} rounds over {args.batches} batches of "
        f"{args.max_tokens} tokens (training) and of {args.sentences} sentences with hypotheses "
        f"of {length + 1} tokens, beam {args.beam} (generating)"
    )
    print(f"{setting}\n\n{markdown(rows, baseline)}")
    if args.json:
        args.json.write_text(json.dumps({"setting": setting, "models": rows}, indent=1) + "\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the report; a bad argument ends in one sentence."""
    args = parser().parse_args(argv)
    try:
        run(args)
    except (ValueError, OSError) as error:
        sys.exit(f"throughput: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
