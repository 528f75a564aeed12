"""The pages of the console, and how a test opens one."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.server.serving import Api

PAGES = (
    "",
    "streams",
    "streams/orders",
    "streams/orders/messages",
    "streams/orders/messages/1",
    "streams/orders/publish",
    "streams/orders/schedules",
    "streams/orders/archive",
    "streams/payments/schedules/nightly",
    "streams/orders/settings",
    "streams/orders/new-consumer",
    "streams/orders/consumers/billing",
    "streams/orders/consumers/billing?to=earliest",
    "streams/orders/consumers/billing/settings",
    "streams/orders/consumers/billing/dead",
    "streams/orders/consumers/hooks/push",
    "consumers",
    "dead",
    "schedules",
    "sources",
    "push",
    "pipelines",
    "doctor",
    "tokens",
    "new/stream",
)


def opened(page: Page, api: Api, path: str) -> Page:
    page.goto(f"{api.url}/console/{path}")
    return page
