"""STS benchmark: how similar two sentences are in meaning, as people rate it.

The STS benchmark (Cer et al., 2017, "SemEval-2017 Task 1") has ratings from 0 to 5, which are
written from 0 to 1 here.  For its pair of distributions CAT (Huang et al., 2024, section 5.2.2 and
appendix C.1, after Hendrycks et al., 2020) trains on pairs of the source ``images`` and tests on
those of ``MSRvid`` too.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compgen.data.archives import Package
from compgen.data.labelled_sentences import Example, SetParser, prepare

PARTS = {"train": "sts-train.csv", "valid": "sts-dev.csv", "test": "sts-test.csv"}
ARCHIVE = Package(
    "Stsbenchmark.tar.gz",
    tuple(f"stsbenchmark/{name}" for name in PARTS.values()),
    "http://ixa2.si.ehu.eus/stswiki/images/4/48",
)
HIGHEST = 5  # rating

DESCRIPTION = """\
Write the STS benchmark as a data folder DEST of fairseq's task sentence_prediction, labels from 0
to 1 (a fifth of the ratings):

  train 5,749   valid 1,500   test 1,379
  test1         with --ood: the test pairs of its genres

A genre is a name in one of the first two columns: main-captions, main-news or main-forums; MSRvid,
images, headlines and others. The paper's pair of distributions: --genres images --ood MSRvid.

Files: Stsbenchmark.tar.gz, or what it unpacks to: stsbenchmark/sts-train.csv, sts-dev.csv and
sts-test.csv; fields with tabs between, without quotes: genre, file, year, number, score, and the
two sentences; fields after them are not read.
"""


class Rated(NamedTuple):
    """A pair, and the names that its genre has."""

    genres: frozenset[str]
    example: Example


def read(name: str, lines: Sequence[str]) -> list[Rated]:
    """The pairs of one of the files, their ratings from 0 to 1.

    Raises:
        ValueError: a line has not the form that it should have.
    """
    rated = []
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        try:
            score, first, second = float(fields[4]), fields[5].strip(), fields[6].strip()
            right = 0 <= score <= HIGHEST
        except (ValueError, IndexError):
            right = False
        if not right:
            raise ValueError(
                f"{name}, line {number} is not of the form genre, file, year, number, score from"
                f" 0 to {HIGHEST}, two sentences."
            )
        label = f"{score / HIGHEST:.6g}"
        rated.append(Rated(frozenset(fields[:2]), Example(first, second, label)))
    return rated


def of_genres(pairs: Sequence[Rated], genres: str | None) -> list[Example]:
    """The pairs of the genres in a list like ``images,MSRvid``; None: all."""
    wanted = None if genres is None else {name.strip() for name in genres.split(",")}
    return [pair.example for pair in pairs if wanted is None or pair.genres & wanted]


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/sts_b.sh``."""
    parser = SetParser(
        "prepare/sts_b.sh",
        DESCRIPTION,
        folder="the publisher's files (default: $COMPGEN_DATA/sts_b if it is there; otherwise they"
        " are downloaded if --checksums lists them)",
    )
    add = parser.add_argument
    add("--genres", metavar="NAME,...", help="take only pairs of these genres (default: all)")
    add("--ood", metavar="NAME,...", help="test1: the test pairs of these genres")
    args = parser.parse_args(argv)

    def subsets(lines: Mapping[str, list[str]]) -> Mapping[str, Sequence[Example]]:
        read_of = {part: f"stsbenchmark/{name}" for part, name in PARTS.items()}
        pairs = {part: read(name, lines[name]) for part, name in read_of.items()}
        for flag, genres, part in (("genres", args.genres, "train"), ("ood", args.ood, "test")):
            for name in genres.split(",") if genres else ():
                if not of_genres(pairs[part], name):
                    raise ValueError(f"--{flag}: no {part} pair is of the genre {name.strip()!r}.")
        parts = {part: of_genres(found, args.genres) for part, found in pairs.items()}
        if args.ood is not None:
            parts["test1"] = of_genres(pairs["test"], args.ood)
        return parts

    settings = {"genres": args.genres, "ood": args.ood}
    prepare(parser, args, "sts_b", (ARCHIVE,), settings, subsets)
