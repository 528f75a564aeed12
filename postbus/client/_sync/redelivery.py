# Generated from postbus/client/_async/redelivery.py by `make generate`; edit that file.

"""The part of a consumer that redelivers messages: dead letters and replay; and its endpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from postbus._compat import sleep
from postbus.client._sync.base import Client
from postbus.client._sync.push import Push
from postbus.model.consumer import DeadLetter
from postbus.operations import dead_letters as operations
from postbus.transport._sync.base import Transport


class Redelivery(Client):
    """Dead letters, redrive and replay of one consumer."""

    def __init__(self, transport: Transport, stream: str, name: str) -> None:
        super().__init__(transport)
        self.stream = stream
        self.name = name

    @property
    def push(self) -> Push:
        """The endpoint that its messages are sent to, if it has one."""
        return Push(self._transport, self.stream, self.name)

    def dead_letters(
        self,
        *,
        seqs: Sequence[int] | None = None,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        after_seq: int = 0,
        max_messages: int = 100,
    ) -> list[DeadLetter]:
        """A page of its dead letters, in order of seq.

        Args:
            seqs: Only these.
            key_pattern: Only messages whose key matches.
            reason_like: Only those whose reason matches this SQL LIKE pattern, such as "timeout%".
            after_seq: Only messages above this seq; for the next page, the last seq.
            max_messages: The largest number of results, 1 to 10,000.
        """
        call = operations.list_page(
            self.stream,
            self.name,
            seqs=seqs,
            key_pattern=key_pattern,
            reason_like=reason_like,
            after_seq=after_seq,
            max_messages=max_messages,
        )
        return self._transport.run(call)

    def discard(
        self, *, seqs: Sequence[int] | None = None, key_pattern: str | None = None, reason_like: str | None = None
    ) -> int:
        """Remove dead letters, all or those that match.

        Returns:
            How many.
        """
        call = operations.discard_page(
            self.stream, self.name, seqs=seqs, key_pattern=key_pattern, reason_like=reason_like
        )
        discarded = 0
        while found := self._transport.run(call):
            discarded += found
        return discarded

    def redrive(
        self,
        *,
        seqs: Sequence[int] | None = None,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        to_stream: str | None = None,
        rate: float | None = None,
    ) -> int:
        """Redrive dead letters, oldest first: all, or those that match.

        Args:
            seqs: Only these.
            key_pattern: Only messages whose key matches.
            reason_like: Only those whose reason matches this SQL LIKE pattern.
            to_stream: Publish them to this stream instead of delivering them again.
            rate: The largest number per second; None sets no limit.

        Returns:
            How many were redriven.
        """
        moved = 0
        steps = self.redrive_steps(
            seqs=seqs, key_pattern=key_pattern, reason_like=reason_like, to_stream=to_stream, rate=rate
        )
        for moved in steps:  # noqa: B007
            pass
        return moved

    def redrive_steps(
        self,
        *,
        seqs: Sequence[int] | None = None,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        to_stream: str | None = None,
        rate: float | None = None,
    ) -> Iterator[int]:
        """Redrive dead letters as `redrive` does, in a loop that shows progress.

        Nothing happens until you loop over it. Each iteration yields how many were redriven so far. Leaving the loop cancels the
        rest.
        """
        page = 1000 if rate is None else max(1, min(1000, int(rate / 10)))
        moved = 0
        started = time.monotonic()
        while True:
            count = self.redrive_page(
                seqs=seqs, key_pattern=key_pattern, reason_like=reason_like, to_stream=to_stream, max_messages=page
            )
            if not count:
                return
            moved += count
            yield moved
            if rate is not None:
                sleep(max(0.0, started + moved / rate - time.monotonic()))

    def replay(
        self,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key_pattern: str | None = None,
        rate: float | None = None,
    ) -> int:
        """Deliver messages again that it has already received, while it continues with the rest.

        Messages in flight or waiting are left alone. Dead letters are redriven, not replayed.

        Args:
            from_seq: The first seq, inclusive.
            to_seq: The last seq, inclusive.
            from_time: The earliest `published_at`, inclusive.
            to_time: The latest `published_at`, exclusive.
            key_pattern: Only messages whose key matches.
            rate: The largest number per second; None sets no limit.

        Returns:
            How many will be delivered again.
        """
        replayed = 0
        steps = self.replay_steps(
            from_seq=from_seq, to_seq=to_seq, from_time=from_time, to_time=to_time, key_pattern=key_pattern, rate=rate
        )
        for replayed in steps:  # noqa: B007
            pass
        return replayed

    def replay_steps(
        self,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key_pattern: str | None = None,
        rate: float | None = None,
    ) -> Iterator[int]:
        """Deliver messages again as `replay` does, in a loop that shows progress.

        Nothing happens until you loop over it. Each iteration yields how many were put back so far. Leaving the loop cancels the
        rest.
        """
        page = 1000 if rate is None else max(1, min(1000, int(rate / 10)))
        resume: str | None = None
        replayed = 0
        started = time.monotonic()
        while True:
            count, resume = self.replay_page(
                from_seq=from_seq,
                to_seq=to_seq,
                from_time=from_time,
                to_time=to_time,
                key_pattern=key_pattern,
                max_messages=page,
                resume=resume,
            )
            replayed += count
            yield replayed
            if resume is None:
                return
            if rate is not None:
                sleep(max(0.0, started + replayed / rate - time.monotonic()))

    def redrive_page(
        self,
        *,
        seqs: Sequence[int] | None = None,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        to_stream: str | None = None,
        max_messages: int = 1000,
    ) -> int:
        """Redrive some dead letters, as `redrive` does.

        Returns:
            How many; 0 if no matching ones are left.
        """
        call = operations.redrive_page(
            self.stream,
            self.name,
            seqs=seqs,
            key_pattern=key_pattern,
            reason_like=reason_like,
            to_stream=to_stream,
            max_messages=max_messages,
        )
        return self._transport.run(call)

    def replay_page(
        self,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key_pattern: str | None = None,
        max_messages: int = 1000,
        resume: str | None = None,
    ) -> tuple[int, str | None]:
        """Deliver some messages again, as `replay` does.

        Returns:
            How many, and the `resume` of the next page; None if nothing is left.
        """
        call = operations.replay_page(
            self.stream,
            self.name,
            from_seq=from_seq,
            to_seq=to_seq,
            from_time=from_time,
            to_time=to_time,
            key_pattern=key_pattern,
            max_messages=max_messages,
            resume=resume,
        )
        return self._transport.run(call)
