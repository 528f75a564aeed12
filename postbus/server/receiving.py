"""Requests that wait for messages: one queue for each consumer, whose head alone asks Postgres.

A thousand waiting requests cost as much as one, and a message wakes one of them instead of all. What the head receives is its
own; then the next has its turn, and finds more or waits on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import postbus
from postbus.model.delivery import Batch

if TYPE_CHECKING:
    from postbus.server.polls import Poll

# How soon the one that waits in Postgres notices that its client is gone or the server stops.
_SLICE_SECONDS = 1.0
_CROWD = 16


class Receiving:
    """The waiting requests of a process."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], deque[Poll]] = {}
        self._looking: Counter[tuple[str, str]] = Counter()
        self._polls: set[Poll] = set()
        self._stopping = False

    @property
    def waiting_count(self) -> int:
        return len(self._polls)

    def is_crowded(self, stream: str, consumer: str) -> bool:
        """Whether so many wait that one more need not look for itself first: there is nothing, or they are served before it.

        A few are let through, so that workers under load receive at the same time and not one after the other. Thousands who
        come in one moment would fill the pool.
        """
        name = (stream, consumer)
        return len(self._queues.get(name, ())) + self._looking[name] >= _CROWD

    @contextlib.contextmanager
    def looking(self, stream: str, consumer: str) -> Iterator[None]:
        """One who looks for messages before it waits."""
        name = (stream, consumer)
        self._looking[name] += 1
        try:
            yield
        finally:
            self._looking[name] -= 1
            if not self._looking[name]:
                del self._looking[name]

    def stop(self) -> None:
        """End all waiting, now and from now on."""
        self._stopping = True
        for poll in self._polls:
            poll.end()

    async def receive(
        self, consumer: postbus.AsyncConsumer, max_messages: int, *, wait: float, ack_wait: float | None, poll: Poll
    ) -> Batch:
        """Wait for messages of a consumer in turn with others; an empty batch when time is up or the wait was ended."""
        until = time.monotonic() + wait
        name = (consumer.stream, consumer.name)
        queue = self._queues.setdefault(name, deque())
        queue.append(poll)
        self._polls.add(poll)
        if self._stopping:
            poll.end()
        try:
            await _turn(queue, poll, until)
            batch = Batch(())
            while not batch and not poll.ended and (left := until - time.monotonic()) > 0:
                await poll.confirm()
                batch = await consumer.receive(max_messages, wait=min(left, _SLICE_SECONDS), ack_wait=ack_wait)
            return batch
        finally:
            self._polls.discard(poll)
            queue.remove(poll)
            if queue:
                queue[0].signal.set()
            elif self._queues.get(name) is queue:
                del self._queues[name]


async def _turn(queue: deque[Poll], poll: Poll, until: float) -> None:
    while queue[0] is not poll and not poll.ended and (left := until - time.monotonic()) > 0:
        poll.signal.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(poll.signal.wait(), left)
