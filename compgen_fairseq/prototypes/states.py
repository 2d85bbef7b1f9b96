"""The states of a sample: every worker computes some and gets all those that it clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from fairseq import utils
from fairseq.data import data_utils
from torch import Tensor
from torch.utils.data import DataLoader

from compgen_fairseq.progress import progress
from compgen_fairseq.prototypes.sample import Sample

PIECE = 2**18  # states that are sent at a time
LAYERS = {"last-but-one": -2, "last": -1}


class Store:
    """One worker's part of a sample's states, in half precision.

    Args:
        sample: the chosen occurrences.
        workers: which worker runs each pair of the corpus, ``(pairs,)``.
        rank: this worker.
        dim: width of a state.
    """

    def __init__(self, sample: Sample, workers: np.ndarray, rank: int, dim: int):
        self.sample, self.rank, self.dim = sample, rank, dim
        self.owners = workers[sample.sentences]
        rows = self.rows_of(rank)
        self.states = torch.empty(len(rows), dim, dtype=torch.float16)
        sentences = sample.sentences[rows]
        self.order = np.argsort(sentences, kind="stable")
        self.sentences, self.positions = sentences[self.order], sample.positions[rows][self.order]
        self.not_finite = 0

    def rows_of(self, rank: int) -> np.ndarray:
        """The occurrences, as rows of the sample, that a worker meets."""
        return np.flatnonzero(self.owners == rank)

    def put(self, sentences: np.ndarray, keep: Tensor, states: Tensor) -> None:
        """Keep what was chosen of a batch.

        Args:
            sentences: the indices of its pairs, ``(batch,)``.
            keep: which places are no padding, ``(batch, len)``.
            states: ``(batch, len, dim)``.
        """
        first = np.searchsorted(self.sentences, sentences, "left")
        number = np.searchsorted(self.sentences, sentences, "right") - first
        line = np.repeat(np.arange(len(sentences)), number)
        begin = np.repeat(first - (np.cumsum(number) - number), number)
        found = begin + np.arange(number.sum())
        lengths = keep.sum(1).cpu().numpy()
        flat = (np.cumsum(lengths) - lengths)[line] + self.positions[found]
        places = keep.flatten().nonzero().squeeze(1)[torch.from_numpy(flat).to(keep.device)]
        chosen = states.flatten(0, 1).index_select(0, places).half()
        self.not_finite += int((~chosen.isfinite()).any(1).sum())
        self.states[torch.from_numpy(self.order[found])] = chosen.cpu()

    def exchange(self, cuts: np.ndarray) -> Tensor:
        """Send every worker the states that it clusters; receive this worker's.

        Args:
            cuts: worker ``r`` clusters rows ``cuts[r]`` to ``cuts[r + 1]`` of the sample.

        Returns:
            the states of this worker's rows, float16, ``(rows, dim)``.
        """
        if len(cuts) == 2:
            return self.states
        device = _device()
        mine = self.rows_of(self.rank)
        block = torch.empty(cuts[self.rank + 1] - cuts[self.rank], self.dim, dtype=torch.float16)
        for owner in range(len(cuts) - 1):
            own = _between(mine, cuts, owner)
            if owner != self.rank:
                for piece in _pieces(self.states[own]):
                    dist.send(piece.to(device).view(torch.uint8), owner)
                continue
            block[torch.from_numpy(mine[own] - cuts[owner])] = self.states[own]
            for sender in set(range(len(cuts) - 1)) - {owner}:
                rows = self.rows_of(sender)
                places = torch.from_numpy(rows[_between(rows, cuts, owner)] - cuts[owner])
                for part in _pieces(places):
                    piece = torch.empty(len(part), self.dim, dtype=torch.float16, device=device)
                    dist.recv(piece.view(torch.uint8), sender)
                    block[part] = piece.cpu()
        return block


def make_batches(dataset: Any, sentences: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Batches of pairs of like length; a pair longer than ``max_tokens`` is one of its own."""
    lengths = np.array([dataset.num_tokens(int(i)) for i in sentences])
    order = np.argsort(lengths, kind="stable")
    limit = max(max_tokens, int(lengths.max(initial=0)))
    return data_utils.batch_by_size(sentences[order], dataset.num_tokens, max_tokens=limit)


@torch.no_grad()
def collect(
    model: Any, dataset: Any, batches: Sequence[np.ndarray], stores: dict[str, Store], layer: str
) -> None:
    """Run the model over batches and put one layer's states into the stores by side.

    Args:
        model: as for :func:`compgen_fairseq.prototypes.extract.extract`.
        dataset: a parallel corpus.
        batches: indices of its pairs.
        stores: by side.
        layer: one of ``LAYERS``; with a single layer both are that one.
    """
    device = next(model.parameters()).device
    loader = DataLoader(
        dataset,
        batch_sampler=batches,  # type: ignore[arg-type]
        collate_fn=dataset.collater,
        num_workers=2 if device.type == "cuda" else 0,
        generator=torch.Generator(),  # or it would draw from the training's
    )
    training = model.training
    model.eval()
    try:
        for sample in progress(loader, "prototypes: states", len(batches), " batches"):
            ids, inputs = sample["id"].numpy(), sample["net_input"]
            if device.type == "cuda":
                inputs = utils.move_to_cuda(inputs, device)
            sources, lengths = inputs["src_tokens"], inputs["src_lengths"]
            encoded = model.encoder(sources, src_lengths=lengths, return_all_hiddens=True)
            for side, store in stores.items():
                if side == "source":
                    stack, tokens, states = model.encoder, sources, encoded["encoder_states"]
                else:
                    stack, tokens = model.decoder, inputs["prev_output_tokens"]
                    states = stack.extract_features(tokens, encoded)[1]["inner_states"]
                chosen = states[max(LAYERS[layer], 1 - len(states))]  # the first are embeddings
                store.put(ids, tokens.ne(stack.dictionary.pad()), chosen.transpose(0, 1))
    finally:
        model.train(training)


def share(tensor: Tensor, cuts: np.ndarray) -> None:
    """Give every worker all rows of a tensor of which worker ``r`` has ``cuts[r]`` to the next."""
    for owner in range(len(cuts) - 1 if len(cuts) > 2 else 0):
        part = tensor[cuts[owner] : cuts[owner + 1]]
        moved = part.to(_device())
        dist.broadcast(moved, owner)
        part.copy_(moved)


def _between(rows: np.ndarray, cuts: np.ndarray, owner: int) -> slice:
    """Where the rows that a worker clusters stand among sorted rows."""
    return slice(*np.searchsorted(rows, cuts[owner : owner + 2]))


def _pieces(tensor: Tensor) -> Sequence[Tensor]:
    """A tensor in parts that are sent at a time; none of an empty one."""
    return tensor.split(PIECE) if len(tensor) else ()


def _device() -> torch.device:
    """Where tensors have to be to be sent."""
    nccl = dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")
