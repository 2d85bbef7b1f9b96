"""Adam in one kernel per parameter."""

from collections.abc import Iterable

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from torch import Tensor

from compgen.ranges import flag_of


@register_optimizer("fused_adam", dataclass=FairseqAdamConfig)
class FusedAdam(FairseqAdam):
    """``torch.optim.AdamW(fused=True)``, on the CPU, too, with the options of ``--optimizer adam``.

    fairseq's Adam takes a pass over the memory of all parameters for each of its eight operations;
    here it is one, and so it is for the norm of the gradients. The epsilon is Kingma and Ba's
    (2015, algorithm 1), after the correction of the bias. Weight decay is decoupled, as fairseq's.
    """

    supports_flat_params = True  # of --fp16: each number has a step of its own

    def __init__(self, cfg: FairseqAdamConfig, params: Iterable[Tensor]):
        for name in ("fp16_adam_stats", "use_old_adam"):
            if getattr(cfg, name):
                raise ValueError(f"--optimizer fused_adam can't take {flag_of(name)}: leave it out")
        FairseqOptimizer.__init__(self, cfg)
        self._optimizer = torch.optim.AdamW(params, fused=True, **self.optimizer_config)

    @torch.no_grad()
    def clip_grad_norm(self, max_norm, aggregate_norm_fn=None):
        """Scale the gradients down to a norm of ``max_norm``, if it is above 0; return their norm,
        which with shards of a model (FSDP) comes from ``aggregate_norm_fn``."""
        grads = [p.grad for p in self.params if p.grad is not None]
        if not grads:
            return super().clip_grad_norm(max_norm, aggregate_norm_fn)
        norm = torch.nn.utils.get_total_norm(grads)
        if aggregate_norm_fn is not None:
            norm = aggregate_norm_fn(norm)
        if max_norm > 0:
            torch.nn.utils.clip_grads_with_norm_(self.params, max_norm, norm)
        return norm
