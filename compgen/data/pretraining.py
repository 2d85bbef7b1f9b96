"""Text for pre-training CAT, with the sememes of its words.

Without ``--text`` it is the sample of English Wikipedia in github.com/thunlp/CL-SP: 335,326 words
in small letters, an article per line, without punctuation or any other mark of sentences. An
article is a document here; every 10 words of it are taken for a sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from compgen.data import hownet
from compgen.data.checksums import check_file, sha256
from compgen.data.preparation import Parser, Preparation
from compgen.data.publisher import collect, expected
from compgen.ranges import AT_LEAST_1
from compgen.text import count_lines, read_lines, write_lines

# SHA-256 of the publisher's files.
ANNOTATED: dict[str, str | None] = {
    hownet.HOWNET: "2c42c021eee4c556d194510d1f5fb98ff96f6cbdea0761430acab6c963d345c8",
    hownet.TRANSLATIONS: "a48b15661a98e0ef1ae061bf6e9220771f9ab34c863ae9eebf6a62efeb542e87",
    hownet.NAMES: "ea443e3544f8891181d7f3f0e11d3de73bd81cc37f7a345db5a87bf3d211e310",
}
SAMPLE: dict[str, str | None] = {
    "corpus.en": "c00ab516259b45727621bbf952829e1a67142c7a195cfd337bac9f563a7c407f"
}
SENTENCE = 10  # words of the sample that are taken for a sentence
HELD_OUT = 20  # of so many sentences the last one is for validation

DESCRIPTION = """\
Write text for pre-training (--task cat_pretraining) as a fairseq data folder DEST: train, and in
valid the last 5% of the sentences. The text is a sample of English Wikipedia, 335,326 words in
small letters, or that of --text. DEST also has

  code             the BPE codes; "@@" follows all subwords but the last of a word
  dict.txt         the subwords
  sememes.txt      the sememes of HowNet, one per line
  annotations.tsv  English words and the numbers of their sememes, from 0 on

How many of the text's words are annotated is printed and recorded.
"""


def sample_documents(path: Path) -> Iterator[list[str]]:
    """The sentences of each document of the sample: a document per line, cut every 10 words."""
    for line in read_lines(path):
        words = line.split()
        yield [" ".join(words[i : i + SENTENCE]) for i in range(0, len(words), SENTENCE)]


def documents(path: Path) -> Iterator[list[str]]:
    """The sentences of each document of a text with a sentence per line and an empty line between
    documents."""
    sentences: list[str] = []
    for line in chain(read_lines(path), [""]):
        if line.strip():
            sentences.append(" ".join(line.split()))
        elif sentences:
            yield sentences
            sentences = []


def split(texts: Iterable[list[str]]) -> tuple[list[str], list[str]]:
    """Lines for training and validation, with an empty line after each document.

    Validation is the last 5% of the sentences; a document that begins before them is divided.

    Raises:
        ValueError: there are too few sentences.
    """
    everything = list(texts)
    total = sum(map(len, everything))
    if total < HELD_OUT:
        raise ValueError(f"the text has {total} sentences; it needs {HELD_OUT} or more.")
    left = total - total // HELD_OUT
    train: list[str] = []
    valid: list[str] = []
    for sentences in everything:
        for part, lines in ((sentences[:left], train), (sentences[left:], valid)):
            if part:
                lines += [*part, ""]
        left = max(left - len(sentences), 0)
    return train, valid


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/pretraining.sh``."""
    parser = Parser(
        "prepare/pretraining.sh",
        DESCRIPTION,
        folder="the folder of hownet.txt, en2zh_dict.txt, sememe_1400_EnZh.txt and corpus.en, in a"
        " clone of github.com/thunlp/CL-SP (default: $COMPGEN_DATA/hownet)",
        checksums="a list, as sha256sum writes it, of the checksums that the files have when they "
        "are not the publisher's",
    )
    add = parser.add_argument
    text = "another text: tokenised, a sentence per line, an empty line between documents"
    add("--text", metavar="FILE", type=Path, help=text)
    text = (
        "annotations from OpenHowNet's senses instead of CL-SP's files: a JSON list of objects"
        " with en_word and Def (compgen/data/hownet.py says how to write it)"
    )
    add("--senses", metavar="FILE", type=Path, help=text)
    parser.add_whole("--bpe-merges", AT_LEAST_1, "merges of the BPE (default: 8000)", 8000)
    args = parser.parse_args(argv)

    settings: dict[str, Any] = {"bpe_merges": args.bpe_merges}
    own = {name: vars(args)[name] for name in ("text", "senses") if vars(args)[name]}
    for name, path in own.items():
        check_file(path, None)
        settings[name] = sha256(path)
    wanted = {**({} if args.senses else ANNOTATED), **({} if args.text else SAMPLE)}
    if not wanted and (args.folder or args.checksums):
        parser.error("--from and --checksums are of files that --text and --senses replace")
    official = expected(wanted, args.checksums, settings)
    work = Preparation(parser.prog, args.dest, settings, packages=["subword_nmt"])
    if work.done():
        return
    with work:
        files = collect("hownet", official, None, work.folder, args.folder) if official else {}
        if args.senses:
            annotations = hownet.read_senses(args.senses)
        else:
            annotations = hownet.read_translated(files[hownet.HOWNET].parent)
        texts = documents(args.text) if args.text else sample_documents(files["corpus.en"])
        train, valid = split(texts)
        annotations.write(work.data)
        coverage = annotations.coverage(w for line in chain(train, valid) for w in line.split())
        cut(train, valid, args.bpe_merges, work)
        work.binarise("--only-source")
        sentences = {"train": sum(map(bool, train)), "valid": sum(map(bool, valid))}
        sizes = {
            "sentences": sentences,
            "vocabulary": {"subwords": count_lines(work.data / "dict.txt") + 4},
            "sememes": {
                "sememes": len(annotations.names),
                "annotated_words": len(annotations.words),
                **coverage,
            },
        }
        work.publish(sizes, files | own)
    print(f"{work.dest}:", ", ".join(f"{n} {p}" for p, n in sentences.items()), "sentences")
    for what in ("types", "tokens"):
        part, whole = coverage[f"annotated_{what}"], coverage[what]
        print(f"annotated: {part} of {whole} {what} ({100 * part / whole:.1f}%)")


def cut(train: Sequence[str], valid: Sequence[str], merges: int, work: Preparation) -> None:
    """Learn BPE on the training lines; write ``code`` and both parts in subwords to ``raw``.

    Raises:
        ValueError: the text has no words of two letters.
    """
    # its libraries take a second to import, which --help should not
    from compgen.data import bitext

    words = work.folder / "words.partial"
    write_lines(words, train)
    bitext.learn_codes([words], merges, work.data / "code")
    bpe = bitext.Bpe(work.data / "code")
    for part, lines in (("train", train), ("valid", valid)):
        pieces = list(map(bpe, lines))
        for line in pieces:
            bitext.refuse_symbols(part, [line])
        write_lines(work.raw / part, pieces)
