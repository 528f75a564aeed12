"""The conversation with a walsender: start, receive, say how far we are. psycopg has it only in its libpq layer."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import psycopg
from psycopg import conninfo, pq

from postbus.db.errors import translate
from postbus.db.replication.pgoutput import format_lsn, parse_lsn
from postbus.model.errors import Error, InvalidInput, Unavailable

# So that values look the same whatever the database and the role have set, and as they do in the backfill.
SESSION_OPTIONS: Final = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    # A question must not hold up what has to be answered.
    "lock_timeout": "5s",
    "client_encoding": "UTF8",
}
_EPOCH_SECONDS: Final = 946_684_800
_status = struct.Struct("!cQQQqB").pack
_data_header = struct.Struct("!QQq")
_keepalive = struct.Struct("!QqB").unpack_from
_CONNECT_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class Data:
    """A message of the plugin."""

    content: bytes
    wal_end: int


@dataclass(frozen=True, slots=True)
class Keepalive:
    """All that was committed before wal_end was sent. The server may want an answer at once."""

    wal_end: int
    wants_answer: bool


@dataclass(frozen=True, slots=True)
class System:
    """Which Postgres it is.

    Attributes:
        identifier: Of the cluster; a copy has the same.
        timeline: Grows with each failover and each restore to a point in time.
        lsn: How far its log is flushed.
    """

    identifier: str
    timeline: int
    lsn: int


def connection_info(url: str, *, application: str, replication: bool = False) -> str:
    """What libpq needs to connect, with the settings of a session that shows values exactly.

    Raises:
        InvalidInput: The URL cannot be understood. It is a secret, so the message does not show it.
    """
    given = connection_parts(url)
    try:
        options = " ".join(f"-c {name}={value}" for name, value in SESSION_OPTIONS.items() if name != "client_encoding")
        settings: dict[str, str | int] = {
            **given,
            "options": f"{given.get('options') or ''} {options}".strip(),
            "client_encoding": "UTF8",
            "application_name": application,
            "connect_timeout": given.get("connect_timeout") or _CONNECT_SECONDS,
            # A peer that vanished is noticed, also while nothing has to be said.
            "keepalives_idle": given.get("keepalives_idle") or 10,
            "keepalives_interval": given.get("keepalives_interval") or 5,
            "keepalives_count": given.get("keepalives_count") or 3,
        }
        if replication:
            settings["replication"] = "database"
        return conninfo.make_conninfo("", **settings)
    except psycopg.ProgrammingError:
        raise url_problem() from None


def connection_parts(url: str) -> dict[str, str]:
    """What a URL says.

    Raises:
        InvalidInput: It cannot be understood. It is a secret, so the message does not show it.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise url_problem()
    try:
        given = conninfo.conninfo_to_dict(url)
        for host in str(given.get("host") or "").split(","):
            host.encode("idna")
    except (psycopg.ProgrammingError, UnicodeError):
        raise url_problem() from None
    return {name: str(value) for name, value in given.items() if value is not None}


def url_problem() -> InvalidInput:
    """The error for a URL that is none, which does not repeat it."""
    return InvalidInput(
        "the URL of the source cannot be understood",
        "it should look like postgresql://user:password@host:5432/database",
    )


class Walsender:
    """A replication connection. It is not for several threads."""

    def __init__(self, url: str, *, application: str = "postbus source") -> None:
        info = connection_info(url, application=application, replication=True)
        try:
            self._line = pq.PGconn.connect(info.encode())
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        if self._line.status != pq.ConnStatus.OK:
            message = " ".join(self._line.get_error_message().split())
            self._line.finish()
            raise Unavailable(f"cannot connect to the source for replication: {message}", _advice(message))
        self._poll = select.poll()
        self._poll.register(self._line.socket, select.POLLIN)
        self._is_streaming = False

    def identify(self) -> System:
        """Which Postgres this is, and where its log ends."""
        result = self._run("IDENTIFY_SYSTEM")
        identifier, timeline, lsn = (_value(result, 0, column) for column in range(3))
        return System(identifier, int(timeline), parse_lsn(lsn))

    def switch_of(self, timeline: int, ended: int) -> int | None:
        """Where the server's history left a timeline; None if it never was on it."""
        content = _value(self._run(f"TIMELINE_HISTORY {timeline:d}"), 0, 1)
        for line in content.splitlines():
            parts = line.split()
            if parts and parts[0] == str(ended):
                return parse_lsn(parts[1])
        return None

    def start(self, slot: str, lsn: int, publication: str, options: Mapping[str, str] | None = None) -> None:
        """Ask for all transactions that are committed after a position.

        Raises:
            Unavailable: Another process reads the slot.
            Error: The server refuses.
        """
        wanted = {
            "proto_version": "1",
            "publication_names": _quoted(publication),
            "messages": "true",
            **(options or {}),
        }
        listed = ", ".join(f"{name} {_literal(value)}" for name, value in wanted.items())
        self._run(
            f"START_REPLICATION SLOT {_quoted(slot)} LOGICAL {format_lsn(lsn)} ({listed})", pq.ExecStatus.COPY_BOTH
        )
        self._is_streaming = True

    def receive(self, timeout: float) -> Data | Keepalive | None:
        """The next message; None if none comes in time.

        Raises:
            Error: The server ended the stream. What it says is the message.
            Unavailable: The connection is lost.
        """
        received = self._take()
        if received is None and timeout >= 0:
            self._poll.poll(timeout * 1000)
            self._consume()
            received = self._take()
        return received

    def confirm(self, received: int, flushed: int, *, wants_answer: bool = False) -> None:
        """Say how far we have received, and up to where the server need keep nothing for us."""
        clock = int((time.time() - _EPOCH_SECONDS) * 1_000_000)
        try:
            self._line.put_copy_data(_status(b"r", received, flushed, flushed, clock, wants_answer))
            self._line.flush()
        except psycopg.Error as error:
            raise _lost(error) from error

    def close(self) -> None:
        self._line.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self) -> Data | Keepalive | None:
        try:
            size, content = self._line.get_copy_data(1)
        except psycopg.Error as error:
            raise _lost(error) from error
        if size == 0:
            return None
        if size < 0:
            raise self._ended()
        if content[0] == ord("w"):
            wal_start, wal_end, _ = _data_header.unpack_from(content, 1)
            return Data(bytes(content[25:]), max(wal_start, wal_end))
        if content[0] == ord("k"):
            wal_end, _, wants_answer = _keepalive(content, 1)
            return Keepalive(wal_end, bool(wants_answer))
        raise Error(f"the source has sent a message of kind {content[0]}, which is not known")

    def _consume(self) -> None:
        try:
            self._line.consume_input()
        except psycopg.Error as error:
            raise _lost(error) from error

    def _ended(self) -> Error:
        result = self._line.get_result()
        if result is None or result.status == pq.ExecStatus.COMMAND_OK or self._line.status != pq.ConnStatus.OK:
            return Unavailable("the source has ended the replication connection", "it is connected again by itself")
        return _refusal(psycopg.errors.error_from_result(result, encoding="utf-8"))

    def _run(self, command: str, wanted: pq.ExecStatus = pq.ExecStatus.TUPLES_OK) -> pq.abc.PGresult:
        try:
            result = self._line.exec_(command.encode())
        except psycopg.Error as error:
            raise _lost(error) from error
        if result.status != wanted:
            raise _refusal(psycopg.errors.error_from_result(result, encoding="utf-8"))
        return result


class SlotInUse(Unavailable):
    """Another process reads the slot."""


class SlotGone(Error):
    """The slot was dropped, or has lost what it kept."""


def _refusal(error: psycopg.Error) -> Error:
    said = error.diag.message_primary or " ".join(str(error).split())
    if error.sqlstate == "55006":
        return SlotInUse(said)
    if error.sqlstate in ("42704", "55000") and "slot" in said:
        return SlotGone(said)
    return translate(error)


def _lost(error: psycopg.Error) -> Unavailable:
    return Unavailable(
        f"the replication connection was lost: {' '.join(str(error).split())}", "it is made again by itself"
    )


def _advice(message: str) -> str:
    if "unsupported startup parameter" in message or "no such database" in message:
        return "a pooler such as PgBouncer does not pass replication on: give the source a URL that leads to Postgres itself"
    if "permission denied" in message or "must be superuser" in message:
        return "the role needs the right to replicate: alter role … replication"
    return "check host, port, password and pg_hba.conf; a pooler such as PgBouncer does not pass replication on"


def _value(result: pq.abc.PGresult, row: int, column: int) -> str:
    value = result.get_value(row, column)
    return "" if value is None else bytes(value).decode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
