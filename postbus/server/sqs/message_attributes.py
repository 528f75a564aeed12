"""Message attributes: checked, hashed, and kept as headers of messages.

A plain String attribute is a header of its own name, so that native consumers can read it and filter by it. All others are in
one header as JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from postbus.server.sqs.errors import SqsError, invalid_value
from postbus.server.sqs.shapes import Attribute

# Headers of ours. In none of them a client can put anything but by the parameter it is for.
OURS: Final = "sqs-"
OTHERS: Final = "sqs-attributes"
_OF_THE_BUS: Final = ("sqs-", "postbus-")
_MOST: Final = 10
_is_name: Final = re.compile(r"(?!aws\.|amazon\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)", re.IGNORECASE).fullmatch
_is_type: Final = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?").fullmatch
_is_number: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?").fullmatch
NOT_ALLOWED: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TRACE: Final = "AWSTraceHeader"


def check(attributes: Mapping[str, Attribute]) -> int:
    """How many bytes they count.

    Raises:
        SqsError: One is not allowed.
    """
    if len(attributes) > _MOST:
        raise invalid_value(f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{_MOST}].")
    return sum(_check(name, attribute) for name, attribute in attributes.items())


def check_system(attributes: Mapping[str, Attribute]) -> None:
    """Refuse system attributes that no sender may set.

    Raises:
        SqsError: There is another than AWSTraceHeader, or it is no string.
    """
    for name, attribute in attributes.items():
        if name != TRACE:
            raise invalid_value(
                f"Message system attribute name '{name[:100]}' is invalid. Supported attributes are: [{TRACE}]."
            )
        if attribute.data_type != "String":
            raise invalid_value(f"The message system attribute '{TRACE}' must be of type String.")
        _check(name, attribute)


def md5_of(attributes: Mapping[str, Attribute]) -> str | None:
    """The MD5 by which clients check that their attributes arrived; None for no attributes."""
    if not attributes:
        return None
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        attribute = attributes[name]
        kind = attribute.data_type or ""
        is_binary = kind.startswith("Binary")
        value = (attribute.binary_value or b"") if is_binary else (attribute.string_value or "").encode()
        for part in (name.encode(), kind.encode()):
            digest.update(len(part).to_bytes(4) + part)
        digest.update((b"\2" if is_binary else b"\1") + len(value).to_bytes(4) + value)
    return digest.hexdigest()


def as_headers(attributes: Mapping[str, Attribute]) -> dict[str, str]:
    """The headers that keep them."""
    headers: dict[str, str] = {}
    others: dict[str, list[str]] = {}
    for name, attribute in attributes.items():
        if attribute.data_type == "String" and not name.startswith(_OF_THE_BUS):
            headers[name] = attribute.string_value or ""
        elif attribute.binary_value is not None:
            others[name] = [attribute.data_type or "", base64.b64encode(attribute.binary_value).decode()]
        else:
            others[name] = [attribute.data_type or "", attribute.string_value or ""]
    if others:
        headers[OTHERS] = json.dumps(others, separators=(",", ":"))
    return headers


def of_headers(headers: Mapping[str, str] | None, *, is_native: bool) -> dict[str, Attribute]:
    """The attributes that headers keep. Headers of native publishers are String attributes, if they can be.

    Args:
        headers: The headers of a message.
        is_native: Whether they may be those of a stream that no queue has made: then the bus's own are shown, too.
    """
    found: dict[str, Attribute] = {}
    hidden = OURS if is_native else _OF_THE_BUS
    for name, value in (headers or {}).items():
        if not name.startswith(hidden) and value and _is_name(name) and not NOT_ALLOWED.search(value):
            found[name] = Attribute(data_type="String", string_value=value)
    for name, (kind, value) in _others(headers).items():
        if kind.startswith("Binary"):
            found[name] = Attribute(data_type=kind, binary_value=base64.b64decode(value))
        else:
            found[name] = Attribute(data_type=kind, string_value=value)
    return found


def chosen(attributes: dict[str, Attribute], wanted: list[str] | None) -> dict[str, Attribute]:
    """Those that a receiver asks for: by name, by prefix (“foo.*”), or all of them."""
    if not wanted or not attributes:
        return {}
    if "All" in wanted or ".*" in wanted:
        return attributes
    prefixes = tuple(each[:-2] for each in wanted if each.endswith(".*"))
    return {
        name: attribute
        for name, attribute in attributes.items()
        if name in wanted or (prefixes and name.startswith(prefixes))
    }


def _others(headers: Mapping[str, str] | None) -> dict[str, tuple[str, str]]:
    text = (headers or {}).get(OTHERS)
    if text is None:
        return {}
    try:
        # A native publisher may have written anything.
        found = {name: (str(kind), str(value)) for name, (kind, value) in json.loads(text).items()}
        for kind, value in found.values():
            if kind.startswith("Binary"):
                base64.b64decode(value, validate=True)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return found


def _check(name: str, attribute: Attribute) -> int:
    if not _is_name(name):
        raise invalid_value(
            f"The message attribute name '{name[:256]}' is invalid. "
            "Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."
        )
    kind = attribute.data_type
    if not kind:
        raise SqsError(
            "InvalidParameterValueException",
            f"The message attribute '{name}' must contain a non-empty message attribute type.",
        )
    if not _is_type(kind) or len(kind) > 256:
        raise invalid_value(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes is "
            "Binary, Number, and String."
        )
    if attribute.string_list_values or attribute.binary_list_values:
        raise SqsError("UnsupportedOperation", "Message attribute list values are not supported.")
    if kind.startswith("Binary"):
        return len(name) + len(kind) + _check_binary(name, kind, attribute)
    return len(name.encode()) + len(kind) + _check_string(name, kind, attribute)


def _check_binary(name: str, kind: str, attribute: Attribute) -> int:
    if attribute.string_value is not None:
        raise invalid_value(f"The message attribute '{name}' with type 'Binary' must use field 'Binary'.")
    if not attribute.binary_value:
        raise invalid_value(
            f"The message attribute '{name}' must contain a non-empty message attribute value for type '{kind}'."
        )
    return len(attribute.binary_value)


def _check_string(name: str, kind: str, attribute: Attribute) -> int:
    value = attribute.string_value
    if attribute.binary_value is not None:
        raise invalid_value(f"The message attribute '{name}' with type 'String' must use field 'String'.")
    if not value:
        raise invalid_value(
            f"The message attribute '{name}' must contain a non-empty message attribute value for type '{kind}'."
        )
    if NOT_ALLOWED.search(value):
        raise invalid_value(f"Invalid binary character in message attribute '{name}'.")
    if kind.startswith("Number") and not _is_number(value):
        raise invalid_value(f"Could not cast message attribute '{name}' value to number.")
    return len(value.encode())
