"""Writes the table of requests in docs/reference/http.md. The rest of the page is written by hand."""

from __future__ import annotations

import re
from typing import Final

from postbus.server.endpoints import ALL

_ROWS: Final = re.compile(
    r"(?<=\| request \| needs \| \|\n\|---\|---\|---\|\n)(?:\| `\w+ /api/.*\n)*?(?=\| `GET /health`)"
)


def with_requests(page: str) -> str:
    """The page with a row for each endpoint."""
    rows = "".join(f"| `{each.route.method} {each.route.path}` | {each.needs} | {each.summary} |\n" for each in ALL)
    return _ROWS.sub(lambda _: rows, page)
