"""``compgen-cter``: compound translation error rate (CTER), for CoGnition or your own compounds."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compgen.errors import command
from compgen.output import write_files
from compgen.scoring.cter import TYPES, Line, fingerprint
from compgen.scoring.cter_agreement import agreement, read_verdicts
from compgen.scoring.cter_rates import rates
from compgen.scoring.cter_rules import OwnRules, is_own, load
from compgen.scoring.generate_log import Generation, read
from compgen.scoring.metrics import CterMetric
from compgen.scoring.signature import signature
from compgen.text import read_lines, single_spaced
from compgen_cli.parser import Parser
from compgen_cli.score import as_json

PUBLISHED = {
    "--compound": "cognition/data/cg-test/cg-test.compound",
    "--lexicon": "cognition/eval/lexicon",
}
COLUMNS = ("id", "type", "source", "compound", "hypothesis", "error")
Verdicts = Sequence[tuple[str, ...]]  # what is wrong with each line


@command("compgen-cter")
def main(argv: list[str] | None = None) -> int:
    """Print CTER and its signature; return 1 if the input cannot be scored."""
    args = _parser().parse_args(argv)
    if args.why and not args.per_line:
        raise ValueError("--why is a column of --per-line FILE; say that, too")
    if args.check and (args.log or args.source or args.hypothesis or args.against or args.strict):
        raise ValueError("--check looks at --lexicon and --compound alone: say nothing to score")
    if args.check and (args.json or args.json_out or args.per_line):
        raise ValueError("--check prints what is wrong and nothing else: say no output")
    lexicon = _file(args, "--lexicon")
    if args.check:
        return _check(args, lexicon)
    score, table, rows = (_against if args.against else _score)(args, lexicon)
    write_files((args.per_line, rows), (args.json_out, f"{json.dumps(score)}\n"))
    print(*([json.dumps(score)] if args.json else [table, score["signature"]]), sep="\n")
    return 0


Result = tuple[dict[str, Any], str, Iterator[str]]  # JSON, a table, lines for --per-line


def _check(args: argparse.Namespace, lexicon: Path) -> int:
    """Name every bad line of a lexicon and its compounds; 1 if there is one."""
    lines = read_lines(lexicon)
    bad = [(lexicon, *one) for one in OwnRules(lines).bad] if is_own(lines) else []
    compounds: list[str] = []
    if not bad:
        rules, path = load(lexicon, lines=lines), _file(args, "--compound")
        if isinstance(rules, OwnRules):
            compounds = single_spaced(read_lines(path))
            bad = [(path, *one) for one in rules.bad_compounds(compounds)]
        else:
            compounds = rules.read_compounds(path)
    for path, number, text in bad:
        print(f"{path}, line {number}: {text}")
    if not bad:
        print(
            f"{len(rules.translations)} atoms, {len(set(compounds))} compounds in "
            f"{len(compounds)} lines: nothing is wrong with them"
        )
    return 1 if bad else 0


def _score(args: argparse.Namespace, lexicon: Path) -> Result:
    """CTER by one set of rules."""
    metric = CterMetric(_file(args, "--compound"), lexicon, args.strict)
    judged = metric.judge(_translations(args, len(metric.compounds)))
    score = metric.score_of(judged)
    explain = metric.rules.explain if args.why else None
    every = range(len(judged.lines))
    rows = _tsv(judged.lines, judged.wrong, {"failed": judged.faults}, explain, every)
    return as_json(metric, score), score.text, rows


def _against(args: argparse.Namespace, lexicon: Path) -> Result:
    """How well the verdicts of both sets of rules agree with people's."""
    if args.log or args.source or args.hypothesis or args.compound or args.strict:
        raise ValueError("--against FILE holds all lines and is for both rules: say only --lexicon")
    read = read_lines(lexicon)
    published, strict = (load(lexicon, strict, read) for strict in (False, True))
    lines, people = read_verdicts(args.against, published.lexicon)
    failed = {rules.name: list(map(rules.judge, lines)) for rules in (published, strict)}
    verdicts = {"people": people} | {name: list(map(bool, found)) for name, found in failed.items()}
    types = ("all", *TYPES)
    members = {t: [i for i, line in enumerate(lines) if t in ("all", line.type)] for t in types}
    scores = {
        kind: {
            name: agreement([people[i] for i in chosen], [verdicts[name][i] for i in chosen])
            for name in failed
        }
        for kind, chosen in members.items()
        if chosen
    }
    totals = {name: rates(wrong) for name, wrong in verdicts.items()}
    stamp = signature("cter-agreement", len(lines), lexicon=fingerprint(published.lexicon))
    table = [
        f"{'errors found, in %':20s}{'published: P':>13s}{'R':>8s}{'F1':>8s}"
        f"{'strict: P':>13s}{'R':>8s}{'F1':>8s}{'lines':>8s}"
    ]
    for kind, by_rules in scores.items():
        cells = "".join(
            f"{score['precision']:13.2f}{score['recall']:8.2f}{score['f1']:8.2f}"
            for score in by_rules.values()
        )
        table.append(f"{kind:20s}{cells}{len(members[kind]):8d}")
    table += ["", f"{'CTER in %':20s}{'instance':>13s}{'aggregate':>11s}"]
    table += [f"{name:20s}{r.instance:13.2f}{r.aggregate:11.2f}" for name, r in totals.items()]
    score = {
        "metric": "cter-agreement",
        "agreement": scores,
        "cter": {name: rate.numbers for name, rate in totals.items()},
        "signature": stamp,
    }
    unlike = [i for i in range(len(lines)) if len({wrong[i] for wrong in verdicts.values()}) > 1]
    explain = strict.explain if args.why else None
    return score, "\n".join([*table, ""]), _tsv(lines, people, failed, explain, unlike)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="compgen-cter", description=__doc__)
    texts = parser.add_argument_group("what to score: a log, or two aligned files")
    texts.add_argument("--log", help="what fairseq-generate printed")
    texts.add_argument("--source", metavar="FILE", help="the English sentences")
    texts.add_argument("--hypothesis", metavar="FILE", help="their translations")
    text = (
        "instead: compare both sets of rules with people's verdicts, in a TSV with the columns "
        "source, compound, hypothesis and error (0 or 1)"
    )
    texts.add_argument("--against", metavar="FILE", help=text)
    text = "the compound of each line (default: $COMPGEN_DATA/cognition's cg-test.compound)"
    parser.add_argument("--compound", metavar="FILE", help=text)
    text = (
        "the translations of each atom, yours or CoGnition's (docs/cter.md; default: "
        "$COMPGEN_DATA/cognition/eval/lexicon)"
    )
    parser.add_argument("--lexicon", metavar="FILE", help=text)
    text = "score nothing: name every bad line of --lexicon and --compound"
    parser.add_argument("--check", action="store_true", help=text)
    text = (
        "require the compound's translation to be one phrase (docs/notes/cter.md); not comparable "
        "with published numbers"
    )
    parser.add_argument("--strict", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--json-out", metavar="FILE", help="also write the JSON there")
    text = (
        "write each line's verdict as TSV; with --against only the lines on which people and both "
        "sets of rules do not all agree"
    )
    parser.add_argument("--per-line", metavar="FILE", help=text)
    text = "a last column of --per-line that says why in words"
    parser.add_argument("--why", action="store_true", help=text)
    return parser


def _file(args: argparse.Namespace, flag: str) -> Path:
    """The file that a flag names, or its place in ``$COMPGEN_DATA``."""
    given = getattr(args, flag.strip("-"))
    data = os.environ.get("COMPGEN_DATA")
    if not given and not data:
        raise ValueError(
            f"say {flag} FILE, or set COMPGEN_DATA to the folder with {PUBLISHED[flag]}"
        )
    return Path(given or Path(data or "", PUBLISHED[flag]))


def _translations(args: argparse.Namespace, expected: int) -> Generation:
    """The sources and hypotheses of the log or of the two files."""
    files = (args.source, args.hypothesis)
    if bool(args.log) == any(files) or any(files) != all(files):
        raise ValueError("say --log LOG, or --source FILE and --hypothesis FILE")
    if args.log:
        try:
            return read(args.log, expected)
        except ValueError as error:
            if args.compound:
                raise
            other = "the compounds are CoGnition's; name others with --compound and --lexicon"
            raise ValueError(f"{error} ({other})") from None
    return Generation(read_lines(args.source), [], read_lines(args.hypothesis), args.hypothesis)


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
