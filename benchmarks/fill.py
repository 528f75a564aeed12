"""Fills deep places, in steps that keep one transaction from growing without bounds."""

from __future__ import annotations

from typing import Final

from benchmarks.progress import say
from benchmarks.systems.base import ConsumingSystem, ReadingSystem

_STEP: Final = 100_000


def fill_in_steps(system: ConsumingSystem | ReadingSystem, url: str, place: str, message_count: int) -> None:
    for done in range(0, message_count, _STEP):
        if done % (10 * _STEP) == 0:
            say(f"filling: {done:,} of {message_count:,} messages")
        system.fill(url, place, min(_STEP, message_count - done))
