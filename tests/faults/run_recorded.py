"""A process that runs a worker whose handler does whatever handlers do, and records its deliveries, until it is told to stop."""

from __future__ import annotations

import logging
import os
import random
import time
from pathlib import Path
from typing import Any

import postbus
from tests.faults.connecting import connect
from tests.faults.work import LONGEST_LEASE, SESSION_NAME
from tests.history import RecordedConsumer, Recorder


def run_recorded(url: str, stream: str, consumer: str, directory: Path, name: str, seed: int) -> None:
    os.environ["PGAPPNAME"] = SESSION_NAME
    logging.getLogger("postbus").setLevel(logging.CRITICAL)
    chance = random.Random(seed)

    def handle(delivery: postbus.Delivery) -> None:
        time.sleep(chance.uniform(0, 0.01))
        outcome = chance.random()
        if outcome < 0.05:
            raise postbus.Retry(delay=chance.uniform(0, 0.1))
        if outcome < 0.1:
            raise ValueError("the handler failed")
        if outcome < 0.12:
            raise postbus.Reject("it will never do")

    with Recorder(directory, name) as recorder, connect(url) as bus:
        recorded: Any = RecordedConsumer(bus.consumer(stream, consumer), recorder)
        postbus.Worker(recorded, handle, concurrency=4, ack_wait=LONGEST_LEASE, grace=5).run()
