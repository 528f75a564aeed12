"""`make faults`: random faults for an hour, and a history of everything that was published and delivered meanwhile.

Publishers and workers reach one Postgres by themselves, through a proxy, through PgBouncer and through an HTTP server. Meanwhile
processes are killed, sessions ended, connections cut and held, partitions changed, and Postgres itself is stopped and killed.
After each round all is drained, and the checker of histories says whether a promise was broken: nothing lost, nothing with two
workers, nothing out of order, published = acked + dead + waiting.

    python -m tests.faults.endurance --minutes 60 --seed 7 --output faults.json
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import psycopg

import postbus
from tests import pgbouncer, servers
from tests.faults.endings import ENDINGS, end_server, wait_until_up
from tests.faults.http_server import HttpServer
from tests.faults.processes import SCOPES, STREAM, Processes
from tests.faults.proxy import Proxy
from tests.faults.work import LONGEST_LEASE, SESSION_NAME
from tests.history import Recorder, Scope, by_key_and_level, read
from tests.history.events import Crashed, Delivered, Lost, Published, Received, Scheduled

_LEVELS: Final[dict[str, Scope | None]] = {"key": by_key_and_level, "none": None}
# Of one round.
_SHOWN: Final = 20
_TERMINATE: Final = """
select count(pg_terminate_backend(a.pid))
from pg_stat_activity as a
where a.datname = current_database() and a.application_name = %s and random() < 0.5
"""


@dataclass(slots=True)
class Summary:
    """What has happened so far.

    Attributes:
        seed: Of all that is left to chance.
        commit: The state of the code, and whether it was changed since.
        rounds: How many rounds have ended.
        seconds: How long faults went on.
        published: Messages whose publish returned.
        deliveries: Deliveries of messages to workers, drains included.
        lost_calls: Calls whose connection broke, so that nobody knows what they did.
        faults: How many there were of each kind.
        violations: How often each promise was broken.
    """

    seed: int
    commit: str
    rounds: int = 0
    seconds: float = 0.0
    published: int = 0
    deliveries: int = 0
    lost_calls: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)

    def add(self, directory: Path) -> None:
        """Add what a round has written down."""
        for event in read(directory):
            if isinstance(event, (Published, Scheduled)):
                self.published += 1
            elif isinstance(event, Received):
                self.deliveries += sum(isinstance(each, Delivered) for each in event.deliveries)
            elif isinstance(event, Lost):
                self.lost_calls += 1

    def __str__(self) -> str:
        faults = ", ".join(f"{count} × {name}" for name, count in self.faults.most_common())
        broken = ", ".join(f"{count} × {name}" for name, count in self.violations.items()) or "no promise was broken"
        return (
            f"{self.rounds} rounds, {self.seconds / 60:.0f} minutes, seed {self.seed}: {self.published:,} published, "
            f"{self.deliveries:,} deliveries, {self.lost_calls:,} calls lost; {faults}; {broken}"
        )


class Round:
    """Publishers and workers of one database, and what is done to them.

    Args:
        processes: Those that publish and receive.
        server: The Postgres.
        paths: The ways to it by name.
        proxy: One of them.
        http: Another.
        scopes: The consumers.
    """

    def __init__(
        self,
        processes: Processes,
        server: servers.Server,
        paths: Mapping[str, str],
        proxy: Proxy,
        http: HttpServer,
        scopes: Mapping[str, Scope | None],
    ) -> None:
        self._processes = processes
        self._chance = processes.chance
        self._server = server
        self._paths = paths
        self._proxy = proxy
        self._http = http
        self._scopes = scopes
        self._sweeper = processes.sweeper()
        self._recorder = Recorder(processes.directory, "server")
        self.counts: Counter[str] = Counter()
        for path in paths:
            processes.publisher(url=paths[path])
        for consumer in scopes:
            for path in paths:
                processes.worker(consumer, url=paths[path])
            processes.runner(consumer)

    def inflict(self) -> None:
        """Do one thing, by chance."""
        doing: dict[Callable[[], str], int] = {
            self._kill_worker: 8,
            self._kill_publisher: 3,
            self._kill_sweeper: 2,
            self._end_sessions: 4,
            self._cut_connections: 4,
            self._hold_connections: 3,
            # A consumer finishes the old partitions of all levels first, so urgent messages of the new ones do not come first.
            self._change_partitions: 0 if self._scopes is _LEVELS else 1,
            self._kill_http_server: 1,
            self._end_postgres: 1,
        }
        (fault,) = self._chance.choices(list(doing), weights=list(doing.values()))
        self.counts[fault()] += 1

    def close(self) -> None:
        """Write down nothing more."""
        self._recorder.__exit__(None, None, None)

    def _kill_worker(self) -> str:
        consumer = self._chance.choice(list(self._scopes))
        victim = self._chance.choice(self._processes.workers(consumer))
        if self._chance.random() < 0.5:
            self._processes.kill_at_work(victim)
        else:
            self._processes.kill(victim)
        if self._chance.random() < 0.2:
            self._processes.runner(consumer)
        else:
            self._processes.worker(consumer, url=self._chance.choice(list(self._paths.values())))
        return "worker killed"

    def _kill_publisher(self) -> str:
        publishers = [name for name in self._processes.names() if name.startswith("publisher")]
        self._processes.kill(self._chance.choice(publishers))
        self._processes.publisher(url=self._chance.choice(list(self._paths.values())))
        return "publisher killed"

    def _kill_sweeper(self) -> str:
        self._processes.kill(self._sweeper)
        self._sweeper = self._processes.sweeper()
        return "sweeper killed"

    def _end_sessions(self) -> str:
        with psycopg.connect(self._processes.url, autocommit=True) as connection:
            connection.execute(_TERMINATE.encode(), (SESSION_NAME,))
        return "sessions ended"

    def _cut_connections(self) -> str:
        if self._chance.random() < 0.5:
            self._proxy.cut(self._chance.choice(("before the request arrives", "before the answer arrives")))
        else:
            self._proxy.cut_all()
        return "connections cut"

    def _hold_connections(self) -> str:
        self._proxy.hang()
        # Leases may end while acks are on their way.
        time.sleep(self._chance.uniform(0, LONGEST_LEASE))
        if self._chance.random() < 0.5:
            self._proxy.cut_all()
        self._proxy.resume()
        return "connections held"

    def _change_partitions(self) -> str:
        with postbus.connect(self._processes.url, upkeep=False) as bus:
            bus.alter_stream(STREAM, partitions=self._chance.choice((1, 2, 4, 7)))
            bus.maintain()
        return "partitions changed"

    def _kill_http_server(self) -> str:
        self._http.kill()
        self._http.start()
        return "HTTP server killed"

    def _end_postgres(self) -> str:
        how = self._chance.choice(list(ENDINGS))
        start = time.monotonic()
        end_server(self._server, how)
        if how != "fast":
            # What was not flushed is undone.
            self._recorder.record(Crashed(start=start, end=time.monotonic()))
        wait_until_up(self._server.url)
        return {"fast": "Postgres stopped", "immediate": "Postgres stopped at once", "killed": "Postgres killed"}[how]


@contextmanager
def _round(
    server: servers.Server, directory: Path, seed: int, *, has_levels: bool
) -> Iterator[tuple[Round, Processes]]:
    """A database with publishers and workers at work."""
    scopes = _LEVELS if has_levels else SCOPES
    with ExitStack() as stack:
        url = stack.enter_context(servers.database(server.url))
        with postbus.connect(url, upkeep=False) as bus:
            bus.create_stream(STREAM, partitions=4, segment_bytes=1 << 20)
            for order in scopes:
                bus.create_consumer(STREAM, order, order=order, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
        proxy = stack.enter_context(Proxy(url))
        http = stack.enter_context(HttpServer(url))
        paths = {"postgres": url, "proxy": proxy.url, "http": http.url}
        if pgbouncer.program() is not None:
            paths["pgbouncer"] = stack.enter_context(pgbouncer.running(url, pool_size=8))
        priorities = (1, 4, 4, 4, 7, 9) if has_levels else (4,)
        processes = stack.enter_context(Processes(url, directory, seed=seed, scopes=scopes, priorities=priorities))
        work = Round(processes, server, paths, proxy, http, scopes)
        stack.callback(work.close)
        processes.wait_for_more()
        yield work, processes


def endure(server: servers.Server, summary: Summary, *, minutes: float, round_seconds: float) -> None:
    """Go through rounds until the time is over, or a promise was broken."""
    chance = random.Random(summary.seed)
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end and not summary.violations:
        seed = chance.randrange(2**32)
        directory = Path(tempfile.mkdtemp(prefix="postbus-faults-"))
        with _round(server, directory, seed, has_levels=summary.rounds % 2 == 1) as (work, processes):
            start = time.monotonic()
            while time.monotonic() < min(start + round_seconds, end):
                time.sleep(chance.uniform(0, 1))
                work.inflict()
            processes.check_alive()
            summary.seconds += time.monotonic() - start
            broken = processes.broken_promises()
            summary.faults += work.counts
        summary.add(directory)
        summary.rounds += 1
        if broken:
            print(f"the history of this round is kept in {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory)
        summary.violations.update(violation.promise for _, violation in broken)
        for consumer, violation in broken[:_SHOWN]:
            print(f"seed {seed}, order {consumer}: {violation}", file=sys.stderr)
        print(summary, file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--round-seconds", type=float, default=60, help="how long faults go on before all is checked")
    parser.add_argument("--seed", type=int, default=None, help="of a run to be done again; random")
    parser.add_argument("--output", type=Path, help="a JSON file for the summary")
    given = parser.parse_args()
    summary = Summary(random.randrange(2**32) if given.seed is None else given.seed, _commit())
    with servers.running("pg18") as server:
        endure(server, summary, minutes=given.minutes, round_seconds=given.round_seconds)
    print(summary)
    if given.output is not None:
        written = {
            **asdict(replace(summary, faults=Counter(), violations=Counter())),
            "seconds": round(summary.seconds),
        }
        written.update(faults=dict(summary.faults), violations=dict(summary.violations))
        given.output.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    return 1 if summary.violations else 0


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
