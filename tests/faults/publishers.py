"""Publishers that go on whatever happens, and keep books."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import postbus
from tests.faults.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]


class Publisher(threading.Thread):
    """Publishes one message after the other on a bus of its own until it is told to stop.

    Args:
        url: The database, or a server.
        stream: The stream.
        name: Its own name, which is the key of its messages and begins their data.
        connect_timeout: How long it waits for a server that is down.
    """

    def __init__(self, url: str, stream: str, *, name: str, connect_timeout: float) -> None:
        super().__init__(name=name, daemon=True)
        self.ledger = Ledger()
        self.errors: list[postbus.Unavailable] = []
        self.failure: BaseException | None = None
        self._bus = postbus.connect(url, connect_timeout=connect_timeout)
        self._stream = stream
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            with self._bus:
                number = 0
                while not self._stopped.is_set():
                    number += 1
                    self._publish(f"{self.name}-{number}")
        except BaseException as error:
            self.failure = error

    def _publish(self, data: str) -> None:
        try:
            self.ledger.published[data] = self._bus.publish(self._stream, key=self.name, data=data)
        except postbus.Unavailable as error:
            self.errors.append(error)
            books = self.ledger.unknown if isinstance(error, postbus.ConnectionLost) else self.ledger.refused
            books.add(data)

    @property
    def count(self) -> int:
        """How many messages it has published so far."""
        if self.failure is not None:
            raise self.failure
        return len(self.ledger.published)

    def stop(self) -> Ledger:
        """Let it finish, and return its books."""
        self._stopped.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.ledger


class BatchProcess:
    """A process that publishes batch after batch, and says the number of each that is published."""

    def __init__(self, url: str, stream: str, *, batch_size: int) -> None:
        command = [sys.executable, "-m", "tests.faults.publish_batches", url, stream, str(batch_size)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.published: list[int] = []

    def wait_for(self, number: int) -> None:
        """Wait until it has said that a batch is published."""
        assert self._process.stdout is not None
        while number not in self.published:
            self.published.append(int(self._process.stdout.readline()))

    def kill(self) -> None:
        """Kill it, and take note of what it had still said."""
        self._process.kill()
        said, _ = self._process.communicate()
        self.published += [int(line) for line in said.splitlines()]
