"""How even the answers are at half of the load that the server can take: single messages, at random moments."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender, Ratio
from benchmarks.http_server import serving
from benchmarks.jobs.http_publish import HttpLoad, latencies_over_http, publish_over_http
from benchmarks.progress import say
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    load = HttpLoad(connection_count=64, batch_size=1, message_count=bench.size(32_000, quick=3_200))
    seconds = bench.size(20, quick=3)
    with bench.database(Postbus()) as url, serving(url) as server:
        publish_over_http(server, url, load)
        # Of three: what a host gives in two seconds differs by half, and every round is held to it.
        rate = statistics.median(publish_over_http(server, url, load).rate for _ in range(3)) / 2
        say(f"half load: {rate:,.0f} messages per second")
        contender = Contender("server", lambda: latencies_over_http(server, url, rate=rate, seconds=seconds))
        ratios = (Ratio("server, p99", "server, p50"),)
        name = f"{rate:,.0f} requests per second"
        # What is stolen stops everything for tens of milliseconds: a hundredth of all time is a p99 of its own.
        yield (Comparison(name, (contender,), ratios, LATENCY, rounds=3, warm_up=False, most_stolen=0.005),)


WORKLOAD = Workload("server_latency", "How long does a publish over HTTP take at half load?", _prepare)
