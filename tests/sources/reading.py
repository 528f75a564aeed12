"""A source, its readers in threads, and what the stream has of it."""

from __future__ import annotations

import json
import threading
import time
from typing import Any
from uuid import uuid4

import psycopg

import postbus
from postbus.sources import catalog
from postbus.sources.reader import Reader
from tests.waiting import until


class SourceBed:
    """Tables and a bus in one database.

    Attributes:
        sql: A session in autocommit.
    """

    def __init__(self, url: str, bus: postbus.Bus, sql: psycopg.Connection[Any]) -> None:
        self.url = url
        self.bus = bus
        self.sql = sql
        self._held: HeldCommit | None = None
        self._readers: list[tuple[Reader, threading.Thread]] = []

    @property
    def prefix(self) -> str:
        """What the keys of messages begin with."""
        ((schema,),) = self.sql.execute("select current_schema()").fetchall()
        return f"{self.sql.info.dbname}.{schema}"

    def create(self, *tables: str, name: str = "shop", stream: str = "changes", **settings: Any) -> None:
        """Create a source by SQL; its reader makes slot and publication."""
        given = {"backfill": False, **settings}
        listed = "".join(f", {key} => %({key})s" for key in given)
        self.sql.execute(
            f"select postbus.create_source(%(name)s, %(stream)s, %(tables)s{listed})".encode(),
            {"name": name, "stream": stream, "tables": list(tables), **given},
        )

    def read(self, name: str = "shop", url: str | None = None) -> Reader:
        """Start a reader."""
        reader = Reader(url or self.url, name, uuid4())

        def run() -> None:
            while not reader._stop.is_set():
                reader.run()
                reader._stop.wait(0.05)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._readers.append((reader, thread))
        return reader

    def start(self, name: str = "shop") -> Reader:
        """Start a reader and wait until it streams."""
        reader = self.read(name)
        self.wait_for("streaming", name)
        return reader

    def stop(self) -> None:
        """Stop all readers."""
        for reader, _ in self._readers:
            reader.stop()
        for _, thread in self._readers:
            thread.join(30)
            assert not thread.is_alive()
        self._readers.clear()
        # The server notices a little later.
        mine = "select from pg_replication_slots where database = current_database() and active"
        until(lambda: not self.sql.execute(mine).fetchall(), "the slots are free")

    def info(self, name: str = "shop") -> dict[str, Any]:
        cursor = self.sql.execute("select to_jsonb(s) from postbus.list_sources(%s) as s", (name,))
        row = cursor.fetchone()
        assert row is not None
        found: dict[str, Any] = row[0]
        return found

    def wait_for(self, state: str, name: str = "shop", seconds: float = 30) -> dict[str, Any]:
        try:
            until(lambda: self.info(name)["state"] == state, state, seconds=seconds)
        except AssertionError:
            raise AssertionError(self.info(name)) from None
        return self.info(name)

    def messages(self, stream: str = "changes") -> list[Any]:
        return sorted(self.bus.read(stream, max_messages=10_000), key=lambda message: message.seq)

    def data(self, stream: str = "changes") -> list[dict[str, Any]]:
        """The data of all messages, in order of their seqs."""
        return [message.data for message in self.messages(stream)]

    def wait_for_messages(self, count: int, stream: str = "changes", seconds: float = 30) -> list[dict[str, Any]]:
        until(lambda: len(self.messages(stream)) >= count, f"{count} messages: {self.info()}", seconds=seconds)
        found = self.data(stream)
        assert len(found) == count, json.dumps(found, default=str)[:3000]
        return found

    def all_messages(self, stream: str = "changes") -> list[Any]:
        """All messages, however many, in order."""
        found: list[Any] = []
        page = self.bus.read(stream, max_messages=10_000)
        while page:
            found += page
            page = self.bus.read(
                stream, max_messages=10_000, from_seq=max(int(message.seq or 0) for message in page) + 1
            )
        return sorted(found, key=lambda message: int(message.seq))

    def wait_for_rows(self, count: int, stream: str = "changes") -> None:
        until(lambda: len(self.all_messages(stream)) >= count, f"{count} messages", seconds=60)

    def stay_at_messages(self, count: int, seconds: float = 1.0) -> None:
        """See that nothing more is published for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert len(self.messages()) == count
            time.sleep(0.05)

    def hold_commits(self, statement: str) -> HeldCommit:
        """Commit a statement in a session that then waits for a standby, which never comes until it is released."""
        self._held = HeldCommit(self.url, statement)
        return self._held

    def caught_up(self, name: str = "shop", seconds: float = 30) -> None:
        """Wait until everything that was committed before is published, by a row of a table of its own."""
        target = self.sql.execute("select pg_current_wal_lsn()").fetchone()
        assert target is not None

        def is_there() -> bool:
            info = self.info(name)
            return bool(info["state"] == "streaming" and info["lag_bytes"] == 0)

        until(is_there, f"the source has caught up: {self.info(name)}", seconds=seconds)

    def advance_slot(self) -> None:
        """Let the slot forget what it has."""
        for name in self.slot_names():
            self.sql.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", (name,))

    def slot_names(self) -> list[str]:
        return [
            name
            for (name,) in self.sql.execute(
                "select slot_name from pg_replication_slots where database = current_database()"
            )
        ]

    def close(self) -> None:
        """Leave no slot behind, or the database could not be dropped."""
        if self._held is not None:
            self._held.release()
        self.stop()
        with catalog.open_source(self.url, "tests") as database:
            for name in self.slot_names():
                catalog.drop_slot(database, name)


class HeldCommit:
    """A commit that is written, but that others do not see yet."""

    def __init__(self, url: str, statement: str) -> None:
        self._url = url
        with psycopg.connect(url, autocommit=True) as sql:
            # Only sessions that ask for it wait.
            sql.execute("alter system set synchronous_commit = local")
            sql.execute("alter system set synchronous_standby_names = 'nobody'")
            sql.execute("select pg_reload_conf()")
        self._thread = threading.Thread(target=self._commit, args=(statement,), daemon=True)
        self._thread.start()
        with psycopg.connect(url, autocommit=True) as sql:
            until(
                lambda: sql.execute("select from pg_stat_activity where wait_event = 'SyncRep'").fetchall(),
                "the commit waits",
            )

    def _commit(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True, options="-c synchronous_commit=on") as sql:
            sql.execute(statement.encode())

    def release(self) -> None:
        """Let it go on."""
        with psycopg.connect(self._url, autocommit=True) as sql:
            sql.execute("alter system reset synchronous_commit")
            sql.execute("alter system reset synchronous_standby_names")
            sql.execute("select pg_reload_conf()")
        self._thread.join(30)
        assert not self._thread.is_alive()
