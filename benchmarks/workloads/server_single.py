"""What publishing together what arrives together is worth: 64 connections, one message a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.http_server import serving
from benchmarks.jobs.http_publish import HttpLoad, publish_over_http
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    load = HttpLoad(connection_count=64, batch_size=1, message_count=bench.size(64_000, quick=3_200))
    with bench.database(Postbus()) as url, serving(url) as together, serving(url, coalesce=False) as apart:
        contenders = (
            Contender("together", lambda: publish_over_http(together, url, load)),
            Contender("one by one", lambda: publish_over_http(apart, url, load)),
        )
        yield (Comparison("single messages, 64 connections", contenders, (Ratio("together", "one by one"),)),)


WORKLOAD = Workload("server_single", "What is it worth to publish together what arrives together?", _prepare)
