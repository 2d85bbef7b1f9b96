"""Prepares the translation corpora: ``prepare/{wmt17_en_de,wmt14_en_fr,...}.sh``.

Take or download the archives, extract, tokenise, learn and apply subwords, filter, binarise.  Each
step streams, shows its progress, and is kept when a later one is interrupted.
"""

import argparse
import gzip
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from compgen.data.checksums import read_checksums, sha256
from compgen.data.corpora import CORPORA, Corpus, Files
from compgen.data.preparation import Parser, Preparation
from compgen.data.publisher import collect, copy_at_hand, own_copy
from compgen.provenance import cores
from compgen.ranges import AT_LEAST_0, AT_LEAST_1, flag_of
from compgen.text import count_lines, read_dictionary

ARCHIVES = (".tgz", ".tar")
READ = 1023  # tokens that models read by default, besides the end
MODELS = ("code", "sentencepiece.model")
SETTINGS = ("bpe_merges", "sentencepiece", "joined_dictionary")
ABOUT = """Prepare {title} as a fairseq data folder.

{about}

The publisher's files are read from --from or $COMPGEN_DATA/{folder}, else downloaded:
{files}
No download is used before its checksum matched. Where the publisher gives none, --checksums
says it. Files of your own are checked against FOLDER/SHA256SUMS, if it is there; an archive that
is cut short is refused in any case.

The folder holds the subwords' file, too (code or sentencepiece.model). An interrupted run goes on
where it was when the same command is given again.
"""


def main(argv: Sequence[str]) -> None:
    """The command: the name of a corpus, then what the user gave its script."""
    name, corpus = argv[0], CORPORA[argv[0]]
    parser = _parser(name, corpus)
    args = parse(parser, argv[1:])
    settings = subword_settings(args, corpus.languages)
    tools = ["sentencepiece" if args.sentencepiece else "subword_nmt"]
    tools += ["sacremoses"] if corpus.tokenize else []
    if args.downloads and args.downloads.resolve().is_relative_to(args.dest.resolve()):
        parser.error("--downloads is in DEST, which must be empty: name another folder")
    work = Preparation(parser.prog, args.dest, settings, packages=tools)
    if work.done(folder=copy_at_hand(corpus.folder, args.folder)):
        return
    with work:
        found = gather(corpus, args, work.folder / "downloads")
        digests = {name: sha256(path) for name, path in found.items()}
        files = extract(corpus, found, work, digests)
        prepare(corpus, files, args, work, digests)
        work.finish(*corpus.languages, inputs=found, options=preprocess_options(args))


def _parser(name: str, corpus: Corpus) -> Parser:
    files = "\n".join(f"  {one.url}/{one.name}" for one in corpus.downloads)
    parser = Parser(
        f"prepare/{name}.sh",
        ABOUT.format(title=corpus.title, about=corpus.about, folder=corpus.folder, files=files),
        folder=f"the publisher's files (default: $COMPGEN_DATA/{corpus.folder})",
        checksums="the downloads' SHA-256 checksums, as sha256sum writes them",
    )
    add_options(parser, corpus.merges, corpus.tokenize)
    text = "download to here and keep it (default: removed in the end)"
    parser.add_argument("--downloads", type=Path, metavar="FOLDER", help=text)
    text = "download from this server, which has the same paths"
    parser.add_argument("--mirror", metavar="URL", help=text)
    return parser


def add_options(parser: Parser, merges: int, tokenize: bool) -> None:
    """The options of subwords and dictionaries, and ``--workers``."""
    text = "use the subwords and dictionaries of this data folder, to train its model further"
    parser.add_argument("--pretrained", type=Path, metavar="FOLDER", help=text)
    text = "merges of the joint BPE, or the size of SentencePiece's vocabulary; 0: words, no pieces"
    parser.add_whole("--bpe-merges", AT_LEAST_0, f"{text} (default: %(default)s)", merges)
    add = parser.add_argument
    instead = "of tokenisation and BPE" if tokenize else "of BPE"
    add("--sentencepiece", action="store_true", help=f"SentencePiece instead {instead}")
    add("--joined-dictionary", action="store_true", help="one dictionary for both languages")
    parser.add_whole("--workers", AT_LEAST_1, "processes (default: one per core)", cores())


def parse(parser: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a parser with these options."""
    args = parser.parse_args(argv)
    args.model, args.dictionaries = None, []
    words = {word.partition("=")[0] for word in argv}
    given = [name for name in SETTINGS if flag_of(name) in words]
    if args.pretrained and given:
        parser.error(f"--pretrained decides the subwords: leave out {flag_of(given[0])}")
    if args.sentencepiece and not args.bpe_merges:
        parser.error("--sentencepiece needs --bpe-merges, the size of its vocabulary, not 0")
    return args


def subword_settings(args: argparse.Namespace, languages: Sequence[str]) -> dict[str, Any]:
    """The settings that decide subwords and dictionaries.

    With ``--pretrained``, ``args`` gets that folder's model of subwords and its dictionaries.

    Raises:
        ValueError: it lacks a dictionary of these languages, or a file is none.
    """
    settings = {name: getattr(args, name) for name in SETTINGS}
    if args.pretrained is None:
        return settings
    folder = args.pretrained.resolve()
    args.dictionaries = [folder / f"dict.{language}.txt" for language in languages]
    for path in args.dictionaries:
        read_dictionary(path)
    args.model = next((folder / name for name in MODELS if (folder / name).is_file()), None)
    args.sentencepiece, args.bpe_merges = args.model == folder / MODELS[1], None
    files = [*args.dictionaries, *filter(None, [args.model])]
    return dict.fromkeys(settings) | {"pretrained": "-".join(sha256(path)[:16] for path in files)}


def preprocess_options(args: argparse.Namespace) -> list[str]:
    """What the options mean for fairseq-preprocess."""
    joined = ["--joined-dictionary"] if args.joined_dictionary else []
    sides = zip(("--srcdict", "--tgtdict"), map(str, args.dictionaries), strict=False)
    return [*joined, *(word for side in sides for word in side), "--workers", str(args.workers)]


def gather(corpus: Corpus, args: argparse.Namespace, downloads: Path) -> dict[str, Path]:
    """Where each of the publisher's files is, checked if a checksum is known.

    Args:
        corpus: whose files.
        args: the options ``--from``, ``--checksums``, ``--downloads`` and ``--mirror``.
        downloads: where files go that are not there, if ``--downloads`` says nothing else.

    Raises:
        ValueError: a file is missing, is not what it should be, or would be downloaded without
            a checksum.
    """
    folder = own_copy(corpus.folder, args.folder)
    lists = [folder / "SHA256SUMS"] if folder and (folder / "SHA256SUMS").exists() else []
    lists += [args.checksums] if args.checksums else []
    known: dict[str, str] = {}
    for path in lists:
        listed = {Path(name).name: digest for name, digest in read_checksums(path).items()}
        names = [Path(one.name).name for one in corpus.downloads]
        if path == args.checksums and not listed.keys() & set(names):
            raise ValueError(f"{path} lists none of {', '.join(names)}.")
        known |= listed
    found: dict[str, Path] = {}
    for one in corpus.downloads:
        digest = known.get(Path(one.name).name, one.sha256)
        url, place = one.url or "", args.downloads or downloads
        if args.mirror is not None:
            url = args.mirror.rstrip("/") + urlsplit(url).path
        found |= collect(corpus.folder, {one.name: digest}, url, place, folder)
    return found


def extract(
    corpus: Corpus, found: Mapping[str, Path], work: Preparation, digests: Mapping[str, str]
) -> dict[str, Path]:
    """Where each file of the corpus is, out of its archive.

    Raises:
        ValueError: an archive is cut short or damaged, or no archive has the file.
    """
    archives = [path for path in found.values() if path.suffix in ARCHIVES]

    def unpack(folder: Path) -> None:
        folder.mkdir()
        for archive in archives:
            _unpack(archive, corpus.files, folder)

    folder = work.step("extracted", unpack, digests) if archives else work.folder
    files = {name: found.get(name, folder / name) for name in corpus.files}
    for name, path in sorted(files.items()):
        if not path.is_file():
            raise ValueError(f"{name} is in none of {', '.join(map(str, archives))}.")
    return files


def _unpack(archive: Path, wanted: set[str], folder: Path) -> None:
    """Extract the files that are wanted from a tar archive, and read it to its end."""
    try:
        with (
            open(archive, "rb") as file,
            tqdm.wrapattr(
                file, "read", total=archive.stat().st_size, desc=archive.name, disable=None
            ) as raw,
        ):
            stream = gzip.GzipFile(fileobj=raw) if archive.suffix == ".tgz" else raw
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    name = member.name.removeprefix("./")
                    if name in wanted and (content := tar.extractfile(member)):
                        (folder / name).parent.mkdir(parents=True, exist_ok=True)
                        with (folder / name).open("wb") as whole:
                            shutil.copyfileobj(content, whole)
            while stream.read(1 << 20):  # the end has gzip's checksum
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{archive} is cut short or damaged ({reason}); get it again.") from None
    except OSError as error:  # a full disk, say, which may have no name
        raise ValueError(f"{error.filename or folder}: {error.strerror}") from None


def prepare(
    corpus: Corpus,
    files: Mapping[str, Path],
    args: argparse.Namespace,
    work: Preparation,
    digests: object,
) -> None:
    """Write ``raw`` and the subwords' file.

    Args:
        corpus: what is read and how it is cleaned.
        files: where its files are.
        args: the options ``--bpe-merges``, ``--sentencepiece`` and ``--workers``.
        work: the folder to make.
        digests: what decides the files' bytes, as JSON holds it: the SHA-256 of their sources.

    Raises:
        ValueError: the two sides of a file do not match, or a part would be empty.
    """
    # its libraries take a second to import, which --help should not
    from compgen.data import bitext

    keep = partial(bitext.fits, longest=corpus.longest, ratio=corpus.ratio)
    sides = corpus.languages

    def cleaned(part: Files, normalize: bool) -> Iterator[bitext.Pair]:
        pairs = (
            pair
            for source, target in part
            for pair in bitext.read_pairs(files[source], files[target], "tokenise")
        )
        source, target = (
            bitext.Moses(
                language,
                normalize=normalize,
                tokenize=corpus.tokenize and not args.sentencepiece,
                split_dashes=corpus.split_dashes,
                lowercase=corpus.lowercase,
            )
            for language in sides
        )
        return bitext.transform(pairs, source, target, args.workers)

    def tokenise(folder: Path) -> None:
        def parts() -> Iterator[tuple[str, bitext.Pair]]:
            train = cleaned(corpus.train, corpus.normalize)
            kept = filter(keep, train) if corpus.words_first else train
            for number, pair in enumerate(kept, 1):
                held_out = corpus.held_out and number % corpus.held_out == 0
                yield "valid" if held_out else "train", pair
            for pair in cleaned(corpus.valid, corpus.normalize):
                yield "valid", pair
            for pair in cleaned(corpus.test, False):
                yield "test", pair

        bitext.write_parts(parts(), folder, sides)

    cutter = bitext.SentencePiece if args.sentencepiece else bitext.Bpe
    model: Path | None = args.model
    subwords: bitext.Side = cutter(model) if model else str  # before the work, should it be none
    tokenised = work.step("tokenised", tokenise, [digests, args.sentencepiece])
    key = [digests, args.sentencepiece, args.bpe_merges, *map(sha256, filter(None, [model]))]
    if args.bpe_merges:
        train = [tokenised / f"train.{language}" for language in sides]
        learn = bitext.learn_sentencepiece if args.sentencepiece else bitext.learn_codes
        name = MODELS[args.sentencepiece]
        model = work.step(name, partial(learn, train, args.bpe_merges), key)
        subwords = cutter(model)

    late = corpus.longest and not corpus.words_first  # the filter counts subwords
    pieces = "subwords" if model else "words"
    odd: dict[str, list[int]] = {}

    def cut(folder: Path) -> None:
        def parts() -> Iterator[tuple[str, bitext.Pair]]:
            for part in bitext.PARTS:
                source, target = (tokenised / f"{part}.{side}" for side in sides)
                pairs = bitext.read_pairs(source, target, "subwords of")
                cut = bitext.transform(pairs, subwords, subwords, args.workers)
                filtered = part == "train" or (part == "valid" and corpus.held_out)
                kept = filter(keep, cut) if filtered and late else cut
                for number, pair in enumerate(kept, 1):
                    bitext.refuse_symbols(part, pair)
                    if part != "train" and not all(0 < len(s.split()) <= READ for s in pair):
                        odd.setdefault(part, []).append(number)
                    yield part, pair

        bitext.write_parts(parts(), folder, sides)

    whole = work.step("raw", cut, key)
    for part, lines in odd.items():
        print(
            f"{part}: of {len(lines):,} pairs a side is empty or has more than {READ:,} {pieces}, "
            "the most that models read without --max-source-positions and --max-target-positions "
            f"(first in line {lines[0]})"
        )
    if late:
        before, after = (count_lines(place / f"train.{sides[0]}") for place in (tokenised, whole))
        if before > after:
            print(
                f"{before - after:,} of {before:,} training pairs are left out: a side is empty, "
                f"has a word of more than {bitext.LONGEST_WORD:,} letters, more than "
                f"{corpus.longest} {pieces} or more than "
                f"{corpus.ratio} times the other's"
            )
    for path in whole.iterdir():
        _link(path, work.raw / path.name)
    if model:
        shutil.copyfile(model, work.data / model.name)


def _link(path: Path, to: Path) -> None:
    """Give a finished file a second name where the file system can, else copy it."""
    try:
        to.hardlink_to(path)
    except OSError:
        shutil.copy(path, to)
