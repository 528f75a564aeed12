"""Tables of a source are mirrored from its stream, in Postgres and as files: with deletes, truncates and large values."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

import postbus
from postbus.pipelines import MaterializeOptions, materialize_stream, read_snapshot
from postbus.pipelines.materialize.source_changes import SourceChange, read_change
from postbus.sources.reader import Reader
from tests.waiting import until

SCHEMA = "id INT, name STRING, amount DECIMAL(12,2), big STRING, doc JSON"


@pytest.fixture
def source(url: str, stream: str, bus: postbus.Bus) -> Iterator[Any]:
    """A table, a source of it, and a reader."""
    table = stream.replace("-", "_")
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute(
            f"create table {table} (id int primary key, name text, amount numeric(12, 2), big text, doc jsonb)".encode()
        )
        sql.execute(f"create table {table}_other (id int primary key)".encode())
        sql.execute(f"alter table {table} alter column big set storage external".encode())
        sql.execute(
            f"insert into {table} select n, 'old', n, repeat('o', 9000), null from generate_series(1, 20) as n".encode()
        )
        yield table, sql


def test_a_source_is_mirrored(spark: Any, bus: postbus.Bus, url: str, stream: str, source: Any, tmp_path: Path) -> None:
    table, sql = source
    bus.sources.create(table, stream, tables=[table, f"{table}_other"])
    reader = Reader(url, table, uuid4())
    running = threading.Thread(target=reader.run)
    running.start()
    chance = random.Random(7)
    try:
        for part in range(2):
            for step in range(40):
                row, other = chance.randrange(30), chance.randrange(30)
                for statement in chance.sample(
                    [
                        f"insert into {table} values ({row}, 'n', 1.50, repeat('x', 9000), '[{step}]') on conflict do nothing",
                        f"update {table} set amount = amount + 1.25 where id = {row}",
                        f"update {table} set name = null where id = {row}",
                        f"delete from {table} where id = {row}",
                        (
                            f"update {table} set id = id + 100 where id = {other} "
                            f"and not exists (select from {table} where id = {other + 100})"
                        ),
                        f"insert into {table}_other values ({row}) on conflict do nothing",
                    ],
                    2,
                ):
                    sql.execute(statement.encode())
            if part == 1:
                sql.execute(f"truncate {table}".encode())
                sql.execute(f"insert into {table} values (1, 'after', 2, 'b', '{{}}')".encode())
                sql.execute(f"update {table} set amount = 3".encode())
            until(lambda: bus.sources.info(table).state == "streaming", "streaming")
            until(lambda: bus.sources.info(table).lag_bytes == 0, "caught up")
            wanted = sql.execute(
                f"select id, name, amount, big, doc::text from {table} order by id".encode()
            ).fetchall()
            plain: dict[str, Any] = {"stream": stream, "source_table": table, "schema": SCHEMA, "batch": 30}
            to_table = MaterializeOptions(**plain, table=f"{table}_mirror")
            to_files = MaterializeOptions(**plain, to=str(tmp_path))
            for options in (to_table, to_files):
                materialize_stream(url, options, spark=spark)
            mirror = f"select id, name, amount, big, doc::text from {table}_mirror order by id"
            assert sql.execute(mirror.encode()).fetchall() == wanted
            files = read_snapshot(spark, f"{tmp_path}/{stream}").orderBy("id").collect()
            found = [(row["id"], row["name"], row["amount"], row["big"], row["doc"]) for row in files]
            assert [each[:4] for each in found] == [each[:4] for each in wanted]
    finally:
        reader.stop()
        running.join()
        bus.sources.drop(table)


@pytest.mark.parametrize(
    ("data", "change"),
    [
        ({"action": "insert", "record": {"a": 1}}, SourceChange({"a": 1})),
        ({"action": "truncate", "record": None}, SourceChange(None, empties=True)),
        (
            {"action": "update", "record": {"a": 1}, "metadata": {"unchanged_toast": ["b"]}},
            SourceChange({"a": 1}, ("b",)),
        ),
        (
            {
                "op": "u",
                "source": {"schema": "s", "table": "t"},
                "after": {"a": 1, "b": "__debezium_unavailable_value"},
            },
            SourceChange({"a": 1, "b": "__debezium_unavailable_value"}, ("b",)),
        ),
        ({"op": "d", "source": {}, "before": {"a": 1}, "after": None}, SourceChange(None)),
        ({"op": "t", "source": {}, "after": None}, SourceChange(None, empties=True)),
        ({"data": {"a": 1}, "deleted": True, "changes": None, "action": "delete"}, SourceChange(None)),
        ({"data": {"a": 1}, "deleted": False, "changes": None, "action": "read"}, SourceChange({"a": 1})),
    ],
)
def test_each_format_of_sources_is_understood(data: Any, change: SourceChange) -> None:
    assert read_change(data, None) == change


def test_changes_of_other_tables_are_left_out() -> None:
    message = {"action": "insert", "record": {}, "metadata": {"table_schema": "public", "table_name": "orders"}}
    assert read_change(message, "orders") == read_change(message, "public.orders") == SourceChange({})
    assert read_change(message, "shop.orders") is None
    assert read_change({"op": "c", "source": {"schema": "s", "table": "t"}, "after": {}}, "u") is None


@pytest.mark.parametrize("data", [[], {"action": "merge"}, {"action": "insert"}, {"op": "x", "source": {}}])
def test_what_is_no_change_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="not a change"):
        read_change(data, None)
