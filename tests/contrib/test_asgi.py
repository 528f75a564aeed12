"""A bus and workers that live as long as a FastAPI app."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import postbus
from postbus.contrib.asgi import Handler, lifespan
from postbus.testing import assert_published
from tests.docs.test_snippets import snippets
from tests.waiting import until


@pytest.fixture
def orders(postbus_bus: postbus.Bus) -> postbus.Bus:
    postbus_bus.create_stream("orders")
    postbus_bus.create_consumer("orders", "invoices")
    return postbus_bus


def test_the_how_to_publishes_and_handles(
    orders: postbus.Bus, postbus_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POSTBUS_URL", postbus_url)
    (page,) = snippets("docs/how-to/use-with-fastapi.md", "python")
    # FastAPI looks annotations up in the module of a function.
    scope: dict[str, Any] = {"__name__": "shop"}
    exec(page, scope)

    with TestClient(scope["app"]) as client:
        assert client.post("/orders", params={"customer": "ada"}).json() == {"seq": 1}
        until(lambda: orders.consumer("orders", "invoices").stats().backlog == 0, "the invoice is sent")

    assert_published(orders, "orders", key="orders.ada", count=1)
    assert capsys.readouterr().out == "invoice for ada\n"


def test_an_app_does_not_start_without_its_consumer(orders: postbus.Bus, postbus_url: str) -> None:
    app = FastAPI(lifespan=lifespan(postbus_url, Handler("orders", print, consumer="invoice")))

    with pytest.raises(postbus.NotFound, match="invoice"), TestClient(app):
        pass


def test_a_stop_lets_handlers_finish_and_gives_the_rest_back(orders: postbus.Bus, postbus_url: str) -> None:
    seen: list[Any] = []

    def handle(delivery: postbus.Delivery) -> None:
        seen.append(delivery.data)
        app.state.began = True

    app = FastAPI(lifespan=lifespan(postbus_url, Handler("orders", handle, consumer="invoices", concurrency=1)))
    with TestClient(app):
        for number in range(20):
            orders.publish("orders", key="k", data=number)
        until(lambda: hasattr(app.state, "began"), "the worker handles")

    assert seen == list(range(len(seen)))
    assert orders.consumer("orders", "invoices").stats().backlog == 20 - len(seen)


def test_a_queue_needs_no_consumer(postbus_bus: postbus.Bus, postbus_url: str) -> None:
    emails = postbus_bus.create_queue("emails")
    seen: list[Any] = []
    app = FastAPI(lifespan=lifespan(postbus_url, Handler("emails", lambda delivery: seen.append(delivery.data))))

    with TestClient(app):
        emails.publish("ada")
        until(lambda: seen == ["ada"], "the queue is handled")


def test_a_worker_that_ends_by_an_error_does_not_end_the_app_in_silence(
    orders: postbus.Bus, postbus_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = FastAPI(lifespan=lifespan(postbus_url, Handler("orders", print, consumer="invoices")))
    client = TestClient(app)
    client.__enter__()

    orders.consumer("orders", "invoices").drop()

    until(lambda: "a worker has ended" in caplog.text, "the log says so", seconds=60)
    with pytest.raises(postbus.NotFound):
        client.__exit__(None, None, None)
