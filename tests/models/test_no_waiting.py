"""SQ-Transformer's training step never turns a tensor into a Python number: a GPU would wait."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from random_batches import TASK, batch
from torch.utils._python_dispatch import TorchDispatchMode

import compgen_fairseq  # noqa: F401
from compgen_fairseq.criterions.structural_cross_entropy import StructuralCrossEntropyCriterion

SIZES = {
    **{f"{side}_layers": 2 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 2 for side in ("encoder", "decoder")},
    **{f"{side}_embed_dim": 16 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_embed_dim": 24 for side in ("encoder", "decoder")},
}
PREDICTORS = {f"{side}_predictor_layers": 1 for side in ("encoder", "decoder")}
MODELS = {
    "sal": ("sq_transformer_scan", PREDICTORS),
    "srl": ("sq_transformer_cogs", PREDICTORS),
    "plain": ("sq_transformer_scan", {**PREDICTORS, "attention": "plain"}),
    "sal-vq": ("sq_transformer_scan", {**PREDICTORS, "quantizer": "vq"}),
}


class Numbers(TorchDispatchMode):
    """Refuses what reads a tensor's value: ``.item()``, ``bool()``, ``float()``, ``if``."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError("a tensor became a Python number")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_reads_no_value(name):
    arch, chosen = MODELS[name]
    args = argparse.Namespace(**SIZES, **chosen)
    ARCH_CONFIG_REGISTRY[arch](args)
    task = SimpleNamespace(**vars(TASK), cfg=SimpleNamespace(left_pad_target=False))
    model = ARCH_MODEL_REGISTRY[arch].build_model(args, task).train()
    criterion = StructuralCrossEntropyCriterion(task, False, 0.1).train()
    sample = batch([(7, 3), (5, 6), (2, 1)])
    criterion(model, sample)  # what is read once, before the first step, is no matter
    with Numbers():
        criterion(model, sample)[0].backward()


def test_the_guard_works():
    with Numbers(), pytest.raises(AssertionError, match="became a Python number"):
        bool(torch.ones(()))
