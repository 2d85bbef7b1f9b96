"""Compositional generalization for fairseq: importing this package registers everything."""

from compgen_fairseq import compat

compat.apply()

from compgen_fairseq.criterions import structural_cross_entropy  # noqa: E402, F401
from compgen_fairseq.models import sq_transformer  # noqa: E402, F401
from compgen_fairseq.scoring import exact_match  # noqa: E402, F401
from compgen_fairseq.tasks import compgen_translation  # noqa: E402, F401
