"""Messages: publish, schedule, read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from postbus.codec import answers, parameters, rows
from postbus.model.message import Message, Page, Scheduled
from postbus.operations.call import DATA_TYPE, Call, DataSql, Http, Route, Sql, count, first

PUBLISH: Final = Route("POST", "/api/streams/{stream}/messages", "publish")
READ: Final = Route("GET", "/api/streams/{stream}/messages", "consume")
STATE: Final = Route("GET", "/api/streams/{stream}/state", "consume")
DELETE_KEY: Final = Route("DELETE", "/api/streams/{stream}/state/{key}", "publish")
LIST_SCHEDULED: Final = Route("GET", "/api/streams/{stream}/scheduled", "consume")
CANCEL: Final = Route("POST", "/api/streams/{stream}/scheduled/cancel", "publish")
RESCHEDULE: Final = Route("POST", "/api/streams/{stream}/scheduled/reschedule", "publish")


def read(
    stream: str,
    *,
    from_seq: int | None,
    to_seq: int | None,
    from_time: datetime | None,
    to_time: datetime | None,
    key: str | None,
    key_pattern: str | None,
    partition: int | None,
    max_messages: int,
    backwards: bool,
    resume: str | None,
) -> Call[Page]:
    bounds: dict[str, Any] = {
        "from_seq": from_seq,
        "to_seq": to_seq,
        "from_time": from_time,
        "to_time": to_time,
        "key": key,
        "key_pattern": key_pattern,
        "partition": partition,
    }
    return Call(
        DataSql(
            stream,
            """
select m.*
from postbus.read($1, from_seq => $2, to_seq => $3, from_time => $4, to_time => $5, key => $6, key_pattern => $7,
    partition => $8, max_messages => $9, backwards => $10, resume => $11, expected_type => $12) as m
""",
            (stream, *bounds.values(), max_messages, backwards, resume, DATA_TYPE),
            rows.page,
        ),
        Http(
            READ,
            (stream,),
            lambda answer: answers.page(answer.content),
            query={**bounds, "limit": max_messages, "sort": "seq_desc" if backwards else None, "resume": resume},
        ),
        repeatable=True,
    )


def state(
    stream: str, *, key: str | None, key_pattern: str | None, after_key: str, max_messages: int
) -> Call[list[Message]]:
    return Call(
        DataSql(
            stream,
            """
select m.*
from postbus.state($1, key => $2, key_pattern => $3, after_key => $4, max_messages => $5, expected_type => $6) as m
""",
            (stream, key, key_pattern, after_key, max_messages, DATA_TYPE),
            lambda data_type, found: list(rows.page(data_type, found)),
        ),
        Http(
            STATE,
            (stream,),
            lambda answer: answers.messages(answer.data),
            query={"key": key, "key_pattern": key_pattern, "after_key": after_key or None, "limit": max_messages},
        ),
        repeatable=True,
    )


def delete_key(stream: str, key: str) -> Call[int | None]:
    return Call(
        Sql("select postbus.delete_key($1, $2)", (stream, key), first),
        Http(DELETE_KEY, (stream, key), lambda answer: int(answer.data["seq"])),
    )


def list_scheduled(
    stream: str, *, key_pattern: str | None, after: Scheduled | None, max_messages: int
) -> Call[list[Scheduled]]:
    after_at, after_id = (None, None) if after is None else (after.deliver_at, after.id)
    return Call(
        DataSql(
            stream,
            """
select s.*
from postbus.list_scheduled($1, key_pattern => $2, after_at => $3, after_id => $4, max_messages => $5) as s
""",
            (stream, key_pattern, after_at, after_id, max_messages),
            lambda data_type, found: [rows.scheduled(data_type, row) for row in found],
        ),
        Http(
            LIST_SCHEDULED,
            (stream,),
            lambda answer: [answers.scheduled(each) for each in answer.data],
            query={"limit": max_messages, "key_pattern": key_pattern, "after_at": after_at, "after_id": after_id},
        ),
        repeatable=True,
    )


def cancel(stream: str, ids: Sequence[int]) -> Call[int]:
    return Call(
        Sql("select postbus.cancel($1, $2)", (stream, parameters.bigint_array(ids)), first),
        Http(CANCEL, (stream,), count, body={"ids": ids}),
    )


def reschedule(stream: str, ids: Sequence[int], deliver_at: datetime) -> Call[int]:
    return Call(
        Sql("select postbus.reschedule($1, $2, $3)", (stream, parameters.bigint_array(ids), deliver_at), first),
        Http(RESCHEDULE, (stream,), count, body={"ids": ids, "deliver_at": deliver_at}),
    )
