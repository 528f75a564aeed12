"""Tasks in the background: start, list, cancel."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from postbus.model.task import TaskInfo, TaskKind
from postbus.operations import tasks
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import KeyPattern, Name, Seq, Time, moment
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()


class NewTask(Struct, forbid_unknown_fields=True):
    """A redrive takes key_pattern, reason_like, to_stream; a discard the first two; a replay key_pattern and a range."""

    kind: TaskKind
    key_pattern: KeyPattern | None = None
    reason_like: str | None = None
    to_stream: Name | None = None
    from_seq: Seq | None = None
    to_seq: Seq | None = None
    from_time: Time | None = None
    to_time: Time | None = None
    rate: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None


class StartedTask(Struct):
    id: int


class CancelledTask(Struct):
    """`cancelled` is false if it had ended before."""

    id: int
    cancelled: bool


class OfStream(Struct):
    stream: Name | None = None


@endpoints.add(tasks.START)
async def start_task(call: Call, body: NewTask) -> Data[StartedTask]:
    """Start a redrive, discard or replay in the background."""
    to_stream = None if body.to_stream is None else await call.stream_for("publish", body.to_stream)
    operation = tasks.start(
        call.stream,
        call.consumer,
        body.kind,
        key_pattern=body.key_pattern,
        reason_like=body.reason_like,
        to_stream=to_stream,
        from_seq=body.from_seq,
        to_seq=body.to_seq,
        from_time=moment(body.from_time),
        to_time=moment(body.to_time),
        rate=body.rate,
    )
    return Data(StartedTask(await call.bus.transport.run(operation)))


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
