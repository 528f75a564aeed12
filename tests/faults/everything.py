"""Streams of every policy with a reader each, and the books that say what was published and what became of it."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

import postbus
from postbus import Message
from tests.waiting import until

LEASE: Final = 3.0
WINDOW: Final = 1.5
STREAMS: Final = ("jobs", "ids", "versions", "later", "small")


class Everything:
    """A bus with a queue, ids, one message per key, schedules, limits, priorities, repartitions, consumers, a group.

    Each round publishes to all, receives some, settles part of that, leaves part of it leased, and maintains.

    Args:
        url: A database with Postbus.
        clock_is_true: The server's clock is; else leases and windows may end early.
    """

    def __init__(self, url: str, *, clock_is_true: bool = True) -> None:
        self._clock_is_true = clock_is_true
        self.bus = postbus.connect(url, pool_size=2)
        self.published: Counter[tuple[str, Any]] = Counter()
        self.versions: dict[str, int] = {}
        self.readers: list[Reader] = []
        self._ids: dict[str, float] = {}
        self._group_seen: Counter[Any] = Counter()
        self._rounds = 0

    def create(self) -> None:
        bus = self.bus
        bus.create_queue("jobs", partitions=4, ack_wait=LEASE, max_deliver=3)
        bus.create_stream("ids", partitions=2, dedup_window=WINDOW)
        bus.create_stream("versions", partitions=2, one_message_per_key=True)
        bus.create_stream("later", partitions=2)
        bus.create_stream("small", partitions=3, max_messages=200, retain_up_to=1, segment_bytes=65536)
        for stream, order in (("ids", "key"), ("versions", "partition"), ("later", "partition"), ("small", "key")):
            bus.create_consumer(stream, stream, order=order, ack_wait=LEASE, max_deliver=3, keep_unread=True)  # type: ignore[arg-type]
        bus.create_group("ids", "group", keep_unread=True)
        self.readers = [Reader(bus.consumer(stream, stream), LEASE if self._clock_is_true else 0) for stream in STREAMS]

    def move_to(self, url: str) -> None:
        """Go on with the same books on another server."""
        self.bus.close()
        self.bus = postbus.connect(url, pool_size=2)
        for reader in self.readers:
            reader.consumer = self.bus.consumer(reader.consumer.stream, reader.consumer.name)

    def round(self) -> None:
        self._rounds += 1
        self._publish()
        for reader in self.readers:
            reader.work()
        self._claim()
        for stream in ("jobs", "small"):
            self.bus.alter_stream(stream, partitions=2 + self._rounds % 3)
        for _ in range(3):
            self.bus.maintain()
            for stream in STREAMS:
                self.bus.maintain(stream)
        self.bus.sweep()

    def _publish(self) -> None:
        names = [f"{self._rounds}-{n}" for n in range(20)]
        for stream in ("jobs", "small"):
            self.bus.publish_many(
                stream,
                [Message(key=f"k{n % 5}", data=name, priority=(4, 9, 4, 2)[n % 4]) for n, name in enumerate(names)],
            )
            self.published.update((stream, name) for name in names)
        for name in names:
            self._publish_with_id(name)
        # Again: what is within the window is not published twice, whatever happened since.
        for name in list(self._ids):
            self._publish_with_id(name)
        for name in names[:5]:
            self.bus.publish("later", key="k", data=name, delay=0.3)
            self.published["later", name] += 1
        for key in ("a", "b"):
            self.bus.publish("versions", key=key, data=self._rounds)
            self.versions[key] = self._rounds

    def _publish_with_id(self, name: str) -> None:
        before = self._ids.get(name)
        answer = self.bus.publish("ids", key="k", data=name, dedup_id=name)
        if self._clock_is_true and before is not None and time.monotonic() < before + WINDOW - 0.2:
            assert answer.is_duplicate, f"id {name} was forgotten within its window"
        if not answer.is_duplicate:
            self.published["ids", name] += 1
            self._ids[name] = time.monotonic()
        elif before is not None and time.monotonic() > before + WINDOW:
            del self._ids[name]

    def _claim(self) -> None:
        group = self.bus.group("ids", "group")
        while claims := group.claim(100, lease=60):
            self._group_seen.update(message.data for message in group.fetch(claims))
            assert group.commit(claims) > 0

    def finish(self) -> None:
        """Let all be published, received and settled."""
        until(lambda: self.bus.sweep() == 0 and not self.bus.list_scheduled("later"), "nothing waits for its time")
        self._claim()
        for reader in self.readers:
            until(reader.is_done, f"reader of {reader.consumer.stream} is done")

    def check(self) -> None:
        """Finish what is left, and fail unless published = acked + dead, once each."""
        self.finish()
        finished = Counter({(r.consumer.stream, data): n for r in self.readers for data, n in r.finished.items()})
        assert {thing: n for thing, n in finished.items() if thing[0] != "versions"} == dict(self.published)
        assert {m.key: m.data for m in self.bus.state("versions")} == self.versions
        assert dict(self._group_seen) == {data: n for (stream, data), n in self.published.items() if stream == "ids"}

    def close(self) -> None:
        self.bus.close()


class Reader:
    """A consumer's worker. It acks most and buries every tenth; what is left of a batch it gives back, or keeps leased."""

    def __init__(self, consumer: postbus.Consumer, lease: float) -> None:
        self.consumer = consumer
        self._lease = lease
        self.finished: Counter[Any] = Counter()
        self._done: set[int] = set()
        self._leased_until: dict[int, float] = {}
        self._batches = 0

    def work(self, *, finish: bool = False) -> int:
        batch = list(self.consumer.receive(12))
        now = time.monotonic()
        for delivery in batch:
            assert delivery.seq not in self._done, (
                f"{self.consumer.stream}: {delivery.seq} was finished, and came again"
            )
            leased_until = self._leased_until.pop(delivery.seq, 0)
            assert leased_until <= now, f"{self.consumer.stream}: {delivery.seq} was leased, and came again"
        self._batches += 1
        # In order, what is given back takes what follows it along: so all that is acked goes first, and the rest has one fate.
        last = [] if finish else batch[len(batch) * 2 // 3 :]
        for delivery in batch[: len(batch) - len(last)]:
            self._finish(delivery)
        if last and self._batches % 2:
            assert self.consumer.nack(last) > 0
        else:
            # Its deadline on the server is a little earlier than what we see here.
            self._leased_until.update((delivery.seq, now + self._lease - 0.5) for delivery in last)
        return len(batch)

    def _finish(self, delivery: postbus.Delivery) -> None:
        settle = self.consumer.terminate if delivery.seq % 10 == 0 else self.consumer.ack
        assert settle(delivery) == 1
        self._done.add(delivery.seq)
        self.finished[delivery.data] += 1

    def is_done(self) -> bool:
        while self.work(finish=True):
            pass
        stats = self.consumer.stats()
        if (stats.lag_estimate, stats.in_flight, stats.waiting) != (0, 0, 0):
            return False
        # Those that it did not bury itself have failed too often.
        for letter in self.consumer.dead_letters(max_messages=1000):
            if letter.seq not in self._done:
                self._done.add(letter.seq)
                self.finished[letter.data] += 1
        return True
