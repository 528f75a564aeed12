"""What consumers made of the messages, by their histories: joined with the messages by seq, and counted, in one pass of Spark.

Latencies are counted in bins that each are 4 % wider than the last, so that percentiles of any bucket, and of all, come from the
same few rows, within 2 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from postbus.pipelines.report.buckets import Buckets
from postbus.pipelines.report.facts import Deliveries, Percentiles
from postbus.pipelines.report.measure import bucket_of, reason, reason_of
from postbus.pipelines.report.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_GROWTH: Final = 1.04
# greatest() passes over nulls, which have no bin.
_BIN: Final = f"if(latency is null, null, cast(floor(ln(greatest(latency, 1)) / ln({_GROWTH})) as int))"
_PUBLISHED: Final = "seq BIGINT, published_at TIMESTAMP"
_MOST_REASONS: Final = 20


def measure_deliveries(
    window: Window, spark: SparkSession, unread: dict[str, tuple[int, ...]]
) -> dict[str, Deliveries]:
    """What became of deliveries, by consumer."""
    if window.buckets is None or not window.first_seqs:
        return {}
    rows = _sums(window, window.buckets, spark).collect()
    return {
        name: _deliveries([row for row in rows if row.consumer == name], window.buckets, unread.get(name, ()))
        for name in window.first_seqs
    }


def _sums(window: Window, buckets: Buckets, spark: SparkSession) -> DataFrame:
    """Counts by end and latency, by the time of publishing, and by reason; not_began and not_reason tell them apart."""
    history = window.view(spark, "history")
    if window.from_time is not None:
        history = history.where(F.col("finished_at") >= F.lit(window.from_time))
    if window.to_time is not None:
        history = history.where(F.col("finished_at") < F.lit(window.to_time))
    each = history.select("*", F.posexplode("seqs").alias("place", "seq"))
    published = window.messages(spark, _PUBLISHED, min(window.first_seqs.values()))
    rows = each.join(published, "seq", "left").select(
        "consumer",
        "outcome",
        bucket_of("finished_at", buckets).alias("ended"),
        F.when(F.col("outcome") != "failed", bucket_of("published_at", buckets)).alias("began"),
        F.coalesce(F.get("attempts", F.col("place")) > 1, F.lit(False)).alias("again"),
        _acked("unix_micros(finished_at) - unix_micros(published_at)").alias("latency"),
        _acked("unix_micros(received_at) - unix_micros(published_at)").alias("wait"),
        (F.col("published_at").isNull() & (F.col("outcome") != "failed")).cast("bigint").alias("unknown"),
        "finished_at",
        reason_of("reason").alias("reason"),
    )
    rows = rows.withColumn("bin", F.expr(_BIN))
    by_end = ["consumer", "outcome", "ended", "again", "bin"]
    by_start = ["consumer", "began"]
    by_reason = ["consumer", "outcome", "reason"]
    columns = list(dict.fromkeys([*by_end, *by_start, *by_reason]))
    return rows.groupingSets([by_end, by_start, by_reason], *columns).agg(
        F.grouping("began").alias("not_began"),
        F.grouping("reason").alias("not_reason"),
        F.count("*").alias("count"),
        F.sum("wait").alias("wait"),
        F.sum("latency").alias("latency"),
        F.max("latency").alias("slowest"),
        F.sum("unknown").alias("unknown"),
        F.max("finished_at").alias("last_at"),
    )


def _acked(expression: str) -> Column:
    """In microseconds, of what was acked."""
    return F.when(F.col("outcome") == "acked", F.expr(expression))


def _deliveries(rows: list[Any], buckets: Buckets, unread: tuple[int, ...]) -> Deliveries:
    ends = [row for row in rows if row.not_began and row.not_reason]
    acked = [row for row in ends if row.outcome == "acked"]
    timed = [row for row in acked if row.bin is not None]
    count = sum(row["count"] for row in timed)
    latencies = [row.latency for row in timed]
    waits = [row.wait for row in timed]
    slowest = max((row.slowest for row in timed), default=None)
    reasons = [row for row in rows if not row.not_reason and row.outcome != "acked"]

    def counts(chosen: Iterable[Any]) -> tuple[int, ...]:
        return buckets.spread((row.ended, row["count"]) for row in chosen)

    return Deliveries(
        acked=counts(acked),
        failed=counts(row for row in ends if row.outcome == "failed"),
        dead=counts(row for row in ends if row.outcome == "dead"),
        redelivered=counts(row for row in ends if row.again),
        latency=percentiles((row.bin, row["count"]) for row in timed),
        latencies=tuple(
            percentiles((row.bin, row["count"]) for row in timed if row.ended == buckets.first + place)
            for place in range(buckets.count)
        ),
        slowest=None if slowest is None else slowest / 1e6,
        waited=sum(waits) / count / 1e6 if count else None,
        worked=(sum(latencies) - sum(waits)) / count / 1e6 if count else None,
        lag=_lag(rows, ends, buckets, unread),
        unknown=sum(row.unknown for row in ends),
        failures=tuple(map(reason, sorted(reasons, key=lambda row: -row["count"])[:_MOST_REASONS])),
    )


def _lag(rows: list[Any], ends: list[Any], buckets: Buckets, unread: tuple[int, ...]) -> tuple[int, ...]:
    """At the end of each bucket: published by then, and finished later or not at all."""
    last = buckets.first + buckets.count - 1
    starts = [(row.began, row["count"]) for row in rows if not row.not_began and row.began is not None]
    # What was published before the first bucket was waiting when it began.
    began = buckets.spread((max(bucket, buckets.first), count) for bucket, count in starts if bucket <= last)
    ended = buckets.spread(
        (row.ended, row["count"] - row.unknown) for row in ends if row.outcome != "failed" and row.ended is not None
    )
    lag, held = [], 0
    for place in range(buckets.count):
        held += began[place] - ended[place] + (unread[place] if unread else 0)
        lag.append(max(0, held))
    return tuple(lag)


def percentiles(bins: Iterable[tuple[int, int]]) -> Percentiles:
    """The percentiles of values that were counted in bins."""
    counts: Counter[int] = Counter()
    for place, count in bins:
        counts[place] += count
    total = counts.total()
    if not total:
        return Percentiles()

    def at(share: float) -> float:
        left = math.ceil(total * share)
        for place in sorted(counts):
            left -= counts[place]
            if left <= 0:
                return float(_GROWTH ** (place + 0.5)) / 1e6
        raise AssertionError

    return Percentiles(p50=at(0.5), p95=at(0.95), p99=at(0.99))
