# Generated from postbus/transport/_async/base.py by `make generate`; edit that file.

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
from postbus.transport._sync.waiting import WaitStrategy

if TYPE_CHECKING:
    from postbus.db._sync.transactions import Transactions
    from postbus.db.own_connections import OwnConnection

Result = TypeVar("Result")


class BatchSource(Protocol):
    """Receives the batches of one loop, and acks each with the call that receives the next."""

    def next(self, max_messages: int, ack_wait: Duration | None, done: Batch | None) -> Batch:
        """Ack a batch and receive the next one, which may be empty."""
        ...

    def flush(self) -> None:
        """Wait until all acks are durable."""
        ...


class Transport(Protocol):
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

    def close(self) -> None: ...

    def check(self) -> None:
        """Raise an error if operations cannot be run."""
        ...

    def run(self, call: Call[Result], connection: OwnConnection | None = None) -> Result:
        """Run an operation, in the transaction of a connection if there is one."""
        ...

    def fill_schedules(self) -> int:
        """Work out the next times of recurring schedules, where a server does not do it."""
        ...

    def publish(
        self,
        stream: str,
        message: Message,
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: OwnConnection | None,
    ) -> Seq: ...

    def publish_many(
        self,
        stream: str,
        messages: Sequence[Message],
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: OwnConnection | None,
    ) -> list[Seq]: ...

    def receive(
        self,
        stream: str,
        consumer: str,
        max_messages: int,
        ack: Deliveries | None,
        wait: Duration,
        ack_wait: Duration | None,
        connection: OwnConnection | None,
    ) -> Batch: ...

    def claim(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        worker: str | None,
        wait: Duration,
        connection: OwnConnection | None,
    ) -> list[Claim]: ...

    def claim_and_fetch(
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

    def batches(self, stream: str, consumer: str) -> BatchSource: ...

    def waiting(self, stream: str, consumer: str) -> WaitStrategy: ...

    def transactions(self) -> Transactions:
        """Connections for the handlers of a worker."""
        ...

    def forget(self, stream: str) -> None:
        """Forget a stream that was dropped."""
        ...
