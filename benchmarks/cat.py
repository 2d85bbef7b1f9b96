"""What primitive composition and representation enhancement cost the encoder of ``--arch cat``.

    python benchmarks/cat.py

Two encoders of the paper's sizes, ``--composition none`` (BERT) and ``codebook`` (CAT), take turns:
one forward and backward pass each over the same random tokens per round. The ratio is the median
over the rounds; time is the process's CPU time, or the clock's on a GPU. Heads and losses are left
out: they depend on the vocabulary and on how many tokens are masked.
"""

import argparse
import statistics
import sys
from types import SimpleNamespace

import throughput as bench  # beside this file
import torch
from fairseq.data import Dictionary

from compgen.ranges import AT_LEAST_1
from compgen_fairseq.models.cat import CATConfig, CATEncoder, CATModel

WORDS = 1000


def build(args: argparse.Namespace, composition: str) -> CATEncoder:
    """The encoder of a model in training mode.

    Raises:
        ValueError: on sizes that can't be.
    """
    dictionary = Dictionary()
    for word in range(WORDS):
        dictionary.add_symbol(f"w{word}")
    cfg = CATConfig(
        encoder_layers=args.layers,
        encoder_embed_dim=args.dim,
        encoder_ffn_embed_dim=4 * args.dim,
        encoder_attention_heads=args.heads,
        dropout=args.dropout,
        attention_dropout=args.dropout,
        codes=args.codes,
        sememe_codes=args.sememes,
        max_positions=args.length,
        composition=composition,
    )
    torch.manual_seed(1)
    return CATModel.build_model(cfg, SimpleNamespace(source_dictionary=dictionary)).encoder.train()


def seconds(encoder: CATEncoder, tokens: torch.Tensor) -> float:
    """The time of one forward and backward pass."""

    def step() -> None:
        encoder.representations(tokens)[0].float().square().mean().backward()

    taken, _ = bench.stopwatch(step, tokens.is_cuda)
    encoder.zero_grad()
    return taken


def parser() -> argparse.ArgumentParser:
    """The command line; the defaults are the paper's sizes."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for flag, default, text in (
        ("--layers", 4, "of the encoder"),
        ("--dim", 768, "width of the encoder"),
        ("--heads", 12, "attention heads"),
        ("--codes", 1000, "in every codebook but the last"),
        ("--sememes", 3152, "codes in the last layer"),
        ("--length", 128, "subwords of a pair of sentences"),
        ("--pairs", 32, "in a batch"),
        ("--rounds", 5, "after one to warm up"),
        ("--threads", 1, "on the CPU"),
    ):
        text = f"{text} (default: %(default)s)"
        p.add_argument(flag, type=AT_LEAST_1.whole, default=default, help=text)
    p.add_argument("--dropout", type=float, default=0.1, help="of all kinds (default: %(default)s)")
    p.add_argument("--bf16", action="store_true", help="in bfloat16")
    return p


def run(args: argparse.Namespace) -> str:
    """Measure; one line of figures.

    Raises:
        ValueError: on sizes that can't be.
    """
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if args.bf16 else torch.float32
    encoders = {c: build(args, c).to(device, dtype) for c in ("none", "codebook")}
    tokens = torch.randint(4, WORDS, (args.pairs, args.length), device=device)
    taken: dict[str, list[float]] = {name: [] for name in encoders}
    for turn in range(args.rounds + 1):
        for name, encoder in encoders.items():
            taken[name] += [seconds(encoder, tokens)] * (turn > 0)
    ratio = statistics.median(
        ours / theirs for ours, theirs in zip(taken["codebook"], taken["none"], strict=True)
    )
    plain, cat = (statistics.median(taken[name]) for name in ("none", "codebook"))
    return f"{device}, {dtype}: plain {plain:.3f} s, CAT {cat:.3f} s, ratio {ratio:.2f}"


def main(argv: list[str] | None = None) -> None:
    """Print the figures; a bad argument ends in one sentence."""
    args = parser().parse_args(argv)
    try:
        print(run(args))
    except ValueError as error:
        sys.exit(f"cat: {error}")


if __name__ == "__main__":
    main()
