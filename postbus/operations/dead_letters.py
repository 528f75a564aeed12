"""Redelivery: dead letters and replay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from postbus.codec import answers, parameters, rows
from postbus.model.consumer import DeadLetter
from postbus.operations.call import Call, DataSql, Http, Route, Sql, count, first

_PATH: Final = "/api/streams/{stream}/consumers/{consumer}"
LIST: Final = Route("GET", _PATH + "/dead_letters", "consume")
REDRIVE: Final = Route("POST", _PATH + "/dead_letters/redrive", "manage")
DISCARD: Final = Route("POST", _PATH + "/dead_letters/discard", "manage")
REPLAY: Final = Route("POST", _PATH + "/replay", "manage")


def list_page(
    stream: str,
    consumer: str,
    *,
    seqs: Sequence[int] | None,
    key_pattern: str | None,
    reason_like: str | None,
    after_seq: int,
    max_messages: int,
) -> Call[list[DeadLetter]]:
    return Call(
        DataSql(
            stream,
            """
select d.*
from postbus.dead_letters($1, $2, seqs => $3, key_pattern => $4, reason_like => $5, after_seq => $6, max_messages => $7) as d
""",
            (stream, consumer, parameters.bigint_array(seqs), key_pattern, reason_like, after_seq, max_messages),
            lambda data_type, found: [rows.dead_letter(data_type, row) for row in found],
        ),
        Http(
            LIST,
            (stream, consumer),
            lambda answer: [answers.dead_letter(each) for each in answer.data],
            query={
                "seqs": None if seqs is None else ",".join(map(str, seqs)),
                "key_pattern": key_pattern,
                "reason_like": reason_like,
                "after_seq": after_seq or None,
                "limit": max_messages,
            },
        ),
        repeatable=True,
    )


def discard_page(
    stream: str, consumer: str, *, seqs: Sequence[int] | None, key_pattern: str | None, reason_like: str | None
) -> Call[int]:
    return Call(
        Sql(
            "select postbus.discard($1, $2, seqs => $3, key_pattern => $4, reason_like => $5)",
            (stream, consumer, parameters.bigint_array(seqs), key_pattern, reason_like),
            first,
        ),
        Http(
            DISCARD,
            (stream, consumer),
            count,
            body={"seqs": seqs and list(seqs), "key_pattern": key_pattern, "reason_like": reason_like},
        ),
    )


def redrive_page(
    stream: str,
    consumer: str,
    *,
    seqs: Sequence[int] | None,
    key_pattern: str | None,
    reason_like: str | None,
    to_stream: str | None,
    max_messages: int,
) -> Call[int]:
    return Call(
        Sql(
            """
select postbus.redrive($1, $2, seqs => $3, key_pattern => $4, reason_like => $5, max_messages => $6, to_stream => $7)
""",
            (stream, consumer, parameters.bigint_array(seqs), key_pattern, reason_like, max_messages, to_stream),
            first,
        ),
        Http(
            REDRIVE,
            (stream, consumer),
            count,
            body={
                "seqs": seqs and list(seqs),
                "key_pattern": key_pattern,
                "reason_like": reason_like,
                "to_stream": to_stream,
                "limit": max_messages,
            },
        ),
    )


def replay_page(
    stream: str,
    consumer: str,
    *,
    from_seq: int | None,
    to_seq: int | None,
    from_time: datetime | None,
    to_time: datetime | None,
    key_pattern: str | None,
    max_messages: int,
    resume: str | None,
) -> Call[tuple[int, str | None]]:
    return Call(
        Sql(
            """
select r.replayed, r.next_resume
from postbus.replay($1, $2, from_seq => $3, to_seq => $4, from_time => $5, to_time => $6, key_pattern => $7,
    max_messages => $8, resume => $9) as r
""",
            (stream, consumer, from_seq, to_seq, from_time, to_time, key_pattern, max_messages, resume),
            lambda found: (found[0][0], found[0][1]),
        ),
        Http(
            REPLAY,
            (stream, consumer),
            lambda answer: (answer.data["count"], answer.data.get("resume")),
            body={
                "from_seq": from_seq,
                "to_seq": to_seq,
                "from_time": from_time,
                "to_time": to_time,
                "key_pattern": key_pattern,
                "limit": max_messages,
                "resume": resume,
            },
        ),
    )
