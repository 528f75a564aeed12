"""What a browser sees of the console: how soon pages begin, and what watching one costs the server."""

from __future__ import annotations

import http.client
import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import postbus
from benchmarks.comparison import Single
from benchmarks.http_server import HttpServer

_WARM_UP_LOOKS: Final = 3
_LOOKS: Final = 20
# As the pages' script does.
_SECONDS_BETWEEN: Final = 2.0


@dataclass(frozen=True, slots=True)
class Looks:
    """One round, in milliseconds."""

    median: float
    slowest: float

    @property
    def figures(self) -> Mapping[str, float]:
        return {"p50": self.median, "slowest": self.slowest}


def create_many(url: str, count: int) -> None:
    """Streams with a consumer each, which has read a message, holds one and has more to read."""
    with postbus.connect(url, upkeep=False) as bus:
        for number in range(count):
            name = f"stream-{number}"
            bus.create_stream(name, partitions=1)
            consumer = bus.create_consumer(name, "reader")
            bus.publish_many(name, [postbus.Message(data={"n": n}) for n in range(5)])
            consumer.receive(1, ack=consumer.receive(1), ack_wait=86400)


def look_at(server: HttpServer, path: str) -> Looks:
    """How long it takes until the first byte of a page is there."""
    milliseconds = []
    for number in range(_WARM_UP_LOOKS + _LOOKS):
        started_at = time.monotonic()
        _look(server, path)
        if number >= _WARM_UP_LOOKS:
            milliseconds.append(1000 * (time.monotonic() - started_at))
    return Looks(statistics.median(milliseconds), max(milliseconds))


def watch(server: HttpServer, path: str, seconds: float) -> Single:
    """The share of a core that the server's process takes while one browser has a page open."""
    _look(server, path)
    begun, used = time.monotonic(), _cpu_seconds(server.process_id)
    while time.monotonic() - begun < seconds:
        time.sleep(_SECONDS_BETWEEN)
        _look(server, path)
    return Single(100 * (_cpu_seconds(server.process_id) - used) / (time.monotonic() - begun))


def _look(server: HttpServer, path: str) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    connection.request("GET", f"/console/{path}")
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"{path} was answered with {answer.status}")
    answer.read()
    connection.close()


def _cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
