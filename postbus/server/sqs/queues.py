"""Queues: create, find, list, change, tag, purge, delete; and their permissions, which are stored only."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

from postbus.model.errors import Conflict
from postbus.model.sqs import ServedSqsQueue
from postbus.operations import sqs
from postbus.server.sqs import queue_attributes, shapes
from postbus.server.sqs.call import SqsCall
from postbus.server.sqs.errors import SqsError, invalid, invalid_value, missing
from postbus.server.sqs.known import is_name, streams_for

_PAGE: Final = 1000
_MOST_TAGS: Final = 50
_MOST_ACTIONS: Final = 7
_MOST_STATEMENTS: Final = 20
# What AddPermission may not name, and what it may.
_OWNERS_ACTIONS: Final = frozenset(
    {
        *("AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks", "ListQueues"),
        *("ListQueueTags", "RemovePermission", "SetQueueAttributes", "StartMessageMoveTask", "TagQueue", "UntagQueue"),
    }
)
_ACTIONS: Final = frozenset(
    {
        *("*", "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
        *("GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue"),
    }
)


async def create_queue(call: SqsCall, given: shapes.CreateQueue) -> shapes.QueueUrl:
    name = given.queue_name or ""
    if not is_name(name):
        raise invalid_value(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
            if not name.endswith(".fifo")
            else "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
            ".fifo suffix and be 1 to 80 in length."
        )
    is_fifo = name.endswith(".fifo")
    wanted = given.attributes or {}
    if is_fifo and wanted.get("FifoQueue") != "true":
        raise invalid_value(
            "The name of a standard queue can only include alphanumeric characters, hyphens, or underscores."
        )
    if not is_fifo and wanted.get("FifoQueue") == "true":
        raise invalid_value("The name of a FIFO queue must end with .fifo suffix.")
    attributes = queue_attributes.checked(wanted, is_fifo=is_fifo, is_new=True)
    tags = _tags(given.tags or {}, name)
    names = streams_for(name)
    call.demand(names[0], "manage")
    try:
        return await _existing(call, name, attributes)
    except SqsError as error:
        if error.name != "QueueDoesNotExist":
            raise
    await _check_dead_letter_queue(call, attributes, is_fifo=is_fifo)
    try:
        await call.run(sqs.create(name, names, {key: value for key, value in attributes.items() if value}, tags))
    except Conflict as error:
        # Another request has created it meanwhile; or a stream has this name.
        call.known.forget(name)
        try:
            return await _existing(call, name, attributes)
        except SqsError as other:
            if other.name != "QueueDoesNotExist":
                raise
        message = f"{error.message}. To use it from SQS: postbus sqs expose {names[0]} CONSUMER --as {name}"
        raise SqsError("QueueNameExists", message) from None
    call.known.forget(name)
    return shapes.QueueUrl(queue_url=call.url_of(name))


async def _existing(call: SqsCall, name: str, attributes: dict[str, str]) -> shapes.QueueUrl:
    """A queue that is there with the same attributes."""
    queue = await call.known.find(name)
    call.demand(queue.stream, "manage")
    other = queue_attributes.first_difference(attributes, queue.attributes)
    if other is not None:
        raise SqsError(
            "QueueNameExists", f"A queue already exists with the same name and a different value for attribute {other}"
        )
    return shapes.QueueUrl(queue_url=call.url_of(name))


async def get_queue_url(call: SqsCall, given: shapes.GetQueueUrl) -> shapes.QueueUrl:
    name = given.queue_name or ""
    try:
        queue = await call.known.find(name)
    except SqsError:
        call.demand(streams_for(name)[0] if is_name(name) else "", "consume", "publish", "manage")
        raise
    call.demand(queue.stream, "consume", "publish", "manage")
    return shapes.QueueUrl(queue_url=call.url_of(queue.name))


async def list_queues(call: SqsCall, given: shapes.ListQueues) -> shapes.QueueUrls:
    prefix = given.queue_name_prefix or ""
    names = [
        each.name
        for each in await call.run(sqs.list_served())
        if each.name.startswith(prefix) and call.token.sees(each.stream)
    ]
    page, following = _page(names, given.max_results, given.next_token)
    return shapes.QueueUrls(queue_urls=[call.url_of(name) for name in page] or None, next_token=following)


async def list_sources(call: SqsCall, given: shapes.ListSources, queue: ServedSqsQueue) -> shapes.Sources:
    names = [each.name for each in await sources_of(call, queue.name) if call.token.sees(each.stream)]
    page, following = _page(names, given.max_results, given.next_token)
    return shapes.Sources(queue_urls=[call.url_of(name) for name in page], next_token=following)


async def sources_of(call: SqsCall, name: str) -> list[ServedSqsQueue]:
    """The queues whose dead letters go to a queue."""
    found = []
    for each in await call.run(sqs.list_served()):
        redrive = queue_attributes.redrive_of(each.attributes)
        if redrive is not None and redrive[0] == name:
            found.append(each)
    return found


async def delete_queue(call: SqsCall, given: shapes.OfQueue, queue: ServedSqsQueue) -> None:
    await call.run(sqs.drop(queue.name))
    call.known.forget(queue.name)
    call.state.names.forget(queue.stream)


async def get_attributes(
    call: SqsCall, given: shapes.GetQueueAttributes, queue: ServedSqsQueue
) -> shapes.QueueAttributes:
    wanted = given.attribute_names
    worked_out = {
        "QueueArn": call.arn_of(queue.name),
        "CreatedTimestamp": str(int(queue.created_at.timestamp())),
        "LastModifiedTimestamp": str(int(queue.changed_at.timestamp())),
    }
    if wanted and not {"All", *queue_attributes.COUNTED}.isdisjoint(wanted):
        counts = await call.run(sqs.count(queue.name))
        numbers = (counts.visible, counts.in_flight, counts.delayed)
        worked_out |= {name: str(number) for name, number in zip(queue_attributes.COUNTED, numbers, strict=True)}
    return shapes.QueueAttributes(
        attributes=queue_attributes.shown(wanted, queue.attributes, worked_out, is_fifo=queue.is_fifo)
    )


async def set_attributes(call: SqsCall, given: shapes.SetQueueAttributes, queue: ServedSqsQueue) -> None:
    attributes = queue_attributes.checked(given.attributes or {}, is_fifo=queue.is_fifo, is_new=False)
    if attributes.get("FifoThroughputLimit") == "perMessageGroupId":
        both = {**queue.attributes, **attributes}
        if both.get("DeduplicationScope") != "messageGroup":
            raise SqsError(
                "InvalidAttributeValue", "FifoThroughputLimit perMessageGroupId needs DeduplicationScope messageGroup."
            )
    await _check_dead_letter_queue(call, attributes, is_fifo=queue.is_fifo)
    await call.run(sqs.change(queue.name, attributes=attributes))
    call.known.forget(queue.name)


async def list_tags(call: SqsCall, given: shapes.OfQueue, queue: ServedSqsQueue) -> shapes.QueueTags:
    return shapes.QueueTags(tags=dict(queue.tags) or None)


async def tag(call: SqsCall, given: shapes.TagQueue, queue: ServedSqsQueue) -> None:
    tags = _tags(given.tags or {}, queue.name)
    if not tags:
        raise missing("Tags")
    if len({**queue.tags, **tags}) > _MOST_TAGS:
        raise invalid_value(f"Too many tags added for queue {queue.name}.")
    await call.run(sqs.change(queue.name, tags=tags))
    call.known.forget(queue.name)


async def untag(call: SqsCall, given: shapes.UntagQueue, queue: ServedSqsQueue) -> None:
    keys = given.tag_keys or []
    if not keys:
        raise invalid_value("Tag keys must be between 1 and 128 characters in length.")
    await call.run(sqs.change(queue.name, gone_tags=[key for key in keys if "\0" not in key]))
    call.known.forget(queue.name)


async def purge(call: SqsCall, given: shapes.OfQueue, queue: ServedSqsQueue) -> None:
    if not await call.run(sqs.purge(queue.name)):
        raise SqsError(
            "PurgeQueueInProgress", f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
        )


async def add_permission(call: SqsCall, given: shapes.AddPermission, queue: ServedSqsQueue) -> None:
    label = given.label or ""
    if not _is_label(label):
        raise invalid("Label", label, "It must be 1 to 80 letters, digits, hyphens or underscores.")
    for action in given.actions or ():
        if action not in _ACTIONS:
            reason = (
                "Only the queue owner is allowed to invoke this action."
                if action in _OWNERS_ACTIONS
                else "Please refer to the appropriate WSDL for a list of valid actions."
            )
            raise invalid("ActionName", f"SQS:{action[:100]}", reason)
    if len(given.actions or ()) > _MOST_ACTIONS:
        raise SqsError(
            "OverLimit", f"{len(given.actions or ())} Actions were found, maximum allowed is {_MOST_ACTIONS}."
        )
    policy = _policy_of(call, queue)
    if any(each.get("Sid") == label for each in policy["Statement"]):
        raise invalid("Label", label, "Already exists.")
    if len(policy["Statement"]) >= _MOST_STATEMENTS:
        raise SqsError("OverLimit", f"{_MOST_STATEMENTS} statements is the most that a policy may have.")
    principals = [f"arn:aws:iam::{account}:root" for account in given.account_ids or ()]
    actions = [f"SQS:{action}" for action in given.actions or ()]
    policy["Statement"].append(
        {
            "Sid": label,
            "Effect": "Allow",
            "Principal": {"AWS": _one_or_all(principals)},
            "Action": _one_or_all(actions),
            "Resource": call.arn_of(queue.name),
        }
    )
    await _store_policy(call, queue, policy)


async def remove_permission(call: SqsCall, given: shapes.RemovePermission, queue: ServedSqsQueue) -> None:
    policy = _policy_of(call, queue)
    left = [each for each in policy["Statement"] if each.get("Sid") != given.label]
    if len(left) == len(policy["Statement"]):
        raise invalid("Label", given.label, "can't find label on existing policy.")
    policy["Statement"] = left
    await _store_policy(call, queue, policy)


def _policy_of(call: SqsCall, queue: ServedSqsQueue) -> dict[str, Any]:
    empty = {"Version": "2008-10-17", "Id": f"{call.arn_of(queue.name)}/SQSDefaultPolicy", "Statement": []}
    text = queue.attributes.get("Policy")
    policy: dict[str, Any] = json.loads(text) if text else empty
    statements = policy.get("Statement")
    # SetQueueAttributes stores any JSON object.
    policy["Statement"] = (
        [each for each in statements if isinstance(each, dict)] if isinstance(statements, list) else []
    )
    return policy


async def _store_policy(call: SqsCall, queue: ServedSqsQueue, policy: dict[str, Any]) -> None:
    text = json.dumps(policy) if policy["Statement"] else ""
    if "\\u0000" in text:
        raise invalid_value("A policy cannot hold the character U+0000.")
    await call.run(sqs.change(queue.name, attributes={"Policy": text}))
    call.known.forget(queue.name)


async def _check_dead_letter_queue(call: SqsCall, attributes: dict[str, str], *, is_fifo: bool) -> None:
    redrive = queue_attributes.redrive_of(attributes)
    if redrive is None:
        return
    text = attributes["RedrivePolicy"]
    try:
        target = await call.known.find(redrive[0])
    except SqsError:
        raise invalid("RedrivePolicy", text, "Dead letter target does not exist.") from None
    call.demand(target.stream, "publish")
    if target.is_fifo != is_fifo:
        kind = "FIFO" if is_fifo else "standard"
        raise invalid(
            "RedrivePolicy", text, f"Dead-letter queue must be same type of queue as the source, which is {kind}."
        )


def _page(names: Sequence[str], most: int | None, token: str | None) -> tuple[list[str], str | None]:
    """A page of names, and the token of the next one, if the request says how many it wants."""
    if most is not None and not 1 <= most <= _PAGE:
        raise invalid("MaxResults", most, f"Valid values are between 1 and {_PAGE}.")
    if token is not None:
        try:
            after = base64.b64decode(token.encode(), validate=True).decode()
        except ValueError:
            raise invalid("NextToken", token[:100], "It is not a token that this operation has returned.") from None
        names = [name for name in names if name > after]
    page = list(names[: most or _PAGE])
    is_last = most is None or len(page) == len(names)
    return page, None if is_last else base64.b64encode(page[-1].encode()).decode()


def _tags(tags: dict[str, str], name: str) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        raise invalid_value(f"Too many tags added for queue {name}.")
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256 or "\0" in key + value:
            raise invalid_value("Tag keys have 1 to 128 characters, tag values at most 256, and none of them U+0000.")
    return tags


def _is_label(label: str) -> bool:
    return 1 <= len(label) <= 80 and label.isascii() and label.replace("-", "").replace("_", "").isalnum()


def _one_or_all(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values
