"""What is known of the archive of a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveInfo:
    """Files in a lake that hold the messages of a stream.

    Attributes:
        root: The folder that they lie in.
        start_after: Messages above this seq are archived,
        position_seq: up to this one,
        file_count: in so many files:
        message_count: so many messages
        bytes: in so many bytes.
    """

    root: str
    start_after: int
    position_seq: int
    file_count: int
    message_count: int
    bytes: int
