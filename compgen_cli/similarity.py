"""``compgen-similarity``: do cosines of [CLS] agree with what people say of pairs of phrases?"""

import json
import logging

from compgen.errors import command
from compgen.output import write_files
from compgen_cli.parser import Parser, add_user_dir


@command("compgen-similarity")
def main(argv: list[str] | None = None) -> int:
    """Print the correlations; errors end in one sentence."""
    parser = Parser(prog="compgen-similarity", description=__doc__)
    add = parser.add_argument
    add("checkpoint", help="of arch cat")
    add("data", help="the folder that prepare/bird.sh made with the data of pre-training")
    add("--subset", default="test", help="test: all pairs (the default); test1: BiRD-ABBA")
    text = "whose states (default: all; the JSON's score is then that of the checkpoint's own)"
    add("--representation", choices=("cont", "comp", "mix", "all"), default="all", help=text)
    add("--cpu", action="store_true", help="use no GPU")
    add("--json", action="store_true", help="print JSON")
    add("--json-out", metavar="FILE", help="also write the JSON there")
    add_user_dir(parser)
    args = parser.parse_args(argv)

    from compgen_fairseq.analysis.similarity import measure

    logging.getLogger("fairseq").setLevel(logging.ERROR)
    logging.getLogger("compgen_fairseq").setLevel(logging.WARNING)
    measured = measure(args)
    write_files((args.json_out, f"{json.dumps(measured)}\n"))
    if args.json:
        print(json.dumps(measured))
        return 0
    for name, value in measured["representations"].items():
        shown = "undefined" if value is None else f"{value:.2f}"
        print(f"{name}\t{shown}\t({measured['total']} pairs of {args.subset})")
    return 0
