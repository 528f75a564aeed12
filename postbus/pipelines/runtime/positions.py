"""Places of a stream as people write them: a seq, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from postbus.model.errors import InvalidInput
from postbus.spark.options import Position, position_of

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def seq_or_time(text: str | None, name: str) -> Position:
    """A seq or a time; 10m is ten minutes ago. None is nowhere in particular.

    Raises:
        InvalidInput: It is neither.
    """
    if text is None:
        return Position()
    if found := _AGO.fullmatch(text):
        return Position(time=datetime.now(UTC) - timedelta(**{_UNITS[found[2]]: float(found[1])}))
    try:
        place = position_of(text, name)
    except InvalidInput:
        place = Position()
    if place.seq is None and place.time is None:
        raise InvalidInput(
            f'{name} = "{text}" is neither a seq nor a time',
            "use a seq, a time such as 2026-01-31T08:00:00+00:00, or how long ago: 30m, 12h, 7d",
        )
    return place


def time_of(text: str | None, name: str) -> datetime | None:
    """A time; 10m is ten minutes ago.

    Raises:
        InvalidInput: It is not one.
    """
    place = seq_or_time(text, name)
    if place.seq is not None:
        raise InvalidInput(
            f'{name} = "{text}" is not a time', "write 2026-01-31T08:00:00+00:00, or 7d for seven days ago"
        )
    return place.time
