"""Pre-training of CAT on pairs of text segments whose words have sememes."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING

from compgen.data.sememes import Annotations
from compgen.ranges import SHARE, Range, check, ranges
from compgen_fairseq.data.sentence_pairs import SentencePairDataset
from compgen_fairseq.data.word_sememes import WordSememes
from compgen_fairseq.options import option

logger = logging.getLogger(__name__)


@ranges((Range(5), ("tokens_per_sample",)), (SHARE, ("mask_prob",)))
@dataclass
class CATPretrainingTaskConfig(FairseqDataclass):
    """Options of ``--task cat_pretraining``."""

    data: str = option(MISSING, "the folder that prepare/pretraining.sh made")
    tokens_per_sample: int = option(
        128, "longest pair of segments, in subwords, [CLS] and [SEP] too"
    )
    mask_prob: float = option(0.15, "share of the subwords that masked LM predicts")
    word_average: bool = option(
        False,
        "guide the decomposition of words, each the mean of its subwords' states, as in the paper; "
        "otherwise every subword is guided to its word's sememes",
    )
    seed: int = II("common.seed")


@register_task("cat_pretraining", dataclass=CATPretrainingTaskConfig)
class CATPretrainingTask(FairseqTask):
    """Masked language modelling and next sentence prediction, with sememes.

    The data folder holds the text as ``fairseq-preprocess --only-source`` leaves it, a sentence per
    line and an empty line between documents, ``sememes.txt`` and ``annotations.tsv``.

    Attributes:
        annotations: which sememes a word may have.
        sememes: their names; a sememe's index is its code in the last layer.
        word_sememes: finds the annotated words.
    """

    cfg: CATPretrainingTaskConfig

    def __init__(
        self, cfg: CATPretrainingTaskConfig, dictionary: Dictionary, annotations: Annotations
    ):
        super().__init__(cfg)
        self.dictionary = dictionary
        self.annotations, self.sememes = annotations, annotations.names
        self.word_sememes = WordSememes(annotations, dictionary)

    @classmethod
    def setup_task(cls, cfg: CATPretrainingTaskConfig, **_: Any) -> "CATPretrainingTask":
        """Read the dictionary and the annotations.

        Raises:
            FileNotFoundError: the folder has not what pre-training needs.
            ValueError: a number makes no sense.
        """
        check(cfg)
        folder = Path(cfg.data)
        try:
            annotations = Annotations.read(folder)
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise FileNotFoundError(f"{reason}; prepare/pretraining.sh makes the data") from None
        dictionary = Dictionary.load(str(folder / "dict.txt"))
        dictionary.add_symbol("<mask>")
        logger.info("%d subwords, %d sememes", len(dictionary), len(annotations.names))
        return cls(cfg, dictionary, annotations)

    def load_dataset(self, split: str, combine: bool = False, **_: Any) -> SentencePairDataset:
        """Load a part of the text.

        Raises:
            FileNotFoundError: it is not there.
        """
        path = str(Path(self.cfg.data, split))
        sentences = data_utils.load_indexed_dataset(path, self.dictionary, combine=combine)
        if sentences is None:
            raise FileNotFoundError(f"{path}.bin is not there: {self.cfg.data} has no {split}")
        self.datasets[split] = SentencePairDataset(
            sentences,
            sentences.sizes,
            self.dictionary,
            self.word_sememes,
            max_tokens=self.cfg.tokens_per_sample,
            mask_prob=self.cfg.mask_prob,
            seed=self.cfg.seed,
            word_ids=self.cfg.word_average,
        )
        logger.info("%s: %d pairs of segments per epoch", split, len(self.datasets[split]))
        return self.datasets[split]

    def max_positions(self) -> int:
        """The longest pair."""
        return self.cfg.tokens_per_sample

    @property
    def source_dictionary(self) -> Dictionary:
        """The subwords."""
        return self.dictionary

    target_dictionary = source_dictionary
