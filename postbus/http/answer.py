"""What a server answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        content: The JSON.
        count: How many deliveries counted, where the server says so.
    """

    content: Any
    count: int

    @property
    def data(self) -> Any:
        return self.content["data"]
