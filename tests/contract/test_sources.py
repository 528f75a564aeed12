"""Postgres sources, over Postgres and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from postbus.model.errors import Conflict, InvalidInput, NotFound
from postbus.sources.runner import SourceRunner

pytestmark = pytest.mark.newest_server


@pytest.fixture
async def table(sql: psycopg.Connection[Any], name: str) -> AsyncIterator[str]:
    """A table that no other test uses."""
    table = name.replace("-", "_")
    sql.execute(f"create table {table} (id int primary key, item text)".encode())
    yield table
    sql.execute(f"drop table {table}".encode())


@pytest.fixture
async def source(bus: Any, stream: str, table: str, name: str) -> AsyncIterator[str]:
    """A source of that table."""
    await bus.sources.create(name, stream, tables=[table], backfill=False)
    yield name
    with suppress(NotFound):
        await bus.sources.drop(name)


async def test_a_source_keeps_what_it_was_given(bus: Any, stream: str, table: str, name: str) -> None:
    await bus.sources.create(
        name,
        stream,
        tables=[table],
        operations=["insert", "delete"],
        columns={table: ["id"]},
        filters={table: "id > 0"},
        key_template="source.table.pk",
        format="debezium",
        backfill=False,
        paused=True,
    )
    info = await bus.sources.info(name)

    assert (info.name, info.stream, info.tables, info.operations) == (name, stream, (table,), ("insert", "delete"))
    assert (info.columns, info.filters) == ({table: ("id",)}, {table: "id > 0"})
    assert (info.key_template, info.format, info.backfill, info.state) == (
        "source.table.pk",
        "debezium",
        False,
        "paused",
    )
    assert info in await bus.sources.list_all()
    dropped = await bus.sources.drop(name)
    assert dropped.cleaned
    assert dropped.remedy is None


async def test_what_is_committed_after_the_source_was_created_is_published(
    bus: Any, stream: str, table: str, source: str, url: str, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(f"insert into {table} values (1, 'tea')".encode())
    runner = SourceRunner(url, only=[source])
    running = asyncio.create_task(asyncio.to_thread(runner.run))
    try:
        consumer = await bus.create_consumer(stream, "c")
        (delivery,) = await consumer.receive(1, wait=20)
        assert delivery.data["record"] == {"id": 1, "item": "tea"}
        info = await bus.sources.info(source)
        assert info.state in ("starting", "streaming")
    finally:
        runner.stop()
        await running


async def test_dropping_it_drops_slot_and_publication(
    bus: Any, source: str, sql: psycopg.Connection[Any], stream: str
) -> None:
    info = await bus.sources.info(source)
    with pytest.raises(Conflict, match="publishes to stream"):
        await bus.drop_stream(stream)

    await bus.sources.drop(source)

    assert sql.execute("select from pg_replication_slots where slot_name = %s", (info.slot,)).fetchall() == []
    assert sql.execute("select from pg_publication where pubname = %s", (info.publication,)).fetchall() == []
    with pytest.raises(NotFound):
        await bus.sources.info(source)
    await bus.drop_stream(stream)


async def test_it_is_changed_paused_resumed_and_backfilled(bus: Any, source: str, table: str) -> None:
    await bus.sources.alter(source, operations=["insert"], format="sequin2024")
    info = await bus.sources.info(source)
    assert (info.operations, info.format, info.tables) == (("insert",), "sequin2024", (table,))

    await bus.sources.pause(source)
    assert (await bus.sources.info(source)).state == "paused"
    await bus.sources.resume(source)
    assert (await bus.sources.info(source)).state == "not_running"
    assert await bus.sources.backfill(source) == 0
    with pytest.raises(NotFound, match="no table"):
        await bus.sources.backfill(source, tables=["nowhere"])
    await bus.sources.restart(source)


async def test_what_stands_in_the_way_is_said_with_sql_to_paste(
    bus: Any, stream: str, sql: psycopg.Connection[Any], name: str
) -> None:
    table = name.replace("-", "_")
    sql.execute(f"create table {table} (n int)".encode())

    check = await bus.sources.check(tables=[table])
    with pytest.raises(Conflict, match="no replica identity") as caught:
        await bus.sources.create(name, stream, tables=[table])

    (finding,) = check.findings
    assert finding.remedy is not None
    assert finding.remedy in str(caught.value.hint)
    sql.execute(finding.remedy.encode())
    assert (await bus.sources.check(tables=[table])).findings == ()
    # Nothing was left behind by the attempt.
    with pytest.raises(NotFound):
        await bus.sources.info(name)
    sql.execute(f"drop table {table}".encode())


async def test_inserts_of_a_table_without_an_identity_can_be_published(
    bus: Any, stream: str, sql: psycopg.Connection[Any], name: str
) -> None:
    table = name.replace("-", "_")
    sql.execute(f"create table {table} (n int)".encode())

    await bus.sources.create(name, stream, tables=[table], operations=["insert"], backfill=False)

    sql.execute(f"delete from {table}".encode())
    await bus.sources.drop(name)
    sql.execute(f"drop table {table}".encode())


async def test_a_condition_that_would_break_updates_is_refused(
    bus: Any, stream: str, table: str, name: str, sql: psycopg.Connection[Any]
) -> None:
    with pytest.raises(Conflict, match="cannot be published"):
        await bus.sources.create(name, stream, tables=[table], filters={table: "item <> 'x'"})

    sql.execute(f"update {table} set item = 'y'".encode())
    assert sql.execute("select from pg_publication where pubname like %s", (f"%{table[:20]}%",)).fetchall() == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"key_template": "a..b"}, "key_template|not a template"),
        ({"filters": {"t": "true) ; drop table x"}}, "condition|filters"),
        ({"tables": []}, "tables"),
        ({"url": "mysql://a:geheim@b/c"}, "URL|url"),
        ({"operations": ["merge"]}, "operations"),
    ],
    ids=["key", "filter", "tables", "url", "operations"],
)
async def test_a_wrong_setting_is_refused(
    bus: Any, stream: str, table: str, name: str, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem) as caught:
        await bus.sources.create(name, stream, **{"tables": [table], **settings})
    assert "geheim" not in str(caught.value)


async def test_only_streams_of_json_take_changes(bus: Any, table: str, name: str) -> None:
    await bus.create_stream(name, data_type="text")
    with pytest.raises(Conflict, match="JSON"):
        await bus.sources.create(name, name, tables=[table])


async def test_the_url_of_a_source_is_never_shown(
    bus: Any, stream: str, table: str, name: str, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    role = urlsplit(url).username
    secret = url.replace(f"{role}@", f"{role}:geheim@", 1)
    await bus.sources.create(name, stream, tables=[table], url=secret, backfill=False)

    shown = [await bus.sources.info(name), await bus.sources.list_all()]
    await bus.sources.alter(name, url="postgresql://ada:geheim@127.0.0.1:1/shop")
    with pytest.raises(Conflict) as caught:
        await bus.sources.check(tables=[table], url="postgresql://ada:geheim@127.0.0.1:1/shop")
    shown.append(str(caught.value))
    with pytest.raises(Conflict, match="slot"):
        await bus.sources.drop(name)
    dropped = await bus.sources.drop(name, force=True)
    shown += [dropped, caplog.text]

    assert "geheim" not in repr(shown)
    assert dropped.remedy is not None
    assert "pg_drop_replication_slot" in dropped.remedy
    with psycopg.connect(url, autocommit=True) as sql:
        for statement in dropped.remedy.split(";"):
            if statement.strip():
                sql.execute(statement.encode())


async def test_a_source_has_one_name(bus: Any, stream: str, table: str, source: str) -> None:
    with pytest.raises(Conflict, match="exists"):
        await bus.sources.create(source, stream, tables=[table])
