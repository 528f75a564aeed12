"""Spark's xxhash64 of messages, over Arrow columns: for each the number that Spark finds for the same row of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from xxhash import xxh64_intdigest

_SEED: Final = 42
_1, _2, _3, _4, _5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
# Two backslashes stand for one, and what follows them is not an escape.
_ESCAPE: Final = re.compile(r"\\\\|\\u00[01][0-9a-f]")


def checksums(batch: Any) -> Any:
    """The hash of each message of a batch: of seq, partition, key, data, published_at, and headers as JSON.

    A column that is null leaves the hash as it is. Returns a numpy array of 64-bit integers.
    """
    import pyarrow

    found = np.full(batch.num_rows, _SEED, np.uint64)
    found = _of_longs(batch.column("seq"), found)
    found = _of_ints(batch.column("partition"), found)
    digests = _of_bytes(batch.column("data"), _of_bytes(batch.column("key"), found.tolist()))
    found = _of_longs(batch.column("published_at").cast(pyarrow.int64()), np.array(digests, np.uint64))
    headers = batch.column("headers")
    if headers.null_count < len(headers):
        texts = [None if row is None else _json(dict(row)) for row in headers.to_pylist()]
        found = np.array(_of_bytes(pyarrow.array(texts, pyarrow.string()), found.tolist()), np.uint64)
    return found.view(np.int64)


def _of_longs(column: Any, seeds: Any) -> Any:
    values = column.to_numpy().view(np.uint64)
    mixed = seeds + _5 + np.uint64(8) ^ _rotated(values * _2, 31) * _1
    return _finished(_rotated(mixed, 27) * _1 + _4)


def _of_ints(column: Any, seeds: Any) -> Any:
    values = column.to_numpy().view(np.uint32).astype(np.uint64)
    mixed = seeds + _5 + np.uint64(4) ^ values * _1
    return _finished(_rotated(mixed, 23) * _2 + _3)


def _rotated(values: Any, bits: int) -> Any:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)


def _finished(values: Any) -> Any:
    values ^= values >> np.uint64(33)
    values *= _2
    values ^= values >> np.uint64(29)
    values *= _3
    values ^= values >> np.uint64(32)
    return values


def _of_bytes(column: Any, seeds: Sequence[int]) -> list[int]:
    import pyarrow

    values = column.cast(pyarrow.binary()).to_pylist()
    if column.null_count == 0:
        return list(map(xxh64_intdigest, values, seeds))
    return [seed if value is None else xxh64_intdigest(value, seed) for value, seed in zip(values, seeds, strict=True)]


def _json(headers: dict[str, str | None]) -> str:
    """As Spark writes a map: without spaces, and with capital letters in escapes."""
    text = json.dumps(headers, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPE.sub(lambda found: found[0][:2] + found[0][2:].upper(), text)
