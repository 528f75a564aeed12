"""What a user asks of a supervisor, as it travels from one process to the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of a supervisor.

    Attributes:
        path: The data directory.
        home: The folder of the Postgres programs; None takes the wheel's.
        major: The version to take from the wheel.
        port: A TCP port to open on loopback; None opens none.
        linger: How many seconds the server stays up after its last user has left.
    """

    path: str
    home: str | None
    major: int
    port: int | None
    linger: float
