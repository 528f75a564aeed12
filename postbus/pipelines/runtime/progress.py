"""How a run shows its progress: to nobody, as a bar on a terminal, or as lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final, Protocol, TextIO

_SECONDS: Final = 1.0


class Show(Protocol):
    """Shows how far a run is. `total` is None while nobody knows."""

    def begin(self, name: str) -> None: ...

    def update(self, done: int, total: int | None) -> None: ...

    def end(self, state: str) -> None: ...


class Silence:
    """Shows nothing."""

    def begin(self, name: str) -> None:
        pass

    def update(self, done: int, total: int | None) -> None:
        pass

    def end(self, state: str) -> None:
        pass


class Lines:
    """A line of JSON a second at most, and one at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._name = ""
        self._started_at = self._said_at = time.monotonic()
        self._done: tuple[int, int | None] = (0, None)

    def begin(self, name: str) -> None:
        self._name = name
        self._started_at = time.monotonic()
        self._done = (0, None)
        self._say("running")

    def update(self, done: int, total: int | None) -> None:
        self._done = (done, total)
        if time.monotonic() - self._said_at >= _SECONDS:
            self._say("running")

    def end(self, state: str) -> None:
        self._say(state)

    def _say(self, state: str) -> None:
        self._said_at = time.monotonic()
        done, total = self._done
        seconds = self._said_at - self._started_at
        line = {
            "pipeline": self._name,
            "state": state,
            "messages": done,
            "of": total,
            "seconds": round(seconds, 1),
            "per_second": round(done / max(seconds, 0.001), 1),
        }
        print(json.dumps(line), file=self._out, flush=True)


class Bar:
    """A bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task: Any = None

    def begin(self, name: str) -> None:
        self._task = self._progress.add_task(name, total=None)
        self._progress.start()

    def update(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def end(self, state: str) -> None:
        self._progress.stop()


def for_this_terminal() -> Show:
    """A bar where somebody looks, lines of JSON elsewhere; on stderr both."""
    return Bar() if sys.stderr.isatty() else Lines(sys.stderr)
