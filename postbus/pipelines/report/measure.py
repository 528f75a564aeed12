"""What was published: counted by Spark in one pass over the stream, of which only keys, times and sizes are read."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from postbus.model.consumer import ConsumerInfo, ConsumerStats
from postbus.pipelines.report.buckets import Buckets
from postbus.pipelines.report.facts import Key, Reason, Traffic
from postbus.pipelines.report.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_COLUMNS: Final = "key STRING, partition INT, seq BIGINT, published_at TIMESTAMP, size INT"
# Reasons that are longer are cut, and those that are rarer than so many others are left out.
_REASON_LENGTH: Final = 200
_MOST_REASONS: Final = 50


def bucket_of(column: str, buckets: Buckets) -> Column:
    """The number of the bucket that a time lies in."""
    return F.expr(f"unix_micros({column}) div {buckets.width:d}")


def reason_of(column: str) -> Column:
    """A reason whose numbers are #."""
    return F.regexp_replace(F.substring(column, 1, _REASON_LENGTH), "[0-9]+", "#")


def measure_traffic(window: Window, spark: SparkSession, *, top: int) -> tuple[Traffic, dict[str, tuple[int, ...]]]:
    """What was published, and by consumer how much of each bucket it has not been given yet."""
    if window.buckets is None:
        return Traffic(), {}
    read = {
        info.name: unread_by(info, stats)
        for info, stats in window.consumers
        if info.name in window.first_seqs and knows_unread(info)
    }
    sums = _sums(window, window.buckets, spark, list(read.values())).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        times = sums.where("of_key = 1").collect()
        keys = sums.where("of_key = 0")
        largest = keys.orderBy(F.desc("messages"), F.desc("bytes"), "key").limit(top).collect()
        key_count = keys.where("key is not null").count()
    finally:
        sums.unpersist()
    spread = window.buckets.spread
    traffic = Traffic(
        messages=spread((row.bucket, row.messages) for row in times),
        bytes=spread((row.bucket, row.bytes) for row in times),
        in_log=spread((row.bucket, row.in_log) for row in times),
        key_count=key_count,
        keys=tuple(Key(key=row.key, messages=row.messages, bytes=row.bytes) for row in largest),
    )
    unread = {name: spread((row.bucket, row[f"unread_{place}"]) for row in times) for place, name in enumerate(read)}
    return traffic, unread


def _sums(window: Window, buckets: Buckets, spark: SparkSession, unread: list[Column]) -> DataFrame:
    """Sums by bucket, where of_key is 1, and by key, where it is 0."""
    frame = window.messages(spark, _COLUMNS)
    flags = {"in_log": F.col("seq") >= window.state.start_seq}
    flags.update({f"unread_{place}": each for place, each in enumerate(unread)})
    rows = frame.select(
        bucket_of("published_at", buckets).alias("bucket"),
        "key",
        "size",
        *(each.cast("bigint").alias(name) for name, each in flags.items()),
    )
    return rows.groupingSets([["bucket"], ["key"]], "bucket", "key").agg(
        F.grouping("key").alias("of_key"),
        F.count("*").alias("messages"),
        F.sum("size").alias("bytes"),
        *(F.sum(name).alias(name) for name in flags),
    )


def knows_unread(info: ConsumerInfo) -> bool:
    """Whether keys alone say which messages a consumer wants."""
    return info.filter_headers is None and info.filter_headers_not is None and info.filter_data is None


def unread_by(info: ConsumerInfo, stats: ConsumerStats) -> Column:
    """Whether a consumer has not been given a message yet, as far as its position and its key pattern say."""
    places: list[Any] = []
    for each in stats.partitions:
        places += [F.lit(each.partition), F.lit(each.position_seq)]
    if not places:
        return F.lit(False)
    unread = F.col("seq") > F.coalesce(F.create_map(*places)[F.col("partition")], F.lit(2**63 - 1))
    return F.coalesce(unread & _matches(info), F.lit(False))


def _matches(info: ConsumerInfo) -> Column:
    if info.filter_key_pattern is None:
        return F.lit(True)
    wild = {"*": "[^.]+", ">": ".+"}
    tokens = [wild.get(token) or re.escape(token) for token in info.filter_key_pattern.split(".")]
    return F.col("key").rlike(f"^{'[.]'.join(tokens)}$")


def measure_dead(window: Window, spark: SparkSession) -> tuple[Reason, ...]:
    """The dead letters that there are, by reason."""
    letters = window.view(spark, "deadLetters").select("consumer", reason_of("reason").alias("reason"), "died_at")
    rows = (
        letters.groupBy("consumer", "reason")
        .agg(F.count("*").alias("count"), F.max("died_at").alias("last_at"))
        .orderBy(F.desc("count"), "consumer", "reason")
        .limit(_MOST_REASONS)
        .collect()
    )
    return tuple(map(reason, rows))


def reason(row: Any) -> Reason:
    """A row of reasons."""
    return Reason(consumer=row.consumer, reason=row.reason, count=row["count"], last_at=row.last_at.astimezone(UTC))
