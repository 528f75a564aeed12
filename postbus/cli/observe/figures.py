"""Numbers as they fit into narrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postbus.model.wording import about as about
from postbus.model.wording import age as age
from postbus.model.wording import count as count
from postbus.model.wording import rate as rate
from postbus.model.wording import rounded as rounded
from postbus.model.wording import size as size

_BARS: Final = " ▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """A bar for each of the last values, the highest of them full."""
    shown = list(values)[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return " " * width
    return "".join(_BARS[max(1, round(value / top * 8))] for value in shown).rjust(width)
