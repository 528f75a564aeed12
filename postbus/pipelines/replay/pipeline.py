"""replay: messages of archive and log once more, into a stream or to one consumer.

What to replay is decided when a replay first begins, and cut into ranges of seqs. Each range is one transaction: published by a
writer whose ledger knows the last one, or given to the consumer together with the pipeline's position. So a replay that was
killed goes on with the range that is next, and each message comes once.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from postbus.db import session
from postbus.db.session import Session
from postbus.model.errors import Conflict, InvalidInput
from postbus.pipelines.replay.copies import redeliver
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.positions import seq_or_time
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running
from postbus.pipelines.runtime.statements import PIPELINE_POSITION, SPARK_WRITTEN
from postbus.spark.archive import find_archive
from postbus.spark.options import Position
from postbus.spark.plan import floor, start_at_time
from postbus.spark.slices import state_of
from postbus.spark.statements import SEQ_SINCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What a consumer is given travels through the driver.
_MOST_COPIES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What to replay, and to whom.

    Attributes:
        stream: The stream, archived or not.
        into: Publish to this stream: the messages get new seqs and times there.
        consumer: Or deliver to this consumer of the stream: what it was given before, once more, and what only the archive has.
        start: From this seq or time on, or 10m for ten minutes before the replay first began; None from the oldest message.
        end: To this seq, which is included, or time, which is not; None to the newest message when the replay first began.
        key_pattern: Only messages whose key matches.
        rate: So many messages per second at most.
        batch: How many seqs a transaction covers at most.
        again: Replay once more what was replayed before; else a replay that is done stays done.
    """

    stream: str
    into: str | None = None
    consumer: str | None = None
    start: str | None = None
    end: str | None = None
    key_pattern: str | None = None
    rate: float | None = None
    batch: int = 100_000
    again: bool = False

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInput: The options do not go together, or are out of range.
        """
        if (self.into is None) == (self.consumer is None):
            raise InvalidInput("a replay goes into a stream or to a consumer", "give one of --into and --consumer")
        if self.into == self.stream:
            raise InvalidInput(
                "a stream cannot be replayed into itself", "replay it to a consumer, or into another stream"
            )
        if self.batch < 1 or (self.rate is not None and self.rate <= 0):
            raise InvalidInput("batch and rate have to be above 0")

    def step(self) -> int:
        """How many seqs a step covers: at a rate, what comes in about a second."""
        most = self.batch if self.consumer is None else min(self.batch, _MOST_COPIES)
        return most if self.rate is None else min(most, max(1, math.ceil(self.rate)))

    def what(self) -> dict[str, Any]:
        """The options that decide which messages are replayed."""
        names = ("stream", "into", "consumer", "start", "end", "key_pattern")
        return {name: value for name, value in asdict(self).items() if name in names}


@dataclass(frozen=True, slots=True)
class _Plan:
    """The messages with after_seq < seq <= to_seq, in steps of so many seqs, published by a writer of that name."""

    after_seq: int
    to_seq: int
    from_time: str | None
    to_time: str | None
    step: int
    writer: str
    options: dict[str, Any]

    def range(self, number: int) -> tuple[int, int]:
        low = self.after_seq + number * self.step
        return low, min(low + self.step, self.to_seq)

    @property
    def step_count(self) -> int:
        return max(0, -(-(self.to_seq - self.after_seq) // self.step))


def replay_stream(url: str, options: ReplayOptions, *, spark: SparkSession, show: Show | None = None) -> int:
    """Replay messages, or go on with a replay of the same name that was stopped or killed.

    Returns:
        How many messages were replayed now. A consumer still gets the others from the log, or holds them.

    Raises:
        InvalidInput: The options do not go together.
        NotFound: A stream or the consumer does not exist.
        Conflict: A replay between the same two is not done, and has other options.
    """
    options.check()
    own = spark_session.of_its_own(spark)
    name = f"replay {options.stream} to {options.into or options.consumer}"
    with running(url, name, "replay", options.stream, options, show=show) as run:
        plan = _planned(run, options)
        started_at = time.monotonic()
        for number in range(_next_step(run, options, plan), plan.step_count):
            if run.is_stopping:
                break
            count = _step(run, own, options, plan, number)
            high = plan.range(number)[1]
            run.note(count, run.done + count + plan.to_seq - high, high)
            if options.rate is not None:
                run.pause(started_at + run.done / options.rate - time.monotonic())
        return run.done


def _planned(run: Run, options: ReplayOptions) -> _Plan:
    """What was decided when the replay began."""
    start, end = seq_or_time(options.start, "start"), seq_or_time(options.end, "end")
    with session.transaction(run.url) as database:
        bounds = _bounds(database, options.stream, start, end)
    new = _Plan(
        *bounds, _written(start), _written(end), options.step(), f"replay-{secrets.token_hex(8)}", options.what()
    )
    plan = _Plan(**run.plan(asdict(new), anew=options.again))
    if plan.options != new.options:
        if _next_step(run, options, plan) < plan.step_count:
            raise Conflict(
                f"a replay of other messages of {options.stream} is not done",
                "run it to its end, or add --again to forget it",
            )
        plan = _Plan(**run.plan(asdict(new), anew=True))
    return plan


def _next_step(run: Run, options: ReplayOptions, plan: _Plan) -> int:
    """The first step that was not taken yet."""
    with session.transaction(run.url) as database:
        if options.into is not None:
            rows = database.rows(SPARK_WRITTEN, (options.into, plan.writer))
            return int(rows[0][0]) + 1 if rows else 0
        position = database.value(PIPELINE_POSITION, (run.name,))
    return 0 if position is None else -(-(position - plan.after_seq) // plan.step)


def _bounds(database: Session, stream: str, start: Position, end: Position) -> tuple[int, int]:
    """The range of seqs that holds all that is wanted."""
    state, archive = state_of(database, stream), find_archive(database, stream)
    low, high = floor(state, archive), state.horizon
    if start.seq is not None:
        low = max(low, start.seq - 1)
    if start.time is not None:
        low = max(low, start_at_time(database, stream, state, archive, start.time))
    if end.seq is not None:
        high = min(high, end.seq)
    if end.time is not None:
        since = database.value(SEQ_SINCE, (stream, end.time))
        high = high if since is None else min(high, since)
    return low, max(low, high)


def _written(place: Position) -> str | None:
    return None if place.time is None else place.time.isoformat()


def _step(run: Run, spark: SparkSession, options: ReplayOptions, plan: _Plan, number: int) -> int:
    """Replay one range; how many messages it had."""
    low, high = plan.range(number)
    frame = _messages(spark, run.url, options, plan, low, high)
    if options.consumer is not None:
        return redeliver(run, frame, options.stream, options.consumer, high)
    (
        frame.select("key", "data", "headers")
        .write.format("postbus")
        .options(url=run.url, stream=options.into or "", writerId=plan.writer, batchId=number)
        .mode("append")
        .save()
    )
    with session.transaction(run.url) as database:
        ((_, count),) = database.rows(SPARK_WRITTEN, (options.into, plan.writer))
    return int(count)


def _messages(spark: SparkSession, url: str, options: ReplayOptions, plan: _Plan, low: int, high: int) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    wanted = {"startingPosition": str(low + 1), "endingPosition": str(high), "includeArchive": "true"}
    if options.key_pattern is not None:
        wanted["keyPattern"] = options.key_pattern
    frame = spark.read.format("postbus").options(url=url, stream=options.stream, **wanted).load()
    if plan.from_time is not None:
        frame = frame.where(F.col("published_at") >= F.lit(plan.from_time).cast("timestamp"))
    if plan.to_time is not None:
        frame = frame.where(F.col("published_at") < F.lit(plan.to_time).cast("timestamp"))
    return frame
