"""PAWS: pairs of sentences with the same words; are they paraphrases?

PAWS (Zhang, Baldridge & He, 2019, "PAWS: Paraphrase Adversaries from Word Scrambling") has pairs
from Wikipedia and from Quora's questions.  The Wikipedia pairs come labelled in two packages:
``final`` (words swapped, or translated there and back) and ``swap`` (words swapped only).  CAT
(Huang et al., 2024, section 5.2.1 and appendix C.1) fine-tunes on PAWS and reports, on the swapped
pairs, the share of the non-paraphrases that are recognised.  It names PAWS-QQP for the fine-tuning,
but the examples that it shows of it are Wikipedia's.
"""

import ast
import re
from collections.abc import Mapping, Sequence

from compgen.data.archives import Package
from compgen.data.labelled_sentences import Example, SetParser, prepare
from compgen.data.preparation import hold_out
from compgen.ranges import AT_LEAST_1, SEED
from compgen.text import table

URL = "https://storage.googleapis.com/paws/english"
WIKI = Package(
    "paws_wiki_labeled_final.tar.gz", ("final/train.tsv", "final/dev.tsv", "final/test.tsv"), URL
)
SWAP = Package("paws_wiki_labeled_swap.tar.gz", ("swap/train.tsv",), URL)
# Quora's licence forbids to offer them: the publisher has a program that makes them.
QQP = (Package("paws_qqp/train.tsv"), Package("paws_qqp/dev_and_test.tsv"))
CLASSES = ("0", "1")  # no paraphrase, paraphrase
COLUMNS = ("sentence1", "sentence2", "label")
BYTES = re.compile(r"""b(['"]).*\1""", re.DOTALL)

DESCRIPTION = """\
Write PAWS as a data folder DEST of fairseq's task sentence_prediction; class 1 is "paraphrase":

          --corpus wiki   --corpus qqp
  train   49,401          11,988 without those of valid
  valid    8,000           1,000 of the training pairs, or as many as --valid-size says
  test     8,000             677 (development and test set are one file)
  test1   30,397          30,397 PAWS (swap-only), Wikipedia's pairs with swapped words

Files: paws_wiki_labeled_final.tar.gz and paws_wiki_labeled_swap.tar.gz, or what they unpack to
(final/*.tsv, swap/train.tsv). PAWS-QQP is made by the publisher's program from Quora's questions:
paws_qqp/train.tsv and paws_qqp/dev_and_test.tsv. All have the columns id, sentence1, sentence2,
label, with tabs between.
"""


def read(name: str, lines: Sequence[str]) -> list[Example]:
    """The pairs of one of the files.

    Sentences that the publisher's program wrote as Python's byte literals (``b'...'``) are decoded.

    Raises:
        ValueError: a line has not the form that it should have.
    """
    examples = []
    for number, (first, second, label) in enumerate(table(name, lines, COLUMNS), start=2):
        try:
            examples.append(Example(_decode(first), _decode(second), label))
        except (ValueError, SyntaxError, AttributeError):
            raise ValueError(f"{name}, line {number} has a broken b'...' literal.") from None
    return examples


def _decode(sentence: str) -> str:
    if BYTES.fullmatch(sentence):
        return ast.literal_eval(sentence).decode("utf-8")
    return sentence


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/paws.sh``."""
    parser = SetParser(
        "prepare/paws.sh",
        DESCRIPTION,
        folder="the publisher's files (default: $COMPGEN_DATA/paws if it is there; otherwise"
        " Wikipedia's are downloaded if --checksums lists them)",
    )
    text = "what to train on: pairs from Wikipedia (wiki, the default) or Quora's questions (qqp)"
    parser.add_argument("--corpus", choices=("wiki", "qqp"), default="wiki", help=text)
    parser.add_whole("--valid-size", AT_LEAST_1, "of qqp (default: 1000)")
    text = "chooses the validation pairs of qqp (default: 1)"
    parser.add_whole("--seed", SEED, text, metavar="S")
    args = parser.parse_args(argv)
    qqp = args.corpus == "qqp"
    if not qqp and (args.valid_size is not None or args.seed is not None):
        parser.error("--valid-size and --seed go with --corpus qqp")
    size = 1000 if args.valid_size is None else args.valid_size
    seed = 1 if args.seed is None else args.seed

    def subsets(lines: Mapping[str, list[str]]) -> Mapping[str, Sequence[Example]]:
        parts = {name: read(name, text) for name, text in lines.items()}
        swapped = parts["swap/train.tsv"]
        if qqp:
            valid, train = hold_out(parts["paws_qqp/train.tsv"], size, seed)
            test = parts["paws_qqp/dev_and_test.tsv"]
        else:
            train, valid, test = (parts[name] for name in WIKI.members)
        return {"train": train, "valid": valid, "test": test, "test1": swapped}

    settings = {"corpus": args.corpus, **({"valid_size": size, "seed": seed} if qqp else {})}
    packages = (*QQP, SWAP) if qqp else (WIKI, SWAP)
    prepare(parser, args, "paws", packages, settings, subsets, CLASSES)
