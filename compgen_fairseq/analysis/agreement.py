"""How much alike two sentences' attention is."""

from dataclasses import dataclass

import torch
from torch import Tensor

TINY = 1e-12  # weights count as at least this in a logarithm
DEFINITIONS = {
    "kl": "Kullback-Leibler divergence of two sentences' attention at the same position, in nats, "
    "mean of both directions; mean over positions, then over pairs",
    "same_token": "share of positions at which a head puts most weight on the same token in both "
    "sentences; mean over positions, then over pairs",
    "same_pattern": "share of pairs in which a head does so at every position",
}


def divergence(a: Tensor, b: Tensor) -> Tensor:
    """Mean of the Kullback-Leibler divergences of ``a`` from ``b`` and of ``b`` from ``a``.

    ``1/2 sum_k (a_k - b_k) (ln a_k - ln b_k)``, in nats. A weight below 1e-12, which is what
    rounding leaves of a tiny one, counts as 1e-12 in the logarithm.

    Args:
        a: distributions ``(..., keys)``.
        b: as many.

    Returns:
        ``(...)``, float64.
    """
    a, b = a.double(), b.double()
    return 0.5 * ((a - b) * (a.clamp(min=TINY).log() - b.clamp(min=TINY).log())).sum(-1)


@dataclass(frozen=True)
class Agreement:
    """The measures of :data:`DEFINITIONS` for some pairs, each ``(pairs, layers, heads)``."""

    kl: Tensor
    same_token: Tensor
    same_pattern: Tensor

    def __len__(self) -> int:
        return len(self.kl)

    def means(self) -> dict[str, float]:
        """Each measure's mean over pairs, layers and heads."""
        return {name: float(getattr(self, name).mean()) for name in DEFINITIONS}

    def heads(self) -> list[dict[str, float]]:
        """Each measure's mean over pairs, for every head; layers and heads count from 1."""
        _, layers, heads = self.kl.shape
        means = {name: getattr(self, name).mean(0) for name in DEFINITIONS}
        return [
            {"layer": layer + 1, "head": head + 1}
            | {name: float(mean[layer, head]) for name, mean in means.items()}
            for layer in range(layers)
            for head in range(heads)
        ]


def compare(a: Tensor, b: Tensor, rows: Tensor) -> Agreement:
    """Compare the attention of the sentences of pairs, position by position.

    Jiang, Zhou and Bansal (2024) report the KL divergence (figure 8) and the share of heads that
    "assign the highest weight to the same token" (section 5.3) without saying how positions are
    counted; both readings of the latter are here, ``same_token`` and ``same_pattern``.

    Args:
        a: the first sentences' weights ``(pairs, layers, heads, queries, keys)``.
        b: the second sentences', of the same shape.
        rows: the queries that count, at least one of each pair, ``(pairs, queries)``, bool.
    """
    chosen = rows[:, None, None, :]
    count = chosen.sum(-1).double()
    same = a.argmax(-1) == b.argmax(-1)
    return Agreement(
        kl=(divergence(a, b) * chosen).sum(-1) / count,
        same_token=(same & chosen).sum(-1) / count,
        same_pattern=(same | ~chosen).all(-1).double(),
    )


def together(parts: list[Agreement]) -> Agreement:
    """The agreements of several batches of pairs as one."""
    return Agreement(*(torch.cat([getattr(part, name) for part in parts]) for name in DEFINITIONS))
