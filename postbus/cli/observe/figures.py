"""Numbers as they fit into narrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from postbus.model.wording import size as size

_BARS: Final = " ▁▂▃▄▅▆▇█"
_STEPS: Final = ((86400, "d"), (3600, "h"), (60, "m"))


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


def sparkline(values: Sequence[float], width: int) -> str:
    """A bar for each of the last values, the highest of them full."""
    shown = list(values)[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return " " * width
    return "".join(_BARS[max(1, round(value / top * 8))] for value in shown).rjust(width)
