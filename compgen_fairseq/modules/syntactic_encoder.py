"""The syntactic stream's encoder: the role of each word, from its neighbours alone."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def frame(tokens: Tensor, pad: int, start: int) -> tuple[Tensor, Tensor, Tensor]:
    """Put a start marker before every sentence and all padding behind it.

    Args:
        tokens: ``(batch, len)``, padded on either side.
        pad: index of the padding symbol.
        start: index of the start marker.

    Returns:
        the framed sentences ``(batch, len + 1)``; their lengths ``(batch,)``, the marker counted;
        and the framed position of every non-pad of ``tokens``, ``(batch, len)``.
    """
    keep = tokens.ne(pad)
    words_first = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
    framed = F.pad(tokens.gather(1, words_first), (1, 0), value=start)
    return framed, keep.sum(1) + 1, keep.cumsum(1)


class BidirectionalLSTM(nn.Module):
    """A bidirectional LSTM layer whose states depend on nothing but their own sentence.

    The backward LSTM reads a copy in which every sentence is turned round within its own length,
    so padding comes after all words in both directions. The states are those of a packed sequence
    (which takes 1.4 times as long on a CPU, and needs the lengths there). A batch without padding,
    as of one sentence, is read by one call on a CPU.

    Args:
        input_dim: width of the input.
        dim: width of each direction's state.
    """

    def __init__(self, input_dim: int, dim: int):
        super().__init__()
        self.forwards = nn.LSTM(input_dim, dim, batch_first=True)
        self.backwards = nn.LSTM(input_dim, dim, batch_first=True)

    @torch.autocast("cpu", enabled=False)  # without AVX-512 oneDNN has no LSTM in bfloat16
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Read the sentences.

        Args:
            x: ``(batch, len, input_dim)``, padded on the right.
            lengths: ``(batch,)``, each at least 1.

        Returns:
            both directions' states, ``(batch, len, 2 * dim)``, zero at padding.
        """
        if x.device.type == "cpu" and bool(lengths.eq(x.size(1)).all()):
            zeros = x.new_zeros(2, len(x), self.forwards.hidden_size)
            weights: list[Tensor] = [*self.forwards.parameters(), *self.backwards.parameters()]
            flags = (True, 1, 0.0, self.training, True, True)  # biases, layers, ..., both ways
            return torch.lstm(x, (zeros, zeros), weights, *flags)[0]
        turned = lengths[:, None] - 1 - torch.arange(x.size(1), device=x.device)
        keep = turned.ge(0).unsqueeze(-1)
        turned = turned.clamp(min=0).unsqueeze(-1)
        left, _ = self.forwards(x)
        right, _ = self.backwards(x.take_along_dim(turned, 1))
        return torch.cat([left, right.take_along_dim(turned, 1)], dim=-1) * keep


def neighbour_states(states: Tensor) -> Tensor:
    """``h_j = [forward state of j - 1; backward state of j + 1]``, zero where there is no
    neighbour (CogSci paper, equation 2).

    Args:
        states: a bidirectional layer's states, ``(batch, len, 2 * dim)``, zero at padding.

    Returns:
        the same shape.
    """
    left, right = states.chunk(2, dim=-1)
    before = F.pad(left, (0, 0, 1, 0))[:, :-1]
    after = F.pad(right, (0, 0, 0, 1))[:, 1:]
    return torch.cat([before, after], dim=-1)


class SyntacticEncoder(nn.Module):
    """Turns syntactic embeddings into the states ``h_j`` that attention aligns with.

    The first layer's states are exchanged for those of each word's neighbours, and at a sentence's
    own ends for two learned vectors, so that a word's state tells its role and not the word
    itself; the other layers run on top (equation 2; the end vectors and the layers above are the
    authors', see their appendix on the best model). Below other layers, the first has half their
    width.

    Args:
        embed_dim: width of the embeddings.
        dim: width of each direction's state in the last layer.
        layers: number of bidirectional layers.

    Raises:
        ValueError: on less than one layer, or an odd ``dim`` to be halved.
    """

    def __init__(self, embed_dim: int, dim: int, layers: int = 2):
        super().__init__()
        if layers < 1:
            raise ValueError(f"the encoder needs at least one layer, not {layers}")
        if layers > 1 and dim % 2:
            raise ValueError(f"the first layer is half as wide as the others, and {dim} is odd")
        first = dim if layers == 1 else dim // 2
        self.start_role = nn.Parameter(torch.randn(2 * first))
        self.end_role = nn.Parameter(torch.randn(2 * first))
        widths = [2 * first] + [2 * dim] * (layers - 2)
        self.first = BidirectionalLSTM(embed_dim, first)
        self.layers = nn.ModuleList(BidirectionalLSTM(width, dim) for width in widths[: layers - 1])

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode.

        Args:
            x: embeddings ``(batch, len, embed_dim)``, padded on the right.
            lengths: ``(batch,)``, each at least 1.

        Returns:
            the states ``h``, ``(batch, len, 2 * dim)``, and the summary of each sentence
            ``(batch, 2 * dim)``: the last layer's final state in either direction.
        """
        states = self.first(x, lengths)
        positions = torch.arange(x.size(1), device=x.device).unsqueeze(-1)
        ends = lengths[:, None, None] - 1
        h = torch.where(positions == ends, self.end_role, neighbour_states(states))
        h = torch.where(positions == 0, self.start_role, h)
        for layer in self.layers:
            h = states = layer(h, lengths)
        left, right = states.chunk(2, dim=-1)
        return h, torch.cat([left.take_along_dim(ends, 1)[:, 0], right[:, 0]], dim=-1)
