"""The console in a real Chromium, against a real server: each journey, with traffic. Errors on the page fail the test."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

import postbus
from postbus import Message
from tests import servers
from tests.browser.conftest import quiet
from tests.browser.opening import PAGES, opened
from tests.server.serving import Api, serving
from tests.waiting import until

HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "</script><svg onload=window.hacked=1>",
    "'\"><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "javascript:window.hacked=1",
)


def test_the_overview_says_what_is_wrong_and_follows_what_happens(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "")
    expect(page.locator("#attention")).to_contain_text("orders / billing has")
    expect(page.locator("#attention")).to_contain_text("clicks / analytics is paused")
    before = page.locator("tr", has_text="shipments").locator("td").last
    expect(before).to_have_text("0")

    shop.publish("shipments", data=1)

    # Without a reload, while a link keeps the focus.
    page.locator(".menu a", has_text="Streams").focus()
    expect(before).to_have_text("1", timeout=10_000)
    expect(page.locator(".menu a", has_text="Streams")).to_be_focused()


def test_an_empty_system_shows_how_to_begin_and_lights_up(context: BrowserContext, database: servers.Server) -> None:
    with servers.database(database.url) as url, serving(url) as api, postbus.connect(url, upkeep=False) as bus:
        page = opened(context.new_page(), api, "")
        expect(page.locator("#main")).to_contain_text("There are no streams yet")
        expect(page.locator("#main")).to_contain_text(api.url)

        bus.create_stream("first")
        bus.publish("first", data=1)

        expect(page.locator("#stream-table")).to_contain_text("first", timeout=10_000)


def test_a_message_is_found_and_its_fate_shown(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams/orders/messages")
    page.get_by_label("Key", exact=True).fill("orders.ada.paid")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url(re.compile("key=orders.ada.paid"))
    expect(page.locator("#messages tbody tr").first).to_contain_text("orders.ada.paid")
    page.locator("summary", has_text="by seq, time, header, content").click()
    page.get_by_label("Place in the JSON").fill("$.order=4")
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url(re.compile("order%3D4"))
    expect(page.locator("#messages tbody tr")).to_have_count(1)

    page.locator("#messages tbody a").click()

    expect(page.locator("h1")).to_have_text("orders#4")
    expect(page.locator("#c-billing")).to_contain_text(re.compile("acked|delivered|available"))


def test_dead_letters_are_redriven_and_discarded(page: Page, api: Api, shop: postbus.Bus) -> None:
    dead = shop.consumer("orders", "billing").dead_letters()
    opened(page, api, "streams/orders/consumers/billing/dead")
    expect(page.locator("#reasons")).to_contain_text(re.compile("gateway timed out|card declined"))

    page.locator("#letters input[type=checkbox]").first.check()
    page.get_by_role("button", name="Redrive the ticked ones").click()

    expect(page.locator(".said")).to_have_text("1 dead letter redriven")
    assert len(shop.consumer("orders", "billing").dead_letters()) == len(dead) - 1


def test_all_that_match_are_redriven_in_the_background_with_progress(page: Page, api: Api, shop: postbus.Bus) -> None:
    shop.create_stream("returns", exist_ok=True)
    desk = shop.create_consumer("returns", "desk", exist_ok=True)
    shop.publish_many("returns", [Message(key=f"k.{n}", data=n) for n in range(40)])
    while batch := desk.receive(100):
        desk.terminate(batch, reason="shop is closed")
    opened(page, api, "streams/returns/consumers/desk/dead")
    page.get_by_label("Reason begins with").first.fill("shop is")
    page.get_by_label("At most, per second").first.fill("10")
    page.get_by_role("button", name="Redrive all that match").click()
    expect(page.locator(".said")).to_contain_text("has begun: redrive")
    expect(page.locator("#task-table")).to_contain_text("running")

    until(lambda: shop.tasks.run() and shop.tasks.list_all("returns")[0].done_count >= 3, "some steps are done")
    (task,) = shop.tasks.list_all("returns")

    expect(page.locator("#task-table td.num").first).to_have_text(str(task.done_count), timeout=10_000)
    page.get_by_role("button", name="cancel", exact=True).click()
    expect(page.locator(".said")).to_contain_text("was cancelled")
    assert len(desk.dead_letters()) == 40 - task.done_count


def test_a_position_is_moved_after_a_preview(page: Page, api: Api, shop: postbus.Bus) -> None:
    shop.create_consumer("shipments", "mover", exist_ok=True)
    shop.publish("shipments", data="moved")
    opened(page, api, "streams/shipments/consumers/mover")
    page.get_by_label("Move to").select_option("latest")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("would be skipped")

    page.get_by_role("button", name="Move", exact=True).click()

    expect(page.locator(".said")).to_have_text("mover was moved")
    assert shop.consumer("shipments", "mover").stats().backlog == 0


def test_a_message_is_published_again_after_a_change(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams/orders/messages/7")
    page.get_by_role("link", name="publish again").click()
    data = page.get_by_label("Data, JSON")
    data.fill(data.input_value().replace('"order":7', '"order":7000'))
    page.get_by_role("button", name="Publish", exact=True).click()

    expect(page.locator(".said")).to_contain_text("published as seq")
    (newest,) = shop.read("orders", backwards=True, max_messages=1)
    assert newest.data["order"] == 7000


def test_keys_lead_everywhere(page: Page, api: Api) -> None:
    opened(page, api, "")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("orders#5")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("orders#5")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.locator("h1")).to_have_text("Streams")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("clicks")
    page.keyboard.press("l")
    expect(page.locator("#live")).to_have_text("paused")
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Streams")
    page.keyboard.press("w")
    expect(page.locator("h1")).to_have_text("Sources")
    opened(page, api, "streams/orders/messages")
    page.keyboard.press("n")
    page.wait_for_url(re.compile("resume="))
    page.keyboard.press("f")
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    opened(page, api, "streams/orders/consumers/billing")
    page.keyboard.press("t")
    page.wait_for_url(re.compile("state=available"))


def test_what_strangers_wrote_is_not_run(page: Page, api: Api, shop: postbus.Bus) -> None:
    shop.create_stream("hostile", exist_ok=True)
    worker = shop.create_consumer("hostile", "worker", max_deliver=1, exist_ok=True)
    for text in HOSTILE:
        key = re.sub(r"[\s.*>]", "_", text)
        shop.publish("hostile", key=key, data={text: text}, headers={"note": text})
    for delivery in worker.receive(len(HOSTILE)):
        worker.nack(delivery, reason=delivery.headers["note"] if delivery.headers else None)

    for path in ("", "/messages", "/messages/1", "/publish?again=2", "/consumers/worker", "/consumers/worker/dead"):
        opened(page, api, "streams/hostile" + path)
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("iframe, main img").count() == 0, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(browser: Browser, api: Api, scheme: Any) -> None:
    found: dict[str, list[str]] = {}
    with quiet(browser, viewport={"width": 1440, "height": 900}, color_scheme=scheme) as context:
        page = context.new_page()
        # In the dark only the colors differ.
        for path in PAGES if scheme == "light" else PAGES[:10]:
            opened(page, api, path)
            response = Axe().run(page).response
            serious = [each for each in response["violations"] if each["impact"] in ("serious", "critical")]
            if serious:
                found[path] = [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in serious]
    assert found == {}


def test_without_javascript_pages_can_be_read_and_forms_work(browser: Browser, api: Api, shop: postbus.Bus) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = opened(context.new_page(), api, "streams")
    page.get_by_role("link", name="payments", exact=True).click()
    page.get_by_role("link", name="Publish").click()
    page.get_by_label("Data, JSON").fill('{"without": "javascript"}')
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator(".said")).to_contain_text("published as seq")
    expect(page.locator("#messages")).to_contain_text("without")
    context.close()


def test_eight_tabs_follow_at_once(context: BrowserContext, api: Api, shop: postbus.Bus) -> None:
    tabs = [opened(context.new_page(), api, "streams/payments/messages") for _ in range(8)]

    shop.publish("payments", key="for-all-tabs", data=1)

    for tab in tabs:
        tab.bring_to_front()
        expect(tab.locator("#messages")).to_contain_text("for-all-tabs", timeout=10_000)


def test_a_token_logs_in_and_the_theme_stays(context: BrowserContext, url: str, shop: postbus.Bus) -> None:
    token = shop.tokens.create("visitor", scopes=["consume", "manage"]).text
    with serving(url, require_tokens=True) as api:
        page = opened(context.new_page(), api, "streams/orders")
        expect(page.locator("h1")).to_have_text("Log in to Postbus")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("[role=alert]")).to_have_text("this token is not valid")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("h1")).to_have_text("Overview")
        assert token not in page.content()
        assert page.evaluate("document.cookie") == ""
        page.get_by_label("theme: auto").click()
        page.get_by_label("theme: light").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.get_by_role("button", name="Log out").click()
        expect(page.locator("h1")).to_have_text("Log in to Postbus")
