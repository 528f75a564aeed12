"""Where a stream is going: the rate of late, carried on, within what retention lets be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from postbus.model.stream import StreamInfo
from postbus.pipelines.report.buckets import Buckets
from postbus.pipelines.report.facts import Forecast, Point, Traffic
from postbus.spark.archive import Archive

_DAYS: Final = 90
_LATE_DAYS: Final = 7.0
_PARTS: Final = 7
_LEAST_DAYS: Final = 1 / 24
_DAY: Final = 86400.0


def forecast(
    info: StreamInfo, traffic: Traffic, buckets: Buckets | None, archive: Archive | None, now: datetime, older: int = 0
) -> Forecast | None:
    """What the log of a stream will hold; None when it has been used for less than an hour, or is kept until acked.

    Args:
        info: The stream.
        traffic: What was published,
        buckets: and when.
        archive: Its archive, if there is one.
        now: The time of the forecast.
        older: How many messages the log has from before the first bucket.
    """
    if buckets is None or info.until_acked or not sum(traffic.messages):
        return None
    traffic = replace(traffic, in_log=(traffic.in_log[0] + older, *traffic.in_log[1:]))
    age = _days(buckets.starts[0], now)
    if age < _LEAST_DAYS:
        return None
    days = min(age, max(_LATE_DAYS, 4 * buckets.seconds / _DAY))
    rates = _rates(traffic.messages, buckets, now, days)
    mean, low, high = sum(rates) / len(rates), min(rates), max(rates)
    held = sum(traffic.in_log)
    size = info.bytes / held if held else sum(traffic.bytes) / sum(traffic.messages)
    most = _most(info, size)

    def messages(day: int, rate: float) -> int:
        return round(min(_held(info, traffic, buckets, now, day, rate), most or float("inf")))

    points = []
    for day in range(_DAYS + 1):
        counts = [messages(day, rate) for rate in (mean, low, high)]
        of_archive = None
        if archive is not None and archive.message_count:
            of_archive = round(archive.bytes * (1 + mean * day / archive.message_count))
        points.append(
            Point(
                days=day,
                messages=counts[0],
                messages_low=counts[1],
                messages_high=counts[2],
                bytes=round(counts[0] * size),
                bytes_low=round(counts[1] * size),
                bytes_high=round(counts[2] * size),
                archive_bytes=of_archive,
            )
        )
    return Forecast(
        days=days,
        per_day=mean,
        per_day_low=low,
        per_day_high=high,
        points=tuple(points),
        bound=_bound(info),
        full_in=_full_in(info, held, mean, most),
    )


def _days(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() / _DAY


def _rates(messages: Sequence[int], buckets: Buckets, now: datetime, days: float) -> list[float]:
    """Messages per day in equal parts of the last days. A part has at least one bucket; what lies after the last one is quiet."""
    parts = max(1, min(_PARTS, int(days * _DAY / buckets.seconds)))
    sums = [0.0] * parts
    starts = buckets.starts
    for place, count in enumerate(messages):
        middle = _days(starts[place], now) - buckets.seconds / _DAY / 2
        part = parts - 1 - int(middle / days * parts)
        if part >= 0:
            sums[min(part, parts - 1)] += count
    return [each * parts / days for each in sums]


def _held(info: StreamInfo, traffic: Traffic, buckets: Buckets, now: datetime, day: int, rate: float) -> float:
    """What of today's messages is left after so many days, and what has come."""
    if info.retain_up_to is None:
        return sum(traffic.in_log) + rate * day
    kept = info.retain_up_to.total_seconds() / _DAY
    edge = now + timedelta(days=day - kept)
    left = sum(count for start, count in zip(buckets.starts, traffic.in_log, strict=False) if start >= edge)
    return (left if day else sum(traffic.in_log)) + rate * min(day, kept)


def _most(info: StreamInfo, size: float) -> float | None:
    """How many messages its limits let it hold."""
    by_storage = info.max_storage / size if info.max_storage is not None and size else None
    return min((each for each in (info.max_messages, by_storage) if each is not None), default=None)


def _bound(info: StreamInfo) -> str | None:
    words = []
    if info.retain_up_to is not None:
        words.append(f"messages older than {_duration(info.retain_up_to)} go")
    what = "the oldest go" if info.when_full == "evict" else "new ones are refused"
    if info.max_messages is not None:
        words.append(f"at {info.max_messages:,} messages {what}")
    if info.max_storage is not None:
        words.append(f"at {info.max_storage:,} bytes {what}")
    return "; ".join(words) or None


def _duration(time: timedelta) -> str:
    seconds = time.total_seconds()
    for unit, name in ((_DAY, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= unit:
            return f"{seconds / unit:g} {name if seconds != unit else name[:-1]}"
    return f"{seconds:g} seconds"


def _full_in(info: StreamInfo, held: int, rate: float, most: float | None) -> float | None:
    if most is None or rate <= 0:
        return None
    days = max(0.0, (most - held) / rate)
    if days > _DAYS or (info.retain_up_to is not None and rate * info.retain_up_to.total_seconds() / _DAY < most):
        return None
    return days
