"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        area: What was looked at.
        level: ok; note (nothing wrong); warning (may become a problem); problem (does not work, or loses something).
        text: What was found.
        advice: What to do about it.
    """

    area: str
    level: Level
    text: str
    advice: str | None = None
