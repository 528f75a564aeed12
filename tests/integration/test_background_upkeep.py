"""A program that only keeps a bus open does the upkeep, one process at a time, and never notices."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import time
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from postbus.maintenance import pace
from tests.buses import AwaitableBus
from tests.server.serving import serving
from tests.waiting import until

pytestmark = pytest.mark.newest_server

# Keeps a bus open, at the pace of these tests, until it is killed.
_PROGRAM = """
import sys, time
import postbus
from postbus.maintenance import pace

pace.FIRST_SECONDS, pace.SWEEP_SECONDS, pace.MAINTENANCE_SECONDS, pace.STANDBY_SECONDS = 0.05, 0.1, 0.2, 0.2
pace.LEASE_SECONDS = 2.0
bus = postbus.connect(sys.argv[1])
print("connected", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep begins at once, and is done often."""
    for name, seconds in (("FIRST", 0.05), ("SWEEP", 0.1), ("MAINTENANCE", 0.2), ("STANDBY", 0.2), ("RETRY", 0.1)):
        monkeypatch.setattr(pace, f"{name}_SECONDS", seconds)


@pytest.fixture(params=["sync", "async"])
async def keeper(request: pytest.FixtureRequest, fresh_url: str, soon: None) -> Any:
    """A bus that keeps up a database of its own."""
    if request.param == "async":
        async with await postbus.connect_async(fresh_url) as bus:
            yield bus
    else:
        with postbus.connect(fresh_url) as sync_bus:
            yield AwaitableBus(sync_bus)


def state(url: str) -> tuple[Any, Any]:
    """Who does the upkeep, and since when it was not heard of."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select holder, held_at from postbus_data.upkeep").fetchone()
    assert row is not None
    return row


async def test_retention_is_applied_without_a_call(keeper: Any) -> None:
    await keeper.create_stream("orders", partitions=1, retain_up_to=1, max_messages=100, segment_bytes=65536)
    await keeper.publish_many("orders", [Message(data="x" * 200) for _ in range(2000)])
    async with asyncio.timeout(30):
        while (info := await keeper.stream_info("orders")).start_seq <= 1900:
            await asyncio.sleep(0.05)
    assert info.message_estimate <= 100


async def test_scheduled_messages_are_published_and_expired_leases_redelivered_while_nobody_receives(
    keeper: Any,
) -> None:
    await keeper.create_stream("orders")
    consumer = await keeper.create_consumer("orders", "c", order="none", ack_wait=0.2, max_deliver=1)
    await keeper.publish("orders", key="k", data="leased")
    assert len(await consumer.receive()) == 1
    await keeper.publish("orders", key="k", data="later", delay=0.3)
    async with asyncio.timeout(30):
        while not await consumer.dead_letters() or len(await keeper.read("orders")) < 2:
            await asyncio.sleep(0.05)


async def test_it_goes_on_after_connections_were_lost(keeper: Any) -> None:
    url = keeper.url
    await asyncio.to_thread(until, lambda: state(url)[1], "the first maintenance")
    with psycopg.connect(url, autocommit=True) as root:
        root.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    _, last = state(url)
    await asyncio.to_thread(until, lambda: state(url)[1] > last, "maintenance after the loss")


def test_of_several_processes_one_does_it_until_it_is_killed(fresh_url: str) -> None:
    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, fresh_url, "600"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
        return process

    with start() as first:
        holder = until(lambda: state(fresh_url)[0], "the first process takes it")
        with start() as second:
            time.sleep(3)
            now, held_at = state(fresh_url)
            assert now == holder
            first.kill()
            until(lambda: state(fresh_url)[0] != holder, "the second process takes it")
            until(lambda: state(fresh_url)[1] > held_at, "the second process maintains")
            second.kill()


def test_it_keeps_no_process_alive(fresh_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, fresh_url, "1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_off_means_off(fresh_url: str, soon: None) -> None:
    with postbus.connect(fresh_url, upkeep=False):
        async with await postbus.connect_async(fresh_url, upkeep=False):
            await asyncio.sleep(1)
    assert state(fresh_url) == (None, None)


async def test_a_short_program_does_not_begin_with_it(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
    async with await postbus.connect_async(fresh_url) as async_bus:
        await async_bus.publish("orders", key="k", data=1)
    assert state(fresh_url) == (None, None)


def threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "postbus upkeep"}


def test_close_ends_it(fresh_url: str, soon: None) -> None:
    others = threads()
    with postbus.connect(fresh_url):
        until(lambda: state(fresh_url)[1], "the first maintenance")
        assert threads() - others
    assert not threads() - others
    gc.collect()


def test_over_http_the_server_does_it(fresh_url: str, soon: None) -> None:
    others = threads()
    with serving(fresh_url) as api, postbus.connect(api.url) as bus:
        bus.create_stream("orders")
        assert not threads() - others
        time.sleep(0.5)
    assert state(fresh_url)[0] is None


def test_a_recurring_schedule_goes_on(fresh_url: str, soon: None) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("ticks")
        bus.schedules.create("ticks", "s", every=1, data=1)
        with psycopg.connect(fresh_url, autocommit=True) as session:
            session.execute("delete from postbus_data.scheduled")
            session.execute("update postbus_data.schedule set filled_until = now()")
        until(lambda: len(list(bus.scan("ticks"))) >= 2, "its times are worked out and published")


def test_whoever_maintains_already_keeps_it_from_others(fresh_url: str, soon: None) -> None:
    with psycopg.connect(fresh_url, autocommit=True) as cron:
        cron.execute("select postbus.maintain()")
        with postbus.connect(fresh_url):
            time.sleep(1)
            assert state(fresh_url)[0] is None


def test_a_role_that_may_not_do_it_leaves_it_alone(
    fresh_url: str, soon: None, caplog: pytest.LogCaptureFixture
) -> None:
    others = threads()
    with psycopg.connect(fresh_url, autocommit=True) as root:
        root.execute("create role postbus_test_publisher")
        try:
            with postbus.connect(fresh_url, upkeep=False) as owner:
                owner.create_stream("orders")
            root.execute("select postbus.grant_stream('orders', 'postbus_test_publisher', 'publish')")
            joint = "&" if "?" in fresh_url else "?"
            with (
                caplog.at_level(logging.INFO, "postbus.upkeep"),
                postbus.connect(f"{fresh_url}{joint}options=-c%20role%3Dpostbus_test_publisher") as bus,
            ):
                bus.publish("orders", key="k", data=1)
                until(lambda: not threads() - others, "it gives up")
            assert caplog.text == ""
            assert state(fresh_url) == (None, None)
        finally:
            root.execute("drop owned by postbus_test_publisher cascade")
            root.execute("drop role postbus_test_publisher")
