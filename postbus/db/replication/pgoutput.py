"""Decodes the messages of the plugin pgoutput, version 1 of its protocol, with values as text.

Version 1 sends whole transactions after their commit. That is what a source wants: what was rolled back never comes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from postbus.model.errors import Error

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_count = struct.Struct("!H").unpack_from
_length = struct.Struct("!I").unpack_from
_begin = struct.Struct("!QqI").unpack_from
_commit = struct.Struct("!BQQq").unpack_from
_truncate = struct.Struct("!IB").unpack_from
_message = struct.Struct("!BQ").unpack_from
_NULL: Final = ord("n")
_UNCHANGED: Final = ord("u")
_TEXT: Final = ord("t")


class Unchanged(Enum):
    """Stands for a large value that an update did not change, and that the server did not send."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value = bytes | None | Unchanged
Row = list[Value]


@dataclass(frozen=True, slots=True)
class Begin:
    """The beginning of a transaction.

    Attributes:
        commit_lsn: Where its commit is in the log.
        committed_at: When it was committed.
        xid: Its id, of 32 bits.
    """

    commit_lsn: int
    committed_at: datetime
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction.

    Attributes:
        end_lsn: Where the log continues.
    """

    end_lsn: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that is published.

    Attributes:
        name: Its name.
        type_oid: Its type.
        type_modifier: The modifier of the type, such as a precision; -1 for none.
        is_key: Whether it belongs to the replica identity.
    """

    name: str
    type_oid: int
    type_modifier: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is for the changes that follow.

    Attributes:
        oid: Its id.
        schema: Its schema.
        name: Its name.
        identity: What of an old row is sent: "d" the primary key, "i" an index, "f" all, "n" nothing.
        columns: Its published columns.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    new: Row


@dataclass(frozen=True, slots=True)
class Update:
    """Attributes: old is the whole old row, or only its key (is_key); None when the key is the same and the rest unknown."""

    relation: int
    old: Row | None
    is_key: bool
    new: Row


@dataclass(frozen=True, slots=True)
class Delete:
    relation: int
    old: Row
    is_key: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What somebody wrote into the log by pg_logical_emit_message."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


Event = Begin | Commit | Relation | Insert | Update | Delete | Truncate | LogicalMessage


def decode(data: bytes) -> Event | None:
    """A message; None for one that says nothing about rows.

    Raises:
        Error: It is not one of version 1.
    """
    kind = data[:1]
    if kind == b"I":
        return Insert(_length(data, 1)[0], _row(data, 6)[0])
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        return Delete(_length(data, 1)[0], _row(data, 6)[0], data[5:6] == b"K")
    if kind == b"B":
        commit_lsn, time, xid = _begin(data, 1)
        return Begin(commit_lsn, _EPOCH + timedelta(microseconds=time), xid)
    if kind == b"C":
        return Commit(_commit(data, 1)[2])
    return _other(kind, data)


def _other(kind: bytes, data: bytes) -> Event | None:
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count, _ = _truncate(data, 1)
        return Truncate(struct.unpack_from(f"!{count}I", data, 6))
    if kind == b"M":
        return _logical_message(data)
    # Types, origins; and the end of a stream that version 1 does not have, but PostgreSQL 18 may send.
    if kind in (b"Y", b"O", b"A"):
        return None
    raise Error(f"the source has sent a message of kind {kind!r}, which is not known")


def _update(data: bytes) -> Update:
    relation = _length(data, 1)[0]
    mark = data[5:6]
    if mark == b"N":
        return Update(relation, None, False, _row(data, 6)[0])
    old, end = _row(data, 6)
    return Update(relation, old, mark == b"K", _row(data, end + 1)[0])


def _row(data: bytes, at: int) -> tuple[Row, int]:
    """The values of a row, and where the rest begins."""
    row: Row = []
    (count,) = _count(data, at)
    at += 2
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            begin = at + 5
            at = begin + _length(data, at + 1)[0]
            row.append(data[begin:at])
            continue
        at += 1
        if kind == _NULL:
            row.append(None)
        elif kind == _UNCHANGED:
            row.append(UNCHANGED)
        else:
            raise Error(f"the source has sent a value of kind {chr(kind)!r}, which is not known")
    return row, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _relation(data: bytes) -> Relation:
    (oid,) = _length(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _count(data, at + 1)
    at += 3
    columns: list[Column] = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        type_oid, modifier = struct.unpack_from("!Ii", data, at)
        at += 8
        columns.append(Column(column, type_oid, modifier, is_key))
    # Types of pg_catalog have no name there.
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _logical_message(data: bytes) -> LogicalMessage:
    flags, lsn = _message(data, 1)
    prefix, at = _text(data, 10)
    (length,) = _length(data, at)
    return LogicalMessage(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + length])


def format_lsn(lsn: int) -> str:
    """A position in the log as Postgres writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def key_of(relation: Relation, row: Sequence[Value]) -> tuple[Value, ...]:
    """The values of the key among those of a row."""
    return tuple(value for column, value in zip(relation.columns, row, strict=True) if column.is_key)
