"""Publishing a file by the command, beside messages that a program has in hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import MEMORY, Comparison, Contender, Ratio
from benchmarks.jobs.publish import Load, publish_fresh
from benchmarks.jobs.send_file import Lines, lines, memory_of_send, send
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    load = Load(producer_count=1, batch_size=1_000, message_count=bench.size(1_000_000, quick=20_000))
    with (
        bench.database(_system) as url,
        lines(load.message_count) as many,
        lines(load.message_count // 10) as few,
    ):
        speed = (
            Contender("send --file", lambda: send(url, many)),
            Contender("publish_many by 1,000", lambda: publish_fresh(_system, url, load)),
        )
        memory = (_memory(url, many), _memory(url, few))
        yield (
            Comparison(f"{many.count:,} lines", speed, (Ratio(speed[0].name, speed[1].name),), rounds=3),
            Comparison(
                "memory of the command",
                memory,
                (Ratio(memory[0].name, memory[1].name),),
                MEMORY,
                rounds=3,
                warm_up=False,
            ),
        )


def _memory(url: str, source: Lines) -> Contender:
    return Contender(f"{source.count:,} lines", lambda: memory_of_send(url, source))


WORKLOAD = Workload("send_file", "How fast is a file of JSON lines published, and in how much memory?", _prepare)
