"""Programs that keep recurring schedules going are killed: each time is published once."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import postbus
from tests.waiting import until

pytestmark = pytest.mark.newest_server
_fresh = multiprocessing.get_context("spawn")


def keep_going(url: str) -> None:
    with postbus.connect(url, pool_size=2, upkeep=False) as bus:
        while True:
            bus.schedules.fill()
            bus.sweep()


def test_killed_programs_publish_each_time_once(fresh_url: str) -> None:
    chance = random.Random(28)
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("ticks")
        for n in range(10):
            bus.schedules.create("ticks", f"s{n}", every=1, data=n, catch_up="all", max_catch_up=1000)
        begun = datetime.now(UTC)
        processes = [_fresh.Process(target=keep_going, args=(fresh_url,), daemon=True) for _ in range(3)]
        for process in processes:
            process.start()
        until(lambda: next(iter(bus.scan("ticks")), None) is not None, "they publish", seconds=60)
        for _ in range(8):
            time.sleep(chance.uniform(0.2, 1.2))
            # Times are taken back and worked out again meanwhile.
            bus.schedules.alter("ticks", f"s{chance.randrange(10)}", max_catch_up=chance.randrange(500, 1000))
            victim = chance.randrange(3)
            os.kill(processes[victim].pid or 0, signal.SIGKILL)
            processes[victim].join()
            processes[victim] = _fresh.Process(target=keep_going, args=(fresh_url,), daemon=True)
            processes[victim].start()
        for process in processes:
            process.kill()
            process.join()
        bus.sweep()
        ended = datetime.now(UTC)

        found = Counter(
            ((each.headers or {})["postbus-schedule"], (each.headers or {})["postbus-occurrence"])
            for each in bus.scan("ticks")
        )
    assert set(found.values()) == {1}
    for n in range(10):
        times = sorted(datetime.fromisoformat(at) for name, at in found if name == f"s{n}")
        assert times[0] <= begun + timedelta(seconds=2)
        assert times[-1] >= ended - timedelta(seconds=2)
        assert all(after - before == timedelta(seconds=1) for before, after in pairwise(times))
