"""SQ-Transformer equals its authors' code: activations, loss terms, gradients, the codebook's step.

tests/golden/sq_*.npz hold one training step of the authors' implementation on random weights, with
the loss weights of their SCAN (SAL) and COGS (SRL) recipes. Tolerance: 1e-5 of the largest entry.

Two accidents of the authors' code are left out of this project and put back here, so that all
terms and gradients can be compared (:func:`accidents`): on the source side, padding counts in the
means of commitment, attraction and EMA, and the code of padding is predicted after eos; and the EMA
moves the codebook *inside* the forward pass, so that some terms read it before and some after. What
the second one leaves, 3e-4 in the gradients of embeddings and codebook, is their backward pass
reading the codebook that was changed in place.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from random_batches import both_sides, dictionary

from compgen_fairseq.criterions import structural_terms
from compgen_fairseq.criterions.structural_cross_entropy import (
    StructuralCrossEntropyConfig,
    StructuralCrossEntropyCriterion,
)
from compgen_fairseq.models import sq_transformer
from compgen_fairseq.models.sq_config import SQTransformerConfig
from compgen_fairseq.models.sq_transformer import SQTransformerModel
from compgen_fairseq.modules import packing
from compgen_fairseq.modules.vector_quantizer import VectorQuantizer

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = ("sq_sal", "sq_sal_no_padding_no_ema", "sq_srl")
PAD = 1

#: Ours by the authors': where a parameter of theirs lies in ours.
LAYER = {
    "self_attn.v_proj": "self_attn.v_proj",
    "self_attn.out_proj": "self_attn.out_proj",
    "self_attn_layer_norm": "self_attn_norm",
    "encoder_attn.v_proj": "cross_attn.v_proj",
    "encoder_attn.out_proj": "cross_attn.out_proj",
    "encoder_attn_layer_norm": "cross_attn_norm",
    "fc2": "ffn.outer",
    "ffn_block.hidden_to_output": "ffn.gate",
    "final_layer_norm": "ffn.norm",
}
PAIRS = {  # two of theirs are one of ours
    "self_attn.qk_proj": ("self_attn.q_proj", "self_attn.k_proj"),
    "cross_attn.qk_proj": ("encoder_attn.q_proj", "encoder_attn.k_proj"),
    "ffn.inner": ("fc1", "ffn_block.input_to_hidden"),
}


def ported(tensors: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The authors' parameters (or their gradients) by the names of this project."""
    theirs = {name: torch.from_numpy(array) for name, array in tensors.items()}
    ours = {}
    for side in ("encoder", "decoder"):
        ours[f"{side}.stack.embedding.weight"] = theirs[f"{side}.embed_tokens.weight"]
        ours[f"{side}.stack.quantizer.weight"] = theirs[f"{side}.vq._codebook.embed"][0]
        ours[f"{side}.stack.predictor.bias"] = theirs[f"{side}.predictor.output_projection.bias"]
        for where in ("", "predictor."):
            layers = {
                name[: name.index(".self_attn.q_proj")]
                for name in theirs
                if name.startswith(f"{side}.{where}layers")
                and name.endswith("self_attn.q_proj.weight")
            }
            for layer in layers:
                to = layer.replace(f"{side}.", f"{side}.stack.", 1)
                for kind in ("weight", "bias"):
                    for a, b in LAYER.items():
                        if f"{layer}.{a}.{kind}" in theirs:
                            ours[f"{to}.{b}.{kind}"] = theirs[f"{layer}.{a}.{kind}"]
                    for b, pair in PAIRS.items():
                        if f"{layer}.{pair[0]}.{kind}" in theirs:
                            parts = [theirs[f"{layer}.{a}.{kind}"] for a in pair]
                            ours[f"{to}.{b}.{kind}"] = torch.cat(parts)
                for a, b in (("keys", "keys"), ("vals", "values")):  # their distance is query - key
                    table = theirs[f"{layer}.relative_{a}.embeddings.weight"]
                    ours[f"{to}.self_attn.relative.{b}"] = table.flip(0)
    return ours


def accidents(monkeypatch, codebooks: dict[int, torch.Tensor]) -> None:
    """Put back what the authors' code does by accident; ``codebooks``: by their number of rows."""
    quantize, calls = VectorQuantizer.quantize, []

    def moving(self, x, tokens):
        quantized = quantize(self, x, tokens)
        calls.append(self)
        source = self is calls[0]
        if source or calls.count(self) == 2:  # the target's codes come after its stream's
            self.update_ema(x, quantized.codes, torch.ones_like(tokens, dtype=torch.bool))
        vectors = self.vectors()
        raw = F.embedding(quantized.codes, vectors)
        return quantized._replace(
            raw=raw, codebook=vectors[: self.num_codes], mask_code=vectors[-1]
        )

    def padded(term):
        def of(side, *args):
            if side.keep.size(1) == 9:  # the source
                end = torch.arange(9) < 8
                side = replace(side, keep=torch.ones_like(side.keep), next_keep=side.keep & end)
            return term(side, *args)

        return of

    def commitment(side):
        before = F.embedding(side.codes, codebooks[len(side.codebook)])
        return original(replace(side, vectors=before))

    original = structural_terms.commitment
    monkeypatch.setattr(VectorQuantizer, "quantize", moving)
    monkeypatch.setattr(SQTransformerModel, "update_codebooks", lambda *args, **kwargs: None)
    monkeypatch.setattr(structural_terms, "commitment", padded(commitment))
    for name in ("code_prediction", "code_attraction"):
        monkeypatch.setattr(structural_terms, name, padded(getattr(structural_terms, name)))


class Step:
    """One training step of this project's model on the authors' weights and batch."""

    def __init__(self, name: str, monkeypatch, faithful: bool = True):
        data = np.load(GOLDEN / f"{name}.npz")
        self.name, self.golden = name, {key: data[key] for key in data.files}
        weights = self.group("weight")
        self.sal = "srl" not in name
        codes = {s: weights[f"{s}.vq._codebook.embed"][0] for s in ("encoder", "decoder")}
        words = (len(weights[f"{s}.embed_tokens.weight"]) - 4 for s in ("encoder", "decoder"))
        cfg = SQTransformerConfig(
            attention="sal" if self.sal else "srl",
            **both_sides(layers=2, attention_heads=2),
            encoder_embed_dim=16,
            encoder_ffn_embed_dim=32,
            decoder_ffn_embed_dim=24,
            encoder_predictor_layers=1,
            decoder_predictor_layers=2,
            dropout=0.0,
            source_codes=len(codes["encoder"]) - self.sal,  # SAL's last one is [MASK]
            target_codes=len(codes["decoder"]),
            loss_recipe="scan" if self.sal else "cogs",
        )
        source, target = map(dictionary, words)
        task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
        self.model = SQTransformerModel.build_model(cfg, task).train()
        for stack in (self.model.encoder.stack, self.model.decoder.stack):
            stack.words_only = False  # the authors compute what nothing reads, and compare it here
        missing, unexpected = self.model.load_state_dict(ported(weights), strict=False)
        own = ("ema_offset", "type_codes", "decoder.output.weight")  # tied to the embeddings
        assert not unexpected and all(name.endswith(own) for name in missing)
        self.quantizers = {
            "encoder": self.model.encoder.stack.quantizer,
            "decoder": self.model.decoder.stack.quantizer,
        }
        if "no_ema" in name:
            for quantizer in self.quantizers.values():
                quantizer.ema_decay = 1.0
        elif faithful:
            before = {
                quantizer.num_codes: quantizer.codebook().detach().clone()
                for quantizer in self.quantizers.values()
            }
            accidents(monkeypatch, before)
        if self.sal:
            masked = self.tensor("enc_mask")
            monkeypatch.setattr(sq_transformer, "draw_positions", lambda candidates, anew: masked)
        criterion = StructuralCrossEntropyCriterion(
            StructuralCrossEntropyConfig(sentence_avg=False), task
        )
        tokens = self.tensor("tgt")
        sample = {
            "net_input": {
                "src_tokens": self.tensor("src"),
                "src_lengths": self.tensor("src").ne(PAD).sum(1),
                "prev_output_tokens": self.tensor("prev"),
            },
            "target": tokens,
            "ntokens": int(tokens.ne(PAD).sum()),
        }
        seen = {}
        self.model.register_forward_hook(lambda m, i, out: seen.update(out=out))
        loss, size, self.log = criterion(self.model, sample)
        self.loss = loss / size
        self.loss.backward()
        self.logits, extra = seen["out"]
        self.source, self.target = extra["structural"].source, extra["structural"].target

    def group(self, kind: str) -> dict[str, np.ndarray]:
        start = kind + "/"
        return {k[len(start) :]: v for k, v in self.golden.items() if k.startswith(start)}

    def tensor(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.golden[f"activation/{name}"])

    def theirs(self, *names: str) -> float:
        return sum(float(self.golden[f"loss/{name}"]) for name in names)

    def ours(self, name: str) -> float:
        return float(self.log[f"sum_{name}"] / self.log[f"num_{name}"])


@pytest.fixture(scope="module", params=FILES)
def step(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "WORTH", 0.0)  # the authors' padding goes through the layers
        made = Step(request.param, patch)
    return made


def close(actual: torch.Tensor, expected: torch.Tensor, what: str, tolerance=1e-5) -> None:
    """Every entry, within a part of the largest one."""
    error = float((actual.detach() - expected).abs().max() / expected.abs().max())
    assert error < tolerance, f"{what}: {error:.1e} of the largest entry"


def test_activations(step):
    source = step.tensor("src").ne(PAD)
    target = step.tensor("tgt").ne(PAD)
    close(step.source.layers[-1][-1][source], step.tensor("enc_x")[source], "encoder, words")
    close(step.source.layers[-1][0][source], step.tensor("enc_z")[source], "encoder, codes")
    close(step.logits[target], step.tensor("dec_logits")[target], "decoder's logits")
    close(step.target.layers[-1][-1][target], step.tensor("dec_feat")[target], "decoder, words")
    assert torch.equal(step.source.codes[source], step.tensor("enc_idx")[source])
    assert torch.equal(step.target.next_codes[target], step.tensor("dec_idx")[target])


def test_posterior_and_prior(step):
    source, target = step.tensor("src").ne(PAD), step.tensor("tgt").ne(PAD)
    soft, prior = step.tensor("enc_soft"), step.tensor("enc_prior")
    if step.sal:  # one masked position each; nothing is quantized to their last class, [MASK]
        assert soft[:, -1].eq(-torch.inf).all()
        soft = soft[:, :-1]
        predicted = soft
    else:  # positions 1.. from those before
        predicted, prior = soft[:, 1:][source[:, 1:]], prior[source[:, 1:]]
        close(step.source.posterior[source], soft[source], "source posterior")
    close(step.source.predicted, predicted, "source posterior of what is predicted")
    close(step.source.prior, prior, "source prior")
    close(step.target.predicted, step.tensor("dec_soft")[target], "target posterior")
    close(step.target.prior, step.tensor("dec_prior")[target], "target prior")


TERMS = {
    "mmi_cross_entropy_source": ("enc_kl_div", "enc_posterior_entropy"),
    "mmi_cross_entropy_target": ("kl_div", "posterior_entropy"),
    "commitment_source": ("vq-enc-L2",),
    "commitment_target": ("vq-L2",),
    "code_prediction_source": ("enc-out-vq-L1",),
    "code_prediction_target": ("dec-out-vq-L1",),
    "code_attraction_source": ("enc-out-vq-L2",),
    "code_attraction_target": ("dec-out-vq-L2",),
    "srl_mse_source": ("enc-x-proto-x-l2-layer1", "enc-x-proto-x-l2-layer2"),
    "srl_mse_target": ("dec-x-proto-x-l2-layer1", "dec-x-proto-x-l2-layer2"),
}


def test_loss_terms(step):
    only = {"sal": ("srl_mse",), "srl": ("commitment_target",)}["sal" if step.sal else "srl"]
    for name, theirs in TERMS.items():
        if not name.startswith(only):
            assert step.ours(name) == pytest.approx(step.theirs(*theirs), rel=1e-5), name
    assert step.ours("mmi_entropy_source") == pytest.approx(-step.theirs("vq_enc_z_entropy"), 1e-5)
    assert step.ours("mmi_entropy_target") == pytest.approx(-step.theirs("vq_z_entropy"), 1e-5)
    words = float(step.log["nll_loss"]) / int(step.tensor("tgt").ne(PAD).sum())
    assert words == pytest.approx(step.theirs("word_ins"), rel=1e-5)
    assert step.loss.item() == pytest.approx(step.theirs("total"), rel=1e-5)


def test_gradients(step):
    theirs = {n: np.zeros_like(w) for n, w in step.group("weight").items()}
    theirs = ported({**theirs, **step.group("gradient")})
    in_place = ("stack.embedding.weight", "stack.quantizer.weight") if step.name == "sq_sal" else ()
    parameters = dict(step.model.named_parameters())
    assert set(parameters) == set(theirs)
    for name, parameter in parameters.items():
        tolerance = 3e-4 if name.endswith(in_place) else 1e-5
        close(parameter.grad, theirs[name], f"gradient of {name}", tolerance)


def test_the_step_of_the_codebook(step):
    for side, quantizer in step.quantizers.items():
        before = step.group("weight")[f"{side}.vq._codebook.embed"]
        after = step.golden[f"after_step/{side}.vq._codebook.embed"]
        close(quantizer.vectors().detach(), torch.from_numpy(after[0]), f"{side} codebook", 1e-6)
        moved = step.name == "sq_sal"  # EMA is SAL's, and off in the other SAL file
        assert np.array_equal(after, before) == (not moved)


def test_without_the_accidents_only_what_they_touch_differs(monkeypatch):
    step = Step("sq_srl", monkeypatch, faithful=False)
    touched = ("commitment_source", "code_prediction_source", "code_attraction_source")
    for name, theirs in TERMS.items():
        if name == "commitment_target":
            continue
        same = step.ours(name) == pytest.approx(step.theirs(*theirs), rel=1e-5)
        assert same == (name not in touched), name
