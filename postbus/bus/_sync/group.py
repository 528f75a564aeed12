# Generated from postbus/bus/_async/group.py by `make generate`; edit that file.

"""A group: a consumer that is read by position instead of by acks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from postbus.bus._sync.base import is_large
from postbus.bus._sync.group_loop import GroupLoop
from postbus.codec import rows
from postbus.db import statements
from postbus.db.arrays import BigintArray
from postbus.model.errors import InvalidInput
from postbus.model.group import Claim, Claims, Fetched, as_list
from postbus.model.message import Message
from postbus.model.stream import DataType

if TYPE_CHECKING:
    from postbus.bus._sync.bus import Bus
    from postbus.db._sync.database import Connection
    from postbus.model.consumer import ConsumerStats, Start

# A member says that it is alive this many times in its session.
_HEARTBEATS: Final = 3
_MOST_MESSAGES: Final = 10_000
_Loaded = TypeVar("_Loaded")


class Group:
    """Claims ranges of a stream, fetches and commits them; get one from `bus.group`."""

    def __init__(self, bus: Bus, stream: str, name: str) -> None:
        self._bus = bus
        self.stream = stream
        self.name = name

    def claim(
        self,
        max_messages: int = 100,
        *,
        lease: float | timedelta | None = None,
        wait: float | timedelta = 0,
        worker: str | None = None,
        connection: Connection | None = None,
    ) -> list[Claim]:
        """Claim the next messages, as ranges of partitions. Nobody else of the group gets them.

        Args:
            max_messages: How many messages together, 1 to 10,000.
            lease: Give a range again that is not committed within this time (at least once). None moves the group on at once:
                what is claimed by a process that dies is lost to the group (at most once).
            wait: How many seconds to wait if there is nothing.
            worker: Only of the partitions that are assigned to this worker; see `join`.
            connection: A connection of yours, to claim in your transaction; then nothing is waited for.

        Returns:
            The ranges; none when there was nothing.
        """
        parameters = (max_messages, rows.seconds(lease), worker)
        claims = self._claim(parameters, connection)
        if claims or not wait or connection is not None:
            return claims
        waiter = self._bus._wakeups.waiter(self.stream, self.name, rows.seconds(wait) or timedelta())
        with waiter:
            while not claims and waiter.wait():
                claims = self._claim(parameters, None)
        return claims

    def _claim(self, parameters: tuple[Any, ...], connection: Connection | None) -> list[Claim]:
        return [rows.claim(row) for row in self._call(statements.CLAIM, *parameters, connection=connection)]

    def fetch(self, claims: Claims) -> list[Message]:
        """The messages of ranges that were claimed, in order; those that are gone from the stream since are left out."""
        ranges = as_list(claims)
        if not ranges:
            return []
        columns = (
            BigintArray([each.partition for each in ranges]),
            BigintArray([each.from_seq for each in ranges]),
            BigintArray([each.to_seq for each in ranges]),
        )

        def parameters(data_type: DataType) -> tuple[Any, ...]:
            return (self.stream, *columns, data_type)

        data_type, found = self._bus._with_data_type(self.stream, None, statements.FETCH, parameters, repeatable=True)
        return list(rows.page(data_type, found))

    def receive(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Message]:
        """Claim the next messages for good, and fetch them, in one round trip: each goes to one of the group, at most once.

        Args:
            max_messages: How many at most, 1 to 10,000.
            wait: How many seconds to wait if there is nothing.
        """
        messages = self._receive(max_messages)
        if messages or not wait:
            return messages
        waiter = self._bus._wakeups.waiter(self.stream, self.name, rows.seconds(wait) or timedelta())
        with waiter:
            while not messages and waiter.wait():
                messages = self._receive(max_messages)
        return messages

    def _receive(self, max_messages: int) -> list[Message]:
        return self._consume(max_messages, None, (), rows.consumed)

    def batches(
        self,
        max_messages: int = 100,
        *,
        lease: float | timedelta = 30,
        ahead: int = 1000,
        wait: float | timedelta | None = None,
    ) -> Iterator[list[Message]]:
        """Loop over messages in batches, each of one partition and in order, at least once.

        A batch is done when the loop asks for the next one. Messages are claimed and read several batches at a time, with a
        lease that is extended meanwhile, and committed together: when this process is killed they come again, also those of
        batches that were done. Leaving the loop commits what is done and gives the rest back; the batch at which it was left is
        not done.

        Args:
            max_messages: How many messages a batch has at most.
            lease: After how many seconds without a sign of life others get what this loop holds.
            ahead: How many messages are claimed at a time, 1 to 10,000, and at least one batch.
            wait: How many seconds to wait for messages before the loop ends; None for ever.

        Raises:
            InvalidInput: A number is out of range.
        """
        if not 1 <= max_messages <= _MOST_MESSAGES:
            raise InvalidInput(f"max_messages = {max_messages} is not between 1 and {_MOST_MESSAGES:,}")
        loop = GroupLoop(self, rows.seconds(lease) or timedelta())
        try:
            while loop.take(max(max_messages, ahead), rows.seconds(wait)):
                for fetched in list(loop.ranges):
                    for messages in fetched.batches(max_messages):
                        if not loop.holds(fetched):
                            break
                        yield messages
                        loop.note(fetched, messages)
        finally:
            loop.leave()

    def _take(
        self, max_messages: int, lease: timedelta, finished: Sequence[Claim], wait_seconds: float
    ) -> list[Fetched]:
        """Commit ranges, claim others and fetch them, in one round trip. Waits for messages only after it has committed."""
        found = self._consume(max_messages, lease, finished, rows.ranges)
        if found or not wait_seconds:
            return found
        waiter = self._bus._wakeups.waiter(self.stream, self.name, timedelta(seconds=wait_seconds))
        with waiter:
            while not found and waiter.wait():
                found = self._consume(max_messages, lease, (), rows.ranges)
        return found

    def _consume(
        self,
        max_messages: int,
        lease: timedelta | None,
        finished: Sequence[Claim],
        load: Callable[[DataType, Sequence[rows.Row]], _Loaded],
    ) -> _Loaded:
        tokens = _tokens(finished) if finished else None

        def parameters(data_type: DataType) -> tuple[Any, ...]:
            return self.stream, self.name, max_messages, lease, data_type, tokens

        early = is_large(max_messages)
        return self._bus._serve(self.stream, None, statements.CONSUME, parameters, load, early=early)

    def commit(self, claims: Claims, *, to_seq: int | None = None, connection: Connection | None = None) -> int:
        """Finish ranges that were claimed with a lease: all of each, or only up to a seq.

        Args:
            claims: What is done.
            to_seq: Up to here; the rest stays claimed.
            connection: A connection of yours: your writes and the commit stand or fall together.

        Returns:
            How many counted. One whose lease is over and that was given to somebody else does not.
        """
        return self._finish(statements.COMMIT, claims, connection, to_seq)

    def release(self, claims: Claims) -> int:
        """Give ranges back that were claimed with a lease: the next claim gets them.

        Returns:
            How many counted.
        """
        return self._finish(statements.RELEASE, claims, None)

    def extend(self, claims: Claims, lease: float | timedelta) -> int:
        """Lease ranges for longer, counted from now.

        Returns:
            How many messages they hold, of those that counted.
        """
        tokens = _tokens(claims)
        found = self._call(statements.EXTEND, tokens, rows.seconds(lease), False)
        return int(found[0][0])

    def _finish(self, statement: str, claims: Claims, connection: Connection | None, *more: Any) -> int:
        found = self._call(statement, _tokens(claims), *more, connection=connection)
        return int(found[0][0])

    def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        """Read on from another position; what is claimed is given up, and its commits do not count.

        Returns:
            The seq after which it reads on.
        """
        return int((self._call(statements.SEEK, start, from_seq, from_time))[0][0])

    def stats(self) -> ConsumerStats:
        """Where it stands: position and lag, by partition and in all; in flight is what is claimed with a lease."""
        return rows.consumer_stats(self._call(statements.STATS, repeatable=True))

    def pause(self) -> None:
        """Give nothing out until `resume`."""
        self._call(statements.PAUSE, repeatable=True)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._call(statements.RESUME, repeatable=True)

    def drop(self) -> None:
        """Remove the group."""
        self._call(statements.DROP_CONSUMER)

    def join(self, worker: str | None = None, *, session: float | timedelta = 30) -> Member:
        """A worker of the group, to be used with `with`: the partitions are shared out among those that are alive.

        Args:
            worker: Its name, unlike that of any other; None makes one up.
            session: It is taken for dead when it does not call for so long, and its claims are given to others.
        """
        return Member(self, worker or f"worker-{secrets.token_hex(6)}", rows.seconds(session) or timedelta())

    def _join(self, worker: str, session: timedelta) -> tuple[int, ...]:
        return tuple((self._call(statements.JOIN_GROUP, worker, session, repeatable=True))[0][0])

    def _leave(self, worker: str) -> None:
        self._call(statements.LEAVE_GROUP, worker)

    def _call(
        self, statement: str, *more: Any, connection: Connection | None = None, repeatable: bool = False
    ) -> Sequence[tuple[Any, ...]]:
        return self._bus._database.rows(
            statement, (self.stream, self.name, *more), connection=connection, repeatable=repeatable
        )


class Member:
    """One worker of a group; get one from `group.join`.

    It says that it is alive whenever it claims or commits; a handler that takes long calls `heartbeat` in between.

    Attributes:
        worker: Its name.
        partitions: Those that are its own, as far as it knows.
    """

    def __init__(self, group: Group, worker: str, session: timedelta) -> None:
        self._group = group
        self._session = session
        self._next_beat = 0.0
        self.worker = worker
        self.partitions: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        self.heartbeat()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Be a worker no more: the others take its partitions when they are heard of next."""
        self._group._leave(self.worker)
        self.partitions = ()

    def heartbeat(self) -> tuple[int, ...]:
        """Say that it is alive, and find out which partitions are its own now."""
        self.partitions = self._group._join(self.worker, self._session)
        self._next_beat = time.monotonic() + self._session.total_seconds() / _HEARTBEATS
        return self.partitions

    def claim(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Claim]:
        """Claim the next messages of its partitions, for as long as its session lasts.

        While it waits, it says that it is alive.
        """
        end = time.monotonic() + (rows.seconds(wait) or timedelta()).total_seconds()
        while True:
            self._beat()
            left = max(0.0, end - time.monotonic())
            pause = min(left, max(0.0, self._next_beat - time.monotonic()))
            claims = self._group.claim(max_messages, lease=self._session, wait=pause, worker=self.worker)
            if claims or time.monotonic() >= end:
                return claims

    def fetch(self, claims: Claims) -> list[Message]:
        """The messages of what it has claimed."""
        return self._group.fetch(claims)

    def commit(self, claims: Claims, *, to_seq: int | None = None, connection: Connection | None = None) -> int:
        """Finish what it has claimed, as `group.commit` does."""
        committed = self._group.commit(claims, to_seq=to_seq, connection=connection)
        self._beat()
        return committed

    def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            self.heartbeat()


def _tokens(claims: Claims) -> Any:
    return rows.text_array([each.token for each in as_list(claims) if each.token is not None])
