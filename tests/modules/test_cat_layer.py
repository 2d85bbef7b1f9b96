"""A CAT layer is fairseq's layer, whose output is decomposed, composed and mixed."""

import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from random_batches import both_sides, build_model

from compgen_fairseq.modules.cat_layer import CATLayer

PADDING = torch.tensor([[False] * 4, [False, False, True, True]])


def config() -> TransformerConfig:
    cfg = TransformerConfig()
    cfg.encoder.embed_dim, cfg.encoder.ffn_embed_dim, cfg.encoder.attention_heads = 16, 32, 2
    return cfg


def test_the_parts_are_chained():
    torch.manual_seed(1)
    made = CATLayer(config(), num_codes=10).eval()
    plain = TransformerEncoderLayerBase(config()).eval()
    plain.load_state_dict(made.state_dict(), strict=False)
    x = torch.randn(4, 2, 16)
    mix, outputs = made(x, PADDING)
    torch.testing.assert_close(outputs.cont, plain(x, PADDING).transpose(0, 1))
    comp, attention, scores = made.composition(outputs.cont)
    torch.testing.assert_close(outputs.scores, scores)
    torch.testing.assert_close(outputs.comp, comp)
    torch.testing.assert_close(outputs.attention, attention)
    torch.testing.assert_close(outputs.mix, made.enhancement(comp, outputs.cont, PADDING))
    torch.testing.assert_close(mix, outputs.mix.transpose(0, 1))


def test_the_enhancement_has_half_of_the_heads():
    for heads, half in ((4, 2), (1, 1)):
        sizes = both_sides(layers=1, embed_dim=16, ffn_embed_dim=32, attention_heads=heads)
        (layer,) = build_model("cat_transformer", **sizes).encoder.layers
        assert isinstance(layer, CATLayer) and layer.enhancement.num_heads == half
