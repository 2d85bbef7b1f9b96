"""Options of models, criterions and tasks."""

from dataclasses import field
from typing import Any


def option(default: Any, text: str) -> Any:
    """A configuration field with its help text."""
    return field(default=default, metadata={"help": text})
