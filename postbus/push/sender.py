"""Sends the messages of one consumer to its endpoint, in its order, as many at once as it allows."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from postbus.http.outgoing import Outgoing, OutgoingAnswer, OutgoingFailure
from postbus.model.delivery import Delivery
from postbus.model.errors import Error
from postbus.model.push import PushEndpoint, PushTarget
from postbus.operations import push as operations
from postbus.push import requests
from postbus.push.budget import Budget
from postbus.push.lanes import lanes_of
from postbus.push.outcomes import ACKED, Outcome, of_answer, of_failure, of_named
from postbus.push.reporter import Reporter
from postbus.push.settlement import Settlement
from postbus.push.slots import Slots
from postbus.push.tester import send_tests
from postbus.transport._async.postgres import AsyncPostgresTransport

_log = logging.getLogger("postbus.push")

# Of a lease, what must be left when a request begins: enough for its timeout, and for the ack.
_MARGIN_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 1.0
# Settings of the consumer may change without a new version of its endpoint.
_RELOAD_SECONDS: Final = 60.0
_RESTING: Final = "the endpoint rests"
_WORDS: Final = {"ack": "acked", "fail": "failed", "dead": "dead", "return": "returned"}


class Sender:
    """The sender of one endpoint in this process.

    Args:
        transport: Reaches Postgres.
        http: Sends requests.
        target: The endpoint.
        budget: What all senders of the process may hold.
    """

    def __init__(self, transport: AsyncPostgresTransport, http: Outgoing, target: PushTarget, budget: Budget) -> None:
        self._budget = budget
        self._transport = transport
        self._http = http
        self._place = (target.stream, target.consumer)
        self._id = target.consumer_id
        self._version = -1
        self._endpoint: PushEndpoint | None = None
        self._reload_at = 0.0
        self._is_active = False
        self._is_resting = False
        self._rests_until = 0.0
        self._stopping = False
        self._is_testing = False
        self._changed = asyncio.Event()
        self._slots = Slots()
        self._held = 0
        self._lane_count = 0
        self._turns = 0
        self._turn_taking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = transport.waiting(*self._place)
        self._may_have_more = True
        self._settlement = Settlement(transport.run, *self._place, self._settled)
        self._reporter = Reporter(transport.run, self._id, self._heard)
        self._chance = random.Random()  # noqa: S311
        self._task = asyncio.create_task(self._run())

    def note(self, target: PushTarget) -> None:
        """Take what Postgres says about the endpoint."""
        if target.has_test and not self._is_testing:
            self._is_testing = True
            self._start(self._test())
        if self._reporter.is_urgent:
            # Postgres is about to learn more than it said.
            return
        is_new = (target.version, target.is_active) != (self._version, self._is_active)
        self._version, self._is_active = target.version, target.is_active
        rested_until = self._rests_until
        self._rest(target.rest_seconds, is_resting=target.is_resting)
        if is_new:
            self._reload_at = 0.0
            self._waiting.interrupt()
        if is_new or not self._is_resting or self._rests_until < rested_until - _LOOK_SECONDS:
            self._changed.set()

    def _settled(self) -> None:
        """Messages behind those that were settled may be received now."""
        self._may_have_more = True
        self._waiting.interrupt()

    def _heard(self, rest_seconds: float, is_paused: bool) -> None:
        if is_paused:
            self._is_active = False
            self._slots.wake_all()
        self._rest(rest_seconds, is_resting=rest_seconds > 0)

    def _rest(self, seconds: float, *, is_resting: bool) -> None:
        self._is_resting = is_resting
        self._rests_until = time.monotonic() + seconds
        if is_resting:
            self._slots.wake_all()

    async def stop(self, grace: float) -> None:
        """Finish the requests that are on their way, and give back all others."""
        self._stopping = True
        self._changed.set()
        self._slots.wake_all()
        self._waiting.interrupt()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        await self._settlement.close()
        await self._reporter.flush()

    async def _run(self) -> None:
        problem = None
        while not self._stopping:
            try:
                await self._turn()
                problem = None
            except Error as error:
                if error.message != problem:
                    _log.warning("%s/%s: nothing is sent: %s", *self._place, error.message)
                problem = error.message
                await asyncio.sleep(_LOOK_SECONDS)
            except Exception:
                # Unexpected, but a sender that stopped would never send again.
                _log.exception("%s/%s: nothing is sent", *self._place)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _turn(self) -> None:
        if time.monotonic() >= self._reload_at:
            await self._reload()
        endpoint = self._endpoint
        if endpoint is None or not self._is_active:
            await self._wait_for_change(_RELOAD_SECONDS)
            return
        if self._is_resting:
            await self._probe(endpoint)
            return
        room = self._room(endpoint)
        if room <= 0:
            await self._wait_for_change(_LOOK_SECONDS if self._budget.is_full else _WAIT_SECONDS)
            return
        self._may_have_more = False
        if await self._receive(endpoint, room) or self._may_have_more:
            return
        await self._waiting.wait(
            _WAIT_SECONDS, lambda: not self._stopping and self._is_active and not self._may_have_more
        )

    async def _reload(self) -> None:
        self._endpoint = await self._transport.run(operations.to_send(self._id))
        change_in = None if self._endpoint is None else self._endpoint.secrets_change_in
        self._reload_at = time.monotonic() + min(
            _RELOAD_SECONDS, _RELOAD_SECONDS if change_in is None else max(change_in, 0.1)
        )

    async def _wait_for_change(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()

    def _room(self, endpoint: PushEndpoint) -> int:
        """How many messages to receive: as many again as are being sent, so that no slot has to wait for Postgres."""
        if self._budget.is_full:
            return 0 if self._held else 1
        each = endpoint.batch_size if endpoint.mode == "batch" else 1
        most = 2 * endpoint.concurrency * each
        if endpoint.max_rate is not None:
            # More would wait for their turns until their leases end.
            most = min(most, max(1, int(endpoint.max_rate)) * each)
        if self._lane_count > endpoint.concurrency // 2 and self._held > most // 2:
            return 0
        if endpoint.order != "none" and self._lane_count >= endpoint.concurrency:
            # What waits in this process keeps later messages of its keys from all others.
            return 0
        if self._held < most:
            return most - self._held
        # Many messages of few keys. Those of other keys could be sent.
        return endpoint.concurrency if self._lane_count < endpoint.concurrency // 2 and self._held < 4 * most else 0

    async def _receive(self, endpoint: PushEndpoint, most: int, *, is_probe: bool = False) -> bool:
        """Receive messages, and start to send them. Returns whether there were any."""
        needed = endpoint.timeout + timedelta(seconds=3 * _MARGIN_SECONDS)
        received_at = time.monotonic()
        ack_wait = None if endpoint.ack_wait >= needed else needed
        batch = await self._transport.receive_raw(*self._place, min(most, 1000), ack_wait)
        if not batch:
            return False
        self._waiting.note_received()
        self._settlement.opened(batch)
        self._held += len(batch)
        self._budget.take(batch)
        lease_ends = received_at + max(endpoint.ack_wait, needed).total_seconds()
        for lane in lanes_of(endpoint, batch):
            self._lane_count += 1
            self._start(self._send_lane(endpoint, lane, lease_ends, is_probe=is_probe))
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, endpoint: PushEndpoint) -> None:
        """After a rest, one process sends one request, which shows whether the endpoint works again."""
        left = self._rests_until - time.monotonic()
        if left > 0:
            await self._wait_for_change(min(left, _RELOAD_SECONDS))
            return
        if self._held:
            # They are being given back.
            await self._wait_for_change(0.05)
            return
        if not await self._transport.run(operations.take_probe(self._id, give_back=False)):
            await self._wait_for_change(_LOOK_SECONDS)
            return
        size = endpoint.batch_size if endpoint.mode == "batch" else 1
        if not await self._receive(endpoint, size, is_probe=True):
            await self._transport.run(operations.take_probe(self._id, give_back=True))
            await self._waiting.wait(_LOOK_SECONDS, lambda: not self._stopping)
            return
        while self._held and not self._stopping:
            await self._wait_for_change(_WAIT_SECONDS)

    async def _send_lane(
        self, endpoint: PushEndpoint, lane: list[list[Delivery]], lease_ends: float, *, is_probe: bool
    ) -> None:
        """Send what has to be sent one after the other. After a failure, the rest is given back."""
        try:
            await self._send_one_by_one(endpoint, lane, lease_ends, is_probe=is_probe)
        finally:
            self._lane_count -= 1
            self._changed.set()

    async def _send_one_by_one(
        self, endpoint: PushEndpoint, lane: list[list[Delivery]], lease_ends: float, *, is_probe: bool
    ) -> None:
        for place, deliveries in enumerate(lane):
            try:
                sent = await self._send_in_turn(endpoint, deliveries, lease_ends, is_probe=is_probe)
            except Exception:
                _log.exception("%s/%s: message %d", *self._place, deliveries[0].seq)
                sent = False
            self._left(deliveries)
            if not sent:
                rest = [each for following in lane[place + 1 :] for each in following]
                await self._settlement.give_back(rest, timedelta(), "an earlier message is not done")
                self._left(rest)
                return

    def _left(self, deliveries: Sequence[Delivery]) -> None:
        self._held -= len(deliveries)
        self._budget.give_back(deliveries)
        self._changed.set()

    async def _send_in_turn(
        self, endpoint: PushEndpoint, deliveries: list[Delivery], lease_ends: float, *, is_probe: bool
    ) -> bool:
        await self._slots.take(endpoint.concurrency, lambda: self._must_not_send(is_probe=is_probe))
        try:
            has_turn = self._must_not_send(is_probe=is_probe) or await self._take_turn(endpoint, lease_ends)
            late = time.monotonic() > lease_ends - endpoint.timeout.total_seconds() - _MARGIN_SECONDS
            if self._must_not_send(is_probe=is_probe) or late or not has_turn:
                why = _RESTING if self._is_resting else "it did not have its turn in time"
                await self._settlement.give_back(deliveries, timedelta(), why)
                return False
            return await self._send(endpoint, deliveries, is_probe=is_probe)
        finally:
            self._slots.give_back()
            self._changed.set()

    def _must_not_send(self, *, is_probe: bool) -> bool:
        return self._stopping or not self._is_active or (self._is_resting and not is_probe)

    async def _take_turn(self, endpoint: PushEndpoint, lease_ends: float) -> bool:
        """Wait for a turn by the endpoint's rate, which all processes share."""
        if endpoint.max_rate is None:
            return True
        async with self._turn_taking:
            while not self._turns:
                wanted = max(1, min(self._held, int(endpoint.max_rate / 10)))
                granted, wait = await self._transport.run(operations.take_turns(self._id, endpoint.max_rate, wanted))
                self._turns += granted
                if not granted:
                    if time.monotonic() + wait > lease_ends or self._stopping:
                        return False
                    await asyncio.sleep(min(wait, _LOOK_SECONDS))
            self._turns -= 1
        return True

    async def _send(self, endpoint: PushEndpoint, deliveries: list[Delivery], *, is_probe: bool) -> bool:
        """Send one request and settle its messages. Returns whether later ones may follow."""
        is_batch = endpoint.mode == "batch"
        request = requests.of_batch(endpoint, deliveries) if is_batch else requests.of_delivery(endpoint, deliveries[0])
        attempt = max(each.attempt for each in deliveries)
        started = time.monotonic()
        answer: OutgoingAnswer | None = None
        failed: Sequence[Delivery] = deliveries
        try:
            signed = request.signed(endpoint, int(time.time()))
            answer = await self._http.post(endpoint.url, signed, request.body, endpoint.timeout.total_seconds())
            outcome = of_answer(answer, endpoint, attempt, is_resting=self._is_resting or is_probe, chance=self._chance)
        except OutgoingFailure as failure:
            is_resting = self._is_resting or is_probe
            outcome = of_failure(failure, endpoint, attempt, is_resting=is_resting, chance=self._chance)
        seconds = time.monotonic() - started
        if is_batch and answer is not None and outcome is ACKED:
            named = requests.failed_items(endpoint, deliveries, answer.body) if answer.is_whole else None
            failed, outcome = of_named(named, deliveries, endpoint, attempt, self._chance)
        self._note(endpoint, deliveries, failed, outcome, answer, seconds)
        self._tell(deliveries, outcome, is_probe=is_probe)
        if is_probe:
            await self._reporter.flush()
        if outcome.kind != "ack":
            await self._settle(failed, outcome, is_probe=is_probe)
        self._settlement.ack([each for each in deliveries if outcome.kind == "ack" or each not in failed])
        return outcome.kind == "ack"

    def _note(
        self,
        endpoint: PushEndpoint,
        deliveries: Sequence[Delivery],
        failed: Sequence[Delivery],
        outcome: Outcome,
        answer: OutgoingAnswer | None,
        seconds: float,
    ) -> None:
        for each in deliveries:
            kind = outcome.kind if outcome.kind == "ack" or each in failed else "ack"
            if kind == "fail" and each.is_last_attempt:
                kind = "dead"
            if kind == "ack" and not endpoint.keep_successes:
                continue
            self._reporter.attempted(
                _WORDS[kind],
                seconds,
                delivery=each,
                status=None if answer is None else answer.status,
                error=outcome.reason or None if kind != "ack" else None,
                address=None if answer is None else answer.address,
                answer=None if answer is None else answer.beginning,
            )

    def _tell(self, deliveries: Sequence[Delivery], outcome: Outcome, *, is_probe: bool) -> None:
        """Report what the outcome says about the endpoint."""
        if is_probe:
            self._reporter.probed()
        if outcome.pause is not None:
            self._is_active = False
            self._slots.wake_all()
            self._reporter.must_pause(outcome.pause)
        elif outcome.rest is not None:
            self._rest(outcome.rest, is_resting=True)
            self._reporter.asked_to_rest(outcome.rest)
        elif outcome.is_failure:
            seqs = [each.seq for each in deliveries]
            self._reporter.failed(seqs[:1], outcome.reason, is_unreachable=outcome.is_unreachable)
        else:
            self._reporter.succeeded()

    async def _settle(self, failed: Sequence[Delivery], outcome: Outcome, *, is_probe: bool) -> None:
        if outcome.kind == "dead":
            await self._settlement.bury(failed, outcome.reason)
        elif outcome.kind == "fail":
            await self._settlement.fail(failed, outcome.delay, outcome.reason)
        else:
            delay, reason = outcome.delay or timedelta(), outcome.reason
            if is_probe and self._is_resting:
                # After the next rest, another message has its turn. If that is sent, report_push lets this one go at once.
                delay, reason = timedelta(seconds=max(self._rests_until - time.monotonic(), 0) + 1), f"probe: {reason}"
            await self._settlement.give_back(failed, delay, reason)

    async def _test(self) -> None:
        """Send the tests that somebody has asked for."""
        try:
            await send_tests(self._transport, self._http, self._reporter, self._id, self._place)
        except Error as error:
            _log.warning("%s/%s: a test was not sent: %s", *self._place, error.message)
        finally:
            self._is_testing = False
