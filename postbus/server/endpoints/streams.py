"""Streams: create, list, look at, edit, purge, delete."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.stream import DataType, WhenFull
from postbus.operations import streams
from postbus.server import answers
from postbus.server.answers import Data
from postbus.server.calls import Call, Endpoints
from postbus.server.fields import Name, Seq, Time, given, moment, seconds

endpoints = Endpoints()

_CENTURY_MS = 36_500 * 24 * 60 * 60 * 1000
Partitions = Annotated[int, Meta(ge=1, le=1024)]
MessageBytes = Annotated[int, Meta(ge=1, le=268_435_456)]
SegmentBytes = Annotated[int, Meta(ge=65_536, le=1_099_511_627_776)]
SegmentAge = Annotated[int, Meta(ge=1000, le=3650 * 24 * 60 * 60 * 1000)]
RetainUpTo = Annotated[int, Meta(ge=1000, le=_CENTURY_MS)]
RetainAtLeast = Annotated[int, Meta(ge=0, le=_CENTURY_MS)]
MaxMessages = Annotated[int, Meta(ge=1, le=2**63 - 1)]
DedupWindow = Annotated[int, Meta(ge=1000, le=30 * 24 * 60 * 60 * 1000)]
MaxStorage = Annotated[int, Meta(ge=1_048_576, le=2**63 - 1)]


class NewStream(Struct, forbid_unknown_fields=True):
    """`max_storage` is in bytes. `until_acked` makes it a queue: messages go when all consumers have finished them.

    At a limit the oldest messages go (`when_full` evict), but none younger than `retain_at_least_ms`, or new ones are refused.
    """

    name: Name
    data_type: DataType = "json"
    partitions: Partitions = 8
    max_message_bytes: MessageBytes = 8 * 1024 * 1024
    segment_bytes: SegmentBytes = 256 * 1024 * 1024
    segment_age_ms: SegmentAge = 24 * 60 * 60 * 1000
    retain_up_to_ms: RetainUpTo | None = None
    retain_at_least_ms: RetainAtLeast | None = None
    max_messages: MaxMessages | None = None
    max_storage: MaxStorage | None = None
    until_acked: bool = False
    when_full: WhenFull = "evict"
    dedup_window_ms: DedupWindow | None = None
    one_message_per_key: bool = False
    process_unmodified: bool = False


class StreamEdit(Struct, forbid_unknown_fields=True):
    """What is left out stays as it is; null takes a limit away."""

    partitions: Partitions | UnsetType = UNSET
    max_message_bytes: MessageBytes | UnsetType = UNSET
    segment_bytes: SegmentBytes | UnsetType = UNSET
    segment_age_ms: SegmentAge | UnsetType = UNSET
    retain_up_to_ms: RetainUpTo | UnsetType | None = UNSET
    retain_at_least_ms: RetainAtLeast | UnsetType | None = UNSET
    max_messages: MaxMessages | UnsetType | None = UNSET
    max_storage: MaxStorage | UnsetType | None = UNSET
    until_acked: bool | UnsetType = UNSET
    when_full: WhenFull | UnsetType = UNSET
    dedup_window_ms: DedupWindow | UnsetType | None = UNSET
    process_unmodified: bool | UnsetType = UNSET


class Purge(Struct, forbid_unknown_fields=True):
    """Exactly one of these."""

    schema_extra: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    before_seq: Seq | UnsetType = UNSET
    before_time: Time | UnsetType = UNSET
    everything: Annotated[bool, Meta(extra_json_schema={"const": True})] | UnsetType = UNSET


class Purged(Struct):
    """Messages below this seq are gone."""

    start_seq: int


@endpoints.add(streams.LIST)
async def list_streams(call: Call) -> Data[list[answers.Stream]]:
    """List the streams."""
    return Data([answers.stream(each) for each in await call.bus.list_streams() if call.token.sees(each.name)])


@endpoints.add(streams.CREATE, invalid_status=422)
async def create_stream(call: Call, body: NewStream) -> Data[answers.Stream]:
    """Create a stream."""
    call.demand("manage", body.name)
    await call.bus.create_stream(
        body.name,
        partitions=body.partitions,
        data_type=body.data_type,
        max_message_bytes=body.max_message_bytes,
        segment_bytes=body.segment_bytes,
        segment_age=body.segment_age_ms / 1000,
        retain_up_to=seconds(body.retain_up_to_ms),
        retain_at_least=seconds(body.retain_at_least_ms),
        max_messages=body.max_messages,
        max_storage=body.max_storage,
        until_acked=body.until_acked,
        when_full=body.when_full,
        dedup_window=seconds(body.dedup_window_ms),
        one_message_per_key=body.one_message_per_key,
        process_unmodified=body.process_unmodified,
    )
    call.service.directory.forget(body.name)
    return Data(answers.stream(await call.bus.stream_info(body.name)))


@endpoints.add(streams.INFO)
async def get_stream(call: Call) -> Data[answers.Stream]:
    """Get a stream's settings and size."""
    return Data(answers.stream(await call.bus.stream_info(call.stream)))


@endpoints.add(streams.ALTER, invalid_status=422)
async def edit_stream(call: Call, body: StreamEdit) -> Data[answers.Stream]:
    """Change settings of a stream."""
    await call.bus.alter_stream(
        call.stream,
        partitions=given(body.partitions),
        max_message_bytes=given(body.max_message_bytes),
        segment_bytes=given(body.segment_bytes),
        segment_age=seconds(body.segment_age_ms),
        retain_up_to=seconds(body.retain_up_to_ms),
        retain_at_least=seconds(body.retain_at_least_ms),
        max_messages=given(body.max_messages),
        max_storage=given(body.max_storage),
        until_acked=given(body.until_acked),
        when_full=given(body.when_full),
        dedup_window=seconds(body.dedup_window_ms),
        process_unmodified=given(body.process_unmodified),
        unset=_unset(body),
    )
    return Data(answers.stream(await call.bus.stream_info(call.stream)))


@endpoints.add(streams.DROP)
async def delete_stream(call: Call) -> Data[answers.Deleted]:
    """Delete a stream with its messages and consumers."""
    info = await call.bus.stream_info(call.stream)
    await call.bus.drop_stream(call.stream)
    call.service.directory.forget(call.stream)
    return Data(answers.Deleted(id=str(info.id), name=info.name))


@endpoints.add(streams.PURGE)
async def purge_stream(call: Call, body: Purge) -> Data[Purged]:
    """Remove old messages of a stream, or all."""
    start = await call.bus.purge(
        call.stream,
        before_seq=given(body.before_seq),
        before_time=moment(body.before_time),
        everything=given(body.everything) or False,
    )
    return Data(Purged(start))


@endpoints.add(streams.STATS)
async def get_stream_stats(call: Call) -> Data[answers.StreamStats]:
    """Get how far a stream can be read, and who holds it up."""
    info = await call.bus.stream_info(call.stream)
    holders = await call.bus.horizon_holders(call.stream)
    return Data(
        answers.StreamStats(
            horizon_seq=await call.bus.horizon(call.stream),
            last_seq=info.last_seq,
            publish_rate_estimate=await call.bus.publish_rate(call.stream),
            holders=[answers.held_at(each) for each in holders],
        )
    )


def _unset(body: StreamEdit) -> tuple[str, ...]:
    """The limits that were given as null."""
    limits = {
        "retain_up_to": body.retain_up_to_ms,
        "retain_at_least": body.retain_at_least_ms,
        "max_messages": body.max_messages,
        "max_storage": body.max_storage,
        "dedup_window": body.dedup_window_ms,
    }
    return tuple(name for name, value in limits.items() if value is None)
