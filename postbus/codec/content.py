"""Encodes and decodes the data of messages. A JSON value comes back as it was; other values are written as JSON or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import orjson

from postbus.codec import json_values
from postbus.codec.json_values import OPTIONS, NotJson, simpler
from postbus.model.errors import InvalidInput
from postbus.model.stream import DataType


class NotEncodable(ValueError):
    """The reason why data does not fit a stream.

    Args:
        reason: The reason.
        hint: What to do about it.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


def json_of(data: Any) -> bytes:
    """JSON for any JSON value, and for what `json_values` knows to write as one.

    Raises:
        NotJson: It has no form in JSON.
    """
    encoded = None
    try:
        encoded = orjson.dumps(data, simpler, OPTIONS)
        # orjson writes NaN and infinity as null.
        if b"null" not in encoded:
            return encoded
    except TypeError:
        pass  # An integer of more than 64 bits, nested too deeply for orjson, or not JSON.
    return json_values.encode(data, encoded)


def encode_json(data: Any) -> bytes:
    try:
        return json_of(data)
    except NotJson as error:
        raise NotEncodable(f"its data is not JSON: {error}", error.hint) from error


def encode_text(data: Any) -> bytes:
    if not isinstance(data, str):
        raise NotEncodable(f"its data is {type(data).__name__}, and the stream holds text (str)")
    if "\x00" in data:
        raise NotEncodable("its data has a NUL character, which Postgres cannot store in text (use a bytes stream)")
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        raise NotEncodable(f"its data is not valid Unicode: {error.reason}") from error


def encode_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise NotEncodable(f"its data is {type(data).__name__}, and the stream holds bytes")
    return bytes(data)


def encode_key(key: str | None) -> bytes | None:
    """A key for Postgres, which validates it. Only keys that cannot be sent are refused here."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise NotEncodable(f"its key is {type(key).__name__}, not a string")
    if "\x00" in key:
        raise NotEncodable("its key has a NUL character")
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise NotEncodable(f"its key is not valid Unicode: {error.reason}") from error


def encode_headers(headers: Mapping[str, str] | None) -> bytes | None:
    """Headers as a JSON object; None if there are no headers."""
    if headers is None:
        return None
    if not isinstance(headers, Mapping):
        raise NotEncodable(f"its headers are {type(headers).__name__}, not a mapping of strings")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise NotEncodable(f"the header {name!r} or its value is not a string")
        if "\x00" in name or "\x00" in value:
            raise NotEncodable(f"the header {name!r} or its value has a NUL character")
    return encode_json(dict(headers))


ENCODERS: Final[Mapping[DataType, Callable[[Any], bytes]]] = {
    "json": encode_json,
    "text": encode_text,
    "bytes": encode_bytes,
}


_decoder: Final = msgspec.json.Decoder()


def decode_json(data: str | bytes) -> Any:
    """A JSON value. msgspec takes a fifth of the standard library's time and, unlike orjson, keeps integers above 64 bits.

    What it refuses but Postgres and the standard library take (half of a surrogate pair, 1e400) is decoded by the latter.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return json.loads(data)


def decode(data_type: DataType, data: str | None, content: bytes | None) -> Any:
    """The Python value of what a stream of that type returned: text in data, or bytes in content."""
    if data_type == "json":
        return decode_json(data or "")
    return content if data_type == "bytes" else data


def invalid_message(place: int | None, error: NotEncodable) -> InvalidInput:
    """The error for a message that cannot be encoded. It gives the message's number in the batch, as the SQL functions do."""
    return InvalidInput(f"message{'' if place is None else f' {place}'} is not allowed: {error}", error.hint)
