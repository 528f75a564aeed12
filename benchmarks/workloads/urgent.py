"""How soon an urgent message is received: by a worker with a backlog, and by one who waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.latency import Pace, latencies_of
from benchmarks.jobs.urgent import overtake
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.systems.levels import PostbusUrgent, PostbusWithLevels
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    depth = bench.size(1_000_000, quick=20_000)
    count = bench.size(300, quick=30)
    with_levels = PostbusWithLevels()
    waiting = PostbusUrgent("urgent, not due", bench.size(100_000, quick=1_000))
    pace = Pace(message_count=bench.size(600, quick=50), rate=10)
    with bench.database(with_levels) as url, fresh_place(with_levels, url) as place:
        fill_in_steps(with_levels, url, place, depth)
        settle(url)
        yield (
            Comparison(
                f"{count} urgent messages into a backlog of {depth:,}",
                (Contender("postbus", lambda: overtake(url, place, "consumer_0", count)),),
                (),
                LATENCY,
                rounds=3,
                warm_up=False,
            ),
            _waited_for(url, waiting, pace),
        )


def _waited_for(url: str, urgent: PostbusUrgent, pace: Pace) -> Comparison:
    contenders = (
        Contender("urgent", lambda: latencies_of(urgent, url, pace)),
        Contender("without priorities", lambda: latencies_of(Postbus(), url, pace)),
    )
    ratios = tuple(Ratio(*(each.label(figure) for each in contenders)) for figure in ("p50", "p99"))
    name = f"a worker who waits, {pace.message_count} messages, {pace.rate:.0f} per second"
    return Comparison(name, contenders, ratios, LATENCY, rounds=3, warm_up=False)


WORKLOAD = Workload("urgent", "How soon is an urgent message received?", _prepare)
