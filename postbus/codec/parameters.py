"""Values as parameters of the SQL functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from postbus.codec import content
from postbus.codec.content import NotEncodable
from postbus.codec.json_values import NotJson
from postbus.db.arrays import BigintArray, BytesArray, JsonbArray, TextArray
from postbus.db.parameters import encode_interval
from postbus.model.consumer import Backoff, Exponential, Filter
from postbus.model.duration import as_timedelta
from postbus.model.errors import InvalidInput
from postbus.model.message import Message
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.model.stream import DataType


def publish_parameters(stream: str, data_type: DataType, message: Message) -> tuple[Any, ...]:
    """The arguments of postbus.publish for one message.

    Raises:
        InvalidInput: The message cannot be encoded.
    """
    key, data, headers = publisher_parameters(data_type, message)
    if data_type == "bytes":
        return stream, key, None, headers, data, data_type
    return stream, key, data, headers, None, data_type


def publisher_parameters(data_type: DataType, message: Message) -> tuple[Any, ...]:
    """The arguments of a stream's own publish function: key, data, headers.

    Raises:
        InvalidInput: The message cannot be encoded.
    """
    try:
        encoded = content.ENCODERS[data_type](message.data)
        headers = content.encode_headers(message.headers)
        content.encode_key(message.key)
    except NotEncodable as error:
        raise content.invalid_message(None, error) from error
    data = encoded if data_type == "bytes" else encoded.decode()
    return message.key, data, headers and headers.decode()


def state_parameters(state: Any) -> tuple[str | None, bytes | None]:
    """The state to save with a deferred message: as JSON or as bytes. Neither stands for `...`, which keeps the last one.

    Raises:
        InvalidInput: It has no form in JSON.
    """
    if state is ...:
        return None, None
    if isinstance(state, bytes | bytearray | memoryview):
        return None, bytes(state)
    try:
        return content.json_of(state).decode(), None
    except NotJson as error:
        raise InvalidInput(f"state is not JSON: {error}", "a state is a JSON value or bytes") from error


def checked_headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """A copy of headers; None if there are none.

    Raises:
        InvalidInput: They are not strings by name.
    """
    try:
        content.encode_headers(headers)
    except NotEncodable as error:
        raise InvalidInput(f"headers are not allowed: {error}") from error
    return dict(headers) if headers else None


def as_messages(messages: Iterable[Message]) -> list[Message]:
    """The messages as a list.

    Raises:
        InvalidInput: An item is not a Message; the error gives its number.
    """
    found = list(messages)
    for place, message in enumerate(found, start=1):
        if not isinstance(message, Message):
            raise content.invalid_message(place, NotEncodable(f"it is {type(message).__name__}, not postbus.Message"))
    return found


def publish_many_parameters(stream: str, data_type: DataType, messages: Sequence[Message]) -> tuple[Any, ...]:
    """The arguments of postbus.publish_many for a batch.

    Raises:
        InvalidInput: A message cannot be encoded; the error gives its number.
    """
    keys, contents, headers = publisher_arrays(data_type, messages)
    if data_type == "bytes":
        return stream, keys, None, headers, contents, data_type
    return stream, keys, contents, headers, None, data_type


def publisher_arrays(data_type: DataType, messages: Sequence[Message]) -> tuple[Any, ...]:
    """The arguments of a stream's own batch publish function: keys, data, headers.

    Raises:
        InvalidInput: A message cannot be encoded; the error gives its number.
    """
    encode = content.ENCODERS[data_type]
    contents: list[bytes] = []
    keys: list[bytes | None] = []
    headers: list[bytes | None] = []
    for place, message in enumerate(messages, start=1):
        try:
            contents.append(encode(message.data))
            keys.append(content.encode_key(message.key))
            headers.append(content.encode_headers(message.headers))
        except NotEncodable as error:
            raise content.invalid_message(place, error) from error
    return (
        TextArray(keys),
        BytesArray(contents) if data_type == "bytes" else TextArray(contents),
        JsonbArray(headers) if any(headers) else None,
    )


def dedup_ids(messages: Sequence[Message]) -> TextArray | None:
    """The dedup ids of messages; None if no message has one."""
    if all(message.dedup_id is None for message in messages):
        return None
    return TextArray([None if message.dedup_id is None else message.dedup_id.encode() for message in messages])


def priority_of(message: Message, place: int | None = None) -> int | None:
    """The priority of a message; None for the default.

    Raises:
        InvalidInput: It is not 0 to 9; the error gives the message's number in its batch.
    """
    priority = message.priority
    if type(priority) is int and 0 <= priority <= 9:
        return None if priority == DEFAULT_PRIORITY else priority
    problem = f"priority = {priority!r} is not between 0 and 9"
    whose = "" if place is None else f"message {place} is not allowed: "
    raise InvalidInput(f"{whose}{problem}", "9 is the most urgent, and 4 the default")


def priorities(messages: Sequence[Message]) -> BigintArray | None:
    """The priorities of messages; None if all have the default.

    Raises:
        InvalidInput: One is not 0 to 9; the error gives the message's number.
    """
    if all(message.priority == DEFAULT_PRIORITY for message in messages):
        return None
    found = [priority_of(message, place) for place, message in enumerate(messages, start=1)]
    return BigintArray([DEFAULT_PRIORITY if each is None else each for each in found])


def text_array(values: Sequence[str]) -> TextArray:
    return TextArray([value.encode() for value in values])


def backoff_parameters(backoff: Backoff) -> tuple[TextArray, float | None, timedelta | None, float]:
    """A backoff as delays, factor, cap and jitter."""
    if isinstance(backoff, Exponential):
        return intervals([backoff.first]), backoff.factor, as_timedelta(backoff.cap), backoff.jitter
    return intervals(backoff), None, None, 0.0


def intervals(delays: Sequence[float | timedelta]) -> TextArray:
    """Durations as texts, which become an array of intervals."""
    return text_array([encode_interval(as_timedelta(delay) or timedelta()) for delay in delays])


def filter_parameters(filter: Filter | str | None) -> tuple[str | None, str | None, str | None, str | None]:
    """A filter as key pattern, headers, headers not, data path.

    Raises:
        InvalidInput: Headers cannot be encoded.
    """
    if filter is None or isinstance(filter, str):
        return filter, None, None, None
    try:
        headers, headers_not = (
            encoded and encoded.decode()
            for encoded in (content.encode_headers(filter.headers), content.encode_headers(filter.headers_not))
        )
    except NotEncodable as error:
        raise InvalidInput(f"the filter is not allowed: {error}") from error
    return filter.key, headers or None, headers_not or None, filter.data


def bigint_array(numbers: Sequence[int] | None) -> BigintArray | None:
    return None if numbers is None else BigintArray(numbers)


def headers_text(headers: Mapping[str, str] | None) -> str | None:
    """Headers as the text of a JSON object.

    Raises:
        InvalidInput: They cannot be encoded.
    """
    try:
        encoded = content.encode_headers(headers)
    except NotEncodable as error:
        raise InvalidInput(f"the headers are not allowed: {error}") from error
    return None if encoded is None else encoded.decode()
