from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import postbus
from postbus import Message
from tests import servers
from tests.server.serving import Api, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# Not longer than a module: as long as it lives, its event loop is the running one of this thread, and no async test can run.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium: that of the machine, which `make packages` installs on Debian."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def database() -> Iterator[servers.Server]:
    with servers.running("pg18") as server:
        yield server


@pytest.fixture(scope="module")
def url(database: servers.Server) -> Iterator[str]:
    with servers.database(database.url) as url:
        yield url


@pytest.fixture(scope="module")
def shop(url: str) -> Iterator[postbus.Bus]:
    """A bus with streams, consumers in every state, schedules, and dead letters."""
    with postbus.connect(url, upkeep=False) as bus:
        fill(bus)
        yield bus


@pytest.fixture(scope="module")
def api(url: str, shop: postbus.Bus) -> Iterator[Api]:
    with serving(url) as api:
        yield api


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser's profile. What pages log, and what their policy refuses, fails the test."""
    with quiet(browser, viewport={"width": 1440, "height": 900}) as found:
        yield found


@contextmanager
def quiet(browser: Browser, **settings: Any) -> Iterator[BrowserContext]:
    """A profile whose pages have nothing to complain about: no error, and nothing that their policy refuses."""
    found = browser.new_context(**settings)
    problems: list[str] = []
    found.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    found.on("weberror", lambda error: problems.append(str(error.error)))
    yield found
    found.close()
    # A form that is refused is answered with 400 or 403, which Chromium logs.
    assert [each for each in problems if "status of 40" not in each] == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def fill(bus: postbus.Bus) -> None:
    for name in ("payments", "shipments", "clicks"):
        bus.create_stream(name, partitions=4)
    bus.create_stream("orders", partitions=4)
    bus.create_queue("emails", max_deliver=5)
    billing = bus.create_consumer("orders", "billing", max_deliver=1, keep_history=86_400)
    bus.create_consumer("orders", "shipping", filter="orders.*.paid")
    bus.create_consumer("clicks", "analytics", order="none").pause()
    bus.create_group("clicks", "warehouse")
    customers = ("ada", "bob", "cleo", "dan")
    orders = [
        Message(
            key=f"orders.{customers[n % 4]}.{'paid' if n % 3 else 'new'}",
            data={"order": n, "customer": customers[n % 4], "amount": n * 7 % 100, "items": [{"sku": n % 9}]},
            headers={"trace": f"{n:08x}"},
        )
        for n in range(1, 201)
    ]
    bus.publish_many("orders", orders[:120])
    bus.publish_many("clicks", [Message(key=f"click.{n % 50}", data={"x": n}) for n in range(2000)])
    for n in range(12):
        bus.queue("emails").publish({"to": f"{customers[n % 4]}@example.com"})
    for delivery in billing.receive(120):
        if delivery.seq % 9 == 0:
            billing.nack(
                delivery, reason="card declined: insufficient funds" if delivery.seq % 2 else "gateway timed out"
            )
        elif delivery.seq % 11:
            billing.ack(delivery)
    bus.sweep()
    bus.publish_many("orders", orders[120:])
    bus.schedules.create("payments", "nightly", cron="30 2 * * *", time_zone="Europe/Berlin", data={"kind": "daily"})
    bus.schedules.create("payments", "heartbeat", every=60, data={"kind": "beat"})
    bus.publish("payments", key="later", data={"n": 1}, delay=3600)
    bus.create_stream("events", dedup_window=7 * 86_400)
    bus.webhook_sources.create("stripe", "events", kind="stripe", secrets=["whsec_c2VjcmV0"])
    push = bus.create_consumer("orders", "hooks").push
    push.set("https://example.com/hook")
    push.pause("their maintenance")
