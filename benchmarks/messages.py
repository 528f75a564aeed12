"""The message that every system carries: about 220 bytes of JSON under one of 1,000 keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_KEY_COUNT: Final = 1000
_FILLING: Final = "a" * 200

# The same message, made by Postgres from a number i.
SQL_KEY: Final = f"'orders.k' || mod(i, {_KEY_COUNT})"
SQL_DATA: Final = f"""'{{"id":' || i || ',"x":"{_FILLING}"}}'"""


@dataclass(frozen=True, slots=True)
class Message:
    """What a user of any system has in hand: a key, and a dict that is not JSON yet."""

    key: str
    data: dict[str, Any]


def message(number: int) -> Message:
    return Message(f"orders.k{number % _KEY_COUNT}", {"id": number, "x": _FILLING})


def batches(first_number: int, *, batch_count: int, batch_size: int) -> Iterator[list[Message]]:
    for start in range(first_number, first_number + batch_count * batch_size, batch_size):
        yield [message(number) for number in range(start, start + batch_size)]


def look_into(contents: Iterable[Mapping[str, Any]]) -> int:
    """Do the least that a handler does, so that a system which decodes late decodes here; how many messages there were."""
    return sum(1 for data in contents if data["id"] >= 0)
