"""What tests ask of clients again and again."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError


def receive(sqs: Any, queue: str, most: int = 10, **more: Any) -> list[dict[str, Any]]:
    """The messages of one receive."""
    found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=most, **more)
    messages: list[dict[str, Any]] = found.get("Messages", [])
    return messages


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def drain(sqs: Any, queue: str) -> list[str]:
    """All that can be received now; it is deleted."""
    found: list[str] = []
    while messages := receive(sqs, queue):
        found += bodies(messages)
        for message in messages:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return found


def counts(sqs: Any, queue: str) -> tuple[int, int, int]:
    """How many messages are visible, in flight and delayed."""
    names = ("", "NotVisible", "Delayed")
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    visible, in_flight, delayed = (int(found[f"ApproximateNumberOfMessages{name}"]) for name in names)
    return visible, in_flight, delayed


def arn(sqs: Any, queue: str) -> str:
    return str(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


def refused(call: Any, **given: Any) -> tuple[str, str]:
    """The code and the message of an error."""
    with pytest.raises(ClientError) as refused:
        call(**given)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]
