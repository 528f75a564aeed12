"""The response of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A response.

    Attributes:
        content: Its JSON.
        count: How many deliveries counted, where the server says so.
    """

    content: Any
    count: int

    @property
    def data(self) -> Any:
        return self.content["data"]
