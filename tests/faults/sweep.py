"""A process that sweeps without a pause until it is told to stop."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import postbus
from tests.faults.connecting import connect
from tests.faults.stopping import Stopping
from tests.history import Recorder
from tests.history.events import Swept


def sweep(url: str, stream: str, directory: Path, name: str, seed: int) -> None:
    stopping = Stopping()
    with Recorder(directory, name) as recorder, connect(url, pool_size=1) as bus:
        while not stopping:
            with suppress(postbus.Unavailable):
                count = bus.sweep(stream)
                recorder.record(Swept(stream=stream, count=count, end=time.monotonic()))
