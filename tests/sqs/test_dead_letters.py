"""Dead-letter queues: what fails too often goes there, and move tasks bring it back."""

from __future__ import annotations

import json
from typing import Any

import pytest

import postbus
from tests.sqs.conftest import Creating
from tests.sqs.reading import arn, bodies, counts, drain, receive, refused


def policy(sqs: Any, dead: str, count: int | str = 2) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(sqs, dead), "maxReceiveCount": count})}


def fail(sqs: Any, queue: str, times: int) -> None:
    """Receive everything that often, and give it back."""
    for _ in range(times):
        while messages := receive(sqs, queue):
            for message in messages:
                sqs.change_message_visibility(
                    QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
                )


def move(native: postbus.Bus) -> None:
    while native.tasks.run():
        pass


@pytest.mark.parametrize("ending", ["", ".fifo"])
def test_a_message_that_fails_too_often_is_moved_with_all_that_it_is(sqs: Any, create: Creating, ending: str) -> None:
    dead, queue = create(ending), create(ending)
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=policy(sqs, dead))
    attributes = {"n": {"DataType": "Number", "StringValue": "1"}, "s": {"DataType": "String", "StringValue": "x"}}
    group = {"MessageGroupId": "a/b", "MessageDeduplicationId": "once"} if ending else {}
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=attributes, **group)
    (first,) = receive(sqs, queue, AttributeNames=["All"], VisibilityTimeout=0)

    receive(sqs, queue, VisibilityTimeout=0)
    assert receive(sqs, queue) == []

    (message,) = receive(sqs, dead, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert (message["Body"], message["MessageId"]) == ("x", sent["MessageId"])
    assert message["MessageAttributes"] == attributes
    given = message["Attributes"]
    assert given["SentTimestamp"] == first["Attributes"]["SentTimestamp"]
    assert given["DeadLetterQueueSourceArn"] == arn(sqs, queue)
    assert {name: given[name] for name in group} == group
    assert counts(sqs, queue) == (0, 0, 0)


def test_a_dead_letter_is_nowhere_else(json_sqs: Any, create: Creating, native: postbus.Bus) -> None:
    dead, queue = create(), create()
    json_sqs.set_queue_attributes(QueueUrl=queue, Attributes=policy(json_sqs, dead, "1"))
    json_sqs.send_message(QueueUrl=queue, MessageBody="x")
    fail(json_sqs, queue, 1)
    name = queue.rpartition("/")[2]

    assert native.consumer(name, name).dead_letters() == []
    assert counts(json_sqs, dead) == (1, 0, 0)


def test_a_policy_needs_a_queue_of_the_same_type_and_can_be_removed(sqs: Any, create: Creating, fifo: str) -> None:
    dead, queue = create(), create()
    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes=policy(sqs, fifo))[0] == "InvalidParameterValue"
    missing = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(sqs, dead) + "x", "maxReceiveCount": 1})}
    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes=missing)[0] == "InvalidParameterValue"
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=policy(sqs, dead))
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [queue]

    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": ""})

    assert sqs.list_dead_letter_source_queues(QueueUrl=dead).get("queueUrls", []) == []
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    for _ in range(4):
        assert bodies(receive(sqs, queue, VisibilityTimeout=0)) == ["x"]


def test_a_move_task_brings_dead_letters_back_to_where_they_came_from(
    sqs: Any, create: Creating, native: postbus.Bus
) -> None:
    dead, one, other = create(), create(), create()
    for queue in (one, other):
        sqs.set_queue_attributes(QueueUrl=queue, Attributes=policy(sqs, dead, 1))
        sqs.send_message(QueueUrl=queue, MessageBody=queue)
        fail(sqs, queue, 1)
    assert counts(sqs, dead) == (2, 0, 0)

    handle = sqs.start_message_move_task(SourceArn=arn(sqs, dead))["TaskHandle"]
    (running,) = sqs.list_message_move_tasks(SourceArn=arn(sqs, dead))["Results"]
    assert (running["Status"], running["TaskHandle"]) == ("RUNNING", handle)
    assert refused(sqs.start_message_move_task, SourceArn=arn(sqs, dead))[0] == (
        "AWS.SimpleQueueService.UnsupportedOperation"
    )
    move(native)

    (done,) = sqs.list_message_move_tasks(SourceArn=arn(sqs, dead), MaxResults=10)["Results"]
    assert (done["Status"], done["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 2)
    assert done["ApproximateNumberOfMessagesToMove"] == 2
    assert [drain(sqs, queue) for queue in (dead, one, other)] == [[], [one], [other]]
    assert refused(sqs.cancel_message_move_task, TaskHandle=handle)[0].endswith("UnsupportedOperation")


def test_a_move_task_goes_to_another_queue_at_its_rate_and_is_cancelled(
    sqs: Any, create: Creating, native: postbus.Bus
) -> None:
    dead, queue, elsewhere = create(), create(), create()
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=policy(sqs, dead, 1))
    for n in range(5):
        sqs.send_message(QueueUrl=dead, MessageBody=str(n))

    handle = sqs.start_message_move_task(
        SourceArn=arn(sqs, dead), DestinationArn=arn(sqs, elsewhere), MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    move(native)
    moved = sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]

    (task,) = sqs.list_message_move_tasks(SourceArn=arn(sqs, dead))["Results"]
    assert (task["Status"], task["DestinationArn"]) == ("CANCELLED", arn(sqs, elsewhere))
    assert (task["MaxNumberOfMessagesPerSecond"], moved < 5) == (1, True)
    assert len(drain(sqs, elsewhere)) == moved
    assert len(drain(sqs, dead)) == 5 - moved


def test_only_a_dead_letter_queue_can_be_moved_from(sqs: Any, queue: str) -> None:
    assert refused(sqs.start_message_move_task, SourceArn=arn(sqs, queue))[0] == "InvalidParameterValue"
    missing = arn(sqs, queue) + "x"
    for operation in (sqs.start_message_move_task, sqs.list_message_move_tasks):
        assert refused(operation, SourceArn=missing)[0] == "ResourceNotFoundException"
    assert refused(sqs.cancel_message_move_task, TaskHandle="x")[0] == "InvalidParameterValue"
