"""How the numbers of streams and consumers are printed: the backlog first, and estimates marked as such."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from postbus.cli import output
from postbus.cli.observe.figures import rounded

if TYPE_CHECKING:
    from postbus.model.consumer import ConsumerInfo, ConsumerStats
    from postbus.model.stream import StreamInfo

# Up to here messages are counted, and beyond estimated.
_COUNTED: Final = 1_000
# Up to here others are counted.
_MOST: Final = 10_000
CONSUMER_COLUMNS: Final = ("name", "backlog", "in_flight", "waiting", "dead", "oldest_unread_at", "order", "paused")


def about(number: int, *, is_exact: bool) -> str:
    """A number as it is, or, of an estimate, its first three digits: ~12,300."""
    if is_exact:
        return f"{number:,}"
    return f"~{rounded(number):,}"


def capped(number: int) -> str:
    """A number that is not counted further than 10,000."""
    return f"{number:,}+" if number >= _MOST else f"{number:,}"


def messages(count: int) -> str:
    """How many messages a stream holds."""
    return about(count, is_exact=count <= _COUNTED)


def consumer(found: Any) -> dict[str, Any]:
    """The numbers of a consumer as they are shown."""
    shown = dict(found) if isinstance(found, Mapping) else _fields(found)
    is_exact = shown.pop("backlog_is_exact")
    shown["backlog"] = about(shown["backlog"], is_exact=is_exact)
    shown["lag_estimate"] = about(shown["lag_estimate"], is_exact=is_exact or shown["lag_estimate"] == 0)
    levels = shown.pop("by_priority", {})
    if len(levels) > 1:
        shown["by_priority"] = by_priority(levels)
    for name in ("waiting", "dead", "scheduled"):
        if name in shown:
            shown[name] = capped(shown[name])
    return shown


def by_priority(levels: Mapping[int, int]) -> str:
    """How many messages wait at each priority, the highest first."""
    return ", ".join(f"{level}: {count:,}" for level, count in levels.items())


def stream(info: StreamInfo) -> dict[str, Any]:
    """A stream as it is shown: its numbers, then its settings."""
    shown = _fields(info)
    numbers = {
        "name": shown.pop("name"),
        "messages": messages(shown.pop("message_estimate")),
        "scheduled": capped(shown.pop("scheduled")),
    }
    for name in ("next_scheduled_at", "last_seq", "start_seq", "bytes", "segment_count", "is_full"):
        numbers[name] = shown.pop(name)
    return numbers | shown


def emit_consumer(settings: ConsumerInfo, stats: ConsumerStats, *, more: Mapping[str, Any] | None = None) -> None:
    """Print a consumer: where it stands, and then its settings."""
    if output.as_json():
        output.emit_json({"settings": settings, "stats": stats, **(more or {})})
        return
    output.emit_one(consumer({**_fields(stats), **(more or {})}), leave_out=("partitions",))
    output.blank()
    output.emit_one(settings)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
