"""``compgen-report``: runs over several seeds as one table."""

import argparse
import json
import sys

from compgen_fairseq.cli.output import OutputError, write
from compgen_fairseq.reporting.render import as_json, markdown
from compgen_fairseq.reporting.report import report
from compgen_fairseq.reporting.runs import ReportError, read_run


def main(argv: list[str] | None = None) -> int:
    """Print the tables or the JSON; return 1 if the runs cannot stand in one report."""
    parser = argparse.ArgumentParser(prog="compgen-report", description=__doc__)
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="a folder that train.sh and evaluate.sh of a recipe wrote to",
    )
    parser.add_argument("--out", metavar="FILE", help="write there instead of printing")
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    parser.add_argument(
        "--allow-differences",
        metavar="NAME,...",
        default="",
        help="settings in which the rows may differ, such as max_update,dropout; 'data', 'updates' "
        "(how many were reached) and 'signature' (how scores were counted) can be named as well",
    )
    args = parser.parse_args(argv)
    may_differ = frozenset(filter(None, args.allow_differences.split(",")))
    try:
        found = report([read_run(run, may_differ) for run in args.runs], may_differ)
        text = json.dumps(as_json(found), indent=1) + "\n" if args.json else markdown(found)
        if args.out:
            write(args.out, text)
    except (ReportError, OutputError) as error:
        print(f"compgen-report: {error}", file=sys.stderr)
        return 1
    if not args.out:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
