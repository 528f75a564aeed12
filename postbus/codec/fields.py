"""Values as the fields of requests to a server."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from postbus.codec import content, parameters
from postbus.codec.content import NotEncodable
from postbus.db.parameters import encode_time
from postbus.model.consumer import (
    Backoff,
    Exponential,
    Filter,
)
from postbus.model.duration import as_milliseconds
from postbus.model.errors import InvalidInput, TooLarge
from postbus.model.message import Message

_MOST_MESSAGES: Final = 10_000


def body(given: Mapping[str, Any], *, nulls: Iterable[str] = ()) -> bytes:
    """Encode a body. Fields that are None are left out; fields in `nulls` are null.

    Raises:
        InvalidInput: A value cannot be sent.
    """
    try:
        return orjson.dumps(
            {**{name: _value(each) for name, each in given.items() if each is not None}, **dict.fromkeys(nulls)}
        )
    except TypeError as error:
        raise InvalidInput(f"an argument cannot be sent: {error}") from error


def query(given: Mapping[str, Any]) -> dict[str, Any]:
    """Encode a query. Parameters that are None are left out."""
    return {name: _value(value) for name, value in given.items() if value is not None}


def _value(value: Any) -> Any:
    # A time must have a zone, which orjson does not check.
    return encode_time(value) if isinstance(value, datetime) else value


def new_messages(messages: Sequence[Message], **more: Any) -> bytes:
    """A body that publishes.

    Raises:
        InvalidInput: A message cannot be encoded; the error gives its number.
        TooLarge: There are too many messages.
    """
    if len(messages) > _MOST_MESSAGES:
        raise TooLarge(f"a batch of {len(messages)} messages is larger than {_MOST_MESSAGES}", "publish fewer at once")
    encoded = []
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, Message):
            raise content.invalid_message(place, NotEncodable(f"it is {type(message).__name__}, not postbus.Message"))
        try:
            encoded.append(_new_message(message, place if len(messages) > 1 else None))
        except NotEncodable as error:
            raise content.invalid_message(place if len(messages) > 1 else None, error) from error
    return body({"messages": encoded, **more})


def message(given: Message) -> dict[str, Any]:
    """The fields of one message.

    Raises:
        InvalidInput: It cannot be encoded.
    """
    try:
        return _new_message(given)
    except NotEncodable as error:
        raise content.invalid_message(None, error) from error


def _new_message(message: Message, place: int | None = None) -> dict[str, Any]:
    content.encode_key(message.key)
    sent: dict[str, Any] = {"key": message.key}
    if isinstance(message.data, bytes | bytearray | memoryview):
        sent |= {"data": base64.b64encode(message.data).decode(), "encoding": "base64"}
    else:
        sent["data"] = orjson.Fragment(content.encode_json(message.data))
    if (headers := content.encode_headers(message.headers)) is not None:
        sent["headers"] = orjson.Fragment(headers)
    if message.dedup_id is not None:
        sent["dedup_id"] = message.dedup_id
    if (priority := parameters.priority_of(message, place)) is not None:
        sent["priority"] = priority
    return sent


def state(given: Any) -> dict[str, Any]:
    """The fields of a state to save with a deferred message; none for `...`, which keeps the last one."""
    text, encoded = parameters.state_parameters(given)
    if encoded is not None:
        return {"state": base64.b64encode(encoded).decode(), "state_encoding": "base64"}
    return {} if text is None or text == "null" else {"state": orjson.Fragment(text)}


def backoff(chosen: Backoff) -> dict[str, Any]:
    """The fields of a backoff."""
    if isinstance(chosen, Exponential):
        return {
            "backoff_ms": [as_milliseconds(chosen.first)],
            "backoff_factor": chosen.factor,
            "backoff_cap_ms": as_milliseconds(chosen.cap),
            "backoff_jitter": chosen.jitter,
        }
    return {"backoff_ms": [as_milliseconds(delay) for delay in chosen]}


def filters(chosen: Filter | str | None) -> dict[str, Any]:
    """The fields of a filter.

    Raises:
        InvalidInput: Headers cannot be encoded.
    """
    key, headers, headers_not, data = parameters.filter_parameters(chosen)
    return {
        "filter_key_pattern": key,
        "filter_headers": headers and orjson.Fragment(headers),
        "filter_headers_not": headers_not and orjson.Fragment(headers_not),
        "filter_data": data,
    }
