"""Coalesces publishes: requests that arrive at the same time share one statement.

A request for an idle stream is sent at once. Requests that arrive meanwhile gather, and share the next statement. So a statement
carries all messages that came in during the last one, and a single request never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from postbus import tracing
from postbus.model.errors import Conflict, Error, InvalidInput, TooLarge
from postbus.model.message import Message, Seq
from postbus.server.connection import Connection
from postbus.server.deadlines import took_too_long

_MAX_TOGETHER = 1000
# Larger requests gain nothing from sharing a statement.
SMALL = 10


@dataclass(slots=True)
class _Waiting:
    messages: Sequence[Message]
    seqs: asyncio.Future[list[Seq]]


class Coalescer:
    """Publishes for all requests of a process."""

    def __init__(self, connection: Connection, *, coalesce: bool, seconds: float) -> None:
        self._connection = connection
        self._coalesce = coalesce
        self._seconds = seconds
        # Streams with a running statement, each with the requests that wait for its end. Two statements at a time would split the
        # waiting messages between them: more statements, and a quarter fewer messages.
        self._busy: dict[str, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def publish(self, stream: str, messages: Sequence[Message]) -> list[Seq]:
        """Publish all messages or none. Returns their seqs, in order."""
        if not self._coalesce or len(messages) > SMALL:
            return await self._send(stream, messages)
        if stream in self._busy:
            waiting = _Waiting(messages, asyncio.get_running_loop().create_future())
            self._busy[stream].append(waiting)
            return await waiting.seqs
        self._busy[stream] = deque()
        try:
            return await self._send(stream, messages)
        finally:
            self._go_on(stream)

    def _go_on(self, stream: str) -> None:
        if self._busy[stream]:
            task = asyncio.create_task(self._send_waiting(stream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            del self._busy[stream]

    async def _send_waiting(self, stream: str) -> None:
        try:
            together = _take(self._busy[stream])
            try:
                seqs = await self._send(stream, [message for each in together for message in each.messages])
            except (Conflict, InvalidInput, TooLarge):
                # Nothing was published. Send each request by itself, so that an invalid one does not fail the others.
                await asyncio.gather(*(self._send_alone(stream, each) for each in together))
            except Exception as error:
                for each in together:
                    _fail(each, error)
            else:
                await self._share(stream, together, seqs)
        finally:
            self._go_on(stream)

    async def _share(self, stream: str, together: Sequence[_Waiting], seqs: list[Seq]) -> None:
        """Give each request its seqs."""
        start = 0
        again: list[tuple[_Waiting, list[Seq], list[int]]] = []
        for each in together:
            own = seqs[start : start + len(each.messages)]
            start += len(own)
            if len(together) > 1 and (places := _replaced(each.messages, own)):
                again.append((each, own, places))
            else:
                _answer(each, own)
        if again:
            await asyncio.gather(*(self._send_once_more(stream, *each) for each in again))

    async def _send_once_more(self, stream: str, waiting: _Waiting, seqs: list[Seq], places: list[int]) -> None:
        """Publish again, alone, the messages that another message of the same statement may have replaced."""
        # If this fails, they count as replaced.
        with suppress(Error):
            found = await self._send(stream, [waiting.messages[place] for place in places])
            for place, seq in zip(places, found, strict=True):
                seqs[place] = seq
        _answer(waiting, seqs)

    async def _send_alone(self, stream: str, waiting: _Waiting) -> None:
        try:
            _answer(waiting, await self._send(stream, waiting.messages))
        except Exception as error:
            _fail(waiting, error)

    async def _send(self, stream: str, messages: Sequence[Message]) -> list[Seq]:
        bus = self._connection.bus
        # The messages belong to several traces, and each request has recorded its own.
        try:
            with tracing.suppressed():
                async with asyncio.timeout(self._seconds):
                    if len(messages) > 1:
                        return await bus.publish_many(stream, messages)
                    (message,) = messages
                    seq = await bus.publish(
                        stream,
                        data=message.data,
                        key=message.key,
                        headers=message.headers,
                        dedup_id=message.dedup_id,
                        priority=message.priority,
                    )
                    return [seq]
        except TimeoutError:
            raise took_too_long(self._seconds) from None


def _take(waiting: deque[_Waiting]) -> list[_Waiting]:
    taken: list[_Waiting] = []
    count = 0
    while waiting and count < _MAX_TOGETHER:
        taken.append(waiting.popleft())
        count += len(taken[-1].messages)
    return taken


def _replaced(messages: Sequence[Message], seqs: list[Seq]) -> list[int]:
    """The indexes of messages replaced by a later one of their key. Duplicates by id are not among them."""
    return [place for place, seq in enumerate(seqs) if seq.is_duplicate and messages[place].dedup_id is None]


def _answer(waiting: _Waiting, seqs: list[Seq]) -> None:
    # The request may have ended meanwhile; its messages are published anyway.
    if not waiting.seqs.done():
        waiting.seqs.set_result(seqs)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.seqs.done():
        waiting.seqs.set_exception(error)
