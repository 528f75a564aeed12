"""What was broken by trying to, and holds now."""

from __future__ import annotations

import asyncio
import secrets
import threading
from datetime import date, datetime
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

import postbus
from postbus import Message
from postbus.transport._sync.postgres import PostgresTransport
from tests import servers


@pytest.fixture
def plain(url: str, name: str) -> Any:
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        yield bus


@pytest.fixture
def role(url: str, sql: Any) -> Any:
    """The URL for a plain role, and its name."""
    name = f"role_{secrets.token_hex(4)}"
    sql.execute(f"create role {name} login password 'x'")
    parts = urlsplit(url)
    yield urlunsplit(parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}")), name
    sql.execute("delete from postbus_data.stream_grant where role = %s", (name,))
    sql.execute(f"drop owned by {name}")
    sql.execute(f"drop role {name}")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_maintenance_under_a_kept_snapshot_is_refused(plain: postbus.Bus, name: str, connect: Any, level: str) -> None:
    """It would seal a segment without messages that committed since, and they would never be read."""
    connection = connect(autocommit=False)
    connection.execute(f"set transaction isolation level {level}")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("select postbus.maintain()")
    assert caught.value.sqlstate == "PB412"


SHADOWS = [
    "function public.mod(a bigint, b integer) returns integer",
    "function public.format(a text, b integer) returns text",
    "function public.format(a text, b text) returns text",
    "function public.format(a text, b integer, c integer) returns text",
    "function public.setval(a text, b integer) returns bigint",
    "function public.nextval(a text) returns bigint",
    "function public.convert_to(a text, b text) returns bytea",
    "function public.pg_sequence_last_value(a text) returns bigint",
    "function public.to_regclass(a varchar) returns regclass",
]
OPERATORS = [
    ("&", "bigint", "integer", "bigint"),
    ("||", "text", "integer", "text"),
    ("<<", "integer", "bigint", "integer"),
]


def test_functions_and_operators_of_other_schemas_are_never_run(server: servers.Server) -> None:
    """Someone who may create in public could otherwise run code with the rights of whoever publishes."""
    with servers.database(server.url) as url, psycopg.connect(url, autocommit=True) as connection:
        body = "language plpgsql as $$ begin raise exception 'hijacked'; end $$"
        for shadow in SHADOWS:
            connection.execute(f"create {shadow} {body}".encode())
        for number, (operator, left, right, result) in enumerate(OPERATORS):
            connection.execute(
                f"create function public.shadow_{number}(a {left}, b {right}) returns {result} {body}".encode()
            )
            arguments = f"leftarg = {left}, rightarg = {right}, function = public.shadow_{number}"
            connection.execute(f"create operator public.{operator} ({arguments})".encode())
        connection.execute("create temp table pg_locks (a integer)")
        with postbus.connect(url) as bus:
            bus.create_stream("s", segment_bytes=65536)
            consumer = bus.create_consumer("s", "c", order="none", max_deliver=2)
            for n in range(3):
                bus.publish("s", key=f"k{n}", data=n)
                bus.publish("s", data="x" * 30_000)
            bus.publish_many("s", [Message(key="k", data=1, headers={"a": "b"})])
            for bad in ("a b", "x" * 300):
                with pytest.raises(postbus.InvalidInput):
                    bus.publish("s", key=bad, data=1, headers={"a": "b"})
            with pytest.raises(postbus.NotFound):
                bus.publish("unknown", data=1)
            bus.maintain()
            batch = consumer.receive(3)
            consumer.ack(batch[0])
            consumer.nack(batch[1])
            consumer.terminate(batch[2])
            consumer.extend(batch)
            assert len(list(bus.scan("s", key_pattern=">"))) == 4
            connection.execute(
                "select * from postbus.peek('s', 'c'), postbus.stats('s', 'c'), postbus.horizon_holders('s')"
            )
            bus.purge("s", everything=True)
            bus.alter_stream("s", segment_age=5)
            bus.list_streams()
            bus.drop_stream("s")


@pytest.mark.parametrize("bad", ["orders\x00_backup", "\ud800"])
def test_a_name_with_nul_or_broken_unicode_is_refused_and_never_cut_off(
    plain: postbus.Bus, name: str, bad: str
) -> None:
    for call in (plain.drop_stream, plain.stream_info, plain.create_stream):
        with pytest.raises(postbus.InvalidInput):
            call(f"{name}{bad}")
    with pytest.raises(postbus.InvalidInput):
        plain.publish(f"{name}{bad}", data=1)
    plain.stream_info(name)


def test_a_token_beyond_the_end_of_the_stream_is_an_error(plain: postbus.Bus, name: str) -> None:
    """After a crash that lost messages which were not flushed, going on from there would skip new ones."""
    plain.publish(name, data=1)
    with pytest.raises(postbus.Conflict, match="beyond the end"):
        plain.read(name, resume=f"f:{plain.stream_info(name).id}:50")


def test_text_survives_a_url_with_another_client_encoding(url: str, name: str) -> None:
    with postbus.connect(f"{url}{'&' if '?' in url else '?'}client_encoding=latin1") as bus:
        bus.create_stream(name, data_type="text")
        bus.publish(name, key="é", data="é")
        bus.publish_many(name, [Message(key="é", data="é")])
        assert [(m.key, m.data) for m in bus.read(name)] == [("é", "é"), ("é", "é")]


def test_a_connection_of_the_callers_in_another_encoding_is_refused(
    plain: postbus.Bus, name: str, connect: Any
) -> None:
    with pytest.raises(postbus.InvalidInput, match="client_encoding"):
        plain.publish(name, data="é", connection=connect(client_encoding="latin1"))


@pytest.mark.parametrize("when", [datetime(2026, 1, 1), date(2026, 1, 1), "yesterday-ish"])  # noqa: DTZ001
def test_a_time_without_a_time_zone_is_refused(plain: postbus.Bus, name: str, when: Any) -> None:
    with pytest.raises(postbus.InvalidInput):
        plain.purge(name, before_time=when)


def test_purging_everything_has_to_be_explicit(plain: postbus.Bus, name: str) -> None:
    plain.publish(name, data=1)
    with pytest.raises(postbus.InvalidInput, match="what to remove"):
        plain.purge(name)
    with pytest.raises(postbus.InvalidInput):
        plain.purge(name, before_seq=1, everything=True)
    assert len(plain.read(name)) == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_a_time_that_everything_is_before_hides_nothing(
    plain: postbus.Bus, name: str, sql: Any, backwards: bool
) -> None:
    """Also with many partitions, of which few have messages, and while a segment is rolled and not sealed."""
    wide = f"{name}-wide"
    plain.create_stream(wide, partitions=64)
    key = next(f"k{n}" for n in range(1000) if postbus.partition_of(f"k{n}", 64) > 40)
    end = datetime.fromisoformat("2100-01-01T00:00:00+00:00")
    for n in range(3):
        plain.publish(wide, key=key, data=n)
        sql.execute("update postbus_data.stream set roll_due = true where name = %s", (wide,))
        sql.execute("select postbus.maintain(%s)", (wide,))
        sql.execute("select postbus.maintain(%s)", (wide,))
    found = [m.data for m in plain.scan(wide, to_time=end, backwards=backwards)]
    assert sorted(found) == [0, 1, 2]


def test_headers_that_are_lists_are_refused(plain: postbus.Bus, name: str, sql: Any) -> None:
    with pytest.raises(psycopg.Error, match="not a string"):
        sql.execute("select postbus.publish(%s, data => '1', headers => '{\"a\": [\"x\"]}')", (name,))


def test_dropping_a_stream_under_publishers_and_readers_does_not_deadlock(
    plain: postbus.Bus, name: str, url: str
) -> None:
    errors: list[str | None] = []

    def run(statement: str) -> None:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(statement.encode())
        except psycopg.Error as error:
            errors.append(error.sqlstate)

    with psycopg.connect(url) as publisher:
        publisher.execute("select postbus.publish(%s, 'k', '1')", (name,))
        threads = []
        for statement in (
            f"select postbus.drop_stream('{name}')",
            f"select postbus.publish('{name}', 'k', '1')",
            f"select * from postbus.read('{name}')",
        ):
            threads.append(threading.Thread(target=run, args=(statement,)))
            threads[-1].start()
            threads[-1].join(0.5)
        publisher.commit()
        for thread in threads:
            thread.join()
    assert "40P01" not in errors


def test_a_segment_that_is_being_prepared_is_dropped_with_its_stream(
    plain: postbus.Bus, name: str, connect: Any, sql: Any
) -> None:
    info = plain.stream_info(name)
    plain.publish(name, data=1)
    sql.execute("update postbus_data.stream set roll_due = true where name = %s", (name,))
    maintenance = connect(autocommit=False)
    maintenance.execute("select postbus.maintain(%s)", (name,))
    dropper = threading.Thread(target=plain.drop_stream, args=(name,))
    dropper.start()
    dropper.join(0.5)
    maintenance.commit()
    dropper.join()
    left = sql.execute(
        "select count(*) from pg_class where relname ~ %s", (f"^(log|seq|layout)_{info.id}(_|$)",)
    ).fetchone()
    assert left == (0,)


def test_purged_empty_streams_do_not_keep_maintenance_busy(plain: postbus.Bus, name: str, sql: Any) -> None:
    plain.purge(name, everything=True)
    assert sql.execute("select roll_due from postbus_data.stream where name = %s", (name,)).fetchone() == (False,)


async def test_tasks_that_publish_to_a_stream_that_is_dropped_all_get_the_same_error(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        for n in range(5):
            await bus.publish(name, data=n)
        async with await postbus.connect_async(url) as other:
            await other.drop_stream(name)
        results = await asyncio.gather(*(bus.publish(name, data=n) for n in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [postbus.NotFound] * 5


def test_a_stale_type_in_the_callers_transaction_is_forgotten(
    plain: postbus.Bus, name: str, connect: Any, url: str
) -> None:
    plain.publish(name, data="x")
    with postbus.connect(url) as other:
        other.drop_stream(name)
        other.create_stream(name, data_type="text")
    connection = connect(autocommit=False)
    with pytest.raises(postbus.Conflict):
        plain.publish(name, data="x", connection=connection)
    connection.rollback()
    plain.publish(name, data="x", connection=connection)
    connection.commit()


def test_a_statement_whose_columns_change_is_prepared_again(server: servers.Server) -> None:
    """As when a migration replaces a function."""
    with servers.database(server.url) as url, postbus.connect(url, pool_size=1) as bus:
        run = cast(PostgresTransport, bus._transport).database.rows
        run("create table public.t as select 1 as a")
        assert run("select t.* from public.t") == [(1,)]
        for columns in (2, 3):
            run(f"alter table public.t add column c{columns} integer default {columns}")
            assert len(run("select t.* from public.t")[0]) == columns


def test_an_item_that_is_not_a_message_is_refused_by_its_position(plain: postbus.Bus, name: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=r"message 1 .* it is dict"):
        plain.publish_many(name, [{"data": 1}])  # type: ignore[list-item]
    with pytest.raises(postbus.InvalidInput):
        plain.create_stream(f"{name}-2", segment_age=float("nan"))
