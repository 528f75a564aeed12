"""One round each of publishing a table: by the pipeline, and by the loop that a person would write."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

import postbus
from benchmarks.comparison import Measurement
from benchmarks.jobs.spark import timed
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from postbus.pipelines import BackfillOptions, backfill_table

_BATCH: Final = 1_000
_system: Final = Postbus()
_TABLE: Final = (
    "create table orders (id bigint primary key, customer integer not null, status text not null, note text)"
)
_ROWS: Final = """
insert into orders
select i, mod(i, 1000), 'paid', md5(i::text) || repeat('a', 120) from generate_series(1, %s) as i
"""


def fill_table(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
        connection.execute(_ROWS, (count,))
        connection.execute("vacuum analyze orders")


def by_pipeline(spark: Any, url: str, count: int) -> Measurement:
    with fresh_place(_system, url) as place:
        options = BackfillOptions(stream=place, table="orders")
        return _checked(timed(lambda: backfill_table(url, options, spark=spark)), count, _system.count(url, place))


def by_loop(url: str, count: int) -> Measurement:
    """A server-side cursor, and publish_many for every 1,000 rows, in one process."""
    with fresh_place(_system, url) as place:
        return _checked(timed(lambda: _loop(url, place)), count, _system.count(url, place))


def _loop(url: str, place: str) -> None:
    with (
        postbus.connect(url) as bus,
        psycopg.connect(url) as connection,
        connection.cursor("orders", row_factory=dict_row) as cursor,
    ):
        cursor.execute("select * from orders order by id")
        while rows := cursor.fetchmany(_BATCH):
            bus.publish_many(place, [postbus.Message(key=f"orders.{row['id']}", data=row) for row in rows])


def _checked(seconds: float, count: int, found: int) -> Measurement:
    if found != count:
        raise RuntimeError(f"the table has {count} rows, and {found} messages are there")
    return Measurement(count, seconds)
