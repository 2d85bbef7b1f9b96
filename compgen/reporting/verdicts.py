"""Which test sentences a run has right or wrong, as a short text."""

import base64
import zlib
from collections.abc import Sequence


def pack(values: Sequence[float], per: int) -> str:
    """Values that are 0, 1/per, …, 1 as text: so many bits for each, as many ones as it has."""
    ones = "".join(("1" * round(value * per)).ljust(per, "0") for value in values)
    packed = int("1" + ones, 2)  # a first one, lest zeros be lost
    data = packed.to_bytes((packed.bit_length() + 7) // 8, "big")
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpack(bits: str, per: int) -> list[float]:
    """The values again.

    Raises:
        ValueError: if that is no such text.
    """
    try:
        packed = int.from_bytes(zlib.decompress(base64.b64decode(bits, validate=True)), "big")
    except zlib.error as error:
        raise ValueError(str(error)) from None
    ones = bin(packed)[3:]
    return [ones[i : i + per].count("1") / per for i in range(0, len(ones), per)]
