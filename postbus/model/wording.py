"""Numbers as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

_STEPS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


def counted(count: int, noun: str) -> str:
    """A number of things: "1 message", "10,000 messages"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(number: int | None) -> str:
    """Bytes as 8.0 kB, 1.2 MB, …."""
    if number is None:
        return "·"
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TB"


def count(number: float | None) -> str:
    """1234 as 1,234 and 1234567 as 1.23M."""
    if number is None:
        return "·"
    if number < 100_000:
        return f"{number:,.0f}"
    for least, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= least:
            return f"{number / least:.3g}{unit}"
    return f"{number / 1e3:.0f}k"


def about(number: int | None, *, is_exact: bool) -> str:
    """A number, or an estimate as ~12,300."""
    if is_exact or number is None:
        return count(number)
    return f"~{count(rounded(number))}"


def rounded(number: int) -> int:
    """A number with no more than three digits that are not 0."""
    unit = int(10 ** max(0, len(str(number)) - 3))
    return round(number / unit) * unit


def rate(per_second: float | None) -> str:
    if per_second is None:
        return "·"
    if per_second == 0:
        return "0"
    return f"{per_second:.1f}" if per_second < 10 else count(per_second)


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in its largest unit and the next."""
    if since is None:
        return "-"
    seconds = max(0, int((now - since).total_seconds()))
    for place, (length, unit) in enumerate(_STEPS):
        if seconds >= length:
            smaller, name = (*_STEPS, (1, "s"))[place + 1]
            return f"{seconds // length}{unit}{seconds % length // smaller:02d}{name}"
    return f"{seconds}s"
