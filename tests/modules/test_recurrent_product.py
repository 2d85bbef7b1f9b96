"""The products and all their gradients are those of the same steps by PyTorch's own."""

import pytest
import torch
from torch import Tensor

from compgen_fairseq.modules.recurrent_product import RecurrentProduct, multiply

SHAPES = {"one matrix": [(3, 3), (5, 2, 3)], "one per sentence": [(2, 3, 3), (5, 2, 1, 3)]}


def gradients(product, matrix: Tensor, addends: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    out = []
    for addend in addends:
        x = product(x, addend).tanh()
        out.append(x)
    x = product(x)
    out = torch.stack([*out, x])
    return out, *torch.autograd.grad(out.square().sum(), [matrix, addends])


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_same_values_and_gradients(shapes):
    torch.manual_seed(1)
    matrix, addends = (
        torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in shapes
    )
    x = torch.randn_like(addends[0])
    found = gradients(RecurrentProduct(matrix), matrix, addends, x)
    expected = gradients(lambda x, addend=None: multiply(x, matrix, addend), matrix, addends, x)
    torch.testing.assert_close(found, expected)
    assert found[1].abs().min() > 0


def test_multiply():
    x, matrix, addend = (torch.randn(2, 3, 3) for _ in range(3))
    torch.testing.assert_close(multiply(x, matrix, addend), x @ matrix + addend)
    torch.testing.assert_close(multiply(x[0], matrix[0], None), x[0] @ matrix[0])


def test_two_backward_passes_add_up():
    matrix = torch.tensor([[2.0]], requires_grad=True)
    loss = RecurrentProduct(matrix)(torch.tensor([[3.0]]), torch.tensor([[1.0]])).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert matrix.grad is not None and matrix.grad.item() == 6.0


def test_a_step_that_nothing_reads_is_left_out():
    matrix = torch.tensor([[2.0]], requires_grad=True)
    product = RecurrentProduct(matrix)
    product(torch.ones(1, 1))
    product(torch.tensor([[3.0]])).sum().backward()
    assert matrix.grad is not None and matrix.grad.item() == 3.0
