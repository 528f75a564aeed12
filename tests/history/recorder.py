"""Histories in files: lines of JSON, one file for each process that writes."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.history.events import EVENTS, Delivered, Event, Received

_BY_NAME = {kind.__name__: kind for kind in EVENTS}


class Recorder:
    """Writes events to a file of its own, each at once: a process that is killed loses at most its last line.

    Threads may share it.

    Args:
        directory: Where the files of a history are.
        name: Who writes; no other recorder of the history may have this name.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._file = path_of(directory, name).open("x", encoding="utf-8", buffering=1)
        self._calls = itertools.count(1)
        self._lock = threading.Lock()

    def new_call(self) -> str:
        """A name for a call, unique in the history."""
        return f"{self.name}.{next(self._calls)}"

    def record(self, event: Event) -> None:
        line = json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n"
        with self._lock:
            self._file.write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def path_of(directory: Path, name: str) -> Path:
    """The file of one recorder."""
    return directory / f"{name}.jsonl"


def read(directory: Path) -> list[Event]:
    """All events of a history, each file's in its order."""
    return [event for path in sorted(directory.glob("*.jsonl")) for event in _read_file(path)]


def _read_file(path: Path) -> Iterator[Event]:
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        # Only the last line can lack its end: its writer was killed.
        if line.endswith("\n"):
            yield _parse(json.loads(line))


def _parse(record: dict[str, Any]) -> Event:
    kind = _BY_NAME[record.pop("event")]
    if kind is Received:
        record["deliveries"] = tuple(Delivered(**each) for each in record["deliveries"])
    if "ack_ids" in record:
        record["ack_ids"] = tuple(record["ack_ids"])
    return kind(**record)
