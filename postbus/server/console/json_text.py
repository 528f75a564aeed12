"""JSON laid out for people, from its text: numbers are not parsed, so none of their digits change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from postbus.html.markup import Html, tag

_tokens: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL).finditer
_INDENT: Final = "  "
_WORDS: Final = frozenset(("true", "false", "null"))


def pretty(text: str) -> Html:
    """JSON with a line for each value, and a class for each kind of value. What is not JSON comes out as it is."""
    return Html("".join(_pieces(text)))


def compact(text: str, most: int) -> str:
    """JSON on one line, cut after so many characters."""
    line = " ".join(text.split()) if len(text) < 4 * most else " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _pieces(text: str) -> Iterator[Html]:
    depth = 0
    pieces = [match[0] for match in _tokens(text)]
    for place, piece in enumerate(pieces):
        following = pieces[place + 1] if place + 1 < len(pieces) else ""
        if piece in "{[":
            if following in ("}", "]"):
                yield Html(piece)
                continue
            depth += 1
            yield Html(piece + "\n" + _INDENT * depth)
        elif piece in "}]":
            if place and pieces[place - 1] in ("{", "["):
                yield Html(piece)
                continue
            depth = max(0, depth - 1)
            yield Html("\n" + _INDENT * depth + piece)
        elif piece == ",":
            yield Html(",\n" + _INDENT * depth)
        elif piece == ":":
            yield Html(": ")
        else:
            yield tag("span", piece, class_=_kind(piece, following))


def _kind(piece: str, following: str) -> str:
    if piece.startswith('"'):
        return "j-name" if following == ":" else "j-text"
    return "j-word" if piece in _WORDS else "j-number"
