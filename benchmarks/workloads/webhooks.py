"""How many webhooks a server takes in: each verified, deduplicated and durable; and how even its answers are at half of that."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender, Ratio
from benchmarks.http_server import serving
from benchmarks.jobs.http_webhooks import WebhookLoad, latencies_of_webhooks, send_webhooks
from benchmarks.progress import say
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    load = WebhookLoad(connection_count=64, message_count=bench.size(32_000, quick=3_200))
    seconds = bench.size(20, quick=3)
    with bench.database(Postbus()) as url, serving(url) as server:
        send_webhooks(server, url, load)
        rate = statistics.median(send_webhooks(server, url, load).rate for _ in range(3)) / 2
        say(f"half load: {rate:,.0f} webhooks per second")
        yield (
            Comparison("64 connections", (Contender("server", lambda: send_webhooks(server, url, load)),), ()),
            Comparison(
                f"{rate:,.0f} webhooks per second",
                (Contender("server", lambda: latencies_of_webhooks(server, url, rate=rate, seconds=seconds)),),
                (Ratio("server, p99", "server, p50"),),
                LATENCY,
                rounds=3,
                warm_up=False,
                most_stolen=0.005,
            ),
        )


WORKLOAD = Workload("webhooks", "How many webhooks per second does a server take in, and how evenly?", _prepare)
