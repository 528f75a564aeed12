"""Decodes responses of a server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from postbus.codec import settings
from postbus.http.answer import Answer
from postbus.model.archive import ArchiveInfo
from postbus.model.channel import ChannelLimits, ChannelState
from postbus.model.consumer import (
    ConsumerInfo,
    ConsumerStats,
    DeadLetter,
    HistoryEntry,
    PartitionStats,
    Peeked,
)
from postbus.model.delivery import Batch, Delivery
from postbus.model.errors import Error
from postbus.model.group import Claim
from postbus.model.message import Message, Page, Scheduled, Seq
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.model.pipeline import PipelineInfo
from postbus.model.schedule import ScheduleInfo, ScheduleRun
from postbus.model.settings import ConsumerSettings, StreamSettings
from postbus.model.sqs import SqsQueue
from postbus.model.stream import HorizonHolder, StreamInfo
from postbus.model.task import TaskInfo
from postbus.model.token import NewToken, Token

_Parameters = ParamSpec("_Parameters")
_Value = TypeVar("_Value")


def _understood(parse: Callable[_Parameters, _Value]) -> Callable[_Parameters, _Value]:
    """Raise a clear error if a response lacks a field, as client and server may be of different versions."""

    @wraps(parse)
    def understand(*arguments: _Parameters.args, **more: _Parameters.kwargs) -> _Value:
        try:
            return parse(*arguments, **more)
        except (KeyError, TypeError) as error:
            raise Error(
                f"the server's response cannot be decoded: {error}",
                "use the same version of Postbus in client and server",
            ) from error

    return understand


understood = _understood


@_understood
def stream_info(found: Mapping[str, Any]) -> StreamInfo:
    return StreamInfo(
        name=found["name"],
        id=int(found["id"]),
        is_full=found["is_full"],
        start_seq=found["start_seq"],
        last_seq=found["last_seq"],
        message_estimate=found["stats"]["message_count"],
        bytes=found["stats"]["storage_size"],
        segment_count=found["segment_count"],
        scheduled=found["stats"]["scheduled"],
        next_scheduled_at=_some_moment(found["stats"]["next_scheduled_at"]),
        created_at=_moment(found["inserted_at"]),
        **settings.info_values(StreamSettings, found),
    )


@_understood
def horizon_holder(found: Mapping[str, Any]) -> HorizonHolder:
    return HorizonHolder(
        held_at_seq=found["seq"],
        held_for=_some_duration(found["held_for_ms"]),
        transaction_started_at=_some_moment(found["transaction_started_at"]),
        pid=found["pid"],
        user_name=found["user_name"],
        application_name=found["application_name"],
        state=found["state"],
        query=None,
        prepared_transaction=found["prepared_transaction"],
    )


@_understood
def consumer_info(found: Mapping[str, Any]) -> ConsumerInfo:
    return ConsumerInfo(
        stream=found["stream"],
        name=found["name"],
        id=int(found["id"]),
        backoff=[_duration(delay) for delay in found["backoff_ms"]],
        backoff_factor=found["backoff_factor"],
        backoff_cap=_some_duration(found["backoff_cap_ms"]),
        backoff_jitter=found["backoff_jitter"],
        filter_key_pattern=found["filter_key_pattern"],
        filter_headers=found["filter_headers"],
        filter_headers_not=found["filter_headers_not"],
        filter_data=found["filter_data"],
        is_group=found["is_group"],
        paused=found["status"] == "disabled",
        created_at=_moment(found["inserted_at"]),
        **settings.info_values(ConsumerSettings, found),
    )


@_understood
def consumer_stats(found: Mapping[str, Any]) -> ConsumerStats:
    return ConsumerStats(
        backlog=found["backlog"],
        backlog_is_exact=found["backlog_is_exact"],
        horizon_seq=found["horizon_seq"],
        lag_estimate=found["lag_estimate"],
        oldest_unread_at=_some_moment(found["oldest_unread_at"]),
        in_flight=found["in_flight"],
        oldest_in_flight_at=_some_moment(found["oldest_in_flight_at"]),
        waiting=found["waiting"],
        dead=found["dead"],
        expired=found["expired"],
        missed_estimate=found["missed_estimate"],
        rate_estimate=found["rate_estimate"],
        by_priority=_by_priority(found),
        partitions=[
            PartitionStats(
                **{**_known(PartitionStats, each), "oldest_unread_at": _some_moment(each["oldest_unread_at"])}
            )
            for each in found["partitions"]
        ],
    )


@_understood
def stream_overview(found: Mapping[str, Any]) -> StreamOverview:
    next_at = _some_moment(found["next_scheduled_at"])
    return StreamOverview(**{**_known(StreamOverview, found), "next_scheduled_at": next_at})


@_understood
def consumer_overview(found: Mapping[str, Any]) -> ConsumerOverview:
    times = {name: _some_moment(found[name]) for name in ("oldest_unread_at", "oldest_in_flight_at")}
    return ConsumerOverview(
        **{**_known(ConsumerOverview, {"by_priority": {}, **found}), **times, "by_priority": _by_priority(found)}
    )


@_understood
def pipeline_info(found: Mapping[str, Any]) -> PipelineInfo:
    times = {name: _some_moment(found[name]) for name in ("started_at", "noted_at", "ended_at")}
    return PipelineInfo(**{**_known(PipelineInfo, found), **times})


@_understood
def task_info(found: Mapping[str, Any]) -> TaskInfo:
    times = {name: _some_moment(found[name]) for name in ("created_at", "noted_at", "ended_at")}
    return TaskInfo(**{**_known(TaskInfo, found), **times})


@_understood
def sqs_queue(found: Mapping[str, Any]) -> SqsQueue:
    times = {name: _some_moment(found[name]) for name in ("created_at", "changed_at", "purged_at")}
    return SqsQueue(**{**_known(SqsQueue, found), **times})


@_understood
def channel_limits(found: Mapping[str, Any]) -> ChannelLimits:
    return ChannelLimits(**_known(ChannelLimits, {**found, "per": timedelta(milliseconds=found["per_ms"])}))


@_understood
def channel_state(found: Mapping[str, Any]) -> ChannelState:
    return ChannelState(**{**_known(ChannelState, found), "next_at": _some_moment(found["next_at"])})


@_understood
def archive_info(found: Mapping[str, Any]) -> ArchiveInfo:
    return ArchiveInfo(**_known(ArchiveInfo, found))


@_understood
def messages(found: Sequence[Mapping[str, Any]]) -> list[Message]:
    return [Message(**_message(each), priority=each.get("priority", DEFAULT_PRIORITY)) for each in found]


@_understood
def page(found: Mapping[str, Any]) -> Page:
    return Page(tuple(messages(found["data"])), found["resume"])


@_understood
def batch(found: Sequence[Mapping[str, Any]], acked_count: int) -> Batch:
    """The deliveries of a receive. The leases that they belong to are the first part of their ack ids."""
    deliveries = tuple(
        Delivery(
            ack_id=each["ack_id"],
            attempt=each["attempt"],
            **_message(each["message"]),
            is_last_attempt=each["is_last_attempt"],
            deferrals=each.get("deferrals", 0),
            state=_state(each, "state"),
        )
        for each in found
    )
    leases = dict.fromkeys(each.ack_id.partition("-")[0] for each in deliveries)
    return Batch(deliveries, acked_count, tuple(leases))


@_understood
def peeked(found: Mapping[str, Any]) -> Peeked:
    info = found["info"]
    return Peeked(
        **_message(found["message"]),
        state=info["state"],
        attempts=info["deliver_count"],
        until=_some_moment(info["not_visible_until"]),
        reason=info["reason"],
        ack_id=info["ack_id"],
        last_delivered_at=_some_moment(info["last_delivered_at"]),
        deferrals=info.get("deferrals", 0),
        saved_state=_state(info, "saved_state"),
    )


@_understood
def dead_letter(found: Mapping[str, Any]) -> DeadLetter:
    return DeadLetter(
        **_message(found["message"]),
        attempts=found["deliver_count"],
        reason=found["reason"],
        died_at=_moment(found["died_at"]),
        deferrals=found.get("deferrals", 0),
        saved_state=_state(found, "saved_state"),
    )


@_understood
def history_entry(found: Mapping[str, Any]) -> HistoryEntry:
    gone = {"key": None, "data": None, "headers": None, "published_at": None}
    message = gone if found["message"] is None else _message(found["message"])
    return HistoryEntry(
        **{**message, "seq": found["seq"], "partition": found["partition"]},
        outcome=found["outcome"],
        attempt=found["attempt"],
        received_at=_moment(found["received_at"]),
        finished_at=_moment(found["finished_at"]),
        duration=_duration(found["duration_ms"]),
        last_error=found["last_error"],
    )


def new_token(answer: Answer) -> NewToken:
    found = answer.data
    return NewToken(found["token"], token(found), found.get("access_key_id"), found.get("secret_access_key"))


@_understood
def token(found: Mapping[str, Any]) -> Token:
    return Token(
        id=int(found["id"]),
        name=found["name"],
        scopes=found["scopes"],
        streams=found["streams"],
        rate_limit=found["rate_limit"],
        created_at=_some_moment(found["inserted_at"]),
        expires_at=_some_moment(found["expires_at"]),
    )


@_understood
def claim(found: Mapping[str, Any]) -> Claim:
    return Claim(**{**_known(Claim, found), "deadline": _some_moment(found["deadline"])})


@_understood
def scheduled(found: Mapping[str, Any]) -> Scheduled:
    return Scheduled(
        id=found["id"],
        deliver_at=_moment(found["deliver_at"]),
        scheduled_at=_moment(found["scheduled_at"]),
        ttl=_some_duration(found["ttl_ms"]),
        key=found["key"],
        data=_data(found),
        headers=found.get("headers"),
        priority=found.get("priority", DEFAULT_PRIORITY),
    )


@_understood
def schedule(found: Mapping[str, Any]) -> ScheduleInfo:
    return ScheduleInfo(
        **{
            **_known(ScheduleInfo, {"every": None, "ttl": None, "priority": DEFAULT_PRIORITY, **found}),
            "every": _some_duration(found["every_ms"]),
            "ttl": _some_duration(found["ttl_ms"]),
            "data": _data(found),
            "next_at": tuple(map(_moment, found["next_at"])),
            "last_runs": tuple(
                ScheduleRun(_some_moment(run["occurrence"]), _moment(run["published_at"]), run["seq"])
                for run in found["last_runs"]
            ),
            "created_at": _moment(found["created_at"]),
        }
    )


def _by_priority(found: Mapping[str, Any]) -> dict[int, int]:
    """The fields of an object in JSON are texts."""
    return {int(priority): count for priority, count in found.get("by_priority", {}).items()}


def _known(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a value; a newer server may have more."""
    return {name: found[name] for name in kind.__dataclass_fields__}


def _message(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "key": found["key"],
        "data": _data(found),
        "headers": found.get("headers"),
        "seq": found["seq"],
        "partition": found["partition"],
        "published_at": _moment(found["published_at"]),
    }


def _data(found: Mapping[str, Any]) -> Any:
    return base64.b64decode(found["data"]) if found.get("encoding") == "base64" else found["data"]


def _state(found: Mapping[str, Any], name: str) -> Any:
    value = found.get(name)
    return base64.b64decode(value or "") if found.get("state_encoding") == "base64" else value


def _duration(milliseconds: float) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _some_duration(milliseconds: float | None) -> timedelta | None:
    return None if milliseconds is None else _duration(milliseconds)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _some_moment(text: str | None) -> datetime | None:
    return None if text is None else _moment(text)


def numbers(published: Mapping[str, Any]) -> list[Seq]:
    """The result of publishing: seqs, or the ids of scheduled messages."""
    found: list[int] = published["seqs"] if "seqs" in published else published["scheduled_ids"]
    duplicates = set(published.get("duplicates", ()))
    return [Seq.answered(-number) if place in duplicates else Seq(number) for place, number in enumerate(found)]
