"""A loop over a group's batches that is killed loses nothing, and none of its partition comes before what it held."""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path

import pytest

import postbus
from postbus import Message
from tests.faults.run_loop import run_loop
from tests.waiting import until

COUNT = 3000

_processes = multiprocessing.get_context("forkserver")


def lines(path: Path) -> list[list[int]]:
    return [[int(word) for word in line.split()] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_loops_lose_nothing_and_keep_the_order(own_url: str, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    path = tmp_path / "done"
    with postbus.connect(own_url) as bus:
        bus.create_stream("orders", partitions=4)
        bus.create_group("orders", "g")
        bus.publish_many("orders", [Message(key=f"k{n % 50}", data=n) for n in range(COUNT)])

    def start() -> multiprocessing.process.BaseProcess:
        process = _processes.Process(target=run_loop, args=(own_url, "orders", path), daemon=True)
        process.start()
        return process

    loops = [start(), start()]
    for turn in range(1, 5):
        until(lambda least=turn * 60: len(lines(path)) >= least, "loops go on")  # type: ignore[misc]
        victim = loops.pop(dice.randrange(2))
        victim.kill()
        victim.join()
        loops.append(start())
    for process in loops:
        process.join(60)
        assert process.exitcode == 0

    done: dict[int, list[int]] = {}
    for partition, *numbers in lines(path):
        known = done.setdefault(partition, [])
        # What comes again was done before; what is new follows the last that was.
        assert [n for n in numbers if n not in known] == [n for n in numbers if not known or n > max(known)]
        known += numbers
    assert {n for numbers in done.values() for n in numbers} == set(range(COUNT))
    with postbus.connect(own_url) as bus:
        stats = bus.group("orders", "g").stats()
    assert (stats.lag_estimate, stats.in_flight) == (0, 0)
