"""What was published comes once more, from lake and log, each message once."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import postbus
import postbus.pipelines.replay.pipeline as module
from postbus.pipelines import ReplayOptions, replay_stream
from tests.spark.pipelines.test_archive import to_lake
from tests.spark.pipelines.test_archive_and_log import tiered
from tests.spark.test_read import publish
from tests.spark.test_stream import by_key, contents

__all__ = ["tiered"]


def replay(spark: Any, url: str, stream: str, **options: Any) -> int:
    return replay_stream(url, ReplayOptions(stream=stream, **options), spark=spark)


def numbers(bus: postbus.Bus, stream: str) -> list[int]:
    return sorted(message.data["n"] for message in bus.scan(stream))


EVERYTHING = sorted([*range(80), *range(20)])


def test_lake_and_log_are_replayed_into_a_stream_once(
    spark: Any, bus: postbus.Bus, url: str, name: str, target: str, tiered: list[int]
) -> None:
    assert replay(spark, url, name, into=target, batch=33) == len(tiered)
    assert numbers(bus, target) == EVERYTHING
    published: list[tuple[str | None, Any]] = [(f"k.{n % 7}", {"n": n}) for n in (*range(80), *range(20))]
    assert by_key(contents(bus, target)) == by_key(published)
    assert replay(spark, url, name, into=target, batch=33) == 0
    assert replay(spark, url, name, into=target, batch=33, again=True) == len(tiered)
    assert len(numbers(bus, target)) == 2 * len(tiered)


def test_an_interrupted_replay_continues_where_it_stopped(
    spark: Any, bus: postbus.Bus, url: str, name: str, target: str, tiered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, steps = module._step, []

    def dies(run: Any, spark: Any, options: Any, plan: Any, number: int) -> int:
        steps.append(number)
        if len(steps) == 2:
            raise KeyboardInterrupt
        count = real(run, spark, options, plan, number)
        if len(steps) == 4:
            raise ZeroDivisionError  # Published, and not noted.
        return count

    monkeypatch.setattr(module, "_step", dies)
    with pytest.raises(KeyboardInterrupt):
        replay(spark, url, name, into=target, batch=20)
    with pytest.raises(ZeroDivisionError):
        replay(spark, url, name, into=target, batch=20)
    with pytest.raises(postbus.Conflict, match="is not done"):
        replay(spark, url, name, into=target, start="5")
    publish(bus, name, 5)
    replay(spark, url, name, into=target, batch=20)

    assert steps == [0, 1, 1, 2, 3, 4]
    assert numbers(bus, target) == EVERYTHING


@pytest.mark.slow
def test_a_range_of_seqs_or_times_and_a_pattern_choose(
    spark: Any, bus: postbus.Bus, url: str, name: str, target: str, tiered: list[int]
) -> None:
    moment = datetime.now(UTC).isoformat()
    publish(bus, name, 3)

    assert replay(spark, url, name, into=target, start=str(tiered[50]), end=str(tiered[69]), key_pattern="k.3") == 3
    assert numbers(bus, target) == [52, 59, 66]
    assert replay(spark, url, name, into=target, start=moment) == 3
    assert replay(spark, url, name, into=target, end=moment) == 100
    assert replay(spark, url, name, into=target, start="1h", end=str(tiered[9])) == 10


@pytest.mark.slow
def test_a_rate_is_kept(spark: Any, bus: postbus.Bus, url: str, stream: str, target: str) -> None:
    publish(bus, stream, 30)
    replay(spark, url, stream, into=target, end="1")
    started_at = time.monotonic()

    assert replay(spark, url, stream, into=target, rate=10, start="2") == 29

    assert time.monotonic() - started_at > 2.5


def received(consumer: postbus.Consumer) -> list[int]:
    found = []
    while batch := consumer.receive(max_messages=100):
        found += [delivery.seq for delivery in batch]
        consumer.ack(batch)
    return sorted(found)


def test_one_consumer_gets_messages_again_that_the_log_has_lost(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, max_messages=5)
    consumer = bus.create_consumer(name, "billing")
    other = bus.create_consumer(name, "other")
    published = publish(bus, name, 20)
    for reader in (consumer, other):
        while batch := reader.receive(max_messages=100):
            reader.ack(batch)
    to_lake(spark, url, name, tmp_path)
    bus.maintain(name)
    later = publish(bus, name, 2)

    assert replay(spark, url, name, consumer="billing", start=str(published[10]), batch=4) == 10
    for _ in range(3):
        bus.maintain(name)
    found = []
    while batch := consumer.receive(max_messages=100):
        found += [(delivery.seq, delivery.data["n"]) for delivery in batch]
        consumer.ack(batch)

    assert sorted(found) == [*zip(published[10:], range(10, 20), strict=True), *zip(later, range(2), strict=True)]
    assert sorted(delivery.seq for delivery in other.receive(max_messages=100)) == later
    assert replay(spark, url, name, consumer="billing", start=str(published[10]), batch=4) == 0


def test_a_new_consumer_gets_what_only_the_archive_has(
    spark: Any, bus: postbus.Bus, url: str, name: str, tiered: list[int]
) -> None:
    consumer = bus.create_consumer(name, "newcomer")
    filtered = bus.create_consumer(name, "filtered", filter="k.3")

    assert replay(spark, url, name, consumer="newcomer") == 60
    assert replay(spark, url, name, consumer="filtered") == 9

    assert received(consumer) == tiered
    assert received(filtered) == [seq for n, seq in enumerate(tiered) if (n if n < 80 else n - 80) % 7 == 3]
    assert replay(spark, url, name, consumer="newcomer", again=True) == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "into a stream or to a consumer"),
        ({"into": "a", "consumer": "b"}, "into a stream or to a consumer"),
        ({"into": "a", "rate": 0}, "above 0"),
        ({"into": "a", "start": "yesterday"}, "neither a seq nor a time"),
        ({"into": "a", "start": "latest"}, "neither a seq nor a time"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(
    spark: Any, url: str, stream: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(postbus.InvalidInput, match=message):
        replay(spark, url, stream, **options)
