"""``compgen-similarity``: do cosines of [CLS] agree with what people say of pairs of phrases?

CAT (Huang et al., 2024, section 5.2.1 and appendix C.1): Pearson's correlation of the cosine
between the [CLS] states of two phrases with the phrases' score, on BiRD and on BiRD-ABBA, for the
contextual, the compositional and the mixed representation. The checkpoint may be pre-trained or
fine-tuned; a classification head has no part in it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from fairseq.tasks.sentence_prediction import SentencePredictionTask
from scipy.stats import pearsonr
from torch import Tensor

from compgen.scoring.signature import signature
from compgen.text import read_lines
from compgen_fairseq.models.cat import CATModel, warn_of_untrained
from compgen_fairseq.models.cat_transformer import REPRESENTATIONS

BATCH = 256  # phrases


def load(path: str, data: str) -> Any:
    """The model of a checkpoint of arch ``cat``, for evaluation.

    Args:
        path: the checkpoint, of pre-training or of fine-tuning.
        data: a data folder with ``input0/dict.txt``, the dictionary of pre-training.

    Raises:
        ValueError: it holds another model, or one with another dictionary.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    cfg, weights = state["cfg"].model, state["model"]
    arch = getattr(cfg, "arch", getattr(cfg, "_name", None))
    kind = ARCH_MODEL_NAME_REGISTRY.get(arch, arch)
    if not issubclass(found := MODEL_REGISTRY.get(kind, object), CATModel):
        raise ValueError(f"{path} holds a {kind} model, not a cat model")
    dictionary = SentencePredictionTask.load_dictionary(str(Path(data, "input0", "dict.txt")))
    codebook = weights.get(f"encoder.layers.{cfg.encoder_layers - 1}.composition.codebook")
    if codebook is not None:  # pre-training takes its size from its data
        cfg.sememe_codes = len(codebook)
    model = found.build_model(cfg, SimpleNamespace(source_dictionary=dictionary))
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise ValueError(f"{path}: {str(error).splitlines()[-1].strip()}") from None
    warn_of_untrained(path, state["cfg"])
    return model.eval()


def phrases(data: str, key: str, subset: str, dictionary: Any) -> list[Tensor]:
    """The subwords of each phrase of ``DATA/KEY/SUBSET``, with their final ``</s>``.

    Raises:
        ValueError: it is not there.
    """
    path = Path(data, key, subset)
    dataset = data_utils.load_indexed_dataset(str(path), dictionary)
    if dataset is None:
        raise ValueError(f"{path}.bin is not there; prepare/bird.sh makes such data")
    return [dataset[index] for index in range(len(dataset))]


def scores(data: str, subset: str) -> list[float]:
    """The score of each pair, out of ``DATA/label/SUBSET.label``.

    Raises:
        ValueError: it is not there, or a line is not a number.
    """
    path = Path(data, "label", f"{subset}.label")
    lines = read_lines(path)
    try:
        return [float(line) for line in lines]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@torch.inference_mode()
def cls_states(model: Any, texts: Sequence[Tensor]) -> dict[str, Tensor]:
    """The last layer's states of [CLS] by representation, each ``(len(texts), D)``.

    Args:
        model: of arch ``cat``; one with ``--composition none`` has ``cont`` only.
        texts: subwords with a final ``</s>``; [CLS] is put before them.
    """
    dictionary, device = model.encoder.dictionary, next(model.parameters()).device
    first = torch.tensor([dictionary.bos()])
    found: dict[str, list[Tensor]] = {}
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), BATCH):
        batch = [torch.cat([first, texts[index].long()]) for index in order[start : start + BATCH]]
        tokens = data_utils.collate_tokens(batch, dictionary.pad()).to(device)
        features, extra = model(tokens, features_only=True)
        states = {"cont": features}
        if extra["composition"] is not None:
            last = extra["composition"].layers[-1]
            states = {name: getattr(last, name) for name in REPRESENTATIONS}
        for name, state in states.items():
            found.setdefault(name, []).append(state[:, 0].float().cpu())
    place = torch.tensor(order).argsort()
    return {name: torch.cat(states)[place] for name, states in found.items()}


def correlations(
    one: dict[str, Tensor], other: dict[str, Tensor], rated: Sequence[float]
) -> dict[str, float | None]:
    """Pearson's correlation, in percent, of cosines with scores, by representation.

    Args:
        one: the states of the first phrases, each ``(pairs, D)``.
        other: those of the second phrases.
        rated: the pairs' scores.

    Returns:
        None where it is not defined: all cosines, or all scores, are the same.
    """
    found: dict[str, float | None] = {}
    for name in one:
        cosines = torch.cosine_similarity(one[name].double(), other[name].double()).numpy()
        defined = cosines.std() > 1e-12 and len(set(rated)) > 1
        found[name] = 100 * float(pearsonr(cosines, rated).statistic) if defined else None
    return found


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """What the command prints as JSON.

    Raises:
        ValueError: the checkpoint is no ``cat`` model or lacks the representation, or the data are
            missing, too few or too long.
    """
    model = load(args.checkpoint, args.data)
    wanted = REPRESENTATIONS if args.representation == "all" else (args.representation,)
    if model.cfg.composition == "none":
        if args.representation not in ("all", "cont"):
            raise ValueError(f"{args.checkpoint} is of --composition none: it has cont only")
        wanted = ("cont",)
    if torch.cuda.is_available() and not args.cpu:
        model.cuda()
    dictionary = model.encoder.dictionary
    sides = [phrases(args.data, key, args.subset, dictionary) for key in ("input0", "input1")]
    rated = scores(args.data, args.subset)
    if not len(sides[0]) == len(sides[1]) == len(rated) > 1:
        raise ValueError(
            f"{args.data}: {args.subset} has {len(sides[0])} first and {len(sides[1])} second"
            f" phrases and {len(rated)} scores; it needs two pairs or more, each with its score"
        )
    longest = max(len(phrase) for side in sides for phrase in side) + 1
    if longest > model.max_positions():
        raise ValueError(
            f"{args.data}: a phrase has {longest} subwords, but the model takes"
            f" {model.max_positions()}"
        )
    one, other = (cls_states(model, side) for side in sides)
    found = correlations(one, other, rated)
    chosen = model.cfg.representation if len(wanted) > 1 else wanted[0]
    stamp = signature("pearson", len(rated), subset=args.subset, representation=chosen)
    return {
        "metric": "pearson",
        "score": found[chosen],
        "representation": chosen,
        "representations": {name: found[name] for name in wanted},
        "total": len(rated),
        "signature": stamp,
    }
