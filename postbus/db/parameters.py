"""Python values as the parameters of a statement, in the formats of Postgres's protocol.

Few types suffice, because the statements of the library only call functions whose arguments have types of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from postbus.db import arrays

TEXT: Final = 0
BINARY: Final = 1


def encode(values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """The values and the format of each.

    Raises:
        TypeError: A value is of a type that no statement takes.
    """
    encoded: list[bytes | None] = []
    formats: list[int] = []
    for value in values:
        kind = type(value)
        if value is None:
            encoded.append(None)
            formats.append(TEXT)
        elif kind is str:
            encoded.append(value.encode())
            formats.append(TEXT)
        elif kind is bytes:
            encoded.append(value)
            formats.append(BINARY)
        elif isinstance(value, arrays.Array):
            encoded.append(arrays.encode(value))
            formats.append(BINARY)
        else:
            encoded.append(_as_text(value).encode())
            formats.append(TEXT)
    return encoded, formats


def _as_text(value: Any) -> str:
    if isinstance(value, str | bool | int | float):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    raise TypeError(f"{type(value).__name__} is not a parameter that Postgres is given")
