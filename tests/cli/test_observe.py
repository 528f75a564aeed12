"""`postbus observe`, driven by keys on a screen of a given size, on a real bus."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from textual.pilot import Pilot

import postbus
from postbus.cli.observe import figures
from postbus.cli.observe.app import Observe
from postbus.cli.observe.consumer import ConsumerScreen
from postbus.cli.observe.help import KEYS
from postbus.cli.observe.messages import MessagesScreen
from postbus.cli.observe.overview import OverviewScreen
from postbus.cli.observe.schedules import SchedulesScreen
from postbus.cli.observe.screens import LiveScreen
from postbus.cli.observe.table import Table
from tests.server.serving import serving

pytestmark = pytest.mark.newest_server

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = [(80, 24), (140, 40)]


@pytest.fixture
def bus_url(fresh_url: str) -> str:
    """Three streams; orders has twelve messages, and consumers to which several things have happened."""
    with postbus.connect(fresh_url) as bus:
        for name in ("orders", "payments"):
            bus.create_stream(name, partitions=1)
        bus.create_queue("emails", partitions=1)
        for number in range(12):
            data = {"quantity": number, "customer": {"name": "Ada"}}
            bus.publish("orders", key=f"orders.cus_{number % 3}.{number}", data=data, headers={"trace": "4bf9"})
        billing = bus.create_consumer("orders", "billing", order="none", max_deliver=3, ack_wait=600)
        bus.create_consumer("orders", "audit")
        bus.create_consumer("orders", "shipping").pause()
        batch = billing.receive(4)
        billing.terminate(batch[0], reason="card declined")
        billing.nack(batch[1], delay=600, reason="try later")
        billing.ack(batch[2])
    return fresh_url


@asynccontextmanager
async def observing(url: str, size: tuple[int, int] = (80, 24), **more: Any) -> AsyncIterator[Screen]:
    async with await postbus.connect_async(url, pool_size=2, connect_timeout=1) as bus:
        app = Observe(bus, shown_url="the bus", interval=0.1, **more)
        async with app.run_test(size=size, notifications=True) as pilot:
            screen = Screen(pilot, bus)
            await screen.shows("orders")
            yield screen


class Screen:
    """What somebody sees, and the keys that they press."""

    def __init__(self, pilot: Pilot[None], bus: postbus.AsyncBus) -> None:
        self.pilot, self.bus = pilot, bus

    @property
    def text(self) -> str:
        strips = self.pilot.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def shows(self, *parts: str) -> None:
        await self.until(lambda: _true(all(part in self.text for part in parts)), f"{parts} in\n{self.text}")

    async def until(self, condition: Callable[[], Awaitable[Any]], what: str) -> None:
        for _ in range(200):
            if await condition():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"{what}\n{self.text}")


async def _true(value: bool) -> bool:
    return value


def masked(text: str) -> str:
    """The text without what is different each time: times of day, ages, ack ids, rates."""
    text = re.sub(r"\d\d:\d\d:\d\d(\.\d{3})?", lambda found: "T" * len(found[0]), text)
    text = re.sub(r"\d{4}-\d\d-\d\d T+\S*", "a time", text)
    text = re.sub(r"(oldest|longest) \d+s", r"\1 ?", text)
    return re.sub(r" +(\d+[smh]){1,2}\b", lambda found: "?".rjust(len(found[0])), text)


def matches_snapshot(text: str, name: str) -> None:
    """Compare with what is stored; POSTBUS_SNAPSHOTS=write stores it."""
    file = SNAPSHOTS / f"{name}.txt"
    found = masked(text) + "\n"
    if os.environ.get("POSTBUS_SNAPSHOTS") == "write":
        file.write_text(found)
    assert found == file.read_text()


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "140x40"])
async def test_every_screen_looks_as_it_did(bus_url: str, size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with observing(bus_url, size) as screen:
        await screen.press("s", "s", "s", "s")  # By name, in the end: rates are all alike.
        while "STREAM▲" not in screen.text:
            await screen.press("s")
        await screen.press("home", "down")
        await screen.shows("consumers of orders", "billing")
        matches_snapshot(screen.text, f"overview-{name}")
        await screen.press("enter")
        await screen.shows("messages, live", "orders.cus_2.11", "orders.cus_0.0")
        matches_snapshot(screen.text, f"messages-{name}")
        await screen.press("enter")
        await screen.shows('"quantity": 11', "4bf9")
        matches_snapshot(screen.text, f"detail-{name}")
        await screen.press("escape", "escape", "tab", "down", "enter")
        await screen.shows("orders › billing", "card declined", "orders.cus_2.11")
        matches_snapshot(screen.text, f"consumer-{name}")
        await screen.press("g")
        await screen.shows("Move billing to which position?")
        matches_snapshot(screen.text, f"seek-{name}")


async def test_a_consumer_is_paused_only_after_yes(bus_url: str) -> None:
    async with observing(bus_url, stream="orders", consumer="billing") as screen:
        billing = screen.bus.consumer("orders", "billing")
        await screen.shows("orders › billing", "in flight 1")
        await screen.press("p")
        await screen.shows("Pause billing of orders?")
        await screen.press("n")
        assert not (await billing.info()).paused
        await screen.press("p", "y")
        await screen.shows("PAUSED")
        assert (await billing.info()).paused
        await screen.press("p")
        await screen.shows("Resume billing")
        await screen.press("y")
        await screen.until(lambda: _is(billing.info(), lambda info: not info.paused), "it goes on")


async def _is(asked: Awaitable[Any], expected: Callable[[Any], bool]) -> bool:
    return expected(await asked)


async def test_a_consumer_shows_where_it_is_pushed_and_why_not(bus_url: str) -> None:
    async with observing(bus_url, stream="orders", consumer="billing") as screen:
        billing = screen.bus.consumer("orders", "billing")
        await billing.push.set("https://hooks.example.com/?key=secret")
        await screen.shows("→ hooks.example.com")
        await billing.push.pause("it is gone (410)")
        await screen.shows("→ hooks.example.com PAUSED: it is gone")
        assert "secret" not in screen.text
        await billing.push.remove()
        await screen.until(lambda: _true("hooks.example.com" not in screen.text), "it is not pushed any more")


async def test_deliveries_are_acked_and_nacked_and_dead_letters_redriven(bus_url: str) -> None:
    async with observing(bus_url, stream="orders", consumer="billing") as screen:
        billing = screen.bus.consumer("orders", "billing")
        await screen.shows("card declined")
        await screen.press("t", "t")
        await screen.shows("delivered messages", "orders.cus_0.3")
        await screen.press("x")
        await screen.shows("Nack message 4")
        await screen.press("y")
        await screen.until(lambda: _is(billing.stats(), lambda stats: stats.in_flight == 0), "it is given back")
        (again,) = await billing.receive(1, wait=5)
        await screen.shows(f" {again.seq} ")
        await screen.press("a", "y")
        await screen.until(lambda: _is(billing.stats(), lambda stats: stats.in_flight == 0), "it is acked")
        assert await billing.ack(again) == 0

        await screen.press("t", "t")
        await screen.shows("dead messages", "card declined")
        await screen.press("a")
        await screen.shows("only a delivered message")
        await screen.press("d")
        await screen.shows("Redrive dead letter 1")
        await screen.press("y")
        await screen.until(lambda: _is(billing.stats(), lambda stats: stats.dead == 0), "it is redriven")


async def test_a_seek_asks_for_a_position_and_confirmation_and_refuses_invalid_ones(bus_url: str) -> None:
    async with observing(bus_url, stream="orders", consumer="billing") as screen:
        billing = screen.bus.consumer("orders", "billing")
        await screen.shows("orders › billing", "in flight 1")
        await screen.press("g", *"nowhere", "enter")
        await screen.shows('"nowhere" is not a time')
        await screen.press("g", *"latest", "enter")
        await screen.shows("Move billing of orders to latest?", "1 message in flight is")
        await screen.press("y")
        await screen.until(lambda: _is(billing.stats(), lambda stats: stats.lag_estimate == 0), "it has moved")


async def test_messages_come_in_live_and_are_filtered_and_paged(bus_url: str) -> None:
    async with observing(bus_url, stream="orders") as screen:
        await screen.shows("messages, live", "orders.cus_2.11")
        await screen.bus.publish("orders", key="orders.new.1", data="hello")
        await screen.shows("orders.new.1", "hello")
        await screen.press("f", *"orders.cus_1.*", "enter")
        await screen.shows("keys orders.cus_1.*", "orders.cus_1.10")
        assert "orders.cus_2.11" not in screen.text
        await screen.bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(40)])
        await screen.press("f", "home", "ctrl+k", "enter")
        await screen.shows("k.39")
        await screen.press("n")
        await screen.shows("page 2")
        assert "k.39" not in screen.text
        await screen.press("b")
        await screen.shows("live", "k.39")


async def test_streams_are_searched_and_sorted(bus_url: str) -> None:
    async with observing(bus_url) as screen:
        await screen.press("slash", *"pay")
        await screen.shows("1 of 3 streams", "payments")
        assert "emails" not in screen.text
        await screen.press("escape")
        await screen.shows("3 streams", "emails")
        while "▼MESSAGES" not in screen.text:
            await screen.press("s")
        names = [line.split()[0] for line in screen.text.splitlines()[2:5]]
        assert names == ["orders", "emails", "payments"]
        await screen.press("S")
        assert screen.text.splitlines()[4].startswith("orders")


async def test_the_worst_stream_is_on_top_and_selected_at_first(bus_url: str) -> None:
    with postbus.connect(bus_url) as bus:
        bus.publish_many("payments", [postbus.Message(data=n) for n in range(500)])
        bus.create_consumer("payments", "audit")
        bus.create_stream("alerts", max_messages=1)
    async with observing(bus_url) as screen:
        await screen.shows("consumers of orders")
        lines = screen.text.splitlines()[2:6]
        assert [line.split()[0] for line in lines] == ["orders", "payments", "alerts", "emails"]
        assert "dead" in lines[0]
        assert " 500 " in lines[1]
        while "STREAM▲" not in screen.text:
            await screen.press("s")
        assert screen.text.splitlines()[2].startswith("alerts")


async def test_a_question_mark_shows_all_keys(bus_url: str) -> None:
    async with observing(bus_url) as screen:
        await screen.press("question_mark")
        await screen.shows("everywhere", "search streams", "redrive")
        await screen.press("escape")
        await screen.shows("consumers of orders")
    explained = {key for keys, _ in KEYS for key in keys.split()}
    for kind in (LiveScreen, OverviewScreen, MessagesScreen, ConsumerScreen, SchedulesScreen, Table):
        bound = {key for each in kind.BINDINGS for key in each.key.split(",")}  # type: ignore[union-attr]
        assert bound <= explained, kind


async def test_the_rate_of_a_stream_is_its_publish_rate(bus_url: str) -> None:
    async with observing(bus_url) as screen:
        await screen.bus.publish_many("payments", [postbus.Message(data=n) for n in range(500)])
        feed = screen.pilot.app.feed  # type: ignore[attr-defined]
        await screen.until(lambda: _true(feed.streams["payments"].overview.last_seq == 500), "it is seen")
        assert max(feed.streams["payments"].rates) > 500
        await screen.shows("█")


async def test_a_lost_connection_is_shown_and_recovers(bus_url: str, server: Any) -> None:
    name = bus_url.partition("?")[0].rpartition("/")[2]
    async with observing(bus_url) as screen:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"alter database {name} allow_connections false".encode())
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))
            await screen.shows("no answer for", "trying again")
            connection.execute(f"alter database {name} allow_connections true".encode())
        await screen.shows("postbus  3 streams")


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "·"), (0, "0"), (1234, "1,234"), (123456, "123k"), (1234567, "1.23M"), (2e9, "2G")],
)
def test_counts_fit_into_eight_characters(number: float | None, shown: str) -> None:
    assert figures.count(number) == shown


def test_sizes_and_trends_fit_their_columns() -> None:
    assert [figures.size(n) for n in (None, 0, 16384, 200 * 2**20, 5 * 2**40)] == [
        "·",
        "0 B",
        "16.0 kB",
        "200 MB",
        "5.0 TB",
    ]
    assert figures.sparkline([0, 1, 2, 4], 6) == "  ▁▂▄█"
    assert figures.sparkline([0, 0], 4) == "    "


async def test_observe_shows_the_same_over_http(bus_url: str) -> None:
    with serving(bus_url) as api:
        async with observing(api.url, stream="orders", consumer="billing") as screen:
            await screen.shows("in flight 1", "card declined", "try later", "orders.cus_2.11")
            await screen.press("t", "t")
            await screen.shows("delivered messages", "orders.cus_0.3")
            await screen.press("a", "y")
            billing = screen.bus.consumer("orders", "billing")
            await screen.until(lambda: _is(billing.stats(), lambda stats: stats.in_flight == 0), "it is acked")
            await screen.press("escape")
            await screen.shows("postbus  3 streams", "consumers of orders", "paused")


async def test_a_consumer_shows_how_many_wait_at_each_priority(bus_url: str) -> None:
    async with observing(bus_url, (140, 40), stream="orders", consumer="audit") as screen:
        await screen.shows("orders › audit", "order key")
        assert "by priority" not in screen.text
        await screen.bus.publish_many("orders", [postbus.Message(data=n, priority=9) for n in range(3)])
        await screen.shows("by priority 9: 3, 4: ")


async def test_schedules_show_their_times_and_are_paused_and_run(bus_url: str) -> None:
    with postbus.connect(bus_url, upkeep=False) as bus:
        bus.schedules.create("orders", "nightly", cron="30 2 * * *", time_zone="Europe/Berlin", data=1, priority=7)
        bus.schedules.create("payments", "beat", every=600, data=2)
    async with observing(bus_url, (140, 40)) as screen:
        await screen.press("c")
        await screen.shows(
            "2 schedules", "nightly", "30 2 * * *", "Europe/Berlin", "every 10m", "never", "next, in UTC"
        )
        await screen.press("p", "y")
        await screen.shows("paused nightly", "it has no times while it is paused")
        await screen.press("r", "y")
        await screen.shows("published as seq 13")
        (run,) = (await screen.bus.schedules.info("orders", "nightly")).last_runs
        assert (run.seq, run.occurrence) == (13, None)
