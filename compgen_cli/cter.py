"""``compgen-cter``: the compound translation error rate (CTER) on CoGnition's test set."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from compgen.output import OutputError, write_files
from compgen.scoring import cter, generate_log
from compgen.scoring.cter import CTER, CTERError, Line
from compgen.scoring.cter_strict import StrictRules
from compgen.scoring.signature import signature

PUBLISHED = {
    "--compound": "cognition/data/cg-test/cg-test.compound",
    "--lexicon": "cognition/eval/lexicon",
}
TITLES = {
    "type": "phrase",
    "compound_length": "compound length (words, a modifier's too)",
    "context_length": "context length (tokens outside the compound)",
    "modifier": "modifier (he liked, at the store, on the floor)",
}
COLUMNS = ("id", "type", "source", "compound", "hypothesis", "error", "failed")


def main(argv: list[str] | None = None) -> int:
    """Print CTER and its signature; return 1 if the input cannot be scored."""
    args = _parser().parse_args(argv)
    try:
        compound, lexicon_file = _file(args, "--compound"), _file(args, "--lexicon")
        lexicon = cter.read_lexicon(lexicon_file)
        compounds = cter.read_compounds(compound, lexicon)
        sources, hypotheses = _translations(args, len(compounds))
        try:
            lines = cter.align(sources, compounds, hypotheses)
        except CTERError as error:
            raise CTERError(f"{args.log or args.hypothesis} and {compound}: {error}") from None
        judge = StrictRules(lexicon) if args.strict else partial(cter.judge, lexicon=lexicon)
        failed = [judge(line) for line in lines]
        wrong = [bool(faults) for faults in failed]
        total, groups = cter.rates(wrong), cter.groups(lines, wrong)
        rules = "strict" if args.strict else "published"
        stamp = signature("cter", total.n, rules=rules, lexicon=cter.fingerprint(lexicon))
        as_json = json.dumps(_json(total, groups, stamp))
        texts = {args.per_line: _tsv(lines, failed), args.json_out: f"{as_json}\n"}
        write_files({path: text for path, text in texts.items() if path})
    except (CTERError, generate_log.LogError, OutputError) as error:
        print(f"compgen-cter: {error}", file=sys.stderr)
        return 1
    print(*([as_json] if args.json else [*_table(total, groups), stamp]), sep="\n")
    return 0


def _json(total: CTER, groups: dict[str, dict[str, CTER]], stamp: str) -> dict[str, object]:
    parts = {
        name: {key: _numbers(score) for key, score in members.items()}
        for name, members in groups.items()
    }
    return {"metric": "cter", **_numbers(total), "groups": parts, "signature": stamp}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compgen-cter", description=__doc__)
    text = parser.add_argument_group("what to score: a log, or two aligned files")
    text.add_argument("--log", help="what fairseq-generate printed")
    text.add_argument("--source", metavar="FILE", help="the English sentences")
    text.add_argument("--hypothesis", metavar="FILE", help="their translations")
    parser.add_argument(
        "--compound",
        metavar="FILE",
        help="the compound of each line (default: $COMPGEN_DATA/cognition's cg-test.compound)",
    )
    parser.add_argument(
        "--lexicon",
        metavar="FILE",
        help="the translations of each atom (default: $COMPGEN_DATA/cognition/eval/lexicon)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="let no atom of the context stand in for one of the compound; not comparable with "
        "published numbers",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--json-out", metavar="FILE", help="also write the JSON there")
    parser.add_argument("--per-line", metavar="FILE", help="write each line's verdict as TSV")
    return parser


def _file(args: argparse.Namespace, flag: str) -> Path:
    """The file that a flag names, or its place in ``$COMPGEN_DATA``."""
    given = getattr(args, flag.strip("-"))
    data = os.environ.get("COMPGEN_DATA")
    if not given and not data:
        raise CTERError(
            f"say {flag} FILE, or set COMPGEN_DATA to the folder with {PUBLISHED[flag]}"
        )
    return Path(given or Path(data or "", PUBLISHED[flag]))


def _translations(args: argparse.Namespace, expected: int) -> tuple[list[str], list[str]]:
    """The sources and hypotheses of the log or of the two files."""
    files = (args.source, args.hypothesis)
    if bool(args.log) == any(files) or any(files) != all(files):
        raise CTERError("say --log LOG, or --source FILE and --hypothesis FILE")
    if args.log:
        generation = generate_log.read(args.log, expected)
        return generation.sources, generation.hypotheses
    return cter.read_lines(args.source), cter.read_lines(args.hypothesis)


def _tsv(lines: Sequence[Line], failed: Sequence[Sequence[str]]) -> str:
    """Each line's id, which counts from 0 as in fairseq's logs, and its verdict."""
    rows = [COLUMNS]
    for number, (line, faults) in enumerate(zip(lines, failed, strict=True)):
        text = (line.type, line.source, line.compound, line.hypothesis)
        rows.append((str(number), *text, str(int(bool(faults))), " ".join(faults)))
    return "".join("\t".join(cell.replace("\t", " ") for cell in row) + "\n" for row in rows)


def _numbers(score: CTER) -> dict[str, float]:
    return {"instance": score.instance, "aggregate": score.aggregate, "n": score.n}


def _table(total: CTER, groups: dict[str, dict[str, CTER]]) -> list[str]:
    def row(name: str, score: CTER) -> str:
        return f"{name:12s}{score.instance:10.2f}{score.aggregate:11.2f}{score.n:8d}"

    rows = [f"{'CTER in %':12s}{'instance':>10s}{'aggregate':>11s}{'lines':>8s}", row("all", total)]
    for name, members in groups.items():
        rows += ["", TITLES[name], *(row(f"  {key}", score) for key, score in members.items())]
    return [*rows, ""]


if __name__ == "__main__":
    sys.exit(main())
