"""The checker of histories finds urgent messages that waited behind lower ones, and nothing else."""

from __future__ import annotations

from postbus.model.partitioning import lane_of
from tests.history import Scope, by_key_and_level
from tests.history.events import Delivered, Event, Published, Received
from tests.unit.test_history import violations


class TestUrgentFirst:
    """Partition 700000000 is that of level 7."""

    def sent(self, seq: int, *, at: float, priority: int = 4, key: str | None = None) -> Published:
        return Published(stream="orders", seq=seq, key=key or f"k{seq}", start=at, end=at + 0.01, priority=priority)

    def got(
        self, seq: int, *, at: float, priority: int = 4, key: str | None = None, attempt: int = 1, took: float = 0.01
    ) -> Received:
        delivered = Delivered(
            ack_id=f"w@{at}-{seq}", seq=seq, key=key or f"k{seq}", partition=lane_of(priority), attempt=attempt
        )
        return Received(
            call=f"w@{at}",
            worker="w",
            stream="orders",
            consumer="billing",
            ack_wait=10,
            start=at,
            end=at + took,
            deliveries=(delivered,),
        )

    def found(self, *events: Event, scope: Scope | None = None) -> list[int | None]:
        return [seq for promise, seq in violations(*events, scope=scope) if promise == "urgent first"]

    def test_a_lower_message_claimed_while_an_urgent_one_was_visible_is_found(self) -> None:
        published = (self.sent(1, at=0), self.sent(2, at=0.1, priority=7))
        assert self.found(*published, self.got(1, at=1), self.got(2, at=2, priority=7)) == [2]
        assert self.found(*published, self.got(2, at=1, priority=7), self.got(1, at=2)) == []

    def test_an_urgent_message_that_came_during_the_receive_is_none(self) -> None:
        published = (self.sent(1, at=0), self.sent(2, at=0.995, priority=7))
        assert self.found(*published, self.got(1, at=1), self.got(2, at=2, priority=7)) == []

    def test_an_open_publisher_holds_what_is_published_meanwhile(self) -> None:
        other = Published(stream="orders", seq=3, key="k3", start=0.05, end=1.5)
        published = (self.sent(1, at=0), other, self.sent(2, at=0.1, priority=7))
        assert self.found(*published, self.got(1, at=1), self.got(2, at=2, priority=7)) == []

    def test_in_order_key_a_message_whose_key_is_in_flight_waits(self) -> None:
        events = (
            self.sent(1, at=0, key="a"),
            self.sent(2, at=0.1, priority=7, key="a"),
            self.sent(3, at=0.2),
            self.got(1, at=0.05, key="a"),
            self.got(3, at=1),
            self.got(2, at=2, priority=7, key="a"),
        )
        assert self.found(*events, scope=by_key_and_level) == []
        assert self.found(*events) == [2]

    def test_what_a_killed_worker_may_have_had_and_long_receives_are_left_out(self) -> None:
        published = (self.sent(1, at=0), self.sent(2, at=0.1, priority=7))
        assert self.found(*published, self.got(1, at=1), self.got(2, at=2, priority=7, attempt=2)) == []
        assert self.found(*published, self.got(1, at=1, took=0.2), self.got(2, at=2, priority=7)) == []
