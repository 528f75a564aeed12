"""Durations and sizes as people write them: 30s, 10m, 7d; 64k, 1.5G."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from postbus.model.errors import InvalidInput

_DAY: Final = 86_400
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": float(_DAY)}
DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SIZES: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_WRITTEN_TIMES: Final = ((_DAY, "d"), (3600, "h"), (60, "m"), (1, "s"))
_WRITTEN_SIZES: Final = ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "k"))


def seconds_of(text: str) -> float:
    """A duration such as 30, 1.5s, 10m, 2h or 7d, in seconds.

    Raises:
        InvalidInput: The text is not valid.
    """
    found = DURATION.fullmatch(text)
    if found is None:
        raise InvalidInput(f'"{text}" is not a duration', "write it as 30s, 10m, 2h or 7d")
    return float(found[1]) * _UNITS[found[2] or "s"]


def bytes_of(text: str) -> int:
    """A number of bytes such as 1000, 64k, 10M or 1.5G.

    Raises:
        InvalidInput: The text is not valid.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidInput(f'"{text}" is not a size', "write it as 1000, 64k, 10M or 1.5G")
    return round(float(found[1]) * _SIZES[found[2].lower()])


def written_duration(duration: float | timedelta) -> str:
    """A duration in the largest unit that divides it, such as 30d or 1500ms."""
    exact = duration if isinstance(duration, timedelta) else timedelta(seconds=duration)
    total = exact.total_seconds()
    for length, unit in _WRITTEN_TIMES:
        if total >= length and not exact % timedelta(seconds=length):
            return f"{round(total / length)}{unit}"
    return "0s" if not total else f"{total * 1000:.15g}ms"


def written_size(size: int) -> str | int:
    """A number of bytes in the largest unit that divides it; itself if none does."""
    for length, unit in _WRITTEN_SIZES:
        if size >= length and not size % length:
            return f"{size // length}{unit}"
    return size
