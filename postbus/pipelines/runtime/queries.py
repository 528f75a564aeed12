"""Streaming queries of a run: followed until they end or the run is to stop, and noted as they come along."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.pipelines.runtime.run import Run
from postbus.spark.slices import state_of
from postbus.spark.statements import SPARK_COMMIT

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.3
# A pipeline that says nothing for a minute counts as lost.
BEAT_SECONDS: Final = 10.0


class Follower:
    """Notes how far queries have come, as the run's progress and as the position of their consumer.

    The first query is the one whose messages count. Spark tells a source that a batch is done when it plans the next one, so the
    position is also noted here.
    """

    def __init__(self, run: Run, streams: Sequence[str], consumer: str) -> None:
        self._run = run
        self._consumer = consumer
        self._seen = -1
        self._noted_at = time.monotonic()
        self._at: dict[int, int] = {}
        with session.transaction(run.url) as database:
            self._states = {state.stream_id: (name, state) for name in streams for state in [state_of(database, name)]}

    def follow(self, queries: Sequence[StreamingQuery]) -> None:
        """Wait for the end of all of them, which a signal may bring about.

        Raises:
            StreamingQueryException: One has failed. The others are stopped.
        """
        try:
            left = list(queries)
            while left and not self._run.is_stopping:
                self._run.pause(LOOK_SECONDS)
                self._note(queries[0])
                for query in [each for each in left if not each.isActive]:
                    query.awaitTermination()  # It has ended, and says here if it has failed.
                    left.remove(query)
        finally:
            for query in queries:
                query.stop()
        self._note(queries[0])
        self._move(self._at)

    def _note(self, query: StreamingQuery) -> None:
        new = [each for each in query.recentProgress if each["batchId"] > self._seen]
        count = sum(each["numInputRows"] for each in new)
        for each in new:
            self._seen = each["batchId"]
            self._at.update(ends(each))
        if new or time.monotonic() - self._noted_at > BEAT_SECONDS:
            self._noted_at = time.monotonic()
            left = sum(max(0, state.horizon - self._at.get(number, 0)) for number, (_, state) in self._states.items())
            self._run.note(count, self._run.done + count + left, max(self._at.values(), default=None))

    def _move(self, places: Mapping[int, int]) -> None:
        """Note positions of the consumer on each stream."""
        for number, seq in places.items():
            with session.transaction(self._run.url) as database:
                database.rows(SPARK_COMMIT, (self._states[number][0], self._consumer, seq))


def ends(progress: Any, system: str | None = None) -> dict[int, int]:
    """Where a batch has ended, by the ids of its streams; with a system, of those of this Postgres only."""
    found = {}
    for source in progress["sources"]:
        offset = source["endOffset"]
        place = json.loads(offset) if isinstance(offset, str) else offset
        if place and "stream_id" in place and system in (None, place["system"]):
            found[int(place["stream_id"])] = int(place["seq"])
    return found
