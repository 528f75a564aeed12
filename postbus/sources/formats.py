"""Changes as the JSON of messages, in the formats that users can choose."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, Protocol

import orjson

from postbus.db.replication.pgoutput import Relation, Row
from postbus.sources.rendering import RowWriter

DEBEZIUM_UNCHANGED: Final = b'"__debezium_unavailable_value"'
_OPERATIONS: Final[Mapping[str, bytes]] = {
    "insert": b"c",
    "update": b"u",
    "delete": b"d",
    "read": b"r",
    "truncate": b"t",
}


@dataclass(slots=True)
class Origin:
    """The source as messages name it."""

    source: str
    database: str
    host: str


@dataclass(slots=True)
class Transaction:
    """The transaction of changes.

    Attributes:
        commit_lsn: Where its commit is.
        committed_at: When it was committed.
        xid: Its id.
        annotations: JSON that it has given by a logical message, or None.
        count: How many changes there are so far.
    """

    commit_lsn: int
    committed_at: datetime
    xid: int
    annotations: bytes | None = None
    count: int = 0


class Format(Protocol):
    """Builds the data of messages about one table."""

    def insert(self, transaction: Transaction, new: Row, action: str = "insert") -> bytes: ...

    def update(self, transaction: Transaction, old: Row | None, new: Row) -> bytes: ...

    def delete(self, transaction: Transaction, old: Row, *, is_key: bool) -> bytes: ...

    def truncate(self, transaction: Transaction) -> bytes: ...


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class SequinFormat:
    """record, changes, action and metadata. Of a deleted row, record is what is known: all of it, or its key."""

    def __init__(self, writer: RowWriter, origin: Origin, schema: str, table: str) -> None:
        self._writer = writer
        known = {
            "table_schema": schema,
            "table_name": table,
            "database_name": origin.database,
            "database": {"name": origin.database, "hostname": origin.host},
            "source": origin.source,
        }
        # To be continued.
        self._metadata = orjson.dumps(known)[:-1]
        self._of: Transaction | None = None
        self._shared = b""

    def insert(self, transaction: Transaction, new: Row, action: str = "insert") -> bytes:
        return self._message(transaction, self._writer.record(new), b"null", action, self._writer.unchanged(new))

    def update(self, transaction: Transaction, old: Row | None, new: Row) -> bytes:
        changes = b"null" if old is None else self._writer.changes(old, new)
        return self._message(transaction, self._writer.record(new), changes, "update", self._writer.unchanged(new))

    def delete(self, transaction: Transaction, old: Row, *, is_key: bool) -> bytes:
        record = self._writer.key_record(old) if is_key else self._writer.record(old)
        return self._message(transaction, record, b"null", "delete", ())

    def truncate(self, transaction: Transaction) -> bytes:
        return self._message(transaction, b"null", b"null", "truncate", ())

    def _message(
        self, transaction: Transaction, record: bytes, changes: bytes, action: str, unchanged: list[str] | tuple[()]
    ) -> bytes:
        number = transaction.count
        toast = b',"unchanged_toast":' + orjson.dumps(unchanged) if unchanged else b""
        return (
            b'{"record":%b,"changes":%b,"action":"%b","metadata":%b,"commit_idx":%d,"idempotency_key":"%X:%d"%b}}'
            % (
                record,
                changes,
                action.encode(),
                self._metadata_of(transaction),
                number,
                transaction.commit_lsn,
                number,
                toast,
            )
        )

    def _metadata_of(self, transaction: Transaction) -> bytes:
        """What all messages of a transaction and a table share."""
        if self._of is not transaction:
            self._of = transaction
            self._shared = self._metadata + (
                b',"commit_timestamp":"%b","commit_lsn":%d,"xid":%d,"transaction_annotations":%b'
                % (
                    _time(transaction.committed_at).encode(),
                    transaction.commit_lsn,
                    transaction.xid,
                    transaction.annotations or b"null",
                )
            )
        return self._shared


class Sequin2024Format(SequinFormat):
    """What Sequin published in 2024: data, deleted, changes and action."""

    def _message(
        self, transaction: Transaction, record: bytes, changes: bytes, action: str, unchanged: list[str] | tuple[()]
    ) -> bytes:
        deleted = b"true" if action == "delete" else b"false"
        toast = b',"unchanged_toast":' + orjson.dumps(unchanged) if unchanged else b""
        return b'{"data":%b,"deleted":%b,"changes":%b,"action":"%b"%b}' % (
            record,
            deleted,
            changes,
            action.encode(),
            toast,
        )


class DebeziumFormat:
    """before, after, source, op and ts_ms, as Debezium has them without schemas."""

    def __init__(self, writer: RowWriter, origin: Origin, schema: str, table: str) -> None:
        self._writer = writer
        self._origin = origin
        self._schema = schema
        self._table = table
        self._of: Transaction | None = None
        self._shared = b""

    def insert(self, transaction: Transaction, new: Row, action: str = "insert") -> bytes:
        return self._message(transaction, b"null", self._after(new), action)

    def update(self, transaction: Transaction, old: Row | None, new: Row) -> bytes:
        before = b"null" if old is None else self._writer.record(old)
        return self._message(transaction, before, self._after(new), "update")

    def delete(self, transaction: Transaction, old: Row, *, is_key: bool) -> bytes:
        before = self._writer.key_record(old) if is_key else self._writer.record(old)
        return self._message(transaction, before, b"null", "delete")

    def truncate(self, transaction: Transaction) -> bytes:
        return self._message(transaction, b"null", b"null", "truncate")

    def _after(self, new: Row) -> bytes:
        record = self._writer.record(new)
        unchanged = self._writer.unchanged(new)
        if not unchanged:
            return record
        marks = b",".join(orjson.dumps(name) + b":" + DEBEZIUM_UNCHANGED for name in unchanged)
        return record[:-1] + (b"," if len(record) > 2 else b"") + marks + b"}"

    def _message(self, transaction: Transaction, before: bytes, after: bytes, action: str) -> bytes:
        if self._of is not transaction:
            self._of = transaction
            self._shared = orjson.dumps(
                {
                    "version": version("postbus"),
                    "connector": "postgresql",
                    "name": self._origin.source,
                    "ts_ms": int(transaction.committed_at.timestamp() * 1000),
                    "db": self._origin.database,
                    "schema": self._schema,
                    "table": self._table,
                    "txId": transaction.xid,
                    "lsn": transaction.commit_lsn,
                }
            )[:-1]
        snapshot = b"incremental" if action == "read" else b"false"
        return (
            b'{"before":%b,"after":%b,"source":%b,"snapshot":"%b","sequence":"%d"},"op":"%b","ts_ms":%d,"transaction":null}'
            % (
                before,
                after,
                self._shared,
                snapshot,
                transaction.count,
                _OPERATIONS[action],
                int(time.time() * 1000),
            )
        )


def format_of(name: str, writer: RowWriter, origin: Origin, relation: Relation) -> Format:
    """The format by its name."""
    if name == "debezium":
        return DebeziumFormat(writer, origin, relation.schema, relation.name)
    kind = Sequin2024Format if name == "sequin2024" else SequinFormat
    return kind(writer, origin, relation.schema, relation.name)
