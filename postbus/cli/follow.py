"""`postbus stream read --follow`: new messages of a stream, as they are published."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

from postbus.cli import output
from postbus.cli.interrupts import until_interrupted
from postbus.cli.options import has_json_texts

if TYPE_CHECKING:
    from postbus import Bus

_PAUSE_SECONDS: Final = 0.25


def follow_stream(
    bus: Bus, stream: str, *, from_seq: int | None, from_time: datetime | None, key_pattern: str | None
) -> None:
    """Print messages until Ctrl-C, from a position or from now on. Reading takes nothing from consumers."""
    is_positioned = from_seq is not None or from_time is not None
    next_seq = from_seq if is_positioned else bus.horizon(stream) + 1
    with until_interrupted() as stopped:
        if not is_positioned and output.is_for_people():
            output.say(f"new messages of {stream}, until Ctrl-C; from the first one: --from 1")
        while not stopped:
            horizon = bus.horizon(stream)
            if next_seq is None or horizon >= next_seq:
                for message in bus.scan(
                    stream, from_seq=next_seq, to_seq=horizon, from_time=from_time, key_pattern=key_pattern
                ):
                    output.emit_line(message, quoted=has_json_texts(bus, stream, [message]))
                next_seq, from_time = horizon + 1, None
            time.sleep(_PAUSE_SECONDS)
