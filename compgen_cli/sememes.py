"""``compgen-sememes``: what a CAT checkpoint decomposes the words of a text into."""

import json
import logging

from compgen.errors import command
from compgen.ranges import AT_LEAST_1
from compgen_cli.parser import Parser, add_user_dir


@command("compgen-sememes")
def main(argv: list[str] | None = None) -> int:
    """Print the codes of most weight for each word; errors end in one sentence."""
    parser = Parser(prog="compgen-sememes", description=__doc__)
    add = parser.add_argument
    add("checkpoint", help="from --task cat_pretraining")
    add("data", help="the folder that prepare/pretraining.sh made")
    add("words", nargs="+", metavar="WORD", help="a word of the text")
    add("--subset", default="valid", help="where the words are looked for (default: %(default)s)")
    text = "codes shown per word (default: %(default)s)"
    add("--top", type=AT_LEAST_1.whole, default=8, metavar="N", help=text)
    text = "counted from 1 (default: the last, of sememes)"
    add("--layer", type=AT_LEAST_1.whole, metavar="N", help=text)
    add("--json", action="store_true", help="print JSON")
    add_user_dir(parser)
    args = parser.parse_args(argv)

    from compgen_fairseq.analysis.sememes import describe

    logging.getLogger("fairseq").setLevel(logging.WARNING)
    rows = describe(args)
    if args.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    for row in rows:
        right = "" if row["right"] is None else f", {row['right']:.1%} of the weight is annotated"
        print(f"{row['word']}: {row['occurrences']} times, {row['zeros']:.1%} zeros{right}")
        for code in row["codes"]:
            mark = "*" if code["annotated"] else " "
            print(f"  {mark} {code['weight']:8.4f} {code['used']:6.1%}  {code['code']}")
    return 0
