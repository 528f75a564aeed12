"""Channels: set, remove, pause and resume limits; list them, and say why messages wait."""

from __future__ import annotations

from typing import Final

from postbus.codec import answers, rows
from postbus.model.channel import ChannelLimits, ChannelState
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.operations.call import Call, Http, Route, Sql, first, nothing

_PATH: Final = "/api/streams/{stream}/channels"
LIST: Final = Route("GET", _PATH, "manage", also=("publish", "consume"))
SET: Final = Route("PUT", _PATH + "/{pattern}", "manage")
REMOVE: Final = Route("DELETE", _PATH + "/{pattern}", "manage")
PAUSE: Final = Route("POST", _PATH + "/{pattern}/pause", "manage")
RESUME: Final = Route("POST", _PATH + "/{pattern}/resume", "manage")
STATES: Final = Route("GET", "/api/streams/{stream}/consumers/{consumer}/channels", "manage", also=("consume",))


def set_limits(
    stream: str,
    pattern: str,
    *,
    max_concurrency: int | None,
    max_rate: int | None,
    per: Duration,
    burst: int,
    weight: int,
    paused: bool,
) -> Call[None]:
    return Call(
        Sql(
            "select postbus.set_channel($1, $2, $3, $4, $5, $6, $7, $8)",
            (stream, pattern, max_concurrency, max_rate, as_timedelta(per), burst, weight, paused),
            nothing,
        ),
        Http(
            SET,
            (stream, pattern),
            nothing,
            body={
                "max_concurrency": max_concurrency,
                "max_rate": max_rate,
                "per_ms": as_milliseconds(per),
                "burst": burst,
                "weight": weight,
                "paused": paused,
            },
        ),
        repeatable=True,
    )


def remove(stream: str, pattern: str) -> Call[bool]:
    return Call(
        Sql("select postbus.remove_channel($1, $2)", (stream, pattern), lambda found: bool(first(found))),
        Http(REMOVE, (stream, pattern), lambda answer: bool(answer.data["deleted"])),
    )


def pause(stream: str, pattern: str) -> Call[None]:
    return Call(
        Sql("select postbus.pause_channel($1, $2)", (stream, pattern), nothing),
        Http(PAUSE, (stream, pattern), nothing),
        repeatable=True,
    )


def resume(stream: str, pattern: str) -> Call[bool]:
    return Call(
        Sql("select postbus.resume_channel($1, $2)", (stream, pattern), lambda found: bool(first(found))),
        Http(RESUME, (stream, pattern), lambda answer: bool(answer.data["resumed"])),
    )


def list_all(stream: str) -> Call[list[ChannelLimits]]:
    return Call(
        Sql(
            f"select {rows.CHANNEL_LIMITS} from postbus.list_channels($1) as i",  # noqa: S608
            (stream,),
            lambda found: [rows.channel_limits(row) for row in found],
        ),
        Http(LIST, (stream,), lambda answer: [answers.channel_limits(each) for each in answer.data]),
        repeatable=True,
    )


def states(stream: str, consumer: str, max_channels: int) -> Call[list[ChannelState]]:
    return Call(
        Sql(
            f"select {rows.CHANNEL_STATE} from postbus.channel_states($1, $2, $3) as i",  # noqa: S608
            (stream, consumer, max_channels),
            lambda found: [rows.channel_state(row) for row in found],
        ),
        Http(
            STATES,
            (stream, consumer),
            lambda answer: [answers.channel_state(each) for each in answer.data],
            query={"limit": max_channels},
        ),
        repeatable=True,
    )
