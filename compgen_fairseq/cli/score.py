"""``compgen-score``: score a saved log of fairseq-generate."""

import argparse
import json
import sys
from collections.abc import Callable

from compgen_fairseq.scoring.exact_match import ExactMatch, exact_match
from compgen_fairseq.scoring.generate_log import Generation, LogError, read
from compgen_fairseq.scoring.signature import signature

METRICS: dict[str, Callable[[Generation], ExactMatch]] = {
    "exact_match": lambda generation: exact_match(generation.hypotheses, generation.targets),
}


def main(argv: list[str] | None = None) -> int:
    """Print the score and its signature; return 1 if the log cannot be scored."""
    parser = argparse.ArgumentParser(prog="compgen-score", description=__doc__)
    parser.add_argument("log", help="what fairseq-generate printed")
    parser.add_argument("--metric", choices=METRICS, default="exact_match")
    parser.add_argument(
        "--expected",
        type=int,
        metavar="N",
        help="the number of sentences that were to be translated; by default the log says it",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)

    try:
        generation = read(args.log, args.expected)
        if not generation.targets:
            raise LogError(f"{args.log}: it has no references (T- lines)")
    except LogError as error:
        print(f"compgen-score: {error}", file=sys.stderr)
        return 1
    score = METRICS[args.metric](generation)
    stamp = signature(args.metric, score.total)
    if args.json:
        numbers = {"score": score.percent, "correct": score.correct, "total": score.total}
        print(json.dumps({"metric": args.metric, **numbers, "signature": stamp}))
    else:
        print(score, stamp, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
