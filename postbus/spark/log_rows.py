"""Messages as the rows of a segment, in the binary format of COPY, made without a Python object per value.

COPY writes a page of rows at a time, where INSERT … SELECT writes row after row (docs/decisions/0010). Rows are encoded
before it is known where and under which numbers they will be stored: `fill` puts these into places that `encode` left.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from postbus.model.partitioning import hash_of

COLUMNS: Final = ("seq", "published_at", "partition", "key", "data", "headers", "expires_at")
_START: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END: Final = struct.pack("!h", -1)
# How many columns follow, and those that have a fixed width, each after its length.
_HEAD: Final = struct.pack("!hiqiqii", len(COLUMNS), 8, 0, 8, 0, 4, 0)
_SEQ_AT, _TIME_AT, _PARTITION_AT = 6, 18, 30
_NO_HEADERS_NOR_END: Final = struct.pack("!ii", -1, -1)
# What it saves in the staging area takes longer to write than to compress.
_CODEC: Final = "lz4"
_SIZE: Final = struct.Struct("!q")
_NUMBER: Final = np.dtype(">i4")
_NO_KEY: Final = -1
_Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk of messages goes: its numbers, its time as Postgres sends it, and the partitions of the segment."""

    seqs: _Numbers
    published_at: bytes
    partition_base: int
    partition_count: int


def encode(keys: Any, data: Any) -> bytes:
    """Messages without headers as rows: the length of each, the hash of its key, then the rows.

    Args:
        keys: A binary array of Arrow; None if no message has one.
        data: Another, without nulls.
    """
    import pyarrow
    from pyarrow import compute

    count = len(data)
    keys = pyarrow.nulls(count, pyarrow.binary()) if keys is None else keys
    nothing = pyarrow.scalar(b"", pyarrow.binary())
    rows = compute.binary_join_element_wise(
        pyarrow.scalar(_HEAD, pyarrow.binary()),
        _lengths(keys),
        keys,
        _lengths(data),
        data,
        pyarrow.scalar(_NO_HEADERS_NOR_END, pyarrow.binary()),
        nothing,
        null_handling="replace",
        null_replacement=b"",
    )
    bounds = np.frombuffer(rows.buffers()[1], np.int32, count + 1)
    numbers = np.concatenate((np.diff(bounds), _hashes(keys))).astype(_NUMBER)
    content = b"".join((numbers.tobytes(), memoryview(rows.buffers()[2])[: bounds[-1]]))
    return b"".join((_SIZE.pack(len(content)), pyarrow.compress(content, codec=_CODEC)))


def fill(encoded: bytes, count: int, place: Place) -> bytes:
    """What COPY takes, of what `encode` made of so many messages."""
    import pyarrow

    (size,) = _SIZE.unpack_from(encoded)
    encoded = pyarrow.decompress(memoryview(encoded)[_SIZE.size :], size, codec=_CODEC)
    lengths = np.frombuffer(encoded, _NUMBER, count)
    hashes = np.frombuffer(encoded, _NUMBER, count, lengths.nbytes).astype(np.int64)
    rows = np.frombuffer(encoded, np.uint8, offset=2 * lengths.nbytes).copy()
    # As partition_of in SQL: a message without a key goes by its number.
    partitions = place.partition_base + np.where(hashes == _NO_KEY, place.seqs, hashes) % place.partition_count
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    _put(rows, starts + _SEQ_AT, place.seqs.astype(">i8"))
    _put(rows, starts + _TIME_AT, np.frombuffer(place.published_at, ">i8"))
    _put(rows, starts + _PARTITION_AT, partitions.astype(_NUMBER))
    return b"".join((_START, rows.tobytes(), _END))


def _put(rows: _Numbers, places: _Numbers, values: _Numbers) -> None:
    width = values.dtype.itemsize
    rows[places[:, None] + np.arange(width)] = values.view(np.uint8).reshape(-1, width)


def _lengths(values: Any) -> Any:
    """The length of each value as a binary array: -1 stands for null."""
    import pyarrow
    from pyarrow import compute

    lengths = compute.fill_null(compute.binary_length(values), -1).to_numpy().astype(_NUMBER)
    kind = pyarrow.binary(_NUMBER.itemsize)
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(lengths)]).cast(pyarrow.binary())


def _hashes(keys: Any) -> _Numbers:
    """What decides on the partition of each key; -1 where there is none. Keys come again and again, and each is hashed once."""
    from pyarrow import compute

    found = keys.dictionary_encode()
    known = [*map(hash_of, found.dictionary.to_pylist()), _NO_KEY]
    places: _Numbers = compute.fill_null(found.indices, len(known) - 1).to_numpy()
    return np.array(known)[places]
