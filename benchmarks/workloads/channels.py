"""What channels cost a publisher and a worker, and turns of 1,000 tenants beside LonnyMQ's channel row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender, Measurement, Ratio, against_each
from benchmarks.jobs.publish import Load, fresh_contenders
from benchmarks.jobs.receive import ReceiveLoad, receive_contenders
from benchmarks.jobs.work import work_all
from benchmarks.systems.base import ConsumingSystem
from benchmarks.systems.channels import FairWorkers, LonnyMqChannels, LonnyMqChannelWorkers, PostbusChannels
from benchmarks.systems.job_queues import CONCURRENCY, JobQueue
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    plain, by_channel, fair, limited = (PostbusChannels(kind) for kind in ("none", "channels", "fair", "limited"))
    rival = LonnyMqChannels()
    loads = (
        Load(producer_count=2, batch_size=100, message_count=bench.size(40_000, quick=2_000)),
        Load(producer_count=2, batch_size=1, message_count=bench.size(2_000, quick=200)),
    )
    receives = (
        (
            ReceiveLoad(worker_count=2, batch_size=100, message_count=bench.size(40_000, quick=2_000)),
            (plain, by_channel),
        ),
        (ReceiveLoad(worker_count=2, batch_size=1, message_count=bench.size(2_000, quick=200)), ()),
    )
    with bench.database(plain, rival) as url:
        yield (
            *(_publishing(plain, by_channel, url, load) for load in loads),
            *(_receiving((fair, limited, rival, *others), url, load) for load, others in receives),
            _working(bench, bench.size(5_000, quick=300)),
        )


def _publishing(plain: PostbusChannels, by_channel: PostbusChannels, url: str, load: Load) -> Comparison:
    contenders = fresh_contenders((by_channel, plain), url, load)
    return Comparison(f"publish, {load.name}", contenders, (Ratio(by_channel.name, plain.name),), rounds=3)


def _receiving(systems: tuple[ConsumingSystem, ...], url: str, load: ReceiveLoad) -> Comparison:
    contenders = receive_contenders(systems, url, load)
    return Comparison(f"receive, {load.name}", contenders, against_each(systems[0].name, contenders), rounds=3)


def _working(bench: Bench, job_count: int) -> Comparison:
    systems: tuple[JobQueue, ...] = (FairWorkers(), LonnyMqChannelWorkers())
    contenders = tuple(Contender(system.name, partial(_work, bench, system, job_count)) for system in systems)
    name = f"one message at a time, {CONCURRENCY} handlers of a worker"
    return Comparison(name, contenders, against_each(systems[0].name, contenders), rounds=3, warm_up=False)


def _work(bench: Bench, system: JobQueue, job_count: int) -> Measurement:
    with bench.database() as url:
        return work_all(system, url, job_count)


WORKLOAD = Workload("channels", "What do channels cost, and how fast are turns of a thousand tenants?", _prepare)
