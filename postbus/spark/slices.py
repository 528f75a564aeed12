"""A range of a stream, split into even slices for tasks.

The split is by seq, across all partitions: seqs are dense, so slices are even however keys are spread, and a task reads
neighbouring pages. Messages of a key are in order within a slice, and a later slice has later ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from postbus.db import arrow
from postbus.db.arrow import MessageFilter, Range, Segment
from postbus.db.session import Session
from postbus.model.partitioning import channel_of, partition_of
from postbus.spark.statements import SPARK_SEGMENTS, SPARK_STATE

# A task costs tens of milliseconds: too many are as slow as too few. A plan knows nothing of a cluster, so it takes the driver's
# machine for a measure, which often is all there is.
_SMALL: Final = 50_000
_FEW: Final = min(max(os.cpu_count() or 2, 2), 8)
_LARGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class State:
    """A stream and its database, as they were when a read was planned."""

    stream_id: int
    data_type: str
    start_seq: int
    horizon: int
    partition_base: int
    partition_count: int
    system: str
    timeline: str
    channel_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """What one task reads, and from which Postgres. All of it: the reader that a task has is older than the plan."""

    range: Range
    messages: MessageFilter
    system: str


def state_of(database: Session, stream: str) -> State:
    """Look at a stream."""
    (row,) = database.rows(SPARK_STATE, (stream,))
    return State(*row)


def split(
    database: Session,
    state: State,
    after_seq: int,
    to_seq: int,
    *,
    messages: MessageFilter,
    min_count: int | None = None,
    partition: int | None = None,
    ahead: tuple[tuple[int, int], ...] = (),
) -> list[Slice]:
    """The slices of a range; none when it is empty."""
    log = LogRange.load(database, state, after_seq, to_seq)
    return [
        part
        for low, high in even_ranges(max(after_seq, log.above_seq), to_seq, min_count)
        for part in log.slices(low, high, messages=messages, partition=partition, ahead=ahead)
    ]


@dataclass(frozen=True, slots=True)
class LogRange:
    """What Postgres has of a range: its segments, each with the seqs above which and up to which it may have messages."""

    state: State
    segments: tuple[tuple[Segment, int, int | None], ...]
    above_seq: int

    @classmethod
    def load(cls, database: Session, state: State, after_seq: int, to_seq: int) -> Self:
        rows = database.rows(SPARK_SEGMENTS, (state.stream_id, after_seq, to_seq)) if after_seq < to_seq else []
        segments = tuple((Segment(number, first, last), above, upto) for number, first, last, above, upto in rows)
        return cls(state, segments, min((above for _, above, _ in segments), default=to_seq))

    def slices(
        self,
        low: int,
        high: int,
        *,
        messages: MessageFilter,
        partition: int | None = None,
        ahead: tuple[tuple[int, int], ...] = (),
    ) -> list[Slice]:
        """One for low < seq <= high, or one for each partition that matters; none when nothing is there."""
        state = self.state
        within = [each for each, above, upto in self.segments if above < high and (upto is None or upto > low)]
        return [
            Slice(
                arrow.Range(state.stream_id, segments, low, high, one_partition, ahead, state.data_type == "bytes"),
                messages,
                state.system,
            )
            for one_partition, segments in _by_partition(
                within, partition, channel_of(messages.key, state.channel_tokens)
            )
        ]


def even_ranges(after_seq: int, to_seq: int, min_count: int | None) -> list[tuple[int, int]]:
    """The range in about equal parts."""
    width = to_seq - after_seq
    if width <= 0:
        return []
    count = min(-(-width // _SMALL), _FEW) if min_count is None else min_count
    if width > count * _LARGE:
        # So many rounds of as many tasks as there are cores: none is idle in the last one.
        count = -(-width // (_LARGE * _FEW)) * _FEW
    count = min(count, width)
    bounds = [after_seq + width * place // count for place in range(count + 1)]
    return list(pairwise(bounds))


def _by_partition(
    segments: Sequence[Segment], partition: int | None, key: str | None
) -> list[tuple[int | None, tuple[Segment, ...]]]:
    """Which partitions to read in which segments: one, if the query is after one or after a key."""
    if partition is None and key is None:
        return [(None, tuple(segments))] if segments else []
    chosen: dict[int, list[Segment]] = {}
    for segment in segments:
        count = segment.last_partition - segment.first_partition + 1
        place = partition if key is None else segment.first_partition + partition_of(key, count)
        if (
            place is not None
            and segment.first_partition <= place <= segment.last_partition
            and partition in (None, place)
        ):
            chosen.setdefault(place, []).append(segment)
    return [(place, tuple(found)) for place, found in sorted(chosen.items())]
