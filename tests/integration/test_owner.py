"""A role that may create schemas in its database, and nothing else, installs Postbus, upgrades it and uses all of it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.db import migrations
from tests.faults.everything import STREAMS, Everything

RELEASE = sorted((Path(__file__).parents[1] / "releases").glob("*.sql"))[-1]


@pytest.mark.parametrize("begin", ["installed", "upgraded"])
def test_an_owner_without_other_rights_uses_every_policy(plain_url: str, begin: str) -> None:
    if begin == "upgraded":
        with psycopg.connect(plain_url, autocommit=True) as connection:
            connection.execute(RELEASE.read_text().encode())
            connection.execute(
                "select postbus.create_stream('old', dedup_window => '1 hour', one_message_per_key => true)"
            )
            connection.execute("select postbus.publish('old', 'k', '1', dedup_id => 'x')")
    migrations.migrate(plain_url)

    everything = Everything(plain_url)
    everything.create()
    for _ in range(4):
        everything.round()
    everything.check()

    bus = everything.bus
    for stream in STREAMS:
        bus.alter_stream(stream, max_messages=1, segment_age=1)
        bus.purge(stream, everything=True)
        for _ in range(4):
            bus.maintain(stream)
        bus.consumer(stream, stream).drop()
        bus.drop_stream(stream)
    assert [stream.name for stream in bus.list_streams()] == (["old"] if begin == "upgraded" else [])
    if begin == "upgraded":
        assert bus.publish("old", key="k", data=2, dedup_id="x").is_duplicate
    everything.close()


def test_an_owner_without_other_rights_records_the_progress_of_spark(plain_url: str) -> None:
    migrations.migrate(plain_url)
    with postbus.connect(plain_url) as bus, psycopg.connect(plain_url) as connection:
        bus.create_stream("orders")
        bus.publish("orders", data=1)

        assert connection.execute(
            "select horizon, length(timeline) from postbus_data.spark_state('orders')"
        ).fetchone() == (1, 8)
