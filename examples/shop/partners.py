"""Whom the shop talks to: a table of products that changes, a partner who gets pushes, a provider who sends webhooks."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import psycopg

import postbus

PRODUCTS = ("sneaker", "boot", "sandal", "loafer", "clog", "slipper")


class Partner(BaseHTTPRequestHandler):
    """An endpoint that mostly takes what it gets."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status = random.choices((200, 500, 429), (96, 3, 1))[0]
        body = b"thank you" if status == 200 else b"our database is busy"
        self.send_response(status)
        if status == 429:
            self.send_header("retry-after", "2")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def partner() -> Iterator[str]:
    """The URL of the partner's endpoint."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Partner) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/orders"
        listening.shutdown()


def create(bus: postbus.Bus, database: str, endpoint: str) -> None:
    """A source of the table of products, a source of webhooks, and an endpoint."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "create table public.products (id int primary key, name text, stock int, price numeric(10, 2))"
        )
        with connection.cursor() as cursor:
            rows = [(number, name, 500, 20 + 10 * number) for number, name in enumerate(PRODUCTS)]
            cursor.executemany("insert into public.products values (%s, %s, %s, %s)", rows)
    bus.create_stream("catalog")
    bus.sources.create("products", "catalog", tables=["public.products"])
    bus.create_stream("refunds", dedup_window=3 * 86_400)
    bus.webhook_sources.create("payment-provider", "refunds", kind="none", max_rate=20)
    bus.create_consumer("orders", "partner", filter="orders.*.paid", max_deliver=5).push.set(
        endpoint, concurrency=4, keep_successes=True
    )


def change_products(database: str, stop: threading.Event) -> None:
    """Stock goes down with each sale, and now and then up."""
    with psycopg.connect(database, autocommit=True) as connection:
        while not stop.wait(random.uniform(0.1, 0.6)):
            product = random.randrange(len(PRODUCTS))
            if random.random() < 0.1:
                connection.execute("update public.products set stock = stock + 50 where id = %s", (product,))
            else:
                connection.execute(
                    "update public.products set stock = greatest(stock - 1, 0) where id = %s", (product,)
                )


def send_webhooks(url: str, stop: threading.Event) -> None:
    """The payment provider tells of refunds."""
    number = 0
    while not stop.wait(random.uniform(0.5, 2)):
        number += 1
        event = {"id": f"evt_{number}", "type": "refund", "amount": random.randint(5, 90)}
        # The server may not be up yet.
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{url}/api/webhook/payment-provider", json=event)
