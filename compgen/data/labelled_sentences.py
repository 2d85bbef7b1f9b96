"""Sentences and pairs of sentences with a label, as fairseq's ``sentence_prediction`` reads them.

Such a folder has ``input0/``, for pairs ``input1/``, and ``label/``, each with a file or two for
every subset.  Classes have a dictionary in ``label/dict.txt``, in the order of their names; numbers
stand as text in ``label/SUBSET.label``.

The sentences are written as a model's pre-training text is, with its subwords and its dictionary,
so that a fine-tuned model sees what it was pre-trained on.
"""

import argparse
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compgen.data.archives import Package, gather, official
from compgen.data.checksums import check_file, sha256
from compgen.data.preparation import Parser, Preparation
from compgen.data.publisher import copy_at_hand, expected
from compgen.text import count_lines, read_dictionary, write_lines

DICTIONARY, CODES = "dict.txt", "code"  # files of the pre-training folder
CONTINUED = "@@"  # after all subwords but the last of a word

ABOUT = """
The sentences are written like the text in PRETRAINED, with its subwords and its dictionary: in
small letters if that text has no others, and without the characters that are not in it. For
PREPARED.json PRETRAINED is the SHA-256 of these two files.
"""


class Example(NamedTuple):
    """A sentence, or two (else None), and its label: the name of a class, or a number."""

    first: str
    second: str | None
    label: str


class SetParser(Parser):
    """The options of the scripts that prepare labelled sentences.

    Args:
        script: the script as a user calls it, ``prepare/paws.sh``.
        description: what the script makes; what holds for all of them is added.
        folder: help of ``--from``.
    """

    def __init__(self, script: str, description: str, *, folder: str) -> None:
        super().__init__(
            script,
            description + ABOUT,
            folder=folder,
            checksums="a list, as sha256sum writes it, of the checksums that the publisher's files"
            " must have",
        )
        text = f"the data folder of the model's pre-training, with {DICTIONARY} and {CODES}"
        self.add_argument("--pretrained", metavar="FOLDER", type=Path, required=True, help=text)


class Subwords:
    """Sentences as the pre-training text is written, in its subwords.

    Args:
        pretrained: the folder of its dictionary and its BPE codes.

    Raises:
        ValueError: a file is missing or is no such file.
    """

    def __init__(self, pretrained: Path) -> None:
        # these take a second to import, which --help should not
        from sacremoses import MosesTokenizer

        from compgen.data.bitext import Bpe

        self.dictionary, codes = pretrained / DICTIONARY, pretrained / CODES
        types = read_dictionary(self.dictionary)
        check_file(codes, None)
        self.digest = f"{sha256(self.dictionary)}-{sha256(codes)}"
        self._characters = set("".join(name.removesuffix(CONTINUED) for name in types))
        # some capitals have no small letter
        self._lowercase = all(c == c.lower() for c in self._characters)
        self._escape = any(name in kind for kind in types for name in ("&apos;", "&quot;"))
        self._tokenizer = MosesTokenizer("en")
        self._bpe = Bpe(codes)

    def __call__(self, sentence: str) -> str:
        """Tokenised with Moses' rules, without foreign characters, in subwords."""
        text = self._tokenizer.tokenize(sentence, return_str=True, escape=self._escape)
        text = text.lower() if self._lowercase else text
        known = "".join(c if c in self._characters else " " for c in text)
        return self._bpe(" ".join(known.split()))


def prepare(
    parser: SetParser,
    args: argparse.Namespace,
    name: str,
    packages: Sequence[Package],
    settings: dict[str, Any],
    subsets: Callable[[Mapping[str, list[str]]], Mapping[str, Sequence[Example]]],
    classes: Sequence[str] | None = None,
) -> None:
    """What the scripts do with their command line: make DEST, or see that it is there.

    Args:
        parser, args: of the script.
        name: the data set's folder in ``$COMPGEN_DATA``.
        packages: what the publisher offers, and what is read of it.
        settings: all options that decide the bytes of DEST, but for those of :class:`SetParser`.
        subsets: the examples of each subset, of the lines of each of the publisher's files.
        classes: the names of the classes; None: the labels are numbers.
    """
    subwords = Subwords(args.pretrained)
    settings = {"pretrained": subwords.digest, **settings}
    digests = expected(official(packages), args.checksums, settings)
    work = Preparation(parser.prog, args.dest, settings, packages=("subword_nmt", "sacremoses"))
    if work.done(folder=copy_at_hand(name, args.folder)):
        return
    with work:
        downloads = work.folder / "downloads"
        lines, inputs = gather(name, packages, digests, downloads, args.folder)
        finish_sets(work, subsets(lines), subwords, classes, inputs)


def finish_sets(
    work: Preparation,
    subsets: Mapping[str, Sequence[Example]],
    subwords: Subwords,
    classes: Sequence[str] | None,
    inputs: Mapping[str, Path],
) -> None:
    """Write and binarise the subsets, write ``PREPARED.json`` and put DEST in its place.

    Args:
        work: the folder that is made.
        subsets: by name: ``train`` and ``valid``, if there are any, then ``test``, ``test1``.
        subwords: how the sentences are written.
        classes: the names of the classes; None: the labels are numbers.
        inputs: the publisher's files that were read.

    Raises:
        ValueError: a subset is empty, or a label is no class.
    """
    for subset, examples in subsets.items():
        if not examples:
            raise ValueError(f"the publisher's files leave no sentence for {subset}.")
        sides = {"input0": [e.first for e in examples]}
        if examples[0].second is not None:
            sides["input1"] = [e.second or "" for e in examples]
        for key, sentences in sides.items():
            write_lines(work.raw / f"{subset}.{key}", map(subwords, sentences))
        labels = [e.label for e in examples]
        if classes and (foreign := sorted(set(labels) - set(classes))):
            raise ValueError(f"{foreign[0]!r} in {subset} is none of {', '.join(classes)}.")
        write_lines(work.raw / f"{subset}.label", labels)
        if classes is None:
            write_lines(work.data / "label" / f"{subset}.label", labels)
    for key in sides:
        _binarise_side(work, key, subwords.dictionary, subsets)
    if classes is not None:
        names = work.data / "label" / DICTIONARY
        write_lines(names, (f"{name} 1" for name in classes))
        _binarise_side(work, "label", names, subsets)
    sizes = {name: len(examples) for name, examples in subsets.items()}
    vocabulary = {"input0": count_lines(work.data / "input0" / DICTIONARY) + 4}
    work.publish({"pairs": sizes, "vocabulary": vocabulary}, inputs)
    print(f"{work.dest}:", ", ".join(f"{n} {part}" for part, n in sizes.items()))


def _binarise_side(work: Preparation, key: str, dictionary: Path, subsets: Iterable[str]) -> None:
    """Write what ``fairseq-preprocess --only-source --srcdict`` would, in this process."""
    # fairseq takes seconds to import, and says then that tensorboardX is missing
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
    from fairseq.data import Dictionary

    folder = work.data / key
    folder.mkdir(exist_ok=True)
    words = Dictionary.load(str(dictionary))
    words.save(str(folder / DICTIONARY))
    for subset in subsets:
        FileBinarizer.multiprocess_dataset(
            str(work.raw / f"{subset}.{key}"),
            "mmap",
            VocabularyDatasetBinarizer(words, append_eos=True),
            str(folder / subset),
            vocab_size=len(words),
            num_workers=1,
        )
