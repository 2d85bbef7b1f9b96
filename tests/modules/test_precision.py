"""Modules in float64 have its precision: their gradients are those of finite differences."""

import pytest
import torch

from compgen_fairseq.modules.class_meanings import ClassMeanings
from compgen_fairseq.modules.code_predictor import CodePredictor
from compgen_fairseq.modules.precision import wide
from compgen_fairseq.modules.primitive_composition import PrimitiveComposition
from compgen_fairseq.modules.prototype_attention import PrototypeAttention, Selection
from compgen_fairseq.modules.relative_attention import RelativePositions, attend

DIM, LENGTH = 4, 3
ONE, TOKENS = torch.zeros(1, dtype=torch.long), torch.tensor([[0, 1, 1]])
WORDS = torch.linspace(-1, 1, LENGTH * DIM).double().view(1, LENGTH, DIM)
MASK = torch.zeros(1, 1, 1, LENGTH).double()


def shaw(x):
    return attend(x, x, x, relative=RelativePositions(DIM).double()(LENGTH, LENGTH))[0]


def prototypes(x):
    chosen = Selection(ONE, ONE, x[0], ONE + LENGTH)
    return PrototypeAttention(DIM, 2).double()(x[0], chosen)


def composition(x):
    return PrimitiveComposition(DIM, 5).double()(x)[0]


def predictor(x):
    where = torch.ones(1, LENGTH, dtype=torch.bool)
    return CodePredictor(1, DIM, 5, 2, 3).double()(x[0], MASK, where, torch.ones(3, DIM))


def meanings(x):
    module = ClassMeanings(DIM, 2, 2).double()
    module.assign(*(torch.zeros(2, dtype=torch.long),) * 3)
    return module(WORDS[..., :2], WORDS[0, :2], x[0], WORDS, MASK, WORDS, TOKENS)


@pytest.mark.parametrize("module", [shaw, prototypes, composition, predictor, meanings])
def test_float64_stays_precise(module):
    def repeated(x):
        torch.manual_seed(1)
        return module(x)

    torch.manual_seed(2)
    x = torch.randn(1, 1, LENGTH, DIM).double().requires_grad_()
    assert repeated(x).dtype == torch.float64
    assert torch.autograd.gradcheck(repeated, x)


def test_half_precision_is_widened_to_float32():
    kinds = (torch.float16, torch.bfloat16, torch.float32)
    assert {wide(torch.ones(1, dtype=kind)) for kind in kinds} == {torch.float32}
