"""How much of this machine's time its host has given to others, from /proc: a virtual machine may lose half of it for a while."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

# Of the fields of the first line, the one that counts time which was stolen.
_STOLEN = 7


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Counts from when it was started. Without /proc nothing is ever stolen."""

    ticks: tuple[int, ...]

    @classmethod
    def start(cls) -> Self:
        return cls(_ticks())

    def stolen(self) -> float:
        """The part of all time since then, between 0 and 1."""
        passed = [now - before for now, before in zip(_ticks(), self.ticks, strict=True)]
        return passed[_STOLEN] / sum(passed) if any(passed) else 0.0


def _ticks() -> tuple[int, ...]:
    path = Path("/proc/stat")
    if not path.exists():
        return ()
    # What comes after the first eight is counted in them already.
    return tuple(map(int, path.read_text().split(maxsplit=_STOLEN + 2)[1 : _STOLEN + 2]))
