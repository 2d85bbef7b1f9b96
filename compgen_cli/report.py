"""``compgen-report``: runs over several seeds as tables, or as a page with their curves."""

import json
import sys
from pathlib import Path

from compgen.errors import command
from compgen.output import write_files
from compgen.reporting import pictures
from compgen.reporting.comparison import compare
from compgen.reporting.curves import curves
from compgen.reporting.render import as_json, markdown
from compgen.reporting.report import report_of
from compgen_cli.parser import Parser


@command("compgen-report")
def main(argv: list[str] | None = None) -> int:
    """Print the tables or the JSON; return 1 if the runs cannot stand in one report."""
    parser = Parser(prog="compgen-report", description=__doc__)
    text = "a folder that train.sh and evaluate.sh of a recipe wrote to, or a folder of results"
    parser.add_argument("runs", nargs="+", metavar="RUN", help=text)
    parser.add_argument("--out", metavar="FILE", help="write there instead of printing")
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    text = (
        "write a page with everything, the learning curves and figures too; without --out and "
        "--json nothing else is shown"
    )
    parser.add_argument("--html", metavar="FILE", help=text)
    text = "folders of pictures that compgen-analyze made, besides those in the runs"
    parser.add_argument("--figures", metavar="FOLDER", nargs="+", default=[], help=text)
    text = (
        "the row that the others are tested against (default: the first plain Transformer, or else "
        "the first row)"
    )
    parser.add_argument("--baseline", metavar="LABEL", help=text)
    text = (
        "settings in which the rows may differ, such as max_update,dropout; 'data', 'updates' (how "
        "many were reached) and 'signature' (how scores were counted) can be named as well"
    )
    parser.add_argument("--allow-differences", metavar="NAME,...", default="", help=text)
    args = parser.parse_args(argv)
    found = report_of(args.runs, args.allow_differences)
    compared = compare(found, args.baseline)
    drawn = curves(found)
    found_pictures = pictures.find(map(Path, args.runs), map(Path, args.figures))
    text = page = ""
    if args.html:
        from compgen.reporting.html import html

        words = ["compgen-report", *(sys.argv[1:] if argv is None else argv)]
        page = html(found, compared, drawn, found_pictures, words)
    if args.json:
        text = json.dumps(as_json(found, compared), indent=1) + "\n"
    elif args.out or not args.html:
        beside = Path(args.html) if args.html else None
        folder = Path(args.out).parent if args.out else Path()
        text = markdown(found, compared, drawn, found_pictures, beside, folder)
    write_files((args.html, page), (args.out, text))
    if page:
        print(f"compgen-report: {args.html} holds everything", file=sys.stderr)
    if not args.out:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
