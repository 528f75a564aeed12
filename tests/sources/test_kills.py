"""Random transactions while readers, servers and Postgres are killed: the stream alone has every table as it is."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.codec.exact_json import decode_exactly
from postbus.db import migrations
from postbus.db.replication.pgoutput import parse_lsn
from tests import servers
from tests.clusters import Cluster
from tests.sources.random_writer import TABLES, RandomWriter
from tests.sources.rebuilding import Message, differences, rebuilt
from tests.waiting import until

# The oldest takes its turn in the slow tests: what differs is what Postgres sends, which the other tests see too.
SERVERS = ["pg18", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pg15",) if name in servers.names())]


@pytest.fixture(params=SERVERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with servers.data_directory() as folder, Cluster(folder / "a", request.param) as cluster:
        cluster.create()
        cluster.stop()
        cluster.set(wal_level="logical", wal_sender_timeout="5s", max_wal_senders="10")
        cluster.start()
        migrations.migrate(cluster.url)
        yield cluster


class ReaderProcess:
    """A process that reads the sources."""

    def __init__(self, url: str, log: Path, *, with_server: bool = False, confirm_delay: float = 10.0) -> None:
        self._command = [sys.executable, "-m", "tests.sources.run_reader", url, str(confirm_delay)]
        if with_server:
            program = str(Path(sys.executable).with_name("postbus"))
            self._command = [program, "up", "--url", url, "--port", "0", "--no-access-log"]
        self._log = log
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(40)


def positions_reach(url: str, lsn: int) -> bool:
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as sql:
        row = sql.execute("select position, state, lag_bytes from postbus.list_sources('shop')").fetchone()
        return (
            row is not None
            and row[0] is not None
            and (parse_lsn(row[0]) >= lsn or (row[1] == "streaming" and row[2] == 0))
        )
    return False


def all_messages(url: str) -> list[Message]:
    """All messages in order, with every digit of their numbers."""
    logs = "select relname from pg_class where relname ~ '^log_1_[0-9]+$' and relkind = 'r'"
    rows: list[tuple[int, str, str]] = []
    with psycopg.connect(url, autocommit=True) as sql:
        for (name,) in sql.execute(logs).fetchall():
            rows += sql.execute(f"select seq, key, data::text from postbus_data.{name}".encode()).fetchall()
    return [Message(key, decode_exactly(text)) for _, key, text in sorted(rows)]


def run(cluster: Cluster, log: Path, seconds: float, seed: int, *, with_server: bool = False) -> None:
    chance = random.Random(seed)
    with postbus.connect(cluster.url, upkeep=False) as bus, psycopg.connect(cluster.url, autocommit=True) as sql:
        sql.execute(TABLES.encode())
        sql.execute(
            "insert into plain (id, name, big) select n, 'old', repeat('o', 9000) from generate_series(0, 40) as n"
        )
        sql.execute("insert into moving select n, 'b', n from generate_series(0, 5000) as n")
        bus.create_stream("changes", partitions=4)
        bus.sources.create("shop", "changes", tables=["plain", "moving", "whole"])
    reader = ReaderProcess(cluster.url, log, with_server=with_server)
    writers = [RandomWriter(cluster.url, seed + number) for number in range(2)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.3, 1.5))
            choice = chance.random()
            if choice < 0.5:
                reader.restart()
            elif choice < 0.75:
                with suppress(psycopg.Error), psycopg.connect(cluster.url, autocommit=True) as sql:
                    sql.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'postbus%'"
                    )
            elif choice < 0.9:
                reader.process.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.2, 1.0))
                reader.process.send_signal(signal.SIGCONT)
            else:
                cluster.kill()
                cluster.start()
        for writer in writers:
            writer.stop()
        for writer in writers:
            writer.join(30)
            assert writer.failure is None
        with psycopg.connect(cluster.url, autocommit=True) as sql:
            (text,) = sql.execute("select pg_current_wal_lsn()::text").fetchone() or ("",)
        until(lambda: positions_reach(cluster.url, parse_lsn(text)), "all is published", seconds=60)
    finally:
        for writer in writers:
            writer.stop()
        reader.stop()
    check(cluster.url, seed, sum(writer.transaction_count for writer in writers), log)


def check(url: str, seed: int, transaction_count: int, log: Path) -> None:
    messages = all_messages(url)
    tables = rebuilt(messages)
    with psycopg.connect(url, autocommit=True) as sql:
        for table in ("plain", "moving", "whole"):
            found = differences(sql, table, tables.get(table, {}).values())
            assert not found, f"seed {seed}: {table}: {found}\n{log.read_text()[-3000:]}"
    changes = [message.data["metadata"] for message in messages if message.data["action"] != "read"]
    # Each change once, and in the order of its transaction.
    ids = [(each["commit_lsn"], each["commit_idx"]) for each in changes]
    assert len(ids) == len(set(ids)), f"seed {seed}: something was published twice"
    assert ids == sorted(ids), f"seed {seed}: out of order"
    assert transaction_count > 20


def test_tables_can_be_rebuilt_from_the_stream_whatever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    run(cluster, tmp_path / "log", 6, int(os.environ.get("POSTBUS_SEED", random.randrange(1 << 30))))


@pytest.mark.slow
@pytest.mark.parametrize("with_server", [False, True], ids=["reader", "server"])
def test_tables_can_be_rebuilt_after_many_kills(cluster: Cluster, tmp_path: Path, with_server: bool) -> None:
    seed = int(os.environ.get("POSTBUS_SEED", random.randrange(1 << 30)))
    run(cluster, tmp_path / "log", 120, seed, with_server=with_server)


def test_a_frozen_reader_that_is_thawed_publishes_nothing_twice(cluster: Cluster, tmp_path: Path) -> None:
    with postbus.connect(cluster.url, upkeep=False) as bus, psycopg.connect(cluster.url, autocommit=True) as sql:
        sql.execute("create table orders (id int primary key)")
        bus.create_stream("changes")
        bus.sources.create("shop", "changes", tables=["orders"], backfill=False)
        first = ReaderProcess(cluster.url, tmp_path / "first")
        until(lambda: bus.sources.info("shop").state == "streaming", "it streams")
        second = ReaderProcess(cluster.url, tmp_path / "second")
        for number in range(200):
            sql.execute("insert into orders values (%s)", (number,))
        first.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        for number in range(200, 400):
            sql.execute("insert into orders values (%s)", (number,))
        until(lambda: len(list(bus.scan("changes"))) == 400, "the other one has taken over", seconds=20)
        assert time.monotonic() - began < 15
        first.process.send_signal(signal.SIGCONT)
        for number in range(400, 500):
            sql.execute("insert into orders values (%s)", (number,))
        until(lambda: len(list(bus.scan("changes"))) >= 500, "all", seconds=20)
        time.sleep(1)
        first.stop()
        second.stop()

        ids = [
            message.data["record"]["id"] for message in sorted(bus.scan("changes"), key=lambda each: int(each.seq or 0))
        ]
    assert ids == list(range(500))


@pytest.mark.newest_server
def test_a_bus_that_is_restored_to_an_older_state_ends_in_a_gap(tmp_path: Path) -> None:
    with (
        servers.data_directory() as folder,
        Cluster(folder / "shop", "pg18") as shop,
        Cluster(folder / "bus", "pg18") as home,
        Cluster(folder / "copy", "pg18") as copy,
    ):
        shop.create()
        shop.stop()
        shop.set(wal_level="logical")
        shop.start()
        home.create()
        migrations.migrate(home.url)
        with postbus.connect(home.url, upkeep=False) as bus, psycopg.connect(shop.url, autocommit=True) as sql:
            sql.execute("create table orders (id int primary key)")
            bus.create_stream("changes")
            bus.sources.create("shop", "changes", tables=["orders"], url=shop.url, backfill=False)
            copy.copy_of(home)
            reader = ReaderProcess(home.url, tmp_path / "log", confirm_delay=0.0)
            sql.execute("insert into orders values (1)")
            until(lambda: len(list(bus.scan("changes"))) == 1, "published")
            info = bus.sources.info("shop")
            # What is confirmed cannot be read again.
            until(
                lambda: (
                    sql.execute(
                        "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots", (info.position,)
                    ).fetchone()
                    == (True,)
                ),
                "confirmed",
            )
            reader.stop()
        home.stop()
        copy.start()
        reader = ReaderProcess(copy.url, tmp_path / "log")
        with postbus.connect(copy.url, upkeep=False) as bus:
            until(lambda: bus.sources.info("shop").state == "gap", "gap")
            assert list(bus.scan("changes")) == []
        reader.stop()


@pytest.mark.slow
def test_a_source_that_failed_over_goes_on_only_where_nothing_is_missing(tmp_path: Path) -> None:
    """A standby that lacked the newest transactions has diverged; one that has them all may lack the slot."""
    with (
        servers.data_directory() as folder,
        Cluster(folder / "shop", "pg18") as shop,
        Cluster(folder / "late", "pg18") as late,
        Cluster(folder / "whole", "pg18") as whole,
        Cluster(folder / "bus", "pg18") as home,
    ):
        for cluster in (shop, home):
            cluster.create()
        shop.stop()
        shop.set(wal_level="logical", max_wal_senders="10")
        shop.start()
        migrations.migrate(home.url)
        with postbus.connect(home.url, upkeep=False) as bus, psycopg.connect(shop.url, autocommit=True) as sql:
            sql.execute("create table orders (id int primary key)")
            bus.create_stream("changes")
            bus.sources.create("shop", "changes", tables=["orders"], url=shop.url, backfill=False)
            late.copy_of(shop, "--write-recovery-conf", "--wal-method=stream")
            reader = ReaderProcess(home.url, tmp_path / "log")
            sql.execute("insert into orders select n from generate_series(1, 1000) as n")
            until(lambda: len(list(bus.scan("changes"))) == 1000, "published")
            whole.copy_of(shop, "--write-recovery-conf", "--wal-method=stream")
            whole.start()
            sql.execute("insert into orders values (0)")
            until(lambda: len(list(bus.scan("changes"))) == 1001, "published")
            whole.has_all_of(shop)
        shop.stop()
        # It never comes to have the changes.
        (late.data / "standby.signal").unlink()
        late.start()
        late.stop()
        (late.data / "standby.signal").touch()
        late.start()
        late.promote()
        whole.promote()
        with postbus.connect(home.url, upkeep=False) as bus:
            bus.sources.alter("shop", url=late.url)
            until(lambda: bus.sources.info("shop").state == "diverged", f"diverged: {bus.sources.info('shop')}")
            bus.sources.alter("shop", url=whole.url)
            until(lambda: bus.sources.info("shop").state == "slot_lost", "slot lost")
            bus.sources.restart("shop")
            until(lambda: bus.sources.info("shop").state == "streaming", "streaming")
            until(lambda: len(list(bus.scan("changes"))) == 2002, "all rows are read again")
        reader.stop()
