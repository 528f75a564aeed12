"""Channels: limits by pattern, and why messages wait."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postbus.model.channel import ChannelState
from postbus.operations import channels
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import KeyPattern, Limit, Million
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()

_DAYS_MS = 30 * 24 * 60 * 60 * 1000
Per = Annotated[int, Meta(ge=1, le=_DAYS_MS, description="Milliseconds")]
Weight = Annotated[int, Meta(ge=1, le=1000)]


class NewLimits(Struct, forbid_unknown_fields=True):
    """All limits of the pattern: one that is left out is none."""

    max_concurrency: Million | None = None
    max_rate: Million | None = None
    per_ms: Per = 1000
    burst: Million = 1
    weight: Weight = 1
    paused: bool = False


class RemovedLimits(Struct):
    """`deleted` is false if the pattern had no limits."""

    pattern: str
    deleted: bool


class ResumedChannel(Struct):
    """`resumed` is false if the pattern was not paused."""

    pattern: str
    resumed: bool


class StatesQuery(Struct):
    limit: Limit = 100


@endpoints.add(channels.LIST)
async def list_channels(call: Call) -> Data[list[responses.ChannelLimits]]:
    """List the limits of a stream's channels, by pattern."""
    return Data([responses.channel_limits(each) for each in await call.bus.channels.list_all(call.stream)])


@endpoints.add(channels.SET, invalid_status=422)
async def set_channel(call: Call, body: NewLimits) -> Data[responses.ChannelLimits]:
    """Set the limits of channels, in place of those that the pattern had."""
    await call.bus.channels.set(
        call.stream,
        _pattern(call),
        max_concurrency=body.max_concurrency,
        max_rate=body.max_rate,
        per=body.per_ms / 1000,
        burst=body.burst,
        weight=body.weight,
        paused=body.paused,
    )
    return Data(
        responses.ChannelLimits(
            pattern=_pattern(call),
            max_concurrency=body.max_concurrency,
            max_rate=body.max_rate,
            per_ms=body.per_ms,
            burst=body.burst,
            weight=body.weight,
            paused=body.paused,
        )
    )


@endpoints.add(channels.REMOVE)
async def remove_channel(call: Call) -> Data[RemovedLimits]:
    """Remove the limits of a pattern."""
    return Data(RemovedLimits(_pattern(call), await call.bus.channels.remove(call.stream, _pattern(call))))


@endpoints.add(channels.PAUSE)
async def pause_channel(call: Call) -> Data[ResumedChannel]:
    """Give out no messages of channels, until they are resumed."""
    await call.bus.channels.pause(call.stream, _pattern(call))
    return Data(ResumedChannel(_pattern(call), resumed=False))


@endpoints.add(channels.RESUME)
async def resume_channel(call: Call) -> Data[ResumedChannel]:
    """Let paused channels go on."""
    return Data(ResumedChannel(_pattern(call), await call.bus.channels.resume(call.stream, _pattern(call))))


@endpoints.add(channels.STATES)
async def channel_states(call: Call, query: StatesQuery) -> Data[list[ChannelState]]:
    """Say why messages wait: the channels that have messages in flight for a consumer, or that wait for their turn."""
    return Data(await call.bus.channels.states(call.stream, call.consumer, max_channels=query.limit))


def _pattern(call: Call) -> str:
    try:
        return msgspec.convert(call.request.parameters["pattern"], KeyPattern)
    except msgspec.ValidationError:
        raise Problem(
            400, "invalid", f'"{call.request.parameters["pattern"][:80]}" is not a pattern of channels'
        ) from None
