"""The keys of messages, made from a template such as db.schema.table.pk: each row has one, and no two rows share it."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from postbus.db.replication.pgoutput import Row, Unchanged
from postbus.model.errors import InvalidInput

DEFAULT: Final = "db.schema.table.pk"
_WORDS: Final = ("db", "schema", "table", "pk", "action", "source")
_MOST_CHARACTERS: Final = 255
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f*>.%]")
_TOKEN: Final = re.compile(r"[^\x00-\x20\x7f*>.%]+")


def check(template: str) -> None:
    """Refuse a template of which no key can be made.

    Raises:
        InvalidInput: It says what is wrong.
    """
    for token in template.split("."):
        if not _TOKEN.fullmatch(token):
            raise InvalidInput(
                f'"{template}" is not a template of keys: "{token}" cannot be a token',
                f"join words with dots; {', '.join(_WORDS)} stand for what they name, others for themselves",
            )


def token(text: str) -> str:
    """Any text as a token of a key: what a token cannot have is written as %, and two digits for each byte."""
    escaped = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
    return escaped or "%"


class KeyTemplate:
    """Makes the keys of one table's messages.

    Args:
        template: The template.
        database, schema, table, source: What its words stand for.
        places: Where the columns of the primary key are in a row.
    """

    def __init__(
        self, template: str, *, database: str, schema: str, table: str, source: str, places: list[int]
    ) -> None:
        self._places = places
        known = {"db": database, "schema": schema, "table": table, "source": source}
        tokens = template.split(".")
        self._parts = [each if each in ("pk", "action") else token(known.get(each, each)) for each in tokens]
        self._prefix: str | None = None
        if self._parts[-1] == "pk" and not {"pk", "action"} & set(self._parts[:-1]):
            self._prefix = ".".join(self._parts[:-1])

    def of_row(self, row: Row, action: str) -> bytes:
        """The key of a row."""
        pk = ".".join([_value(row[place]) for place in self._places])
        if self._prefix is not None and pk:
            return _limited(f"{self._prefix}.{pk}" if self._prefix else pk)
        return self._filled(pk, action)

    def of_table(self, action: str) -> bytes:
        """The key of what concerns all rows."""
        return self._filled("", action)

    def _filled(self, pk: str, action: str) -> bytes:
        parts = [pk if part == "pk" else action if part == "action" else part for part in self._parts]
        return _limited(".".join(part for part in parts if part) or "table")


def _value(value: bytes | Unchanged | None) -> str:
    if value is None:
        return "%00"
    assert not isinstance(value, Unchanged)  # noqa: S101
    text = value.decode()
    # Most keys are numbers.
    return text if text.isalnum() and text.isascii() else token(text)


def _limited(key: str) -> bytes:
    """A key that is not too long: of a longer one the beginning, and a hash of the whole."""
    if len(key) > _MOST_CHARACTERS:
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        key = f"{key[: _MOST_CHARACTERS - 34].rstrip('.')}.%{digest}"
    return key.encode()
