"""From a model and its training set to prototypes: choose, run, exchange, cluster."""

import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.distributed.utils import get_global_rank, get_global_world_size
from torch import Tensor

from compgen_fairseq.progress import progress
from compgen_fairseq.prototypes.kmeans import SEED, gpu_of, gpu_resources, prototypes_of
from compgen_fairseq.prototypes.sample import Sample, choose, survey
from compgen_fairseq.prototypes.states import Store, collect, make_batches, share
from compgen_fairseq.prototypes.vocabulary import word_types

logger = logging.getLogger(__name__)

PER_CENTRE = 256  # faiss clusters a sample of so many states per centre if there are more


@dataclass(frozen=True)
class Settings:
    """How prototypes are made.

    Args:
        k: prototypes of each type.
        min_count: types that occur less often in the corpus have none.
        size: states of a type that are clustered; 0 for all, None for ``256 * k``, faiss's limit.
        memory: for all states, in GiB; the size is lowered if need be.
        max_tokens: tokens of a batch.
        layer: whose states, "last-but-one" or "last".
    """

    k: int = 3
    min_count: int = 10
    size: int | None = None
    memory: float = 8.0
    max_tokens: int = 8192
    layer: str = "last-but-one"

    @property
    def per_type(self) -> int:
        """The most states of a type that are clustered."""
        return PER_CENTRE * self.k if self.size is None else self.size or sys.maxsize


class Prototypes(NamedTuple):
    """Of one side: ``types`` ``(n,)``, ``vectors`` ``(n, k, dim)`` and ``counts`` ``(n,)``."""

    types: Tensor
    vectors: Tensor
    counts: Tensor


def extract(
    model: Any,
    dataset: Any,
    sides: Sequence[str],
    settings: Settings,
    max_positions: tuple[int, int] | None = None,
) -> dict[str, Prototypes]:
    """Cluster one layer's states of each type over a corpus (algorithm 1, stage 2).

    Under data parallelism each worker runs its share of the batches and clusters its share of the
    types; all return the same. The batches are the same for any number of workers.

    Args:
        model: an encoder-decoder model with the interface of fairseq's Transformer. It is run in
            evaluation mode and left as it was.
        dataset: a parallel corpus.
        sides: ``"source"`` for the encoder's states, ``"target"`` for the decoder's, by the token
            that goes in.
        settings: how to.
        max_positions: pairs that are longer, than the model allows, are left out.

    Raises:
        ValueError: if there is too little memory, or no type is left.
    """
    begin = time.monotonic()
    rank, world = get_global_rank(), get_global_world_size()
    indices = np.arange(len(dataset))
    if max_positions is not None:
        indices, _ = dataset.filter_indices_by_size(indices, max_positions)
    widths = {
        "source": model.encoder.embed_tokens.embedding_dim,
        "target": getattr(model.decoder, "embed_dim", 0),
    }
    keys, counts = survey(dataset, indices, SEED)
    samples = {}
    for side in sides:
        dictionary = (model.encoder if side == "source" else model.decoder).dictionary
        often = eligible(dictionary, counts[side], settings.min_count)
        most = int(settings.memory * 2**30 / len(sides) / (2 * widths[side]))
        samples[side] = sample = choose(
            dataset, indices, keys, side, often, settings.per_type, most, settings.k
        )
        if len(sample) == 0:
            raise ValueError(
                f"prototypes: no word of the {side} side occurs {settings.min_count} times in the "
                "training set; lower --prototype-min-count"
            )
        logger.info(
            f"prototypes: {side} side, {np.count_nonzero(sample.counts)} of {len(dictionary)} "
            f"types occur at least {settings.min_count} times; at most {sample.size} states of "
            f"each, {len(sample)} in all, take {len(sample) * widths[side] / 2**29:.2f} GiB in "
            f"half precision over {world} worker(s)"
        )
    needed = np.unique(np.concatenate([sample.sentences for sample in samples.values()]))
    batches = make_batches(dataset, needed, settings.max_tokens)
    workers = np.zeros(len(dataset), dtype=np.int16)
    for i, batch in enumerate(batches):
        workers[batch] = i % world
    stores = {side: Store(samples[side], workers, rank, widths[side]) for side in sides}
    chosen = time.monotonic()
    collect(model, dataset, batches[rank::world], stores, settings.layer)
    collected = time.monotonic()
    gpu = gpu_of(next(model.parameters()).device)
    prototypes = {side: _cluster(stores.pop(side), side, settings, world, gpu) for side in sides}
    gpu_resources.cache_clear()
    logger.info(
        f"prototypes: {chosen - begin:.1f} s to choose states, {collected - chosen:.1f} s to "
        f"compute them in {len(batches)} batches, {time.monotonic() - collected:.1f} s for k-means "
        f"on the {'CPU' if gpu is None else f'GPU {gpu}'}"
    )
    return prototypes


def eligible(dictionary: Dictionary, counts: np.ndarray, min_count: int) -> np.ndarray:
    """How often each type occurs, ``(types,)``; 0 for one that has no prototypes.

    Args:
        dictionary: the types.
        counts: those of :func:`survey`, up to the last type that occurs.
        min_count: types that occur less often have none.
    """
    often = np.pad(counts, (0, len(dictionary) - len(counts)))
    often[~word_types(dictionary) | (often < min_count)] = 0
    return often


def _cluster(
    store: Store, side: str, settings: Settings, world: int, gpu: int | None
) -> Prototypes:
    """Divide the types among the workers, cluster, and share the result."""
    if store.not_finite:
        logger.warning(
            f"prototypes: {store.not_finite} states of the {side} side are not finite in half "
            "precision; left out"
        )
    sample: Sample = store.sample
    types, bounds = sample.bounds()
    # worker r clusters types cuts[r] to cuts[r + 1]: whole types, about as many states each
    cuts = np.searchsorted(bounds, np.arange(world + 1) * len(sample) // world)
    block = store.exchange(bounds[cuts]).numpy()
    mine = slice(cuts[store.rank], cuts[store.rank + 1])
    vectors = torch.zeros(len(types), settings.k, store.dim)
    counts = torch.zeros(len(types), dtype=torch.int32)
    spans = bounds - bounds[mine.start]
    turns = range(mine.start, mine.stop)
    for i in progress(turns, "prototypes: k-means", len(turns), " types"):
        states = block[spans[i] : spans[i + 1]]
        centres = torch.from_numpy(prototypes_of(states, settings.k, gpu=gpu))
        vectors[i, : len(centres)] = centres
        counts[i] = len(centres)
    share(vectors, cuts)
    share(counts, cuts)
    some = counts > 0
    if not some.any():
        raise ValueError("no type has states that are finite: the model has diverged or overflows")
    return Prototypes(torch.from_numpy(types).long()[some], vectors[some], counts[some])


def collect_word(
    model: Any, dataset: Any, word: int, most: int, max_tokens: int, layer: str = Settings.layer
) -> tuple[Sample, Tensor]:
    """The encoder's states of up to ``most`` occurrences of one source type.

    The other arguments are those of :func:`extract` and :class:`Settings`.

    Returns:
        the occurrences, and their states, ``(n, dim)``.
    """
    indices = np.arange(len(dataset))
    keys, counts = survey(dataset, indices, SEED)
    only = np.zeros(len(model.encoder.dictionary), dtype=np.int64)
    only[word] = counts["source"][word : word + 1].sum()
    sample = choose(dataset, indices, keys, "source", only, most, most)
    return sample, source_states(model, dataset, sample, max_tokens, layer)


def source_states(model: Any, dataset: Any, sample: Sample, max_tokens: int, layer: str) -> Tensor:
    """The encoder's states of a sample of source occurrences, ``(n, dim)``, on this worker alone.

    The other arguments are those of :func:`collect_word`.
    """
    workers = np.zeros(len(dataset), dtype=np.int16)
    store = Store(sample, workers, 0, model.encoder.embed_tokens.embedding_dim)
    batches = make_batches(dataset, np.unique(sample.sentences), max_tokens)
    collect(model, dataset, batches, {"source": store}, layer)
    return store.states.float()
