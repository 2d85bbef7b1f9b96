"""``compgen-score``: score a saved log of fairseq-generate."""

import argparse
import json
from dataclasses import replace
from typing import Any

from compgen.errors import command
from compgen.output import write_files
from compgen.ranges import AT_LEAST_1
from compgen.scoring.bleu import DETOKENIZERS, SCORES, TOKENIZERS, BleuOptions
from compgen.scoring.generate_log import read
from compgen.scoring.metrics import BleuMetric, CogsMetric, ExactMatchMetric, Metric, Score
from compgen_cli.parser import Parser

METRICS = ("exact_match", *SCORES, "cogs")


def bleu_options(args: argparse.Namespace) -> BleuOptions:
    """How BLEU is to be counted."""
    return BleuOptions(args.tokenize, args.detokenize, args.lang, args.lowercase)


def metric_of(args: argparse.Namespace) -> Metric:
    """The metric that the flags choose, but for CTER.

    Raises:
        ValueError: if COGS has no cases, or an option is for other metrics.
    """
    how = bleu_options(args)
    if args.metric == "chrf" and args.tokenize != BleuOptions().tokenize:
        raise ValueError("--tokenize is for BLEU only: chrF counts characters")
    if args.metric != "cogs" and getattr(args, "cases", None):
        raise ValueError("--cases: for COGS only")
    if args.lang != BleuOptions().language and args.detokenize != "moses":
        raise ValueError("--lang: for --detokenize moses only")
    if args.metric in SCORES:
        return BleuMetric(replace(how, score=args.metric), args.reference)
    if how != BleuOptions():
        raise ValueError("--tokenize, --detokenize, --lang, --lowercase: for BLEU and chrF only")
    if args.metric == "exact_match":
        return ExactMatchMetric(args.reference)
    if not args.cases:
        raise ValueError("say --cases FILE, one case per line: cases/test.case of the data folder")
    return CogsMetric(args.cases, args.reference)


def as_json(metric: Metric, score: Score) -> dict[str, Any]:
    """A score with its signature and the metric's options, if it has any."""
    options = {"options": metric.options} if metric.options else {}
    return {"metric": metric.name, **score.numbers, "signature": score.signature, **options}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say what sentences are compared with, and how BLEU is counted."""
    text = "how many sentences the log must have (default: the number it states)"
    parser.add_argument("--expected", type=AT_LEAST_1.whole, metavar="N", help=text)
    text = (
        "references in the order of the data set; the log's have lost their unknown words. With "
        "it, instead of a log, a text with one hypothesis a line will do"
    )
    parser.add_argument("--reference", metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group(
        "BLEU and chrF", "CoGnition: --detokenize chinese --tokenize zh"
    )
    text = "sacreBLEU's tokenizer, for BLEU"
    group.add_argument("--tokenize", choices=TOKENIZERS, default="13a", help=text)
    text = (
        "put hypotheses and references back into plain text first: join subwords, then do no more "
        "(subwords), remove every space (chinese) or use sacremoses (moses)"
    )
    group.add_argument("--detokenize", choices=DETOKENIZERS, default="none", help=text)
    text = (
        "the target language's code, for moses; one without rules of its own gets the general ones "
    )
    group.add_argument("--lang", type=str.lower, default="en", help=f"{text}(default: en)")
    group.add_argument("--lowercase", action="store_true", help="compare without case")


@command("compgen-score")
def main(argv: list[str] | None = None) -> int:
    """Print the score and its signature; return 1 if the log cannot be scored."""
    parser = Parser(prog="compgen-score", description=__doc__)
    parser.add_argument("log", help="what fairseq-generate printed")
    parser.add_argument(
        "--metric", choices=METRICS, default=METRICS[0], help=f"default: {METRICS[0]}"
    )
    add_options(parser)
    group = parser.add_argument_group("COGS")
    text = (
        "the generalization case of each sentence, one per line: DATA/cases/test.case, or a file "
        "with names of your own, which have no lexical and structural average"
    )
    group.add_argument("--cases", metavar="FILE", help=text)
    text = "also write the JSON there; compgen-report reads METRIC.best.json or SUBSET.last.json"
    parser.add_argument("--json-out", metavar="FILE", help=text)
    args = parser.parse_args(argv)

    metric = metric_of(args)
    score = metric.score(read(args.log, args.expected, plain=bool(args.reference)))
    found = json.dumps(as_json(metric, score))
    write_files((args.json_out, f"{found}\n"))
    print(*([found] if args.json else [score.text, score.signature]), sep="\n")
    return 0
