"""How much data all senders of a process hold together, so that many endpoints with large messages do not fill its memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from postbus.model.delivery import Delivery

_MOST_BYTES: Final = 128 * 2**20


class Budget:
    """The messages that a process holds.

    Args:
        most_bytes: When so much data is held, each sender that holds nothing receives one message at a time.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= self._most_bytes

    def take(self, deliveries: Iterable[Delivery]) -> None:
        self._held_bytes += _size_of(deliveries)

    def give_back(self, deliveries: Iterable[Delivery]) -> None:
        self._held_bytes -= _size_of(deliveries)


def _size_of(deliveries: Iterable[Delivery]) -> int:
    return sum(len(each.data) for each in deliveries)
