"""``compgen-compare``: is one system better than another, or is it luck of the draw?"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from compgen.errors import command
from compgen.ranges import Range
from compgen.scoring import cter, cter_rules
from compgen.scoring.bleu import SCORES
from compgen.scoring.generate_log import Generation, read
from compgen.scoring.signature import signature
from compgen.scoring.significance import (
    BLEU_TESTS,
    RESAMPLES,
    BleuComparison,
    PairedComparison,
    compare_bleu,
    compare_paired,
)
from compgen.text import read_lines
from compgen_cli.parser import Parser
from compgen_cli.score import add_options, bleu_options, bleu_signature

RESAMPLED = Range(1, 10**6, closed=True)
SEED = Range(1, 2**32)  # sacreBLEU takes 0 for no seed
Comparisons = tuple[Mapping[str, PairedComparison | BleuComparison], str]  # by score; signature


def compare_exact_match(a: Generation, b: Generation, args: argparse.Namespace) -> Comparisons:
    targets = references(a, b, args)

    def right(system: Generation) -> list[bool]:
        return [h == t for h, t in zip(system.hypotheses, targets, strict=True)]

    found = compare_paired(right(a), right(b), args.resamples, args.seed)
    return {"exact_match": found}, _signature(args, len(targets))


def compare_cter(a: Generation, b: Generation, args: argparse.Namespace) -> Comparisons:
    """Compare by groups of lines: what shares a compound is not drawn independently."""
    if not (args.compound and args.lexicon):
        raise ValueError("say --compound FILE and --lexicon FILE: those of the data folder's cter")
    rules = cter_rules.load(args.lexicon, args.strict)
    compounds = rules.read_compounds(args.compound)

    def wrong(log: str, system: Generation) -> list[list[bool]]:
        try:
            return rules.wrong(system.sources, compounds, system.hypotheses)
        except cter.CTERError as error:
            raise ValueError(f"{log} and {args.compound}: {error}") from None

    first, second = wrong(args.a, a), wrong(args.b, b)
    if len(sizes := set(map(len, first))) > 1:
        raise ValueError(
            f"{args.compound}: compounds have from {min(sizes)} to {max(sizes)} lines; they can be "
            "compared if all have the same number"
        )

    def compare(value: Callable[[Sequence[bool]], float]) -> PairedComparison:
        values = [value(group) for group in first], [value(group) for group in second]
        return compare_paired(*values, args.resamples, args.seed)

    rates = {"instance": compare(lambda group: sum(group) / len(group)), "aggregate": compare(any)}
    stated = {"rules": rules.name, "lexicon": cter.fingerprint(rules.lexicon)}
    return rates, _signature(args, len(compounds), **stated)


def compare_by_bleu(a: Generation, b: Generation, args: argparse.Namespace) -> Comparisons:
    found = compare_bleu(
        a.hypotheses,
        b.hypotheses,
        references(a, b, args),
        bleu_options(args),
        args.test,
        args.resamples,
        args.seed,
    )
    return {args.metric: found}, bleu_signature(found.signature, args)


METRICS: dict[str, Callable[[Generation, Generation, argparse.Namespace], Comparisons]] = {
    "exact_match": compare_exact_match,
    "bleu": compare_by_bleu,
    "chrf": compare_by_bleu,
    "cter": compare_cter,
}


def references(a: Generation, b: Generation, args: argparse.Namespace) -> list[str]:
    """The references both systems are compared with.

    Raises:
        ValueError: if there are none, or those of the two logs differ.
    """
    if args.reference:
        return read_lines(args.reference, len(a.sources))
    for log, system in ((args.a, a), (args.b, b)):
        if not system.targets:
            raise ValueError(f"{log}: it has no references (T- lines); say --reference FILE")
    _same(a.targets, b.targets, "reference", args)
    return a.targets


def _same(a: list[str], b: list[str], what: str, args: argparse.Namespace) -> None:
    """Refuse two systems that were not given the same sentences."""
    if len(a) != len(b):
        raise ValueError(f"{args.a} has {len(a)} sentences and {args.b} has {len(b)}")
    for i, (first, second) in enumerate(zip(a, b, strict=True)):
        if first != second:
            raise ValueError(
                f"{args.a} and {args.b} are not about the same sentences: the {what} of id {i} is "
                f"{first!r} in the one and {second!r} in the other"
            )


def _signature(args: argparse.Namespace, n: int, **settings: str) -> str:
    options = {"test": "binomial", "bs": str(args.resamples), "seed": str(args.seed)}
    return signature(args.metric, n, **settings, **options)


def describe(name: str, found: PairedComparison | BleuComparison, test: str) -> str:
    """One comparison in words, in lines of a width."""
    a, b, interval = f"{found.a:8.2f}", f"{found.b:8.2f}", ""
    if isinstance(found, PairedComparison):
        interval = "  95% interval [{:+.2f}, {:+.2f}]".format(*found.interval)
        about = (
            f"exact binomial test: of {found.n}, A is higher in {found.a_higher} "
            f"and B in {found.b_higher}"
        )
    else:
        about = BLEU_TESTS[test]
        if found.a_interval is not None and found.b_interval is not None:
            a, b = f"{a} ± {found.a_interval:.2f}", f"{b} ± {found.b_interval:.2f}"
    p = f"{found.p_value:8.4f}" if found.p_value >= 0.0001 else "< 0.0001"
    rows = {"A": a, "B": b, "B - A": f"{found.difference:+8.2f}{interval}", "p": f"{p}  ({about})"}
    return "\n".join([name, *(f"  {key:6}{text}" for key, text in rows.items())])


@command("compgen-compare")
def main(argv: list[str] | None = None) -> int:
    """Print the scores, their difference and its significance; return 1 if there are none."""
    parser = Parser(prog="compgen-compare", description=__doc__)
    parser.add_argument("a", metavar="A", help="what fairseq-generate printed for one system")
    parser.add_argument("b", metavar="B", help="what it printed for another on the same sentences")
    parser.add_argument("--metric", choices=METRICS, default="exact_match")
    parser.add_argument("--seed", type=SEED.whole, default=12345, help="of the resamples")
    parser.add_argument(
        "--resamples",
        type=RESAMPLED.whole,
        metavar="N",
        help="how many resamples or trials (default: 1000; 10000 with --test ar)",
    )
    add_options(parser)
    parser.add_argument(
        "--test",
        choices=BLEU_TESTS,
        default="bs",
        help="BLEU and chrF: paired bootstrap (default) or approximate randomization; exact match "
        "and CTER have a bootstrap interval and an exact test",
    )
    group = parser.add_argument_group("CTER")
    group.add_argument("--compound", metavar="FILE", help="the compound of each line")
    group.add_argument("--lexicon", metavar="FILE", help="the translations of each atom")
    group.add_argument("--strict", action="store_true", help="compgen-cter's strict rules")
    args = parser.parse_args(argv)
    if args.test != "bs" and args.metric not in SCORES:
        parser.error(f"--test {args.test} is for BLEU and chrF only")
    args.resamples = args.resamples or RESAMPLES[args.test]

    a, b = read(args.a, args.expected), read(args.b, args.expected)
    _same(a.sources, b.sources, "source", args)
    found, stamp = METRICS[args.metric](a, b, args)
    if args.json:
        scores: dict[str, Any] = {
            name: {**asdict(one), "difference": one.difference} for name, one in found.items()
        }
        for numbers in scores.values():
            numbers.pop("signature", None)
        logs = {"metric": args.metric, "a": args.a, "b": args.b}
        print(json.dumps({**logs, "scores": scores, "signature": stamp}))
    else:
        print(*(describe(name, one, args.test) for name, one in found.items()), stamp, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
