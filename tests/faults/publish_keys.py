"""A process that publishes keyed messages, alone and in small batches, until it is told to stop."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import postbus
from tests.faults.stopping import Stopping
from tests.history import Recorder
from tests.history.events import Published

KEYS = [f"orders.{number}" for number in range(20)]


def publish_keys(url: str, stream: str, directory: Path, name: str, seed: int) -> None:
    stopping = Stopping()
    chance = random.Random(seed)
    with Recorder(directory, name) as recorder, postbus.connect(url, pool_size=1) as bus:
        while not stopping:
            # Whether what was lost on the way is there is known when all is over.
            with suppress(postbus.Unavailable):
                _publish(bus, stream, recorder, chance.choices(KEYS, k=chance.choice((1, 1, 1, 10))))
            time.sleep(0.01)


def _publish(bus: postbus.Bus, stream: str, recorder: Recorder, keys: list[str]) -> None:
    start = time.monotonic()
    seqs = bus.publish_many(stream, [postbus.Message(key=key, data=None) for key in keys])
    end = time.monotonic()
    for seq, key in zip(seqs, keys, strict=True):
        recorder.record(Published(stream=stream, seq=seq, key=key, start=start, end=end))
