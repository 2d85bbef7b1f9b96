"""A plugin of one's own that builds on this one."""

import json
import subprocess

from instant import instant
from small_models import SIZES

OWN = """
from dataclasses import dataclass

from compgen_fairseq import SQTransformerModel  # registers all of compgen_fairseq
from compgen_fairseq.criterions.structural_cross_entropy import (
    StructuralCrossEntropyConfig,
    StructuralCrossEntropyCriterion,
)
from compgen_fairseq.criterions.terms_cross_entropy import WeightedTerm
from compgen_fairseq.models.sq_config import PRESETS, SQTransformerConfig
from compgen_fairseq.options import register_preset
from fairseq.criterions import register_criterion
from fairseq.models import register_model

print("imported")

@dataclass
class OwnConfig(SQTransformerConfig):
    noise: float = 0.0


@register_model("own_sq", dataclass=OwnConfig)
class OwnModel(SQTransformerModel):
    @classmethod
    def build_model(cls, cfg, task):
        print("built")
        model = super().build_model(cfg, task)
        assert (model.cfg.noise, model.cfg.attention) == (0.5, "sal")
        return model


register_preset("own_sq", "own_sq_scan", PRESETS["sq_transformer_scan"])


@register_criterion("own_loss", dataclass=StructuralCrossEntropyConfig)
class OwnLoss(StructuralCrossEntropyCriterion):
    def weighted_terms(self, net_output, model, dummy):
        size = model.encoder.stack.embedding.weight.norm()
        own = WeightedTerm("own_size", 0.5, size, size.new_ones(()))
        return [*super().weighted_terms(net_output, model, dummy), own]
"""


def test_a_subclass_trains_with_our_criterion_and_is_named_where_it_is_not_known(
    tiny_data, tiny_training, run, tmp_path
):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text(OWN)
    log = run(
        "fairseq_cli.train",
        *(tiny_data, "--user-dir", tmp_path / "own", "--cpu", *SIZES, *tiny_training),
        *("--task", "compgen_translation", "--arch", "own_sq_scan", "--noise", 0.5),
        *("--criterion", "own_loss", "--max-update", 1),
        *("--no-epoch-checkpoints", "--save-dir", tmp_path),
    )
    assert "| own_size " in log
    model = tmp_path / "checkpoint_last.pt"
    said = run("compgen_cli.analyze", "codes", model, tiny_data, status=1)
    assert f"{model} is of the architecture own_sq_scan, which nothing imported has" in said
    words = ["codes", model, tiny_data, "--user-dir", tmp_path / "own", "--json"]
    said = subprocess.check_output([f"{instant()}/compgen-analyze", *words], stderr=subprocess.PIPE)
    assert json.loads(said)["source"]  # and what the plugin prints is not in it
    flags = ("codes", model, tiny_data, "--user-dir", tmp_path / "none")
    assert f"there is no folder {tmp_path}/none" in run("compgen_cli.analyze", *flags, status=2)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("raise ValueError('it is broken')")
    flags = ("codes", model, tiny_data, "--user-dir", tmp_path / "broken")
    assert "cannot be imported: it is broken" in run("compgen_cli.analyze", *flags, status=2)
