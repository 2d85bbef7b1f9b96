"""Target words that a class of source words exchanges, told apart by that class alone.

Beyond the papers. Where training shows a word with one word of a class only, as "around" with
"left" on SCAN AroundRight, nothing says which of the two means I_TURN_LEFT. The substitution test
does (clustering/substitution.py): exchanging "left" and "right" exchanges the two turns.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from compgen_fairseq.modules.precision import wide

#: Divided by it, a gradient that --fp16 or --amp has scaled up stays finite.
SMALLEST = 1e-30


def class_means(x: Tensor, classes: Tensor, dim: int) -> Tensor:
    """Put the mean of its class in each type's place.

    Args:
        x: any shape, with the types along ``dim``.
        classes: one member of each type's class, ``(types,)``.
    """
    sums = torch.zeros_like(x).index_add(dim, classes, x)
    counts = torch.zeros_like(classes).index_add(0, classes, torch.ones_like(classes))  # no wait
    counts = counts.clamp(min=1).type_as(x)
    shape = [1] * x.dim()
    shape[dim] = -1
    return (sums / counts.view(shape)).index_select(dim, classes)


class ClassMeanings(nn.Module):
    """The last word on which of its class a target word is.

    The model's logits say how likely the classes are, each word having the mean of its class. What
    a source word adds to the words that its class exchanges comes from its embedding, without
    context; which source word of the class it is says an attention between the code streams.

    Args:
        dim: width of the model.
        source_types: size of the source's vocabulary.
        target_types: size of the target's.
    """

    kinds: Tensor  # (source types,): the class of each source type
    classes: Tensor  # (target types,): a member of each target type's owned class
    owners: Tensor  # (target types,): the class of source types that exchanges that class, or -1

    def __init__(self, dim: int, source_types: int, target_types: int):
        super().__init__()
        self.query, self.key, self.say = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.scale = dim**-0.5
        self.register_buffer("kinds", torch.full((source_types,), -2))
        self.register_buffer("classes", torch.arange(target_types))
        self.register_buffer("owners", torch.full((target_types,), -1))

    def assign(self, kinds: Tensor, classes: Tensor, owners: Tensor) -> None:
        """Say which words are exchanged, as tasks/word_classes.py finds it."""
        self.kinds.copy_(kinds)
        self.owners.copy_(owners)
        alone = torch.arange(len(owners), device=owners.device)
        self.classes.copy_(torch.where(owners >= 0, classes, alone))

    def forward(
        self,
        logits: Tensor,
        weight: Tensor,
        states: Tensor,
        memory: Tensor,
        mask: Tensor,
        words: Tensor,
        tokens: Tensor,
    ) -> Tensor:
        """Decide between the words of a class.

        Args:
            logits: the model's, ``(batch, len, types)``.
            weight: the target's embeddings, ``(types, dim)``.
            states: the decoder's code stream, ``(batch, len, dim)``.
            memory: the encoder's code stream, ``(batch, src_len, dim)``.
            mask: added to the scores, ``(batch, 1, 1, src_len)``.
            words: the source's embeddings, ``(batch, src_len, dim)``.
            tokens: the source, ``(batch, src_len)``.

        Returns:
            ``(batch, len, types)``.
        """
        scores = self.query(states) @ self.key(memory).transpose(1, 2) * self.scale
        kind = wide(scores)
        attention = (scores + mask.squeeze(1)).to(kind).softmax(-1)
        own = self.kinds[tokens].unsqueeze(-1).eq(self.owners)
        said = F.linear(self.say(words), weight).to(kind) * own
        with torch.autocast(logits.device.type, enabled=False):
            mass = (attention @ own.to(kind)).clamp(min=SMALLEST)
            said = (attention @ said / mass).type_as(logits)
        return class_means(logits - said, self.classes, -1) + said
