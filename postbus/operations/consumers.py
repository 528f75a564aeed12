"""Consumers: create, alter, drop, list, pause, seek."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from postbus.codec import answers, parameters, rows, settings
from postbus.model.consumer import ConsumerInfo, ConsumerStats, HistoryEntry, Outcome, Peeked, Start, State
from postbus.model.duration import as_milliseconds
from postbus.model.settings import ConsumerChanges, ConsumerSettings
from postbus.operations.call import Call, DataSql, Http, Route, Sql, first, nothing

_PATH: Final = "/api/streams/{stream}/consumers"
LIST: Final = Route("GET", _PATH, "manage")
CREATE: Final = Route("POST", _PATH, "manage")
INFO: Final = Route("GET", _PATH + "/{consumer}", "manage", also=("consume",))
ALTER: Final = Route("PATCH", _PATH + "/{consumer}", "manage")
DROP: Final = Route("DELETE", _PATH + "/{consumer}", "manage")
PAUSE: Final = Route("POST", _PATH + "/{consumer}/pause", "manage")
RESUME: Final = Route("POST", _PATH + "/{consumer}/resume", "manage")
SEEK: Final = Route("POST", _PATH + "/{consumer}/seek", "manage")
STATS: Final = Route("GET", _PATH + "/{consumer}/stats", "manage", also=("consume",))
HISTORY: Final = Route("GET", _PATH + "/{consumer}/history", "consume")
PEEK: Final = Route("GET", _PATH + "/{consumer}/messages", "consume")
PEEK_AT: Final = Route("GET", _PATH + "/{consumer}/message", "consume")


def create(
    stream: str,
    consumer: str,
    given: Mapping[str, Any],
    *,
    start: Start | None,
    from_seq: int | None,
    from_time: datetime | None,
    exist_ok: bool,
) -> Call[None]:
    text, values = settings.sql_arguments(ConsumerSettings, given, first=7)
    return Call(
        Sql(
            f"select postbus.create_consumer($1, $2, start => $3, from_seq => $4, from_time => $5, exist_ok => $6{text})",
            (stream, consumer, start, from_seq, from_time, exist_ok, *values),
            nothing,
        ),
        Http(
            CREATE,
            (stream,),
            nothing,
            body={
                "name": consumer,
                **settings.http_fields(ConsumerSettings, given),
                "start": start,
                "from_seq": from_seq,
                "from_time": from_time,
                "exist_ok": exist_ok or None,
            },
        ),
        repeatable=exist_ok,
    )


def alter(stream: str, consumer: str, given: Mapping[str, Any], unset: Sequence[str]) -> Call[None]:
    text, values = settings.sql_arguments(ConsumerChanges, given, first=4)
    unset = settings.all_to_unset(unset)
    return Call(
        Sql(
            f"select postbus.alter_consumer($1, $2, unset => $3{text})",
            (stream, consumer, parameters.text_array(unset), *values),
            nothing,
        ),
        Http(
            ALTER,
            (stream, consumer),
            nothing,
            body=settings.http_fields(ConsumerChanges, given),
            nulls=settings.null_fields(ConsumerChanges, unset),
        ),
        repeatable=True,
    )


def drop(stream: str, consumer: str) -> Call[None]:
    return Call(
        Sql("select postbus.drop_consumer($1, $2)", (stream, consumer), nothing),
        Http(DROP, (stream, consumer), nothing),
    )


def list_all(stream: str) -> Call[list[ConsumerInfo]]:
    return Call(
        Sql(
            f"select {rows.CONSUMER_INFO} from postbus.list_consumers($1) as i",  # noqa: S608
            (stream,),
            lambda found: [rows.consumer_info(row) for row in found],
        ),
        Http(LIST, (stream,), lambda answer: [answers.consumer_info(each) for each in answer.data]),
        repeatable=True,
    )


def info(stream: str, consumer: str) -> Call[ConsumerInfo]:
    return Call(
        Sql(
            f"select {rows.CONSUMER_INFO} from postbus.consumer_info($1, $2) as i",  # noqa: S608
            (stream, consumer),
            lambda found: rows.consumer_info(found[0]),
        ),
        Http(INFO, (stream, consumer), lambda answer: answers.consumer_info(answer.data)),
        repeatable=True,
    )


def pause(stream: str, consumer: str) -> Call[None]:
    return Call(
        Sql("select postbus.pause($1, $2)", (stream, consumer), nothing),
        Http(PAUSE, (stream, consumer), nothing),
        repeatable=True,
    )


def resume(stream: str, consumer: str) -> Call[None]:
    return Call(
        Sql("select postbus.resume($1, $2)", (stream, consumer), nothing),
        Http(RESUME, (stream, consumer), nothing),
        repeatable=True,
    )


def seek(
    stream: str,
    consumer: str,
    *,
    start: Start | None,
    from_seq: int | None,
    from_time: datetime | None,
    route: Route = SEEK,
) -> Call[int]:
    return Call(
        Sql(
            "select postbus.seek($1, $2, start => $3, from_seq => $4, from_time => $5)",
            (stream, consumer, start, from_seq, from_time),
            lambda found: int(first(found)),
        ),
        Http(
            route,
            (stream, consumer),
            lambda answer: int(answer.data["position_seq"]),
            body={"start": start, "from_seq": from_seq, "from_time": from_time},
        ),
    )


def stats(stream: str, consumer: str, *, route: Route = STATS) -> Call[ConsumerStats]:
    return Call(
        Sql("select s.* from postbus.stats($1, $2) as s", (stream, consumer), rows.consumer_stats),
        Http(route, (stream, consumer), lambda answer: answers.consumer_stats(answer.data)),
        repeatable=True,
    )


def history(
    stream: str, consumer: str, *, outcome: Outcome | None, before_time: datetime | None, max_messages: int
) -> Call[list[HistoryEntry]]:
    return Call(
        DataSql(
            stream,
            "select h.* from postbus.history($1, $2, outcome => $3, before_time => $4, max_messages => $5) as h",
            (stream, consumer, outcome, before_time, max_messages),
            lambda data_type, found: [rows.history_entry(data_type, row) for row in found],
        ),
        Http(
            HISTORY,
            (stream, consumer),
            lambda answer: [answers.history_entry(each) for each in answer.data],
            query={"outcome": outcome, "before_time": before_time, "limit": max_messages},
        ),
        repeatable=True,
    )


def peek(
    stream: str,
    consumer: str,
    *,
    state: State | None,
    key_pattern: str | None,
    after_seq: int,
    max_messages: int,
) -> Call[list[Peeked]]:
    return Call(
        DataSql(
            stream,
            """
select p.* from postbus.peek($1, $2, state => $3, key_pattern => $4, after_seq => $5, max_messages => $6) as p
""",
            (stream, consumer, state, key_pattern, after_seq, max_messages),
            lambda data_type, found: [rows.peeked(data_type, row) for row in found],
        ),
        Http(
            PEEK,
            (stream, consumer),
            lambda answer: [answers.peeked(each) for each in answer.data],
            query={
                "state": state or "any",
                "key_pattern": key_pattern,
                "after_seq": after_seq or None,
                "limit": max_messages,
            },
        ),
        repeatable=True,
    )


def peek_at(stream: str, consumer: str, seq: int, *, wait: float = 0.0) -> Call[Peeked | None]:
    """A server waits until the message is done; over Postgres, the caller asks again."""
    return Call(
        DataSql(
            stream,
            "select p.* from postbus.peek_at($1, $2, $3) as p",
            (stream, consumer, seq),
            lambda data_type, found: rows.peeked(data_type, found[0]) if found else None,
        ),
        Http(
            PEEK_AT,
            (stream, consumer),
            lambda answer: None if answer.data is None else answers.peeked(answer.data),
            query={"seq": seq, "wait_for": as_milliseconds(wait) or None},
        ),
        repeatable=True,
    )
