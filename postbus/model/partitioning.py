"""Which partition a key belongs to, as SQL and Spark compute it too."""

from __future__ import annotations

from hashlib import sha256


def partition_of(key: str, partitions: int) -> int:
    """Where a key belongs among that many partitions, counted from 0.

    The first three bytes of the key's SHA-256, modulo their number: the same in every language and for ever.
    """
    return hash_of(key.encode()) % partitions


def hash_of(key: bytes) -> int:
    """What of a key decides on its partition, in UTF-8."""
    return int.from_bytes(sha256(key).digest()[:3], "big")
