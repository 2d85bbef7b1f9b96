"""One kernel, and fairseq's Adam but for its epsilon."""

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig

from compgen_fairseq.optim.fused_adam import FusedAdam


def test_steps_are_fairseqs():
    cfg = FairseqAdamConfig(lr=[0.01], adam_betas="(0.9, 0.98)", adam_eps=1e-12, weight_decay=0.1)
    torch.manual_seed(1)
    start, steps = torch.randn(5, 3), [torch.randn(5, 3) for _ in range(9)]
    ends = []
    for kind in (FairseqAdam, FusedAdam):
        parameter = torch.nn.Parameter(start.clone())
        optimizer = kind(cfg, [parameter])
        for gradient in steps:
            parameter.grad = gradient.clone()
            optimizer.step()
        ends.append(parameter.data)
    torch.testing.assert_close(*ends)
    assert not torch.allclose(ends[0], start)
    assert FusedAdam.supports_flat_params  # --fp16 has one vector of all parameters


@pytest.mark.parametrize("together", [None, lambda norm: 2 * norm])  # of several shards
@pytest.mark.parametrize("longest", [0.0, 0.5, 100.0])
def test_gradients_are_clipped_as_fairseqs_adam_does(longest, together):
    cfg = FairseqAdamConfig(lr=[0.01], adam_betas="(0.9, 0.98)")
    found = []
    for kind in (FairseqAdam, FusedAdam):
        torch.manual_seed(1)
        parameters = [torch.nn.Parameter(torch.randn(n, 3)) for n in (1, 2, 3)]
        for parameter in parameters[1:]:  # the first has no gradient
            parameter.grad = torch.randn_like(parameter)
        norm = kind(cfg, parameters).clip_grad_norm(longest, together)
        found.append([norm, *(parameter.grad for parameter in parameters[1:])])
    torch.testing.assert_close(*found)
    assert FusedAdam(cfg, parameters[:1]).clip_grad_norm(longest) == 0
