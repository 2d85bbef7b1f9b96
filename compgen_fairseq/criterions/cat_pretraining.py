"""CAT's pre-training loss: BERT's tasks, guided decomposition, semantics composition.

Huang et al. (2024), "Towards Equipping Transformer with the Ability of Systematic
Compositionality", section 4 and appendix B.1.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from compgen.ranges import AT_LEAST_0, RATE, check, ranges
from compgen_fairseq.criterions import composition_terms as terms
from compgen_fairseq.criterions.terms_cross_entropy import WeightedTerm, log_means, reduced
from compgen_fairseq.models.cat import PretrainingOutputs
from compgen_fairseq.models.cat_transformer import REPRESENTATIONS
from compgen_fairseq.options import option

#: The weights that each ablation sets to 0.
ABLATIONS = {
    "none": (),
    "guided-decomposition": ("guided_decomposition", "sparsity"),
    "semantics-composition": ("reconstruction", "sufficiency", "nuance"),
    "reconstruction": ("reconstruction",),
    "sufficiency": ("sufficiency",),
    "nuance": ("nuance",),
}


@ranges(
    (AT_LEAST_0, ("task_loss", "guided_decomposition", "sparsity", "reconstruction")),
    (AT_LEAST_0, ("sufficiency", "nuance")),
    (RATE, ("reconstruction_beta",)),
)
@dataclass
class CATPretrainingConfig(FairseqDataclass):
    """The weights of the terms, all 1 in the paper, and what is left out.

    The paper's L1 norm is a sum, this one a mean. With 1 it keeps whichever code is strongest, with
    0.1 the guidance to right sememes still outweighs it.
    """

    task_loss: float = option(
        1.0,
        "weight of masked LM and next sentence prediction on h_cont, beside equation 6, which has "
        "them once more; 0: they are counted once",
    )
    guided_decomposition: float = option(
        1.0, "weight of the attention to wrong sememes (equation 4, first term)"
    )
    guidance: ChoiceEnum(["weights", "scores"]) = option(  # type: ignore[valid-type]
        "scores",
        "what the first term of equation 4 is about: the codes' scores before the ReLU, so that "
        "right sememes of weight 0 still get a gradient, or their weights, as published, with "
        "which the last layer collapses to a few codes",
    )
    unguided_masked: bool = option(
        False, "leave words that are to be predicted out of the first term of equation 4"
    )
    sparsity: float = option(
        0.1,
        "weight of the mean attention to a code, summed over layers (equation 4, second term; the "
        "paper: 1); 0 gives it no gradient",
    )
    reconstruction: float = option(
        1.0, "weight of the mean square of h_comp - h_cont, summed over layers (equation 5)"
    )
    reconstruction_beta: float = option(
        terms.BETA,
        "weight, in [0, 1), of the part of equation 5 that moves h_cont (the paper: 0.1)",
    )
    sufficiency: float = option(
        1.0, "weight of BERT's tasks on each of h_cont, h_comp and h_mix (equation 6)"
    )
    nuance: float = option(
        1.0, "weight of what h_cont - h_comp still tells: entropy and BERT's tasks (equation 7)"
    )
    ablation: ChoiceEnum(list(ABLATIONS)) = option(  # type: ignore[valid-type]
        "none",
        "what is left out: guided-decomposition is equation 4, semantics-composition equations 5 "
        "to 7, of which the others leave out one each",
    )


@register_criterion("cat_pretraining", dataclass=CATPretrainingConfig)
class CATPretrainingCriterion(FairseqCriterion):
    """``L_task + L_GD + L_SC``: a sum of ``weight * mean``, the means over all workers.

    ``L_task`` is masked LM and next sentence prediction of the contextual states (appendix B.1),
    which equation 6 counts once more; both are taken literally, so the contextual states have
    twice the weight of the others, and without equation 6 BERT's own loss is left.

    Equation 7 wants the tasks to fail on ``h_cont - h_comp``; equation 10 writes ``h_cont`` and
    ``h_comp`` in its place, which would make them fail on the very states that equation 6 wants to
    be sufficient. So ``h_cont - h_comp`` it is. Of equation 10 the two exponentials are taken:
    ``exp(-MLM) + exp(-NSP)``, because ``exp(-(MLM + NSP))`` vanishes as soon as one is large.

    Logged by name, unweighted, in nats: ``mlm_X`` and ``nsp_X`` for each representation X, the
    perplexity ``ppl_X`` and the accuracy ``nsp_accuracy_X``, ``guided_decomposition``,
    ``sparsity``, ``reconstruction``, ``nuance_entropy``, ``nuance_mlm``, ``nuance_nsp``, and
    ``zeros_N``, the share of layer N's codes that a token does not use, and ``unused_N``, the share
    that no token of a batch uses. ``loss`` is in nats, too.

    With ``--update-freq`` above 1 the means are taken over each mini-batch.

    Args:
        cfg: the options.
        task: ``cat_pretraining``, which knows the words' sememes.

    Raises:
        ValueError: the task does not, or a number makes no sense.
    """

    sememes: Tensor  # (annotated words, S), see WordSememes.table

    models = ("cat",)

    def __init__(self, cfg: CATPretrainingConfig, task: Any):
        super().__init__(task)
        check(cfg)
        if not hasattr(task, "word_sememes"):
            raise ValueError("--criterion cat_pretraining goes with --task cat_pretraining")
        left_out = ABLATIONS[cfg.ablation]
        names = {name for names in ABLATIONS.values() for name in names} | {"task_loss"}
        self.weights = {n: 0.0 if n in left_out else float(getattr(cfg, n)) for n in names}
        self.by_scores = cfg.guidance == "scores"
        self.unguided_masked = cfg.unguided_masked
        self.beta = cfg.reconstruction_beta
        self.register_buffer("sememes", task.word_sememes.table, persistent=False)

    def forward(self, model, sample, reduce=True):
        """The loss of a batch of pairs, its number of masked subwords, and what to log.

        Raises:
            ValueError: no term has a weight.
        """
        masked = sample["target"].ne(self.padding_idx)
        asked = self._asked(model)
        scores = self.by_scores and self.weights["guided_decomposition"] > 0
        _, extra = model(
            **sample["net_input"], masked_tokens=masked, pretraining=asked, scores=scores
        )
        outputs: PretrainingOutputs = extra["pretraining"]
        words, follows = sample["target"][masked], sample["next_sentence"]
        values = list(self._tasks(outputs, words, follows))
        if outputs.composition is not None:
            values += self._composition(outputs, sample)
        dummy = bool(sample.get("ignore_grad", False))
        size = masked.sum()
        loss, share, log = reduced(values, size * (not dummy), dummy, distributed=self.training)
        logging_output: dict[str, Any] = {
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": size,
            **log,
            "loss": share,
        }
        return loss, size, logging_output

    def _asked(self, model: Any) -> tuple[str, ...]:
        """The representations that the heads are to read."""
        if model.cfg.composition == "none":
            if not self.weights["task_loss"]:
                raise ValueError("--task-loss 0 leaves --composition none without a loss")
            return ("cont",)
        asked = REPRESENTATIONS if self.weights["sufficiency"] else ("cont",)
        return (*asked, "nuance") if self.weights["nuance"] else asked

    def _tasks(
        self, outputs: PretrainingOutputs, words: Tensor, follows: Tensor
    ) -> Iterator[WeightedTerm]:
        """Masked LM and next sentence prediction: ``L_task``, equations 6 and 7."""
        pairs = torch.tensor(len(follows), device=follows.device)
        number = torch.tensor(len(words), device=words.device)
        plain = outputs.composition is None
        for name, logits in outputs.words.items():
            next_logits = outputs.next_sentence[name].float()
            mlm = F.cross_entropy(logits.float(), words, reduction="sum")
            nsp = F.cross_entropy(next_logits, follows, reduction="sum")
            if name == "nuance":
                weight = self.weights["nuance"]
                yield WeightedTerm("nuance_mlm", weight, mlm, number, terms.nuance_task)
                yield WeightedTerm("nuance_nsp", weight, nsp, pairs, terms.nuance_task)
                continue
            weight = 0.0 if plain else self.weights["sufficiency"]
            weight += self.weights["task_loss"] if name == "cont" else 0.0
            yield WeightedTerm(f"mlm_{name}", weight, mlm, number)
            yield WeightedTerm(f"nsp_{name}", weight, nsp, pairs)
            right = next_logits.argmax(-1).eq(follows).sum()
            yield WeightedTerm(f"nsp_accuracy_{name}", 0.0, 100 * right, pairs)

    def _composition(
        self, outputs: PretrainingOutputs, sample: dict[str, Any]
    ) -> Iterator[WeightedTerm]:
        """Equations 4, 5 and the first term of 7; how sparse the layers are."""
        composition = outputs.composition
        assert composition is not None and outputs.attention is not None
        keep, last = composition.keep, composition.layers[-1]
        if self.weights["guided_decomposition"]:
            rows = sample["rows"]
            annotated = rows.ge(0)
            if self.unguided_masked:
                annotated = annotated & ~masked_words(sample, self.padding_idx)
            sememes = self.sememes.to(rows.device)  # fairseq-validate moves no criterion
            right = sememes[rows.clamp(min=0)]
            if outputs.scores is not None:
                pair = terms.guided_scores(outputs.scores, right, annotated)
            else:
                pair = terms.guided_decomposition(outputs.attention, right, annotated)
            yield WeightedTerm("guided_decomposition", self.weights["guided_decomposition"], *pair)
        if self.weights["sparsity"]:
            yield WeightedTerm("sparsity", self.weights["sparsity"], *terms.sparsity(composition))
        if self.weights["reconstruction"]:
            pair = terms.layer_reconstruction(composition, self.beta)
            yield WeightedTerm("reconstruction", self.weights["reconstruction"], *pair)
        if self.weights["nuance"]:
            pair = terms.nuance_entropy(last.cont - last.comp, keep)
            yield WeightedTerm("nuance_entropy", self.weights["nuance"], *pair)
        for number, layer in enumerate(composition.layers, start=1):
            silent = layer.attention.detach().eq(0)
            zeros = silent.float().mean(-1)
            yield WeightedTerm(f"zeros_{number}", 0.0, (zeros * keep).sum(), keep.sum())
            unused = silent[keep].all(0)
            codes = torch.tensor(len(unused), device=unused.device)
            yield WeightedTerm(f"unused_{number}", 0.0, unused.sum(), codes)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Aggregate over workers and batches; a term is the mean over what it was summed over."""
        size = max(sum(int(log["sample_size"]) for log in logging_outputs), 1)
        loss = sum(float(log["loss"]) for log in logging_outputs)
        metrics.log_scalar("loss", loss / size, size, round=3)
        for name in log_means(logging_outputs):
            if name.startswith("mlm_"):
                metrics.log_derived(
                    f"ppl_{name.removeprefix('mlm_')}",
                    lambda meters, name=name: round(math.exp(min(meters[name].avg, 100.0)), 2),
                )

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Everything logged is a sum or a count."""
        return True


def masked_words(sample: dict[str, Any], padding: int) -> Tensor:
    """Where a batch's ``rows`` are of words with a subword that is to be predicted: ``(B, T)``, or
    one per word with ``--word-average``, bool."""
    masked: Tensor = sample["target"].ne(padding)  # (B, T)
    words = sample["net_input"].get("words")  # (B, T), -1 for pads
    if words is None:
        return masked
    counts = torch.zeros_like(sample["rows"])
    return counts.scatter_add(1, words.clamp(min=0), (masked & words.ge(0)).long()).gt(0)
