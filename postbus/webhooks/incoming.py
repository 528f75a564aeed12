"""A request that came in for a webhook source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request, with its body as it was sent.

    Attributes:
        method: Its method.
        query: Its query string.
        headers: By their names in lower case.
        body: Its body.
    """

    method: str
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes

    def header(self, name: str) -> bytes:
        """A header, or nothing."""
        return self.headers.get(name.lower().encode("latin-1", "replace"), b"")

    def text(self, name: str) -> str | None:
        """A header as text, without what no message may have; None if there is none."""
        value = self.header(name)
        return value.decode("latin-1").replace("\x00", "")[:4000] if value else None

    def parameter(self, name: str) -> str | None:
        """A parameter of the query; None if there is none."""
        try:
            return dict(parse_qsl(self.query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)).get(name)
        except ValueError:
            return None


def at(value: Any, pointer: str) -> Any:
    """What lies at a JSON pointer; None if nothing does."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 7 and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def as_word(value: Any) -> str | None:
    """A string or number as text; None for what is neither."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) if isinstance(value, str) else f"{value:d}" if abs(value) < 10**40 else None
