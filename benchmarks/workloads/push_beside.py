"""Whether an endpoint that is dead, or never answers, slows another in the same process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.endpoint import receiving
from benchmarks.jobs.push import PushLoad, push
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    load = PushLoad(bench.size(20_000, quick=2_000))
    with bench.database(Postbus()) as url, receiving() as fast, receiving(is_silent=True) as silent, _closed() as dead:
        contenders = (
            Contender("alone", lambda: push(url, fast.url, load)),
            Contender("beside a dead one", lambda: push(url, fast.url, load, beside=[dead])),
            Contender("beside a silent one", lambda: push(url, fast.url, load, beside=[silent.url])),
        )
        ratios = (Ratio("beside a dead one", "alone"), Ratio("beside a silent one", "alone"))
        yield (Comparison("one process", contenders, ratios),)


@contextmanager
def _closed() -> Iterator[str]:
    """A port that refuses connections, and that nobody else gets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


WORKLOAD = Workload("push_beside", "Does a dead or silent endpoint slow another?", _prepare)
