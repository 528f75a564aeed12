"""Queues: created, found, changed, tagged, purged and deleted, with the errors that clients know."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx
import pytest

import postbus
from tests.server.serving import Api
from tests.sqs.reading import counts, drain, receive, refused

NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"


def name_of(queue: str) -> str:
    return queue.rpartition("/")[2]


def test_creating_a_queue_again_with_the_same_attributes_gives_its_url(sqs: Any) -> None:
    name = f"q-{secrets.token_hex(6)}"
    first = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "40"}, tags={"team": "a"})["QueueUrl"]

    assert sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "40"})["QueueUrl"] == first
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == first
    code, text = refused(sqs.create_queue, QueueName=name, Attributes={"VisibilityTimeout": "41"})
    assert (code, "VisibilityTimeout" in text) == ("QueueAlreadyExists", True)
    assert sqs.list_queue_tags(QueueUrl=first)["Tags"] == {"team": "a"}


def test_a_url_has_the_host_by_which_the_client_has_come(sqs: Any, queue: str, api: Api) -> None:
    assert sqs.get_queue_url(QueueName=name_of(queue))["QueueUrl"] == queue
    assert queue == f"{api.url}/000000000000/{name_of(queue)}"
    headers = {
        "x-amz-target": "AmazonSQS.GetQueueUrl",
        "x-forwarded-host": "queues.example",
        "x-forwarded-proto": "https",
    }

    answer = httpx.post(api.url, json={"QueueName": name_of(queue)}, headers=headers).json()

    assert answer == {"QueueUrl": f"https://queues.example/000000000000/{name_of(queue)}"}


def test_a_queue_is_meant_by_any_url_that_ends_in_its_name(sqs: Any, queue: str) -> None:
    name = name_of(queue)
    for url in (name, f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"):
        sqs.send_message(QueueUrl=url, MessageBody=url)

    assert len(drain(sqs, queue)) == 2


def test_queues_are_listed_by_prefix_page_by_page(sqs: Any) -> None:
    prefix = f"list-{secrets.token_hex(4)}-"
    urls = [sqs.create_queue(QueueName=f"{prefix}{n}")["QueueUrl"] for n in range(5)]

    first = sqs.list_queues(QueueNamePrefix=prefix, MaxResults=3)
    rest = sqs.list_queues(QueueNamePrefix=prefix, MaxResults=3, NextToken=first["NextToken"])

    assert first["QueueUrls"] + rest["QueueUrls"] == urls == sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]
    assert "NextToken" not in rest
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{prefix}none")


@pytest.mark.parametrize(
    "operation", ["send_message", "receive_message", "delete_queue", "get_queue_attributes", "purge_queue"]
)
def test_a_queue_that_does_not_exist_is_named_as_clients_know_it(sqs: Any, operation: str, api: Api) -> None:
    given = {"MessageBody": "x"} if operation == "send_message" else {}
    with pytest.raises(sqs.exceptions.ClientError) as caught:
        getattr(sqs, operation)(QueueUrl=f"{api.url}/000000000000/nobody", **given)

    assert caught.value.response["Error"]["Code"] == NO_QUEUE
    assert caught.value.response["Error"]["Message"].startswith("The specified queue does not exist")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_boto3_raises_the_exception_of_its_own_for_it(json_sqs: Any) -> None:
    with pytest.raises(json_sqs.exceptions.QueueDoesNotExist):
        json_sqs.get_queue_url(QueueName="nobody")


def test_a_deleted_queue_is_gone_with_its_stream_and_may_come_again(sqs: Any, queue: str, native: postbus.Bus) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="old")
    sqs.delete_queue(QueueUrl=queue)
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x")[0] == NO_QUEUE
    with pytest.raises(postbus.NotFound):
        native.stream_info(name_of(queue))

    sqs.create_queue(QueueName=name_of(queue))

    assert receive(sqs, queue) == []


def test_attributes_have_their_defaults_and_are_changed_one_by_one(sqs: Any, queue: str, native: postbus.Bus) -> None:
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "7", "MessageRetentionPeriod": "60"})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "3", "MaximumMessageSize": "2048"})

    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]

    assert {name: found[name] for name in found if name in DEFAULTS} == {
        **DEFAULTS,
        "VisibilityTimeout": "7",
        "MessageRetentionPeriod": "60",
        "DelaySeconds": "3",
        "MaximumMessageSize": "2048",
    }
    assert found["QueueArn"] == f"arn:aws:sqs:eu-central-1:000000000000:{name_of(queue)}"
    name = name_of(queue)
    assert native.consumer(name, name).info().ack_wait.total_seconds() == 7
    retained = native.stream_info(name).retain_up_to
    assert retained is not None
    assert retained.total_seconds() == 60
    only = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["DelaySeconds", "Policy"])["Attributes"]
    assert only == {"DelaySeconds": "3"}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue)


DEFAULTS = {
    "VisibilityTimeout": "30",
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "SqsManagedSseEnabled": "true",
}


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"VisibilityTimeout": "43201"}, "InvalidAttributeValue"),
        ({"VisibilityTimeout": "x"}, "InvalidAttributeValue"),
        ({"DelaySeconds": "-1"}, "InvalidAttributeValue"),
        ({"ReceiveMessageWaitTimeSeconds": "21"}, "InvalidAttributeValue"),
        ({"Nonsense": "1"}, "InvalidAttributeName"),
        ({"ContentBasedDeduplication": "true"}, "InvalidAttributeName"),
        ({"Policy": "[]"}, "InvalidAttributeValue"),
        ({"RedrivePolicy": "no json"}, "InvalidParameterValue"),
        ({"RedrivePolicy": json.dumps({"maxReceiveCount": 1})}, "InvalidParameterValue"),
    ],
)
def test_attributes_that_cannot_be_are_refused_and_change_nothing(
    sqs: Any, queue: str, attributes: dict[str, str], code: str
) -> None:
    before = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]

    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes=attributes)[0] == code

    assert sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"] == before


@pytest.mark.parametrize("name", ["a b", "x" * 81, "a.b", "", "ü", "a.fifo"])
def test_names_that_no_queue_can_have_are_refused(sqs: Any, name: str) -> None:
    assert refused(sqs.create_queue, QueueName=name)[0] == "InvalidParameterValue"


@pytest.mark.parametrize("ending", ["", ".fifo"])
def test_names_that_no_stream_can_have_are_possible(sqs: Any, ending: str) -> None:
    name = f"{secrets.token_hex(4)}{'x' * 60}{ending}"
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if ending else {}
    queue = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="x", **({"MessageGroupId": "g"} if ending else {}))

    assert drain(sqs, queue) == ["x"]


def test_two_queues_never_share_a_stream(sqs: Any) -> None:
    name = secrets.token_hex(6)
    fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    one = sqs.create_queue(QueueName=f"{name}_fifo")["QueueUrl"]
    other = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=fifo)["QueueUrl"]
    sqs.send_message(QueueUrl=one, MessageBody="x")

    assert (counts(sqs, one), counts(sqs, other)) == ((1, 0, 0), (0, 0, 0))


def test_a_stream_of_the_bus_is_never_taken_for_a_queue(sqs: Any, native: postbus.Bus) -> None:
    name = f"orders-{secrets.token_hex(6)}"
    native.create_stream(name)

    code, text = refused(sqs.create_queue, QueueName=name)

    assert code == "QueueAlreadyExists"
    assert f"postbus sqs expose {name} CONSUMER --as {name}" in text


def test_a_purge_takes_all_messages_once_a_minute(sqs: Any, fifo: str) -> None:
    sent = [sqs.send_message(QueueUrl=fifo, MessageBody=body, MessageGroupId=body)["MessageId"] for body in ("a", "b")]
    (held,) = receive(sqs, fifo, most=1)

    sqs.purge_queue(QueueUrl=fifo)

    assert counts(sqs, fifo) == (0, 0, 0)
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=held["ReceiptHandle"])
    # What was sent before is no duplicate any more.
    again = sqs.send_message(QueueUrl=fifo, MessageBody="a", MessageGroupId="a")
    assert again["MessageId"] not in sent
    assert drain(sqs, fifo) == ["a"]
    with pytest.raises(sqs.exceptions.ClientError) as caught:
        sqs.purge_queue(QueueUrl=fifo)
    assert caught.value.response["Error"]["Code"] == "AWS.SimpleQueueService.PurgeQueueInProgress"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_purge_takes_delayed_messages(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x", DelaySeconds=900)
    assert counts(sqs, queue) == (0, 0, 1)

    sqs.purge_queue(QueueUrl=queue)

    assert counts(sqs, queue) == (0, 0, 0)


def test_tags_are_added_and_removed(sqs: Any, queue: str) -> None:
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue)
    sqs.tag_queue(QueueUrl=queue, Tags={"a": "1", "b": "ü"})
    sqs.tag_queue(QueueUrl=queue, Tags={"b": "2", "c": ""})
    sqs.untag_queue(QueueUrl=queue, TagKeys=["a", "nobody"])

    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"b": "2", "c": ""}


def test_permissions_are_kept_in_the_policy(sqs: Any, queue: str) -> None:
    given = {"QueueUrl": queue, "Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}
    sqs.add_permission(**given)
    assert refused(sqs.add_permission, **given)[0] == "InvalidParameterValue"

    def statements() -> Any:
        found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Policy"]).get("Attributes")
        return json.loads(found["Policy"])["Statement"] if found else []

    (statement,) = statements()
    assert (statement["Sid"], statement["Action"]) == ("l", "SQS:SendMessage")
    assert statement["Principal"] == {"AWS": "arn:aws:iam::111111111111:root"}
    sqs.remove_permission(QueueUrl=queue, Label="l")
    assert statements() == []
    assert refused(sqs.remove_permission, QueueUrl=queue, Label="l")[0] == "InvalidParameterValue"
