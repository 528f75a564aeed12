"""The attributes of queues: which there are, what they may be, and what they are when nobody sets them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from postbus.server.sqs.errors import SqsError, bad_attribute, bad_attribute_value, invalid_value

# Numbers: least, most, default.
_NUMBERS: Final = {
    "VisibilityTimeout": (0, 43_200, 30),
    "DelaySeconds": (0, 900, 0),
    "MaximumMessageSize": (1024, 1_048_576, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600, 345_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20, 0),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400, 300),
}
_CHOICES: Final = {
    "FifoQueue": ("true", "false"),
    "ContentBasedDeduplication": ("true", "false"),
    "SqsManagedSseEnabled": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
_OF_FIFO: Final = ("FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
# Stored and returned, and nothing else: who may do what is a matter of tokens, and how data is encrypted one of Postgres.
_STORED: Final = ("Policy", "KmsMasterKeyId")
_POLICIES: Final = ("RedrivePolicy", "RedriveAllowPolicy")
SETTABLE: Final = frozenset((*_NUMBERS, *_CHOICES, *_STORED, *_POLICIES))
# Those that the server works out.
COUNTED: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
READABLE: Final = SETTABLE | {*COUNTED, "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "All"}
_LONGEST: Final = 100_000


def number(attributes: Mapping[str, str], name: str) -> int:
    """A number among the attributes of a queue, or its default."""
    return int(attributes.get(name) or _NUMBERS[name][2])


def checked(given: Mapping[str, str], *, is_fifo: bool, is_new: bool) -> dict[str, str]:
    """Attributes that a request sets, as they are stored; “” removes one.

    Raises:
        SqsError: There is no such attribute, or it cannot have that value.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        if name not in SETTABLE or (name in _OF_FIFO and not is_fifo and not (name == "FifoQueue" and not is_new)):
            raise bad_attribute(name)
        if name == "FifoQueue" and ((value != "true" and is_fifo) or not is_fifo):
            raise bad_attribute_value(name) if is_new else bad_attribute(name)
        found[name] = _checked_value(name, value)
    if found.get("FifoThroughputLimit") == "perMessageGroupId" and found.get("DeduplicationScope") == "queue":
        raise bad_attribute_value("FifoThroughputLimit")
    return found


def redrive_of(attributes: Mapping[str, str]) -> tuple[str, int] | None:
    """The name of the dead-letter queue and the number of receives, if there is a policy."""
    text = attributes.get("RedrivePolicy")
    if not text:
        return None
    policy = json.loads(text)
    return arn_name(policy["deadLetterTargetArn"]), int(policy["maxReceiveCount"])


def arn_name(arn: str) -> str:
    """The name of the queue that an ARN names; “” if it is none of SQS."""
    parts = arn.split(":")
    return parts[5] if len(parts) == 6 and parts[:3:2] == ["arn", "sqs"] else ""


def shown(
    wanted: list[str] | None, stored: Mapping[str, str], worked_out: Mapping[str, str], *, is_fifo: bool
) -> dict[str, str] | None:
    """The attributes that a request asks for; None for none.

    Raises:
        SqsError: It asks for one that does not exist.
    """
    for name in wanted or ():
        if name not in READABLE:
            raise bad_attribute(name)
    everything = {name: str(default) for name, (_, _, default) in _NUMBERS.items() if not name.startswith("Kms")}
    everything["SqsManagedSseEnabled"] = "true"
    if is_fifo:
        everything |= {
            "FifoQueue": "true",
            "ContentBasedDeduplication": "false",
            "DeduplicationScope": "queue",
            "FifoThroughputLimit": "perQueue",
        }
    everything |= {**stored, **worked_out}
    if "All" in (wanted or ()):
        return everything
    return {name: everything[name] for name in wanted or () if name in everything} or None


def first_difference(given: Mapping[str, str], stored: Mapping[str, str]) -> str | None:
    """The first attribute that a queue that exists has otherwise."""
    for name, value in given.items():
        has = stored.get(name, str(_NUMBERS[name][2]) if name in _NUMBERS else _DEFAULT_CHOICES.get(name, ""))
        if not _same(name, value, has):
            return name
    return None


_DEFAULT_CHOICES: Final = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "SqsManagedSseEnabled": "true",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}


def _same(name: str, one: str, other: str) -> bool:
    if name in _POLICIES and one and other:
        return bool(json.loads(one) == json.loads(other))
    return one == other


def _checked_value(name: str, value: str) -> str:
    if name in _NUMBERS:
        least, most, _ = _NUMBERS[name]
        if not (value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most):
            raise bad_attribute_value(name)
        return str(int(value))
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise bad_attribute_value(name)
        return value
    if len(value) > _LONGEST or "\0" in value:
        raise bad_attribute_value(name)
    if value and name == "RedrivePolicy":
        return _redrive_policy(value)
    if value and name in ("RedriveAllowPolicy", "Policy"):
        _object(name, value)
    return value


def _redrive_policy(text: str) -> str:
    reason = f"Value {text} for parameter RedrivePolicy is invalid. Reason: "
    try:
        policy = _object("RedrivePolicy", text)
    except SqsError:
        raise invalid_value(f"{reason}Redrive policy is not a valid JSON map.") from None
    if unknown := set(policy) - {"deadLetterTargetArn", "maxReceiveCount"}:
        raise invalid_value(f"{reason}Unknown parameter: {min(unknown)}.")
    if not policy.get("deadLetterTargetArn"):
        raise invalid_value(f"{reason}Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
    if "maxReceiveCount" not in policy:
        raise invalid_value(f"{reason}Redrive policy does not contain mandatory attribute: maxReceiveCount.")
    count = str(policy["maxReceiveCount"])
    if not (count.isascii() and count.isdigit() and len(count) < 5 and 1 <= int(count) <= 1000):
        raise invalid_value(
            f"{reason}Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive."
        )
    arn = policy["deadLetterTargetArn"]
    if not (isinstance(arn, str) and arn_name(arn)):
        raise invalid_value(f"{reason}Invalid value for deadLetterTargetArn.")
    return text


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise bad_attribute_value(name)
    return found
