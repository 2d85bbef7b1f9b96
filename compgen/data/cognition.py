"""CoGnition: sentence pairs, compounds, and the Chinese text cut as the training set's is.

CoGnition (Li, Yin, Chen & Zhang, 2021, "On Compositional Generalization of Neural Machine
Translation") has 196,246 training pairs, 10,000 of validation and 10,000 of a random test, all cut
into words on both sides, and CG-test: 10,800 sentences, five in a row with the same novel compound;
3,600 with a noun phrase (NP), then 3,600 VP, then 3,600 PP. The words of the source stay whole; the
target is cut further by BPE with 2,000 merges, learned on its training side.

CG-test's Chinese is published *without spaces*. Taken as it is, one piece in eight is unknown to a
vocabulary that was made from words, and the loss on it says little. It is cut here into the words
of the training set (`Cutter`) and then like all target text; without spaces it reads as published,
so that BLEU on text whose spaces are removed does not depend on this.

With ``--valid cg20`` the validation set is *a part of the test set* (an out-of-distribution
development set, as Jiang, Zhou & Bansal, 2024, appendix B.1, use it): say so wherever a number
that it helped to choose is reported.
"""

import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from compgen.data.checksums import sha256
from compgen.data.preparation import Parser, Preparation, hold_out
from compgen.data.publisher import collect, copy_at_hand, expected
from compgen.ranges import SEED
from compgen.scoring.cter import GROUP, TYPES
from compgen.text import read_lines, single_spaced, write_lines

REPOSITORY = "https://raw.githubusercontent.com/yafuly/CoGnition/HEAD"
MERGES = 2000
TRAINING_PAIRS = 196_246
LOW_RESOURCE_PAIRS = 1_000  # of the random test, for validation

# SHA-256 of the publisher's files; that of the training files is not known here.
TRAINING = {"data/train.en": None, "data/train.zh": None}
OFFICIAL = {
    "data/valid.en": "a336ca17ddfb5f80d906fc3d0afa38c13688856a47009382451b62313a4c41e9",
    "data/valid.zh": "a9eaae6ba7a350ca9c43d97fd15b4aab4093fa612e908a2e4e7094a24e925c2e",
    "data/test.en": "243037e4bf1ab0e3d8b2116e75dac9579ec77ea6f9d15525e3b876ffbbd34257",
    "data/test.zh": "c64dd3ad84628a22ccdebe13146c5017a8256fb4c7a8e8d9c6921ae2e6b3fcbb",
    "data/cg-test/cg-test.en": "66c5bb14ef107b8f459c5f49d9e4efe5bae426a5095b5cb4a651fd48a3d07ba6",
    "data/cg-test/cg-test.zh": "b2f8493538eb4c8e3aecb077fa0e1492fc207ce5aea3ff14e80d777ab7de7b98",
    "data/cg-test/cg-test.compound": (
        "62184bdf2d0ea8de2201effe5b2e4fc01875807a8fa98208fc1b6806acf1fbee"
    ),
    "data/cg-test/NP/NP.en": "92315462fa6cc806e47f3b47538cd5d6eccebb970f4873158e106fefc845cfb0",
    "data/cg-test/VP/VP.en": "e4791d268186c840c0d5fcc9d144b029cf8ba705769ee074b78e2f9878ad8129",
    "data/cg-test/PP/PP.en": "65000b00feedc4afd16289e0696fa8172cca02c68a4b45e8c689572e1b2b82a5",
    "eval/lexicon": "5e7c515e40b53252f72c14500fa1d12f8cfc7b47634d055943bfc549c150a53b",
}

DESCRIPTION = """\
Write CoGnition as a fairseq data folder DEST, languages en and zh:

          full      --low-resource
  train   196,246   19,000 (the publisher's valid and the first 9,000 pairs of its random test)
  valid    10,000    1,000 (the others of the random test); 2,160 with --valid cg20
  test     10,800   10,800 CG-test, the test set of novel compounds
  test1    10,000        - the random test

The source is words, the target is BPE of 2,000 merges, learned on its training side. CG-test's
Chinese, published without spaces, is cut into words of the training set first. DEST also gets:

  bpe.codes          the merges (not with --tokens word)
  cter/lexicon       the publisher's lexicon
  cter/test.compound, cter/test.type
                     the novel compound and its type (NP, VP, PP) for each line of test; with
                     --valid cg20 also cter/valid.compound and cter/valid.type
  raw/               the text; without '@@ ' and spaces the target reads as published

The full set needs the publisher's data/train.en and data/train.zh in the --from folder. Their
checksum is not known here, so that they are not downloaded but counted. Numbers with
--low-resource are not comparable with the papers'."""

Lines = list[str]


class Cutter:
    """Divides sentences into the most probable words (unigram model).

    A character that is not a word counts as one that was seen half a time; of equally probable
    divisions the one with the shorter last word is taken. On 1,000 held-out training sentences of
    the low-resource setting it agrees with the publisher's own division in 96.5% (F1 of words).

    Args:
        frequencies: how often each word was seen.
    """

    def __init__(self, frequencies: Mapping[str, int]) -> None:
        total = sum(frequencies.values())
        self.words = {word: math.log(seen / total) for word, seen in frequencies.items()}
        self.unknown = math.log(0.5 / total)
        self.longest = max(map(len, frequencies))

    def __call__(self, sentence: str) -> str:
        """The sentence, whose own spaces do not count, with one space between words."""
        text = "".join(sentence.split())
        best = [(0.0, 0)]  # for each end: log probability, start of the last word
        for end in range(1, len(text) + 1):
            last = best[end - 1][0] + self.words.get(text[end - 1], self.unknown), end - 1
            longer = (
                (best[start][0] + self.words[text[start:end]], start)
                for start in range(max(0, end - self.longest), end - 1)
                if text[start:end] in self.words
            )
            best.append(max([last, *longer]))
        divided: Lines = []
        end = len(text)
        while end:
            start = best[end][1]
            divided.insert(0, text[start:end])
            end = start
        return " ".join(divided)


def choose_groups(lines: int, seed: int = 1) -> list[int]:
    """The line indices of a random 20% (rounded down) of the groups of five, in their order.

    Raises:
        ValueError: ``lines`` is not a multiple of five.
    """
    if lines % GROUP:
        raise ValueError(f"CG-test has {lines} lines, which are not groups of {GROUP}.")
    chosen, _ = hold_out(range(lines // GROUP), seed=seed)
    return [GROUP * group + i for group in chosen for i in range(GROUP)]


def compound_types(files: Mapping[str, Path], sources: Sequence[str]) -> Lines:
    """NP, VP or PP for each line of CG-test, whose lines are those of the three files in a row.

    Raises:
        ValueError: they are not.
    """
    types, joined = [], []
    for name in TYPES:
        lines = single_spaced(read_lines(files[f"data/cg-test/{name}/{name}.en"]))
        types += [name] * len(lines)
        joined += lines
    if joined != list(sources):
        raise ValueError(
            f"{files['data/cg-test/cg-test.en']} is not NP.en, VP.en and PP.en in a row."
        )
    return types


def read_pairs(files: Mapping[str, Path], name: str) -> tuple[Lines, Lines]:
    """The source and the target lines of ``data/name.{en,zh}``.

    Raises:
        ValueError: they are not equally many.
    """
    source = single_spaced(read_lines(files[f"data/{name}.en"]))
    return source, single_spaced(read_lines(files[f"data/{name}.zh"], len(source)))


def main(argv: Sequence[str] | None = None) -> None:
    """The command behind ``prepare/cognition.sh``."""
    parser = Parser(
        "prepare/cognition.sh",
        DESCRIPTION,
        folder="the publisher's files, a clone of github.com/yafuly/CoGnition (default:"
        " $COMPGEN_DATA/cognition if it is there; otherwise they are downloaded)",
        checksums="a list, as sha256sum writes it, of the checksums that the files have; for the "
        "training files, or when the others are not the publisher's",
    )
    add = parser.add_argument
    add("--low-resource", action="store_true", help="without the publisher's training set")
    add("--tokens", choices=("bpe", "word"), default="bpe", help="of the target (default: bpe)")
    text = (
        "validation set: see above (valid, the default), or a random 20%% of CG-test, which keeps "
        "it (cg20), as in the SQ-Transformer paper, but of whole groups of five"
    )
    add("--valid", choices=("valid", "cg20"), default="valid", help=text)
    parser.add_whole("--seed", SEED, "chooses cg20 (default: 1)", metavar="S")
    args = parser.parse_args(argv)
    if args.seed is not None and args.valid != "cg20":
        parser.error("--seed goes with --valid cg20")
    names = ("low_resource", "tokens", "valid", "seed")
    settings = {name: getattr(args, name) for name in names}
    if args.valid == "cg20" and args.seed is None:
        settings["seed"] = 1

    published = OFFICIAL if args.low_resource else OFFICIAL | TRAINING
    official = expected(published, args.checksums, settings)
    work = Preparation("prepare/cognition.sh", args.dest, settings, packages=["subword_nmt"])
    if work.done(folder=copy_at_hand("cognition", args.folder)):
        return
    with work:
        downloads = work.folder / "downloads"
        files = collect("cognition", official, REPOSITORY, downloads, args.folder)
        _write(work, files, official)
        tests = ("test",) if args.low_resource else ("test", "test1")
        work.finish("en", "zh", tests=tests, inputs=files)


def _write(
    work: Preparation, files: Mapping[str, Path], official: Mapping[str, str | None]
) -> None:
    """Write all of DEST that is text."""
    settings = work.settings
    valid, test = read_pairs(files, "valid"), read_pairs(files, "cg-test/cg-test")
    random_test = read_pairs(files, "test")
    subsets = {"test": test}
    if settings["low_resource"]:
        kept = len(random_test[0]) - LOW_RESOURCE_PAIRS
        if kept < 0:
            raise ValueError(
                f"{files['data/test.en']} has {kept + LOW_RESOURCE_PAIRS} lines; --low-resource"
                f" validates on the last {LOW_RESOURCE_PAIRS}."
            )
        train = valid[0] + random_test[0][:kept], valid[1] + random_test[1][:kept]
        valid = random_test[0][kept:], random_test[1][kept:]
    else:
        train = read_pairs(files, "train")
        count = len(train[0])
        if official["data/train.en"] is None and count != TRAINING_PAIRS:
            raise ValueError(
                f"{files['data/train.en']} has {count} lines, not the publisher's {TRAINING_PAIRS};"
                " get it again, or name its checksum with --checksums."
            )
        subsets["test1"] = random_test

    cut = Cutter(Counter(word for line in train[1] for word in line.split()))
    bar = tqdm(test[1], "cut CG-test", unit="line", disable=None)
    subsets["test"] = test[0], [cut(line) for line in bar]
    details = {
        "compound": single_spaced(read_lines(files["data/cg-test/cg-test.compound"])),
        "type": compound_types(files, test[0]),
    }
    for kind, lines in details.items():
        write_lines(work.data / "cter" / f"test.{kind}", lines)
    if settings["valid"] == "cg20":
        chosen = choose_groups(len(test[0]), settings["seed"])
        source, target = subsets["test"]
        valid = [source[i] for i in chosen], [target[i] for i in chosen]
        for kind, lines in details.items():
            write_lines(work.data / "cter" / f"valid.{kind}", (lines[i] for i in chosen))
    shutil.copyfile(files["eval/lexicon"], work.data / "cter" / "lexicon")

    encode: Callable[[str], str] = str
    if settings["tokens"] == "bpe":
        # its libraries take a second to import, which --help should not
        from compgen.data import bitext

        text = work.folder / "training.partial"
        write_lines(text, train[1])
        key = {"merges": MERGES, "training": sha256(text)}
        codes = work.step("bpe.codes", partial(bitext.learn_codes, [text], MERGES), key)
        shutil.copyfile(codes, work.data / "bpe.codes")
        encode = bitext.Bpe(codes)
    for subset, (source, target) in {"train": train, "valid": valid, **subsets}.items():
        write_lines(work.raw / f"{subset}.en", source)
        write_lines(work.raw / f"{subset}.zh", map(encode, target))
