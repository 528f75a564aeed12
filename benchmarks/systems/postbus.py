"""Postbus through its public library, as a user has it: pool, checks and encoding included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

import postbus
from benchmarks.messages import SQL_DATA, SQL_KEY, Message
from postbus.db import migrations

# One call of publish_many for every 10,000 messages, which is the most that it takes.
_FILL: Final = f"""
select count(postbus.publish_many(%s, batch.keys, batch.data))
from (
    select array_agg({SQL_KEY}) as keys, array_agg({SQL_DATA}) as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""
_CONSUMER: Final = "bench"
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
            yield len(page)
            if page.resume is None:
                return
            resume = page.resume


class PostbusConsumer:
    def __init__(self, bus: postbus.Bus, place: str) -> None:
        self._consumer = bus.consumer(place, _CONSUMER)
        self._last: postbus.Batch | None = None

    def receive_and_ack(self, max_messages: int) -> int:
        """Receive, and ack the batch before in the same call, durably. The one that comes back empty acks the very last."""
        self._last = self._consumer.receive(max_messages, ack=self._last)
        return len(self._last)


class Postbus:
    name: Final = "postbus"

    def install(self, url: str) -> None:
        migrations.migrate(url)

    def create_place(self, url: str, place: str) -> None:
        self.create_places(url, [place])

    def create_places(self, url: str, places: Sequence[str]) -> None:
        with postbus.connect(url) as bus:
            for place in places:
                bus.create_stream(place)
                bus.create_consumer(place, _CONSUMER)

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
            connection.execute(_FILL.encode(), (place, message_count))

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[PostbusPublisher]:
        with postbus.connect(url) as bus:
            yield PostbusPublisher(bus)

    @contextmanager
    def open_reader(self, url: str) -> Iterator[PostbusReader]:
        with postbus.connect(url) as bus:
            yield PostbusReader(bus)

    @contextmanager
    def open_consumer(self, url: str, place: str) -> Iterator[PostbusConsumer]:
        with postbus.connect(url) as bus:
            yield PostbusConsumer(bus, place)
