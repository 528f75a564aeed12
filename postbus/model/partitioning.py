"""Which partition a key belongs to, as SQL and Spark compute it too."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

DEFAULT_PRIORITY: Final = 4
# Each level has partition numbers of its own: partition p of level 7 is 700000000 + p, that of level 4 is p, and that of
# level 0 is 100000000 + p.
LANE: Final = 100_000_000


def priority_of(partition: int) -> int:
    """The priority of the messages of a partition."""
    level = partition // LANE
    return DEFAULT_PRIORITY if level == 0 else level if level > DEFAULT_PRIORITY else level - 1


def lane_of(priority: int) -> int:
    """Where the partitions of a level begin."""
    if priority == DEFAULT_PRIORITY:
        return 0
    return (priority if priority > DEFAULT_PRIORITY else priority + 1) * LANE


def partition_of(key: str, partitions: int) -> int:
    """Where a key belongs among that many partitions, counted from 0.

    The first three bytes of the key's SHA-256, modulo their number: the same in every language and for ever.
    """
    return hash_of(key.encode()) % partitions


def hash_of(key: bytes) -> int:
    """What of a key decides on its partition, in UTF-8."""
    return int.from_bytes(sha256(key).digest()[:3], "big")


def channel_of(key: str | None, tokens: int | None) -> str | None:
    """The part of a key that picks its partition: in a stream with channels, as many leading tokens as name the channel."""
    return key if key is None or tokens is None else ".".join(key.split(".")[:tokens])
