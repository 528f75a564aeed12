"""Arrays of many values for Postgres, in its binary format.

psycopg adapts a list value by value in Python, which costs more than the insert of the rows; here the values are
bytes already and are joined. Measured on batches of 100: 33,000 messages/s before, 70,000 after (docs/decisions/0004).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

_HEADER: Final = struct.Struct("!iiIii")
_length: Final = struct.Struct("!i").pack
_NULL: Final = _length(-1)


@dataclass(frozen=True, slots=True)
class TextArray:
    """A text[] of UTF-8 strings and nulls."""

    values: Sequence[bytes | None]
    element_oid: ClassVar[int] = 25
    prefix: ClassVar[bytes] = b""


@dataclass(frozen=True, slots=True)
class BytesArray:
    """A bytea[]."""

    values: Sequence[bytes | None]
    element_oid: ClassVar[int] = 17
    prefix: ClassVar[bytes] = b""


@dataclass(frozen=True, slots=True)
class JsonbArray:
    """A jsonb[] of JSON texts and nulls."""

    values: Sequence[bytes | None]
    element_oid: ClassVar[int] = 3802
    prefix: ClassVar[bytes] = b"\x01"  # The version of the binary format of jsonb.


@dataclass(frozen=True, slots=True)
class BigintArray:
    """A bigint[]."""

    numbers: Sequence[int]
    element_oid: ClassVar[int] = 20
    prefix: ClassVar[bytes] = b""

    @property
    def values(self) -> Sequence[bytes]:
        return [number.to_bytes(8, "big", signed=True) for number in self.numbers]


Array = TextArray | BytesArray | JsonbArray | BigintArray


def encode(array: Array) -> bytes:
    """The array as Postgres receives it: dimensions, then each value with its length."""
    values, prefix = array.values, array.prefix
    if not values:
        return _HEADER.pack(0, 0, array.element_oid, 0, 1)[:12]
    parts = [_HEADER.pack(1, 1, array.element_oid, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(_length(len(value) + len(prefix)) + prefix)
            parts.append(value)
    return b"".join(parts)
