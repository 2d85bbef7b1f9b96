"""Which numbers options take. The table of a configuration stands above its class."""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Configuration = TypeVar("Configuration", bound=type)


@dataclass(frozen=True)
class Range:
    """The numbers from ``low`` to ``high``; ``high`` is one of them if the range is closed.

    :meth:`whole` and :meth:`number` are types of arguments of commands.
    """

    low: float
    high: float = math.inf
    closed: bool = False

    def __contains__(self, number: float) -> bool:
        return self.low <= number < self.high or (self.closed and number == self.high)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"at least {self.low}"
        return f"at least {self.low} and {'at most' if self.closed else 'below'} {self.high}"

    def whole(self, text: str) -> int:
        """Read a whole number of the range; an argument's ``type``."""
        return self._read(int, text, "a whole number")

    def number(self, text: str) -> float:
        """Read a number of the range; an argument's ``type``."""
        return self._read(float, text, "a number")

    def _read(self, kind: Callable[[str], Any], text: str, what: str) -> Any:
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        if number not in self:
            raise argparse.ArgumentTypeError(f"must be {what}, {self}, not {text!r}")
        return number


AT_LEAST_0, AT_LEAST_1 = Range(0), Range(1)
SHARE, SHARE_ABOVE_0 = Range(0, 1, closed=True), Range(1e-9, 1, closed=True)
RATE = Range(0, 1)  # of dropout, which leaves nothing at 1
ABOVE_0 = Range(1e-9)
SEED = Range(0, 2**32)  # what NumPy takes

#: Of fairseq's own options; tables of configurations are added to it.
RANGES: dict[str, Range] = {
    **dict.fromkeys(
        (
            "max_tokens batch_size max_tokens_valid batch_size_valid update_freq save_interval "
            "validate_interval log_interval beam nbest encoder_layers decoder_layers "
            "encoder_embed_dim decoder_embed_dim encoder_ffn_embed_dim decoder_ffn_embed_dim "
            "encoder_attention_heads decoder_attention_heads max_source_positions "
            "max_target_positions distributed_world_size num_shards required_batch_size_multiple"
        ).split(),
        AT_LEAST_1,
    ),
    **dict.fromkeys(
        (
            "max_epoch max_update clip_norm lr weight_decay warmup_updates adam_eps num_workers "
            "save_interval_updates validate_interval_updates max_len_a max_len_b min_len "
            "no_repeat_ngram_size prefix_size buffer_size shard_id validate_after_updates "
            "curriculum end_learning_rate total_num_update stop_time_hours max_valid_steps "
            "fixed_validation_seed"
        ).split(),
        AT_LEAST_0,
    ),
    **dict.fromkeys(
        (
            "dropout attention_dropout activation_dropout relu_dropout encoder_layerdrop "
            "decoder_layerdrop label_smoothing"
        ).split(),
        RATE,
    ),
    "ema_decay": SHARE,
    "momentum": RATE,
    "seed": SEED,
    "temperature": Range(1e-6),
    "lenpen": Range(-100, 100),
}


def ranges(*table: tuple[Range, Iterable[str]]) -> Callable[[Configuration], Configuration]:
    """Declare the ranges of a configuration's options: pairs of a range and names of options.

    Raises:
        ValueError: an option is none of the configuration, or has another range elsewhere.
    """

    def declare(configuration: Configuration) -> Configuration:
        options = {field.name for field in fields(configuration)}
        for limits, names in table:
            for name in names:
                if name not in options or RANGES.setdefault(name, limits) != limits:
                    raise ValueError(f"{configuration.__name__}: {name} can't be {limits}")
        return configuration

    return declare


def flag_of(name: str) -> str:
    """An option as one types it: ``--max-tokens`` for ``max_tokens``."""
    return f"--{name.replace('_', '-')}"


def check(options: Any) -> None:
    """Refuse numbers that make no sense.

    Args:
        options: a configuration, or a command's arguments.

    Raises:
        ValueError: naming the flag and its range.
    """
    for name, limits in RANGES.items():
        given = getattr(options, name, None)
        for number in given if isinstance(given, list | tuple) else [given]:
            if isinstance(number, str) and "${" not in number:  # its default: as another option is
                try:
                    number = int(number)
                except ValueError:
                    message = f"{flag_of(name)} must be a whole number, not {number}"
                    raise ValueError(message) from None
            if isinstance(number, int | float) and number not in limits:
                raise ValueError(f"{flag_of(name)} must be {limits}, not {number}")
