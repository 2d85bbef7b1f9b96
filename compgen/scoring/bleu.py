"""BLEU and chrF through sacreBLEU, on sentences put back into plain text first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compgen.text import in_subwords, joined

if TYPE_CHECKING:  # a command's --help need not wait for sacreBLEU
    from sacrebleu.metrics.base import Metric, Score

TOKENIZERS = ("13a", "zh", "intl", "char", "none")
DETOKENIZERS = ("none", "subwords", "chinese", "moses")
SCORES = ("bleu", "chrf")


@dataclass(frozen=True)
class BleuOptions:
    """How BLEU or chrF is to be counted.

    CoGnition as published is ``BleuOptions(tokenize="zh", detokenize="chinese")``
    (Li et al., 2021; Jiang, Zhou and Bansal, 2024).

    Args:
        tokenize: sacreBLEU's tokenizer, one of ``TOKENIZERS``.
        detokenize: one of ``DETOKENIZERS``, see :func:`plain_text`.
        language: code of the target language, for ``moses`` only.
        lowercase: compare without case.
        score: one of ``SCORES``; chrF (Popović, 2015) knows no tokenizer.

    Raises:
        ValueError: if a tokenizer, a detokenizer or a score has another name.
    """

    tokenize: str = "13a"
    detokenize: str = "none"
    language: str = "en"
    lowercase: bool = False
    score: str = "bleu"

    def __post_init__(self) -> None:
        named = (self.tokenize, TOKENIZERS), (self.detokenize, DETOKENIZERS), (self.score, SCORES)
        for name, names in named:
            if name not in names:
                raise ValueError(f"{name} is none of {', '.join(names)}")

    def metric(self) -> Metric:
        """sacreBLEU's metric; it does not warn of tokenized text, as the signature tells."""
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        if self.score == "chrf":
            return CHRF(lowercase=self.lowercase)
        return BLEU(tokenize=self.tokenize, lowercase=self.lowercase, force=True)

    def describe(self) -> str:
        """What sacreBLEU's own signature leaves out: ``detok:moses.de``."""
        language = f".{self.language}" if self.detokenize == "moses" else ""
        return f"detok:{self.detokenize}{language}"


def plain_text(sentences: Sequence[str], options: BleuOptions) -> list[str]:
    """Undo the tokenization of a system's output or of its references.

    All ways but ``none``, which keeps sentences as they are, join subwords: ``subwords`` does no
    more, ``chinese`` removes every space, ``moses`` is sacremoses's detokenizer for the language.

    Raises:
        ValueError: ``none`` of sentences in subwords.
    """
    if options.detokenize == "none":
        if in_subwords(sentences):
            raise ValueError(
                "the sentences are in subwords: decode with --remove-bpe, or say "
                "--detokenize subwords"
            )
        return list(sentences)
    whole = [joined(sentence) for sentence in sentences]
    if options.detokenize == "subwords":
        return whole
    if options.detokenize == "chinese":
        return ["".join(sentence.split()) for sentence in whole]
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(options.language)
    return [moses.detokenize(sentence.split()) for sentence in whole]


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], options: BleuOptions
) -> tuple[Score, str]:
    """BLEU or chrF of a corpus with one reference per sentence (Papineni et al., 2002; Post, 2018).

    Args:
        hypotheses: one sentence each, as the system wrote them.
        references: one sentence each, in the same order; both are detokenized here.
        options: how to count.

    Returns:
        sacreBLEU's score, and a signature that ends in sacreBLEU's own.

    Raises:
        ValueError: if there is nothing to score, or not one reference for each hypothesis.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses cannot be compared with {len(references)} references"
        )
    if not hypotheses:
        raise ValueError("there are no sentences to score")
    metric = options.metric()
    score = metric.corpus_score(plain_text(hypotheses, options), [plain_text(references, options)])
    return score, f"{options.describe()}|n:{len(hypotheses)}|{metric.get_signature()}"
