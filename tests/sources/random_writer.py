"""Changes tables at random, in transactions of every kind, whatever happens to the server meanwhile."""

from __future__ import annotations

import random
import threading
from typing import Any, Final

import psycopg
from psycopg import sql

TABLES: Final = """
create table plain (id int primary key, name text, amount numeric(12, 2), doc jsonb, big text, at timestamptz, tags text[]);
alter table plain alter column big set storage external;
create table moving (a int, b text, value float8, primary key (a, b));
create table whole (id uuid primary key, n bigint, big text);
alter table whole alter column big set storage external;
alter table whole replica identity full;
"""
_LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)


class RandomWriter(threading.Thread):
    """Writes until it is stopped."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._chance = random.Random(seed)
        self._stop_asked = threading.Event()
        self.transaction_count = 0
        self.failure: BaseException | None = None

    def stop(self) -> None:
        self._stop_asked.set()

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                try:
                    self._write()
                except _LOST:
                    self._stop_asked.wait(0.1)
        except BaseException as failure:
            self.failure = failure
            raise

    def _write(self) -> None:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            while not self._stop_asked.is_set():
                try:
                    with connection.transaction():
                        self._transaction(connection)
                    self.transaction_count += 1
                except (
                    psycopg.errors.UniqueViolation,
                    psycopg.errors.DeadlockDetected,
                    psycopg.errors.LockNotAvailable,
                ):
                    continue
                except (psycopg.errors.UndefinedColumn, psycopg.errors.DuplicateColumn):
                    continue

    def _transaction(self, connection: psycopg.Connection[Any]) -> None:
        chance = self._chance
        if chance.random() < 0.02:
            self._define(connection)
            return
        if chance.random() < 0.01:
            connection.execute("set local lock_timeout = '1s'")
            connection.execute(chance.choice([b"truncate plain", b"truncate moving, whole"]))
        for _ in range(chance.randrange(1, 6)):
            if chance.random() < 0.2:
                # A savepoint, which may be rolled back.
                with connection.transaction(force_rollback=chance.random() < 0.5):
                    self._change(connection)
            else:
                self._change(connection)
        if chance.random() < 0.02:
            connection.execute(
                "insert into plain (id, name) select n, 'many' from generate_series(1000, %s::int) as n on conflict do nothing",
                (1000 + chance.randrange(2000),),
            )

    def _define(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("set local lock_timeout = '1s'")
        column = sql.Identifier(f"extra_{self._chance.randrange(3)}")
        if self._chance.random() < 0.5:
            connection.execute(sql.SQL("alter table plain add column if not exists {} int").format(column))
        else:
            connection.execute(sql.SQL("alter table plain drop column if exists {}").format(column))

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        chance = self._chance
        row, other = chance.randrange(60), chance.randrange(60)
        big = chance.choice("xyz") * chance.choice([10, 9000])
        changes: list[tuple[str, tuple[Any, ...]]] = [
            (
                """
                insert into plain values (%s, %s, %s, %s, %s, clock_timestamp(), %s) on conflict (id) do update
                set name = excluded.name, doc = excluded.doc
                """,
                (row, f'n"{other}\\', other / 7, f'{{"k": [{row}, 1.50]}}', big, ["a", 'b"', None]),
            ),
            ("update plain set amount = coalesce(amount, 0) + 1.25 where id = %s", (row,)),
            ("update plain set big = %s where id = %s", (big, row)),
            ("update plain set id = %s where id = %s", (other, row)),
            ("delete from plain where id = %s", (row,)),
            ("insert into moving values (%s, %s, random()) on conflict do nothing", (row, f"b.{other % 5}")),
            ("update moving set a = a + 1 where a = %s", (row,)),
            ("update moving set b = b || 'x', value = 'NaN' where a = %s and length(b) < 9", (row,)),
            ("delete from moving where a between %s and %s", (row, row + 2)),
            (
                "insert into whole values (md5(%s::text)::uuid, %s, %s) on conflict (id) do update set n = 0",
                (row, 2**62 + row, big),
            ),
            ("update whole set n = n + 1 where id = md5(%s::text)::uuid", (row,)),
            ("update whole set id = md5(%s::text)::uuid where id = md5(%s::text)::uuid", (other, row)),
            ("delete from whole where id = md5(%s::text)::uuid", (row,)),
        ]
        statement, values = chance.choice(changes)
        connection.execute(statement.encode(), values)
