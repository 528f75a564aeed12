"""Standard queues: what is sent is received as it was, until it is deleted."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

import pytest

import postbus
from tests.server.serving import Api
from tests.sqs.clients import client
from tests.sqs.conftest import Creating
from tests.sqs.reading import bodies, counts, receive, refused
from tests.waiting import until

ATTRIBUTES: dict[str, Any] = {
    "plain": {"DataType": "String", "StringValue": 'grün\r\n <&">'},
    "typed": {"DataType": "String.name", "StringValue": "x"},
    "sqs-id": {"DataType": "String", "StringValue": "not ours"},
    "count": {"DataType": "Number", "StringValue": "-1.5e3"},
    "bytes": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
}


def test_a_message_is_received_as_it_was_sent(sqs: Any, queue: str) -> None:
    body = 'grün\t\r\n<&">\U0001f4ee'

    # Botocore compares the MD5 of the body, and we have the one of the attributes compared.
    sent = sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, queue, MessageAttributeNames=["All"], AttributeNames=["All"])

    assert message["Body"] == body
    assert message["MessageId"] == sent["MessageId"]
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    given = message["Attributes"]
    assert abs(int(given["SentTimestamp"]) / 1000 - time.time()) < 60
    assert (given["ApproximateReceiveCount"], given["SenderId"]) == ("1", "000000000000")


def test_the_md5_of_attributes_is_that_of_amazon(sqs: Any, queue: str) -> None:
    # From the answers of Amazon's service.
    attributes = {"timestamp": {"DataType": "Number", "StringValue": "1493147359900"}}

    sent = sqs.send_message(QueueUrl=queue, MessageBody="test message body", MessageAttributes=attributes)

    assert sent["MD5OfMessageAttributes"] == "235c5c510d26fb653d073faed50ae77c"


def test_attributes_come_only_if_they_are_asked_for(sqs: Any, queue: str) -> None:
    attributes = {name: {"DataType": "String", "StringValue": "x"} for name in ("a.one", "a.two", "b")}
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=attributes)

    def names(*wanted: str) -> set[str]:
        (message,) = receive(sqs, queue, MessageAttributeNames=list(wanted), VisibilityTimeout=0)
        assert "Attributes" not in message
        return set(message.get("MessageAttributes", ()))

    assert names() == set()
    assert names("b", "c") == {"b"}
    assert names("a.*") == {"a.one", "a.two"}
    assert names("All") == names(".*") == {"a.one", "a.two", "b"}


def test_a_plain_attribute_is_a_header_for_native_consumers(json_sqs: Any, queue: str, native: postbus.Bus) -> None:
    attributes = {"kind": {"DataType": "String", "StringValue": "invoice"}}
    json_sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=attributes)
    stream = queue.rpartition("/")[2]

    (message,) = native.read(stream)

    assert (message.data, message.headers) == ("x", {"kind": "invoice"})


def test_a_message_that_is_not_deleted_comes_again(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (first,) = receive(sqs, queue, VisibilityTimeout=1)
    assert receive(sqs, queue) == []

    (second,) = receive(sqs, queue, WaitTimeSeconds=5, AttributeNames=["ApproximateReceiveCount"])

    assert second["MessageId"] == first["MessageId"]
    assert second["Attributes"] == {"ApproximateReceiveCount": "2"}
    assert second["ReceiptHandle"] != first["ReceiptHandle"]


def test_a_visibility_timeout_of_zero_leaves_a_message_visible(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")

    found = [receive(sqs, queue, VisibilityTimeout=0) for _ in range(3)]

    assert [bodies(each) for each in found] == [["x"]] * 3


def test_a_deleted_message_is_gone_and_deleting_it_again_is_no_error(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (message,) = receive(sqs, queue)
    handle = message["ReceiptHandle"]

    sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)

    assert counts(sqs, queue) == (0, 0, 0)


def test_a_message_whose_visibility_timeout_is_over_is_deleted_until_somebody_else_has_it(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (message,) = receive(sqs, queue, VisibilityTimeout=1)
    time.sleep(1.1)
    assert counts(sqs, queue) == (1, 0, 0)

    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])

    assert (receive(sqs, queue), counts(sqs, queue)) == ([], (0, 0, 0))


def test_changing_the_visibility_shortens_extends_and_gives_back(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (message,) = receive(sqs, queue)

    def change(seconds: int) -> None:
        sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)

    change(100)
    assert receive(sqs, queue) == []
    change(1)
    (message,) = receive(sqs, queue, WaitTimeSeconds=5)
    change(0)
    (message,) = receive(sqs, queue)
    code, text = refused(
        sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=43_201
    )
    assert code == "InvalidParameterValue"
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    code, text = refused(
        sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=1
    )
    assert (code, "does not exist" in text) == ("InvalidParameterValue", True)


def test_the_visibility_of_a_visible_message_cannot_be_changed(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (message,) = receive(sqs, queue)
    handle = message["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)

    code, _ = refused(sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)

    assert code == "AWS.SimpleQueueService.MessageNotInflight"


def test_a_long_poll_is_answered_when_a_message_comes(sqs: Any, queue: str, api: Api) -> None:
    found: list[Any] = []
    waiter = threading.Thread(target=lambda: found.extend(receive(sqs, queue, WaitTimeSeconds=20)))
    waiter.start()
    until(lambda: api.server.state.long_polls.waiting_count > 0, "the poll waits")
    began = time.monotonic()

    client(api.url).send_message(QueueUrl=queue, MessageBody="x")
    waiter.join()

    assert (bodies(found), time.monotonic() - began < 5) == (["x"], True)


def test_a_delayed_message_comes_later_with_the_same_id(sqs: Any, create: Creating) -> None:
    queue = create(DelaySeconds="100")
    sqs.send_message(QueueUrl=queue, MessageBody="at once", DelaySeconds=0)
    sqs.send_message(QueueUrl=queue, MessageBody="much later")
    sent = sqs.send_message(QueueUrl=queue, MessageBody="soon", DelaySeconds=1)
    assert counts(sqs, queue) == (1, 0, 2)
    assert bodies(receive(sqs, queue)) == ["at once"]

    (message,) = receive(sqs, queue, WaitTimeSeconds=10, AttributeNames=["SentTimestamp"])

    assert (message["Body"], message["MessageId"]) == ("soon", sent["MessageId"])
    assert time.time() - int(message["Attributes"]["SentTimestamp"]) / 1000 > 0.9
    assert counts(sqs, queue) == (0, 2, 1)


def test_entries_of_a_batch_fail_one_by_one(sqs: Any, queue: str) -> None:
    entries = [
        {"Id": "good", "MessageBody": "x"},
        {"Id": "empty", "MessageBody": ""},
        {"Id": "later", "MessageBody": "y", "DelaySeconds": 500},
        {"Id": "never", "MessageBody": "z", "DelaySeconds": 901},
        {"Id": "last", "MessageBody": "\u0001"},
    ]

    answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)

    assert [each["Id"] for each in answer["Successful"]] == ["good", "later"]
    codes = {each["Id"]: (each["Code"], each["SenderFault"]) for each in answer["Failed"]}
    assert codes == {
        "empty": ("MissingParameter", True),
        "never": ("InvalidParameterValue", True),
        "last": ("InvalidMessageContents", True),
    }
    assert counts(sqs, queue) == (1, 0, 1)


def test_batches_are_deleted_and_changed_entry_by_entry(sqs: Any, queue: str) -> None:
    sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(n), "MessageBody": str(n)} for n in range(10)])
    messages = receive(sqs, queue)
    assert sorted(bodies(messages)) == [str(n) for n in range(10)]
    entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
    wrong = {"Id": "wrong", "ReceiptHandle": "AQEB"}

    changed = sqs.change_message_visibility_batch(
        QueueUrl=queue, Entries=[{**each, "VisibilityTimeout": 0} for each in (*entries[:4], wrong)]
    )
    deleted = sqs.delete_message_batch(QueueUrl=queue, Entries=[*entries[4:], wrong])

    assert [len(changed["Successful"]), len(deleted["Successful"])] == [4, 6]
    assert changed["Failed"][0]["Code"] == deleted["Failed"][0]["Code"] == "ReceiptHandleIsInvalid"
    assert counts(sqs, queue) == (4, 0, 0)


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "MessageBody": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": str(n), "MessageBody": "x" * 200_000} for n in range(6)], "BatchRequestTooLong"),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_is_refused(sqs: Any, queue: str, entries: list[Any], code: str) -> None:
    assert refused(sqs.send_message_batch, QueueUrl=queue, Entries=entries)[0] == f"AWS.SimpleQueueService.{code}"
    assert counts(sqs, queue) == (0, 0, 0)


@pytest.mark.parametrize(
    ("attributes", "word"),
    [
        ({"AWS.x": {"DataType": "String", "StringValue": "x"}}, "name"),
        ({"a..b": {"DataType": "String", "StringValue": "x"}}, "name"),
        ({"a": {"DataType": "Text", "StringValue": "x"}}, "type"),
        ({"a": {"DataType": "Number", "StringValue": "x"}}, "number"),
        ({"a": {"DataType": "String", "StringValue": ""}}, "non-empty"),
        ({"a": {"DataType": "Binary", "BinaryValue": b""}}, "non-empty"),
        ({f"a{n}": {"DataType": "String", "StringValue": "x"} for n in range(11)}, "maximum"),
    ],
)
def test_attributes_that_are_not_allowed_are_refused(sqs: Any, queue: str, attributes: Any, word: str) -> None:
    code, text = refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageAttributes=attributes)

    assert (code, word in text) == ("InvalidParameterValue", True)


def test_the_size_of_a_message_counts_its_attributes(sqs: Any, create: Creating) -> None:
    queue = create(MaximumMessageSize="1024")
    attribute = {"abcd": {"DataType": "String", "StringValue": "x" * 14}}

    sqs.send_message(QueueUrl=queue, MessageBody="x" * 1000, MessageAttributes=attribute)
    code, text = refused(sqs.send_message, QueueUrl=queue, MessageBody="x" * 1001, MessageAttributes=attribute)

    assert (code, "shorter than 1024 bytes" in text) == ("InvalidParameterValue", True)


def test_a_group_on_a_standard_queue_is_kept_as_the_key_and_orders_nothing(
    sqs: Any, queue: str, native: postbus.Bus
) -> None:
    for group in ("tenant.7", "a*>", "\u0021" * 128):
        sqs.send_message(QueueUrl=queue, MessageBody=group, MessageGroupId=group)
        sqs.send_message(QueueUrl=queue, MessageBody=group, MessageGroupId=group)

    found = [receive(sqs, queue, most=1, AttributeNames=["MessageGroupId"])[0] for _ in range(6)]

    assert all(each["Attributes"]["MessageGroupId"] == each["Body"] for each in found)
    keys = [message.key for message in native.read(queue.rpartition("/")[2])]
    assert keys[0] == "tenant.7"
    assert keys[2] == "a%2A%3E"


def test_a_trace_header_comes_along(sqs: Any, queue: str) -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793"
    given = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageSystemAttributes=given)

    (message,) = receive(sqs, queue, MessageSystemAttributeNames=["AWSTraceHeader"])

    assert message["Attributes"] == {"AWSTraceHeader": trace}
    assert len(sent["MD5OfMessageSystemAttributes"]) == 32
    wrong = {"Other": {"DataType": "String", "StringValue": trace}}
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageSystemAttributes=wrong)[0] == (
        "InvalidParameterValue"
    )


def test_a_handle_of_another_queue_is_not_valid(sqs: Any, create: Creating) -> None:
    one, other = create(), create()
    sqs.send_message(QueueUrl=one, MessageBody="x")
    (message,) = receive(sqs, one)

    for handle in (message["ReceiptHandle"], "x", message["ReceiptHandle"][:-4] + "AAAA"):
        assert refused(sqs.delete_message, QueueUrl=other, ReceiptHandle=handle)[0] == "ReceiptHandleIsInvalid"
    assert counts(sqs, one) == (0, 1, 0)
