"""Reports that look like those of a real bus, made without one."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from postbus.model.stream import StreamInfo
from postbus.pipelines.report.buckets import buckets_between
from postbus.pipelines.report.facts import (
    ConsumerFacts,
    Deliveries,
    Key,
    Percentiles,
    Reason,
    Report,
    StreamFacts,
    Traffic,
)
from postbus.pipelines.report.forecast import forecast

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


def info(name: str, **changes: object) -> StreamInfo:
    values: dict[str, object] = {
        "name": name,
        "id": sum(name.encode()),
        "data_type": "json",
        "partitions": 8,
        "max_message_bytes": 1_000_000,
        "segment_bytes": 2**30,
        "segment_age": timedelta(days=1),
        "retain_up_to": timedelta(days=14),
        "retain_at_least": None,
        "max_messages": None,
        "max_storage": None,
        "until_acked": False,
        "when_full": "evict",
        "dedup_window": None,
        "one_message_per_key": False,
        "process_unmodified": False,
        "channel_tokens": None,
        "is_full": False,
        "start_seq": 0,
        "last_seq": 0,
        "message_estimate": 0,
        "bytes": 420_000_000,
        "segment_count": 3,
        "scheduled": 0,
        "next_scheduled_at": None,
        "created_at": NOW - timedelta(days=30),
        **changes,
    }
    return StreamInfo(**values)  # type: ignore[arg-type]


def empty(name: str = "quiet") -> StreamFacts:
    return StreamFacts(
        info=info(name, bytes=16384),
        buckets=None,
        traffic=Traffic(),
        consumers=(),
        dead=(),
        forecast=None,
        archived=None,
    )


def busy(name: str = "orders") -> StreamFacts:
    """Five days by the hour, with a wave for each day, two consumers with a history and one without."""
    buckets = buckets_between(NOW - timedelta(hours=118), NOW - timedelta(minutes=1), 3600)
    wave = [1 + math.sin(place / 24 * 2 * math.pi) * 0.6 for place in range(buckets.count)]
    messages = tuple(round(9000 * each) for each in wave)
    traffic = Traffic(
        messages=messages,
        bytes=tuple(count * 212 for count in messages),
        in_log=messages,
        key_count=48_211,
        keys=(
            Key(key=HOSTILE, messages=91_212, bytes=30_000_000),
            Key(key="orders.eu.cus_0017", messages=40_100, bytes=9_000_000),
            Key(key=None, messages=31_999, bytes=7_000_000),
            Key(key="orders." + "very-long-token." * 12 + "end", messages=2, bytes=80),
        ),
    )
    consumers = (
        ConsumerFacts(
            name="billing",
            lag=12,
            in_flight=40,
            waiting=3,
            dead=17,
            missed=0,
            is_group=False,
            deliveries=deliveries(wave, messages),
        ),
        ConsumerFacts(
            name="search-index",
            lag=120_000,
            in_flight=0,
            waiting=0,
            dead=0,
            missed=0,
            is_group=False,
            unread_known=False,
            deliveries=deliveries([each * 40 for each in wave], tuple(count // 3 for count in messages)),
        ),
        ConsumerFacts(name="mail", lag=0, in_flight=0, waiting=0, dead=0, missed=9, is_group=False),
    )
    known = info(name)
    return StreamFacts(
        info=known,
        buckets=buckets,
        traffic=traffic,
        consumers=consumers,
        dead=(
            Reason(consumer="billing", reason=HOSTILE, count=12, last_at=NOW),
            Reason(consumer="billing", reason="HTTP # from the payment provider", count=5, last_at=NOW),
        ),
        forecast=forecast(known, traffic, buckets, None, NOW),
        archived=2_000_000,
    )


def deliveries(wave: list[float], acked: tuple[int, ...]) -> Deliveries:
    gap = {40, 41, 42, 44, 45}
    latencies = tuple(
        Percentiles() if place in gap else Percentiles(p50=0.02 * each, p95=0.3 * each, p99=4.0 * each)
        for place, each in enumerate(wave)
    )
    return Deliveries(
        acked=acked,
        failed=tuple(count // 900 for count in acked),
        dead=tuple(1 if place % 30 == 0 else 0 for place in range(len(acked))),
        redelivered=tuple(count // 800 for count in acked),
        latency=Percentiles(p50=0.021, p95=0.34, p99=4.4),
        latencies=latencies,
        slowest=912.0,
        waited=0.8,
        worked=0.06,
        lag=tuple(round(each * 700) for each in wave),
        unknown=4,
        failures=(Reason(consumer="billing", reason="timeout after # s", count=310, last_at=NOW),),
    )


def report(*streams: StreamFacts) -> Report:
    return Report(made_at=NOW, from_time=None, to_time=None, streams=streams)
