"""Any consumer of a stream as a queue: clients of SQS read a stream that others read too."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

import postbus
from postbus import Message
from tests.server.serving import Api
from tests.sqs.reading import bodies, counts, drain, receive, refused


def a_stream(native: postbus.Bus, **settings: Any) -> str:
    name = f"orders-{secrets.token_hex(6)}"
    native.create_stream(name, **settings)
    return name


def test_a_consumer_is_read_and_written_as_a_queue_beside_others(sqs: Any, native: postbus.Bus) -> None:
    stream = a_stream(native, partitions=1)
    billing, audit = native.create_consumer(stream, "billing"), native.create_consumer(stream, "audit")
    native.publish(stream, key="eu.17", data={"total": 9}, headers={"kind": "invoice", "not a name": "x"})
    name = native.sqs.expose(stream, "billing")
    assert name == f"{stream}-billing"
    queue = sqs.get_queue_url(QueueName=name)["QueueUrl"]

    (message,) = receive(sqs, queue, MessageAttributeNames=["All"], AttributeNames=["All"])
    sqs.send_message(QueueUrl=queue, MessageBody='{"total": 10}')
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])

    assert message["Body"] == '{"total":9}'
    assert message["MessageAttributes"] == {"kind": {"DataType": "String", "StringValue": "invoice"}}
    assert message["Attributes"]["MessageGroupId"] == "eu.17"
    assert [each.data for each in billing.receive(10)] == [{"total": 10}]
    assert [each.data for each in audit.receive(10)] == [{"total": 9}, {"total": 10}]
    code, _ = refused(sqs.send_message, QueueUrl=queue, MessageBody="{")
    assert code == "InvalidMessageContents"


def test_a_replay_gives_clients_of_sqs_what_they_have_deleted(json_sqs: Any, native: postbus.Bus) -> None:
    stream = a_stream(native, data_type="text")
    consumer = native.create_consumer(stream, "billing", order="none")
    native.publish_many(stream, [Message(data=str(n)) for n in range(5)])
    queue = native.sqs.expose(stream, "billing")
    assert sorted(drain(json_sqs, queue)) == ["0", "1", "2", "3", "4"]

    consumer.seek("earliest")

    assert sorted(drain(json_sqs, queue)) == ["0", "1", "2", "3", "4"]


def test_a_queue_in_order_has_groups_by_key(json_sqs: Any, native: postbus.Bus) -> None:
    stream = a_stream(native, data_type="text", partitions=1)
    native.create_consumer(stream, "billing")
    native.publish_many(stream, [Message(key=key, data=f"{key}{n}") for n in range(2) for key in ("a", "b")])
    queue = native.sqs.expose(stream, "billing", name=f"{stream}.fifo")

    first = receive(json_sqs, queue, most=1)

    assert bodies(first) == ["a0"]
    assert bodies(receive(json_sqs, queue)) == ["b0", "b1"]
    # The stream finds no duplicates, so a client may send without saying what one is.
    json_sqs.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId="c", MessageDeduplicationId="1")
    assert bodies(receive(json_sqs, queue)) == ["x"]


def test_bytes_that_are_no_text_come_as_base64(json_sqs: Any, native: postbus.Bus) -> None:
    stream = a_stream(native, data_type="bytes", partitions=1)
    native.create_consumer(stream, "billing", order="none")
    native.publish_many(stream, [Message(data=each) for each in (b"text", b"\xff\x00", b"\x00")])
    queue = native.sqs.expose(stream, "billing")

    assert bodies(receive(json_sqs, queue)) == ["text", "/wA=", "AA=="]


def test_deleting_or_purging_such_a_queue_leaves_the_stream(sqs: Any, native: postbus.Bus) -> None:
    stream = a_stream(native, data_type="text", partitions=1)
    native.create_consumer(stream, "billing", order="none")
    native.publish(stream, data="x")
    queue = native.sqs.expose(stream, "billing")

    sqs.purge_queue(QueueUrl=queue)
    assert counts(sqs, queue) == (0, 0, 0)
    sqs.delete_queue(QueueUrl=queue)

    assert [message.data for message in native.read(stream)] == ["x"]
    assert native.consumer(stream, "billing").info().name == "billing"
    assert queue not in [each.name for each in native.sqs.list_all()]


def test_a_queue_is_hidden_and_listed_over_http_too(api: Api, native: postbus.Bus) -> None:
    stream = a_stream(native)
    native.create_consumer(stream, "billing")
    with postbus.connect(api.url) as bus:
        name = bus.sqs.expose(stream, "billing", name=f"{stream}-q")
        assert bus.sqs.expose(stream, "billing", name=name) == name
        (found,) = [each for each in bus.sqs.list_all() if each.stream == stream]
        assert (found.name, found.consumer, found.owns_stream) == (name, "billing", False)
        assert found == next(each for each in native.sqs.list_all() if each.name == name)
        bus.sqs.hide(name)
        with pytest.raises(postbus.NotFound):
            bus.sqs.hide(name)
    assert name not in [each.name for each in native.sqs.list_all()]


def test_what_cannot_be_a_queue_is_refused(native: postbus.Bus, queue: str) -> None:
    stream = a_stream(native)
    native.create_consumer(stream, "plain", order="none")
    native.create_group(stream, "workers")
    with pytest.raises(postbus.InvalidInput):
        native.sqs.expose(stream, "plain", name="a b")
    with pytest.raises(postbus.Conflict, match="keeps no order"):
        native.sqs.expose(stream, "plain", name="a.fifo")
    with pytest.raises(postbus.Conflict, match="is a group"):
        native.sqs.expose(stream, "workers")
    with pytest.raises(postbus.Conflict, match="already exists"):
        native.sqs.expose(stream, "plain", name=queue.rpartition("/")[2])
    native.sqs.expose(stream, "plain")
    with pytest.raises(postbus.Conflict, match="already"):
        native.sqs.expose(stream, "plain", name="other")
