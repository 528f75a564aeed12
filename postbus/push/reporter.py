"""Reports how the requests of one sender went: failures at once, successes once a second."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

from postbus.model.delivery import Delivery
from postbus.model.errors import Error
from postbus.operations import push as operations
from postbus.operations.call import Call

_PAUSE: Final = 1.0
_MOST_ATTEMPTS: Final = 1000

Run = Callable[[Call[tuple[float, bool]]], Awaitable[tuple[float, bool]]]


class Reporter:
    """What is to be reported about one endpoint.

    Args:
        run: Runs an operation.
        consumer_id: The consumer.
        heard: Called with what Postgres decided: for how many seconds the endpoint rests, and whether it is paused.
    """

    def __init__(self, run: Run, consumer_id: int, heard: Callable[[float, bool], None]) -> None:
        self._run = run
        self._consumer_id = consumer_id
        self._heard = heard
        self._successes = 0
        self._failures = 0
        self._unreachable = 0
        self._failed_seqs: list[int] = []
        self._attempts: list[dict[str, Any]] = []
        self._more: dict[str, Any] = {}
        self._is_urgent = False
        self._is_sending_urgent = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether it is about to report what changes the endpoint's state."""
        return self._is_urgent or self._is_sending_urgent

    def succeeded(self) -> None:
        self._successes += 1
        # Only what has failed since then counts as in a row.
        self._unreachable = 0
        self._failed_seqs = []
        self._report_soon()

    def failed(self, seqs: list[int], error: str, *, is_unreachable: bool) -> None:
        self._failures += 1
        self._unreachable += is_unreachable
        # More than five make no difference.
        self._failed_seqs = [*self._failed_seqs, *seqs][:5]
        self._more["error"] = error
        self._is_urgent = True
        self._report_soon()

    def asked_to_rest(self, seconds: float) -> None:
        self._more["rest"] = max(seconds, self._more.get("rest", 0.0))
        self._is_urgent = True
        self._report_soon()

    def must_pause(self, reason: str) -> None:
        self._more["pause"] = reason
        self._is_urgent = True
        self._report_soon()

    def probed(self) -> None:
        """The next report is that of the one request after a rest."""
        self._more["is_probe"] = True
        self._is_urgent = True
        self._report_soon()

    def attempted(
        self,
        outcome: str,
        seconds: float,
        *,
        delivery: Delivery | None = None,
        test_id: int | None = None,
        status: int | None = None,
        error: str | None = None,
        address: str | None = None,
        answer: bytes | None = None,
    ) -> None:
        """Keep an attempt. Too many at once are left out, rather than fill the memory."""
        if len(self._attempts) < _MOST_ATTEMPTS:
            self._attempts.append(
                {
                    "seq": None if delivery is None else delivery.seq,
                    "test_id": test_id,
                    "attempt": 1 if delivery is None else delivery.attempt,
                    "outcome": outcome,
                    "status": status,
                    "duration": round(seconds, 6),
                    # Postgres takes no NUL.
                    "error": None if error is None else error.replace("\x00", ""),
                    "address": address,
                    "answer": None if answer is None else base64.b64encode(answer).decode(),
                }
            )
        self._report_soon()

    async def flush(self) -> None:
        """Report what there is, and wait for it."""
        if self._task is not None:
            self._is_urgent = True
            await self._task
        if self._has_more():
            await self._send()

    def _has_more(self) -> bool:
        return bool(self._successes or self._failures or self._attempts or self._more)

    def _report_soon(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._report())

    async def _report(self) -> None:
        try:
            for _ in range(20):
                # Failures of other requests that ended in the same moment come along.
                await asyncio.sleep(0.002 if self._is_urgent else _PAUSE / 20)
                if self._is_urgent:
                    break
            while True:
                await self._send()
                if not self._is_urgent:
                    return
        finally:
            self._task = None
            if self._has_more():
                self._report_soon()

    async def _send(self) -> None:
        fields: dict[str, Any] = {"successes": self._successes, "failures": self._failures, **self._more}
        if self._failures:
            fields |= {"unreachable": self._unreachable, "failed_seqs": self._failed_seqs}
        if self._attempts:
            fields["attempts"] = self._attempts
        self._successes = self._failures = self._unreachable = 0
        self._is_sending_urgent = self._is_urgent
        self._failed_seqs, self._attempts, self._more, self._is_urgent = [], [], {}, False
        try:
            self._heard(*await self._run(operations.report(self._consumer_id, fields)))
        except Error:
            # The endpoint's state is found out again by the next requests; attempts are lost with the connection.
            await asyncio.sleep(_PAUSE)
        finally:
            self._is_sending_urgent = False
