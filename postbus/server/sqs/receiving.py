"""Receiving: up to ten messages, at once or when some come."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from postbus.model.delivery import Batch, Delivery
from postbus.model.sqs import ServedSqsQueue
from postbus.server.sqs import bodies, message_attributes, queue_attributes, shapes
from postbus.server.sqs.call import ACCOUNT, SqsCall
from postbus.server.sqs.errors import bad_attribute, invalid
from postbus.server.sqs.handles import Handle
from postbus.server.sqs.sending import content_id

_LONGEST_WAIT: Final = 20
_LONGEST_VISIBILITY: Final = 43_200
# A lease is never that short by itself: it stands for a visibility timeout of 0.
_AT_ONCE: Final = 0.001
_ATTRIBUTES: Final = (
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
)


def wait_of(given: shapes.ReceiveMessage, queue: ServedSqsQueue) -> int:
    """How many seconds a request may wait for messages.

    Raises:
        SqsError: It is out of range.
    """
    wait = given.wait_time_seconds
    if wait is None:
        return queue_attributes.number(queue.attributes, "ReceiveMessageWaitTimeSeconds")
    if not 0 <= wait <= _LONGEST_WAIT:
        raise invalid("WaitTimeSeconds", wait, "Must be >= 0 and <= 20, if provided.")
    return wait


async def receive_message(call: SqsCall, given: shapes.ReceiveMessage, queue: ServedSqsQueue) -> shapes.Received:
    most = 1 if given.max_number_of_messages is None else given.max_number_of_messages
    if not 1 <= most <= 10:
        raise invalid("MaxNumberOfMessages", most, "Must be between 1 and 10, if provided.")
    visibility = given.visibility_timeout
    if visibility is None:
        visibility = queue_attributes.number(queue.attributes, "VisibilityTimeout")
    elif not 0 <= visibility <= _LONGEST_VISIBILITY:
        raise invalid("VisibilityTimeout", visibility, "Must be >= 0 and <= 43200, if provided.")
    wanted = {*(given.attribute_names or ()), *(given.message_system_attribute_names or ())}
    for name in wanted:
        if name not in _ATTRIBUTES and name != "All" and name not in queue_attributes.READABLE:
            raise bad_attribute(name[:100])
    batch = await _receive(call, queue, most, visibility, wait_of(given, queue))
    call.state.metrics.count_received(queue.stream, queue.consumer, len(batch))
    shown = [_message(call, queue, each, visibility, wanted, given.message_attribute_names) for each in batch]
    return shapes.Received(messages=shown or None)


async def _receive(call: SqsCall, queue: ServedSqsQueue, most: int, visibility: int, wait: int) -> Batch:
    reader, polls = call.reader(queue), call.state.long_polls
    ack_wait = visibility or _AT_ONCE
    batch = Batch(())
    if not wait or not polls.is_crowded(queue.stream, queue.consumer):
        with polls.looking(queue.stream, queue.consumer):
            batch = await reader.receive(most, ack_wait=ack_wait)
    if batch or not wait:
        return batch

    async def confirm() -> None:
        await call.state.guard.confirm(call.token)

    async with polls.opened(call.request, confirm) as poll:
        batch = await polls.receive(reader, most, wait=wait, ack_wait=ack_wait, poll=poll)
        if batch and poll.is_abandoned:
            # The client is gone: others should not have to wait until the lease expires.
            await reader.nack(batch, reason="the receiver disconnected", untried=True)
            return Batch(())
    return batch


def _message(
    call: SqsCall,
    queue: ServedSqsQueue,
    delivery: Delivery,
    visibility: int,
    wanted: set[str],
    wanted_attributes: list[str] | None,
) -> shapes.ReceivedMessage:
    now = int(time.time() * 1000)
    body = bodies.as_body(delivery.data, queue)
    headers = delivery.headers or {}
    attributes: dict[str, shapes.Attribute] = {}
    if wanted_attributes:
        stored = message_attributes.of_headers(headers, is_native=not queue.owns_stream)
        attributes = message_attributes.chosen(stored, wanted_attributes)
    return shapes.ReceivedMessage(
        message_id=headers.get(bodies.ID) or bodies.id_of(queue.id_base, delivery.seq),
        receipt_handle=Handle(queue.id, delivery.ack_id, delivery.seq, now, now + visibility * 1000).text(),
        body_md5=hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
        body=body,
        attributes=_system_attributes(call, queue, delivery, body, now, wanted) if wanted else None,
        attributes_md5=message_attributes.md5_of(attributes),
        message_attributes=attributes or None,
    )


def _system_attributes(
    call: SqsCall, queue: ServedSqsQueue, delivery: Delivery, body: str, now: int, wanted: set[str]
) -> dict[str, str] | None:
    headers = delivery.headers or {}
    sent = headers.get(bodies.SENT) or str(int(delivery.published_at.timestamp() * 1000))
    source = headers.get(bodies.SOURCE)
    everything = {
        "SenderId": ACCOUNT,
        "SentTimestamp": sent,
        "ApproximateReceiveCount": str(delivery.attempt),
        # When a message was first received is not stored: not before it was sent.
        "ApproximateFirstReceiveTimestamp": str(now) if delivery.attempt == 1 else sent,
        "MessageGroupId": bodies.group_of(delivery, queue),
        "AWSTraceHeader": headers.get(bodies.TRACE),
        "DeadLetterQueueSourceArn": None if source is None else call.arn_of(source),
    }
    if queue.is_fifo:
        everything["SequenceNumber"] = f"{delivery.seq:020d}"
        everything["MessageDeduplicationId"] = headers.get(bodies.DEDUP) or content_id(body)
    found = {
        name: value for name, value in everything.items() if value is not None and ("All" in wanted or name in wanted)
    }
    return found or None
