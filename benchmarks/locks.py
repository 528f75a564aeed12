"""What a lock on a partition costs, by its kind: the figures of docs/decisions/0017. Run: python -m benchmarks.locks"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from postbus.db.embedded import EmbeddedServer

_CALLS: Final = 500
_ROUNDS: Final = 7
# Each is what a claim would do: lock one of eight partitions, or find it locked.
_KINDS: Final = {
    "no lock": "is_free := true;",
    "advisory lock": "is_free := pg_try_advisory_xact_lock(1610612737, partition);",
    "row lock": "select true into is_free from bench.mutex as m where m.partition = $1 for update skip locked;",
    "row lock (for share)": "select true into is_free from bench.mutex as m where m.partition = $1 for share skip locked;",
    "relation lock": """
        begin
            lock table bench.partition_0 in share update exclusive mode nowait;
            is_free := true;
        exception when lock_not_available then
            is_free := false;
        end;
    """,
}
_SETUP: Final = """
create schema bench;
create table bench.mutex (partition integer primary key) with (fillfactor = 10);
insert into bench.mutex select generate_series(0, 7);
create table bench.partition_0 ();
create table bench.lease (token bigint, note text);
"""
_FUNCTION: Final = """
create function bench.claim_{place}_{writes}(partition integer) returns boolean language plpgsql as $$
declare
    is_free boolean;
begin
    {lock}
    {write}
    return coalesce(is_free, false);
end
$$
"""
_WRITE: Final = "insert into bench.lease values (partition, repeat('x', 100));"


def main() -> None:
    """Print the fastest round of each kind. TMPDIR says on which disk."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with EmbeddedServer(Path(folder) / "data", linger=0) as server:
            _measure(server.url)


def _measure(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, psycopg.connect(url) as holder:
        connection.execute(_SETUP.encode())
        connection.execute("checkpoint")
        for place, lock in enumerate(_KINDS.values()):
            for writes, write in (("idle", ""), ("busy", _WRITE)):
                text = _FUNCTION.format(place=place, writes=writes, lock=lock, write=write)
                connection.execute(text.encode())
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        # In turn, so that what else the machine does falls on all of them.
        for _ in range(_ROUNDS):
            for place, name in enumerate(_KINDS):
                found.setdefault((name, "alone"), []).append(_timed(connection, f"claim_{place}_idle"))
                found.setdefault((name, "in a claim"), []).append(_timed(connection, f"claim_{place}_busy"))
                holder.execute(f"select bench.claim_{place}_idle(0)".encode())
                found.setdefault((name, "found locked"), []).append(_timed(connection, f"claim_{place}_idle"))
                holder.rollback()
        for (name, where), rounds in found.items():
            micros, wal = min(rounds)
            print(f"{name:22} {where:14} {micros:>8.1f} µs {wal:>6.0f} bytes of WAL")


def _timed(connection: psycopg.Connection[tuple[object, ...]], function: str) -> tuple[float, float]:
    """Of one call, in a transaction of its own: µs, and bytes of WAL."""
    statement = f"select bench.{function}(0)".encode()
    start, began = _wal(connection), time.perf_counter()
    for _ in range(_CALLS):
        connection.execute(statement, prepare=True)
    return (time.perf_counter() - began) / _CALLS * 1e6, (_wal(connection) - start) / _CALLS


def _wal(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    row = connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(str(row[0]))


if __name__ == "__main__":
    main()
