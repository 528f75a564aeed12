"""Push consumers: set, change and remove endpoints, see attempts, send again; and what whoever sends asks and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from postbus.codec import parameters, webhooks
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.model.push import AttemptOutcome, PushAttempt, PushEndpoint, PushInfo, PushMode, PushTarget
from postbus.operations.call import Call, Http, Route, Sql, count, first, nothing

_PATH: Final = "/api/streams/{stream}/consumers/{consumer}/push"
SET: Final = Route("POST", _PATH, "manage")
INFO: Final = Route("GET", _PATH, "manage", also=("consume",))
DROP: Final = Route("DELETE", _PATH, "manage")
PAUSE: Final = Route("POST", _PATH + "/pause", "manage")
RESUME: Final = Route("POST", _PATH + "/resume", "manage")
ROTATE: Final = Route("POST", _PATH + "/secret", "manage")
TEST: Final = Route("POST", _PATH + "/test", "manage")
ATTEMPTS: Final = Route("GET", _PATH + "/attempts", "manage", also=("consume",))
RESEND: Final = Route("POST", _PATH + "/resend", "manage")
LIST_ALL: Final = Route("GET", "/api/push", "manage", on_all_streams=True)


def set_endpoint(
    stream: str,
    consumer: str,
    *,
    url: str | None,
    headers: Mapping[str, str] | None,
    mode: PushMode | None,
    batch_size: int | None,
    timeout: Duration | None,
    concurrency: int | None,
    max_rate: float | None,
    retry_schedule: Sequence[Duration] | None,
    permanent_statuses: Sequence[int] | None,
    keep_successes: bool | None,
    secret: str | None,
) -> Call[str | None]:
    """The secret, if the endpoint is new."""
    return Call(
        Sql(
            """
select postbus.set_push(
    $1, $2, $3, $4::jsonb, $5, $6, $7, $8, $9, $10::text[]::interval[], $11::bigint[]::integer[], $12, $13
)
""",
            (
                stream,
                consumer,
                url,
                parameters.headers_text(headers),
                mode,
                batch_size,
                as_timedelta(timeout),
                concurrency,
                None if max_rate is None else float(max_rate),
                None if retry_schedule is None else parameters.intervals(retry_schedule),
                parameters.bigint_array(permanent_statuses),
                keep_successes,
                secret,
            ),
            lambda found: secret if first(found) else None,
        ),
        Http(
            SET,
            (stream, consumer),
            lambda answer: answer.data.get("secret"),
            body={
                "url": url,
                "headers": None if headers is None else dict(headers),
                "mode": mode,
                "batch_size": batch_size,
                "timeout_ms": as_milliseconds(timeout),
                "concurrency": concurrency,
                "max_rate": max_rate,
                "retry_schedule_ms": None
                if retry_schedule is None
                else [as_milliseconds(each) for each in retry_schedule],
                "permanent_statuses": None if permanent_statuses is None else list(permanent_statuses),
                "keep_successes": keep_successes,
            },
        ),
    )


def info(stream: str, consumer: str) -> Call[PushInfo | None]:
    """The endpoint of a consumer; None if it has none."""
    return Call(
        Sql(
            "select p.* from postbus.list_pushes($1, $2) as p",
            (stream, consumer),
            lambda found: webhooks.push_info(found[0]) if found else None,
        ),
        Http(INFO, (stream, consumer), lambda answer: webhooks.push_info_answered(answer.data)),
        repeatable=True,
    )


def list_all() -> Call[list[PushInfo]]:
    return Call(
        Sql("select p.* from postbus.list_pushes() as p", (), lambda found: [webhooks.push_info(row) for row in found]),
        Http(LIST_ALL, (), lambda answer: [webhooks.push_info_answered(each) for each in answer.data]),
        repeatable=True,
    )


def drop(stream: str, consumer: str) -> Call[None]:
    return Call(
        Sql("select postbus.drop_push($1, $2)", (stream, consumer), nothing), Http(DROP, (stream, consumer), nothing)
    )


def pause(stream: str, consumer: str, reason: str) -> Call[None]:
    return Call(
        Sql("select postbus.pause_push($1, $2, $3)", (stream, consumer, reason), nothing),
        Http(PAUSE, (stream, consumer), nothing, body={"reason": reason}),
        repeatable=True,
    )


def resume(stream: str, consumer: str) -> Call[None]:
    return Call(
        Sql("select postbus.resume_push($1, $2)", (stream, consumer), nothing),
        Http(RESUME, (stream, consumer), nothing),
        repeatable=True,
    )


def rotate_secret(stream: str, consumer: str, secret: str, keep_old_for: Duration) -> Call[str]:
    """The new secret."""
    return Call(
        Sql(
            "select postbus.rotate_push_secret($1, $2, $3, $4)",
            (stream, consumer, secret, as_timedelta(keep_old_for)),
            lambda found: secret,
        ),
        Http(
            ROTATE,
            (stream, consumer),
            lambda answer: str(answer.data["secret"]),
            body={"keep_old_for_ms": as_milliseconds(keep_old_for)},
        ),
    )


def test(stream: str, consumer: str) -> Call[int]:
    """The id of the test."""
    return Call(
        Sql("select postbus.test_push($1, $2)", (stream, consumer), lambda found: int(first(found))),
        Http(TEST, (stream, consumer), lambda answer: int(answer.data["test_id"])),
    )


def attempts(
    stream: str,
    consumer: str,
    *,
    seq: int | None,
    test_id: int | None,
    outcome: AttemptOutcome | None,
    before_time: datetime | None,
    max_attempts: int,
) -> Call[list[PushAttempt]]:
    return Call(
        Sql(
            "select a.* from postbus.push_attempts($1, $2, $3, $4, $5, $6, $7) as a",
            (stream, consumer, seq, test_id, outcome, before_time, max_attempts),
            lambda found: [webhooks.push_attempt(row) for row in found],
        ),
        Http(
            ATTEMPTS,
            (stream, consumer),
            lambda answer: [webhooks.push_attempt_answered(each) for each in answer.data],
            query={
                "seq": seq,
                "test_id": test_id,
                "outcome": outcome,
                "before_time": before_time,
                "limit": max_attempts,
            },
        ),
        repeatable=True,
    )


def resend(
    stream: str, consumer: str, *, seq: int | None, failed_since: datetime | None, max_messages: int
) -> Call[int]:
    """How many are sent again."""
    return Call(
        Sql(
            "select postbus.resend_push($1, $2, $3, $4, $5)",
            (stream, consumer, seq, failed_since, max_messages),
            lambda found: int(first(found)),
        ),
        Http(
            RESEND,
            (stream, consumer),
            count,
            body={"seq": seq, "failed_since": failed_since, "limit": max_messages},
        ),
        redelivers=True,
    )


def targets() -> Call[list[PushTarget]]:
    """All endpoints. Only whoever sends asks."""
    return Call(
        Sql(
            "select t.* from postbus_data.push_targets() as t",
            (),
            lambda found: [PushTarget(*row) for row in found],
        ),
        None,
        repeatable=True,
    )


def to_send(consumer_id: int) -> Call[PushEndpoint | None]:
    return Call(
        Sql(
            "select e.* from postbus_data.push_to_send($1) as e",
            (consumer_id,),
            lambda found: PushEndpoint(*found[0]) if found else None,
        ),
        None,
        repeatable=True,
    )


def report(consumer_id: int, fields: Mapping[str, Any]) -> Call[tuple[float, bool]]:
    """For how many seconds the endpoint rests, and whether it is paused."""
    return Call(
        Sql(
            "select r.rest_seconds, r.is_paused from postbus_data.report_push($1, $2::jsonb) as r",
            (consumer_id, orjson.dumps(fields).decode()),
            lambda found: (float(found[0][0]), bool(found[0][1])),
        ),
        None,
    )


def take_probe(consumer_id: int, *, give_back: bool) -> Call[bool]:
    return Call(
        Sql("select postbus_data.take_push_probe($1, $2)", (consumer_id, give_back), lambda found: bool(first(found))),
        None,
    )


def take_turns(consumer_id: int, max_rate: float, wanted: int) -> Call[tuple[int, float]]:
    """How many requests may be sent now and, if none, after how many seconds one may."""
    return Call(
        Sql(
            "select t.granted, t.wait_seconds from postbus_data.take_push_turns($1, $2, $3) as t",
            (consumer_id, float(max_rate), wanted),
            lambda found: (int(found[0][0]), float(found[0][1])),
        ),
        None,
    )


def take_tests(consumer_id: int) -> Call[list[int]]:
    return Call(
        Sql(
            "select t.id from postbus_data.take_push_tests($1) as t (id)",
            (consumer_id,),
            lambda found: [int(row[0]) for row in found],
        ),
        None,
    )
