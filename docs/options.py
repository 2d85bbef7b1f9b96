"""Writes docs/options.md from the dataclasses: ``python docs/options.py``."""

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY

import compgen_fairseq  # noqa: F401  (registers everything)
from compgen.ranges import flag_of
from compgen_fairseq.criterions.cat_pretraining import CATPretrainingConfig
from compgen_fairseq.criterions.composition_cross_entropy import CompositionCrossEntropyConfig
from compgen_fairseq.criterions.structural_cross_entropy import StructuralCrossEntropyConfig
from compgen_fairseq.criterions.structural_terms import RECIPES, LossWeights
from compgen_fairseq.models.cat import CATConfig
from compgen_fairseq.models.cat_transformer import CompositionConfig
from compgen_fairseq.models.proto_transformer import PrototypeConfig
from compgen_fairseq.models.sq_config import SQTransformerConfig
from compgen_fairseq.models.syntactic_attention import SyntacticAttentionConfig
from compgen_fairseq.tasks.cat_pretraining import CATPretrainingTaskConfig
from compgen_fairseq.tasks.compgen_translation import CompgenTranslationConfig

PAGE = Path(__file__).with_name("options.md")
TRANSFORMER = "These come on top of the flags of fairseq's `--arch transformer`."
SECTIONS: list[tuple[str, type[FairseqDataclass], str]] = [
    ("--arch sq_transformer", SQTransformerConfig, ""),
    ("--arch syntactic_attention", SyntacticAttentionConfig, ""),
    ("--arch proto_transformer", PrototypeConfig, TRANSFORMER),
    ("--arch cat_transformer", CompositionConfig, TRANSFORMER),
    ("--arch cat", CATConfig, "For `--task cat_pretraining`."),
    (
        "--task compgen_translation",
        CompgenTranslationConfig,
        "These come on top of the flags of fairseq's `--task translation`.",
    ),
    ("--task cat_pretraining", CATPretrainingTaskConfig, ""),
    (
        "--criterion structural_cross_entropy",
        StructuralCrossEntropyConfig,
        "For `sq_transformer`, on top of the flags of fairseq's "
        "`--criterion label_smoothed_cross_entropy`. `--loss-recipe` chooses the default weights.",
    ),
    (
        "--criterion composition_cross_entropy",
        CompositionCrossEntropyConfig,
        "For `cat_transformer`, on top of the flags of fairseq's "
        "`--criterion label_smoothed_cross_entropy`.",
    ),
    ("--criterion cat_pretraining", CATPretrainingConfig, "For `cat`."),
]
HEAD = """# Options

Made by `python docs/options.py` from the dataclasses. fairseq-train shows the same, with its own
flags, when the command names the plugin:

```
fairseq-train --user-dir compgen_fairseq --task compgen_translation \\
    --arch sq_transformer --criterion structural_cross_entropy --help
```

A flag without values is a switch. `--optimizer fused_adam` has the flags of fairseq's `adam`;
`--scoring exact_match` of fairseq-generate has none.
"""
PRESETS = """## Presets

An architecture's preset changes defaults of its model; a flag still wins.

| --arch | defaults that differ from its model's |
| --- | --- |
"""


def page() -> str:
    """The whole page."""
    tables = "\n".join(_section(*section) for section in SECTIONS)
    return f"{HEAD}\n{tables}\n{''.join(_weights())}\n{PRESETS}{''.join(_presets())}"


def _weights() -> Iterator[str]:
    """A row for each weight of the structural terms, a column for each ``--loss-recipe``."""
    yield f"## Loss recipes\n\n| weight | {' | '.join(RECIPES)} |\n"
    yield f"| --- |{' ---: |' * len(RECIPES)}\n"
    for field in fields(LossWeights):
        values = " | ".join(f"{getattr(RECIPES[name], field.name):g}" for name in RECIPES)
        yield f"| `{flag_of(field.name)}` | {values} |\n"


def _section(title: str, config: type[FairseqDataclass], about: str) -> str:
    rows = "".join(_rows(config))
    intro = f"{about}\n\n" if about else ""
    return f"## {title}\n\n{intro}| flag | default | what it does |\n| --- | --- | --- |\n{rows}"


def _rows(config: type[FairseqDataclass]) -> Iterator[str]:
    """A row for each field that is not fairseq's."""
    parser = argparse.ArgumentParser(add_help=False)
    gen_parser_from_dataclass(parser, config())
    fairseqs = {
        name
        for base in config.__mro__
        if base.__module__.startswith("fairseq.")
        for name in getattr(base, "__dataclass_fields__", ())
    }
    for action in parser._actions:
        if action.dest in fairseqs or action.dest.startswith("_"):
            continue
        switch, flag = action.nargs == 0, action.dest.upper()
        if action.option_strings:
            choices = ",".join(map(str, action.choices or ()))
            kind = f"{{{choices}}}" if choices else {int: "N", float: "X"}.get(action.type, "TEXT")
            flag = " ".join([action.option_strings[0], *[kind] * (not switch)])
        default = "" if switch or action.default in (None, "???") else f"`{action.default}`"
        yield _row(f"`{flag}`", default, (action.help or "") % {"default": action.default})


def _presets() -> Iterator[str]:
    """A row for each architecture that is not its model's own."""
    ours = {
        name: ARCH_MODEL_NAME_REGISTRY[name]
        for name, model in ARCH_MODEL_REGISTRY.items()
        if model.__module__.startswith("compgen_fairseq.")
    }
    for name, model in ours.items():
        if name == model:
            continue
        base, preset = _defaults(model), _defaults(name)
        changed = {key: value for key, value in preset.items() if base.get(key) != value}
        flags = (f"`{flag_of(key)} {value}`" for key, value in changed.items())
        yield _row(f"`{name}`", ", ".join(flags) or "none")


def _defaults(architecture: str) -> dict[str, Any]:
    """What a model starts from: its dataclass's defaults, then the preset's."""
    configs = dict(section[:2] for section in SECTIONS)
    model = ARCH_MODEL_NAME_REGISTRY[architecture]
    args = argparse.Namespace()
    ARCH_CONFIG_REGISTRY.get(architecture, lambda args: None)(args)
    config = configs[f"--arch {model}"]
    plain = {name: f.default for name, f in config.__dataclass_fields__.items()}
    return {**plain, **vars(args)}


def _row(*cells: str) -> str:
    texts = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
