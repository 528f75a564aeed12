"""A file of JSON lines, published by the command: how fast, and in how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.comparison import Measurement, Single
from benchmarks.messages import message
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place

_system: Final = Postbus()
_COMMAND: Final = (sys.executable, "-c", "from postbus.cli.main import run; run()")


@dataclass(frozen=True, slots=True)
class Lines:
    """A file with so many messages."""

    path: Path
    count: int


@contextmanager
def lines(count: int) -> Iterator[Lines]:
    with tempfile.TemporaryDirectory(prefix="postbus-bench-lines-") as folder:
        path = Path(folder) / "messages.jsonl"
        with path.open("w") as file:
            for made in map(message, range(count)):
                file.write(json.dumps({"key": made.key, "data": made.data}, separators=(",", ":")) + "\n")
        yield Lines(path, count)


def send(url: str, source: Lines) -> Measurement:
    """One round into a new stream: a process of its own, from its start to its end."""
    return _send(url, source)[0]


def memory_of_send(url: str, source: Lines) -> Single:
    """The most memory that the process had at any moment, in MB."""
    return Single(_send(url, source)[1])


def _send(url: str, source: Lines) -> tuple[Measurement, float]:
    with fresh_place(_system, url) as place:
        seconds, megabytes = _run("message", "send", place, "--file", str(source.path), "--quiet", "--url", url)
        found = _system.count(url, place)
    if found != source.count:
        raise RuntimeError(f"the file has {source.count} lines, and {found} messages are there")
    return Measurement(source.count, seconds), megabytes


def _run(*arguments: str) -> tuple[float, float]:
    started_at = time.monotonic()
    process = subprocess.Popen((*_COMMAND, *arguments), stdout=subprocess.DEVNULL)
    # Instead of process.wait: it tells of this one child what it used.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started_at
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"postbus {' '.join(arguments)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss * 1024 / 1e6
