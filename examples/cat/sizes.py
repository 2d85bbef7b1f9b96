"""Prints the flags that build a CAT checkpoint's model: ``sizes.py CHECKPOINT [REPRESENTATION]``.

fairseq-train takes a model's sizes from its command line, also when it fine-tunes a checkpoint.
"""

import logging
import sys

from compgen.ranges import flag_of
from compgen_fairseq.models.cat import CATConfig, warn_of_untrained

logger = logging.getLogger(__name__)

# Options that do not have to be those of the pre-training.
FREE = set(
    "_name dropout attention_dropout pooler_dropout representation freeze_backbone "
    "sememe_codes".split()
)


def flags(path: str, representation: str = "cont") -> list[str]:
    """The flags; a warning if the representation means nothing.

    Raises:
        ValueError: the checkpoint holds another model.
    """
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    state = load_checkpoint_to_cpu(path)
    cfg = state["cfg"].model
    arch = getattr(cfg, "arch", getattr(cfg, "_name", None))
    if ARCH_MODEL_NAME_REGISTRY.get(arch, arch) != "cat":
        raise ValueError(f"{path} holds a {arch} model, not a cat model")
    if representation != "cont":
        if getattr(cfg, "composition", "") == "none":
            text = "%s is of --composition none: it has the representation cont alone"
            logger.warning(text, path)
        warn_of_untrained(path, state["cfg"])
    found = ["--arch", "cat"]
    for name in sorted(CATConfig.__dataclass_fields__.keys() - FREE):
        value = getattr(cfg, name, None)  # None: the checkpoint is older than the option
        found += [] if value is None else _flag(path, name, value)
    last = f"encoder.layers.{cfg.encoder_layers - 1}.composition.codebook"
    if last in state["model"]:
        found += ["--sememe-codes", str(len(state["model"][last]))]
    return found


def _flag(path: str, name: str, value: object) -> list[str]:
    """An option as words of a command line, where nothing but a value of its kind may go."""
    flag, kind = flag_of(name), CATConfig.__dataclass_fields__[name].type
    if kind is bool and type(value) is bool:
        return [flag] if value else []
    choices = getattr(kind, "__members__", ())
    if value in choices or (kind is int and type(value) is int and value > 0):
        return [flag, str(value)]
    raise ValueError(f"{path}: its option {name} is {value!r}; train the model again")


if __name__ == "__main__":
    try:
        print(*flags(*sys.argv[1:]), sep="\n")
    except (ValueError, OSError) as error:
        sys.exit(f"sizes.py: {error}")
