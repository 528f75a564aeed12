"""The cost of reading a stream in order, beside walking a primary key through the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, against_each
from benchmarks.jobs.read import read
from benchmarks.progress import say
from benchmarks.server import settle
from benchmarks.systems import Postbus, RawTable
from benchmarks.systems.base import ReadingSystem, fresh_place
from benchmarks.workloads.base import Bench, Workload

_PAGE_SIZE: Final = 1_000


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems: tuple[ReadingSystem, ...] = (Postbus(), RawTable())
    message_count = bench.size(100_000, quick=20_000)
    with ExitStack() as stack:
        url = stack.enter_context(bench.database(*systems))
        contenders = []
        for system in systems:
            # One place for all rounds: reading changes nothing.
            place = stack.enter_context(fresh_place(system, url))
            say(f"filling: {message_count:,} messages for {system.name}")
            system.fill(url, place, message_count)
            contenders.append(_contender(system, url, place, message_count))
        settle(url)
        name = f"{message_count:,} messages, pages of {_PAGE_SIZE:,}"
        yield (Comparison(name, tuple(contenders), against_each(Postbus.name, tuple(contenders))),)


def _contender(system: ReadingSystem, url: str, place: str, message_count: int) -> Contender:
    return Contender(system.name, lambda: read(system, url, place, page_size=_PAGE_SIZE, message_count=message_count))


WORKLOAD = Workload(
    "read_pages", "How fast is a stream read from its beginning, a thousand messages at a time?", _prepare
)
