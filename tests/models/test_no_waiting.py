"""SQ-Transformer's training step never turns a tensor into a Python number: a GPU would wait."""

import pytest
import torch
from random_batches import TASK, batch
from sq_models import build
from torch.utils._python_dispatch import TorchDispatchMode

from compgen_fairseq.criterions.structural_cross_entropy import (
    StructuralCrossEntropyConfig,
    StructuralCrossEntropyCriterion,
)
from compgen_fairseq.models import sq_stack
from compgen_fairseq.modules.packing import packing


class Numbers(TorchDispatchMode):
    """Refuses what reads a tensor's value: ``.item()``, ``bool()``, ``float()``, ``if``."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError("a tensor became a Python number")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "variant, changed", [("sal", {}), ("sal", {"quantizer": "vq"}), ("srl", {}), ("plain", {})]
)
def test_a_training_step_reads_no_value(variant, changed, monkeypatch):
    elsewhere = torch.ones(2, 9, dtype=torch.bool, device="meta").triu()
    assert packing(elsewhere, training=True) is None  # on a CPU alone
    monkeypatch.setattr(sq_stack, "packing", lambda keep, training: None)
    model = build(variant, dropout=0.1, **changed).train()
    cfg = StructuralCrossEntropyConfig(sentence_avg=False, label_smoothing=0.1)
    criterion = StructuralCrossEntropyCriterion(cfg, TASK).train()
    sample = batch([(7, 3), (5, 6), (2, 1)])
    criterion(model, sample)  # what is read once, before the first step, is no matter
    with Numbers():
        criterion(model, sample)[0].backward()
        with pytest.raises(AssertionError, match="became a Python number"):
            bool(torch.ones(()))  # it is noticed
