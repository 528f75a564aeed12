"""Long lists in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from postbus.html.markup import Html, tag
from postbus.server.console.parts import link
from postbus.server.console.visit import Visit

Row = TypeVar("Row")


def paged(visit: Visit, rows: Sequence[Row], size: int) -> tuple[Sequence[Row], Html | None]:
    """The rows of the page that the address asks for, and links to the others."""
    count = max(1, -(-len(rows) // size))
    asked = visit.query.get("page", "1")
    page = min(count, max(1, int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 1))
    shown = rows[(page - 1) * size : page * size]
    if count == 1:
        return shown, None
    before = link("← previous", visit.here(page=page - 1), rel="prev") if page > 1 else None
    after = link("next →", visit.here(page=page + 1), rel="next") if page < count else None
    where = tag("span", f"page {page} of {count}, {len(rows):,} in all", class_="soft")
    return shown, tag("nav", before, where, after, class_="pages", aria_label="Pages")
