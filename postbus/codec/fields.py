"""Values as requests to a server carry them: what the parameters in rows.py are to SQL."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import orjson

from postbus.codec import content, rows
from postbus.codec.content import NotEncodable
from postbus.db.parameters import encode_time
from postbus.model.consumer import (
    Backoff,
    Exponential,
    Filter,
)
from postbus.model.errors import InvalidInput, TooLarge
from postbus.model.message import Message

_MOST_MESSAGES: Final = 10_000
_UNSET_NAMES: Final = {
    "retain_up_to": "retain_up_to_ms",
    "retain_at_least": "retain_at_least_ms",
    "max_messages": "max_messages",
    "max_storage": "max_storage",
    "dedup_window": "dedup_window_ms",
    "max_deliver": "max_deliver",
    "backoff": "backoff_ms",
    "retain_dead": "retain_dead_ms",
    "max_per_key": "max_per_key",
    "filter_key_pattern": "filter_key_pattern",
    "filter_headers": "filter_headers",
    "filter_headers_not": "filter_headers_not",
    "filter_data": "filter_data",
    "expire_after": "expire_after_ms",
    "keep_history": "keep_history_ms",
}


def path(*names: str) -> str:
    """The path of something, below that of the API."""
    return "/api/" + "/".join(quote(name, safe="") for name in names)


def body(**fields: Any) -> bytes:
    """A body; what is None is left out."""
    try:
        return orjson.dumps({name: value for name, value in fields.items() if value is not None})
    except TypeError as error:
        raise InvalidInput(f"an argument cannot be sent: {error}") from error


def edit(unset: Sequence[str], **fields: Any) -> bytes:
    """A body that changes settings: None leaves one as it is, and those to be unset are null.

    Raises:
        InvalidInput: Something cannot be unset.
    """
    changed = {name: value for name, value in fields.items() if value is not None}
    for name in unset:
        if name not in _UNSET_NAMES:
            raise InvalidInput(f'"{name}" cannot be unset')
        changed[_UNSET_NAMES[name]] = None
    return orjson.dumps(changed)


def new_messages(messages: Sequence[Message], **more: Any) -> bytes:
    """A body that publishes.

    Raises:
        InvalidInput: A message cannot be encoded; the error names its place.
        TooLarge: There are too many.
    """
    if len(messages) > _MOST_MESSAGES:
        raise TooLarge(f"a batch of {len(messages)} messages is larger than {_MOST_MESSAGES}", "publish fewer at once")
    encoded = []
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, Message):
            raise content.refuse(place, NotEncodable(f"it is {type(message).__name__}, not postbus.Message"))
        try:
            encoded.append(_new_message(message))
        except NotEncodable as error:
            raise content.refuse(place if len(messages) > 1 else None, error) from error
    return body(messages=encoded, **more)


def _new_message(message: Message) -> dict[str, Any]:
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
    return sent


def ms(duration: float | timedelta | None) -> int | None:
    """A duration given in seconds or as timedelta, in milliseconds."""
    exact = rows.seconds(duration)
    return None if exact is None else round(exact.total_seconds() * 1000)


def time(moment: datetime | None) -> str | None:
    """A time, which has to have a zone."""
    return None if moment is None else encode_time(moment)


def backoff(chosen: Backoff | None) -> dict[str, Any]:
    """The fields of a backoff."""
    if chosen is None:
        return {}
    if isinstance(chosen, Exponential):
        return {
            "backoff_ms": [ms(chosen.first)],
            "backoff_factor": chosen.factor,
            "backoff_cap_ms": ms(chosen.cap),
            "backoff_jitter": chosen.jitter,
        }
    return {"backoff_ms": [ms(delay) for delay in chosen]}


def filters(chosen: Filter | str | None) -> dict[str, Any]:
    """The fields of a filter.

    Raises:
        InvalidInput: Headers cannot be encoded.
    """
    key, headers, headers_not, data = rows.filter_parameters(chosen)
    return {
        "filter_key_pattern": key,
        "filter_headers": headers and orjson.Fragment(headers),
        "filter_headers_not": headers_not and orjson.Fragment(headers_not),
        "filter_data": data,
    }
