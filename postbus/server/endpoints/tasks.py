"""Tasks in the background: start, list, cancel."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from postbus.model.task import TaskInfo
from postbus.operations import tasks
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import KeyPattern, Name, Seq, Time, moment
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()


Rate = Annotated[float, Meta(ge=0.001, le=1_000_000, description="The largest number of messages per second")]


class NewDiscard(Struct, forbid_unknown_fields=True):
    """All dead letters that there are now, or those that match. `reason_like` is an SQL LIKE pattern."""

    key_pattern: KeyPattern | None = None
    reason_like: str | None = None
    rate: Rate | None = None


class NewRedrive(NewDiscard, forbid_unknown_fields=True):
    """With `to_stream`, they are published to this stream instead of delivered again."""

    to_stream: Name | None = None


class NewReplay(Struct, forbid_unknown_fields=True):
    """Messages of a range that the consumer has already received; without a range, all of them."""

    from_seq: Seq | None = None
    to_seq: Seq | None = None
    from_time: Time | None = None
    to_time: Time | None = None
    key_pattern: KeyPattern | None = None
    rate: Rate | None = None


class NewMove(Struct, forbid_unknown_fields=True):
    """What the consumer could receive is published to `to_stream`; without it, each to the stream whose dead letter it is."""

    to_stream: Name | None = None
    rate: Rate | None = None


class StartedTask(Struct):
    id: int


class CancelledTask(Struct):
    """`cancelled` is false if it had ended before."""

    id: int
    cancelled: bool


class OfStream(Struct):
    stream: Name | None = None


@endpoints.add(tasks.REDRIVE)
async def start_redrive(call: Call, body: NewRedrive) -> Data[StartedTask]:
    """Start to redrive dead letters in the background."""
    to_stream = None if body.to_stream is None else await call.stream_for("publish", body.to_stream)
    number = await call.bus.tasks.redrive(
        call.stream,
        call.consumer,
        key_pattern=body.key_pattern,
        reason_like=body.reason_like,
        to_stream=to_stream,
        rate=body.rate,
    )
    return Data(StartedTask(number))


@endpoints.add(tasks.DISCARD)
async def start_discard(call: Call, body: NewDiscard) -> Data[StartedTask]:
    """Start to remove dead letters for good, in the background."""
    number = await call.bus.tasks.discard(
        call.stream, call.consumer, key_pattern=body.key_pattern, reason_like=body.reason_like, rate=body.rate
    )
    return Data(StartedTask(number))


@endpoints.add(tasks.REPLAY)
async def start_replay(call: Call, body: NewReplay) -> Data[StartedTask]:
    """Start to deliver messages again, in the background."""
    number = await call.bus.tasks.replay(
        call.stream,
        call.consumer,
        from_seq=body.from_seq,
        to_seq=body.to_seq,
        from_time=moment(body.from_time),
        to_time=moment(body.to_time),
        key_pattern=body.key_pattern,
        rate=body.rate,
    )
    return Data(StartedTask(number))


@endpoints.add(tasks.MOVE)
async def start_move(call: Call, body: NewMove) -> Data[StartedTask]:
    """Start to move messages of a consumer to another stream, in the background."""
    if body.to_stream is None:
        # Each message says where it goes, so this may publish to any stream.
        call.demand("publish", None)
        to_stream = None
    else:
        to_stream = await call.stream_for("publish", body.to_stream)
    return Data(StartedTask(await call.bus.tasks.move(call.stream, call.consumer, to_stream=to_stream, rate=body.rate)))


@endpoints.add(tasks.LIST)
async def list_tasks(call: Call, query: OfStream) -> Data[list[TaskInfo]]:
    """List tasks in the background, the newest first: those that run, and those that ended within a week."""
    return Data([each for each in await call.bus.tasks.list_all(query.stream) if call.token.sees(each.stream)])


@endpoints.add(tasks.CANCEL)
async def cancel_task(call: Call) -> Data[CancelledTask]:
    """Cancel a task in the background. What it has moved stays moved."""
    number = call.request.parameters["task"]
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise Problem(404, "not_found", f'task "{number[:80]}" does not exist')
    return Data(CancelledTask(int(number), await call.bus.tasks.cancel(call.stream, int(number))))
