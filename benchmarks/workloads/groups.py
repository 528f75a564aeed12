"""Groups, which read by position: how fast, and whether five of them keep up with a writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.fan_out import fan_out
from benchmarks.jobs.receive import ReceiveLoad, receive_contenders
from benchmarks.systems.base import ExchangingSystem
from benchmarks.systems.groups import GROUPS, PARTITIONS, CounterRow, PostbusGroupLoops, PostbusGroups
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    shared = (PostbusGroups(), PostbusGroupLoops(), CounterRow())
    each: tuple[ExchangingSystem, ...] = (
        PostbusGroups(shared=False),
        PostbusGroupLoops(shared=False),
        CounterRow(shared=False),
    )
    load = ReceiveLoad(worker_count=2, batch_size=100, message_count=bench.size(300_000, quick=10_000))
    message_count = bench.size(40_000, quick=4_000)
    with bench.database(*shared) as url:
        contenders = tuple(Contender(system.name, partial(fan_out, system, url, message_count)) for system in each)
        ratios = tuple(
            Ratio(f"{system.name}, {reads}", f"{system.name}, writes")
            for system in each
            for reads in ("reads", "reads of a backlog")
        )
        yield (
            Comparison(
                f"one group, {PARTITIONS} partitions, {load.name}",
                receive_contenders(shared, url, load),
                (Ratio(PostbusGroups.name, CounterRow.name), Ratio(PostbusGroupLoops.name, CounterRow.name)),
            ),
            Comparison(f"1 writer and {GROUPS} groups, batches of 100", contenders, ratios, rounds=3),
        )


WORKLOAD = Workload("groups", "How fast do groups read by position, and do five keep up with a writer?", _prepare)
