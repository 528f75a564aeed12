"""Queues by name, remembered for a second, as everything that another process may change."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING, Final

from postbus.model.sqs import ServedSqsQueue
from postbus.operations import sqs
from postbus.server.sqs.errors import no_such_queue

if TYPE_CHECKING:
    from postbus.server.connection import Connection

_SECONDS: Final = 1.0
_MOST_REMEMBERED: Final = 10_000
is_name: Final = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo").fullmatch
_LONGEST_STREAM: Final = 63


class KnownQueues:
    """The queues that a process has looked up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, tuple[ServedSqsQueue, float]] = {}

    def forget(self, name: str) -> None:
        """Look it up again: it was changed here, or its stream is gone."""
        self._known.pop(name, None)

    async def find(self, name: str) -> ServedSqsQueue:
        """The queue with a name.

        Raises:
            SqsError: There is none.
        """
        known = self._known.get(name)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        found = await self._connection.bus._transport.run(sqs.find(name)) if is_name(name) else None
        if found is None:
            self.forget(name)
            raise no_such_queue()
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[name] = (found, time.monotonic() + _SECONDS)
        return found


def name_in(url: str) -> str:
    """The name of the queue that a URL, on whatever host, or a bare name means."""
    return url.rstrip("/").rpartition("/")[2]


def streams_for(name: str) -> tuple[str, str]:
    """What the stream of a new queue is called: like the queue if it can be, else something that no other queue's is."""
    plain = name.replace(".", "_")
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    unique = f"{plain[: _LONGEST_STREAM - 13]}-{digest}"
    return (plain if len(plain) <= _LONGEST_STREAM else unique), unique
