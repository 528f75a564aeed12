"""The processes of a delivery fault test, which write one history: a publisher, and workers of a consumer of each order."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import postbus
from tests.faults.hostile import attack
from tests.faults.publish_keys import NAME, PATTERN, PREFIX, publish_keys
from tests.faults.run_recorded import run_recorded
from tests.faults.sweep import sweep
from tests.faults.work import work
from tests.history import (
    Channels,
    History,
    RecordedConsumer,
    Recorder,
    Scope,
    Violation,
    by_key,
    by_partition,
    check,
    check_channels,
    check_keys_apart,
    read,
    remainder_of,
)
from tests.history.events import Lost, Scheduled
from tests.history.recorder import path_of
from tests.waiting import until

STREAM: Final = "orders"
# The consumers are called after their order.
SCOPES: Final[dict[str, Scope | None]] = {"key": by_key, "none": None, "partition": by_partition}

# Children of a server that has imported everything start in milliseconds, and inherit no threads.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.faults.processes", "postbus.client._sync.connect", "postbus.transport._sync.postgres"]
)


class Processes:
    """Starts processes, ends them, and tells what became of the messages.

    Args:
        url: A database with the stream and its consumers.
        directory: Where the history is written.
        seed: Of all that is left to chance.
        scopes: The consumers, and within what each promises order.
        priorities: Those of messages.
        channels: The limits of channels, if the stream has any.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        *,
        seed: int,
        scopes: Mapping[str, Scope | None] = SCOPES,
        priorities: Sequence[int] = (4,),
        channels: Channels | None = None,
    ) -> None:
        self.url = url
        self._scopes = scopes
        self._priorities = priorities
        self._channels = channels
        self.directory = directory
        self.chance = random.Random(seed)
        self._seed = seed
        self._members: dict[str, BaseProcess] = {}
        self._started = 0

    def publisher(self, *, url: str | None = None) -> str:
        return self._start("publisher", publish_keys, url or self.url, STREAM, self._priorities)

    def worker(self, consumer: str, *, url: str | None = None) -> str:
        """Start a worker, perhaps one who reaches the database by another way, or by a server."""
        return self._start(f"worker-{consumer}", work, url or self.url, STREAM, consumer)

    def runner(self, consumer: str) -> str:
        """Start a worker that is a `consumer.run`."""
        return self._start(f"worker-{consumer}", run_recorded, self.url, STREAM, consumer)

    def sweeper(self) -> str:
        return self._start("sweeper", sweep, self.url, STREAM)

    def names(self) -> list[str]:
        """All that run, the eldest first."""
        return list(self._members)

    def attacker(self, role: str) -> str:
        """Start a role that has no rights on the stream, and does what it can to it."""
        return self._start("attacker", attack, self.url, role, STREAM)

    def workers(self, consumer: str) -> list[str]:
        """Those of a consumer, the eldest first."""
        return [name for name in self._members if name.startswith(f"worker-{consumer}-")]

    def _start(self, role: str, program: Callable[..., None], *arguments: Any) -> str:
        self._started += 1
        name = f"{role}-{self._started}"
        seed = self.chance.randrange(2**32)
        process = _processes.Process(
            target=_run, args=(program, *arguments, self.directory, name, seed), name=name, daemon=True
        )
        process.start()
        self._members[name] = process
        return name

    def wait_for_lines(self, name: str, count: int) -> None:
        """Wait until one process has written more lines."""
        self._wait_for_growth(name, [name], count)

    def wait_for_more(self) -> None:
        """Wait until the workers of each consumer have done some more."""
        for consumer in self._scopes:
            self._wait_for_growth(f"workers of {consumer}", self.workers(consumer), 30)

    def _wait_for_growth(self, who: str, names: list[str], count: int) -> None:
        goal = self._line_count(names) + count

        def is_reached() -> bool:
            self.check_alive()
            return self._line_count(names) >= goal

        until(is_reached, f"{who} write {count} lines")

    def _line_count(self, names: list[str]) -> int:
        paths = [path_of(self.directory, name) for name in names]
        return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())

    def check_alive(self) -> None:
        """Fail if a process has ended by itself: its error is on stderr."""
        assert [name for name, process in self._members.items() if process.exitcode is not None] == []

    def lost_count(self) -> int:
        """How many calls were lost on the way so far."""
        return sum(isinstance(event, Lost) for event in read(self.directory))

    def kill_at_work(self, name: str) -> None:
        """Kill a worker in the middle of a call about deliveries, if it makes one soon."""
        path = path_of(self.directory, name)
        end = time.monotonic() + 0.2
        while time.monotonic() < end and not (path.exists() and _is_settling(path)):
            pass
        self.kill(name)

    def kill(self, name: str) -> None:
        process = self._members.pop(name)
        process.kill()
        process.join()

    def stop(self) -> None:
        """Let all finish what they are about, and end."""
        self.check_alive()
        for process in self._members.values():
            process.terminate()
        for name, process in self._members.items():
            process.join(30)
            assert process.exitcode is not None, f"{name} does not end:\n{self._stacks_of(name, process)}"
            # One that was just started may not listen to signals yet; then it has done nothing either.
            may_end_with = (0,) if path_of(self.directory, name).exists() else (0, -signal.SIGTERM)
            assert process.exitcode in may_end_with, f"{name} ended with {process.exitcode}"
        self._members.clear()

    def _stacks_of(self, name: str, process: BaseProcess) -> str:
        """What a process that hangs is about; it ends by that."""
        os.kill(process.pid or 0, signal.SIGABRT)
        process.join()
        return _stacks(self.directory, name).read_text()

    def check_promises(self) -> None:
        """Let all stop, finish what is left, and fail if a promise was broken."""
        found = [f"order {name}: {violation}" for name, violation in self.broken_promises()]
        assert not found, "\n".join([f"seed {self._seed}, {len(found)} violations in {self.directory}", *found[:20]])

    def broken_promises(self) -> list[tuple[str, Violation]]:
        """Let all stop, finish what is left; each consumer with what went wrong with it."""
        self.stop()
        with postbus.connect(self.url) as bus:
            until(lambda: bus.horizon(STREAM) == bus.stream_info(STREAM).last_seq, "no publisher holds the horizon")
            self._check_scheduled(bus)
            for consumer in self._scopes:
                self._drain(bus, consumer)
            return [(name, violation) for name in self._scopes for violation in self._check(bus, name)]

    def _check_scheduled(self, bus: postbus.Bus) -> None:
        """What was scheduled was published, once."""
        until(lambda: bus.sweep(STREAM) == 0 and not bus.list_scheduled(STREAM), "nothing waits for its time")
        names = [message.headers[NAME] for message in bus.scan(STREAM) if message.headers]
        assert len(names) == len(set(names)), "a scheduled message was published twice"
        told = {event.name for event in read(self.directory) if isinstance(event, Scheduled)}
        assert not told - set(names), "a scheduled message was lost"

    def _drain(self, bus: postbus.Bus, name: str) -> None:
        consumer = bus.consumer(STREAM, name)
        with Recorder(self.directory, f"drain-{name}") as recorder:
            recorded = RecordedConsumer(consumer, recorder)

            def is_empty() -> bool:
                while batch := recorded.receive(1000, ack_wait=60):
                    recorded.ack(list(batch))
                stats = consumer.stats()
                return (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)

            until(is_empty, f"consumer {name} has nothing left")

    def _check(self, bus: postbus.Bus, name: str) -> list[Violation]:
        is_filtered = bus.consumer(STREAM, name).info().filter_key_pattern == PATTERN
        prefix = PREFIX if is_filtered else None
        history = History.of(read(self.directory), STREAM, name, by_key=name == "key", prefix=prefix)
        remainder = remainder_of(bus, STREAM, name)
        assert history.published, "something was published"
        assert not remainder.left, "all was finished"
        max_deliver = bus.consumer(STREAM, name).info().max_deliver
        found = check(history, remainder, scope=self._scopes[name], max_deliver=max_deliver)
        if self._channels is not None:
            found += check_channels(history, self._channels)
        # Also of different levels.
        return [*found, *check_keys_apart(history)] if name == "key" else found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._members):
            self.kill(name)


def _run(program: Callable[..., None], *arguments: Any) -> None:
    """What each process does: its program, ready to tell what it is about."""
    *_, directory, name, _ = arguments
    with _stacks(directory, name).open("w") as stacks:
        faulthandler.enable(stacks)
        program(*arguments)


def _stacks(directory: Path, name: str) -> Path:
    return directory / f"{name}.stacks"


def _is_settling(path: Path) -> bool:
    """Whether the last that a process wrote is that it begins such a call."""
    *_, last = path.read_bytes().splitlines() or [b""]
    return b"Settling" in last
