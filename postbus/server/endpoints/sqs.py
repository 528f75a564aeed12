"""Queues for clients of SQS: expose, hide, list. What such clients send is answered by postbus.server.sqs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from postbus.operations import sqs
from postbus.server.endpoint import Call, Endpoints
from postbus.server.problems import Problem
from postbus.server.responses import Data

endpoints = Endpoints()
_PATTERN = "^([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\\.fifo)$"
QueueName = Annotated[
    str, Meta(pattern=_PATTERN, description="1 to 80 letters, digits, - or _; a FIFO queue's ends in .fifo")
]


class NewSqsQueue(Struct, forbid_unknown_fields=True):
    """Without a name, the queue is called like the stream and the consumer."""

    name: QueueName | None = None


class ExposedSqsQueue(Struct):
    name: str


class SqsQueueInfo(Struct):
    """`owns_stream`: it was made by CreateQueue, together with its stream."""

    name: str
    stream: str
    consumer: str
    owns_stream: bool
    attributes: dict[str, str]
    tags: dict[str, str]
    created_at: datetime
    changed_at: datetime
    purged_at: datetime | None


class HiddenSqsQueue(Struct):
    name: str
    hidden: bool = True


@endpoints.add(sqs.EXPOSE, invalid_status=422)
async def expose_sqs_queue(call: Call, body: NewSqsQueue | None = None) -> Data[ExposedSqsQueue]:
    """Let clients of SQS use a consumer as a queue."""
    name = None if body is None else body.name
    return Data(ExposedSqsQueue(await call.bus.sqs.expose(call.stream, call.consumer, name=name)))


@endpoints.add(sqs.LIST)
async def list_sqs_queues(call: Call) -> Data[list[SqsQueueInfo]]:
    """List the queues that clients of SQS see."""
    found = [each for each in await call.bus.sqs.list_all() if call.token.sees(each.stream)]
    return Data(
        [SqsQueueInfo(**{name: getattr(each, name) for name in SqsQueueInfo.__struct_fields__}) for each in found]
    )


@endpoints.add(sqs.HIDE)
async def hide_sqs_queue(call: Call) -> Data[HiddenSqsQueue]:
    """Take a queue from clients of SQS. Its stream and consumer stay."""
    name = call.request.parameters["queue"]
    if "\0" in name:
        raise Problem(404, "not_found", "there is no such queue")
    await call.bus.sqs.hide(name)
    return Data(HiddenSqsQueue(name))
