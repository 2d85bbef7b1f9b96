"""Compositional generalization for fairseq: importing this package registers everything."""

from compgen_fairseq import compat, compat_batches, records, scorers  # noqa: F401
from compgen_fairseq.criterions import (  # noqa: F401
    cat_pretraining,
    composition_cross_entropy,
    structural_cross_entropy,
)
from compgen_fairseq.models.cat import CATModel
from compgen_fairseq.models.cat_transformer import CATTransformerModel
from compgen_fairseq.models.proto_transformer import ProtoTransformerModel
from compgen_fairseq.models.sq_transformer import SQTransformerModel
from compgen_fairseq.models.syntactic_attention import SyntacticAttentionModel
from compgen_fairseq.optim import fused_adam  # noqa: F401
from compgen_fairseq.tasks import cat_pretraining as cat_task  # noqa: F401
from compgen_fairseq.tasks import compgen_translation  # noqa: F401

__all__ = [
    "CATModel",
    "CATTransformerModel",
    "ProtoTransformerModel",
    "SQTransformerModel",
    "SyntacticAttentionModel",
]

compat.apply()
