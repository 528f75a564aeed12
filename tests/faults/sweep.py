"""A process that sweeps without a pause until it is told to stop."""

from __future__ import annotations

import time
from pathlib import Path

import postbus
from tests.faults.stopping import Stopping
from tests.history import Recorder
from tests.history.events import Swept


def sweep(url: str, stream: str, directory: Path, name: str, seed: int) -> None:
    stopping = Stopping()
    with Recorder(directory, name) as recorder, postbus.connect(url, pool_size=1) as bus:
        while not stopping:
            count = bus.sweep(stream)
            recorder.record(Swept(stream=stream, count=count, end=time.monotonic()))
