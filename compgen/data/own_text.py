"""Prepares parallel text of one's own: ``prepare/bitext.sh``.

The files become plain text, of which validation and test pairs are held out where they have no
files; then everything is as for the published corpora (:mod:`compgen.data.translation`).
"""

import argparse
import hashlib
import heapq
import html
import itertools
import json
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from compgen.data import translation
from compgen.data.checksums import sha256
from compgen.data.corpora import Corpus
from compgen.data.preparation import RECORD, Parser, Preparation
from compgen.ranges import AT_LEAST_0, AT_LEAST_1, flag_of
from compgen.scoring import cter, cter_rules
from compgen.scoring.cogs import read_cases
from compgen.text import count_lines, read_dictionary, read_json, read_lines, suffix, write_lines

SCRIPT = "prepare/bitext.sh"
PARTS = ("train", "valid", "test")
TABLES = (".tsv", ".jsonl")
AT_ONCE = 100_000  # sources of which it is looked at once whether they are to be held out
ABOUT = """Prepare parallel text of your own as a fairseq data folder.

  prepare/bitext.sh DEST --train a.en a.de --valid v.en v.de --test t.en t.de
  prepare/bitext.sh DEST --train a.en a.de b.en b.de --valid 500 --test 1000
  prepare/bitext.sh DEST --train pairs.tsv --languages en de
  prepare/bitext.sh DEST --from FOLDER --languages en de    # train.en, train.de, valid.en, ...
  prepare/bitext.sh DEST --from FOLDER --languages en de --valid 500    # no valid.en, valid.de

Each of --train, --valid and --test takes files in pairs, source before target, one sentence a line,
or tables: NAME.tsv (source, tab, target; a first line of both --languages is no pair) or NAME.jsonl
(an object a line with a text by language, {"en": "...", "de": "..."}, which may stand under
"translation"). All may be gzip'ed (.gz).
--valid N and --test N take N sentences out of the training files, always the same ones; pairs with
the same source leave the training set, too.
"""


def main(argv: Sequence[str]) -> None:
    """The command."""
    parser = _parser()
    args = translation.parse(parser, argv)
    files, held_out, languages = _inputs(args)
    names = ("tokenized", "lowercase", "max_words", "max_ratio")
    settings = {
        "languages": languages,
        **{part: held_out.get(part) or list(map(str, files[part])) for part in PARTS},
        **{name: getattr(args, name) for name in names},
        **translation.subword_settings(args, languages),
    }
    _same_text(args)
    of_test = {n: vars(args)[n] for n in ("compound", "lexicon", "cases") if vars(args)[n]}
    if ("compound" in of_test) != ("lexicon" in of_test):
        raise ValueError("--compound and --lexicon go together.")
    if args.cases and "test" in held_out:
        raise ValueError("--cases needs the files of the test set: --test FILE...")
    for name, path in of_test.items():
        if not path.is_file():
            raise ValueError(f"--{name}: there is no file {path}.")
    tools = ["sentencepiece" if args.sentencepiece else "subword_nmt", "sacremoses"]
    every = settings | {name: str(path) for name, path in of_test.items()}
    inputs = {str(path): path for part in PARTS for path in files.get(part, ())}
    # of 2 a table's header was a pair
    edition = 3 if any(suffix(path) == ".tsv" for path in inputs.values()) else 2
    work = Preparation(SCRIPT, args.dest, every, packages=tools, edition=edition)
    digests = {name: sha256(path) for name, path in inputs.items()}
    added = {str(path): path for path in of_test.values()}
    if work.done(digests | {name: sha256(path) for name, path in added.items()}):
        return
    compounds = []
    if args.compound:
        compounds = cter_rules.load(args.lexicon).read_compounds(args.compound)
    with work:
        key = [digests, settings]
        write = partial(write_text, files, held_out, languages, lowercase=args.lowercase)
        text = work.step("text", write, key)
        if args.cases:
            cases = read_cases(args.cases, count_lines(text / f"test.{languages[0]}"))
        train, valid, test = ([(f"{p}.{languages[0]}", f"{p}.{languages[1]}")] for p in PARTS)
        corpus = Corpus(
            languages=languages,
            train=train,
            valid=valid,
            test=test,
            longest=args.max_words,
            ratio=args.max_ratio,
            tokenize=not args.tokenized,
            lowercase=args.lowercase,
        )
        found = {name: text / name for name in corpus.files}
        translation.prepare(corpus, found, args, work, key)
        if compounds:
            _add_compounds(args, compounds, work, languages[0])
        if args.cases:
            write_lines(work.data / "cases" / "test.case", cases)
        options = translation.preprocess_options(args)
        work.finish(*languages, inputs=inputs | added, options=options)


def _parser() -> Parser:
    parser = Parser(SCRIPT, ABOUT, folder="a folder with train.LANGUAGE, valid.LANGUAGE, ...")
    add = parser.add_argument
    add("--train", nargs="+", metavar="FILE", help="the training files")
    for part in ("valid", "test"):
        text = f"{part} files, or how many training pairs to hold out (default: 1000, or FOLDER's)"
        add(f"--{part}", nargs="+", metavar="FILE", help=text)
    text = "of source and target (default: as the files' names end); tables need them"
    add("--languages", nargs=2, metavar=("SOURCE", "TARGET"), help=text)
    add("--tokenized", action="store_true", help="the text is tokenised: do not do it again")
    add("--lowercase", action="store_true", help="lowercase the text")
    text = "drop training pairs with a longer side, in subwords; 0: drop none, whatever the ratio"
    text += " (default: 250)"
    parser.add_whole("--max-words", AT_LEAST_0, text, 250)
    text = "drop training pairs with more subwords on one side per subword of the other"
    text += " (default: %(default)s)"
    add("--max-ratio", type=AT_LEAST_1.number, default=1.5, metavar="X", help=text)
    text = "the compound of each test sentence, for CTER"
    add("--compound", type=Path, metavar="FILE", help=text)
    add("--lexicon", type=Path, metavar="FILE", help="its atoms' translations; see docs/cter.md")
    text = "the name of each test sentence's case, for exact match by case"
    add("--cases", type=Path, metavar="FILE", help=text)
    translation.add_options(parser, merges=10_000, tokenize=True)
    return parser


def _same_text(args: argparse.Namespace) -> None:
    """Refuse text that is not written as that of ``--pretrained``.

    Raises:
        ValueError: naming the option that this one lacks or has.
    """
    if args.pretrained is None:
        return
    record = args.pretrained / RECORD
    found = read_json(record) if record.exists() else {"settings": {}}
    there = found.get("settings") if isinstance(found, dict) else None
    if not isinstance(there, dict):
        raise ValueError(f"{record} does not say how its text was prepared.")
    if "lowercase" not in there and not args.lowercase:  # of a published corpus
        text = "".join(name for path in args.dictionaries for name in read_dictionary(path))
        if text == text.lower() != text.upper():
            raise ValueError(f"{args.pretrained} has no capitals: say --lowercase.")
    for name in ("tokenized", "lowercase"):
        if there.get(name, getattr(args, name)) != getattr(args, name):
            how = "with" if there[name] else "without"
            raise ValueError(f"{args.pretrained} was prepared {how} {flag_of(name)}: so must this.")


def _add_compounds(
    args: argparse.Namespace, compounds: list[str], work: Preparation, language: str
) -> None:
    """Write ``cter/test.compound`` and ``cter/lexicon``.

    Raises:
        ValueError: a compound is not in its sentence.
    """
    sources = read_lines(work.raw / f"test.{language}")
    if len(compounds) != len(sources):
        raise ValueError(
            f"{args.compound} has {len(compounds)} lines, the test set {len(sources)} sentences."
        )
    try:
        cter.align(sources, compounds, sources, lambda _: {})
    except ValueError as error:
        raise ValueError(f"{args.compound} and the test set: {error}.") from None
    write_lines(work.data / "cter" / "test.compound", compounds)
    shutil.copyfile(args.lexicon, work.data / "cter" / "lexicon")


def _inputs(
    args: argparse.Namespace,
) -> tuple[dict[str, list[Path]], dict[str, int], tuple[str, str]]:
    """The files of each part, how many pairs are held out for others, and the languages.

    Raises:
        ValueError: the options do not go together, or a file is not there.
    """
    if bool(args.folder) == bool(args.train):
        raise ValueError("say --train FILE..., or --from FOLDER, and not both.")
    if args.folder:
        if not args.languages:
            raise ValueError("--from FOLDER needs --languages SOURCE TARGET.")
        languages = args.languages
        default = {p: [str(args.folder / f"{p}.{side}") for side in languages] for p in PARTS}
    else:
        languages = args.languages or _languages_of(args.train)
        default = {p: ["1000"] for p in PARTS}
    given = {p: getattr(args, p) or default[p] for p in PARTS}
    if len(set(languages)) < 2 or not all(n.replace("_", "").isalnum() for n in languages):
        raise ValueError(
            f"{' and '.join(languages)} are not two languages, names of letters and digits; "
            "give --languages."
        )
    files: dict[str, list[Path]] = {}
    held_out: dict[str, int] = {}
    for part, names in given.items():
        if part != "train" and len(names) == 1 and names[0].removeprefix("-").isdecimal():
            held_out[part] = int(names[0])
            if held_out[part] < 1:
                raise ValueError(f"--{part}: hold out at least 1 pair, or name its files.")
            continue
        files[part] = [Path(name) for name in names]
        for path in files[part]:
            if not path.is_file():
                raise ValueError(f"--{part}: there is no file {path}.")
        rest = iter(files[part])
        for path in rest:
            if suffix(path) in TABLES:
                continue
            other = next(rest, Path("no.tsv"))
            if suffix(other) in TABLES:
                raise ValueError(f"--{part}: the text file {path} has no partner after it.")
            if [suffix(other), suffix(path)] == [f".{language}" for language in languages]:
                raise ValueError(f"--{part}: {path} comes after {other}: {languages[0]} is first.")
    return files, held_out, (languages[0], languages[1])


def _languages_of(names: Sequence[str]) -> list[str]:
    ends = [suffix(Path(name)) for name in names[:2]]
    if ends[0] in TABLES:
        raise ValueError("give --languages SOURCE TARGET: the file names do not show them.")
    if len(ends) < 2:
        raise ValueError(f"--train: the text file {names[0]} has no partner after it.")
    return [end.lstrip(".") for end in ends]


def write_text(
    files: dict[str, list[Path]],
    held_out: dict[str, int],
    languages: tuple[str, str],
    folder: Path,
    lowercase: bool = False,
) -> None:
    """Write ``folder/{train,valid,test}.LANGUAGE``, one pair a line.

    Sources that tokenisation or SentencePiece's normalisation (NFKC) can make the same are the
    same: those that differ in white space, in HTML's escapes or in forms of a character, with
    ``lowercase`` those that differ in case, too.  The files keep both.
    """
    from compgen.data import bitext  # its libraries take a second to import

    def read(part: str) -> Iterator[bitext.Pair]:
        return _read(files[part], languages)

    def fold(source: str) -> str:
        source = unicodedata.normalize("NFKC", html.unescape(source))
        return "".join((source.lower() if lowercase else source).split())

    sources = (fold(source) for source, target in read("train") if target)
    chosen = _choose(sources, held_out) if held_out else {}

    def parts() -> Iterator[tuple[str, bitext.Pair]]:
        written = set()
        for pair in read("train"):
            digest = _digest(fold(pair[0]))
            part = chosen.get(digest, "train")
            if part == "train":
                yield part, pair
            elif pair[1] and digest not in written:
                written.add(digest)
                yield part, pair
        for part in files:
            if part != "train":
                yield from ((part, pair) for pair in read(part))

    bitext.write_parts(parts(), folder, languages)


def _choose(sources: Iterable[str], held_out: dict[str, int]) -> dict[int, str]:
    """Which sources are held out, by their digests: those with the smallest.

    Raises:
        ValueError: there are not as many different ones.
    """
    wanted = sum(held_out.values())
    digests = (_digest(source) for source in sources if source)
    smallest: list[int] = []
    while some := set(itertools.islice(digests, AT_ONCE)):
        smallest = heapq.nsmallest(wanted, some.union(smallest))
    if len(smallest) < wanted:
        raise ValueError(
            f"{wanted} pairs are to be held out, but only {len(smallest)} sources differ;"
            " say --valid N and --test N."
        )
    parts = (part for part, number in held_out.items() for _ in range(number))
    return dict(zip(smallest, parts, strict=True))


def _digest(source: str) -> int:
    return int.from_bytes(hashlib.sha256(source.encode()).digest()[:8], "big")


def _read(paths: Sequence[Path], languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The pairs of text files in pairs and of tables, without white space around a side."""
    from compgen.data import bitext

    rest = iter(paths)
    for path in rest:
        if suffix(path) in TABLES:
            pairs = _read_table(path, languages)
        else:
            pairs = bitext.read_pairs(path, next(rest), "read")
        for source, target in pairs:
            yield source.strip(), target.strip()


def _read_table(path: Path, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    from compgen.data import bitext

    for number, line in enumerate(bitext.stream_lines(path, f"read {path.name}"), 1):
        if suffix(path) == ".tsv":
            cells = line.split("\t")
            named = [cell.strip() for cell in cells] if number == 1 else []
            if named == list(languages):
                continue  # the columns' names
            if named == list(languages)[::-1]:
                raise ValueError(f"{path}: its columns are {' and '.join(named)}: source first.")
            wanted = "two cells, source and target"
        else:
            cells = _cells(line, languages)
            wanted = f"an object with a text for {languages[0]} and {languages[1]}"
        if len(cells) != 2:
            raise ValueError(f"{path}, line {number}: it is not {wanted}.")
        yield cells[0], cells[1]


def _cells(line: str, languages: tuple[str, str]) -> list[str]:
    try:
        found = json.loads(line)
        texts = found.get("translation", found)
        cells = [" ".join(texts[name].split()) for name in languages]
        "".join(cells).encode()  # half a surrogate pair is no text
        return cells
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
