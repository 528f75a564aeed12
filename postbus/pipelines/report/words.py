"""Numbers, sizes and times as a report writes them. All times are UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Final

_SHORT: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DAY: Final = 86400.0


def number(value: float) -> str:
    """Such as 1,234,567."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def short(value: float) -> str:
    """Such as 1.2M, for an axis."""
    for size, letter in _SHORT:
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def size(value: float) -> str:
    """Such as 1.2 MB."""
    for unit, letter in _SHORT:
        if abs(value) >= unit:
            return f"{value / unit:.3g} {letter}B"
    return f"{value:.0f} B"


def duration(seconds: float | None) -> str:
    """Such as 3.2 ms or 4.5 h."""
    if seconds is None:
        return "–"
    if seconds < 0.001:
        return f"{_three(seconds * 1e6)} µs"
    if seconds < 1:
        return f"{_three(seconds * 1e3)} ms"
    if seconds < 120:
        return f"{_three(seconds)} s"
    if seconds < 2 * 3600:
        return f"{_three(seconds / 60)} min"
    if seconds < 2 * _DAY:
        return f"{_three(seconds / 3600)} h"
    return f"{_three(seconds / _DAY)} days"


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def bucket(seconds: float) -> str:
    """What a column stands for: per second, per 5 minutes."""
    for unit, name in ((_DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= unit and seconds % unit == 0:
            return name if seconds == unit else f"{seconds / unit:g} {name}s"
    return "second" if seconds == 1 else f"{seconds:g} seconds"


def moment(time: datetime, seconds: float) -> str:
    """A time, as exactly as buckets of so many seconds need it."""
    if seconds >= _DAY:
        return f"{time:%Y-%m-%d}"
    return f"{time:%m-%d %H:%M}" if seconds >= 60 else f"{time:%H:%M:%S}"


def whole_moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
