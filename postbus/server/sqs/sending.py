"""Sending: one message or a batch. It is answered when it is durable."""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from postbus.model.message import Message, Seq
from postbus.model.sqs import ServedSqsQueue
from postbus.server.sqs import batches, bodies, message_attributes, queue_attributes, shapes
from postbus.server.sqs.call import SqsCall
from postbus.server.sqs.errors import SqsError, invalid, invalid_value, missing

_LONGEST_BATCH: Final = 1_048_576
_is_id: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}").fullmatch
_ALLOWED: Final = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
_OF_OTHER_TYPE: Final = "The request include parameter that is not valid for this queue type."


@dataclass(slots=True)
class _New:
    """A message that was checked.

    Attributes:
        message: What is published.
        given: What was sent.
        delay: How many seconds it waits first.
        id: Its id, if that is not made from its seq.
    """

    message: Message
    given: shapes.NewMessage
    delay: int
    id: str | None


async def send_message(call: SqsCall, given: shapes.SendMessage, queue: ServedSqsQueue) -> shapes.Sent:
    new = _new(given, queue)
    (seq,) = await _publish(call, queue, [new])
    return _sent(shapes.Sent(), new, seq, queue)


async def send_batch(call: SqsCall, given: shapes.SendMessageBatch, queue: ServedSqsQueue) -> shapes.SentBatch:
    entries = given.entries or []
    batches.check(entries, "SendMessageBatchRequestEntry")
    size = sum(_size(entry) for entry in entries)
    if size > _LONGEST_BATCH:
        message = f"Batch requests cannot be longer than {_LONGEST_BATCH} bytes. You have sent {size} bytes."
        raise SqsError("BatchRequestTooLong", message)
    for entry in entries if queue.is_fifo else ():
        # Without a group, or an id where one is needed, the batch fails as a whole.
        _key(entry, queue, {})
        _dedup(entry, queue)
    failed: list[shapes.FailedEntry] = []
    by_delay: defaultdict[int, list[tuple[shapes.NewEntry, _New]]] = defaultdict(list)
    for entry in entries:
        try:
            new = _new(entry, queue)
        except SqsError as error:
            failed.append(batches.failed(entry, error))
        else:
            by_delay[new.delay].append((entry, new))
    successful: list[shapes.SentEntry] = []
    for together in by_delay.values():
        seqs = await _publish(call, queue, [new for _, new in together])
        for (entry, new), seq in zip(together, seqs, strict=True):
            sent = shapes.SentEntry(id=entry.id)
            _sent(sent, new, seq, queue)
            successful.append(sent)
    order = {entry.id: place for place, entry in enumerate(entries)}
    successful.sort(key=lambda each: order[each.id])
    return shapes.SentBatch(successful=successful or None, failed=failed or None)


async def _publish(call: SqsCall, queue: ServedSqsQueue, new: list[_New]) -> list[Seq]:
    messages = [each.message for each in new]
    delay = new[0].delay
    if delay:
        seqs = await call.bus.publish_many(queue.stream, messages, delay=delay)
    else:
        seqs = await call.state.coalescer.publish(queue.stream, messages)
    call.state.metrics.count_published(queue.stream, sum(not seq.is_duplicate for seq in seqs))
    return seqs


def _sent(sent: shapes.Sent, new: _New, seq: Seq, queue: ServedSqsQueue) -> shapes.Sent:
    sent.message_id = new.id or bodies.id_of(queue.id_base, seq)
    sent.body_md5 = hashlib.md5((new.given.message_body or "").encode(), usedforsecurity=False).hexdigest()
    sent.attributes_md5 = message_attributes.md5_of(new.given.message_attributes or {})
    sent.system_attributes_md5 = message_attributes.md5_of(new.given.message_system_attributes or {})
    if queue.is_fifo and not new.delay:
        sent.sequence_number = f"{seq:020d}"
    return sent


def _new(given: shapes.NewMessage, queue: ServedSqsQueue) -> _New:
    """What is published for what was sent.

    Raises:
        SqsError: It is not allowed.
    """
    body = given.message_body
    if not body:
        raise missing("MessageBody")
    if message_attributes.NOT_ALLOWED.search(body):
        raise SqsError(
            "InvalidMessageContents",
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | "
            "#x10000 to #x10FFFF",
        )
    attributes = given.message_attributes or {}
    size = len(body.encode()) + message_attributes.check(attributes)
    most = queue_attributes.number(queue.attributes, "MaximumMessageSize")
    if size > most:
        raise invalid_value(f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes.")
    system = given.message_system_attributes or {}
    message_attributes.check_system(system)
    delay = _delay(given, queue)
    headers = message_attributes.as_headers(attributes)
    if message_attributes.TRACE in system:
        headers[bodies.TRACE] = system[message_attributes.TRACE].string_value or ""
    key = _key(given, queue, headers)
    dedup = _dedup(given, queue)
    own_id = _own_id(queue, delay, dedup)
    if own_id is not None:
        headers |= {bodies.ID: own_id, bodies.SENT: str(int(time.time() * 1000))}
    if dedup is not None and given.message_deduplication_id:
        headers[bodies.DEDUP] = given.message_deduplication_id
    dedup_id = dedup if queue.has_dedup else None
    message = Message(key=key, data=bodies.as_data(body, queue), headers=headers or None, dedup_id=dedup_id)
    return _New(message, given, delay, own_id)


def _own_id(queue: ServedSqsQueue, delay: int, dedup: str | None) -> str | None:
    """The id of a message that is delayed: its seq is not known yet."""
    if not delay:
        return None
    return str(uuid.uuid4()) if dedup is None else bodies.id_of(queue.id_base, f"dedup:{dedup}")


def _delay(given: shapes.NewMessage, queue: ServedSqsQueue) -> int:
    delay = given.delay_seconds
    if delay is None or (delay == 0 and queue.is_fifo):
        return queue_attributes.number(queue.attributes, "DelaySeconds")
    if not 0 <= delay <= 900:
        raise invalid("DelaySeconds", delay, "DelaySeconds must be >= 0 and <= 900.")
    if queue.is_fifo:
        raise invalid("DelaySeconds", delay, _OF_OTHER_TYPE)
    return delay


def _key(given: shapes.NewMessage, queue: ServedSqsQueue, headers: dict[str, str]) -> str | None:
    """The key of a message: its group. On a standard queue it does not order, and is there for fair turns."""
    group = given.message_group_id
    if group is None:
        if queue.is_fifo:
            raise missing("MessageGroupId")
        return None
    if not _is_id(group):
        raise invalid("MessageGroupId", group[:200], f"MessageGroupId {_ALLOWED}")
    if bodies.is_lossy(group):
        headers[bodies.GROUP] = group
    return bodies.key_of(group)


def _dedup(given: shapes.NewMessage, queue: ServedSqsQueue) -> str | None:
    """The id by which duplicates of a message are known; None on a standard queue."""
    named = given.message_deduplication_id
    if not queue.is_fifo:
        if named is not None:
            raise invalid("MessageDeduplicationId", named[:200], _OF_OTHER_TYPE)
        return None
    if named is not None and not _is_id(named):
        raise invalid("MessageDeduplicationId", named[:200], f"MessageDeduplicationId {_ALLOWED}")
    if named is None:
        if queue.attributes.get("ContentBasedDeduplication") != "true":
            raise invalid_value(
                "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
            )
        named = content_id(given.message_body or "")
    if queue.attributes.get("DeduplicationScope") == "messageGroup":
        return hashlib.sha256(f"{given.message_group_id}\0{named}".encode()).hexdigest()
    return named


def content_id(body: str) -> str:
    """The deduplication id of a message without one."""
    return hashlib.sha256(body.encode()).hexdigest()


def _size(entry: shapes.NewEntry) -> int:
    size = len((entry.message_body or "").encode())
    for name, attribute in (entry.message_attributes or {}).items():
        size += len(name.encode()) + len((attribute.data_type or "").encode())
        size += len(attribute.binary_value or b"") + len((attribute.string_value or "").encode())
    return size
