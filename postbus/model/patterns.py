"""Which keys a pattern stands for, as SQL decides it too."""

from __future__ import annotations

import re
from typing import Final

from postbus.model.errors import InvalidInput

_TOKEN: Final = re.compile(r"\*|>|[^\x00-\x20\x7f*>]+")


def check(pattern: str) -> str:
    """The pattern, if it is one.

    Raises:
        InvalidInput: A token is empty, or has a wildcard inside, or ">" stands before the end.
    """
    tokens = pattern.split(".")
    if not all(map(_TOKEN.fullmatch, tokens)) or ">" in tokens[:-1]:
        raise InvalidInput(
            f'key pattern "{pattern[:300]}" is not allowed',
            'tokens are separated by "."; "*" stands for one token and ">", at the end, for one or more',
        )
    return pattern


def matches(pattern: str, key: str) -> bool:
    """Whether a key matches: `*` stands for one token, `>` at the end for one or more."""
    wanted, tokens = pattern.split("."), key.split(".")
    if wanted[-1] == ">":
        if len(tokens) < len(wanted):
            return False
        wanted.pop()
        tokens = tokens[: len(wanted)]
    return len(wanted) == len(tokens) and all(each in ("*", token) for each, token in zip(wanted, tokens, strict=True))
