"""What a task asks of a model beyond what fairseq does; a model that has the methods fulfils it."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from compgen_fairseq.modules.prototype_attention import PrototypeTable


@runtime_checkable
class TakesClasses(Protocol):
    """A model that needs classes of the training words: SQ-Transformer, Syntactic Attention."""

    def missing_classes(self) -> tuple[str, Any] | None:
        """Which classes, and how many, are still to be assigned; None when none are.

        The task asks before each epoch.
        """

    def assign_classes(self, *classes: Tensor) -> None:
        """Fix the class of every type: ``(source types,)`` and ``(target types,)``, long, and
        what else is found with classes of their kind (tasks/word_classes.py)."""


@runtime_checkable
class HasPrototypes(Protocol):
    """A model whose tables of prototypes are filled between two epochs: Proto-Transformer.

    Its encoder takes ``return_all_hiddens`` and returns ``encoder_states``, its decoder's
    ``extract_features`` returns ``inner_states``, as those of fairseq's Transformer do.
    """

    prototype_config: Any

    def tables(self) -> Mapping[str, PrototypeTable]:
        """The table of each side, ``source`` or ``target``, that has prototypes."""

    def train_prototype_attention(self, on: bool) -> None:
        """Whether what reads the prototypes is trained."""
