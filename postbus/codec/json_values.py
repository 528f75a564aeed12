"""Writes Python values as JSON: JSON's own, and those that have one obvious form in it.

| value | JSON |
|---|---|
| datetime, date, time | a string, as ISO 8601 |
| UUID | a string |
| Decimal | a number with all its digits |
| Enum | its value |
| dataclass, mapping | an object |
| named tuple | a list |
| msgspec.Struct, a model of pydantic | what they make of themselves |
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, Final
from uuid import UUID

import msgspec
import orjson

# As orjson leaves out attributes of dataclasses that begin with an underscore, they are turned into dicts here.
OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS
_HINT: Final = (
    "data may hold dict, list, str, int, float, bool and None; datetime, date, time, UUID, Decimal and Enum; "
    "dataclasses, msgspec structs and pydantic models"
)
_HINTS: Final[Mapping[type, str]] = {
    bytes: 'encode it, for example by base64.b64encode(…).decode(), or use a stream with data_type="bytes"',
    set: "make it a list: sorted(…)",
    frozenset: "make it a list: sorted(…)",
}


class NotJson(ValueError):
    """The reason why a value cannot be written as JSON, with the place of it.

    Args:
        reason: The reason.
        hint: What to do about it.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


def encode(value: Any, encoded: bytes | None = None) -> bytes:
    """A value as JSON, or why it has none.

    Args:
        value: The value.
        encoded: What orjson made of it, perhaps with nulls for NaN and infinity; None if orjson has refused it.

    Raises:
        NotJson: It has no form in JSON.
    """
    if encoded is not None:
        try:
            _refuse_infinite(value)
        except (TypeError, ValueError, RecursionError):
            pass  # The place of it is found below.
        else:
            return encoded
    try:
        if _has_plain_keys(value):
            # An integer of more than 64 bits, or nested more deeply than orjson takes.
            return _plain_encoder.encode(value).encode()
    except (TypeError, ValueError, RecursionError):
        pass  # The place of it is found below.
    try:
        return _write(value, "").encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotJson):
            raise
        raise NotJson(str(error)) from error


def simpler(value: Any) -> Any:
    """What orjson is to write instead of a value that it does not know."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise TypeError
        return orjson.Fragment(str(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if (own := _own_json(value)) is not None:
        return orjson.Fragment(own)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _own_json(value: Any) -> bytes | str | None:
    """The JSON of a value that can write itself: a struct of msgspec, or a model of pydantic."""
    if isinstance(value, msgspec.Struct):
        _refuse_infinite(value)
        return _structs.encode(value)
    dump = getattr(type(value), "model_dump_json", None)
    return None if dump is None else dump(value)


def _of_struct(value: Any) -> Any:
    """What msgspec is to write instead of a value that it does not know."""
    return msgspec.Raw(orjson.dumps(value, simpler, OPTIONS))


_structs: Final = msgspec.json.Encoder(enc_hook=_of_struct, decimal_format="number")


def _parts(value: Any) -> Any:
    """For `_refuse_infinite`: what of a value may hold a float."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return None if value.is_finite() else math.nan
    return dict(value) if isinstance(value, Mapping) else None


_refuse_infinite: Final[Callable[[Any], Any]] = json.JSONEncoder(allow_nan=False, default=_parts).encode


_plain_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _has_plain_keys(value: Any) -> bool:
    """Whether all keys of objects are strings, at any depth; the standard library would write others as strings."""
    left = [value]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if not isinstance(each, dict | list | tuple) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            if not all(isinstance(key, str) for key in each):
                return False
            left.extend(each.values())
        else:
            left.extend(each)
    return True


def _write(value: Any, place: str) -> str:
    """A value as JSON, also what orjson refuses. Slower, and it knows the place of what it refuses.

    Raises:
        NotJson: It has no form in JSON.
    """
    simple = _write_simple(value, place)
    if simple is not None:
        return simple
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return _write_object(value, place)
    if isinstance(value, list | tuple):
        return f"[{','.join([_write(each, f'{place}[{index}]') for index, each in enumerate(value)])}]"
    try:
        own = _own_json(value)
    except (TypeError, ValueError) as error:
        raise NotJson(_at(place, value, f"cannot be written: {error}")) from error
    if own is None:
        hint = next((hint for kind, hint in _HINTS.items() if isinstance(value, kind)), _HINT)
        raise NotJson(_at(place, value, "has no form in JSON"), hint)
    return own if isinstance(own, str) else own.decode()


def _write_simple(value: Any, place: str) -> str | None:
    """JSON of a value without parts; None if it is not one."""
    if isinstance(value, Enum):
        return _write(value.value, place)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise NotJson(f"{_named(place)} is {value}, which JSON cannot say")
        return float.__repr__(value) if isinstance(value, float) else str(value)
    if isinstance(value, UUID):
        return f'"{value}"'
    if isinstance(value, datetime | date | time):
        return f'"{value.isoformat()}"'
    return None


def _write_object(value: Mapping[Any, Any], place: str) -> str:
    written = []
    for key, each in value.items():
        if not isinstance(key, str):
            raise NotJson(f"the key {key!r} of {_named(place)} is not a string")
        written.append(f"{encode_basestring(key)}:{_write(each, f'{place}.{key}')}")
    return f"{{{','.join(written)}}}"


def _at(place: str, value: Any, what: str) -> str:
    return f"{_named(place)} is of type {type(value).__qualname__}, which {what}"


def _named(place: str) -> str:
    return f"data{place}"
