"""Postbus through its public library, as a user has it: pool, checks and encoding included."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

import postbus
from benchmarks.messages import SQL_DATA, SQL_KEY, Message, look_into
from benchmarks.systems.base import Consumer
from postbus.db import migrations
from postbus.model.consumer import Ordering

# One call of publish_many for every 10,000 messages, which is the most that it takes.
FILL: Final = f"""
select count(postbus.publish_many(%s, batch.keys, batch.data))
from (
    select array_agg({SQL_KEY}) as keys, array_agg({SQL_DATA}) as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""
_POLL_SECONDS: Final = 5.0
_IDLE_POLL_SECONDS: Final = 20.0
_COUNT_PAGE: Final = """
select count(m.seq), max(m.resume) from postbus.read(%s, max_messages => 10000, resume => %s) as m
"""


class PostbusPublisher:
    def __init__(self, bus: postbus.Bus) -> None:
        self._bus = bus

    def publish(self, place: str, message: Message) -> None:
        self._bus.publish(place, key=message.key, data=message.data)

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        self._bus.publish_many(place, [postbus.Message(key=message.key, data=message.data) for message in messages])


class PostbusReader:
    def __init__(self, bus: postbus.Bus) -> None:
        self._bus = bus

    def pages(self, place: str, page_size: int) -> Iterator[int]:
        resume = None
        while True:
            page = self._bus.read(place, max_messages=page_size, resume=resume)
            yield look_into(message.data for message in page)
            if page.resume is None:
                return
            resume = page.resume


class PostbusLoopConsumer:
    """Loops over batches, as a worker does; each is acked by asking for the next."""

    def __init__(self, consumer: postbus.Consumer) -> None:
        self._consumer = consumer
        self._batches: Iterator[postbus.Batch] = iter(())
        self._last: postbus.Batch | None = None

    def receive_and_ack(self, max_messages: int) -> int:
        """The next batch of a loop, which is all of one size. A loop that has ended has acked durably; then a new one begins."""
        if self._last is None:
            self._batches = self._consumer.batches(max_messages, wait=0)
        self._last = next(self._batches, None)
        return look_into(delivery.data for delivery in self._last or ())

    def finish(self) -> None:
        """Ack the last batch of a worker who stops before the end, lest it come again."""
        if self._last:
            self._consumer.ack(self._last)


class PostbusConsumer:
    def __init__(self, consumer: postbus.Consumer) -> None:
        self._consumer = consumer
        self._last: postbus.Batch | None = None

    def receive_and_ack(self, max_messages: int) -> int:
        """Receive, and ack the batch before in the same call, durably. The one that comes back empty acks the very last."""
        self._last = self._consumer.receive(max_messages, ack=self._last)
        return look_into(delivery.data for delivery in self._last)

    def finish(self) -> None:
        """Ack the last batch of a worker who stops before the end, lest it come again."""
        if self._last:
            self._consumer.ack(self._last)


class PostbusSingleAckConsumer:
    def __init__(self, consumer: postbus.Consumer) -> None:
        self._consumer = consumer

    def receive_and_ack(self, max_messages: int) -> int:
        batch = self._consumer.receive(max_messages)
        message_count = look_into(delivery.data for delivery in batch)
        for delivery in batch:
            self._consumer.ack(delivery)
        return message_count


class PostbusPoller:
    def __init__(self, consumer: postbus.Consumer) -> None:
        self._consumer = consumer
        self._last: postbus.Batch | None = None

    def receive(self, max_messages: int) -> Sequence[Mapping[str, Any]]:
        self._last = self._consumer.receive(max_messages, ack=self._last, wait=_POLL_SECONDS)
        return [delivery.data for delivery in self._last]


class Postbus:
    name = "postbus"

    def __init__(self, *, consumer_count: int = 1, order: Ordering = "none") -> None:
        self._consumers = tuple(f"consumer_{number}" for number in range(consumer_count))
        self._order = order

    def install(self, url: str) -> None:
        migrations.migrate(url)

    def create_place(self, url: str, place: str) -> None:
        self.create_places(url, [place])

    def create_places(self, url: str, places: Sequence[str]) -> None:
        with postbus.connect(url) as bus:
            for place in places:
                bus.create_stream(place)
                for consumer in self._consumers:
                    bus.create_consumer(place, consumer, order=self._order)

    def drop_place(self, url: str, place: str) -> None:
        with postbus.connect(url) as bus:
            bus.drop_stream(place)

    def count(self, url: str, place: str) -> int:
        """Read every page, inside the server, as any reader would."""
        total, resume = 0, None
        with psycopg.connect(url, autocommit=True) as connection:
            while True:
                row = connection.execute(_COUNT_PAGE, (place, resume)).fetchone()
                if row is None or row[1] is None:
                    return total
                total, resume = total + row[0], row[1]

    def fill(self, url: str, place: str, message_count: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL.encode(), (place, message_count))

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[PostbusPublisher]:
        with postbus.connect(url) as bus:
            yield PostbusPublisher(bus)

    @contextmanager
    def open_reader(self, url: str) -> Iterator[PostbusReader]:
        with postbus.connect(url) as bus:
            yield PostbusReader(bus)

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with postbus.connect(url) as bus:
            consumer = PostbusLoopConsumer(bus.consumer(place, self._consumers[0]))
            yield consumer
            consumer.finish()

    @contextmanager
    def open_poller(self, url: str, place: str) -> Iterator[PostbusPoller]:
        with postbus.connect(url) as bus:
            yield PostbusPoller(bus.consumer(place, self._consumers[0]))

    async def poll_for_ever(self, url: str, places: Sequence[str]) -> None:
        """Long-poll all consumers of these places at once, on one bus, until cancelled."""
        async with await postbus.connect_async(url) as bus, asyncio.TaskGroup() as group:
            for place in places:
                for consumer in self._consumers:
                    group.create_task(_poll_for_ever(bus.consumer(place, consumer)))


class PostbusByKey(Postbus):
    """Keeps messages of a key in order."""

    name = "postbus-by-key"

    def __init__(self) -> None:
        super().__init__(order="key")


class PostbusCalls(Postbus):
    """Receives by a call for each batch, which returns when the ack of the batch before is durable."""

    name = "postbus-calls"

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with postbus.connect(url) as bus:
            consumer = PostbusConsumer(bus.consumer(place, self._consumers[0]))
            yield consumer
            consumer.finish()


class PostbusSingleAcks(Postbus):
    """Acks each message of a batch by a call of its own."""

    name = "postbus-single-acks"

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with postbus.connect(url) as bus:
            yield PostbusSingleAckConsumer(bus.consumer(place, self._consumers[0]))


async def _poll_for_ever(consumer: postbus.AsyncConsumer) -> None:
    while True:
        await consumer.receive(wait=_IDLE_POLL_SECONDS)
