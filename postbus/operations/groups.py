"""Groups: create, claim, fetch, commit, seek, workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from postbus.codec import answers, parameters, rows
from postbus.model.consumer import ConsumerStats, Start
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.model.group import Claim
from postbus.model.message import Message
from postbus.operations import consumers
from postbus.operations.call import DATA_TYPE, Call, DataSql, Http, Route, Sql, count, first, nothing

_PATH: Final = "/api/streams/{stream}/groups"
LIST: Final = Route("GET", _PATH, "manage")
CREATE: Final = Route("POST", _PATH, "manage")
DROP: Final = Route("DELETE", _PATH + "/{group}", "manage")
STATS: Final = Route("GET", _PATH + "/{group}/stats", "manage", also=("consume",))
CLAIM: Final = Route("POST", _PATH + "/{group}/claim", "consume")
FETCH: Final = Route("POST", _PATH + "/{group}/fetch", "consume")
COMMIT: Final = Route("POST", _PATH + "/{group}/commit", "consume")
RELEASE: Final = Route("POST", _PATH + "/{group}/release", "consume")
EXTEND: Final = Route("POST", _PATH + "/{group}/extend", "consume")
SEEK: Final = Route("POST", _PATH + "/{group}/seek", "manage")
JOIN: Final = Route("PUT", _PATH + "/{group}/workers/{worker}", "consume")
LEAVE: Final = Route("DELETE", _PATH + "/{group}/workers/{worker}", "consume")


def create(
    stream: str,
    group: str,
    *,
    keep_unread: bool,
    expire_after: Duration | None,
    start: Start | None,
    from_seq: int | None,
    from_time: datetime | None,
    exist_ok: bool,
) -> Call[None]:
    return Call(
        Sql(
            """
select postbus.create_group(
    $1, $2, keep_unread => $3, expire_after => $4, start => $5, from_seq => $6, from_time => $7, exist_ok => $8
)
""",
            (stream, group, keep_unread, as_timedelta(expire_after), start, from_seq, from_time, exist_ok),
            nothing,
        ),
        Http(
            CREATE,
            (stream,),
            nothing,
            body={
                "name": group,
                "keep_unread": keep_unread,
                "expire_after_ms": as_milliseconds(expire_after),
                "start": start,
                "from_seq": from_seq,
                "from_time": from_time,
                "exist_ok": exist_ok or None,
            },
        ),
        repeatable=exist_ok,
    )


def drop(stream: str, group: str) -> Call[None]:
    return Call(
        Sql("select postbus.drop_consumer($1, $2)", (stream, group), nothing),
        Http(DROP, (stream, group), nothing),
    )


def claim(
    stream: str,
    group: str,
    *,
    max_messages: int,
    lease: Duration | None,
    worker: str | None,
    wait_for: int | None = None,
) -> Call[list[Claim]]:
    """Claim ranges. Only a server can wait for them; `wait` is in milliseconds."""
    return Call(
        Sql(
            "select c.* from postbus.claim($1, $2, max_messages => $3, lease => $4, worker => $5) as c",
            (stream, group, max_messages, as_timedelta(lease), worker),
            lambda found: [rows.claim(row) for row in found],
        ),
        Http(
            CLAIM,
            (stream, group),
            lambda answer: [answers.claim(each) for each in answer.data],
            body={
                "batch_size": max_messages,
                "lease_ms": as_milliseconds(lease),
                "worker": worker,
                "wait_for": wait_for or None,
            },
        ),
    )


def fetch(stream: str, group: str, claims: Sequence[Claim]) -> Call[list[Message]]:
    ranges = [{"partition": each.partition, "from_seq": each.from_seq, "to_seq": each.to_seq} for each in claims]
    return Call(
        DataSql(
            stream,
            """
select m.*
from unnest($2::bigint[], $3::bigint[], $4::bigint[]) with ordinality as c (partition, from_seq, to_seq, place)
cross join lateral postbus.fetch($1, c.partition::integer, c.from_seq, c.to_seq, $5) as m
order by c.place, m.seq
""",
            (
                stream,
                parameters.bigint_array([each.partition for each in claims]),
                parameters.bigint_array([each.from_seq for each in claims]),
                parameters.bigint_array([each.to_seq for each in claims]),
                DATA_TYPE,
            ),
            lambda data_type, found: list(rows.page(data_type, found)),
        ),
        Http(FETCH, (stream, group), lambda answer: answers.messages(answer.data), body={"ranges": ranges}),
        repeatable=True,
    )


def commit(stream: str, group: str, tokens: Sequence[str], *, to_seq: int | None) -> Call[int]:
    return Call(
        Sql(
            "select postbus.commit($1, $2, $3, to_seq => $4)",
            (stream, group, parameters.text_array(tokens), to_seq),
            first,
        ),
        Http(COMMIT, (stream, group), count, body={"tokens": tokens, "to_seq": to_seq}),
    )


def release(stream: str, group: str, tokens: Sequence[str]) -> Call[int]:
    return Call(
        Sql("select postbus.release($1, $2, $3)", (stream, group, parameters.text_array(tokens)), first),
        Http(RELEASE, (stream, group), count, body={"tokens": tokens}),
    )


def extend(stream: str, group: str, tokens: Sequence[str], lease: Duration) -> Call[int]:
    return Call(
        Sql(
            "select postbus.extend($1, $2, $3::text[], ack_wait => $4, shorten => false)",
            (stream, group, parameters.text_array(tokens), as_timedelta(lease)),
            first,
        ),
        Http(EXTEND, (stream, group), count, body={"tokens": tokens, "lease_ms": as_milliseconds(lease)}),
        repeatable=True,
    )


def seek(
    stream: str, group: str, *, start: Start | None, from_seq: int | None, from_time: datetime | None
) -> Call[int]:
    return consumers.seek(stream, group, start=start, from_seq=from_seq, from_time=from_time, route=SEEK)


def stats(stream: str, group: str) -> Call[ConsumerStats]:
    return consumers.stats(stream, group, route=STATS)


def join(stream: str, group: str, worker: str, session: timedelta) -> Call[tuple[int, ...]]:
    return Call(
        Sql(
            "select postbus.join_group($1, $2, $3, session => $4)",
            (stream, group, worker, session),
            lambda found: tuple(first(found)),
        ),
        Http(
            JOIN,
            (stream, group, worker),
            lambda answer: tuple(answer.data["partitions"]),
            body={"session_ms": as_milliseconds(session)},
        ),
        repeatable=True,
    )


def leave(stream: str, group: str, worker: str) -> Call[None]:
    return Call(
        Sql("select postbus.leave_group($1, $2, $3)", (stream, group, worker), nothing),
        Http(LEAVE, (stream, group, worker), nothing),
        repeatable=True,
    )
