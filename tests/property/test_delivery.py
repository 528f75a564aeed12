"""Random histories of delivery, compared with a model of a few dozen lines.

Time is the test's own: deadlines and due times are moved into the past by hand, so that nothing waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import postbus
from postbus import Message
from tests import servers

pytestmark = pytest.mark.newest_server

MAX_DELIVER = 2
MASKS = st.integers(0, 65535)
PARTITIONS = 2


@dataclass
class Known:
    """What the model knows of a message: state is available, delivered, waiting, due, acked or dead."""

    partition: int
    state: str = "available"
    attempts: int = 0
    ack_id: str = ""
    # Its lease has expired, and nobody has received it since.
    is_late: bool = False

    def fail(self, *, later: bool) -> None:
        self.state = "dead" if self.attempts >= MAX_DELIVER else "waiting" if later else "due"


class Delivery(RuleBasedStateMachine):
    """Publish, receive, ack, nack, extend, terminate, expire, seek and pause in any order."""

    bus: postbus.Bus
    connection: psycopg.Connection[Any]
    order: str
    count = 0

    @initialize()
    def begin(self) -> None:
        Delivery.count += 1
        self.stream = f"s{Delivery.count}"
        self.bus.create_stream(self.stream, partitions=PARTITIONS)
        self.consumer = self.bus.create_consumer(self.stream, "c", order=self.order, max_deliver=MAX_DELIVER)  # type: ignore[arg-type]
        self.consumer_id = self.consumer.info().id
        self.messages: dict[int, Known] = {}
        self.old_ack_ids: list[str] = []
        # Dead letters stay when a consumer seeks back and their messages come again.
        self.buried: set[int] = set()
        self.paused = False

    def in_state(self, *states: str) -> list[int]:
        return [seq for seq, known in sorted(self.messages.items()) if known.state in states]

    def allowed(self, max_messages: int) -> set[int]:
        """What a receive may return."""
        if self.paused:
            return set()
        if self.order == "none":
            return set(self.in_state("available", "due"))
        allowed: set[int] = set()
        for partition in range(PARTITIONS):
            mine = {seq: known for seq, known in sorted(self.messages.items()) if known.partition == partition}
            if any(known.state == "delivered" for known in mine.values()):
                continue
            failed = [seq for seq, known in mine.items() if known.state in ("waiting", "due")]
            ready = failed or [seq for seq, known in mine.items() if known.state == "available"]
            for seq in ready:
                if mine[seq].state == "waiting":
                    break
                allowed.add(seq)
        return allowed

    @rule(keys=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), commits=st.booleans())
    def publish(self, keys: list[str], commits: bool) -> None:
        with self.connection.transaction(force_rollback=not commits):
            seqs = self.bus.publish_many(
                self.stream, [Message(key=key, data=0) for key in keys], connection=self.connection
            )
        if commits:
            for seq, key in zip(seqs, keys, strict=True):
                self.messages[seq] = Known(postbus.partition_of(key, PARTITIONS))

    @rule(max_messages=st.integers(1, 6))
    def receive(self, max_messages: int) -> None:
        allowed = self.allowed(max_messages)
        batch = self.consumer.receive(max_messages)
        # In order none, what is due is swept up now and then, and always before a receive returns nothing.
        certain = {
            seq for seq in allowed if self.order == "partition" or self.messages[seq].state == "available"
        } or allowed
        assert min(max_messages, len(certain)) <= len(batch) <= max_messages
        assert {d.seq for d in batch} <= allowed
        for partition in range(PARTITIONS):
            mine = [d.seq for d in batch if d.partition == partition]
            assert mine == sorted(mine) or self.order == "none"
            if self.order == "partition":
                expected = [seq for seq in sorted(allowed) if self.messages[seq].partition == partition]
                assert mine == expected[: len(mine)]
        for delivery in batch:
            known = self.messages[delivery.seq]
            known.attempts += 1
            if known.is_late:
                self.old_ack_ids.append(known.ack_id)
            known.state, known.ack_id, known.is_late = "delivered", delivery.ack_id, False
            assert delivery.attempt == known.attempts

    def some(self, mask: int) -> list[int]:
        """Some of what is in flight. Which it is Postgres decides by chance, so choices must not depend on how many there are."""
        delivered = self.in_state("delivered")
        return [seq for place, seq in enumerate(delivered) if mask >> place % 16 & 1]

    @rule(mask=MASKS)
    def ack(self, mask: int) -> None:
        chosen = self.some(mask)
        assert self.consumer.ack([self.messages[seq].ack_id for seq in chosen]) == len(chosen)
        self.finish(chosen, "acked")

    @rule(mask=MASKS, later=st.booleans())
    def nack(self, mask: int, later: bool) -> None:
        chosen = self.some(mask)
        ids = [self.messages[seq].ack_id for seq in chosen]
        assert self.consumer.nack(ids, delay=3600 if later else 0) == len(chosen)
        self.finish(chosen, "waiting" if later else "due")

    @rule(mask=MASKS)
    def terminate(self, mask: int) -> None:
        chosen = self.some(mask)
        assert self.consumer.terminate([self.messages[seq].ack_id for seq in chosen]) == len(chosen)
        self.finish(chosen, "dead")

    @rule(mask=MASKS)
    def extend(self, mask: int) -> None:
        chosen = self.some(mask)
        assert self.consumer.extend([self.messages[seq].ack_id for seq in chosen], ack_wait=7200) == len(chosen)

    def finish(self, chosen: list[int], state: str) -> None:
        for seq in chosen:
            known = self.messages[seq]
            self.old_ack_ids.append(known.ack_id)
            if state in ("waiting", "due"):
                known.fail(later=state == "waiting")
            else:
                known.state = state

    @rule(mask=MASKS, buries=st.booleans())
    def a_late_ack_counts_until_somebody_else_has_the_message(self, mask: int, buries: bool) -> None:
        late = [seq for seq, known in sorted(self.messages.items()) if known.is_late]
        chosen = [seq for place, seq in enumerate(late) if mask >> place % 16 & 1]
        ids = [self.messages[seq].ack_id for seq in chosen]
        assert self.consumer.nack(ids) == 0
        assert (self.consumer.terminate(ids) if buries else self.consumer.ack(ids)) == len(chosen)
        for seq in chosen:
            self.messages[seq].is_late = False
        self.finish(chosen, "dead" if buries else "acked")

    @rule()
    def an_ack_of_a_former_delivery_counts_nothing(self) -> None:
        assert self.consumer.ack(self.old_ack_ids) == 0
        assert self.consumer.nack(self.old_ack_ids) == 0

    @rule()
    def expire(self) -> None:
        """Every lease ends now."""
        self.connection.execute(
            "update postbus_data.lease set deadline = clock_timestamp() where consumer_id = %s", (self.consumer_id,)
        )
        self.bus.sweep(self.stream)
        for seq in self.in_state("delivered"):
            self.messages[seq].fail(later=False)
            self.messages[seq].is_late = True

    @rule()
    def come_due(self) -> None:
        """What waits is due now."""
        self.connection.execute(
            "update postbus_data.waiting set due_at = clock_timestamp() where consumer_id = %s", (self.consumer_id,)
        )
        for seq in self.in_state("waiting"):
            self.messages[seq].state = "due"

    @rule(mask=MASKS)
    def seek(self, mask: int) -> None:
        seq = 1 + mask % (max(self.messages, default=0) + 1)
        self.consumer.seek(from_seq=seq)
        for other, known in self.messages.items():
            if known.state == "delivered" or known.is_late:
                self.old_ack_ids.append(known.ack_id)
            known.is_late = False
            if known.state == "dead":
                self.buried.add(other)
            known.attempts = 0
            known.state = "available" if other >= seq else "acked"

    @rule()
    def pause_or_resume(self) -> None:
        (self.consumer.resume if self.paused else self.consumer.pause)()
        self.paused = not self.paused

    @invariant()
    def published_is_acked_and_dead_and_the_rest(self) -> None:
        if not hasattr(self, "consumer"):
            return
        stats = self.consumer.stats()
        assert stats.in_flight == len(self.in_state("delivered"))
        assert stats.waiting == len(self.in_state("waiting", "due"))
        assert [letter.seq for letter in self.consumer.dead_letters()] == sorted({*self.in_state("dead"), *self.buried})
        assert stats.lag_estimate == len(self.in_state("available"))
        assert (stats.backlog, stats.backlog_is_exact) == (
            len(self.in_state("available", "delivered", "waiting", "due")),
            True,
        )


@pytest.mark.parametrize("order", ["none", "partition"])
def test_delivery_follows_the_model(server: servers.Server, order: str) -> None:
    with (
        servers.database(server.url) as url,
        postbus.connect(url) as bus,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        machine = type("Machine", (Delivery,), {"bus": bus, "connection": connection, "order": order})
        case: Any = machine.TestCase  # type: ignore[attr-defined]
        case.settings = settings(
            max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        )
        case("runTest").runTest()
