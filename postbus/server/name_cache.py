"""Finds the stream or consumer that a path names: by its name, or by its id if no such name exists."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field

from postbus.model.errors import NotFound
from postbus.server.connection import Connection
from postbus.server.fields import NAME_PATTERN

# How long a process caches names and ids, which another process may drop or create.
_SECONDS = 1.0
_is_name = re.compile(NAME_PATTERN).match


@dataclass(slots=True)
class _Listing:
    """Names by id."""

    names: dict[str, str] = field(default_factory=dict)
    until: float = 0.0


class NameCache:
    """Names and ids of streams and consumers, cached for a second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._streams = _Listing()
        self._consumers: dict[str, _Listing] = {}
        self._ids: dict[str, tuple[str, float]] = {}
        self._asking: dict[str, asyncio.Task[str]] = {}

    def forget(self, stream: str) -> None:
        """Clear the cache of a stream, since something was created or dropped here."""
        self._streams.until = 0.0
        self._consumers.pop(stream, None)
        self._ids.pop(stream, None)

    async def stream_name(self, name_or_id: str) -> str:
        """The name of a stream given by name or id. A name that does not exist is returned as it is."""
        # Only digits can be an id, so other names need no query.
        if not (name_or_id.isascii() and name_or_id.isdigit()):
            return _checked("stream", name_or_id)
        bus = self._connection.bus
        if await _exists(bus.stream_info(_checked("stream", name_or_id))):
            return name_or_id
        if time.monotonic() >= self._streams.until:
            streams = await bus.list_streams()
            self._streams = _Listing({str(each.id): each.name for each in streams}, time.monotonic() + _SECONDS)
        return self._streams.names.get(name_or_id, name_or_id)

    async def consumer_name(self, stream: str, name_or_id: str) -> str:
        if not (name_or_id.isascii() and name_or_id.isdigit()):
            return _checked("consumer", name_or_id)
        bus = self._connection.bus
        if await _exists(bus.consumer(stream, _checked("consumer", name_or_id)).info()):
            return name_or_id
        listing = self._consumers.get(stream)
        if listing is None or time.monotonic() >= listing.until:
            consumers = await bus.list_consumers(stream)
            listing = _Listing({str(each.id): each.name for each in consumers}, time.monotonic() + _SECONDS)
            if len(self._consumers) > 1000:
                self._consumers.clear()
            self._consumers[stream] = listing
        return listing.names.get(name_or_id, name_or_id)

    async def stream_id(self, stream: str) -> str:
        """The id of a stream, for responses.

        Raises:
            NotFound: There is no such stream.
        """
        known = self._ids.get(stream)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        # Concurrent requests share one query.
        asking = self._asking.get(stream)
        if asking is None:
            asking = self._asking[stream] = asyncio.create_task(self._ask(stream))
        return await asyncio.shield(asking)

    async def _ask(self, stream: str) -> str:
        try:
            found = str((await self._connection.bus.stream_info(stream)).id)
        finally:
            del self._asking[stream]
        if len(self._ids) > 10_000:
            self._ids.clear()
        self._ids[stream] = (found, time.monotonic() + _SECONDS)
        return found


async def _exists(asked: Awaitable[object]) -> bool:
    """Whether that name exists. Not cached: a stream named like an id may have been created just now."""
    try:
        await asked
    except NotFound:
        return False
    return True


def _checked(kind: str, name: str) -> str:
    if not _is_name(name) or name.endswith("\n"):
        raise NotFound(f"{kind} {name[:80]!r} does not exist", 'names are 1 to 63 letters, digits, "_" or "-"')
    return name
