"""``compgen-cter``: the compound translation error rate (CTER), of CoGnition's compounds or own."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from compgen.errors import command
from compgen.output import write_files
from compgen.scoring import cter, cter_agreement, cter_rules, generate_log
from compgen.scoring.cter import CTER, CTERError, Line
from compgen.scoring.cter_rules import GROUPINGS, OwnLexicon, Rules
from compgen.scoring.signature import signature
from compgen_cli.parser import Parser

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
COLUMNS = ("id", "type", "source", "compound", "hypothesis", "error")
Verdicts = Sequence[tuple[str, ...]]  # what is wrong with each line


@command("compgen-cter")
def main(argv: list[str] | None = None) -> int:
    """Print CTER and its signature; return 1 if the input cannot be scored."""
    args = _parser().parse_args(argv)
    if args.why and not args.per_line:
        raise CTERError("--why is a column of --per-line FILE; say that, too")
    lexicon = _file(args, "--lexicon")
    if args.check:
        return _check(args, lexicon)
    rules = cter_rules.load(lexicon, args.strict)
    score, table, rows = (_against if args.against else _score)(args, rules)
    texts = {args.per_line: rows, args.json_out: f"{json.dumps(score)}\n"}
    write_files({path: text for path, text in texts.items() if path})
    print(*([json.dumps(score)] if args.json else [*table, score["signature"]]), sep="\n")
    return 0


Result = tuple[dict[str, object], list[str], Iterator[str]]  # JSON, a table, lines for --per-line


def _check(args: argparse.Namespace, lexicon: Path) -> int:
    """Name every bad line of a lexicon and its compounds; 1 if there is one."""
    lines = cter.read_lines(lexicon)
    own = OwnLexicon.of(lines)
    bad = [(lexicon, *one) for one in own.bad] if cter_rules.is_own(lines) else []
    compounds: list[str] = []
    if not bad:
        rules, path = cter_rules.load(lexicon), _file(args, "--compound")
        compounds = cter.read_lines(path) if rules.name == "own" else rules.read_compounds(path)
        if rules.name == "own":
            bad = [(path, *one) for one in rules.bad_compounds(compounds)]
    for path, number, text in bad:
        print(f"{path}, line {number}: {text}")
    if not bad:
        print(
            f"{len(rules.translations)} atoms, {len(set(compounds))} compounds in "
            f"{len(compounds)} lines: nothing is wrong with them"
        )
    return 1 if bad else 0


def _score(args: argparse.Namespace, rules: Rules) -> Result:
    """CTER by one set of rules."""
    compound = _file(args, "--compound")
    compounds = rules.read_compounds(compound)
    sources, hypotheses = _translations(args, len(compounds))
    try:
        lines = cter.align(sources, compounds, hypotheses, rules.parse)
    except CTERError as error:
        raise CTERError(f"{args.log or args.hypothesis} and {compound}: {error}") from None
    failed = list(map(rules.judge, lines))
    wrong, group_of = list(map(bool, failed)), rules.group_of(lines)
    total, groups = cter.rates(wrong, None, group_of), cter.groups(lines, wrong, group_of)
    if rules.name == "own":
        groups = {name: groups[name] for name in GROUPINGS}
    stamp = signature("cter", total.n, rules=rules.name, lexicon=cter.fingerprint(rules.lexicon))
    explain = rules.explain if args.why else None
    rows = _tsv(lines, wrong, {"failed": failed}, explain, range(len(lines)))
    return _json(total, groups, stamp), _table(total, groups), rows


def _against(args: argparse.Namespace, published: Rules) -> Result:
    """How well the verdicts of both sets of rules agree with people's."""
    if args.log or args.source or args.hypothesis or args.compound or args.strict:
        raise CTERError("--against FILE holds all lines and is for both rules: say only --lexicon")
    strict = cter_rules.load(_file(args, "--lexicon"), strict=True)
    lines, people = cter_agreement.read_verdicts(args.against, published.lexicon)
    failed = {rules.name: list(map(rules.judge, lines)) for rules in (published, strict)}
    verdicts = {"people": people} | {name: list(map(bool, found)) for name, found in failed.items()}
    types = ("all", *cter.TYPES)
    members = {t: [i for i, line in enumerate(lines) if t in ("all", line.type)] for t in types}
    scores = {
        kind: {
            name: cter_agreement.agreement(
                [people[i] for i in chosen], [verdicts[name][i] for i in chosen]
            )
            for name in failed
        }
        for kind, chosen in members.items()
        if chosen
    }
    rates = {name: cter.rates(wrong) for name, wrong in verdicts.items()}
    stamp = signature("cter-agreement", len(lines), lexicon=cter.fingerprint(published.lexicon))
    table = [
        f"{'errors found, in %':20s}{'published: P':>13s}{'R':>8s}{'F1':>8s}"
        f"{'strict: P':>13s}{'R':>8s}{'F1':>8s}{'lines':>8s}"
    ]
    for kind, by_rules in scores.items():
        cells = "".join(
            f"{score.precision:13.2f}{score.recall:8.2f}{score.f1:8.2f}"
            for score in by_rules.values()
        )
        table.append(f"{kind:20s}{cells}{len(members[kind]):8d}")
    table += ["", f"{'CTER in %':20s}{'instance':>13s}{'aggregate':>11s}"]
    table += [f"{name:20s}{r.instance:13.2f}{r.aggregate:11.2f}" for name, r in rates.items()]
    score: dict[str, object] = {
        "metric": "cter-agreement",
        "agreement": {
            kind: {
                name: {"precision": s.precision, "recall": s.recall, "f1": s.f1}
                for name, s in by_rules.items()
            }
            for kind, by_rules in scores.items()
        },
        "cter": {name: _numbers(rate) for name, rate in rates.items()},
        "signature": stamp,
    }
    unlike = [i for i in range(len(lines)) if len({wrong[i] for wrong in verdicts.values()}) > 1]
    explain = strict.explain if args.why else None
    return score, [*table, ""], _tsv(lines, people, failed, explain, unlike)


def _json(total: CTER, groups: dict[str, dict[str, CTER]], stamp: str) -> dict[str, object]:
    parts = {
        name: {key: _numbers(score) for key, score in members.items()}
        for name, members in groups.items()
    }
    return {"metric": "cter", **_numbers(total), "groups": parts, "signature": stamp}


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="compgen-cter", description=__doc__)
    text = parser.add_argument_group("what to score: a log, or two aligned files")
    text.add_argument("--log", help="what fairseq-generate printed")
    text.add_argument("--source", metavar="FILE", help="the English sentences")
    text.add_argument("--hypothesis", metavar="FILE", help="their translations")
    text.add_argument(
        "--against",
        metavar="FILE",
        help="instead: how well both rules agree with people's verdicts, a TSV with the columns "
        "source, compound, hypothesis and error (0 or 1)",
    )
    parser.add_argument(
        "--compound",
        metavar="FILE",
        help="the compound of each line (default: $COMPGEN_DATA/cognition's cg-test.compound)",
    )
    parser.add_argument(
        "--lexicon",
        metavar="FILE",
        help="the translations of each atom, own or CoGnition's (docs/cter.md; default: "
        "$COMPGEN_DATA/cognition/eval/lexicon)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="score nothing: name every bad line of --lexicon and --compound",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="let no atom of the context stand in for one of the compound; not comparable with "
        "published numbers",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--json-out", metavar="FILE", help="also write the JSON there")
    parser.add_argument(
        "--per-line",
        metavar="FILE",
        help="write each line's verdict as TSV; with --against the lines on which people and the "
        "two rules are not of one opinion",
    )
    parser.add_argument(
        "--why", action="store_true", help="a last column of --per-line that says why in words"
    )
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


def _tsv(
    lines: Sequence[Line],
    wrong: Sequence[bool],
    failed: Mapping[str, Verdicts],
    explain: Callable[[Line, str], str] | None,
    chosen: Iterable[int],
) -> Iterator[str]:
    """Each chosen line's id, which counts from 0 as in fairseq's logs, and what was found in it."""
    yield "\t".join((*COLUMNS, *failed, *(["why"] if explain else []))) + "\n"
    for i in chosen:
        line, found = lines[i], [verdicts[i] for verdicts in failed.values()]
        row = [str(i), line.type, line.source, line.compound, line.hypothesis, str(int(wrong[i]))]
        row += map(" ".join, found)
        if explain:
            faults = dict.fromkeys(fault for faults in found for fault in faults)
            row.append("; ".join(explain(line, fault) for fault in faults))
        yield "\t".join(cell.replace("\t", " ") for cell in row) + "\n"


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
