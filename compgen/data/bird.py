"""BiRD: how much two-word phrases are related, as people rate it.

BiRD (Asaadi, Mohammad & Kiritchenko, 2019, "Big BiRD: A Large, Fine-Grained, Bigram Relatedness
Dataset for Examining Semantic Composition") has more than three thousand pairs of phrases with
ratings from 0 to 1.  BiRD-ABBA (Yu & Ettinger, 2020) are its pairs of the same words in another
order ("law school", "school law").  CAT (Huang et al., 2024, section 5.2.1 and appendix C.1)
reports the correlation of the ratings with cosines of [CLS] on both.
"""

from collections.abc import Mapping, Sequence

from compgen.data.archives import Package
from compgen.data.labelled_sentences import Example, SetParser, prepare
from compgen.text import table

FILE = Package("BiRD.txt")
COLUMNS = "term1,term2,score"

DESCRIPTION = """\
Write BiRD as a data folder DEST of fairseq's task sentence_prediction, labels from 0 to 1:

  test    all pairs of phrases
  test1   BiRD-ABBA: those of the same words in another order, without regard to case

There is nothing to train on. File: BiRD.txt, with tabs between the fields and a first line that
names them. Three columns are read: term1, term2 and score; --columns says other names.
"""


def read(name: str, lines: Sequence[str], columns: Sequence[str]) -> list[Example]:
    """The pairs of phrases.

    Args:
        name: the file's, for messages.
        lines: of the file.
        columns: the names of the two phrases' and of the score's column.

    Raises:
        ValueError: a line has not the form that it should have.
    """
    examples = []
    for number, fields in enumerate(table(name, lines, columns), start=2):
        try:
            right = 0 <= float(fields[2]) <= 1
        except ValueError:
            right = False
        if not right:
            raise ValueError(f"{name}, line {number}: the score {fields[2]!r} is not in [0, 1].")
        examples.append(Example(*fields))
    return examples


def is_swapped(example: Example) -> bool:
    """Whether the two phrases have the same words in another order."""
    one, other = ((phrase or "").lower().split() for phrase in example[:2])
    return one != other and sorted(one) == sorted(other)


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/bird.sh``."""
    parser = SetParser(
        "prepare/bird.sh",
        DESCRIPTION,
        folder="the folder of BiRD.txt (default: $COMPGEN_DATA/bird); it is never downloaded",
    )
    text = "the columns of the phrases and of the score (default: %(default)s)"
    parser.add_argument("--columns", metavar="A,B,SCORE", default=COLUMNS, help=text)
    args = parser.parse_args(argv)
    columns = args.columns.split(",")
    if len(columns) != 3:
        parser.error(f"--columns has to name three columns, not {args.columns!r}")

    def subsets(lines: Mapping[str, list[str]]) -> Mapping[str, Sequence[Example]]:
        examples = read(FILE.name, lines[FILE.name], columns)
        return {"test": examples, "test1": [pair for pair in examples if is_swapped(pair)]}

    prepare(parser, args, "bird", (FILE,), {"columns": args.columns}, subsets)
