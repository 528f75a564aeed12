"""The SQS wire beside moto's server, from boto3, and beside our own HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Measurement, Ratio
from benchmarks.http_server import serving
from benchmarks.jobs.sqs import by_boto, by_wire
from benchmarks.moto_server import serving_moto
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    singles, tens = bench.size(1_600, quick=240), bench.size(4_000, quick=800)
    bare = bench.size(8_000, quick=800)
    with bench.database(Postbus()) as url, serving(url) as server, serving_moto() as moto:
        own = f"http://{server.host}:{server.port}"

        def boto(title: str, batch_size: int, count: int) -> Comparison:
            def measured(url: str, *, is_exact: bool) -> Measurement:
                return by_boto(url, batch_size=batch_size, message_count=count, is_exact=is_exact)

            contenders = (
                Contender("postbus", lambda: measured(own, is_exact=True)),
                # By several receivers at once, moto gives some messages to two of them.
                Contender("moto", lambda: measured(moto, is_exact=False)),
            )
            return Comparison(f"boto3, 8 threads, {title}", contenders, (Ratio("postbus", "moto"),))

        protocols = (
            Contender("sqs", lambda: by_wire(server, url, "sqs", message_count=bare)),
            Contender("own http", lambda: by_wire(server, url, "own", message_count=bare)),
        )
        yield (
            boto("one by one", 1, singles),
            boto("by 10", 10, tens),
            Comparison("a bare client, 8 connections, one by one", protocols, (Ratio("sqs", "own http"),)),
        )


WORKLOAD = Workload("sqs", "How many messages per second do clients of SQS send, receive and delete?", _prepare)
