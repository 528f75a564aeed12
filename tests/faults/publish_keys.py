"""A process that publishes keyed messages, alone and in small batches, now or for a moment later, until it is told to stop."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import postbus
from tests.faults.connecting import connect
from tests.faults.stopping import Stopping
from tests.history import Recorder
from tests.history.events import Published, Scheduled

KEYS = [f"orders.{number % 2}.{number}" for number in range(20)]
# Half of the keys.
PATTERN, PREFIX = "orders.1.>", "orders.1."
# Names a message that was scheduled: its seq is not known when it is published.
NAME = "name"


def publish_keys(url: str, stream: str, priorities: Sequence[int], directory: Path, name: str, seed: int) -> None:
    """Of messages with other priorities than the default, none is scheduled: the history does not tell when it was published."""
    stopping = Stopping()
    chance = random.Random(seed)
    with Recorder(directory, name) as recorder, connect(url, pool_size=1) as bus:
        while not stopping:
            # Whether what was lost on the way is there is known when all is over.
            with suppress(postbus.Unavailable):
                if tuple(priorities) == (4,) and chance.random() < 0.1:
                    _schedule(bus, stream, recorder, chance.choice(KEYS), chance.uniform(0, 0.2))
                else:
                    keys = chance.choices(KEYS, k=chance.choice((1, 1, 1, 10)))
                    _publish(bus, stream, recorder, [(key, chance.choice(priorities)) for key in keys])
            time.sleep(0.01)


def _publish(bus: postbus.Bus, stream: str, recorder: Recorder, wanted: list[tuple[str, int]]) -> None:
    start = time.monotonic()
    seqs = bus.publish_many(stream, [postbus.Message(key=key, data=None, priority=level) for key, level in wanted])
    end = time.monotonic()
    for seq, (key, level) in zip(seqs, wanted, strict=True):
        recorder.record(Published(stream=stream, seq=seq, key=key, start=start, end=end, priority=level))


def _schedule(bus: postbus.Bus, stream: str, recorder: Recorder, key: str, delay: float) -> None:
    name = recorder.new_call()
    bus.publish(stream, key=key, data=None, headers={NAME: name}, delay=delay)
    recorder.record(Scheduled(stream=stream, name=name))
