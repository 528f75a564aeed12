"""What is known of the archive of a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveInfo:
    """Files in a lake that hold the messages of a stream.

    Attributes:
        root: The folder that they lie in.
        start_after: The archive begins after this seq.
        position_seq: The seq up to which messages are archived.
        file_count: How many files there are.
        message_count: How many messages they hold.
        bytes: How large they are, in bytes.
    """

    root: str
    start_after: int
    position_seq: int
    file_count: int
    message_count: int
    bytes: int
