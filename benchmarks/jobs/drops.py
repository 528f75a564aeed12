"""Letting go of all messages of a stream, in three ways; each round fills a stream of its own."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final

import postbus
from benchmarks.comparison import Single
from benchmarks.fill import fill_in_steps
from benchmarks.systems import Postbus

_system: Final = Postbus()
_AGE_SECONDS: Final = 1.0


def expire(url: str, count: int) -> Single:
    """One round of maintenance, when all messages are older than the stream keeps them."""
    return _timed(url, count, _maintain, retain_up_to=_AGE_SECONDS)


def purge(url: str, count: int) -> Single:
    """The call, and the maintenance that frees the space."""

    def purge_and_maintain(bus: postbus.Bus, stream: str) -> None:
        bus.purge(stream, everything=True)
        _maintain(bus, stream)

    return _timed(url, count, purge_and_maintain)


def drop(url: str, count: int) -> Single:
    return _timed(url, count, lambda bus, stream: bus.drop_stream(stream))


def _timed(
    url: str, count: int, work: Callable[[postbus.Bus, str], None], *, retain_up_to: float | None = None
) -> Single:
    stream = f"bench_{secrets.token_hex(4)}"
    with postbus.connect(url) as bus:
        bus.create_stream(stream, retain_up_to=retain_up_to)
        fill_in_steps(_system, url, stream, count)
        full = bus.stream_info(stream).bytes
        time.sleep(_AGE_SECONDS)
        started_at = time.monotonic()
        work(bus, stream)
        seconds = time.monotonic() - started_at
        if any(each.name == stream for each in bus.list_streams()):
            _demand_empty(bus, stream, full)
            bus.drop_stream(stream)
    return Single(1000 * seconds)


def _maintain(bus: postbus.Bus, stream: str) -> None:
    bus.maintain(stream)


def _demand_empty(bus: postbus.Bus, stream: str, full: int) -> None:
    """Messages that are hidden and still take their space are not let go of. Nothing was vacuumed meanwhile.

    Raises:
        RuntimeError: Messages, or more than a tenth of their space, are still there.
    """
    left = bus.stream_info(stream).bytes
    if bus.read(stream, max_messages=1) or left > full / 10:
        raise RuntimeError(f"the stream took {full:,} bytes, and still takes {left:,}")
