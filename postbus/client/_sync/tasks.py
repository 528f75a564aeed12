# Generated from postbus/client/_async/tasks.py by `make generate`; edit that file.

"""The tasks of a bus that go on in the background."""

from __future__ import annotations

from datetime import datetime

from postbus.client._sync.base import Client
from postbus.model.task import TaskInfo
from postbus.operations import tasks as operations


class Tasks(Client):
    """Starts, lists and cancels redrives, discards, replays and moves in the background; get it from `bus.tasks`.

    A task is done in steps by whichever process does the upkeep: a server, or a program with an open bus. It goes on when
    processes are killed.
    """

    def redrive(
        self,
        stream: str,
        consumer: str,
        *,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        to_stream: str | None = None,
        rate: float | None = None,
    ) -> int:
        """Start to redrive the dead letters that there are now: all, or those that match.

        Args:
            stream: The stream's name.
            consumer: The consumer's name.
            key_pattern: Only messages whose key matches.
            reason_like: Only those whose reason matches this SQL LIKE pattern.
            to_stream: Publish them to this stream instead of delivering them again.
            rate: The largest number per second; None sets no limit.

        Returns:
            The number of the task.

        Raises:
            InvalidInput: An argument is not valid.
            NotFound: The stream, the consumer or `to_stream` does not exist.
            Conflict: `to_stream` holds data of another type, or this is a group.
        """
        call = operations.redrive(
            stream,
            consumer,
            key_pattern=key_pattern,
            reason_like=reason_like,
            to_stream=to_stream,
            rate=rate,
        )
        return self._transport.run(call)

    def discard(
        self,
        stream: str,
        consumer: str,
        *,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        rate: float | None = None,
    ) -> int:
        """Start to remove the dead letters that there are now, for good: all, or those that match. See `redrive`."""
        call = operations.discard(
            stream,
            consumer,
            key_pattern=key_pattern,
            reason_like=reason_like,
            rate=rate,
        )
        return self._transport.run(call)

    def replay(
        self,
        stream: str,
        consumer: str,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key_pattern: str | None = None,
        rate: float | None = None,
    ) -> int:
        """Start to deliver messages again that a consumer has already received, as `consumer.replay` does.

        Args:
            stream: The stream's name.
            consumer: The consumer's name.
            from_seq: The first seq, inclusive.
            to_seq: The last seq, inclusive.
            from_time: The earliest `published_at`, inclusive.
            to_time: The latest `published_at`, exclusive.
            key_pattern: Only messages whose key matches.
            rate: The largest number per second; None sets no limit.

        Returns:
            The number of the task.

        Raises:
            InvalidInput: An argument is not valid.
            NotFound: The stream or the consumer does not exist.
            Conflict: This is a group.
        """
        call = operations.replay(
            stream,
            consumer,
            key_pattern=key_pattern,
            from_seq=from_seq,
            to_seq=to_seq,
            from_time=from_time,
            to_time=to_time,
            rate=rate,
        )
        return self._transport.run(call)

    def move(self, stream: str, consumer: str, *, to_stream: str | None = None, rate: float | None = None) -> int:
        """Start to move what a consumer could receive to another stream: each message is published there and acked here, at once.

        It ends when nothing is left that the consumer could receive. What workers have in flight stays with them. The messages
        become new ones, without the headers that say where a dead letter came from.

        Args:
            stream: The stream's name.
            consumer: The consumer's name.
            to_stream: Where they go; None sends each back to the stream whose dead letter it is (see `dead_letters_to`).
            rate: The largest number per second; None sets no limit.

        Returns:
            The number of the task.

        Raises:
            InvalidInput: An argument is not valid.
            NotFound: The stream, the consumer or `to_stream` does not exist.
            Conflict: `to_stream` holds data of another type, or this is a group.
        """
        return self._transport.run(operations.move(stream, consumer, to_stream=to_stream, rate=rate))

    def list_all(self, stream: str | None = None) -> list[TaskInfo]:
        """All tasks, or those of a stream, the newest first: those that run, and those that ended within a week."""
        return self._transport.run(operations.list_all(stream))

    def cancel(self, stream: str, id: int) -> bool:
        """End a task. What it has moved stays moved.

        Returns:
            Whether it was running.

        Raises:
            NotFound: The stream has no such task.
        """
        return self._transport.run(operations.cancel(stream, id))

    def run(self) -> int:
        """Do one step of each task. `bus.upkeep` and servers do it; only over Postgres.

        Returns:
            How many messages were moved; 0 if nothing is to be done now.
        """
        return self._transport.run(operations.run())
