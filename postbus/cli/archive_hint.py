"""Tells the user when messages that were asked for are only in the archive."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from postbus.cli import output
from postbus.cli.options import open_bus
from postbus.cli.target import find_target

if TYPE_CHECKING:
    from postbus import Bus


def say_where_older_is(stream: str, *, seq: int | None, time: datetime | None, how: str) -> None:
    """Say that messages from a seq or a time on are partly in the archive, and how to read them there."""
    if find_target().is_http or (seq is None and time is None):
        return
    with open_bus() as bus:
        archive = bus.archive_info(stream)
        start_seq = bus.stream_info(stream).start_seq
        if archive is None or start_seq - 1 <= archive.start_after or _log_has(bus, stream, start_seq, seq, time):
            return
    output.say(
        f"messages from seq {archive.start_after + 1:,} to {start_seq - 1:,} are only in the archive ({archive.root}); {how}"
    )


def _log_has(bus: Bus, stream: str, start_seq: int, seq: int | None, time: datetime | None) -> bool:
    """Whether the log reaches back that far."""
    if time is None:
        return seq is not None and seq >= start_seq
    oldest = next(bus.scan(stream, page_size=1), None)
    return oldest is not None and oldest.published_at is not None and oldest.published_at <= time
