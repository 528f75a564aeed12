"""Message ids, groups and bodies: how messages of SQS lie in a stream, and how those of other publishers look to SQS.

An id is made from the queue and the seq, unless a header has it: of messages that had one before they got their seq (they were
delayed), or before they came to this queue (dead letters). SQL makes the same id in as_sqs_dead_letter.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson

from postbus.model.delivery import Delivery
from postbus.model.sqs import ServedSqsQueue
from postbus.server.sqs.errors import SqsError
from postbus.server.sqs.message_attributes import NOT_ALLOWED

ID: Final = "sqs-id"
SENT: Final = "sqs-sent"
GROUP: Final = "sqs-group"
DEDUP: Final = "sqs-dedup"
TRACE: Final = "sqs-trace"
SOURCE: Final = "sqs-source"
_is_plain: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*").fullmatch
_LONGEST_KEY: Final = 255


def id_of(base: str, name: int | str) -> str:
    """The id of a message of a queue, by its seq.

    A FIFO message that is delayed has no seq yet. Its deduplication id stands for it, since another with that has to get the
    same.
    """
    digest = hashlib.md5(f"{base}:{name}".encode(), usedforsecurity=False)
    return str(uuid.UUID(bytes=digest.digest()))


def key_of(group: str) -> str:
    """The key of a message group. Groups may hold what keys may not."""
    if _is_plain(group):
        return group
    # quote leaves "~" and dots, which may be doubled.
    encoded = quote(group, safe="").replace("~", "%7E").replace(".", "%2E")
    if len(encoded) <= _LONGEST_KEY:
        return encoded
    return "%sha256-" + hashlib.sha256(group.encode()).hexdigest()


def is_lossy(group: str) -> bool:
    """Whether the group cannot be told from its key."""
    return key_of(group).startswith("%sha256-")


def group_of(delivery: Delivery, queue: ServedSqsQueue) -> str | None:
    """The message group of a message: that it was sent with, else its key."""
    named = (delivery.headers or {}).get(GROUP)
    if named is not None or delivery.key is None:
        return named
    return unquote(delivery.key) if queue.owns_stream else delivery.key


def as_data(body: str, queue: ServedSqsQueue) -> Any:
    """What a body is in the stream.

    Raises:
        SqsError: The stream holds JSON, and it is none.
    """
    if queue.data_type == "text":
        return body
    if queue.data_type == "bytes":
        return body.encode()
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        message = f'The stream "{queue.stream}" behind this queue holds JSON, and the body is not: {error}'
        raise SqsError("InvalidMessageContents", message) from None


def as_body(data: Any, queue: ServedSqsQueue) -> str:
    """The body of what a stream holds. Bytes that are not text come as base64."""
    if queue.data_type == "text":
        return str(data)
    if queue.data_type == "json":
        return orjson.dumps(data).decode()
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
    return base64.b64encode(data).decode() if NOT_ALLOWED.search(text) else text
