# Generated from postbus/client/_async/group_loop.py by `make generate`; edit that file.

"""A loop over a group's batches. It leases ranges, and extends, commits and releases them."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

from postbus.model.duration import Duration
from postbus.model.errors import Unavailable
from postbus.model.group import Claims, Fetched
from postbus.model.message import Message
from postbus.transport._sync.base import Transport


class Claimed(Protocol):
    """The part of a group that a loop uses."""

    stream: str
    name: str

    def commit(self, claims: Claims, *, to_seq: int | None = None) -> int: ...

    def release(self, claims: Claims) -> int: ...

    def extend(self, claims: Claims, lease: Duration) -> int: ...


# A lease is extended after this part of it, so that a slow batch does not go to another worker.
_EXTEND_AFTER: Final = 1 / 3
_WAIT_SECONDS: Final = 60.0


class GroupLoop:
    """The ranges of one loop.

    Args:
        group: The group.
        transport: Runs its operations.
        lease: How long they are leased.
    """

    def __init__(self, group: Claimed, transport: Transport, lease: timedelta) -> None:
        self._group = group
        self._transport = transport
        self._lease = lease
        self._extend_at = 0.0
        self._done_seqs: dict[str | None, int] = {}
        self.ranges: list[Fetched] = []

    def take(self, max_messages: int, wait: float | None) -> bool:
        """Commit finished ranges and claim more. Returns whether there were any in time."""
        end = None if wait is None else time.monotonic() + wait
        while True:
            left = _WAIT_SECONDS if end is None else min(_WAIT_SECONDS, max(0.0, end - time.monotonic()))
            finished = [each.claim for each in self.ranges]
            self._extend_at = time.monotonic() + self._lease.total_seconds() * _EXTEND_AFTER
            found = self._transport.claim_and_fetch(
                self._group.stream, self._group.name, max_messages, lease=self._lease, finished=finished, wait=left
            )
            self.ranges = found
            self._done_seqs.clear()
            if found or (end is not None and time.monotonic() >= end):
                return bool(found)

    def holds(self, fetched: Fetched) -> bool:
        """Whether this loop still holds a range. Extends its lease when due."""
        if time.monotonic() >= self._extend_at:
            self._extend_at = time.monotonic() + self._lease.total_seconds() * _EXTEND_AFTER
            self.ranges = [each for each in self.ranges if self._group.extend(each.claim, self._lease)]
        return fetched in self.ranges

    def note(self, fetched: Fetched, messages: list[Message]) -> None:
        """Note that these messages of a range are done."""
        self._done_seqs[fetched.claim.token] = messages[-1].seq or 0

    def leave(self) -> None:
        """Commit finished ranges and release the rest. If that fails, the rest becomes free when its lease expires."""
        with suppress(Unavailable):
            for each in self.ranges:
                done_seq = self._done_seqs.get(each.claim.token)
                if done_seq is not None:
                    self._group.commit(each.claim, to_seq=done_seq)
                if done_seq != each.claim.to_seq:
                    self._group.release(each.claim)
