"""What a checker found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Promise = Literal[
    "nothing is lost",
    "finished for good",
    "counted once",
    "one worker at a time",
    "attempts are counted",
    "in order",
    "urgent first",
    "channel over limit",
    "turn skipped",
]


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was certainly broken.

    Attributes:
        promise: Which.
        seq: The message, or None when it is about all of them.
        what: What happened.
    """

    promise: Promise
    seq: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}" if self.seq is None else f"{self.promise}: message {self.seq} {self.what}"
