"""Prints the flags that build the model of a CAT checkpoint: ``python sizes.py CHECKPOINT``.

fairseq-train takes a model's sizes from its command line, also when it fine-tunes a checkpoint.
"""

import sys

from compgen_fairseq.models.cat import CATConfig

# Options that do not have to be those of the pre-training.
FREE = {
    *("_name", "dropout", "attention_dropout", "pooler_dropout"),
    *("representation", "freeze_backbone", "sememe_codes"),
}


def flags(path: str) -> list[str]:
    """The flags.

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
    found = ["--arch", "cat"]
    for name in sorted(CATConfig.__dataclass_fields__.keys() - FREE):
        found += [f"--{name.replace('_', '-')}", _checked(path, name, getattr(cfg, name, None))]
    last = f"encoder.layers.{cfg.encoder_layers - 1}.composition.codebook"
    if last in state["model"]:
        found += ["--sememe-codes", str(len(state["model"][last]))]
    return found


def _checked(path: str, name: str, value: object) -> str:
    """The value of an option; what is none must not reach fairseq's command line."""
    kind = CATConfig.__dataclass_fields__[name].type
    good = type(value) is int and value > 0 if kind is int else value in [str(c) for c in kind]
    if not good:
        raise ValueError(f"{path}: its option {name} is {value!r}; train the model again")
    return str(value)


if __name__ == "__main__":
    try:
        print(*flags(sys.argv[1]), sep="\n")
    except (ValueError, OSError) as error:
        sys.exit(f"sizes.py: {error}")
