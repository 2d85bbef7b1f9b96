"""``compgen-score``: score a saved log of fairseq-generate."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compgen.errors import command
from compgen.output import write
from compgen.ranges import AT_LEAST_1
from compgen.scoring.bleu import DETOKENIZERS, SCORES, TOKENIZERS, BleuOptions, bleu
from compgen.scoring.cogs import LEXICAL, STRUCTURAL, cogs
from compgen.scoring.exact_match import ExactMatch, exact_match
from compgen.scoring.generate_log import Generation, read
from compgen.scoring.signature import signature
from compgen.text import read_lines
from compgen_cli.parser import Parser

# What is printed as text, what stands in the JSON, and the signature.
Result = tuple[str, dict[str, Any], str]


def score_exact_match(generation: Generation, args: argparse.Namespace) -> Result:
    score = exact_match(generation.hypotheses, references(generation, args))
    named = {"ref": Path(args.reference).name} if args.reference else {}
    return str(score), _numbers(score), signature("exact_match", score.total, **named)


def score_bleu(generation: Generation, args: argparse.Namespace) -> Result:
    from sacrebleu.metrics.bleu import BLEUScore

    targets, options = references(generation, args), bleu_options(args)
    score, stamp = bleu(generation.hypotheses, targets, options)
    numbers: dict[str, Any] = {"score": score.score, "total": len(targets)}
    if isinstance(score, BLEUScore):
        numbers |= {"precisions": score.precisions, "brevity_penalty": score.bp}
    return str(score), numbers, bleu_signature(stamp, args)


def score_cogs(generation: Generation, args: argparse.Namespace) -> Result:
    if not args.cases:
        raise ValueError("say --cases FILE, one case per line: cases/test.case of the data folder")
    cases = read_lines(args.cases, len(generation.hypotheses))
    try:
        score = cogs(generation.hypotheses, references(generation, args), cases)
    except ValueError as error:
        raise ValueError(f"{args.cases}: {error}") from None
    numbers = {
        **_numbers(score.overall),
        "macro": score.average(),
        "lexical": score.average(LEXICAL),
        "structural": score.average(STRUCTURAL),
        "cases": {case: _numbers(found) for case, found in score.cases.items()},
    }
    if score.in_distribution.total:
        numbers["in_distribution"] = _numbers(score.in_distribution)
    stamp = signature("cogs", score.overall.total, cases=str(len(score.cases)))
    return str(score), numbers, stamp


METRICS: dict[str, Callable[[Generation, argparse.Namespace], Result]] = {
    "exact_match": score_exact_match,
    "bleu": score_bleu,
    "chrf": score_bleu,
    "cogs": score_cogs,
}


def _numbers(score: ExactMatch) -> dict[str, Any]:
    return {"score": score.percent, "correct": score.correct, "total": score.total}


def references(generation: Generation, args: argparse.Namespace) -> list[str]:
    """The lines of ``--reference`` if that is given, else what the log has.

    Raises:
        ValueError: if there are none, or not one for each sentence.
    """
    if args.reference:
        return read_lines(args.reference, len(generation.sources))
    if not generation.targets:
        raise ValueError(f"{args.log}: it has no references (T- lines)")
    return generation.targets


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say what sentences are compared with, and how BLEU is counted."""
    parser.add_argument(
        "--expected",
        type=AT_LEAST_1.whole,
        metavar="N",
        help="the number of sentences that were to be translated; by default the log says it",
    )
    parser.add_argument(
        "--reference",
        metavar="FILE",
        help="the references in the order of the data set, instead of the log's, "
        "in which unknown words are lost",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group(
        "BLEU and chrF", "CoGnition: --detokenize chinese --tokenize zh"
    )
    group.add_argument(
        "--tokenize", choices=TOKENIZERS, default="13a", help="sacreBLEU's, for BLEU"
    )
    group.add_argument(
        "--detokenize",
        choices=DETOKENIZERS,
        default="none",
        help="put hypotheses and references back into plain text first: join @@ subwords, then "
        "remove every space (chinese) or use sacremoses (moses)",
    )
    group.add_argument("--lang", default="en", help="the target language, for moses (default: en)")
    group.add_argument("--lowercase", action="store_true", help="compare without case")


def bleu_options(args: argparse.Namespace) -> BleuOptions:
    """What the flags of :func:`add_options` say about BLEU or chrF."""
    score = args.metric if args.metric in SCORES else "bleu"
    return BleuOptions(args.tokenize, args.detokenize, args.lang, args.lowercase, score)


def bleu_signature(stamp: str, args: argparse.Namespace) -> str:
    """The library's signature of a BLEU score, and which references it is about."""
    return (
        f"metric:{args.metric}|ref:{Path(args.reference).name if args.reference else 'log'}|{stamp}"
    )


@command("compgen-score")
def main(argv: list[str] | None = None) -> int:
    """Print the score and its signature; return 1 if the log cannot be scored."""
    parser = Parser(prog="compgen-score", description=__doc__)
    parser.add_argument("log", help="what fairseq-generate printed")
    parser.add_argument("--metric", choices=METRICS, default="exact_match")
    add_options(parser)
    group = parser.add_argument_group("COGS")
    group.add_argument(
        "--cases",
        metavar="FILE",
        help="the generalization case of each sentence, one per line: DATA/cases/test.case",
    )
    parser.add_argument("--json-out", metavar="FILE", help="also write the JSON there")
    args = parser.parse_args(argv)

    generation = read(args.log, args.expected)
    text, numbers, stamp = METRICS[args.metric](generation, args)
    as_json = json.dumps({"metric": args.metric, **numbers, "signature": stamp})
    if args.json_out:
        write(args.json_out, f"{as_json}\n")
    print(*([as_json] if args.json else [text, stamp]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
