"""Filters that take long: what a user can write into one holds up that consumer, and nobody else."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Filter, Message
from tests.waiting import until

# For each element each other one, and for these each one again: 3,000 elements take hours.
CUBIC = "$[*] ? (exists($[*] ? (exists($[*] ? (@ > 99999)))))"
DEEP = "$.**.**.** ? (@.z == 1)"


def receivers(database: psycopg.Connection[Any]) -> list[int]:
    busy = "state = 'active' and pid <> pg_backend_pid() and datname = current_database()"
    statement = f"select pid from pg_stat_activity where {busy}".encode()
    return [pid for (pid,) in database.execute(statement)]


@pytest.mark.parametrize(("path", "data"), [(CUBIC, list(range(3000))), (DEEP, None)], ids=["cubic", "deep"])
def test_a_filter_that_never_ends_holds_up_only_its_own_consumer(fresh_url: str, path: str, data: Any) -> None:
    if data is None:
        for _ in range(900):
            data = {"x": data}
        data = {"x": [data] * 30}
    failed: list[postbus.Error] = []

    def receive() -> None:
        try:
            slow.receive(1)
        except postbus.Error as error:
            failed.append(error)

    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, autocommit=True) as database:
        bus.create_stream("orders", partitions=1)
        slow = bus.create_consumer("orders", "slow", filter=Filter(data=path))
        quick = bus.create_consumer("orders", "quick")
        bus.publish("orders", key="k", data=data)
        receiver = threading.Thread(target=receive)
        receiver.start()
        (pid,) = until(lambda: receivers(database), "it filters")
        started = time.monotonic()
        bus.publish("orders", key="k", data=1)
        assert len(quick.receive(10)) == 2
        assert not slow.receive(10)
        bus.sweep()
        bus.maintain()
        assert slow.stats().lag_estimate > 0
        slow.alter(filter=Filter(data="$ ? (1 == 1)"))
        assert time.monotonic() - started < 20
        assert receivers(database) == [pid]

        database.execute("select pg_cancel_backend(%s)", (pid,))
        receiver.join(20)
        assert [type(error) for error in failed] == [postbus.Unavailable]
        assert "filter" in (failed[0].hint or "")
        # Nothing was leased by the one that was ended, and the new filter goes on from there.
        assert [each.attempt for each in slow.receive(10)] == [1, 1]


def test_a_statement_timeout_ends_it(fresh_url: str) -> None:
    limit = f"{fresh_url}{'&' if '?' in fresh_url else '?'}options=-c%20statement_timeout%3D500"
    with postbus.connect(fresh_url) as bus, postbus.connect(limit) as limited:
        bus.create_stream("orders", partitions=1)
        bus.create_consumer("orders", "slow", filter=Filter(data=CUBIC))
        bus.publish("orders", key="k", data=list(range(3000)))
        started = time.monotonic()
        with pytest.raises(postbus.Unavailable, match="statement timeout"):
            limited.consumer("orders", "slow").receive(1)
        assert time.monotonic() - started < 20


async def test_nested_quantifiers_and_long_patterns_do_not_explode(bus: Any, stream: str) -> None:
    """Postgres's regular expressions do not try again and again, and a key pattern has no quantifiers of its own."""
    words = await bus.create_consumer(stream, "words", filter=Filter(data='$.a ? (@ like_regex "^(a+)+$")'))
    stars = await bus.create_consumer(stream, "stars", filter=".".join(["*"] * 120) + ".>")
    key = ".".join(["a"] * 120)
    await bus.publish_many(stream, [Message(key=key, data={"a": "a" * 5000 + "!"}) for _ in range(50)])
    await bus.publish(stream, key=f"{key}.a", data={"a": "a" * 5000})
    started = time.monotonic()
    assert len(await words.receive(100)) == 1
    assert len(await stars.receive(100)) == 1
    assert time.monotonic() - started < 20
