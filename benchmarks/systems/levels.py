"""Postbus with priorities in use, and things that wait: for their time, for theirs at a higher level, or at a lower one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal

import psycopg

import postbus
from benchmarks.messages import SQL_DATA, SQL_KEY, Message
from benchmarks.systems.postbus import Postbus, PostbusPublisher

Waiting = Literal["nothing", "scheduled", "urgent, not due", "lower"]
WAITING: Final[tuple[Waiting, ...]] = ("nothing", "scheduled", "urgent, not due", "lower")
_URGENT: Final = 9
_LOW: Final = 1
_STEP: Final = 100_000
_SCHEDULE: Final = f"""
select count(postbus.publish_many(
    %s, batch.keys, batch.data, deliver_at => clock_timestamp() + interval '1 day',
    priorities => array_fill(%s, array[cardinality(batch.keys)])
))
from (
    select array_agg({SQL_KEY}) as keys, array_agg({SQL_DATA}) as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""
_PUBLISH: Final = f"""
select count(postbus.publish_many(
    %s, batch.keys, batch.data, priorities => array_fill(%s, array[cardinality(batch.keys)])
))
from (
    select array_agg({SQL_KEY}) as keys, array_agg({SQL_DATA}) as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""


class PostbusWithLevels(Postbus):
    """Each place has seen an urgent and a low message, which are done; then so many others wait.

    Args:
        waiting: What waits beside the messages that are received.
        count: How many of them.
    """

    def __init__(self, waiting: Waiting = "nothing", count: int = 0) -> None:
        super().__init__()
        self.name = f"levels, {count:,} {waiting}" if count else "levels in use"
        self._waiting = waiting
        self._count = count

    def create_places(self, url: str, places: Sequence[str]) -> None:
        super().create_places(url, places)
        with postbus.connect(url) as bus, psycopg.connect(url, autocommit=True) as connection:
            for place in places:
                bus.publish_many(
                    place, [postbus.Message(data={"id": -1}, priority=level) for level in (_LOW, 4, _URGENT)]
                )
                consumer = bus.consumer(place, self._consumers[0])
                while batch := consumer.receive(10):
                    consumer.ack(batch)
                bus.maintain(place)
                statement, level = {
                    "scheduled": (_SCHEDULE, 4),
                    "urgent, not due": (_SCHEDULE, _URGENT),
                    "lower": (_PUBLISH, _LOW),
                    "nothing": (_PUBLISH, _LOW),
                }[self._waiting]
                for done in range(0, self._count, _STEP):
                    connection.execute(statement.encode(), (place, level, min(_STEP, self._count - done)))


class PostbusUrgent(PostbusWithLevels):
    """Publishes with a high priority."""

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[PostbusPublisher]:
        with postbus.connect(url) as bus:
            yield _UrgentPublisher(bus)


class _UrgentPublisher(PostbusPublisher):
    def publish(self, place: str, message: Message) -> None:
        self._bus.publish(place, key=message.key, data=message.data, priority=_URGENT)

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        self._bus.publish_many(
            place, [postbus.Message(key=each.key, data=each.data, priority=_URGENT) for each in messages]
        )
