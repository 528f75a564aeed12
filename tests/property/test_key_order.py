"""Random histories in order "key", compared with a model: what may be delivered, what must be, and what is left at the end."""

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

MAX_DELIVER = 3
MASKS = st.integers(0, 65535)


@dataclass
class Known:
    """What the model knows of a message: state is available (parked, too), delivered, waiting, due, acked or dead."""

    key: str | None
    state: str = "available"
    attempts: int = 0
    ack_id: str = ""
    # Its lease has expired, and nobody has received it since.
    is_late: bool = False

    @property
    def lease(self) -> str:
        return self.ack_id[:16]

    @property
    def is_done(self) -> bool:
        return self.state in ("acked", "dead")


class KeyOrder(RuleBasedStateMachine):
    """Publish now or later, receive, ack, nack, terminate, expire, change the partitions, in any order; receives of any size."""

    bus: postbus.Bus
    connection: psycopg.Connection[Any]
    filtered: bool
    count = 0

    @initialize(max_per_key=st.sampled_from([None, 1, 2]), partitions=st.integers(1, 2))
    def begin(self, max_per_key: int | None, partitions: int) -> None:
        KeyOrder.count += 1
        self.stream = f"s{KeyOrder.count}"
        self.max_per_key = max_per_key
        self.bus.create_stream(self.stream, partitions=partitions)
        self.consumer = self.bus.create_consumer(
            self.stream,
            "c",
            max_deliver=MAX_DELIVER,
            max_per_key=max_per_key,
            filter="k.>" if self.filtered else None,
        )
        self.consumer_id = self.consumer.info().id
        self.messages: dict[int, Known] = {}
        self.revoked: list[str] = []

    def of_key(self, key: str | None) -> list[tuple[int, Known]]:
        return [(seq, known) for seq, known in sorted(self.messages.items()) if known.key == key]

    def deliverable(self) -> set[int]:
        """What a receive of any size could begin with."""
        found = {seq for seq, known in self.of_key(None) if known.state in ("available", "due")}
        for key in {known.key for known in self.messages.values()} - {None}:
            left = [(seq, known) for seq, known in self.of_key(key) if not known.is_done]
            if left and left[0][1].state in ("available", "due") and all(k.state != "delivered" for _, k in left):
                found.add(left[0][0])
        return found

    @rule(keys=st.lists(st.sampled_from(["k.a", "k.b", "k.c", None, "other"]), min_size=1, max_size=6))
    def publish(self, keys: list[str | None]) -> None:
        seqs = self.bus.publish_many(self.stream, [Message(key=key, data=0) for key in keys])
        for seq, key in zip(seqs, keys, strict=True):
            if not self.filtered or key in ("k.a", "k.b", "k.c"):
                self.messages[seq] = Known(key)

    @rule(key=st.sampled_from(["k.a", "k.b", None]))
    def schedule(self, key: str | None) -> None:
        self.bus.publish(self.stream, key=key, data=0, delay=3600)

    @rule()
    def time_comes(self) -> None:
        """What was scheduled is due now: it gets its seq, and stands behind what was published before."""
        last = max((message.seq or 0 for message in self.bus.scan(self.stream)), default=0)
        self.connection.execute(
            "update postbus_data.scheduled set deliver_at = clock_timestamp() where stream_id = "
            "(select id from postbus_data.stream where name = %s)",
            (self.stream,),
        )
        self.bus.sweep(self.stream)
        for message in self.bus.scan(self.stream, from_seq=last + 1):
            if message.seq is not None and (not self.filtered or message.key in ("k.a", "k.b", "k.c")):
                self.messages[message.seq] = Known(message.key)

    @invariant()
    def the_backlog_is_what_is_neither_acked_nor_dead(self) -> None:
        if hasattr(self, "consumer"):
            stats = self.consumer.stats()
            assert (stats.backlog, stats.backlog_is_exact) == (
                sum(not known.is_done for known in self.messages.values()),
                True,
            )
            assert stats.dead == sum(known.state == "dead" for known in self.messages.values())

    @rule(partitions=st.integers(1, 3))
    def change_partitions(self, partitions: int) -> None:
        self.bus.alter_stream(self.stream, partitions=partitions)

    @rule(max_messages=st.integers(1, 6))
    def receive(self, max_messages: int) -> None:
        deliverable = self.deliverable()
        batch = self.consumer.receive(max_messages)
        assert len(batch) <= max_messages
        assert bool(batch) == bool(deliverable)
        for delivery in batch:
            known = self.messages[delivery.seq]
            assert known.key == delivery.key
            assert known.state in ("available", "due")
            known.attempts += 1
            if known.is_late:
                self.revoked.append(known.ack_id)
            known.state, known.ack_id, known.is_late = "delivered", delivery.ack_id, False
            assert delivery.attempt == known.attempts
        for key in {delivery.key for delivery in batch} - {None}:
            mine = [delivery.seq for delivery in batch if delivery.key == key]
            assert mine == sorted(mine)
            assert self.max_per_key is None or len(mine) <= self.max_per_key
            # Whatever is before the last of them is done, or in the same lease.
            leases = {known.lease for seq, known in self.of_key(key) if seq <= mine[-1] and not known.is_done}
            assert leases == {self.messages[mine[-1]].lease}
            assert all(known.state != "delivered" for seq, known in self.of_key(key) if seq > mine[-1])

    def some(self, mask: int) -> list[int]:
        """Some of what is in flight. Which it is Postgres decides by chance, so choices must not depend on how many there are."""
        delivered = [seq for seq, known in sorted(self.messages.items()) if known.state == "delivered"]
        return [seq for place, seq in enumerate(delivered) if mask >> place % 16 & 1]

    @rule(mask=MASKS)
    def ack(self, mask: int) -> None:
        chosen = self.some(mask)
        assert self.consumer.ack([self.messages[seq].ack_id for seq in chosen]) == len(chosen)
        for seq in chosen:
            self.messages[seq].state = "acked"

    @rule(mask=MASKS)
    def terminate(self, mask: int) -> None:
        chosen = self.some(mask)
        assert self.consumer.terminate([self.messages[seq].ack_id for seq in chosen]) == len(chosen)
        for seq in chosen:
            self.messages[seq].state = "dead"

    @rule(mask=MASKS, later=st.booleans())
    def nack(self, mask: int, later: bool) -> None:
        chosen = self.some(mask)
        ids = [self.messages[seq].ack_id for seq in chosen]
        assert self.consumer.nack(ids, delay=3600 if later else 0) == len(chosen)
        self.fail(chosen, "waiting" if later else "due")
        for seq in chosen:
            failed = self.messages[seq]
            if failed.state == "dead" or failed.key is None:
                continue
            for later_seq, known in self.of_key(failed.key):
                if later_seq > seq and known.state == "delivered" and known.lease == failed.lease:
                    known.state = "due"
                    known.attempts -= 1
                    self.revoked.append(known.ack_id)

    @rule(mask=MASKS)
    def a_late_ack_counts_until_somebody_else_has_the_message(self, mask: int) -> None:
        late = [seq for seq, known in sorted(self.messages.items()) if known.is_late]
        chosen = [seq for place, seq in enumerate(late) if mask >> place % 16 & 1]
        assert self.consumer.ack([self.messages[seq].ack_id for seq in chosen]) == len(chosen)
        for seq in chosen:
            self.messages[seq].is_late = False
            self.messages[seq].state = "acked"
            self.revoked.append(self.messages[seq].ack_id)

    @rule()
    def an_ack_of_a_former_delivery_counts_nothing(self) -> None:
        assert self.consumer.ack(self.revoked) == 0

    @rule()
    def expire(self) -> None:
        """Every lease ends now."""
        self.connection.execute(
            "update postbus_data.lease set deadline = clock_timestamp() where consumer_id = %s", (self.consumer_id,)
        )
        self.bus.sweep(self.stream)
        for known in self.messages.values():
            if known.state == "delivered":
                known.state = "dead" if known.attempts >= MAX_DELIVER else "due"
                known.is_late = True

    @rule()
    def come_due(self) -> None:
        """What waits is due now."""
        self.connection.execute(
            "update postbus_data.waiting set due_at = clock_timestamp() where consumer_id = %s", (self.consumer_id,)
        )
        for known in self.messages.values():
            known.state = "due" if known.state == "waiting" else known.state

    def fail(self, seqs: list[int], state: str) -> None:
        for seq in seqs:
            known = self.messages[seq]
            self.revoked.append(known.ack_id)
            known.state = "dead" if known.attempts >= MAX_DELIVER else state

    def teardown(self) -> None:
        """Nothing is lost: what is left can be received and acked, each message once, and then there is nothing."""
        if not hasattr(self, "consumer"):
            return
        self.expire()
        self.come_due()
        while batch := self.consumer.receive(3):
            for delivery in batch:
                assert self.messages[delivery.seq].state in ("available", "due")
                self.messages[delivery.seq].state = "acked"
            assert self.consumer.ack(batch) == len(batch)
        assert all(known.is_done for known in self.messages.values())
        stats = self.consumer.stats()
        assert (stats.in_flight, stats.waiting) == (0, 0)


@pytest.mark.parametrize("filtered", [False, True])
def test_key_order_follows_the_model(server: servers.Server, filtered: bool) -> None:
    with (
        servers.database(server.url) as url,
        postbus.connect(url) as bus,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        machine = type("Machine", (KeyOrder,), {"bus": bus, "connection": connection, "filtered": filtered})
        case: Any = machine.TestCase  # type: ignore[attr-defined]
        case.settings = settings(
            max_examples=20, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        )
        case("runTest").runTest()
