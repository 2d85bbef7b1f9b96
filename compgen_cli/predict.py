"""``compgen-predict``: what a fine-tuned model says of each sentence, and how often it is right.

For checkpoints of fairseq's task ``sentence_prediction``. Classes are scored by accuracy, numbers
by Pearson's and Spearman's correlation, all in percent.
"""

import json
import logging
from typing import Any

from compgen.errors import command
from compgen.output import write_files
from compgen.ranges import AT_LEAST_1
from compgen_cli.parser import Parser, add_user_dir


def _lines(scored: dict[str, Any]) -> list[str]:
    if scored["metric"] == "pearson":
        numbers = f"{scored['score']:.2f}, spearman {scored['spearman']:.2f}"
        return [f"pearson {numbers} ({scored['total']} sentences)"]
    rows = {"": scored, **{f" of {name}": found for name, found in scored["classes"].items()}}
    return [
        f"accuracy{what} {row['score']:.2f} ({row['correct']} / {row['total']})"
        for what, row in rows.items()
    ]


@command("compgen-predict")
def main(argv: list[str] | None = None) -> int:
    """Print the scores; errors end in one sentence."""
    parser = Parser(prog="compgen-predict", description=__doc__)
    add = parser.add_argument
    add("checkpoint", help="a fine-tuned checkpoint")
    add("data", help="the data folder, with input0 and label")
    add("--subset", default="test", help="default: %(default)s")
    add("--label", help="score only the sentences of this class: PAWS's non-paraphrases are 0")
    add("--out", metavar="FILE", help="write label and prediction there, a line per sentence")
    text = "subwords in a batch (default: %(default)s)"
    add("--max-tokens", type=AT_LEAST_1.whole, default=8192, metavar="N", help=text)
    add("--cpu", action="store_true", help="use no GPU")
    add("--json", action="store_true", help="print JSON")
    add("--json-out", metavar="FILE", help="also write the JSON there")
    add_user_dir(parser)
    args = parser.parse_args(argv)

    from compgen_fairseq.analysis.predictions import predict, score

    logging.getLogger("fairseq").setLevel(logging.ERROR)
    logging.getLogger("compgen_fairseq").setLevel(logging.WARNING)
    found = predict(args)
    scored = score(found, args.subset, args.label)
    rows = (f"{label}\t{answer}\n" for label, answer in zip(*found, strict=True))
    write_files((args.out, rows), (args.json_out, f"{json.dumps(scored)}\n"))
    print(json.dumps(scored) if args.json else "\n".join(_lines(scored)))
    return 0
