"""What goes into the operations of SQS and comes out of them, once for both protocols.

Fields are those of the JSON protocol, in Pascal case. `required` names those that must be there. `query` says what the Query
protocol calls the elements of a list, or the elements of a map, their keys and their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

Flat = str | tuple[str, str, str]
_ATTRIBUTES = ("Attribute", "Name", "Value")
_MESSAGE_ATTRIBUTES = ("MessageAttribute", "Name", "Value")
_SYSTEM_ATTRIBUTES = ("MessageSystemAttribute", "Name", "Value")
_TAGS = ("Tag", "Key", "Value")


class Shape(Struct, rename="pascal", omit_defaults=True):
    """Fields that are None are left out."""

    required: ClassVar[tuple[str, ...]] = ()
    query: ClassVar[Mapping[str, Flat]] = {}


class OfQueue(Shape):
    required: ClassVar[tuple[str, ...]] = ("queue_url",)

    queue_url: str | None = None


class Attribute(Shape):
    """A message attribute."""

    query: ClassVar[Mapping[str, Flat]] = {
        "string_list_values": "StringListValue",
        "binary_list_values": "BinaryListValue",
    }

    data_type: str | None = None
    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: list[str] | None = None
    binary_list_values: list[bytes] | None = None


Attributes = dict[str, Attribute]


class AddPermission(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "label", "account_ids", "actions")
    query: ClassVar[Mapping[str, Flat]] = {"account_ids": "AWSAccountId", "actions": "ActionName"}

    label: str | None = None
    account_ids: list[str] | None = field(default=None, name="AWSAccountIds")
    actions: list[str] | None = None


class RemovePermission(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "label")

    label: str | None = None


class CreateQueue(Shape):
    required: ClassVar[tuple[str, ...]] = ("queue_name",)
    query: ClassVar[Mapping[str, Flat]] = {"attributes": _ATTRIBUTES, "tags": _TAGS}

    queue_name: str | None = None
    attributes: dict[str, str] | None = None
    tags: dict[str, str] | None = field(default=None, name="tags")


class GetQueueUrl(Shape):
    required: ClassVar[tuple[str, ...]] = ("queue_name",)

    queue_name: str | None = None
    queue_owner_aws_account_id: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class QueueUrl(Shape):
    queue_url: str | None = None


class ListQueues(Shape):
    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class QueueUrls(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"queue_urls": "QueueUrl"}

    queue_urls: list[str] | None = None
    next_token: str | None = None


class ListSources(OfQueue):
    next_token: str | None = None
    max_results: int | None = None


class Sources(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"queue_urls": "QueueUrl"}

    # In lower case in Amazon's model, and always there.
    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


class GetQueueAttributes(OfQueue):
    query: ClassVar[Mapping[str, Flat]] = {"attribute_names": "AttributeName"}

    attribute_names: list[str] | None = None


class QueueAttributes(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"attributes": _ATTRIBUTES}

    attributes: dict[str, str] | None = None


class SetQueueAttributes(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "attributes")
    query: ClassVar[Mapping[str, Flat]] = {"attributes": _ATTRIBUTES}

    attributes: dict[str, str] | None = None


class TagQueue(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "tags")
    query: ClassVar[Mapping[str, Flat]] = {"tags": _TAGS}

    tags: dict[str, str] | None = None


class UntagQueue(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "tag_keys")
    query: ClassVar[Mapping[str, Flat]] = {"tag_keys": "TagKey"}

    tag_keys: list[str] | None = None


class QueueTags(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"tags": _TAGS}

    tags: dict[str, str] | None = None


class NewMessage(Shape):
    """What the operation that sends one and the one that sends several have in common."""

    query: ClassVar[Mapping[str, Flat]] = {
        "message_attributes": _MESSAGE_ATTRIBUTES,
        "message_system_attributes": _SYSTEM_ATTRIBUTES,
    }

    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: Attributes | None = None
    message_system_attributes: Attributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(NewMessage):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "message_body")

    queue_url: str | None = None


class Sent(Shape):
    message_id: str | None = None
    body_md5: str | None = field(default=None, name="MD5OfMessageBody")
    attributes_md5: str | None = field(default=None, name="MD5OfMessageAttributes")
    system_attributes_md5: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class NewEntry(NewMessage):
    required: ClassVar[tuple[str, ...]] = ("id", "message_body")

    id: str | None = None


class SendMessageBatch(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url",)
    query: ClassVar[Mapping[str, Flat]] = {"entries": "SendMessageBatchRequestEntry"}

    entries: list[NewEntry] | None = None


class SentEntry(Sent):
    id: str | None = None


class FailedEntry(Shape, omit_defaults=False):
    id: str
    sender_fault: bool
    code: str
    message: str


class SentBatch(Shape):
    query: ClassVar[Mapping[str, Flat]] = {
        "successful": "SendMessageBatchResultEntry",
        "failed": "BatchResultErrorEntry",
    }

    successful: list[SentEntry] | None = None
    failed: list[FailedEntry] | None = None


class ReceiveMessage(OfQueue):
    query: ClassVar[Mapping[str, Flat]] = {
        "attribute_names": "AttributeName",
        "message_system_attribute_names": "MessageSystemAttributeName",
        "message_attribute_names": "MessageAttributeName",
    }

    attribute_names: list[str] | None = None
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class ReceivedMessage(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"attributes": _ATTRIBUTES, "message_attributes": _MESSAGE_ATTRIBUTES}

    message_id: str
    receipt_handle: str
    body_md5: str = field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] | None = None
    attributes_md5: str | None = field(default=None, name="MD5OfMessageAttributes")
    message_attributes: Attributes | None = None


class Received(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"messages": "Message"}

    messages: list[ReceivedMessage] | None = None


class DeleteMessage(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "receipt_handle")

    receipt_handle: str | None = None


class DeleteEntry(Shape):
    required: ClassVar[tuple[str, ...]] = ("id", "receipt_handle")

    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessageBatch(OfQueue):
    query: ClassVar[Mapping[str, Flat]] = {"entries": "DeleteMessageBatchRequestEntry"}

    entries: list[DeleteEntry] | None = None


class ChangeMessageVisibility(OfQueue):
    required: ClassVar[tuple[str, ...]] = ("queue_url", "receipt_handle", "visibility_timeout")

    receipt_handle: str | None = None
    visibility_timeout: int | None = None


class VisibilityEntry(DeleteEntry):
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(OfQueue):
    query: ClassVar[Mapping[str, Flat]] = {"entries": "ChangeMessageVisibilityBatchRequestEntry"}

    entries: list[VisibilityEntry] | None = None


class DoneEntry(Shape):
    id: str


class DeletedBatch(Shape):
    query: ClassVar[Mapping[str, Flat]] = {
        "successful": "DeleteMessageBatchResultEntry",
        "failed": "BatchResultErrorEntry",
    }

    successful: list[DoneEntry] | None = None
    failed: list[FailedEntry] | None = None


class ChangedBatch(DeletedBatch):
    query: ClassVar[Mapping[str, Flat]] = {
        "successful": "ChangeMessageVisibilityBatchResultEntry",
        "failed": "BatchResultErrorEntry",
    }


class StartMessageMoveTask(Shape):
    required: ClassVar[tuple[str, ...]] = ("source_arn",)

    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class TaskHandle(Shape):
    task_handle: str | None = None


class CancelMessageMoveTask(TaskHandle):
    required: ClassVar[tuple[str, ...]] = ("task_handle",)


class CancelledTask(Shape, omit_defaults=False):
    approximate_number_of_messages_moved: int = 0


class ListMessageMoveTasks(Shape):
    required: ClassVar[tuple[str, ...]] = ("source_arn",)

    source_arn: str | None = None
    max_results: int | None = None


class MoveTask(Shape):
    task_handle: str | None = None
    status: str | None = None
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_moved: int | None = None
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None
    started_timestamp: int | None = None


class MoveTasks(Shape):
    query: ClassVar[Mapping[str, Flat]] = {"results": "ListMessageMoveTasksResultEntry"}

    results: list[MoveTask] | None = None
