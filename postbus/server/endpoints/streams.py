"""Streams: create, list, get, edit, purge, delete."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.settings import StreamChanges, StreamSettings
from postbus.operations import streams
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Name, Seq, Time, given, moment
from postbus.server.responses import Data
from postbus.server.sequin_fields import SequinStream, settings_of
from postbus.server.setting_fields import given_settings, request_of, unset_settings

endpoints = Endpoints()


class NewStream(SequinStream, forbid_unknown_fields=True, kw_only=True):
    """`max_storage` is in bytes. `until_acked` makes it a queue: a message is removed once all consumers have finished it.

    At a limit, the stream evicts its oldest messages or refuses new ones (`when_full`). It never evicts messages younger than
    `retain_at_least_ms`. `max_storage_gb`, `retain_up_to` and `retain_at_least` are Sequin's names for the three.
    """

    name: Name
    exist_ok: bool = False


class StreamEdit(SequinStream, forbid_unknown_fields=True, kw_only=True):
    """Fields that are left out stay as they are; null removes a limit."""


class Rates(Struct):
    """`span_ms` is divided into so many `buckets`."""

    span_ms: Annotated[int, Meta(ge=1, le=366 * 86_400_000)] = 3_600_000
    buckets: Annotated[int, Meta(ge=1, le=500)] = 60


class PublishCounts(Struct):
    """The oldest first."""

    counts: list[int]


if not TYPE_CHECKING:
    NewStream = request_of(NewStream, StreamSettings, is_edit=False)
    StreamEdit = request_of(StreamEdit, StreamChanges, is_edit=True)


class Purge(Struct, forbid_unknown_fields=True):
    """Give exactly one of these."""

    schema_extra: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    before_seq: Seq | UnsetType = UNSET
    before_time: Time | UnsetType = UNSET
    everything: Annotated[bool, Meta(extra_json_schema={"const": True})] | UnsetType = UNSET


class Purged(Struct):
    """Messages below this seq were removed."""

    start_seq: int


def _settings(kind: Any, body: Any) -> dict[str, Any]:
    """The settings that a body gives, by any of their names."""
    return {**given_settings(kind, body), **settings_of(body)}


@endpoints.add(streams.LIST)
async def list_streams(call: Call) -> Data[list[responses.Stream]]:
    """List the streams."""
    return Data([responses.stream(each) for each in await call.bus.list_streams() if call.token.sees(each.name)])


@endpoints.add(streams.CREATE, invalid_status=422)
async def create_stream(call: Call, body: NewStream) -> Data[responses.Stream]:
    """Create a stream.

    With `exist_ok`, one that exists is left as it is, if it has the settings that are given.
    """
    call.demand("manage", body.name)
    await call.bus.create_stream(body.name, exist_ok=body.exist_ok, **_settings(StreamSettings, body))
    call.state.names.forget(body.name)
    return Data(responses.stream(await call.bus.stream_info(body.name)))


@endpoints.add(streams.INFO)
async def get_stream(call: Call) -> Data[responses.Stream]:
    """Get a stream's settings and size."""
    return Data(responses.stream(await call.bus.stream_info(call.stream)))


@endpoints.add(streams.ALTER, invalid_status=422)
async def edit_stream(call: Call, body: StreamEdit) -> Data[responses.Stream]:
    """Change settings of a stream."""
    changes = _settings(StreamChanges, body)
    await call.bus.alter_stream(call.stream, **changes, unset=unset_settings(StreamChanges, body))
    return Data(responses.stream(await call.bus.stream_info(call.stream)))


@endpoints.add(streams.DROP)
async def delete_stream(call: Call) -> Data[responses.Deleted]:
    """Delete a stream with its messages and consumers."""
    info = await call.bus.stream_info(call.stream)
    await call.bus.drop_stream(call.stream)
    call.state.names.forget(call.stream)
    return Data(responses.Deleted(id=str(info.id), name=info.name))


@endpoints.add(streams.PURGE)
async def purge_stream(call: Call, body: Purge) -> Data[Purged]:
    """Remove old messages of a stream, or all of them."""
    start = await call.bus.purge(
        call.stream,
        before_seq=given(body.before_seq),
        before_time=moment(body.before_time),
        everything=given(body.everything) or False,
    )
    return Data(Purged(start))


@endpoints.add(streams.RATES)
async def get_stream_rates(call: Call, query: Rates) -> Data[PublishCounts]:
    """Get about how many messages were published in each part of the last hour, or of another span."""
    span = timedelta(milliseconds=query.span_ms)
    return Data(PublishCounts(await call.bus.publish_counts(call.stream, span=span, buckets=query.buckets)))


@endpoints.add(streams.STATS)
async def get_stream_stats(call: Call) -> Data[responses.StreamStats]:
    """Get how far a stream can be read, and which transactions block readers."""
    info = await call.bus.stream_info(call.stream)
    holders = await call.bus.horizon_holders(call.stream)
    return Data(
        responses.StreamStats(
            horizon_seq=await call.bus.horizon(call.stream),
            last_seq=info.last_seq,
            publish_rate_estimate=await call.bus.publish_rate(call.stream),
            holders=[responses.held_at(each) for each in holders],
        )
    )
