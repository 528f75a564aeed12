"""Recurring schedules: each time is published once, whoever publishes it, and what was missed as it was asked for."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from tests.waiting import until

pytestmark = pytest.mark.newest_server


@pytest.fixture
def bus(url: str) -> Any:
    with postbus.connect(url, upkeep=False) as bus:
        yield bus


@pytest.fixture
def stream(bus: Any, name: str) -> Any:
    bus.create_stream(name)
    yield name
    if name in [each.name for each in bus.list_streams()]:
        bus.drop_stream(name)


def occurrences(bus: postbus.Bus, stream: str) -> list[datetime]:
    return [datetime.fromisoformat((each.headers or {})["postbus-occurrence"]) for each in bus.scan(stream)]


def go_back(sql: Any, stream: str, by: timedelta) -> datetime:
    """Pretend that a schedule was made and filled in this long ago, and that nothing has run since."""
    (made,) = sql.execute(
        """
        update postbus_data.schedule as s
        set created_at = s.created_at - %(by)s, filled_until = s.created_at - %(by)s
        from postbus_data.stream as t
        where t.id = s.stream_id and t.name = %(stream)s
        returning s.created_at
        """,
        {"by": by, "stream": stream},
    ).fetchone()
    sql.execute("delete from postbus_data.scheduled")
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("catch_up", "most", "missed"), [("latest", 100, 1), ("skip", 100, 0), ("all", 3, 3), ("all", 100, 11)]
)
@pytest.mark.parametrize("was_filled", [False, True])
def test_times_that_were_missed_are_caught_up_on_as_asked(
    bus: Any, stream: str, sql: Any, catch_up: Any, most: int, missed: int, was_filled: bool
) -> None:
    bus.schedules.create(stream, "s", every=600, data=1, catch_up=catch_up, max_catch_up=most)
    begin = go_back(sql, stream, timedelta(hours=2) - timedelta(seconds=300))
    if was_filled:
        # By somebody who was then stopped, so that all of it is due at once.
        sql.execute(
            """
            insert into postbus_data.scheduled (stream_id, deliver_at, schedule_id, occurrence)
            select s.stream_id, s.created_at + n * s.every, s.id, s.created_at + n * s.every
            from postbus_data.schedule as s, generate_series(1, 11) as n
            """
        )
        sql.execute("update postbus_data.schedule as s set filled_until = s.created_at + 11 * s.every")

    bus.schedules.fill()
    bus.sweep(stream)

    expected = [begin + n * timedelta(minutes=10) for n in range(1, 12)]
    assert occurrences(bus, stream) == expected[len(expected) - missed :]
    assert bus.sweep(stream) == 0
    ahead = sql.execute("select occurrence from postbus_data.scheduled order by occurrence").fetchall()
    assert [each for (each,) in ahead] == [begin + n * timedelta(minutes=10) for n in range(12, 18)]


def test_a_schedule_begins_when_it_is_made(bus: Any, stream: str) -> None:
    bus.schedules.create(stream, "s", cron="* * * * * *", data=1, catch_up="all")
    made = bus.schedules.info(stream, "s").created_at

    until(lambda: bus.sweep(stream) >= 0 and len(occurrences(bus, stream)) >= 2, "it publishes")

    assert occurrences(bus, stream)[0] in (made, made + timedelta(seconds=1))


def test_of_many_that_fill_in_and_publish_at_once_each_time_counts_once(
    url: str, bus: Any, stream: str, sql: Any
) -> None:
    for n in range(5):
        bus.schedules.create(stream, f"s{n}", every=1, data=n, catch_up="all", max_catch_up=1000)
    begin = go_back(sql, stream, timedelta(seconds=50))
    sql.execute("update postbus_data.schedule set created_at = %s, filled_until = %s", [begin, begin])

    def work(_: int) -> None:
        with postbus.connect(url, upkeep=False) as own:
            for _ in range(20):
                own.schedules.fill()
                own.sweep(stream)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))

    found = [(each.headers["postbus-schedule"], each.headers["postbus-occurrence"]) for each in bus.scan(stream)]
    assert len(found) == len(set(found))
    times = sorted({datetime.fromisoformat(time) for _, time in found})
    assert times == [begin + timedelta(seconds=n) for n in range(1, len(times) + 1)]
    assert len(found) == 5 * len(times) >= 250


def test_an_hour_is_filled_in_so_that_sql_alone_goes_on(bus: Any, stream: str, sql: Any) -> None:
    bus.schedules.create(stream, "minutes", cron="* * * * *", data=1)
    bus.schedules.create(stream, "seconds", every=1, data=1)
    bus.schedules.create(stream, "rare", cron="0 0 29 2 *", data=1)
    counts = dict(
        sql.execute(
            """
            select s.name, count(*)
            from postbus_data.scheduled as d
            join postbus_data.schedule as s on s.id = d.schedule_id
            where d.occurrence <= now() + interval '59 minutes'
            group by s.name
            """
        ).fetchall()
    )
    assert counts["minutes"] >= 59
    assert counts["seconds"] >= 59 * 60
    assert len(bus.schedules.info(stream, "rare").next_at) == 5
    assert bus.schedules.fill() == 0


def test_a_change_takes_back_what_was_filled_in_and_a_late_filler_does_nothing(bus: Any, stream: str, sql: Any) -> None:
    bus.schedules.create(stream, "s", every=60, data=1)
    (row,) = sql.execute("select id, version, filled_until from postbus_data.schedule").fetchall()
    bus.schedules.alter(stream, "s", cron="@yearly")
    late = datetime.now(UTC) + timedelta(minutes=5)

    counted = "select postbus_data.fill_schedule(%s, %s, %s, %s, %s)"
    assert sql.execute(counted, [*row, late, [late]]).fetchone() == (False,)
    assert len(sql.execute("select from postbus_data.scheduled").fetchall()) == 1
    bus.schedules.pause(stream, "s")
    assert sql.execute("select from postbus_data.scheduled").fetchall() == []
    assert bus.schedules.fill() == 0
    bus.schedules.drop(stream, "s")
    assert sql.execute("select from postbus_data.schedule").fetchall() == []


def test_sql_creates_a_schedule_that_python_fills_in_or_says_why_not(bus: Any, stream: str, sql: Any) -> None:
    sql.execute("select postbus.create_schedule(%s, 'good', cron => '@hourly', data => '1')", [stream])
    sql.execute("select postbus.create_schedule(%s, 'bad', cron => 'never ever', data => '1')", [stream])
    bus.schedules.fill()

    bad, good = bus.schedules.list_all(stream)
    assert (len(good.next_at), good.problem) == (5, None)
    assert bad.next_at == ()
    assert "never ever" in bad.problem
    bus.schedules.alter(stream, "bad", cron="@daily")
    assert (bus.schedules.info(stream, "bad").problem, bus.schedules.fill()) == (None, 0)


def test_a_schedule_goes_with_its_stream_and_keeps_twenty_runs(bus: Any, stream: str, sql: Any) -> None:
    bus.schedules.create(stream, "s", cron="@yearly", data=1)
    seqs = [bus.schedules.run_now(stream, "s") for _ in range(25)]
    assert [run.seq for run in bus.schedules.info(stream, "s").last_runs] == seqs[:-6:-1]
    assert len(sql.execute("select from postbus_data.schedule_run").fetchall()) == 20
    bus.drop_stream(stream)
    assert sql.execute("select from postbus_data.schedule_run").fetchall() == []


def test_a_message_that_the_stream_no_longer_takes_is_put_off(bus: Any, stream: str, sql: Any) -> None:
    bus.schedules.create(stream, "s", every=60, data="x" * 100)
    bus.alter_stream(stream, max_message_bytes=10)
    go_back(sql, stream, timedelta(seconds=70))
    bus.schedules.fill()

    assert bus.sweep(stream) == 0
    assert list(bus.scan(stream)) == []
    with pytest.raises(psycopg.Error, match="allows 10"):
        sql.execute("select postbus.run_schedule(%s, 's')", [stream])
    bus.alter_stream(stream, max_message_bytes=1000)
    sql.execute("update postbus_data.scheduled set deliver_at = now() where deliver_at > occurrence")
    bus.sweep(stream)
    assert len(occurrences(bus, stream)) == 1


def test_the_snippets_of_the_how_to_run(fresh_url: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "schedule-messages.md").read_text()
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("reports")
        for snippet in re.findall(r"```python\n(.*?)```", page, re.S):
            exec(snippet, {"bus": bus})

        assert [each.name for each in bus.schedules.list_all()] == ["heartbeat", "nightly"]
        assert len(bus.list_scheduled("reports")) == 1
