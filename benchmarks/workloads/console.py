"""Whether the console stays quick and cheap on a large system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks.comparison import CPU, LATENCY, Comparison, Contender
from benchmarks.fill import fill_in_steps
from benchmarks.http_server import serving
from benchmarks.jobs.console import create_many, look_at, watch
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload

_PAGES: Final = {
    "overview": "",
    "streams": "streams",
    "a stream": "streams/{place}",
    "its messages": "streams/{place}/messages",
    "a search by key": "streams/{place}/messages?key=no.such.key",
    "one message": "streams/{place}/messages/{half}",
    "consumers": "consumers",
    "a consumer": "streams/{place}/consumers/consumer_0",
    "its dead letters": "streams/{place}/consumers/consumer_0/dead",
    "dead letters": "dead",
    "schedules": "schedules",
    "doctor": "doctor",
}


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    messages, streams = bench.size(10_000_000, quick=20_000), bench.size(1_000, quick=20)
    system = Postbus()
    with bench.database(system) as url, fresh_place(system, url) as place, serving(url) as server:
        fill_in_steps(system, url, place, messages)
        create_many(url, streams - 1)
        settle(url)
        looks = tuple(
            Contender(name, partial(look_at, server, path.format(place=place, half=messages // 2)))
            for name, path in _PAGES.items()
        )
        watched = Contender("overview", partial(watch, server, "", bench.size(30, quick=6)))
        name = f"{messages:,} messages, {streams:,} streams and consumers"
        yield (
            Comparison(f"{name}: to the first byte", looks, (), LATENCY, rounds=1, warm_up=False),
            Comparison("the server's process while one browser watches", (watched,), (), CPU, rounds=1, warm_up=False),
        )


WORKLOAD = Workload("console", "Is the console quick and cheap where there is much to show?", _prepare)
