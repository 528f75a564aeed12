"""The interface of a transport."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from postbus.model.delivery import Batch, Deliveries
from postbus.model.duration import Duration
from postbus.model.group import Claim, Fetched
from postbus.model.message import Message, Seq
from postbus.operations.call import Call
from postbus.transport._async.waiting import AsyncWaitStrategy

if TYPE_CHECKING:
    from postbus.db._async.transactions import AsyncTransactions
    from postbus.db.own_connections import AsyncOwnConnection

Result = TypeVar("Result")


class AsyncBatchSource(Protocol):
    """Receives the batches of one loop, and acks each with the call that receives the next."""

    async def next(self, max_messages: int, ack_wait: Duration | None, done: Batch | None) -> Batch:
        """Ack a batch and receive the next one, which may be empty."""
        ...

    async def flush(self) -> None:
        """Wait until all acks are durable."""
        ...


class AsyncTransport(Protocol):
    """Runs operations.

    All operations go through `run`, except those on the hot path, which differ between transports in more than a statement.
    """

    @property
    def url(self) -> str:
        """The URL that it connects to."""
        ...

    @property
    def token(self) -> str | None:
        """The token that it sends."""
        ...

    async def close(self) -> None: ...

    async def check(self) -> None:
        """Raise an error if operations cannot be run."""
        ...

    async def run(self, call: Call[Result], connection: AsyncOwnConnection | None = None) -> Result:
        """Run an operation, in the transaction of a connection if there is one."""
        ...

    async def fill_schedules(self) -> int:
        """Work out the next times of recurring schedules, where a server does not do it."""
        ...

    async def publish(
        self,
        stream: str,
        message: Message,
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> Seq: ...

    async def publish_many(
        self,
        stream: str,
        messages: Sequence[Message],
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> list[Seq]: ...

    async def receive(
        self,
        stream: str,
        consumer: str,
        max_messages: int,
        ack: Deliveries | None,
        wait: Duration,
        ack_wait: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> Batch: ...

    async def claim(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        worker: str | None,
        wait: Duration,
        connection: AsyncOwnConnection | None,
    ) -> list[Claim]: ...

    async def claim_and_fetch(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        finished: Sequence[Claim],
        wait: Duration,
    ) -> list[Fetched]:
        """Commit ranges, claim others and fetch them."""
        ...

    def batches(self, stream: str, consumer: str) -> AsyncBatchSource: ...

    def waiting(self, stream: str, consumer: str) -> AsyncWaitStrategy: ...

    def transactions(self) -> AsyncTransactions:
        """Connections for the handlers of a worker."""
        ...

    def forget(self, stream: str) -> None:
        """Forget a stream that was dropped."""
        ...
