"""One kernel, and fairseq's Adam but for its epsilon."""

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


def test_one_vector_of_all_parameters_takes_the_same_steps():
    """The master copy of ``--fp16`` is one."""
    cfg = FairseqAdamConfig(lr=[0.01], adam_betas="(0.9, 0.98)", adam_eps=1e-8, weight_decay=0.1)
    torch.manual_seed(1)
    parts = [torch.nn.Parameter(torch.randn(n)) for n in (2, 3)]
    flat = torch.nn.Parameter(torch.cat([part.data for part in parts]))
    apart, together = FusedAdam(cfg, parts), FusedAdam(cfg, [flat])
    assert together.supports_flat_params
    for _ in range(3):
        flat.grad = torch.randn(5)
        parts[0].grad, parts[1].grad = flat.grad.split([2, 3])
        apart.step()
        together.step()
    torch.testing.assert_close(torch.cat([part.data for part in parts]), flat.data)
