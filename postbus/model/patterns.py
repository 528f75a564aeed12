"""Which keys a pattern stands for, as SQL decides it too."""

from __future__ import annotations


def matches(pattern: str, key: str) -> bool:
    """Whether a key matches: `*` stands for one token, `>` at the end for one or more."""
    wanted, tokens = pattern.split("."), key.split(".")
    if wanted[-1] == ">":
        if len(tokens) < len(wanted):
            return False
        wanted.pop()
        tokens = tokens[: len(wanted)]
    return len(wanted) == len(tokens) and all(each in ("*", token) for each, token in zip(wanted, tokens, strict=True))
