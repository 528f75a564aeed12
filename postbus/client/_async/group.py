"""A group: a consumer that is read by position instead of by acks."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from postbus.client._async.base import AsyncClient
from postbus.client._async.group_loop import AsyncGroupLoop
from postbus.client._async.member import AsyncMember
from postbus.model.duration import as_seconds, as_timedelta
from postbus.model.errors import InvalidInput
from postbus.model.group import Claim, Claims, as_list
from postbus.model.message import Message
from postbus.operations import consumers
from postbus.operations import groups as operations
from postbus.transport._async.base import AsyncTransport

if TYPE_CHECKING:
    from postbus.db.own_connections import AsyncOwnConnection
    from postbus.model.consumer import ConsumerStats, Start

_MOST_MESSAGES: Final = 10_000


class AsyncGroup(AsyncClient):
    """Claims ranges of a stream, fetches and commits them; get one from `bus.group`."""

    def __init__(self, transport: AsyncTransport, stream: str, name: str) -> None:
        super().__init__(transport)
        self.stream = stream
        self.name = name

    async def claim(
        self,
        max_messages: int = 100,
        *,
        lease: float | timedelta | None = None,
        wait: float | timedelta = 0,
        worker: str | None = None,
        connection: AsyncOwnConnection | None = None,
    ) -> list[Claim]:
        """Claim the next messages, as ranges of partitions. No other member of the group gets them.

        Args:
            max_messages: The largest number of messages in total, 1 to 10,000.
            lease: How long until an uncommitted range can be claimed again (at least once). None advances the group at once:
                if this process dies, the group does not see its messages again (at most once).
            wait: How many seconds to wait if there is nothing to claim.
            worker: Only partitions of this worker; see `join`.
            connection: Your own connection, to claim in your transaction; then the call does not wait.

        Returns:
            The ranges; empty if there was nothing to claim.
        """
        return await self._transport.claim(
            self.stream, self.name, max_messages, lease=lease, worker=worker, wait=wait, connection=connection
        )

    async def fetch(self, claims: Claims) -> list[Message]:
        """The messages of claimed ranges, in order, without those that the stream has removed since."""
        ranges = as_list(claims)
        return await self._transport.run(operations.fetch(self.stream, self.name, ranges)) if ranges else []

    async def receive(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Message]:
        """Claim and fetch the next messages in one round trip. Each goes to one member of the group, at most once.

        Args:
            max_messages: The largest number of results, 1 to 10,000.
            wait: How many seconds to wait if there are no messages.
        """
        fetched = await self._transport.claim_and_fetch(
            self.stream, self.name, max_messages, lease=None, finished=(), wait=wait
        )
        return [message for each in fetched for message in each.messages]

    async def batches(
        self,
        max_messages: int = 100,
        *,
        lease: float | timedelta = 30,
        ahead: int = 1000,
        wait: float | timedelta | None = None,
    ) -> AsyncIterator[list[Message]]:
        """Loop over messages in batches, each of one partition and in order, at least once.

        A batch is done when the loop asks for the next one. Messages are claimed and read several batches at a time, with a
        lease that is extended meanwhile, and committed together: when this process is killed they come again, also those of
        batches that were done. Leaving the loop commits what is done and gives the rest back; the batch at which it was left is
        not done.

        Args:
            max_messages: The largest number of messages in a batch.
            lease: If this loop makes no call for this many seconds, others can claim its ranges.
            ahead: How many messages to claim at a time, 1 to 10,000, and at least one batch.
            wait: How many seconds to wait for messages before the loop ends; None waits indefinitely.

        Raises:
            InvalidInput: A number is out of range.
        """
        if not 1 <= max_messages <= _MOST_MESSAGES:
            raise InvalidInput(f"max_messages = {max_messages} is not between 1 and {_MOST_MESSAGES:,}")
        loop = AsyncGroupLoop(self, self._transport, as_timedelta(lease) or timedelta())
        try:
            while await loop.take(max(max_messages, ahead), as_seconds(wait)):
                for fetched in list(loop.ranges):
                    for messages in fetched.batches(max_messages):
                        if not await loop.holds(fetched):
                            break
                        yield messages
                        loop.note(fetched, messages)
        finally:
            await loop.leave()

    async def commit(
        self, claims: Claims, *, to_seq: int | None = None, connection: AsyncOwnConnection | None = None
    ) -> int:
        """Commit ranges that were claimed with a lease: all of each, or only up to a seq.

        Args:
            claims: The ranges that are done.
            to_seq: Commit only up to this seq; the rest stays claimed.
            connection: Your own connection: your writes and the commit take effect together, or not at all.

        Returns:
            How many counted. A range whose lease expired and that went to another member does not count.
        """
        call = operations.commit(self.stream, self.name, _tokens(claims), to_seq=to_seq)
        return await self._transport.run(call, connection)

    async def release(self, claims: Claims) -> int:
        """Release ranges that were claimed with a lease: the next claim gets them.

        Returns:
            How many counted.
        """
        return await self._transport.run(operations.release(self.stream, self.name, _tokens(claims)))

    async def extend(self, claims: Claims, lease: float | timedelta) -> int:
        """Extend the leases of ranges, counted from now.

        Returns:
            How many messages they hold, of those that counted.
        """
        return await self._transport.run(operations.extend(self.stream, self.name, _tokens(claims), lease))

    async def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        """Move to another position. Claimed ranges are given up, and their commits do not count.

        Returns:
            The seq after which it continues.
        """
        call = operations.seek(self.stream, self.name, start=start, from_seq=from_seq, from_time=from_time)
        return await self._transport.run(call)

    async def stats(self) -> ConsumerStats:
        """Its progress: position and lag, by partition and in total. Ranges claimed with a lease are in flight."""
        return await self._transport.run(operations.stats(self.stream, self.name))

    async def pause(self) -> None:
        """Allow no claims until `resume`."""
        await self._transport.run(consumers.pause(self.stream, self.name))

    async def resume(self) -> None:
        """Resume after `pause`."""
        await self._transport.run(consumers.resume(self.stream, self.name))

    async def drop(self) -> None:
        """Remove the group."""
        await self._transport.run(operations.drop(self.stream, self.name))

    def join(self, worker: str | None = None, *, session: float | timedelta = 30) -> AsyncMember:
        """A worker of the group, for use with `with`. The partitions are divided among all live workers.

        Args:
            worker: Its unique name; None generates one.
            session: If it makes no call for this long, it counts as dead, and others can claim its ranges.
        """
        return AsyncMember(
            self, self._transport, worker or f"worker-{secrets.token_hex(6)}", as_timedelta(session) or timedelta()
        )


def _tokens(claims: Claims) -> list[str]:
    return [each.token for each in as_list(claims) if each.token is not None]
