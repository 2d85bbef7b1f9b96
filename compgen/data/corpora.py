"""What the translation corpora consist of, and how their published recipes clean them.

The recipes are those of fairseq's ``examples/translation``: ``prepare-wmt14en2de.sh`` (whose
default is the WMT'17 set), ``prepare-wmt14en2fr.sh`` and ``prepare-iwslt14.sh``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from compgen.data.archives import Package

Files = Sequence[tuple[str, str]]  # of the source and of the target


@dataclass(frozen=True)
class Corpus:
    """One data set.

    Args:
        title: its name.
        about: what ``--help`` says about it.
        folder: its folder in ``$COMPGEN_DATA``.
        languages: of the source and of the target.
        downloads: archives, or the files themselves.
        train: the files, by their names in the archives.
        test: likewise.
        valid: likewise; without any, every ``held_out``-th training pair.
        held_out: see ``valid``.
        merges: BPE merges by default.
        longest: the most tokens of a side in training and in what is held out of it; 0: any.
        ratio: the most tokens of one side per token of the other.
        words_first: the filter comes before the subwords and before the validation pairs are
            held out (IWSLT), not after (WMT).
        normalize, tokenize, split_dashes, lowercase: how the text is cleaned, see
            :class:`compgen.data.bitext.Moses`; test text is not normalised.
    """

    languages: tuple[str, str]
    train: Files
    test: Files
    valid: Files = ()
    title: str = ""
    about: str = ""
    folder: str = ""
    downloads: Sequence[Package] = ()
    held_out: int = 0
    merges: int = 40_000
    longest: int = 250
    ratio: float = 1.5
    words_first: bool = False
    normalize: bool = False
    tokenize: bool = False
    split_dashes: bool = False
    lowercase: bool = False

    @property
    def files(self) -> set[str]:
        """The names of all files that are read."""
        return {
            name for part in (self.train, self.valid, self.test) for two in part for name in two
        }


def _sides(languages: tuple[str, str], *names: str) -> Files:
    return [(name.format(languages[0]), name.format(languages[1])) for name in names]


STATMT = "http://statmt.org"
EN_DE, EN_FR, DE_EN = ("en", "de"), ("en", "fr"), ("de", "en")
Wmt = partial(Corpus, normalize=True, tokenize=True, split_dashes=True)

WMT17_EN_DE = Wmt(
    title="WMT'17 English-German",
    about="Europarl v7, Common Crawl and News Commentary v12; every 100th pair for validation;\n"
    "newstest2014 (3,003 sentences) for the test.",
    folder="wmt17_en_de",
    languages=EN_DE,
    downloads=[
        Package("training-parallel-europarl-v7.tgz", url=f"{STATMT}/wmt13"),
        Package("training-parallel-commoncrawl.tgz", url=f"{STATMT}/wmt13"),
        Package(
            "training-parallel-nc-v12.tgz", url="http://data.statmt.org/wmt17/translation-task"
        ),
        Package("test-full.tgz", url=f"{STATMT}/wmt14"),
    ],
    train=_sides(
        EN_DE,
        "training/europarl-v7.de-en.{}",
        "commoncrawl.de-en.{}",
        "training/news-commentary-v12.de-en.{}",
    ),
    test=[("test-full/newstest2014-deen-src.en.sgm", "test-full/newstest2014-deen-ref.de.sgm")],
    held_out=100,
)

WMT14_EN_FR = Wmt(
    title="WMT'14 English-French",
    about="Europarl v7, Common Crawl, UN, News Commentary v9 and the 10^9 corpus; every 1,333rd\n"
    "pair for validation; newstest2014 (3,003 sentences) for the test.",
    folder="wmt14_en_fr",
    languages=EN_FR,
    downloads=[
        Package("training-parallel-europarl-v7.tgz", url=f"{STATMT}/wmt13"),
        Package("training-parallel-commoncrawl.tgz", url=f"{STATMT}/wmt13"),
        Package("training-parallel-un.tgz", url=f"{STATMT}/wmt13"),
        Package("training-parallel-nc-v9.tgz", url=f"{STATMT}/wmt14"),
        Package("training-giga-fren.tar", url=f"{STATMT}/wmt10"),
        Package("test-full.tgz", url=f"{STATMT}/wmt14"),
    ],
    train=_sides(
        EN_FR,
        "training/europarl-v7.fr-en.{}",
        "commoncrawl.fr-en.{}",
        "un/undoc.2000.fr-en.{}",
        "training/news-commentary-v9.fr-en.{}",
        "giga-fren.release2.fixed.{}.gz",
    ),
    test=[("test-full/newstest2014-fren-src.en.sgm", "test-full/newstest2014-fren-ref.fr.sgm")],
    held_out=1333,
)

# WIT3's own address of this archive is gone; fairseq keeps a copy.
IWSLT14_DE_EN = Corpus(
    title="IWSLT'14 German-English",
    about="TED talks, lowercased; every 23rd pair for validation; dev2010, dev2012 and\n"
    "tst2010-2012 together (6,750 sentences) for the test.  The folder is German to English;\n"
    "fairseq trains in the other direction with --source-lang en --target-lang de.",
    folder="iwslt14_en_de",
    languages=DE_EN,
    downloads=[Package("de-en.tgz", url="https://dl.fbaipublicfiles.com/fairseq/data/iwslt14")],
    train=_sides(DE_EN, "de-en/train.tags.de-en.{}"),
    test=_sides(
        DE_EN,
        "de-en/IWSLT14.TED.dev2010.de-en.{}.xml",
        "de-en/IWSLT14.TEDX.dev2012.de-en.{}.xml",
        "de-en/IWSLT14.TED.tst2010.de-en.{}.xml",
        "de-en/IWSLT14.TED.tst2011.de-en.{}.xml",
        "de-en/IWSLT14.TED.tst2012.de-en.{}.xml",
    ),
    held_out=23,
    merges=10_000,
    longest=175,
    words_first=True,
    tokenize=True,
    lowercase=True,
)

MULTI30K_SHA256 = {
    "train.lc.norm.tok.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "train.lc.norm.tok.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    "val.lc.norm.tok.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "val.lc.norm.tok.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    "test_2016_flickr.lc.norm.tok.en": (
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"
    ),
    "test_2016_flickr.lc.norm.tok.de": (
        "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"
    ),
}

MULTI30K_EN_DE = Corpus(
    title="Multi30k English-German, task 1",
    about="Image captions, which the publisher has normalised, tokenised and lowercased: 29,000\n"
    "training and 1,014 validation pairs; test_2016_flickr (1,000) for the test.",
    folder="multi30k",
    languages=EN_DE,
    downloads=[
        Package(
            f"data/task1/tok/{name}",
            url="https://raw.githubusercontent.com/multi30k/dataset/master",
            sha256=sha256,
        )
        for name, sha256 in MULTI30K_SHA256.items()
    ],
    train=_sides(EN_DE, "data/task1/tok/train.lc.norm.tok.{}"),
    valid=_sides(EN_DE, "data/task1/tok/val.lc.norm.tok.{}"),
    test=_sides(EN_DE, "data/task1/tok/test_2016_flickr.lc.norm.tok.{}"),
    merges=10_000,
    longest=0,
)

CORPORA = {  # by the name of the prepare script
    "wmt17_en_de": WMT17_EN_DE,
    "wmt14_en_fr": WMT14_EN_FR,
    "iwslt14_en_de": IWSLT14_DE_EN,
    "multi30k_en_de": MULTI30K_EN_DE,
}
