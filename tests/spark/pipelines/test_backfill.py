"""Tables of Postgres into a stream: every row once, whatever the key, all at one snapshot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
from psycopg import sql

import postbus
import postbus.pipelines.backfill.pipeline as module
from postbus.db import session
from postbus.model.keys import escaped_token
from postbus.pipelines import Backfilled, BackfillOptions, backfill_table
from postbus.pipelines.backfill import tables
from postbus.pipelines.backfill.ranges import RangeCopier
from tests import servers
from tests.spark.pipelines.test_runtime import known
from tests.waiting import until


def backfill(spark: Any, url: str, stream: str, **options: Any) -> Backfilled:
    return backfill_table(url, BackfillOptions(stream=stream, **options), spark=spark)


@pytest.fixture
def table(url: str, name: str) -> Iterator[str]:
    """The name of a table, which the test creates."""
    found = f"t_{name.replace('-', '_')}"
    yield found
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop table if exists {}").format(sql.Identifier(found)))


def run_sql(url: str, text: str, table: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.replace("TABLE_", table))
        return cursor.fetchall() if cursor.description else []


def ranges(url: str, bus: postbus.Bus, stream: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select * from postbus.backfill_ranges(%s)", (known(bus, stream).name,))
        return rows.fetchall()


def copied(url: str, stream: str) -> list[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("select data::text from postbus.read(%s, max_messages => 10000)", (stream,))
        return sorted(text for (text,) in found)


def rows_as_json(url: str, table: str) -> list[str]:
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        statement = sql.SQL("select row_to_json(t.*)::text from {} as t").format(sql.Identifier(table))
        return sorted(text for (text,) in connection.execute(statement))


KEYS = {
    "integer": "create table TABLE_ (id integer primary key, name text);"
    "insert into TABLE_ select i, 'name ' || i from generate_series(-100, 900, 7) as i;"
    "insert into TABLE_ select i from generate_series(1000001, 1000050) as i",
    "uuid": "create table TABLE_ (id uuid primary key default gen_random_uuid(), at timestamptz default now());"
    "insert into TABLE_ select from generate_series(1, 200)",
    "text": "create table TABLE_ (id text primary key);"
    "insert into TABLE_ select v || i from unnest(array['a', 'A', 'ä', 'B', 'z', '-', '''', '\\', '%', '日']) as v,"
    " generate_series(1, 20) as i",
    "char": "create table TABLE_ (id char(8) primary key); insert into TABLE_ select 'c' || i from generate_series(1, 200) as i",
    "composite": 'create table TABLE_ (t text, place numeric(6, 2), "a ""b" date, primary key (place, t, "a ""b"));'
    "insert into TABLE_ select chr(65 + i % 5), i % 3 + 0.25, date '2026-01-01' + i from generate_series(1, 200) as i",
    "without one, and nulls": "create table TABLE_ (id integer, b float8);"
    "insert into TABLE_ select nullif(i % 10, 3), case i % 4 when 0 then null when 1 then 'nan' else 0.1 * i end"
    " from generate_series(1, 200) as i",
}


SIMPLE = ("uuid", "char")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SIMPLE else []) for kind in KEYS]
)
def test_every_row_of_any_key_comes_once(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str, kind: str
) -> None:
    run_sql(url, KEYS[kind], table)
    options: dict[str, Any] = {"key": "rows"}
    if "without" in kind:
        options["pk"] = ("id", "b")

    done = backfill(spark, url, stream, table=table, batch=60, **options)

    assert copied(url, stream) == rows_as_json(url, table)
    assert (done.messages, done.bad, done.ranges_left) == (len(rows_as_json(url, table)), 0, 0)
    found = ranges(url, bus, stream)
    assert len(found) >= 4
    assert all(count <= 60 for _, _, _, is_of_nulls, count, *_ in found if not is_of_nulls)
    assert {(str(snapshot), str(lsn)) for *_, snapshot, lsn, _ in found} == {(done.snapshot, done.wal_lsn)}
    assert backfill(spark, url, stream, table=table, batch=60, **options).messages == 0


def test_a_large_table_is_cut_by_a_sample(
    spark: Any, url: str, stream: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(url, "create table TABLE_ (id integer primary key)", table)
    run_sql(url, "insert into TABLE_ select generate_series(1, 5000)", table)
    run_sql(url, "analyze TABLE_", table)
    monkeypatch.setattr(tables, "_EXACT_ROWS", 1000)
    monkeypatch.setattr(tables, "_SAMPLED_PER_RANGE", 150)

    with tables.held_moment(url) as moment:
        found = moment.split(moment.describe(table, None, ()), 200)

    # Three of four blocks, so that it is never nothing.
    edges = [int(cut.to[0]) for cut in found if cut.to is not None]
    assert 5 < len(edges) < 34
    assert edges == sorted(edges)
    assert backfill(spark, url, stream, table=table, batch=2000).messages == 5000


def test_a_row_is_keyed_by_its_table_and_primary_key(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str
) -> None:
    run_sql(url, "create table TABLE_ (b text, a integer, j jsonb, primary key (a, b))", table)
    assert backfill(spark, url, stream, table=table).messages == 0
    run_sql(
        url,
        "insert into TABLE_ values ('x', 1, '{\"n\": 1}'), ('y', 2, null), ('no. token%', 3, '3'), ('', 4, '4')",
        table,
    )

    assert backfill(spark, url, stream, table=table, again=True).bad == 0
    assert sorted((m.key or "", m.data) for m in bus.scan(stream)) == [
        (f"{table}.1.x", {"b": "x", "a": 1, "j": {"n": 1}}),
        (f"{table}.2.y", {"b": "y", "a": 2, "j": None}),
        (f"{table}.3.no%2E%20token%25", {"b": "no. token%", "a": 3, "j": 3}),
        (f"{table}.4.%", {"b": "", "a": 4, "j": 4}),
    ]
    assert escaped_token("no. token%") == "no%2E%20token%25"
    assert unquote("no%2E%20token%25") == "no. token%"


def test_a_row_whose_own_key_is_no_token_is_rejected(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str
) -> None:
    run_sql(url, "create table TABLE_ (b text, a integer, j jsonb, primary key (a, b))", table)
    run_sql(url, "insert into TABLE_ values ('x', 1, '{\"n\": 1}'), ('y', 2, null), ('no token', 3, '3')", table)

    assert backfill(spark, url, stream, table=table, key="b.{b}").bad == 1
    done = backfill(spark, url, stream, query=f"select * from {table} -- all", pk=("a",), key="j.{a}", data="j")
    assert (done.messages, done.bad) == (2, 1)
    assert [(m.key, m.data) for m in bus.scan(stream, key_pattern="j.>")] == [("j.1", {"n": 1}), ("j.3", 3)]
    aside = [(m.data["reason"], m.data["row"]) for m in bus.scan(f"{stream}-bad")]
    assert aside == [
        ('column "b" of the key is "no token", which cannot be a token', '{"b":"no token","a":3,"j":3}'),
        ('column "j" has no value', '{"b":"y","a":2,"j":null}'),
    ]


def test_a_row_that_is_too_large_is_rejected(spark: Any, bus: postbus.Bus, url: str, name: str, table: str) -> None:
    bus.create_stream(name, data_type="bytes", max_message_bytes=10)
    run_sql(url, "create table TABLE_ (id integer primary key, b bytea not null)", table)
    run_sql(url, "insert into TABLE_ values (1, '\\x00ff'), (2, decode(repeat('61', 11), 'hex')), (3, '')", table)

    done = backfill(spark, url, name, table=table, data="b")

    assert (done.messages, done.bad) == (2, 1)
    assert [message.data for message in bus.scan(name)] == [b"\x00\xff", b""]
    (aside,) = bus.scan(f"{name}-bad")
    assert (aside.data["reason"], aside.data["row"]) == ("it has 11 bytes, and the stream allows 10", 11 * "a")


def test_all_ranges_see_one_snapshot_and_an_interrupted_run_continues_at_a_new_one(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(url, "create table TABLE_ (id integer primary key, n integer)", table)
    run_sql(url, "insert into TABLE_ select i, 0 from generate_series(1, 100) as i", table)
    real = module._Job._work

    def some(self: Any) -> None:
        """A run that ends after its first ranges, while the table changes under it."""
        run_sql(url, "update TABLE_ set n = 1", table)
        numbers = self._copier.numbers
        object.__setattr__(self._copier, "numbers", numbers[:2])
        real(self)
        object.__setattr__(self._copier, "numbers", numbers)

    with monkeypatch.context() as patch:
        patch.setattr(module._Job, "_work", some)
        first = backfill(spark, url, stream, table=table, batch=20)
    run_sql(url, "insert into TABLE_ values (-1, 2), (101, 2)", table)
    with pytest.raises(postbus.Conflict, match="is not done"):
        backfill(spark, url, stream, table=table, batch=20, key="other.{id}")
    second = backfill(spark, url, stream, table=table, batch=20)

    assert (first.messages, first.ranges_left, second.messages, second.ranges_left) == (40, 4, 61, 0)
    versions = {message.data["id"]: message.data["n"] for message in bus.scan(stream)}
    assert versions == {**dict.fromkeys(range(1, 41), 0), **dict.fromkeys(range(41, 101), 1), 101: 2}
    found = ranges(url, bus, stream)
    assert [str(row[6]) for row in found] == 2 * [first.snapshot] + 4 * [second.snapshot]
    # What a source of changes has to know: which of them are in the rows that were read.
    seen = run_sql(url, f"select id, pg_visible_in_snapshot(xmin::text::xid8, '{first.snapshot}') from TABLE_", table)
    assert not any(is_seen for _, is_seen in seen)
    assert known(bus, stream).message_count == 101


def test_of_two_attempts_at_a_range_one_publishes(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(url, "create table TABLE_ (id integer primary key)", table)
    run_sql(url, "insert into TABLE_ select generate_series(1, 50)", table)
    copiers: list[RangeCopier] = []

    def work(self: Any) -> None:
        copiers.append(self._copier)
        assert [self._copier.copy(number) for number in (0, 0, 1, 2)] == [(20, 0), (0, 0), (20, 0), (10, 0)]

    monkeypatch.setattr(module._Job, "_work", work)
    assert backfill(spark, url, stream, table=table, batch=20).messages == 50

    def late(self: Any) -> None:
        """A task of the run before, which is still alive."""
        assert copiers[0].copy(0) == (0, 0)

    monkeypatch.setattr(module._Job, "_work", late)
    assert backfill(spark, url, stream, table=table, batch=20, again=True).ranges_left == 3
    assert len(list(bus.scan(stream))) == 50


def test_of_two_attempts_at_the_same_moment_one_publishes(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(url, "create table TABLE_ (id integer primary key)", table)
    run_sql(url, "insert into TABLE_ select generate_series(1, 50)", table)

    both_have_asked = threading.Barrier(2)
    real = RangeCopier._statement

    def statement(self: RangeCopier, *arguments: Any, **options: Any) -> str:
        both_have_asked.wait(30)
        return real(self, *arguments, **options)

    def work(self: Any) -> None:
        with ThreadPoolExecutor(2) as both:
            attempts = [both.submit(self._copier._copy_there, 0) for _ in range(2)]
            assert sorted(str(attempt.exception() or attempt.result()) for attempt in attempts) == ["", "50"]

    monkeypatch.setattr(RangeCopier, "_statement", statement)
    monkeypatch.setattr(module._Job, "_work", work)
    assert backfill(spark, url, stream, table=table).messages == 50
    assert len(list(bus.scan(stream))) == 50


def test_partitions_may_change_while_a_range_is_published(
    spark: Any, bus: postbus.Bus, url: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "select i as id, case i when 50 then pg_sleep(1)::text end as pause from generate_series(1, 100) as i"

    def work(self: Any) -> None:
        with ThreadPoolExecutor(1) as copying:
            copied = copying.submit(self._copier.copy, 0)
            until(lambda: sleeping_count(url) == 1, "it is in the middle")
            bus.alter_stream(stream, partitions=3)
            assert copied.result() == (100, 0)

    monkeypatch.setattr(module._Job, "_work", work)
    backfill(spark, url, stream, query=query, pk=("id",), key="rows.{id}")

    partitions = {message.key: message.partition or 0 for message in bus.scan(stream)}
    first = min(partitions.values())
    assert first > 0
    assert partitions == {f"rows.{n}": first + postbus.partition_of(f"rows.{n}", 3) for n in range(1, 101)}


def test_a_stream_of_one_message_per_key_gets_one_for_each(
    spark: Any, bus: postbus.Bus, url: str, name: str, table: str
) -> None:
    bus.create_stream(name, one_message_per_key=True)
    run_sql(url, "create table TABLE_ (id integer primary key, kind text not null)", table)
    run_sql(url, "insert into TABLE_ select i, 'kind-' || i % 3 from generate_series(1, 50) as i", table)

    backfill(spark, url, name, table=table, key="{kind}")

    assert {message.key for message in bus.scan(name)} == {"kind-0", "kind-1", "kind-2"}
    with psycopg.connect(url) as connection:
        state = connection.execute("select s.key from postbus.state(%s) as s", (name,)).fetchall()
    assert len(state) == 3


def test_a_released_snapshot_is_reported_as_gone(url: str) -> None:
    with psycopg.connect(url) as connection:
        (row,) = connection.execute("select pg_export_snapshot()").fetchall()

    with pytest.raises(postbus.Unavailable, match="is gone"), session.transaction(url, snapshot=row[0]):
        pass


def sleeping_count(url: str) -> int:
    statement = (
        "select count(*) from pg_stat_activity as a"
        " where a.datname = current_database() and a.wait_event = 'PgSleep' and a.query like '%copy_range%'"
    )
    with psycopg.connect(url) as connection:
        (row,) = connection.execute(statement.encode()).fetchall()
    return int(row[0])


def test_a_signal_ends_it_and_the_ranges_that_are_done_stand(
    spark: Any, bus: postbus.Bus, url: str, stream: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(url, "create table TABLE_ (id integer primary key)", table)
    run_sql(url, "insert into TABLE_ select generate_series(1, 50)", table)
    real = module._Job._work

    def work(self: Any) -> None:
        self._copier.copy(0)
        self._run.stop()
        module._close(url, self._copier.snapshot_id)
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(module._Job, "_work", work)
        done = backfill(spark, url, stream, table=table, batch=20)

    assert (done.messages, done.ranges_left, known(bus, stream).state) == (20, 2, "stopped")
    assert backfill(spark, url, stream, table=table, batch=20).messages == 30


def test_another_postgres_is_read_without_postbus_and_its_password_is_not_kept(
    spark: Any, bus: postbus.Bus, url: str, stream: str, spark_server: servers.Server
) -> None:
    with servers.database(spark_server.url, install=False) as other:
        run_sql(other, "create table TABLE_ (id bigint primary key)", "far")
        run_sql(other, "insert into TABLE_ select generate_series(1, 10)", "far")
        secret = other.replace("postbus@", "postbus:secret@")
        done = backfill(spark, url, stream, table="far", source=secret)

    assert done.messages == 10
    with psycopg.connect(url) as connection:
        (row,) = connection.execute(
            "select p::text from postbus_data.pipeline as p where name like %s", (f"% {stream} %",)
        )
    assert "secret" not in row[0]
    assert "postbus:***@" in row[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, postbus.InvalidInput, "a table or a query"),
        ({"table": "no.such"}, postbus.NotFound, 'table "no.such" does not exist'),
        ({"table": "TABLE_"}, postbus.InvalidInput, "has no primary key\nhint: name the columns to cut it by.*--pk"),
        ({"table": "TABLE_", "pk": ("ide",)}, postbus.InvalidInput, 'there is no column "ide"'),
        ({"table": "TABLE_", "pk": ("id",), "key": "a.{ide}"}, postbus.InvalidInput, 'no column "ide"\nhint: did you'),
        ({"query": "select 1 as id"}, postbus.InvalidInput, "a query has no primary key"),
        ({"query": "selec 1", "pk": ("id",)}, postbus.Error, "syntax error"),
        ({"query": "delete from TABLE_ returning id", "pk": ("id",)}, postbus.Error, "syntax error"),
        ({"table": "TABLE_", "pk": ("id",), "source": "env:NO_SUCH_NAME"}, postbus.InvalidInput, "NO_SUCH_NAME"),
        ({"table": "TABLE_", "pk": ("id",), "source": "postgresql://127.0.0.1:1/x"}, postbus.Unavailable, "connect"),
    ],
)
def test_impossible_options_are_one_line_errors(
    spark: Any, url: str, stream: str, table: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    run_sql(url, "create table TABLE_ (id integer)", table)
    given = {
        name: value.replace("TABLE_", table) if isinstance(value, str) else value for name, value in options.items()
    }
    with pytest.raises(error, match=message) as caught:
        backfill(spark, url, stream, **given)
    assert "\tat " not in str(caught.value)
