"""What the HTTP server costs on top of the library, in bulk.

The load comes from one process with few connections, whose requests are made beforehand, as wrk's would be; the library's
producers are two processes that encode what they publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.http_server import serving
from benchmarks.jobs.http_publish import HttpLoad, publish_over_http
from benchmarks.jobs.publish import Load, publish_fresh
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    library = Postbus()
    count = bench.size(100_000, quick=10_000)
    direct = Load(producer_count=2, batch_size=100, message_count=count)
    load = HttpLoad(connection_count=4, batch_size=100, message_count=count)
    with bench.database(library) as url, serving(url) as server:
        contenders = (
            Contender("server", lambda: publish_over_http(server, url, load)),
            Contender("library", lambda: publish_fresh(library, url, direct)),
        )
        yield (Comparison("batches of 100", contenders, (Ratio("server", "library"),)),)


WORKLOAD = Workload("server_batches", "How fast do messages go in over HTTP, a hundred at a time?", _prepare)
