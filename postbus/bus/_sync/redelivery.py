# Generated from postbus/bus/_async/redelivery.py by `make generate`; edit that file.

"""What a consumer was given before: dead letters, and messages to be delivered again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from postbus._compat import sleep
from postbus.codec import rows
from postbus.db import statements
from postbus.db.arrays import BigintArray
from postbus.model.consumer import DeadLetter

if TYPE_CHECKING:
    from postbus.bus._sync.bus import Bus
    from postbus.db._sync.database import Connection


class Redelivery:
    """The part of a consumer that is about what it was given before."""

    def __init__(self, bus: Bus, stream: str, name: str) -> None:
        self._bus = bus
        self.stream = stream
        self.name = name

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
            reason_like: Only those whose reason matches this pattern of SQL's LIKE, such as "timeout%".
            after_seq: Only messages above this seq: the last of the page before.
            max_messages: How many at most, 1 to 10,000.
        """
        data_type = self._bus._data_type(self.stream)
        found = self._call(
            statements.DEAD_LETTERS,
            _numbers(seqs),
            key_pattern,
            reason_like,
            after_seq,
            max_messages,
            repeatable=True,
        )
        return [rows.dead_letter(data_type, row) for row in found]

    def discard(
        self, *, seqs: Sequence[int] | None = None, key_pattern: str | None = None, reason_like: str | None = None
    ) -> int:
        """Remove dead letters, all or those that match.

        Returns:
            How many.
        """
        discarded = 0
        while found := self._discard_some(seqs, key_pattern, reason_like):
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
    ) -> Iterator[int]:
        """Give dead letters another chance, the oldest first: all, or those that match.

        Use it as a loop; each turn says how many have been moved so far. Leaving the loop cancels the rest.

        Args:
            seqs: Only these.
            key_pattern: Only messages whose key matches.
            reason_like: Only those whose reason matches this pattern of SQL's LIKE.
            to_stream: Publish them to this stream instead of giving them back to the consumer.
            rate: How many per second at most; None as fast as it goes.
        """
        at_once = 1000 if rate is None else max(1, min(1000, int(rate / 10)))
        moved = 0
        started = time.monotonic()
        while True:
            count = self._redrive_some(seqs, key_pattern, reason_like, to_stream, at_once)
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
    ) -> Iterator[int]:
        """Deliver messages again that it was given before, while it goes on with the rest.

        Use it as a loop; each turn says how many have been put back so far. Leaving the loop cancels the rest. What is in
        flight or waits is left alone; dead letters are redriven, not replayed.

        Args:
            from_seq: The first seq, inclusive.
            to_seq: The last seq, inclusive.
            from_time: The earliest `published_at`, inclusive.
            to_time: The latest `published_at`, exclusive.
            key_pattern: Only messages whose key matches.
            rate: How many per second at most; None as fast as it goes.
        """
        at_once = 1000 if rate is None else max(1, min(1000, int(rate / 10)))
        resume: str | None = None
        replayed = 0
        started = time.monotonic()
        while True:
            count, resume = self._replay_some(from_seq, to_seq, from_time, to_time, key_pattern, at_once, resume)
            replayed += count
            if resume is None:
                return
            yield replayed
            if rate is not None:
                sleep(max(0.0, started + replayed / rate - time.monotonic()))

    def _discard_some(self, seqs: Sequence[int] | None, key_pattern: str | None, reason_like: str | None) -> int:
        parameters = (_numbers(seqs), key_pattern, reason_like)
        return int((self._call(statements.DISCARD, *parameters))[0][0])

    def _redrive_some(
        self,
        seqs: Sequence[int] | None,
        key_pattern: str | None,
        reason_like: str | None,
        to_stream: str | None,
        max_messages: int,
    ) -> int:
        parameters = (_numbers(seqs), key_pattern, reason_like, max_messages, to_stream)
        return int((self._call(statements.REDRIVE, *parameters))[0][0])

    def _replay_some(
        self,
        from_seq: int | None,
        to_seq: int | None,
        from_time: datetime | None,
        to_time: datetime | None,
        key_pattern: str | None,
        max_messages: int,
        resume: str | None,
    ) -> tuple[int, str | None]:
        parameters = (from_seq, to_seq, from_time, to_time, key_pattern, max_messages, resume)
        ((count, next_resume),) = self._call(statements.REPLAY, *parameters)
        return count, next_resume

    def _call(
        self, statement: str, *arguments: Any, connection: Connection | None = None, repeatable: bool = False
    ) -> list[rows.Row]:
        parameters = (self.stream, self.name, *arguments)
        return self._bus._database.rows(statement, parameters, connection=connection, repeatable=repeatable)


def _numbers(seqs: Sequence[int] | None) -> BigintArray | None:
    return None if seqs is None else BigintArray(seqs)
