"""Python values as the parameters of a statement, in the formats of Postgres's protocol.

Few types suffice, because the statements of the library only call functions whose arguments have types of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from postbus.db import arrays
from postbus.model.errors import InvalidInput

TEXT: Final = 0
BINARY: Final = 1


def encode(values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """The values and the format of each.

    Raises:
        InvalidInput: A value cannot be sent: its type is not one that a statement takes, it has a NUL character, which would cut
            it off, or a time has no time zone.
    """
    encoded: list[bytes | None] = []
    formats: list[int] = []
    for value in values:
        kind = type(value)
        if value is None:
            encoded.append(None)
            formats.append(TEXT)
        elif kind is str:
            encoded.append(_encode_text(value))
            formats.append(TEXT)
        elif kind is bytes:
            encoded.append(value)
            formats.append(BINARY)
        elif isinstance(value, arrays.Array):
            encoded.append(arrays.encode(value))
            formats.append(BINARY)
        else:
            encoded.append(_encode_text(_as_text(value)))
            formats.append(TEXT)
    return encoded, formats


def _as_text(value: Any) -> str:
    if isinstance(value, str | bool | int | float):
        return str(value)
    if isinstance(value, datetime):
        return encode_time(value)
    if isinstance(value, timedelta):
        return encode_interval(value)
    raise InvalidInput(f"{value!r} is of type {type(value).__name__}, which is not allowed here")


def _encode_text(value: str) -> bytes:
    if "\x00" in value:
        raise InvalidInput(f"{value!r} has a NUL character")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{value!r} is not valid Unicode: {error.reason}") from error


def encode_time(time: datetime) -> str:
    """A time as text.

    Raises:
        InvalidInput: It has no zone.
    """
    if time.tzinfo is None:
        raise InvalidInput(f"the time {time} has no time zone", "use datetime.now(UTC), or .astimezone()")
    return time.isoformat()


def encode_interval(value: timedelta) -> str:
    return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
