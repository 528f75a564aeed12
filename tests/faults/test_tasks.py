"""Programs that work on tasks in the background are killed: each dead letter is redriven once."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter

import pytest

import postbus
from postbus import Message
from tests.waiting import until

pytestmark = pytest.mark.newest_server
_fresh = multiprocessing.get_context("spawn")
COUNT = 6_000


def keep_going(url: str) -> None:
    with postbus.connect(url, pool_size=2, upkeep=False) as bus:
        while True:
            if not bus.tasks.run():
                time.sleep(0.05)


def test_killed_programs_redrive_each_dead_letter_once(fresh_url: str) -> None:
    chance = random.Random(33)
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("orders")
        bus.create_stream("again")
        consumer = bus.create_consumer("orders", "billing", order="none", max_deliver=1)
        bus.publish_many("orders", [Message(key=f"k.{n % 50}", data=n) for n in range(COUNT)])
        while batch := consumer.receive(1000):
            consumer.terminate(batch, reason="broken")
        task = bus.tasks.redrive("orders", "billing", to_stream="again", rate=3000)
        processes = [_fresh.Process(target=keep_going, args=(fresh_url,), daemon=True) for _ in range(2)]
        for process in processes:
            process.start()
        for _ in range(6):
            time.sleep(chance.uniform(0.2, 0.6))
            victim = chance.randrange(2)
            os.kill(processes[victim].pid or 0, signal.SIGKILL)
            processes[victim].join()
            processes[victim] = _fresh.Process(target=keep_going, args=(fresh_url,), daemon=True)
            processes[victim].start()
        until(lambda: bus.tasks.list_all()[0].state != "running", "the task ends", seconds=60)
        for process in processes:
            process.kill()
            process.join()

        (ended,) = bus.tasks.list_all("orders")
        assert (ended.id, ended.state, ended.done_count) == (task, "done", COUNT)
        assert Counter(message.data for message in bus.scan("again")) == Counter(range(COUNT))
        assert consumer.dead_letters() == []
