"""The keys of rows, by a template: orders.{customer}.{id} has a token for each of these columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from postbus.model.errors import InvalidInput

MOST_CHARACTERS: Final = 255
# What a token may not have, in words of regular expressions that Java and Postgres both know.
FORBIDDEN: Final = "[\\x01-\\x20\\x7f*>.]"
_PLACE: Final = re.compile(r"\{([^{}]+)\}")
_NOT_A_KEY: Final = re.compile(r"[\x00-\x20\x7f*>{}]")


@dataclass(frozen=True, slots=True)
class KeyTemplate:
    """Text and columns in turns: texts has one more than columns."""

    texts: tuple[str, ...]
    columns: tuple[str, ...]


def parse_template(written: str) -> KeyTemplate:
    """The template as users write it.

    Raises:
        InvalidInput: What it stands for can never be a key.
    """
    parts = _PLACE.split(written)
    template = KeyTemplate(tuple(parts[::2]), tuple(parts[1::2]))
    example = "x".join(template.texts)
    if _NOT_A_KEY.search(example) or ".." in f".{example}.":
        raise InvalidInput(
            f'"{written}" is not a template of keys',
            "write tokens between dots, with columns in braces: orders.{customer}.{id}",
        )
    return template


def escaped_token(text: str) -> str:
    """Any text as a token of a key: what a token may not have is written as %2E, an empty text as %."""
    return re.sub(f"{FORBIDDEN}|%", lambda found: f"%{ord(found[0]):02X}", text) or "%"


def unknown_column(name: str, known: list[str]) -> InvalidInput:
    """The error for a column that rows do not have."""
    close = get_close_matches(name, known, n=1)
    return InvalidInput(
        f'the rows have no column "{name}"',
        f'did you mean "{close[0]}"?' if close else f"they have: {', '.join(known)}",
    )
