"""Equation 2 on codes worked out by hand."""

import pytest
import torch
import torch.nn.functional as F

from compgen_fairseq.modules.primitive_composition import PrimitiveComposition

CODES = torch.tensor([[3.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, -2.0]])


def with_identities() -> PrimitiveComposition:
    """Two dimensions, four codes along the axes; W_Q and W_K are identities, W_V doubles."""
    made = PrimitiveComposition(2, 4)
    with torch.no_grad():
        for proj, factor in ((made.query_proj, 1), (made.key_proj, 1), (made.value_proj, 2)):
            proj.weight.copy_(factor * torch.eye(2))
        made.codebook.copy_(CODES)
    return made


def test_cosine_by_hand():
    # cosines of (1, -1): 1, -1, -1, 1 over sqrt 2. ReLU leaves two equal ones of four: a mean
    # square of 1 makes them sqrt 2. Codes 0 and 3, doubled: (6, 0) + (0, -4).
    comp, attention, _ = with_identities()(torch.tensor([[1.0, -1.0], [0.0, 2.0]]))
    root = 2**0.5
    expected = torch.tensor([[root, 0.0, 0.0, root], [0.0, 2.0, 0.0, 0.0]])
    torch.testing.assert_close(attention, expected, rtol=1e-4, atol=0)
    expected = torch.tensor([[6 * root, -4 * root], [0.0, 2.0]])
    torch.testing.assert_close(comp, expected, rtol=1e-4, atol=0)


def test_equation_2_as_it_is_written():
    torch.manual_seed(1)
    made, h = PrimitiveComposition(8, 20), torch.randn(3, 5, 8)
    query, keys = made.query_proj(h), made.key_proj(made.codebook)
    rectified = F.cosine_similarity(query.unsqueeze(-2), keys, dim=-1).relu()
    attention = rectified / rectified.square().mean(-1, keepdim=True).sqrt()
    comp, found, _ = made(h)
    torch.testing.assert_close(found, attention, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(
        comp, attention @ made.value_proj(made.codebook), rtol=1e-3, atol=1e-4
    )
    assert found.eq(0).any() and found.ge(0).all()


def test_a_detached_query_leaves_the_state_alone_and_still_learns():
    torch.manual_seed(1)
    made = PrimitiveComposition(8, 20, detach_query=True)
    h = torch.randn(5, 8, requires_grad=True)
    comp, attention, _ = made(h)
    (comp.square().sum() + attention.sum() + made.scores(h).square().sum()).backward()
    assert h.grad is None
    assert all(p.grad.abs().sum() > 0 for p in made.parameters())


def test_a_state_that_no_code_fits_is_composed_of_nothing():
    made = with_identities()
    with torch.no_grad():
        made.codebook[2:] = 0.0
    h = torch.tensor([-1.0, -1.0], requires_grad=True)
    comp, attention, _ = made(h)
    assert attention.eq(0).all() and comp.eq(0).all()
    comp.sum().backward()
    assert h.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_overflow(dtype):
    """Scores whose squares are beyond float16: the norm is taken in float32."""
    torch.manual_seed(1)
    made, h = PrimitiveComposition(64, 300), 60 * torch.randn(4, 64)
    with torch.no_grad():
        made.codebook.mul_(20)
    expected = [part.float() for part in made(h)]
    halved = made.to(dtype)
    h = h.to(dtype).requires_grad_()
    found = halved(h)
    for part, wanted in zip(found, expected, strict=True):
        assert part.dtype == dtype
        assert (part.float() - wanted).abs().mean() < 0.05 * wanted.abs().mean()
    sum(part.float().mean() for part in found).backward()
    assert all(p.grad.isfinite().all() and p.grad.ne(0).any() for p in halved.parameters())


@pytest.mark.parametrize("num_codes", [16, 1000])
def test_at_first_states_are_as_large_as_before_and_every_parameter_learns(num_codes):
    torch.manual_seed(1)
    made = PrimitiveComposition(64, num_codes)
    comp, _, _ = made(torch.randn(50, 64))
    assert 0.8 < comp.std() < 1.25
    comp.square().sum().backward()
    assert all(parameter.grad.ne(0).any() for parameter in made.parameters())


def test_a_codebook_of_one_code_is_refused():
    with pytest.raises(ValueError, match="at least 2 codes, not 1"):
        PrimitiveComposition(8, 1)
