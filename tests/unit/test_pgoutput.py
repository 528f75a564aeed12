"""The decoder, on what a PostgreSQL 18 has sent."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest

from postbus.db.replication import pgoutput
from postbus.db.replication.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Event,
    Insert,
    LogicalMessage,
    Relation,
    Truncate,
    Update,
)
from postbus.model.errors import Error


@pytest.fixture(scope="module")
def events() -> list[Event | None]:
    recorded = json.loads(Path(__file__).with_name("recorded_pgoutput.json").read_text())
    messages = [
        base64.b64decode(each)
        if isinstance(each, str)
        else base64.b64decode(each["long"]).replace(b"<5000x>", b"x" * 5000)
        for each in recorded
    ]
    return [pgoutput.decode(message) for message in messages]


def test_each_message_is_known(events: list[Event | None]) -> None:
    assert None not in events


def test_transactions_begin_and_end(events: list[Event | None]) -> None:
    begins = [event for event in events if isinstance(event, Begin)]
    commits = [event for event in events if isinstance(event, Commit)]
    assert len(begins) == len(commits) == 6
    assert all(begin.commit_lsn < commit.end_lsn for begin, commit in zip(begins, commits, strict=True))
    assert begins[0].committed_at.tzinfo is not None
    assert [begin.xid for begin in begins] == sorted({begin.xid for begin in begins})


def test_a_table_is_described_before_its_first_change(events: list[Event | None]) -> None:
    first = next(event for event in events if isinstance(event, Relation))
    assert (first.name, first.identity) == ("t", "d")
    assert [(column.name, column.type_oid, column.is_key) for column in first.columns] == [
        ("id", 23, True),
        ("name", 25, False),
        ("body", 25, False),
        ("n", 1700, False),
    ]
    second = [event for event in events if isinstance(event, Relation)][1]
    assert (second.name, second.identity, second.columns[0].is_key) == ("u", "f", True)


def test_rows_have_the_text_of_their_values(events: list[Event | None]) -> None:
    inserts = [event for event in events if isinstance(event, Insert)]
    assert inserts[0].new == [b"1", "é".encode(), b"x" * 5000, b"1.50"]
    assert inserts[1].new == [b"2", None, None, None]


def test_updates_say_what_they_know_of_before(events: list[Event | None]) -> None:
    plain, key_change, full = (event for event in events if isinstance(event, Update))
    assert (plain.old, plain.new) == (None, [b"1", b"b", UNCHANGED, b"1.50"])
    assert (key_change.old, key_change.is_key, key_change.new[0]) == ([b"2", None, None, None], True, b"3")
    assert (full.old, full.is_key, full.new) == ([b"1"], False, [b"2"])


def test_deletes_truncates_and_logical_messages(events: list[Event | None]) -> None:
    by_key, full = (event for event in events if isinstance(event, Delete))
    assert (by_key.old, by_key.is_key) == ([b"3", None, None, None], True)
    assert (full.old, full.is_key) == ([b"2"], False)
    (truncate,) = (event for event in events if isinstance(event, Truncate))
    assert len(truncate.relations) == 2
    inside, outside = (event for event in events if isinstance(event, LogicalMessage))
    assert (inside.is_transactional, inside.prefix, inside.content) == (True, "note", b"hello")
    assert (outside.is_transactional, outside.prefix) == (False, "loose")


@pytest.mark.parametrize("kind", [b"Y", b"O", b"A"])
def test_types_origins_and_a_stray_abort_say_nothing(kind: bytes) -> None:
    assert pgoutput.decode(kind + b"\0" * 20) is None


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(Error, match="kind b'S'"):
        pgoutput.decode(b"S" + b"\0" * 10)
    with pytest.raises(Error, match="kind 'b'"):
        pgoutput.decode(b"I" + struct.pack("!I", 1) + b"N" + struct.pack("!H", 1) + b"b\0\0\0\0")


def test_positions_are_written_as_postgres_writes_them() -> None:
    assert pgoutput.format_lsn(0x16_B374_D848) == "16/B374D848"
    assert pgoutput.parse_lsn("16/B374D848") == 0x16_B374_D848
