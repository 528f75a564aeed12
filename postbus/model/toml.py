"""Writes TOML, which Python's library only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any]) -> str:
    """A mapping as TOML: a table for each name, and its settings in a line each."""
    return "\n".join(_lines(table, ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    # The names of things come at every second level: streams.NAME.consumers.NAME.
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping) and _holds_names(key, path)}
    own = {key: value for key, value in table.items() if key not in inner}
    if path and len(path) % 2 == 0:
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in own.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield from _lines(value, (*path, key))


def _holds_names(key: str, path: tuple[str, ...]) -> bool:
    return len(path) % 2 == 1 or key in ("streams", "queues", "consumers", "groups")


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
