"""Small SQ-Transformers with random parameters."""

import pytest
import torch
from random_batches import TASK, both_sides

from compgen_fairseq.models.sq_config import SQTransformerConfig
from compgen_fairseq.models.sq_transformer import SQTransformerModel

SIZES = {
    **both_sides(layers=2, predictor_layers=1, attention_heads=2),
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 12,
    "decoder_ffn_embed_dim": 10,
    "dropout": 0.0,
    "source_codes": 5,
    "target_codes": 4,
}
VARIANTS = {
    "sal": {"attention": "sal"},
    "sal-paper": {"attention": "sal", "sal_cross_attention": "paper"},
    "srl": {"attention": "srl"},
    "plain": {"attention": "plain"},
    "meanings": {"attention": "sal", "code_classes": "substitution", "class_meanings": "own"},
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def build(variant="sal", task=TASK, **changed) -> SQTransformerModel:
    """A small model whose every parameter is random, norms, biases and padding included."""
    torch.manual_seed(1)
    cfg = SQTransformerConfig(**{**SIZES, **VARIANTS.get(variant, {}), **changed})
    model = SQTransformerModel.build_model(cfg, task)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    if variant == "meanings":
        source, target = (
            torch.arange(len(d)) for d in (task.source_dictionary, task.target_dictionary)
        )
        kinds, classes = source % 7, torch.where(target > 3, 4 + target % 3, target)
        owners = torch.where(classes == 4, 5, torch.where(classes == 5, 6, -1))
        model.assign_classes(source % 5, target % 4, kinds, classes, owners)
    return model.eval()
