"""``compgen-compare``: is one system better than another, or is it luck of the draw?"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compgen.errors import command
from compgen.ranges import Range
from compgen.scoring.bleu import SCORES, BleuOptions
from compgen.scoring.generate_log import Generation, read
from compgen.scoring.metrics import BleuMetric, CterMetric, Metric
from compgen.scoring.significance import (
    BLEU_TESTS,
    RESAMPLES,
    BleuComparison,
    PairedComparison,
    compare_bleu,
    compare_paired,
)
from compgen_cli.parser import Parser
from compgen_cli.score import add_options, bleu_options, metric_of

RESAMPLED = Range(1, 10**6, closed=True)
SEED = Range(1, 2**32)  # sacreBLEU takes 0 for no seed
METRICS = ("exact_match", *SCORES, "cter")
Comparison = PairedComparison | BleuComparison


def compare(
    a: Generation, b: Generation, args: argparse.Namespace
) -> tuple[Mapping[str, Comparison], str]:
    """Compare two systems sentence by sentence, or by groups of sentences that share a compound.

    Returns:
        The comparison of each score, and their signature.

    Raises:
        ValueError: if what they are to be compared by is missing or not the same.
    """
    if args.metric == "cter":
        if not (args.compound and args.lexicon):
            raise ValueError(
                "say --compound FILE and --lexicon FILE: those of the data folder's cter"
            )
        if args.reference or bleu_options(args) != BleuOptions():
            raise ValueError("--reference and BLEU's options are not for CTER")
        metric: Metric = CterMetric(args.compound, args.lexicon, args.strict)
    else:
        if args.compound or args.lexicon or args.strict:
            raise ValueError("--compound, --lexicon, --strict: for CTER only")
        metric = metric_of(args)
        if not args.reference:
            _same(a.references(), b.references(), "reference", args)
    if isinstance(metric, BleuMetric):
        texts = a.hypotheses, b.hypotheses, metric.references(a)
        found = compare_bleu(*texts, metric.how, args.test, args.resamples, args.seed)
        return {metric.name: found}, metric.stamped(found.signature)
    first, second = metric.values(a), metric.values(b)
    if isinstance(metric, CterMetric) and "instance" not in first:
        print("instance: not compared, as compounds differ in number of lines", file=sys.stderr)
    compared = {
        metric.name if name == "score" else name: compare_paired(
            first[name], second[name], args.resamples, args.seed
        )
        for name in first
    }
    test = {"test": "permutation", "bs": str(args.resamples), "seed": str(args.seed)}
    return compared, metric.signature(len(a.sources), **test)


def _same(a: list[str], b: list[str], what: str, args: argparse.Namespace) -> None:
    """Refuse two systems that were not given the same sentences."""
    if len(a) != len(b):
        raise ValueError(f"{args.a} has {len(a)} sentences and {args.b} has {len(b)}")
    for i, (first, second) in enumerate(zip(a, b, strict=True)):
        if first != second and "" not in (first, second):  # plain text has no sources
            raise ValueError(
                f"{args.a} and {args.b} are not about the same sentences: the {what} of id {i} is "
                f"{first!r} in the one and {second!r} in the other"
            )


def describe(name: str, found: Comparison, test: str) -> str:
    """One comparison in words, in lines of a width."""
    a, b, interval = f"{found.a:8.2f}", f"{found.b:8.2f}", ""
    if isinstance(found, PairedComparison):
        interval = "  95% interval [{:+.2f}, {:+.2f}]".format(*found.interval)
        about = (
            f"paired permutation test: of {found.n}, A is higher in {found.a_higher} "
            f"and B in {found.b_higher}"
        )
    else:
        about = BLEU_TESTS[test]
        if found.a_interval is not None and found.b_interval is not None:
            a, b = f"{a} ± {found.a_interval:.2f}", f"{b} ± {found.b_interval:.2f}"
    p = f"{found.p_value:8.4f}" if found.p_value >= 0.0001 else "< 0.0001"
    rows = {"A": a, "B": b, "B - A": f"{found.b - found.a:+8.2f}{interval}", "p": f"{p}  ({about})"}
    return "\n".join([name, *(f"  {key:6}{text}" for key, text in rows.items())])


@command("compgen-compare")
def main(argv: list[str] | None = None) -> int:
    """Print the scores, their difference and its significance; return 1 if there are none."""
    parser = Parser(prog="compgen-compare", description=__doc__)
    parser.add_argument("a", metavar="A", help="what fairseq-generate printed for one system")
    parser.add_argument("b", metavar="B", help="what it printed for another on the same sentences")
    parser.add_argument(
        "--metric", choices=METRICS, default=METRICS[0], help=f"default: {METRICS[0]}"
    )
    parser.add_argument("--seed", type=SEED.whole, default=12345, help="of the resamples")
    text = "how many resamples or trials (default: 1000; 10000 with --test ar)"
    parser.add_argument("--resamples", type=RESAMPLED.whole, metavar="N", help=text)
    add_options(parser)
    text = (
        "BLEU and chrF: paired bootstrap (default) or approximate randomization; exact match and "
        "CTER have a bootstrap interval and a permutation test"
    )
    parser.add_argument("--test", choices=BLEU_TESTS, default="bs", help=text)
    group = parser.add_argument_group("CTER")
    group.add_argument("--compound", metavar="FILE", help="the compound of each line")
    group.add_argument("--lexicon", metavar="FILE", help="the translations of each atom")
    group.add_argument("--strict", action="store_true", help="compgen-cter's strict rules")
    args = parser.parse_args(argv)
    if args.test != "bs" and args.metric not in SCORES:
        parser.error(f"--test {args.test} is for BLEU and chrF only")
    args.resamples = args.resamples or RESAMPLES[args.test]

    for log in filter(os.path.isdir, (args.a, args.b)):
        raise ValueError(f"{log} is a folder: name a log in it; compgen-report compares runs")
    a, b = (read(log, args.expected, plain=bool(args.reference)) for log in (args.a, args.b))
    _same(a.sources, b.sources, "source", args)
    found, stamp = compare(a, b, args)
    if args.json:
        scores: dict[str, Any] = {
            name: {**asdict(one), "difference": one.b - one.a} for name, one in found.items()
        }
        for numbers in scores.values():
            numbers.pop("signature", None)
        logs = {"metric": args.metric, "a": args.a, "b": args.b}
        print(json.dumps({**logs, "scores": scores, "signature": stamp}))
    else:
        print(*(describe(name, one, args.test) for name, one in found.items()), stamp, sep="\n")
    return 0
