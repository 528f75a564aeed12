"""Groups: consumers read by position, with claim, fetch and commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

import postbus
from postbus.model.consumer import Start
from postbus.model.group import Claim
from postbus.operations import groups
from postbus.server import responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.endpoints.consumers import Position, Seek
from postbus.server.fields import Limit, Milliseconds, Name, Seq, Time, WaitFor, given, moment, seconds
from postbus.server.long_poll import Poll
from postbus.server.responses import Count, Data

endpoints = Endpoints()

# How often a waiting request checks whether the server is stopping.
_SLICE_SECONDS = 1.0
Token = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
ExpireAfter = Annotated[int, Meta(ge=60_000, le=3650 * 24 * 60 * 60 * 1000)]
Tokens = Annotated[list[Token], Meta(max_length=10_000)]
Partition = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Session = Annotated[int, Meta(ge=1000, le=24 * 60 * 60 * 1000)]


class NewGroup(Struct, forbid_unknown_fields=True):
    """Give at most one of `start`, `from_seq` and `from_time`. Without them, it starts with the oldest message."""

    schema_extra: ClassVar[dict[str, Any]] = {
        "not": {
            "anyOf": [
                {"required": both}
                for both in (["start", "from_seq"], ["start", "from_time"], ["from_seq", "from_time"])
            ]
        },
    }

    name: Name
    keep_unread: bool = False
    expire_after_ms: ExpireAfter | None = None
    start: Start | UnsetType = UNSET
    from_seq: Seq | UnsetType = UNSET
    from_time: Time | UnsetType = UNSET
    exist_ok: bool = False


class NewClaim(Struct, forbid_unknown_fields=True):
    """With `lease_ms`, ranges that are not committed in time are claimed again. Without it, each range is claimed at most once.
    With `worker`, only its own partitions are claimed. If there is nothing to claim, the request waits `wait_for` milliseconds.
    """

    batch_size: Limit = 100
    lease_ms: Milliseconds | UnsetType = UNSET
    worker: Name | UnsetType = UNSET
    wait_for: WaitFor = 0


class ClaimedRange(Struct):
    partition: int
    from_seq: int
    to_seq: int
    message_count: int
    token: str | None
    deadline: Time | None


class Range(Struct, forbid_unknown_fields=True):
    partition: Partition
    from_seq: Seq
    to_seq: Seq


class Fetch(Struct, forbid_unknown_fields=True):
    ranges: Annotated[list[Range], Meta(max_length=1024)]


class Commit(Struct, forbid_unknown_fields=True):
    """With `to_seq`, commits only up to that seq; the rest stays claimed."""

    tokens: Tokens
    to_seq: Seq | UnsetType = UNSET


class Release(Struct, forbid_unknown_fields=True):
    tokens: Tokens


class Extend(Struct, forbid_unknown_fields=True):
    tokens: Tokens
    lease_ms: Milliseconds


class Heartbeat(Struct, forbid_unknown_fields=True):
    """The worker counts as dead if it sends no request for this long."""

    session_ms: Session = 30_000


class Assigned(Struct):
    partitions: list[int]


def _group(call: Call) -> postbus.AsyncGroup:
    return call.bus.group(call.stream, call.consumer)


def _claims(tokens: list[str]) -> list[Claim]:
    return [Claim(partition=0, from_seq=0, to_seq=0, message_count=0, token=token, deadline=None) for token in tokens]


@endpoints.add(groups.LIST)
async def list_groups(call: Call) -> Data[list[responses.Consumer]]:
    """List the groups of a stream."""
    stream_id = await call.stream_id()
    found = await call.bus.list_consumers(call.stream)
    return Data([responses.consumer(each, stream_id) for each in found if each.is_group])


@endpoints.add(groups.CREATE, invalid_status=422)
async def create_group(call: Call, body: NewGroup) -> Data[responses.Consumer]:
    """Create a group.

    With `exist_ok`, one that exists is left as it is, if it has the settings that are given.
    """
    await call.bus.create_group(
        call.stream,
        body.name,
        keep_unread=body.keep_unread,
        expire_after=seconds(body.expire_after_ms),
        start=given(body.start),
        from_seq=given(body.from_seq),
        from_time=moment(body.from_time),
        exist_ok=body.exist_ok,
    )
    call.state.names.forget(call.stream)
    return Data(responses.consumer(await call.bus.consumer(call.stream, body.name).info(), await call.stream_id()))


@endpoints.add(groups.DROP)
async def delete_group(call: Call) -> Data[responses.Deleted]:
    """Delete a group."""
    info = await call.reader.info()
    await _group(call).drop()
    call.state.names.forget(call.stream)
    return Data(responses.Deleted(id=str(info.id), name=info.name))


@endpoints.add(groups.STATS)
async def get_group_stats(call: Call) -> Data[responses.ConsumerPlace]:
    """Get the progress of a group: position and lag, by partition and in total."""
    return Data(responses.consumer_place(await _group(call).stats()))


@endpoints.add(groups.CLAIM)
async def claim(call: Call, body: NewClaim) -> Data[list[ClaimedRange]]:
    """Claim the next messages of a group, as ranges to fetch."""
    claims = await _claim(call, body, 0.0)
    if not claims and body.wait_for:
        async with call.long_poll() as poll:
            claims = await _wait_for_claims(call, body, poll)
            if claims and poll.is_abandoned and body.lease_ms is not UNSET:
                await _group(call).release(claims)
    return Data([ClaimedRange(c.partition, c.from_seq, c.to_seq, c.message_count, c.token, c.deadline) for c in claims])


async def _wait_for_claims(call: Call, body: NewClaim, poll: Poll) -> Sequence[Claim]:
    end = time.monotonic() + body.wait_for / 1000
    claims: Sequence[Claim] = ()
    while not claims and not poll.ended and not call.state.stopping and (left := end - time.monotonic()) > 0:
        await poll.confirm()
        claims = await _claim(call, body, min(left, _SLICE_SECONDS))
    return claims


async def _claim(call: Call, body: NewClaim, wait: float) -> Sequence[Claim]:
    return await _group(call).claim(body.batch_size, lease=seconds(body.lease_ms), worker=given(body.worker), wait=wait)


@endpoints.add(groups.FETCH)
async def fetch(call: Call, body: Fetch) -> Data[list[responses.StoredMessage]]:
    """Get the messages of claimed ranges, up to 10,000 of each."""
    claims = [
        Claim(
            partition=each.partition,
            from_seq=each.from_seq,
            to_seq=each.to_seq,
            message_count=0,
            token=None,
            deadline=None,
        )
        for each in body.ranges
    ]
    stream_id = await call.stream_id()
    return Data([responses.message(each, stream_id) for each in await _group(call).fetch(claims)])


@endpoints.add(groups.COMMIT)
async def commit(call: Call, body: Commit) -> Data[Count]:
    """Commit ranges that were claimed with a lease. Returns how many counted."""
    return Data(Count(await _group(call).commit(_claims(body.tokens), to_seq=given(body.to_seq))))


@endpoints.add(groups.RELEASE)
async def release(call: Call, body: Release) -> Data[Count]:
    """Release ranges: the next claim gets them."""
    return Data(Count(await _group(call).release(_claims(body.tokens))))


@endpoints.add(groups.EXTEND)
async def extend(call: Call, body: Extend) -> Data[Count]:
    """Extend the leases of ranges. Returns how many messages they hold."""
    return Data(Count(await _group(call).extend(_claims(body.tokens), body.lease_ms / 1000)))


@endpoints.add(groups.SEEK)
async def seek(call: Call, body: Seek) -> Data[Position]:
    """Move a group to another position. Claimed ranges are given up."""
    position = await _group(call).seek(
        given(body.start), from_seq=given(body.from_seq), from_time=moment(body.from_time)
    )
    return Data(Position(position))


@endpoints.add(groups.JOIN)
async def join(call: Call, body: Heartbeat | None = None) -> Data[Assigned]:
    """Join a group as a worker, or keep its membership alive. Returns the worker's partitions."""
    session = (body or Heartbeat()).session_ms / 1000
    member = _group(call).join(call.request.parameters["worker"], session=session)
    return Data(Assigned(list(await member.heartbeat())))


@endpoints.add(groups.LEAVE)
async def leave(call: Call) -> Data[Count]:
    """Leave a group."""
    await _group(call).join(call.request.parameters["worker"]).leave()
    return Data(Count(1))
