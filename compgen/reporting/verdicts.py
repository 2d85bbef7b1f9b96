"""Which test sentences a run has right or wrong, as a short text."""

import base64
import zlib
from collections.abc import Sequence

MOST = 60  # parts of a value


def parts(values: Sequence[float]) -> int | None:
    """Of how many equal parts the values are made: 5 for shares of five sentences; None if of
    more than ``MOST``."""
    for per in range(1, MOST + 1):
        if all(abs(value * per - round(value * per)) <= 1e-6 for value in values):
            return per
    return None


def pack(values: Sequence[float], per: int) -> str:
    """Encode multiples of ``1 / per``, from 0 to 1, as text: ``per`` bits for each value, of which
    ``value * per`` are ones."""
    ones = "".join(("1" * round(value * per)).ljust(per, "0") for value in values)
    packed = int("1" + ones, 2)  # a first one, so that leading zeros stay
    data = packed.to_bytes((packed.bit_length() + 7) // 8, "big")
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpack(bits: str, per: int) -> list[float]:
    """Decode what :func:`pack` made.

    Raises:
        ValueError: if the text is damaged.
    """
    try:
        packed = int.from_bytes(zlib.decompress(base64.b64decode(bits, validate=True)), "big")
    except zlib.error as error:
        raise ValueError(str(error)) from None
    ones = bin(packed)[3:]
    return [ones[i : i + per].count("1") / per for i in range(0, len(ones), per)]
