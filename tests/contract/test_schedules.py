"""Recurring schedules: a message that is published again and again, by a cron expression or an interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def messages_of(bus: Any, stream: str) -> list[Any]:
    return [message async for message in bus.scan(stream)]


async def test_a_schedule_keeps_what_it_was_given_and_shows_its_next_times(bus: Any, stream: str) -> None:
    await bus.schedules.create(
        stream,
        "nightly",
        cron="30 2 * * MON-FRI",
        time_zone="Europe/Berlin",
        key="reports.daily",
        data={"kind": "daily", "big": 2**60},
        headers={"by": "cron"},
        ttl=3600,
        catch_up="all",
        max_catch_up=7,
    )

    info = await bus.schedules.info(stream, "nightly")

    assert (info.stream, info.name, info.cron, info.every) == (stream, "nightly", "30 2 * * MON-FRI", None)
    assert (info.time_zone, info.key, info.data) == ("Europe/Berlin", "reports.daily", {"kind": "daily", "big": 2**60})
    assert (info.headers, info.ttl, info.catch_up) == ({"by": "cron"}, timedelta(hours=1), "all")
    assert (info.max_catch_up, info.paused, info.problem, info.last_runs) == (7, False, None, ())
    assert len(info.next_at) == 5
    assert all(each.astimezone().tzinfo is not None and each > datetime.now(UTC) for each in info.next_at)
    assert await bus.schedules.list_all(stream) == [info]
    assert info in await bus.schedules.list_all()
    # Its times are not among the messages that are scheduled once.
    assert await bus.list_scheduled(stream) == []


async def test_a_schedule_publishes_at_its_times_with_headers_that_say_so(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "tick", every=1, key="t.1", data={"n": 1}, headers={"a": "b"})
    consumer = await bus.create_consumer(stream, "c")

    (first,) = await consumer.receive(1, wait=5)
    await consumer.ack(first)
    (second,) = await consumer.receive(1, wait=5)
    assert (first.key, first.data) == ("t.1", {"n": 1})
    times = [datetime.fromisoformat(each.headers["postbus-occurrence"]) for each in (first, second)]
    assert times[1] - times[0] == timedelta(seconds=1)
    assert first.headers == {
        "a": "b",
        "postbus-schedule": "tick",
        "postbus-occurrence": first.headers["postbus-occurrence"],
    }
    assert all(
        timedelta(0) <= each.published_at - time < timedelta(seconds=2)
        for each, time in zip((first, second), times, strict=True)
    )
    (last, before, *_) = (await bus.schedules.info(stream, "tick")).last_runs
    assert (last.seq > before.seq, before.occurrence < last.occurrence) == (True, True)


async def test_run_now_publishes_apart_from_the_times_also_when_paused(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "yearly", cron="@yearly", data="now")
    planned = (await bus.schedules.info(stream, "yearly")).next_at
    await bus.schedules.pause(stream, "yearly")

    seq = await bus.schedules.run_now(stream, "yearly")

    (message,) = await messages_of(bus, stream)
    assert (message.seq, message.data, message.headers) == (seq, "now", {"postbus-schedule": "yearly"})
    info = await bus.schedules.info(stream, "yearly")
    assert [(run.occurrence, run.seq) for run in info.last_runs] == [(None, seq)]
    assert (info.paused, info.next_at) == (True, ())
    await bus.schedules.resume(stream, "yearly")
    assert (await bus.schedules.info(stream, "yearly")).next_at == planned


async def test_a_schedule_is_altered_and_dropped(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "s", cron="@daily", key="k", data=1, headers={"a": "1"}, ttl=60)
    await bus.schedules.alter(stream, "s", every=3600, data=None, catch_up="skip", unset=["key", "ttl"])

    info = await bus.schedules.info(stream, "s")
    assert (info.cron, info.every, info.data, info.catch_up) == (None, timedelta(hours=1), None, "skip")
    assert (info.key, info.ttl, info.headers) == (None, None, {"a": "1"})
    assert info.next_at[1] - info.next_at[0] == timedelta(hours=1)
    await bus.schedules.alter(stream, "s", cron="0 12 * * *", time_zone="Asia/Tokyo")
    info = await bus.schedules.info(stream, "s")
    assert (info.cron, info.every, info.data) == ("0 12 * * *", None, None)
    assert {each.astimezone(UTC).hour for each in info.next_at} == {3}

    await bus.schedules.drop(stream, "s")
    assert await bus.schedules.list_all(stream) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "many words that are no expression"}, "cron"),
        ({"cron": "* * * * *", "time_zone": "Mars/Olympus"}, "time_zone"),
        ({"cron": "* * * * *", "every": 5}, "either cron or every"),
        ({}, "either cron or every"),
        ({"every": 0.5}, "every"),
        ({"every": 60, "catch_up": "some"}, "catch_up"),
        ({"every": 60, "max_catch_up": 0}, "max_catch_up"),
        ({"every": 60, "key": "no token"}, "key"),
    ],
)
async def test_what_cannot_be_a_schedule_is_refused_by_name(
    bus: Any, stream: str, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(postbus.InvalidInput, match=problem):
        await bus.schedules.create(stream, "s", data=1, **given)
    assert await bus.schedules.list_all(stream) == []


async def test_names_are_unique_and_missing_ones_are_named(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "s", every=60, data=1)
    with pytest.raises(postbus.Conflict, match='schedule "s"'):
        await bus.schedules.create(stream, "s", every=60, data=1)
    await bus.schedules.create(stream, "s", every=60, data=1, exist_ok=True)
    with pytest.raises(postbus.Conflict, match="differs"):
        await bus.schedules.create(stream, "s", every=61, data=1, exist_ok=True)
    for call in (bus.schedules.info, bus.schedules.drop, bus.schedules.pause, bus.schedules.run_now):
        with pytest.raises(postbus.NotFound, match='schedule "other"'):
            await call(stream, "other")


@pytest.mark.parametrize(("data_type", "data"), [("text", "ü"), ("bytes", b"\x00\xff")])
async def test_a_schedule_of_any_type_of_stream(bus: Any, stream: str, data_type: str, data: Any) -> None:
    await bus.create_stream(f"{stream}-t", data_type=data_type)
    await bus.schedules.create(f"{stream}-t", "s", cron="@daily", data=data)
    await bus.schedules.alter(f"{stream}-t", "s", max_catch_up=5)
    await bus.schedules.run_now(f"{stream}-t", "s")

    assert (await bus.schedules.info(f"{stream}-t", "s")).data == data
    assert [message.data for message in await messages_of(bus, f"{stream}-t")] == [data]
