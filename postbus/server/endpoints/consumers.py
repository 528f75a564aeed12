"""Consumers: create, list, get, edit, pause, seek, replay, delete."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.consumer import Backoff, Exponential, Filter, Outcome, Start
from postbus.model.settings import ConsumerChanges, ConsumerSettings
from postbus.operations import consumers, dead_letters
from postbus.operations.call import Route
from postbus.server import problems, responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import (
    Delay,
    KeyPattern,
    Limit,
    Name,
    NoNul,
    Rate,
    Resume,
    Seq,
    Time,
    given,
    moment,
    seconds,
)
from postbus.server.responses import Data
from postbus.server.setting_fields import given_settings, request_of, unset_settings

endpoints = Endpoints()

Headers = dict[NoNul, NoNul]
JsonPath = Annotated[str, Meta(max_length=10_000, extra_json_schema={"format": "jsonpath"})]
Delays = Annotated[list[Delay], Meta(max_length=100)]
Factor = Annotated[float, Meta(ge=1, le=100)]
Jitter = Annotated[float, Meta(ge=0, le=1)]
Kind = Literal["pull"]
Status = Literal["active", "disabled"]
_TWO_POSITIONS = [["start", "from_seq"], ["start", "from_time"], ["from_seq", "from_time"]]
# backoff_factor, backoff_cap_ms and backoff_jitter describe how the single delay of backoff_ms grows.
_GROWTH: dict[str, Any] = {
    "properties": {"backoff_ms": {"minItems": 1, "maxItems": 1}},
    "required": ["backoff_ms"],
}
_GROWTH_SCHEMA = {"backoff_factor": _GROWTH, "backoff_cap_ms": {"required": ["backoff_factor"]}}


class NewConsumer(Struct, forbid_unknown_fields=True):
    """Give at most one of `start`, `from_seq` and `from_time`. Without them, it starts with the oldest message.

    `backoff_factor`, `backoff_cap_ms` and `backoff_jitter` make the single delay of `backoff_ms` grow.
    """

    schema_extra: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": [{"required": both} for both in _TWO_POSITIONS]},
        "dependentSchemas": {**_GROWTH_SCHEMA, "backoff_jitter": {"required": ["backoff_factor"]}},
    }

    name: Name
    kind: Kind = "pull"
    status: Status = "active"
    filter_key_pattern: KeyPattern | None = None
    filter_headers: Headers | None = None
    filter_headers_not: Headers | None = None
    filter_data: JsonPath | None = None
    backoff_ms: Delays = []
    backoff_factor: Factor | UnsetType = UNSET
    backoff_cap_ms: Delay | UnsetType = UNSET
    backoff_jitter: Jitter | UnsetType = UNSET
    start: Start | UnsetType = UNSET
    from_seq: Seq | UnsetType = UNSET
    from_time: Time | UnsetType = UNSET
    exist_ok: bool = False


class ConsumerEdit(Struct, forbid_unknown_fields=True):
    """Fields that are left out stay as they are; null unsets a setting."""

    schema_extra: ClassVar[dict[str, Any]] = {
        "dependentSchemas": {**_GROWTH_SCHEMA, "backoff_jitter": {"required": ["backoff_factor"]}},
    }

    kind: Kind | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    filter_key_pattern: KeyPattern | UnsetType | None = UNSET
    filter_headers: Headers | UnsetType | None = UNSET
    filter_headers_not: Headers | UnsetType | None = UNSET
    filter_data: JsonPath | UnsetType | None = UNSET
    backoff_ms: Delays | UnsetType | None = UNSET
    backoff_factor: Factor | UnsetType = UNSET
    backoff_cap_ms: Delay | UnsetType = UNSET
    backoff_jitter: Jitter | UnsetType = UNSET


if not TYPE_CHECKING:
    NewConsumer = request_of(NewConsumer, ConsumerSettings, is_edit=False)
    ConsumerEdit = request_of(ConsumerEdit, ConsumerChanges, is_edit=True)


class HistoryQuery(Struct):
    limit: Limit = 100
    outcome: Outcome | UnsetType = UNSET
    before_time: Time | UnsetType = UNSET


class Seek(Struct, forbid_unknown_fields=True):
    """Give exactly one of these."""

    schema_extra: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    start: Start | UnsetType = UNSET
    from_seq: Seq | UnsetType = UNSET
    from_time: Time | UnsetType = UNSET


class Replay(Struct, forbid_unknown_fields=True):
    """With `limit`, instead of `rate`, a request scans at most that many messages. Give the response's `resume` to continue."""

    schema_extra: ClassVar[dict[str, Any]] = {
        "not": {"required": ["rate", "limit"]},
        "dependentRequired": {"resume": ["limit"]},
    }

    from_seq: Seq | UnsetType = UNSET
    to_seq: Seq | UnsetType = UNSET
    from_time: Time | UnsetType = UNSET
    to_time: Time | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    rate: Rate | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    resume: Resume | UnsetType = UNSET


class Replayed(Struct, omit_defaults=True):
    """If `resume` is missing, nothing is left."""

    count: int
    resume: str | None = None


class Position(Struct):
    """The consumer continues after this seq."""

    position_seq: int


@endpoints.add(consumers.LIST)
async def list_consumers(call: Call) -> Data[list[responses.Consumer]]:
    """List the consumers of a stream."""
    consumers = await call.bus.list_consumers(call.stream)
    stream_id = await call.stream_id()
    return Data([responses.consumer(each, stream_id) for each in consumers])


@endpoints.add(consumers.CREATE, invalid_status=422)
async def create_consumer(call: Call, body: NewConsumer) -> Data[responses.Consumer]:
    """Create a consumer.

    With `exist_ok`, one that exists is left as it is, if it has the settings that are given.
    """
    created = await call.bus.create_consumer(
        call.stream,
        body.name,
        **given_settings(ConsumerSettings, body),
        backoff=_backoff(body) or (),
        filter=_filter(body),
        start=given(body.start),
        from_seq=given(body.from_seq),
        from_time=moment(body.from_time),
        exist_ok=body.exist_ok,
    )
    if body.status == "disabled":
        await created.pause()
    call.state.names.forget(call.stream)
    return Data(responses.consumer(await created.info(), await call.stream_id()))


@endpoints.add(consumers.INFO)
async def get_consumer(call: Call) -> Data[responses.Consumer]:
    """Get a consumer's settings."""
    return await _consumer(call)


async def _edit(call: Call, body: ConsumerEdit) -> Data[responses.Consumer]:
    await call.reader.alter(
        **given_settings(ConsumerChanges, body),
        backoff=_backoff(body),
        filter=_filter(body),
        unset=_unset(body),
    )
    if body.status is not UNSET:
        await (call.reader.pause() if body.status == "disabled" else call.reader.resume())
    return await _consumer(call)


@endpoints.add(consumers.HISTORY)
async def get_history(call: Call, query: HistoryQuery) -> Data[list[responses.PastDelivery]]:
    """List the outcomes of past deliveries, newest first. The consumer keeps them for `keep_history_ms`."""
    found = await call.reader.history(
        outcome=given(query.outcome), before_time=moment(query.before_time), max_messages=query.limit
    )
    stream_id = await call.stream_id()
    return Data([responses.past_delivery(each, stream_id) for each in found])


@endpoints.add(consumers.ALTER, invalid_status=422)
async def edit_consumer(call: Call, body: ConsumerEdit) -> Data[responses.Consumer]:
    """Change settings of a consumer."""
    return await _edit(call, body)


@endpoints.add(Route("PUT", "/api/streams/{stream}/consumers/{consumer}", "manage"), invalid_status=422)
async def put_consumer(call: Call, body: ConsumerEdit) -> Data[responses.Consumer]:
    """Change settings of a consumer, as PATCH does."""
    return await _edit(call, body)


@endpoints.add(consumers.DROP)
async def delete_consumer(call: Call) -> Data[responses.Deleted]:
    """Delete a consumer with its position and dead letters."""
    info = await call.reader.info()
    await call.reader.drop()
    call.state.names.forget(call.stream)
    return Data(responses.Deleted(id=str(info.id), name=info.name))


@endpoints.add(consumers.PAUSE)
async def pause_consumer(call: Call) -> Data[responses.Consumer]:
    """Pause a consumer: it delivers nothing until it is resumed."""
    await call.reader.pause()
    return await _consumer(call)


@endpoints.add(consumers.RESUME)
async def resume_consumer(call: Call) -> Data[responses.Consumer]:
    """Resume a paused consumer."""
    await call.reader.resume()
    return await _consumer(call)


@endpoints.add(consumers.SEEK)
async def seek_consumer(call: Call, body: Seek) -> Data[Position]:
    """Move a consumer to another position. Messages in flight are given up."""
    position = await call.reader.seek(
        given(body.start), from_seq=given(body.from_seq), from_time=moment(body.from_time)
    )
    return Data(Position(position))


@endpoints.add(dead_letters.REPLAY, is_long=True)
async def replay_consumer(call: Call, body: Replay) -> Data[Replayed]:
    """Replay messages that were delivered before. Ending the request cancels the rest."""
    chosen: dict[str, Any] = {
        "from_seq": given(body.from_seq),
        "to_seq": given(body.to_seq),
        "from_time": moment(body.from_time),
        "to_time": moment(body.to_time),
        "key_pattern": given(body.key_pattern),
    }
    if body.limit is not UNSET:
        refuse_rate(body.rate)
        count, resume = await call.reader.replay_page(**chosen, max_messages=body.limit, resume=given(body.resume))
        return Data(Replayed(count, resume))
    if body.resume is not UNSET:
        raise problems.invalid("resume", "needs a limit")
    count = 0
    replayed = call.reader.replay_steps(**chosen, rate=given(body.rate))
    async for count in replayed:  # noqa: B007
        if await is_over(call):
            break
    return Data(Replayed(count))


@endpoints.add(consumers.STATS)
async def get_consumer_stats(call: Call) -> Data[responses.ConsumerPlace]:
    """Get the progress of a consumer: lag, in flight, waiting, dead."""
    return Data(responses.consumer_place(await call.reader.stats()))


async def is_over(call: Call) -> bool:
    """Whether a long request should end: its client is gone, or the server is stopping."""
    await asyncio.sleep(0)
    return call.state.stopping or await call.request.is_disconnected()


def refuse_rate(rate: float | UnsetType) -> None:
    """Refuse a rate together with a limit."""
    if rate is not UNSET:
        raise problems.invalid("rate", "cannot be combined with a limit")


async def _consumer(call: Call) -> Data[responses.Consumer]:
    return Data(responses.consumer(await call.reader.info(), await call.stream_id()))


def _backoff(body: NewConsumer | ConsumerEdit) -> Backoff | None:
    if body.backoff_factor is UNSET:
        if body.backoff_cap_ms is not UNSET or body.backoff_jitter is not UNSET:
            raise problems.invalid("backoff_factor", "is missing", status=422, hint="1 keeps the delay constant")
        delays = given(body.backoff_ms)
        return None if delays is None else [delay / 1000 for delay in delays]
    if body.backoff_ms is UNSET or body.backoff_ms is None or len(body.backoff_ms) != 1:
        raise problems.invalid(
            "backoff_ms", "must have exactly one delay, the first, with a backoff_factor", status=422
        )
    return Exponential(
        first=body.backoff_ms[0] / 1000,
        factor=body.backoff_factor,
        cap=seconds(body.backoff_cap_ms),
        jitter=given(body.backoff_jitter) or 0.0,
    )


def _filter(body: NewConsumer | ConsumerEdit) -> Filter:
    return Filter(
        key=given(body.filter_key_pattern),
        headers=given(body.filter_headers),
        headers_not=given(body.filter_headers_not),
        data=given(body.filter_data),
    )


def _unset(body: ConsumerEdit) -> tuple[str, ...]:
    """The settings that are null in the request."""
    parts = {
        "backoff": body.backoff_ms,
        "filter_key_pattern": body.filter_key_pattern,
        "filter_headers": body.filter_headers,
        "filter_headers_not": body.filter_headers_not,
        "filter_data": body.filter_data,
    }
    return (*unset_settings(ConsumerChanges, body), *(name for name, value in parts.items() if value is None))
