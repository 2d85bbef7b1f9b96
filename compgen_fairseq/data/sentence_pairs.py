"""Pairs of text segments for masked language modelling and next sentence prediction.

Devlin et al. (2019), "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", section 3.1 and appendix A.2; CAT is pre-trained like this, too.

fairseq's ``BlockPairDataset`` draws pairs once, at its construction and from NumPy's global
generator, and its mode without documents does not run; so a small data set stands here.
"""

import itertools
import logging
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

from compgen_fairseq.data.word_sememes import Words, WordSememes

logger = logging.getLogger(__name__)

SHORT = 0.1  # share of the pairs that are shortened at random (BERT, appendix A.2)
MASKED, REPLACED = 0.8, 0.1  # of the chosen words; the others stay as they are
ENOUGH = 0.7  # of the segments should be followed by another of their document
SPECIAL = 3  # [CLS], [SEP], [SEP]


class Segments:
    """Consecutive segments of the documents of a text.

    A segment is as many whole sentences as fit; a sentence that does not fit alone is cut into
    pieces of about the same length. Document ``d`` has the segments ``begin[d]`` to
    ``begin[d + 1] - 1``.

    Args:
        sentences: the binarised sentences, each with its final ``</s>``; an empty one separates
            documents.
        sizes: their lengths.
        limit: the most subwords of a segment.
    """

    def __init__(self, sentences: Sequence[Tensor], sizes: Sequence[int], limit: int) -> None:
        self._sentences = sentences
        spans = array("q")  # of each segment: first and last sentence, offset, length
        begin = [0]
        first, total = 0, 0
        for index, size in enumerate(itertools.chain(sizes, [1])):
            size = int(size) - 1
            if total and (size == 0 or total + size > limit):
                spans.extend((first, index - 1, 0, total))
                total = 0
            if size == 0:
                if len(spans) > 4 * begin[-1]:
                    begin.append(len(spans) // 4)
            elif size > limit:
                cuts = np.linspace(0, size, -(-size // limit) + 1).astype(int).tolist()
                for start, end in itertools.pairwise(cuts):
                    spans.extend((index, index, start, end - start))
            else:
                first = first if total else index
                total += size
        self._spans = np.array(spans).reshape(-1, 4)
        self.begin = np.array(begin)
        self.document = np.repeat(np.arange(len(begin) - 1), np.diff(self.begin))
        self.lengths = self._spans[:, 3]

    def __len__(self) -> int:
        return len(self._spans)

    def followed(self, index: int) -> bool:
        """Whether the next segment is of the same document."""
        return index + 1 < self.begin[self.document[index] + 1]

    def read(self, index: int, words: WordSememes) -> tuple[np.ndarray, Words]:
        """The subwords of a segment, ``(T,)``, and its words."""
        first, last, offset, length = self._spans[index]
        sentences = [self._sentences[i][:-1].numpy() for i in range(first, last + 1)]
        tokens = np.concatenate(sentences)
        starts, rows = words(tokens)
        cut = slice(offset, offset + length)
        return tokens[cut], Words(starts[cut], rows[cut])


class SentencePairDataset(FairseqDataset):
    """``[CLS] a [SEP] b [SEP]`` with masked words; ``b`` follows ``a`` in half of the pairs.

    Every segment is ``a`` once per epoch. ``b`` is the next segment of the document or a random one
    of another document; the last of a document has always a random one. One pair in ten is
    shortened to a random length, at the outer ends, so that positions of short sentences are
    trained. All that is drawn depends on the seed, the epoch and the index alone.

    Args:
        sentences: binarised, one after the other, with an empty one between documents.
        sizes: their lengths, with ``</s>``.
        dictionary: with ``<mask>``; ``<s>`` is [CLS], ``</s>`` is [SEP].
        words: finds the words and their sememes.
        max_tokens: the most subwords of a pair, with [CLS] and [SEP].
        mask_prob: share of the subwords that are to be predicted, at least one in a pair.
        seed: draws masks, pairs and the order of batches.
        word_ids: say which word each subword belongs to; annotations are then one per word.

    Raises:
        ValueError: the text has fewer than three segments.
    """

    def __init__(
        self,
        sentences: Sequence[Tensor],
        sizes: Sequence[int],
        dictionary: Dictionary,
        words: WordSememes,
        *,
        max_tokens: int = 128,
        mask_prob: float = 0.15,
        seed: int = 1,
        word_ids: bool = False,
    ) -> None:
        self._limit = (max_tokens - SPECIAL) // 2
        self._segments = Segments(sentences, sizes, self._limit)
        if len(self._segments) < 3:
            raise ValueError(
                f"{len(self._segments)} segments of text are too few to draw pairs from;"
                " pre-training needs a longer text"
            )
        share = 1 - (len(self._segments.begin) - 1) / len(self._segments)
        if share < ENOUGH:
            logger.warning(
                "b follows a in only %.0f%% of the pairs, as documents are short: an empty line "
                "ends one, so leave out those between paragraphs",
                50 * share,
            )
        self._dictionary, self._words = dictionary, words
        self._mask = dictionary.index("<mask>")
        ordinary = range(dictionary.nspecial, len(dictionary))
        self._ordinary = np.setdiff1d(ordinary, [self._mask])
        self._mask_prob, self._seed, self._word_ids = mask_prob, seed, word_ids
        # seen by workers that fetch batches, too: fairseq keeps them for all epochs
        self._epoch = torch.ones(1, dtype=torch.long).share_memory_()
        # an upper bound: with another b, or shortened, a pair has fewer
        self.sizes = self._segments.lengths + self._limit + SPECIAL

    def __len__(self) -> int:
        return len(self._segments)

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    size = num_tokens

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def set_epoch(self, epoch: int) -> None:
        """Draw other pairs and masks."""
        self._epoch.fill_(epoch)

    def ordered_indices(self) -> np.ndarray:
        """By size, in random order where it is the same."""
        order = np.random.default_rng(self._seed).permutation(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    def __getitem__(self, index: int) -> dict[str, Any]:
        draw = np.random.default_rng([self._seed, int(self._epoch), index])
        follows = self._segments.followed(index) and draw.random() < 0.5
        other = index + 1 if follows else self._elsewhere(index, draw)
        (a, a_words), (b, b_words) = (self._segments.read(i, self._words) for i in (index, other))
        if draw.random() < SHORT:
            length = int(draw.integers(2, 2 * self._limit + 1)) // 2
            a, a_words = a[-length:], Words(*(part[-length:] for part in a_words))
            b, b_words = b[:length], Words(*(part[:length] for part in b_words))
        cls, sep = [self._dictionary.bos()], [self._dictionary.eos()]
        tokens = np.concatenate([cls, a, sep, b, sep])
        starts = np.concatenate([[True], a_words.starts, [True], b_words.starts, [True]])
        starts[[1, len(a) + 2]] = True  # a word whose beginning was cut off
        rows = np.concatenate([[-1], a_words.rows, [-1], b_words.rows, [-1]])
        source, target = self._masked(tokens, draw)
        item: dict[str, Any] = {
            "id": index,
            "source": torch.from_numpy(source),
            "target": torch.from_numpy(target),
            "rows": torch.from_numpy(rows),
            "next_sentence": int(follows),
        }
        if self._word_ids:
            item["words"] = torch.from_numpy(np.cumsum(starts) - 1)
            item["rows"] = item["rows"][torch.from_numpy(starts)]
        return item

    def segment(self, index: int) -> tuple[Tensor, Tensor]:
        """A segment as it stands, ``[CLS] a [SEP]``: its subwords, and which begin a word."""
        tokens, words = self._segments.read(index, self._words)
        tokens = np.concatenate([[self._dictionary.bos()], tokens, [self._dictionary.eos()]])
        starts = np.concatenate([[True], words.starts, [True]])
        starts[1] = True  # a word whose beginning was cut off
        return torch.from_numpy(tokens), torch.from_numpy(starts)

    def _elsewhere(self, index: int, draw: np.random.Generator) -> int:
        """A random segment of another document; of the same if there is no other."""
        document = self._segments.document[index]
        low, high = self._segments.begin[document : document + 2]
        if high - low == len(self):
            low, high = index, min(index + 2, len(self))
        other = int(draw.integers(len(self) - (high - low)))
        return other if other < low else other + int(high - low)

    def _masked(
        self, tokens: np.ndarray, draw: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Input and targets; the targets are pads but where a subword is to be predicted."""
        ordinary = np.flatnonzero(
            (tokens != self._dictionary.bos()) & (tokens != self._dictionary.eos())
        )
        number = max(int(self._mask_prob * len(ordinary) + draw.random()), 1)
        chosen = draw.choice(ordinary, number, replace=False)
        source, target = tokens.copy(), np.full_like(tokens, self._dictionary.pad())
        target[chosen] = tokens[chosen]
        fate = draw.random(number)
        source[chosen[fate < MASKED]] = self._mask
        replaced = chosen[(fate >= MASKED) & (fate < MASKED + REPLACED)]
        source[replaced] = draw.choice(self._ordinary, len(replaced))
        return source, target

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch.

        Returns:
            ``net_input`` (``src_tokens (B, T)``, ``src_lengths (B,)`` and, if asked for, ``words
            (B, T)``: the number of each subword's word in its pair, -1 for pads), ``target (B,
            T)``, ``next_sentence (B,)`` (1: b follows a), ``rows (B, T)``, or one per word, of
            :attr:`WordSememes.table`, -1 without annotation, ``id``, ``nsentences``, ``ntokens``.
        """
        if not samples:
            return {}
        pad = self._dictionary.pad()

        def stack(name: str, value: int) -> Tensor:
            return data_utils.collate_tokens([sample[name] for sample in samples], value)

        lengths = torch.tensor([len(sample["source"]) for sample in samples])
        net_input = {"src_tokens": stack("source", pad), "src_lengths": lengths}
        if self._word_ids:
            net_input["words"] = stack("words", -1)
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": net_input,
            "target": stack("target", pad),
            "next_sentence": torch.tensor([sample["next_sentence"] for sample in samples]),
            "rows": stack("rows", -1),
        }
