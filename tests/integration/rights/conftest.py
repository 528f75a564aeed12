from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

import postbus
from tests import servers
from tests.integration.rights.place import RIGHTS, Place, execute


@pytest.fixture(scope="module")
def place(server: Any) -> Iterator[Place]:
    with servers.database(server.url) as url, psycopg.connect(url, autocommit=True) as owner:
        names = {right: f"{right}_{secrets.token_hex(4)}" for right in (*RIGHTS, "none")}
        with postbus.connect(url) as bus:
            for stream in ("mine", "other"):
                bus.create_stream(stream, partitions=2, segment_bytes=65536, dedup_window=60, one_message_per_key=True)
                bus.create_consumer(stream, "c", keep_history=60, max_deliver=1)
                bus.create_group(stream, "g")
                bus.publish_many(
                    stream,
                    [postbus.Message(key=f"k.{n}", data=secrets.token_hex(1500), dedup_id=f"{n}") for n in range(60)],
                )
                bus.publish(stream, key="later", data=1, delay=3600)
                for _ in range(3):
                    bus.maintain(stream)
                consumer = bus.consumer(stream, "c")
                consumer.terminate(consumer.receive(5))
                consumer.receive(5)
            bus.create_stream("third")
        for right, role in names.items():
            execute(owner, sql.SQL("create role {} login").format(sql.Identifier(role)))
            execute(
                owner,
                "select postbus.grant_stream(%s, %s, %s)",
                *(("third", role, "publish") if right == "none" else ("mine", role, right)),
            )
        with postbus.connect(url) as bus:
            for stream in ("mine", "other"):
                # New tables and functions, after the grants.
                bus.publish_many(
                    stream, [postbus.Message(key=f"l.{n}", data=secrets.token_hex(1500)) for n in range(60)]
                )
                for _ in range(3):
                    bus.maintain(stream)
                assert bus.stream_info(stream).segment_count > 2
        ((stream_id,),) = execute(owner, "select id from postbus.describe_stream('mine')")
        yield Place(url, stream_id, names)
        for role in names.values():
            execute(owner, sql.SQL("drop owned by {0} cascade; drop role {0}").format(sql.Identifier(role)))


@pytest.fixture
def owner(place: Place) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(place.url, autocommit=True) as connection:
        yield connection
