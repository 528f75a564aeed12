"""Extends the leases of a worker in time, and reports handlers that have taken too long.

The heartbeat is a thread with a connection of its own, for the async worker too: neither a handler that blocks the event loop
nor one that uses all connections can stop it. It sends nothing while messages are handled within a third of their lease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from postbus.model.errors import Error, Unavailable
from postbus.operations import deliveries
from postbus.transport._sync.base import Transport
from postbus.worker.inbox import Inbox
from postbus.worker.tasks import Lease, Task

_log = logging.getLogger("postbus.worker")

# An extension so short that it changes nothing: its count tells what is still leased.
_NO_TIME: Final = timedelta(milliseconds=1)


class LeaseExtender:
    """Extends leases of one consumer, by a connection that is opened when it is first needed.

    Args:
        open_transport: Connects.
        stream: The stream.
        consumer: The consumer.
    """

    def __init__(self, open_transport: Callable[[], Transport], stream: str, consumer: str) -> None:
        self._open_transport = open_transport
        self._stream = stream
        self._consumer = consumer
        self._transport: Transport | None = None

    def extend(self, ack_ids: Sequence[str], ack_wait: timedelta) -> int:
        """Extend leases to this long from now. Returns how many deliveries they hold."""
        if self._transport is None:
            self._transport = self._open_transport()
        call = deliveries.extend(self._stream, self._consumer, ack_ids, ack_wait=ack_wait, shorten=False)
        return self._transport.run(call)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Heartbeat:
    """The heartbeat of one worker.

    Args:
        extender: Extends leases.
        ack_wait: How long leases last, in seconds.
        inbox: The deliveries of the worker.
        overdue: Called with a task whose handler has taken too long.
        lost: Called with a running task whose lease has ended.
        confirmed: Called when leases turned out to be still held.
    """

    def __init__(
        self,
        extender: LeaseExtender,
        ack_wait: float,
        inbox: Inbox,
        *,
        overdue: Callable[[Task], None],
        lost: Callable[[Task], None],
        confirmed: Callable[[], None],
    ) -> None:
        self._extender = extender
        self._ack_wait = ack_wait
        self._inbox = inbox
        self._overdue = overdue
        self._lost = lost
        self._confirmed = confirmed
        self._over = threading.Event()
        self._is_failing = False
        self.lost_count = 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="postbus-heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._pause()):
            for task in self._inbox.overdue_tasks():
                self._overdue(task)
            if leases := self._inbox.due_leases():
                self._extend_or_log(leases)
        self._extender.close()

    def _pause(self) -> float:
        pause = max(0.001, self._inbox.next_event_at() - time.monotonic())
        return max(pause, min(0.5, self._ack_wait / 10)) if self._is_failing else pause

    def _extend_or_log(self, leases: list[Lease]) -> None:
        try:
            self._extend_all(leases)
            if self._is_failing:
                self._is_failing = False
                _log.info("heartbeats succeed again")
        except Unavailable as error:
            if not self._is_failing:
                self._is_failing = True
                _log.warning("heartbeats fail: %s", error.message)
        except Error as error:
            # The consumer was dropped, or this user lost the right to use it.
            _log.warning("leases cannot be extended: %s", error.message)
            for lease in leases:
                self._lose(self._inbox.held_tasks(lease))
            self._inbox.note_extended(leases, time.monotonic())

    def _extend_all(self, leases: list[Lease]) -> None:
        asked_at = time.monotonic()
        held_count = self._extender.extend([lease.token for lease in leases], timedelta(seconds=self._ack_wait))
        if held_count < sum(map(self._inbox.held_count, leases)):
            for lease in leases:
                self._find_lost(lease)
        self._inbox.note_extended(leases, asked_at)
        self._confirmed()

    def _find_lost(self, lease: Lease) -> None:
        held_count = self._extender.extend([lease.token], _NO_TIME)
        if held_count >= self._inbox.held_count(lease):
            return
        if not held_count:
            self._lose(self._inbox.held_tasks(lease))
            return
        for task in self._inbox.held_tasks(lease):
            # A task that is acked or nacked meanwhile is neither held nor lost.
            if not self._extender.extend([task.delivery.ack_id], _NO_TIME):
                self._lose([task])

    def _lose(self, tasks: Sequence[Task]) -> None:
        if not tasks:
            return
        running = self._inbox.mark_lost(tasks)
        lost_count = sum(task.is_lost for task in tasks)
        self.lost_count += lost_count
        _log.warning("%d deliveries were dropped: their leases have ended", lost_count)
        for task in running:
            self._lost(task)
