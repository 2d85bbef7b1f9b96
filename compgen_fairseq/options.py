"""Options of models, criterions and tasks."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from enum import Enum
from typing import Any, TypeVar

from fairseq.models import register_model_architecture

from compgen.ranges import check, flag_of

Configuration = TypeVar("Configuration")


def option(default: Any, text: str, **metadata: Any) -> Any:
    """A configuration field with its help text, and what else fairseq reads of a field."""
    return field(default=default, metadata={"help": text, **metadata})


def options_of(model: type, default: type[Configuration]) -> type[Configuration]:
    """The dataclass that a model is registered with, which may be one of a plugin of its own."""
    return getattr(model, "__dataclass", None) or default


def take(kind: type[Configuration], args: Any) -> Configuration:
    """A configuration of what a namespace says; the options that it lacks keep their defaults.

    Raises:
        ValueError: on an unknown choice, or a number that makes no sense.
    """
    own = [f for f in fields(kind) if hasattr(args, f.name)]  # type: ignore[arg-type]
    for name, choices in ((f.name, getattr(f.type, "__members__", ())) for f in own):
        if choices and (value := getattr(args, name)) not in choices:
            raise ValueError(f"{flag_of(name)} is one of {', '.join(choices)}, not {value}")
    given = {f.name: getattr(args, f.name) for f in own}
    # fairseq's enumerations cannot be pickled, and so no model that holds one
    config = kind(**{k: str(v) if isinstance(v, Enum) else v for k, v in given.items()})
    check(config)
    return config


def register_preset(
    model: str,
    name: str,
    preset: Mapping[str, Any],
    base: Callable[[Namespace], None] = lambda args: None,
) -> None:
    """Register an architecture of a model: ``preset`` has the values of the options that are not
    given, ``base`` sets those that are still without one."""

    def architecture(args: Namespace) -> None:
        for key, value in preset.items():
            if not hasattr(args, key):
                setattr(args, key, value)
        base(args)

    register_model_architecture(model, name)(architecture)
