"""The console fits every screen; and the pictures of it in the docs are made here.

`POSTBUS_PICTURES=docs/images python -m pytest tests/browser/test_console_pictures.py` makes them again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

import postbus
from postbus import Message
from tests.browser.conftest import quiet
from tests.browser.opening import PAGES, opened
from tests.server.serving import Api

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("POSTBUS_PICTURES")
Scheme = Literal["light", "dark"]
SIZES = {1440: 900, 800: 900, 390: 844}
# By name: the page, and how it is shown.
PICTURES: dict[str, tuple[str, Scheme, int]] = {
    **{f"console-overview-{scheme}-{width}": ("", scheme, width) for scheme in ("light", "dark") for width in SIZES},
    "console-message-light-1440": ("streams/orders/messages/9", "light", 1440),
    "console-consumer-dark-1440": ("streams/clicks/consumers/analytics", "dark", 1440),
    "console-dead-letters-light-1440": ("streams/orders/consumers/billing/dead", "light", 1440),
    "console-messages-dark-800": ("streams/orders/messages", "dark", 800),
    "console-push-light-800": ("streams/orders/consumers/hooks/push", "light", 800),
    "console-stream-light-390": ("streams/orders", "light", 390),
}


@pytest.mark.parametrize("width", SIZES)
def test_pages_fit_the_screen(browser: Browser, api: Api, width: int) -> None:
    too_wide = []
    with quiet(browser, viewport={"width": width, "height": SIZES[width]}) as context:
        page = context.new_page()
        for path in PAGES:
            opened(page, api, path)
            if page.evaluate("document.documentElement.scrollWidth") > width:
                too_wide.append(path)
    assert too_wide == []


def test_the_docs_have_pictures_in_light_and_dark_and_for_each_width(
    browser: Browser, api: Api, shop: postbus.Bus, tmp_path: Path
) -> None:
    folder = Path(FOLDER) if FOLDER else tmp_path
    with traffic(shop):
        for name, (path, scheme, width) in PICTURES.items():
            size: Any = {"width": width, "height": SIZES[width]}
            with quiet(browser, viewport=size, color_scheme=scheme) as context:
                page = opened(context.new_page(), api, path)
                if FOLDER and (name, path) == (next(iter(PICTURES)), ""):
                    # Charts need a few looks.
                    page.wait_for_timeout(40_000)
                page.screenshot(path=folder / f"{name}.png")
                is_dark = brightness(page) < 0.25
                assert is_dark == (scheme == "dark"), name
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs/how-to/use-the-console.md").read_text()
    for name in PICTURES:
        assert (ROOT / "docs/images" / f"{name}.png").exists(), f"make it: POSTBUS_PICTURES=docs/images ({name})"
        assert f"images/{name}.png" in pages, name


@contextmanager
def traffic(bus: postbus.Bus) -> Iterator[None]:
    """The shop is open."""
    stop = threading.Event()

    def publish() -> None:
        number = 0
        while not stop.wait(0.2):
            number += 1
            many = 5 + 20 * (number // 20 % 3) + number % 7
            bus.publish_many("clicks", [Message(key=f"click.{n}", data={"page": f"/shoes/{n}"}) for n in range(many)])
            bus.publish("shipments", key=f"parcel.{number % 9}", data={"parcel": number})
            bus.publish_many("payments", [Message(key=f"ada.{n}", data={"amount": n}) for n in range(number % 5)])

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def brightness(page: Page) -> float:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3
