"""Numbers as people read them."""

from __future__ import annotations


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
