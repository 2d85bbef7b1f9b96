"""SST-2: is a film review, or a part of one, positive?

The sentences of the Stanford Sentiment Treebank (Socher et al., 2013) with two classes, as GLUE
(Wang et al., 2018) publishes them.  GLUE's test set has no labels, so its development set is the
test set here, and part of the training set is held out for validation.  Most training lines are
phrases out of longer lines, so a held-out line may be a part of one that is trained on.
"""

from collections.abc import Mapping, Sequence

from compgen.data.archives import Package
from compgen.data.labelled_sentences import Example, SetParser, prepare
from compgen.data.preparation import hold_out
from compgen.ranges import AT_LEAST_1, SEED
from compgen.text import table

ARCHIVE = Package(
    "SST-2.zip", ("SST-2/train.tsv", "SST-2/dev.tsv"), "https://dl.fbaipublicfiles.com/glue/data"
)
COLUMNS, CLASSES = ("sentence", "label"), ("0", "1")  # negative, positive

DESCRIPTION = """\
Write SST-2 as a data folder DEST of fairseq's task sentence_prediction; class 1 is "positive":

  train   67,349 without those of valid
  valid    1,000 of the publisher's training lines, or as many as --valid-size says
  test       872 the publisher's development set; its test set has no labels

Files: SST-2.zip, or what it unpacks to: SST-2/train.tsv and SST-2/dev.tsv; the columns sentence and
label, with a tab between.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/sst2.sh``."""
    parser = SetParser(
        "prepare/sst2.sh",
        DESCRIPTION,
        folder="the publisher's files (default: $COMPGEN_DATA/sst2 if it is there; otherwise they"
        " are downloaded if --checksums lists them)",
    )
    parser.add_whole("--valid-size", AT_LEAST_1, "lines (default: 1000)", 1000)
    parser.add_whole("--seed", SEED, "chooses them (default: 1)", 1, metavar="S")
    args = parser.parse_args(argv)

    def subsets(lines: Mapping[str, list[str]]) -> Mapping[str, Sequence[Example]]:
        train, test = (
            [Example(text, None, label) for text, label in table(name, lines[name], COLUMNS)]
            for name in ARCHIVE.members
        )
        valid, train = hold_out(train, args.valid_size, args.seed)
        return {"train": train, "valid": valid, "test": test}

    settings = {"valid_size": args.valid_size, "seed": args.seed}
    prepare(parser, args, "sst2", (ARCHIVE,), settings, subsets, CLASSES)
