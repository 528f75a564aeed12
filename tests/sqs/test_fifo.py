"""FIFO queues: each message once, and those of a group in order, one receiver at a time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.sqs.conftest import Creating
from tests.sqs.reading import bodies, counts, drain, receive, refused


def send(sqs: Any, queue: str, group: str, *messages: str) -> list[Any]:
    return [sqs.send_message(QueueUrl=queue, MessageBody=each, MessageGroupId=group) for each in messages]


def test_a_group_is_received_in_order_and_shut_until_it_is_deleted(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "a", "a1", "a2", "a3")
    send(sqs, fifo, "b", "b1")

    first = receive(sqs, fifo, most=2)
    other = receive(sqs, fifo)

    assert (bodies(first), bodies(other)) == (["a1", "a2"], ["b1"])
    assert receive(sqs, fifo) == []
    for message in first:
        sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])
    assert bodies(receive(sqs, fifo)) == ["a3"]


def test_what_is_given_back_comes_again_before_the_rest_of_its_group(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "a", "a1", "a2", "a3")
    one, two = receive(sqs, fifo, most=2)
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=one["ReceiptHandle"])

    sqs.change_message_visibility(QueueUrl=fifo, ReceiptHandle=two["ReceiptHandle"], VisibilityTimeout=0)

    assert drain(sqs, fifo) == ["a2", "a3"]


def test_a_duplicate_is_answered_with_the_first_id_and_number_and_not_sent(sqs: Any, fifo: str) -> None:
    first, again = send(sqs, fifo, "a", "x", "x")
    other_group = sqs.send_message(QueueUrl=fifo, MessageBody="x", MessageGroupId="b")
    named = sqs.send_message(QueueUrl=fifo, MessageBody="x", MessageGroupId="a", MessageDeduplicationId="1")

    assert again["MessageId"] == first["MessageId"] == other_group["MessageId"] != named["MessageId"]
    assert again["SequenceNumber"] == first["SequenceNumber"] < named["SequenceNumber"]
    assert len(first["SequenceNumber"]) == 20
    assert drain(sqs, fifo) == ["x", "x"]
    # Also after it was deleted.
    assert send(sqs, fifo, "a", "x")[0]["MessageId"] == first["MessageId"]
    assert drain(sqs, fifo) == []


def test_duplicates_within_a_batch_are_found(sqs: Any, fifo: str) -> None:
    entries = [{"Id": str(n), "MessageBody": "same", "MessageGroupId": "a"} for n in range(3)]

    answers = sqs.send_message_batch(QueueUrl=fifo, Entries=entries)["Successful"]

    assert len({answer["MessageId"] for answer in answers}) == 1
    assert drain(sqs, fifo) == ["same"]


def test_in_scope_message_group_two_groups_may_have_the_same(sqs: Any, create: Creating) -> None:
    queue = create(".fifo", ContentBasedDeduplication="true", DeduplicationScope="messageGroup")
    send(sqs, queue, "a", "x", "x")
    send(sqs, queue, "b", "x")

    assert drain(sqs, queue) == ["x", "x"]


def test_a_message_says_its_group_number_and_deduplication_id(sqs: Any, create: Creating) -> None:
    queue = create(".fifo")
    group = "ünlikely"[1:] + "/*>..%"
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId=group, MessageDeduplicationId="once")

    (message,) = receive(sqs, queue, AttributeNames=["All"])

    given = message["Attributes"]
    assert (given["MessageGroupId"], given["MessageDeduplicationId"]) == (group, "once")
    assert (given["SequenceNumber"], message["MessageId"]) == (sent["SequenceNumber"], sent["MessageId"])


def test_what_a_fifo_queue_needs_is_asked_for(sqs: Any, create: Creating, queue: str) -> None:
    fifo = create(".fifo")
    assert refused(sqs.send_message, QueueUrl=fifo, MessageBody="x")[0] == "MissingParameter"
    for given in (
        {"MessageGroupId": "a"},
        {"MessageGroupId": "a", "MessageDeduplicationId": "1", "DelaySeconds": 1},
        {"MessageGroupId": "a b", "MessageDeduplicationId": "1"},
        {"MessageGroupId": "a", "MessageDeduplicationId": "x" * 129},
    ):
        assert refused(sqs.send_message, QueueUrl=fifo, MessageBody="x", **given)[0] == "InvalidParameterValue"
    code, _ = refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageDeduplicationId="1")
    assert code == "InvalidParameterValue"
    entries = [{"Id": "1", "MessageBody": "x"}]
    assert refused(sqs.send_message_batch, QueueUrl=fifo, Entries=entries)[0] == "MissingParameter"


def test_an_expired_handle_of_a_fifo_queue_deletes_nothing(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "a", "x")
    (message,) = receive(sqs, fifo, VisibilityTimeout=1)
    time.sleep(1.1)

    code, text = refused(sqs.delete_message, QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])

    assert (code, "expired" in text) == ("InvalidParameterValue", True)
    assert counts(sqs, fifo) == (1, 0, 0)
    assert drain(sqs, fifo) == ["x"]


def test_a_handle_that_was_extended_has_not_expired(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "a", "x")
    (message,) = receive(sqs, fifo, VisibilityTimeout=1)
    sqs.change_message_visibility(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60)
    time.sleep(1.1)

    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])

    assert counts(sqs, fifo) == (0, 0, 0)


def test_a_delayed_fifo_queue_keeps_order_and_finds_duplicates(sqs: Any, create: Creating) -> None:
    queue = create(".fifo", ContentBasedDeduplication="true", DelaySeconds="1")
    first, _, again = send(sqs, queue, "a", "1", "2", "1")
    assert (again["MessageId"], counts(sqs, queue)) == (first["MessageId"], (0, 0, 2))

    (message, *_) = receive(sqs, queue, WaitTimeSeconds=10, VisibilityTimeout=0)

    assert message["MessageId"] == first["MessageId"]
    found: list[str] = []
    while len(found) < 2:
        # The second may come due a moment later, and waits for the first one of its group to be deleted.
        for message in receive(sqs, queue, WaitTimeSeconds=10):
            found.append(message["Body"])
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert found == ["1", "2"]


@pytest.mark.parametrize("value", ["false", "yes"])
def test_a_fifo_queue_says_so(sqs: Any, value: str) -> None:
    assert refused(sqs.create_queue, QueueName="a.fifo", Attributes={"FifoQueue": value})[0] == "InvalidParameterValue"
    assert refused(sqs.create_queue, QueueName="a", Attributes={"FifoQueue": "true"})[0] == "InvalidParameterValue"
