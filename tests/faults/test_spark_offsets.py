"""An offset that left the database outlives a crash of it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

import postbus
from postbus.spark.source import PostbusDataSource
from tests.faults.endings import wait_until_up

SCHEMA = StructType([StructField("seq", LongType(), nullable=False)])


def test_a_seq_below_an_offset_is_not_given_out_again(
    own_url: str, orders: str, end_server: Callable[[str], None]
) -> None:
    source = PostbusDataSource({"url": own_url, "stream": orders, "startingPosition": "latest"}).streamReader(SCHEMA)
    with psycopg.connect(own_url, autocommit=True) as connection:
        # The background writer would hide what is missing.
        connection.execute("alter system set wal_writer_delay = '10s'")
        connection.execute("select pg_reload_conf()")
    with psycopg.connect(own_url) as connection:
        connection.execute("set synchronous_commit = off")
        for _ in range(100):
            connection.execute("select postbus.publish(%s, 'a', '1')", (orders,))
        connection.rollback()

    start = source.initialOffset()
    end_server("killed")
    wait_until_up(own_url)
    with postbus.connect(own_url) as bus:
        seq = bus.publish(orders, key="a", data=1)
    end = source.latestOffset(start, ReadAllAvailable())

    assert seq > start["seq"] == 100
    assert [b.column("seq").to_pylist() for part in source.partitions(start, end) for b in source.read(part)] == [[seq]]
