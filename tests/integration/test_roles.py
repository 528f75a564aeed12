"""Roles with least rights: who may publish, consume or read, on all streams or on one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

import postbus
from postbus import Message
from postbus.db import migrations

pytestmark = pytest.mark.newest_server


@pytest.fixture
def roles(empty_url: str) -> Iterator[Any]:
    """An install by a role that is no superuser, and a way to connect as others, which are removed afterwards."""
    made: list[str] = []
    with psycopg.connect(empty_url, autocommit=True) as root:

        def create(kind: str, options: str = "") -> str:
            name = f"{kind}_{secrets.token_hex(4)}"
            root.execute(sql.SQL("create role {} " + options).format(sql.Identifier(name)))
            made.append(name)
            return name

        def url_of(role: str) -> str:
            joint = "&" if "?" in empty_url else "?"
            return f"{empty_url}{joint}options={quote(f'-c role={role}')}"

        admin = create("admin", "createrole")
        database = root.execute("select current_database()").fetchone()
        assert database is not None
        root.execute(
            sql.SQL("grant create on database {} to {}").format(sql.Identifier(database[0]), sql.Identifier(admin))
        )
        migrations.migrate(url_of(admin))
        yield create, url_of, admin, root
        owned = [*made, "postbus_owner", "postbus_publisher", "postbus_consumer", "postbus_reader"]
        for name in owned:
            exists = root.execute("select to_regrole(%s) is not null", (name,)).fetchone()
            if exists and exists[0]:
                root.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        for name in owned:
            root.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def _all_refused(*calls: Callable[[], Any]) -> None:
    for call in calls:
        with pytest.raises(postbus.Error):
            call()


def test_a_role_may_do_what_it_was_granted_on_one_stream_and_nothing_else(roles: Any) -> None:
    create, url_of, admin, _ = roles
    publisher, consumer, reader = (create(kind) for kind in ("pub", "con", "read"))
    with postbus.connect(url_of(admin)) as bus, psycopg.connect(url_of(admin), autocommit=True) as connection:
        for stream in ("mine", "other"):
            bus.create_stream(stream, partitions=2, segment_bytes=65536)
            bus.create_consumer(stream, "c", max_deliver=2)
            bus.publish(stream, key="k", data="first")
        connection.execute("select postbus.grant_stream('mine', %s, 'publish')", (publisher,))
        connection.execute("select postbus.grant_stream('mine', %s, 'consume')", (consumer,))
        connection.execute("select postbus.grant_stream('mine', %s, 'read')", (reader,))

        with postbus.connect(url_of(publisher)) as as_publisher:
            as_publisher.publish("mine", key="k", data="second")
            as_publisher.publish_many("mine", [Message(key="k", data=["x" * 1500, n]) for n in range(60)])
            as_publisher.publish("mine", key="k", data="later", delay=0.05)
            bus.maintain("mine")
            bus.maintain("mine")
            as_publisher.publish("mine", key="k", data="in a new segment")
            assert bus.stream_info("mine").segment_count > 1
            _all_refused(
                lambda: as_publisher.publish("other", key="k", data=1),
                lambda: as_publisher.read("mine"),
                lambda: as_publisher.consumer("mine", "c").receive(),
                lambda: as_publisher.consumer("mine", "c").ack(["0" * 16]),
                lambda: as_publisher.drop_stream("mine"),
            )

        with postbus.connect(url_of(consumer)) as as_consumer:
            mine = as_consumer.consumer("mine", "c")
            batch = mine.receive(10)
            assert batch[0].data == "first"
            assert mine.nack([batch[0]], reason="no") == 1
            assert mine.terminate(mine.receive(1, wait=5)) == 1
            received = 0
            while batch := mine.receive(100, wait=0.5):
                received += len(batch)
                mine.ack(batch)
            assert received >= 60
            assert len(mine.dead_letters()) == 1
            assert mine.stats().in_flight == 0
            _all_refused(
                lambda: as_consumer.publish("mine", key="k", data=1),
                lambda: as_consumer.consumer("other", "c").receive(),
                lambda: as_consumer.consumer("other", "c").ack(["0" * 16]),
                lambda: as_consumer.consumer("other", "c").dead_letters(),
                lambda: as_consumer.create_consumer("mine", "d"),
            )

        with postbus.connect(url_of(reader)) as as_reader:
            assert as_reader.read("mine")[0].data == "first"
            assert [info.name for info in as_reader.list_streams()] == ["mine"]
            _all_refused(
                lambda: as_reader.read("other"),
                lambda: as_reader.publish("mine", key="k", data=1),
                lambda: as_reader.consumer("mine", "c").receive(),
            )

        connection.execute("select postbus.revoke_stream('mine', %s, 'publish')", (publisher,))
        with postbus.connect(url_of(publisher)) as as_publisher, pytest.raises(postbus.Error):
            as_publisher.publish("mine", key="k", data=1)


def test_a_right_that_is_missing_is_named_also_where_the_streams_own_functions_are_used(roles: Any) -> None:
    create, url_of, admin, _ = roles
    publisher, consumer = create("pub"), create("con")
    with postbus.connect(url_of(admin)) as bus, psycopg.connect(url_of(admin), autocommit=True) as connection:
        bus.create_stream("mine")
        bus.create_consumer("mine", "c")
        connection.execute("select postbus.grant_stream('mine', %s, 'publish')", (publisher,))
        connection.execute("select postbus.grant_stream('mine', %s, 'consume')", (consumer,))
    with postbus.connect(url_of(publisher)) as bus:
        bus.publish("mine", data=1)
        for refused in (
            lambda: bus.consumer("mine", "c").ack(["0" * 16]),
            lambda: bus.consumer("mine", "c").receive(),
        ):
            with pytest.raises(postbus.NotAllowed, match=f'role "{publisher}" may not consume stream "mine"'):
                refused()
    with postbus.connect(url_of(consumer)) as bus:
        bus.consumer("mine", "c").receive()
        for denied in (
            lambda: bus.publish("mine", data=1),
            lambda: bus.publish_many("mine", [Message(data=1)]),
        ):
            with pytest.raises(postbus.NotAllowed, match=f'role "{consumer}" may not publish to stream "mine"'):
                denied()


def test_members_of_the_ready_made_roles_use_all_streams_and_owners_look_after_them(roles: Any) -> None:
    create, url_of, admin, root = roles
    with psycopg.connect(url_of(admin), autocommit=True) as connection, postbus.connect(url_of(admin)) as bus:
        bus.create_stream("before", partitions=2)
        connection.execute("select postbus.create_roles()")
        connection.execute("select postbus.create_roles()")
        member = create("member")
        for role in ("postbus_publisher", "postbus_consumer"):
            root.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(member)))
        second = create("second")
        root.execute(sql.SQL("grant postbus_owner to {}").format(sql.Identifier(second)))
        with postbus.connect(url_of(second)) as by_second:
            by_second.create_stream("after", partitions=2, segment_bytes=65536, dedup_window=60)
            by_second.create_consumer("after", "c")
            with postbus.connect(url_of(member)) as used:
                used.publish_many("after", [Message(key="k", data="x" * 1500, dedup_id=str(n)) for n in range(60)])
                used.publish("before", key="k", data=1)
                bus.maintain("after")  # By the other owner.
                bus.maintain("after")
                used.publish("after", key="k", data="new")
                worker = used.consumer("after", "c")
                count = 0
                while batch := worker.receive(50):
                    count += worker.ack(batch)
                assert count == 61
            by_second.purge("after", everything=True)
            bus.maintain("after")
        bus.drop_stream("after")


def test_a_dropped_role_does_not_block_grants(roles: Any) -> None:
    create, url_of, admin, root = roles
    gone, left = create("gone"), create("left")
    with postbus.connect(url_of(admin)) as bus, psycopg.connect(url_of(admin), autocommit=True) as connection:
        bus.create_stream("mine", partitions=1, segment_bytes=65536)
        for role in (gone, left):
            connection.execute("select postbus.grant_stream('mine', %s, 'publish')", (role,))
        root.execute(sql.SQL("drop owned by {}").format(sql.Identifier(gone)))
        root.execute(sql.SQL("drop role {}").format(sql.Identifier(gone)))
        with postbus.connect(url_of(left)) as used:
            used.publish_many("mine", [Message(key="k", data="x" * 1500) for _ in range(60)])
            for _ in range(3):
                bus.maintain("mine")
            assert bus.stream_info("mine").segment_count > 1
            used.publish("mine", key="k", data=1)
        connection.execute("select postbus.revoke_stream('mine', %s, 'publish')", (gone,))


def test_a_death_is_published_where_the_role_itself_may_not_publish(roles: Any) -> None:
    create, url_of, admin, _ = roles
    role = create("con")
    with postbus.connect(url_of(admin)) as bus, psycopg.connect(url_of(admin), autocommit=True) as connection:
        bus.create_stream("mine", partitions=1)
        bus.create_stream("dead")
        bus.create_consumer("mine", "c", dead_letters_to="dead", ack_wait=0.1, max_deliver=1)
        bus.publish_many("mine", [Message(data=n) for n in range(3)])
        connection.execute("select postbus.grant_stream('mine', %s, 'consume')", (role,))

        with postbus.connect(url_of(role)) as as_consumer:
            consumer = as_consumer.consumer("mine", "c")
            with psycopg.connect(url_of(role)) as own:
                consumer.terminate(consumer.receive(1, ack_wait=60), connection=own)
                own.rollback()
            assert list(bus.scan("dead")) == []
            with psycopg.connect(url_of(role)) as own:
                consumer.terminate(consumer.receive(1, ack_wait=60), connection=own)
            assert [message.data for message in bus.scan("dead")] == [1]
            _all_refused(lambda: as_consumer.publish("dead", data=1))
            # A lease that expires at its last attempt.
            assert len(consumer.receive(1)) == 1
            time.sleep(0.2)
            bus.sweep()
            assert [message.data for message in bus.scan("dead")] == [1, 2]
