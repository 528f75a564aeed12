"""What people do with the console besides looking, in a real Chromium: they create, watch, settle, schedule, send and remove."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import postbus
from tests.browser.conftest import quiet
from tests.browser.opening import opened
from tests.server.serving import Api, serving


def test_a_stream_lives_from_its_form_to_its_removal(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams")
    page.get_by_role("link", name="New stream").click()
    page.get_by_label("Name", exact=True).fill("journey")
    page.get_by_label("partitions").fill("2")
    page.get_by_role("button", name="Create the stream").click()
    expect(page.locator(".said")).to_have_text("stream journey was created")
    page.get_by_role("link", name="New consumer").click()
    page.get_by_label("Name", exact=True).fill("worker")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("h1")).to_have_text("worker")
    shop.publish_many("journey", [postbus.Message(key=f"k.{n}", data=n) for n in range(3)])

    # Whoever acks, nacks and extends in the page does it for a worker that holds these.
    held = shop.consumer("journey", "worker").receive(3, ack_wait=600)
    page.locator("#peeked", has_text="delivered").wait_for()
    row = page.locator("#peek-table tr", has_text="k.0")
    row.get_by_role("button", name="ack", exact=True).click()
    expect(page.locator(".said")).to_have_text("acked")
    page.locator("#peek-table tr", has_text="k.1").get_by_role("button", name="nack").click()
    expect(page.locator(".said")).to_have_text("nacked")
    page.locator("#peek-table tr", has_text="k.2").get_by_role("button", name="+ 5 min").click()
    expect(page.locator(".said")).to_have_text("extended by 5 minutes")
    assert len(held) == 3
    stats = shop.consumer("journey", "worker").stats()
    assert (stats.in_flight, stats.waiting) == (1, 1)

    page.get_by_role("link", name="journey", exact=True).click()
    page.get_by_text("Purge or remove").click()
    drop = page.locator("form", has=page.get_by_role("button", name="Remove the stream"))
    drop.get_by_label("Type journey to confirm").fill("journ")
    drop.get_by_role("button", name="Remove the stream").click()
    expect(page.locator(".problem")).to_contain_text("the name does not match")
    page.go_back()
    page.get_by_text("Purge or remove").click()
    drop.get_by_label("Type journey to confirm").fill("journey")
    drop.get_by_role("button", name="Remove the stream").click()
    expect(page.locator(".said")).to_have_text("stream journey was removed")


def test_messages_come_in_live_are_filtered_and_paused(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams/shipments/messages?key=tail.*")
    shop.publish("shipments", key="other.1", data=0)
    shop.publish("shipments", key="tail.1", data=1)
    newest = page.locator("#messages tbody tr").first
    expect(newest).to_contain_text("tail.1", timeout=10_000)
    expect(page.locator("#messages tbody")).not_to_contain_text("other.1")

    page.keyboard.press("l")
    shop.publish("shipments", key="tail.2", data=2)
    page.wait_for_timeout(2500)
    expect(newest).to_contain_text("tail.1")
    page.keyboard.press("l")
    expect(newest).to_contain_text("tail.2", timeout=10_000)


def test_what_is_found_is_downloaded(page: Page, api: Api, shop: postbus.Bus) -> None:
    shop.publish("shipments", key="big.1", data={"n": 2**63 - 1})
    opened(page, api, "streams/shipments/messages?key=big.*")
    found = {}
    for words in ("JSON lines", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("link", name=words).click()
        found[words] = download.value.path().read_text()
    (line,) = found["JSON lines"].splitlines()
    assert json.loads(line)["data"] == {"n": 2**63 - 1}
    assert found["CSV"].count("9223372036854775807") == 1


def test_a_schedule_is_made_run_and_removed(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams/payments/schedules")
    page.get_by_text("New recurring schedule").click()
    page.get_by_label("Name", exact=True).fill("hourly")
    page.get_by_label("Cron expression").fill("0 * * * *")
    page.get_by_role("button", name="Create the schedule").click()
    row = page.locator("#schedule-table tr", has_text="hourly")
    expect(row).to_contain_text("in ")
    row.get_by_role("button", name="run now").click()
    expect(page.locator(".said")).to_have_text("schedule hourly was published now")
    row.get_by_role("link", name="hourly").click()
    expect(page.locator("#runs")).to_contain_text("asked for by hand")
    page.get_by_role("button", name="as code").first.click()
    expect(page.locator("main")).to_contain_text("select postbus.pause_schedule('payments', 'hourly');")
    page.go_back()
    page.get_by_role("button", name="remove", exact=True).click()
    expect(page.locator(".said")).to_have_text("schedule hourly was removed")


def test_a_token_is_shown_once_and_opens_the_console(
    browser: Browser, context: BrowserContext, page: Page, api: Api, url: str, shop: postbus.Bus
) -> None:
    opened(page, api, "tokens")
    page.get_by_text("New token").click()
    page.get_by_label("Name", exact=True).fill("reader")
    page.get_by_label("consume").check()
    page.get_by_label("Streams").fill("orders")
    page.get_by_role("button", name="Create the token").click()
    text = page.locator("pre code").inner_text()
    page.get_by_role("link", name="Done").click()
    expect(page.locator("#token-table")).to_contain_text("reader")
    assert text not in page.content()

    with serving(url, require_tokens=True) as closed, quiet(browser) as other:
        visitor = opened(other.new_page(), closed, "")
        visitor.get_by_label("Token").fill(text)
        visitor.get_by_role("button", name="Log in").click()
        expect(visitor.locator("#stream-table")).to_contain_text("orders")
        expect(visitor.locator("#stream-table")).not_to_contain_text("payments")
        opened(visitor, closed, "streams/orders/consumers/billing")
        expect(visitor.get_by_role("button", name="Pause")).to_have_count(0)

    page.locator("#token-table tr", has_text="reader").get_by_role("button", name="revoke").click()
    expect(page.locator(".said")).to_have_text("the token was revoked")


def test_a_consumer_is_given_an_endpoint(page: Page, api: Api, shop: postbus.Bus) -> None:
    shop.create_consumer("shipments", "pusher", exist_ok=True)
    opened(page, api, "streams/shipments/consumers/pusher")
    page.get_by_role("link", name="Push its messages").click()
    page.get_by_label("Endpoint").fill("https://example.com/hooks")
    page.get_by_role("button", name="Send its messages there").click()
    expect(page.locator("pre code")).to_have_text(re.compile(r"whsec_"))
    page.get_by_role("link", name="Done").click()
    expect(page.locator("h2", has_text="Endpoint")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".said")).to_have_text("it is paused")
    opened(page, api, "push")
    expect(page.locator("#push-table tr", has_text="pusher")).to_contain_text("paused")


def test_a_change_of_settings_is_previewed_and_saved(page: Page, api: Api, shop: postbus.Bus) -> None:
    opened(page, api, "streams/clicks/settings")
    page.get_by_label("retain up to").fill("30d")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#changes")).to_contain_text("30d")
    expect(page.locator("main")).to_contain_text("No message is that old.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".said")).to_have_text("changed: retain_up_to")


@pytest.mark.parametrize("path", ["streams/orders/consumers/billing", "streams/orders", "tokens", "sources"])
def test_a_read_only_console_has_no_forms_that_change_anything(
    page: Page, url: str, shop: postbus.Bus, path: str
) -> None:
    with serving(url, console="read-only") as api:
        opened(page, api, path)
        expect(page.locator("header")).to_contain_text("read-only")
        assert page.locator("main form[method=post]").count() == 0
