"""Changes of tables that become messages: how fast a log is read, existing rows are, in how much memory, and how late."""

from __future__ import annotations

import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import psycopg
from psycopg import sql

import postbus
from benchmarks.comparison import Measurement, Single
from postbus.db.embedded import binaries

_TABLE: Final = """
create table if not exists accounts (
    aid integer primary key, bid integer, abalance integer, filler char(84), name text,
    at timestamptz default now(), rate numeric(10, 2), is_open boolean
)
"""
_READER: Final = """
import signal, sys
from postbus.sources.runner import SourceRunner
runner = SourceRunner(sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: runner.stop())
runner.run()
"""
# Small transactions, as pgbench has them.
_LOAD: Final = """
do $$
begin
    for i in 1..{count} loop
        update accounts set abalance = abalance + 1 where aid = 1 + (i * 7919) % 10000;
        if i % 4 = 0 then
            commit;
        end if;
    end loop;
end
$$
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A source whose reader has not begun, and where the log ended when its changes were written."""

    url: str
    name: str
    slot: str
    publication: str
    end_lsn: str


@contextmanager
def source(
    url: str, *, change_count: int = 0, row_count: int = 10_000, in_one: bool = False, backfill: bool = False
) -> Iterator[Prepared]:
    """A source with changes in its log that nobody has read, or with rows."""
    name = f"bench_{secrets.token_hex(4)}"
    with postbus.connect(url, upkeep=False) as bus, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists accounts")
        connection.execute(_TABLE.encode())
        connection.execute(
            "insert into accounts select n, n %% 10, 0, 'f', 'account ' || n, now(), n / 100.0, true "
            "from generate_series(1, %s::int) as n",
            (row_count,),
        )
        bus.create_stream(name)
        bus.sources.create(name, name, tables=["accounts"], backfill=backfill, paused=True)
        info = bus.sources.info(name)
        connection.execute("set synchronous_commit = off")
        if in_one:
            connection.execute(
                "insert into accounts select n, 1, 0, 'f', 'new', now(), 1, true from generate_series(%s::int, %s::int) as n",
                (row_count + 1, row_count + change_count),
            )
        elif change_count:
            connection.execute(sql.SQL(_LOAD).format(count=sql.Literal(change_count)))
        connection.execute("set synchronous_commit = on")
        connection.execute("select pg_logical_emit_message(true, 'bench', '')")
        (end,) = connection.execute("select pg_current_wal_lsn()::text").fetchone() or ("0/0",)
        try:
            yield Prepared(url, name, info.slot, info.publication, end)
        finally:
            bus.sources.drop(name)
            bus.drop_stream(name)


@contextmanager
def reader(prepared: Prepared) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads the sources."""
    with postbus.connect(prepared.url, upkeep=False) as bus:
        bus.sources.resume(prepared.name)
    process = subprocess.Popen([sys.executable, "-c", _READER, prepared.url], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def read_log(url: str, change_count: int) -> Measurement:
    """One round: from the first message of the log to the last."""
    with source(url, change_count=change_count) as prepared, reader(prepared):
        started_at = _published(prepared, 1)
        ended_at = _published(prepared, change_count)
    return Measurement(change_count, ended_at - started_at)


def receive_log(url: str, change_count: int) -> Measurement:
    """One round of pg_recvlogical, which writes the same log to a file."""
    with source(url, change_count=change_count) as prepared, tempfile.NamedTemporaryFile() as file:
        program = binaries.find(18).program("pg_recvlogical")
        command = [
            program, f"--dbname={url}", f"--slot={prepared.slot}", "--start", "--no-loop", f"--endpos={prepared.end_lsn}",
            "--option=proto_version=1", f"--option=publication_names={prepared.publication}", f"--file={file.name}",
        ]  # fmt: skip
        started_at = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        return Measurement(change_count, time.monotonic() - started_at)


def backfill(url: str, row_count: int) -> Measurement:
    """One round of existing rows."""
    with source(url, row_count=row_count, backfill=True) as prepared, reader(prepared):
        started_at = _published(prepared, 1)
        ended_at = _published(prepared, row_count)
    return Measurement(row_count, ended_at - started_at)


def memory(url: str, change_count: int) -> Single:
    """The most memory of the reader during one large transaction, in MB."""
    with source(url, change_count=change_count, in_one=True) as prepared, reader(prepared) as process:
        _published(prepared, change_count)
        status = open(f"/proc/{process.pid}/status").read()  # noqa: SIM115
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return Single(int(kilobytes) * 1024 / 1e6)


def delay(url: str, change_count: int, per_second: int) -> Single:
    """The median time from before a change is committed until a consumer has its message, in milliseconds."""
    with source(url) as prepared, reader(prepared), postbus.connect(url, upkeep=False) as bus:
        while bus.sources.info(prepared.name).state != "streaming":
            time.sleep(0.05)
        consumer = bus.create_consumer(prepared.name, "c", start="latest")
        delays: list[float] = []

        def write() -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                for number in range(change_count):
                    now = datetime.now(UTC).isoformat()
                    connection.execute("update accounts set name = %s where aid = %s", (now, number % 10_000 + 1))
                    time.sleep(1 / per_second)

        writer = threading.Thread(target=write)
        writer.start()
        while len(delays) < change_count:
            batch = consumer.receive(100, wait=5)
            now = datetime.now(UTC)
            delays += [(now - datetime.fromisoformat(each.data["record"]["name"])).total_seconds() for each in batch]
            consumer.ack(batch)
        writer.join()
    return Single(statistics.median(delays) * 1000)


def _published(prepared: Prepared, count: int) -> float:
    """When so many messages were there."""
    statement = sql.SQL("select s.last_seq from postbus.stream_info({}) as s").format(sql.Literal(prepared.name))
    with psycopg.connect(prepared.url, autocommit=True) as connection:
        while True:
            row = connection.execute(statement).fetchone()
            if row is not None and row[0] >= count:
                return time.monotonic()
            time.sleep(0.01)
