"""What the authors' own class computes on random weights, and this one with the same weights.

tests/golden/syntactic_attention.npz holds, for each of the four published variants, weights,
log-probabilities, the loss and its gradients for six pairs of SCAN's add-jump training set.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from compgen_fairseq.models.syntactic_attention import (
    SyntacticAttentionConfig,
    SyntacticAttentionModel,
)

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "syntactic_attention.npz")
VARIANTS = {
    "plain": {},
    "sequential_semantics": {"sequential_semantics": True},
    "syntax_action": {"syntax_action": True},
    "semantic_mlp": {"semantic_mlp": True, "semantic_relu": True},
}
PAIRS = range(6)
MARKERS = {"<SOS>": "<s>", "<EOS>": "</s>", "<NULL>": "<pad>"}


def tensors(prefix: str) -> dict[str, Tensor]:
    """What the file holds under a prefix."""
    found = {n.removeprefix(prefix): GOLDEN[n] for n in GOLDEN.files if n.startswith(prefix)}
    return {name: torch.from_numpy(array) for name, array in found.items()}


def dictionary(side: str) -> tuple[Dictionary, Tensor]:
    """The words of a side, and the index of each row of the authors' embeddings or outputs."""
    words = [MARKERS.get(word, word) for word in GOLDEN[f"{side}_types"]]
    symbols = Dictionary()
    return symbols, torch.tensor([symbols.add_symbol(word) for word in words])


SOURCE, SOURCE_ROWS = dictionary("source")
TARGET, TARGET_ROWS = dictionary("target")


def indices(symbols: Dictionary, sentence: np.ndarray) -> Tensor:
    """A sentence behind its start marker, ``(1, len)``."""
    return torch.tensor([[symbols.index(MARKERS.get(word, word)) for word in sentence[1:]]])


def ours(theirs: str) -> tuple[str, Tensor | None]:
    """What a parameter of the authors is called here, and which of its rows are theirs."""
    name = theirs.removesuffix("_reverse").removesuffix("_l0")
    nets = {
        "encoder.semantic_rnn": "encoder.sequence",
        "encoder.rnn1": "encoder.syntax.first",
        "encoder.rnn2": "encoder.syntax.layers.0",
    }
    net, kind = name.rsplit(".", 1)
    if net in nets:
        direction = "backwards" if theirs.endswith("_reverse") else "forwards"
        return f"{nets[net]}.{direction}.{kind}_l0", None
    if net == "decoder.out":
        return f"decoder.output.{kind}", TARGET_ROWS
    return {
        "encoder.W_m": ("encoder.semantics.weight", SOURCE_ROWS),
        "encoder.W_x": ("encoder.embedding.weight", SOURCE_ROWS),
        "encoder.SOS_embed": ("encoder.syntax.start_role", None),
        "encoder.EOS_embed": ("encoder.syntax.end_role", None),
        "encoder.fc0": (f"decoder.syntax.initial.{kind}", None),
        "decoder.rnn": (f"decoder.syntax.layers.0.{kind}", None),
        "decoder.sem_nn": (f"decoder.hidden.{kind}", None),
    }[net]


def build(variant: str) -> SyntacticAttentionModel:
    """The variant with the authors' weights."""
    sizes = {"encoder_embed_dim": 10, "encoder_hidden_size": 20, "semantic_dim": 12}
    task = SimpleNamespace(source_dictionary=SOURCE, target_dictionary=TARGET)
    cfg = SyntacticAttentionConfig(**sizes, **VARIANTS[variant])
    model = SyntacticAttentionModel.build_model(cfg, task).eval()
    parameters, taken = dict(model.named_parameters()), set()
    for theirs, weight in tensors(f"{variant}/weight/").items():
        name, rows = ours(theirs)
        own = parameters[name].data
        own[slice(None) if rows is None else rows] = weight.view(-1, *own.shape[1:])
        taken.add(name)
    assert taken == parameters.keys()
    return model


def assert_equal(found: Tensor, golden: Tensor, name: str) -> None:
    """Within 1e-5 of the largest golden number."""
    error = (found.view_as(golden) - golden).abs().max() / golden.abs().max()
    assert error < 1e-5, f"{name}: {error:.1e}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_log_probabilities_and_gradients_are_the_authors(variant):
    model, losses = build(variant), []
    for i in PAIRS:
        target = indices(TARGET, GOLDEN[f"target/{i}"])
        logits, _ = model(indices(SOURCE, GOLDEN[f"source/{i}"]), None, target)
        found = logits[0, :, TARGET_ROWS].log_softmax(-1)  # fairseq's other symbols left out
        golden = torch.from_numpy(GOLDEN[f"{variant}/log_probability/{i}"])
        assert_equal(found, golden, f"log-probabilities of pair {i}")
        written = target[0].unsqueeze(-1).eq(TARGET_ROWS)
        losses.append(-found[written].mean())
    loss = torch.stack(losses).sum()
    assert_equal(loss, torch.from_numpy(GOLDEN[f"{variant}/loss"]), "loss")
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    for theirs, golden in tensors(f"{variant}/gradient/").items():
        name, rows = ours(theirs)
        found = gradients[name] if rows is None else gradients[name][rows]
        assert_equal(found, golden, theirs)
