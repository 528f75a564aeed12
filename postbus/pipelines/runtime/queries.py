"""Streaming queries of a run: followed until they end or the run is to stop, and noted as they come along."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.pipelines.runtime.run import Run
from postbus.pipelines.runtime.statements import SPARK_TOTAL
from postbus.spark.slices import state_of
from postbus.spark.statements import SPARK_COMMIT

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.3
# A pipeline that says nothing for a minute counts as lost.
BEAT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """What Postgres knows of a writer to a stream."""

    stream: str
    writer: str

    def read(self, url: str) -> Written:
        """The last batch that it has published, and how many messages all batches had."""
        with session.transaction(url) as database:
            rows = database.rows(SPARK_TOTAL, (self.stream, self.writer))
        return Written(*rows[0]) if rows else Written(-1, 0)


@dataclass(frozen=True, slots=True)
class Written:
    """The last batch of a writer, and how many messages it has published in all."""

    batch: int
    total: int


class Follower:
    """Notes how far queries have come, as the run's progress and as the position of their consumer.

    The first query is the one whose messages count. Spark tells a source that a batch is done when it plans the next one, so the
    position is also noted here.

    Attributes:
        repeated: Messages of batches that an earlier run has published and not noted.
        has_state: Whether the query keeps state, so that its results are no longer rows of the input.
    """

    def __init__(
        self, run: Run, streams: Sequence[str], consumer: str, ledgers: Mapping[str, Ledger] | None = None
    ) -> None:
        self._run = run
        self._consumer = consumer
        self._seen = -1
        self._ledgers = dict(ledgers or {})
        self._first = {name: ledger.read(run.url) for name, ledger in self._ledgers.items()}
        self._aside = 0
        self.repeated = 0
        self.has_state = False
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
        self._note(queries[0], is_last=True)
        self._move(self._at)

    def _note(self, query: StreamingQuery, *, is_last: bool = False) -> None:
        new = [each for each in query.recentProgress if each["batchId"] > self._seen]
        count = late = 0
        for each in new:
            # Over Spark Connect the sum itself is not given.
            read = each.numInputRows
            count += read
            late += dropped(each)
            self._seen = each["batchId"]
            self._at.update(ends(each))
            self.has_state |= bool(each["stateOperators"])
            if "query" in self._first and each["batchId"] <= self._first["query"].batch:
                self.repeated += read
        if new or is_last or time.monotonic() - self._noted_at > BEAT_SECONDS:
            self._noted_at = time.monotonic()
            left = sum(max(0, state.horizon - self._at.get(number, 0)) for number, (_, state) in self._states.items())
            aside = self.published("bad")
            before, self._aside = self._aside, aside
            self._run.note(
                count,
                self._run.done + count + left,
                max(self._at.values(), default=None),
                aside=aside - before,
                late=late,
            )

    def published(self, query: str) -> int:
        """How many messages a query has published since this began; 0 for one without a ledger."""
        if query not in self._ledgers:
            return 0
        return self._ledgers[query].read(self._run.url).total - self._first[query].total

    def _move(self, places: Mapping[int, int]) -> None:
        """Note positions of the consumer on each stream."""
        for number, seq in places.items():
            with session.transaction(self._run.url) as database:
                database.rows(SPARK_COMMIT, (self._states[number][0], self._consumer, seq))


def dropped(progress: Any) -> int:
    """How many rows a batch has dropped because they came too late for a watermark."""
    return sum(int(operator["numRowsDroppedByWatermark"]) for operator in progress["stateOperators"])


def ends(progress: Any, system: str | None = None) -> dict[int, int]:
    """Where a batch has ended, by the ids of its streams; with a system, of those of this Postgres only."""
    found = {}
    for source in progress["sources"]:
        offset = source["endOffset"]
        place = json.loads(offset) if isinstance(offset, str) else offset
        if place and "stream_id" in place and system in (None, place["system"]):
            found[int(place["stream_id"])] = int(place["seq"])
    return found
