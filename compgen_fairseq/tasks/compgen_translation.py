"""fairseq's translation task with more scores in validation and other training batches."""

import functools
import logging
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.models import FairseqModel
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from compgen.ranges import check
from compgen.scoring import cter, cter_rules
from compgen.scoring.cter import Rules
from compgen.scoring.exact_match import ExactMatch, exact_match
from compgen_fairseq import flags
from compgen_fairseq.contracts import HasPrototypes, TakesClasses
from compgen_fairseq.options import option
from compgen_fairseq.tasks import eval_cter, prototype_hook
from compgen_fairseq.tasks.batches import MixedLengthsDataset
from compgen_fairseq.tasks.word_classes import FINDERS

logger = logging.getLogger(__name__)

CORRECT, TOTAL = "_exact_match_correct", "_exact_match_total"


@dataclass
class CompgenTranslationConfig(prototype_hook.PrototypeTaskConfig, TranslationConfig):
    """Options of ``--task compgen_translation``, on top of those of ``--task translation``."""

    eval_exact_match: bool = option(
        False,
        "decode the validation sets and report the percentage of sentences that equal "
        "their reference; choose checkpoints by it with --best-checkpoint-metric exact_match "
        "--maximize-best-checkpoint-metric",
    )
    eval_exact_match_args: str = option(
        '{"beam": 1}',
        "generation options for exact match as a JSON string, e.g. "
        '\'{"beam": 1, "max_len_a": 0, "max_len_b": 500}\'; '
        "what is not given keeps fairseq-generate's default",
    )
    eval_exact_match_remove_bpe: Optional[str] = option(
        None, "join subwords before comparing sentences", argparse_const="@@ "
    )
    eval_cter: bool = option(
        False,
        "decode the validation sets SUBSET that have a file DATA/cter/SUBSET.compound "
        "and report the compound translation error rate by DATA/cter/lexicon; choose "
        "checkpoints by it with --best-checkpoint-metric cter_instance or cter_aggregate",
    )
    eval_cter_args: str = option(
        '{"beam": 1}',
        "generation options for CTER as a JSON string; with the same as "
        "--eval-exact-match-args sentences are decoded once for both",
    )
    train_batches: ChoiceEnum(["sorted", "mixed"]) = option(  # type: ignore[valid-type]
        "sorted",
        "which training pairs make a batch: 'sorted', of one length, as in fairseq, copies of a "
        "pair side by side; 'mixed', of any length, drawn anew each epoch. --max-tokens counts "
        "padding: 'mixed' needs two to three times as many for batches of the same size",
    )


@register_task("compgen_translation", dataclass=CompgenTranslationConfig)
class CompgenTranslationTask(prototype_hook.PrototypeStages, TranslationTask):
    """Translate from a source to a target language or formalism.

    Raises:
        ValueError: if ``--eval-exact-match-args`` or ``--eval-cter-args`` makes no sense.
    """

    cfg: CompgenTranslationConfig

    def __init__(
        self, cfg: CompgenTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary
    ) -> None:
        cfg.upsample_primary = max(cfg.upsample_primary, 1)  # with fairseq's -1 train1 fails
        super().__init__(cfg, src_dict, tgt_dict)
        check(cfg)
        read = flags.generation_options
        self.exact_match_args = read("--eval-exact-match-args", cfg.eval_exact_match_args)
        self.cter_args = read("--eval-cter-args", cfg.eval_cter_args)

    @functools.cached_property
    def cter_rules(self) -> Rules:
        """The rules of the data folder's lexicon: the published ones, or those of own compounds."""
        return cter_rules.load(self._cter_file("lexicon"))

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        """As fairseq's; with ``--eval-cter`` batches know their compounds.

        Raises:
            FileNotFoundError: the data have no such subset.
            ValueError: the compounds do not fit the subset.
        """
        try:
            super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        except FileNotFoundError:
            pair = f"{self.cfg.source_lang}-{self.cfg.target_lang}"
            raise FileNotFoundError(
                f"{self.cfg.data} has no subset {split!r} of {pair}: fairseq-preprocess makes one "
                "of the text it is given"
            ) from None
        if split == self.cfg.train_subset and self.cfg.train_batches == "mixed":
            self.datasets[split] = MixedLengthsDataset(self.datasets[split])
        if self.cfg.eval_cter and split != self.cfg.train_subset:
            self._add_compounds(split)

    def filter_indices_by_size(
        self,
        indices: Any,
        dataset: FairseqDataset,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> Any:
        """As fairseq's, which advises a flag with which scores refuse what is left.

        Raises:
            ValueError: a sentence to validate on or to translate is too long.
        """
        if ignore_invalid_inputs:
            return super().filter_indices_by_size(indices, dataset, max_positions, True)
        indices, too_long = dataset.filter_indices_by_size(indices, max_positions)
        for index in too_long[:1]:
            sizes = " and ".join(str(int(size)) for size in dataset.size(index))
            raise ValueError(
                f"pair {index + 1} of a validation or test set has {sizes} tokens, more than "
                f"the model or --max-tokens allows, {max_positions}: scores count every "
                "sentence, so shorten it and prepare the data again"
            )
        return indices

    def _cter_file(self, name: str) -> Path:
        return Path(utils.split_paths(self.cfg.data)[0], "cter", name)

    def _add_compounds(self, split: str) -> None:
        """Tell the batches of a subset which compounds they hold, if there is a file of them."""
        path = self._cter_file(f"{split}.compound")
        if not path.exists():
            logger.warning("no CTER on subset %s: there is no %s", split, path)
            return
        compounds = self.cter_rules.read_compounds(path)
        dataset, unk = self.datasets[split], self.src_dict.unk_string()
        sources = [self.src_dict.string(dataset[i]["source"]) for i in range(len(dataset))]
        try:
            found = eval_cter.CompoundDataset(dataset, compounds, self.cter_rules)
            pairs = zip(sources, compounds, strict=True)  # an unknown piece may hide the compound
            there = [source if unk in source else compound for source, compound in pairs]
            cter.align(sources, there, sources, lambda _: {})
        except ValueError as error:
            raise ValueError(f"{path} and subset {split}: {error}") from None
        self.datasets[split] = found

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> FairseqModel:
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_exact_match:
            options = Namespace(**self.exact_match_args)
            self.exact_match_generator = self.build_generator([model], options)
        if self.cfg.eval_cter:
            if self.cfg.eval_exact_match and self.cter_args == self.exact_match_args:
                self.cter_generator = self.exact_match_generator
            else:
                self.cter_generator = self.build_generator([model], Namespace(**self.cter_args))
        return model

    def begin_epoch(self, epoch: int, model: FairseqModel) -> None:
        """Hand the classes of the training words to a model that asks for them.

        Raises:
            ValueError: ``--eval-cter`` without compounds, or ``--num-batch-buckets`` with classes
                or prototypes.
        """
        missing = model.missing_classes() if isinstance(model, TakesClasses) else None
        if self.cfg.num_batch_buckets and (missing or isinstance(model, HasPrototypes)):
            raise ValueError(
                "--num-batch-buckets pads the sentences that prototypes and classes of words are "
                "made of: leave it out"
            )
        super().begin_epoch(epoch, model)
        prototype_hook.begin_epoch(self, epoch, model)
        options = getattr(self, "training_options", None)
        validates = not (options and options.dataset.disable_validation)
        compounds = (isinstance(d, eval_cter.CompoundDataset) for d in self.datasets.values())
        if self.cfg.eval_cter and validates and not any(compounds):
            raise ValueError(
                f"--eval-cter: no validation set has its compounds in {self._cter_file('')}: leave "
                "it out, or put the compound of each sentence into a file SUBSET.compound there"
            )
        if missing is not None:
            kind, codes = missing
            if kind not in FINDERS:
                raise ValueError(
                    f"classes of the kind {kind!r} are found by none of {', '.join(FINDERS)}: add "
                    "a function to compgen_fairseq.tasks.word_classes.FINDERS"
                )
            dictionaries = (self.src_dict, self.tgt_dict)
            dataset = self.dataset(self.cfg.train_subset)
            if len(utils.split_paths(self.cfg.data)) > 1:
                logger.warning("of several data folders only this epoch's words get classes")
            model.assign_classes(*FINDERS[kind](dataset, dictionaries, codes))

    def valid_step(
        self, sample: dict[str, Any], model: FairseqModel, criterion: FairseqCriterion
    ) -> tuple[Tensor, Any, dict[str, Any]]:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_exact_match:
            score = self._decode_and_compare(sample, model)
            logging_output[CORRECT] = score.correct
            logging_output[TOTAL] = score.total
        if self.cfg.eval_cter and "compounds" in sample:
            beams = self._decode(self.cter_generator, sample, model)
            hypotheses = [self.tgt_dict.string(beam[0]["tokens"].int().cpu()) for beam in beams]
            logging_output[eval_cter.COUNTS] = eval_cter.counts(sample, hypotheses, self.cter_rules)
        return loss, sample_size, logging_output

    def reduce_metrics(
        self, logging_outputs: list[dict[str, Any]], criterion: FairseqCriterion
    ) -> None:
        """Report ``exact_match`` and CTER from the counts of all batches of all workers."""
        super().reduce_metrics(logging_outputs, criterion)
        eval_cter.reduce(logging_outputs)
        if not any(TOTAL in log for log in logging_outputs):
            return  # a training step
        for count in (CORRECT, TOTAL):
            metrics.log_scalar_sum(count, int(sum(log.get(count, 0) for log in logging_outputs)))
        metrics.log_derived(
            "exact_match", lambda meters: ExactMatch(meters[CORRECT].sum, meters[TOTAL].sum).percent
        )

    def _decode(self, generator: Any, sample: dict[str, Any], model: FairseqModel) -> list[Any]:
        """Decode a batch, once with the same generator: the sample keeps the hypotheses."""
        decoded = sample.setdefault("decoded", {})
        if generator not in decoded:
            decoded[generator] = self.inference_step(generator, [model], sample)
        return decoded[generator]

    def _decode_and_compare(self, sample: dict[str, Any], model: FairseqModel) -> ExactMatch:
        """Decode a batch and count the sentences whose best hypothesis equals the reference."""

        def text(tokens: Tensor, unk: str) -> str:
            bpe = self.cfg.eval_exact_match_remove_bpe
            return self.tgt_dict.string(tokens.int().cpu(), bpe, unk_string=unk)

        beams = self._decode(self.exact_match_generator, sample, model)
        pad, unk = self.tgt_dict.pad(), self.tgt_dict.unk_string
        return exact_match(
            [text(beam[0]["tokens"], unk()) for beam in beams],
            [text(utils.strip_pad(target, pad), unk(escape=True)) for target in sample["target"]],
        )
