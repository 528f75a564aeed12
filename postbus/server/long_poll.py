"""Long polls: requests that wait for messages, in one queue per consumer. Only the head of a queue asks Postgres.

A thousand waiting requests cost as much as one, and a message wakes one of them instead of all. When the head has received, the
next request becomes the head.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import postbus
from postbus.model.delivery import Batch
from postbus.server.requests import Request

# The longest time until the head of a queue notices that its client is gone or the server is stopping.
_SLICE_SECONDS = 1.0
_CROWD = 16


class Poll:
    """One waiting request.

    Args:
        confirm: Raises if the token of the request is no longer valid.

    Attributes:
        signal: Set when the poll may receive, or has to end.
        ended: The poll must not wait any longer: its client is gone, or the server is stopping.
        is_abandoned: The client is gone, so messages received for it should be given back.
    """

    def __init__(self, confirm: Callable[[], Awaitable[None]]) -> None:
        self._confirm = confirm
        self.signal = asyncio.Event()
        self.ended = False
        self.is_abandoned = False

    def end(self) -> None:
        self.ended = True
        self.signal.set()

    def abandon(self) -> None:
        self.is_abandoned = True
        self.end()

    async def confirm(self) -> None:
        """Refuse to wait any longer with a token that is no longer valid.

        Raises:
            Problem: 401.
        """
        await self._confirm()


class LongPolls:
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
        """Whether enough requests are waiting that a new one should join the queue without polling first.

        The first few may poll, so that workers under load receive at the same time and not one after the other. Thousands of
        requests at the same moment would fill the pool.
        """
        name = (stream, consumer)
        return len(self._queues.get(name, ())) + self._looking[name] >= _CROWD

    @contextlib.contextmanager
    def looking(self, stream: str, consumer: str) -> Iterator[None]:
        """Count a request that polls before it waits."""
        name = (stream, consumer)
        self._looking[name] += 1
        try:
            yield
        finally:
            self._looking[name] -= 1
            if not self._looking[name]:
                del self._looking[name]

    @contextlib.asynccontextmanager
    async def opened(self, request: Request, confirm: Callable[[], Awaitable[None]]) -> AsyncIterator[Poll]:
        """A poll that is abandoned when its client disconnects. The body of the request must have been read."""
        poll = Poll(confirm)
        watch = asyncio.create_task(_watch(request, poll))
        try:
            yield poll
        finally:
            watch.cancel()

    def stop(self) -> None:
        """End all polls, including those that start later."""
        self._stopping = True
        for poll in self._polls:
            poll.end()

    async def receive(
        self, consumer: postbus.AsyncConsumer, max_messages: int, *, wait: float, ack_wait: float | None, poll: Poll
    ) -> Batch:
        """Wait for messages in the queue of a consumer; an empty batch when the time is up or the poll was ended."""
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

    async def until_done(self, consumer: postbus.AsyncConsumer, seq: int, *, wait: float, poll: Poll) -> None:
        """Wait until a consumer has finished a message, the time is up or the poll was ended."""
        until = time.monotonic() + wait
        self._polls.add(poll)
        if self._stopping:
            poll.end()
        try:
            while not poll.ended and (left := until - time.monotonic()) > 0:
                await poll.confirm()
                if await consumer.wait_until_done(seq, timeout=min(left, _SLICE_SECONDS)) != "timeout":
                    return
        finally:
            self._polls.discard(poll)


async def _watch(request: Request, poll: Poll) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    poll.abandon()


async def _turn(queue: deque[Poll], poll: Poll, until: float) -> None:
    while queue[0] is not poll and not poll.ended and (left := until - time.monotonic()) > 0:
        poll.signal.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(poll.signal.wait(), left)
