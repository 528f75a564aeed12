"""Minds the leases of a worker: extends them in time, and says which handlers have taken too long.

A thread with a connection of its own, for the async worker too: neither a handler that blocks the event loop nor one that has
taken all connections stops the heartbeats. It has nothing to do while messages are handled within a third of their lease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from postbus.bus.hand import Hand, Job, Lease
from postbus.bus.lifelines import Lifeline
from postbus.model.errors import Error, Unavailable

_log = logging.getLogger("postbus.worker")

# An extension so short that it changes nothing: it only says what is still leased.
_ASK: Final = timedelta(milliseconds=1)


class Minder:
    """The heartbeat of one worker.

    Args:
        lifeline: How leases are extended.
        ack_wait: How long leases last, in seconds.
        hand: What is minded.
        overdue: Called with a delivery whose handler has taken too long.
        lost: Called with a delivery that is being handled and whose lease has ended.
        held: Called when leases turned out to be held after all.
    """

    def __init__(
        self,
        lifeline: Lifeline,
        ack_wait: float,
        hand: Hand,
        *,
        overdue: Callable[[Job], None],
        lost: Callable[[Job], None],
        held: Callable[[], None],
    ) -> None:
        self._lifeline = lifeline
        self._ack_wait = ack_wait
        self._hand = hand
        self._overdue = overdue
        self._lost = lost
        self._held = held
        self._over = threading.Event()
        self._is_failing = False
        self.lost_count = 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="postbus-minder", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._pause()):
            for job in self._hand.overdue():
                self._overdue(job)
            if leases := self._hand.due_leases():
                self._extend_or_log(leases)
        self._lifeline.close()

    def _pause(self) -> float:
        pause = max(0.001, self._hand.next_event_at() - time.monotonic())
        return max(pause, min(0.5, self._ack_wait / 10)) if self._is_failing else pause

    def _extend_or_log(self, leases: list[Lease]) -> None:
        try:
            self._extend_all(leases)
            if self._is_failing:
                self._is_failing = False
                _log.info("heartbeats get through again")
        except Unavailable as error:
            if not self._is_failing:
                self._is_failing = True
                _log.warning("heartbeats do not get through: %s", error.message)
        except Error as error:
            # The consumer is gone, or may not be used any more.
            _log.warning("leases cannot be extended: %s", error.message)
            for lease in leases:
                self._lose(self._hand.held(lease))
            self._hand.extended(leases, time.monotonic())

    def _extend_all(self, leases: list[Lease]) -> None:
        asked_at = time.monotonic()
        held_count = self._lifeline.extend([lease.token for lease in leases], timedelta(seconds=self._ack_wait))
        if held_count < sum(map(self._hand.held_count, leases)):
            for lease in leases:
                self._find_lost(lease)
        self._hand.extended(leases, asked_at)
        self._held()

    def _find_lost(self, lease: Lease) -> None:
        held_count = self._lifeline.extend([lease.token], _ASK)
        if held_count >= self._hand.held_count(lease):
            return
        if not held_count:
            self._lose(self._hand.held(lease))
            return
        for job in self._hand.held(lease):
            # If it is settled while we ask, it is not held any more, and not lost either.
            if not self._lifeline.extend([job.delivery.ack_id], _ASK):
                self._lose([job])

    def _lose(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        running = self._hand.lose(jobs)
        lost_count = sum(job.is_lost for job in jobs)
        self.lost_count += lost_count
        _log.warning("%d deliveries were given up: their leases have ended", lost_count)
        for job in running:
            self._lost(job)
