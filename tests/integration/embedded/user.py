"""Processes that use an embedded Postgres, so that tests can end them in every way there is.

As a program it is such a process: it says in one line of JSON what it got, and leaves when its standard input ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from postbus.db.embedded import EmbeddedServer
from postbus.model.errors import EmbeddedError

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Someone:
    """A user of this machine, and a Python that this user may run."""

    python: str
    uid: int | None = None
    gid: int | None = None

    def run_as(self) -> dict[str, Any]:
        """What subprocess needs to run a program as this user."""
        if self.uid in {None, os.geteuid()}:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


class User:
    """A process that holds the server of a data directory until it leaves or is killed.

    Args:
        path: The data directory.
        run_as: Whom it runs as; None is us.
        options: Of the EmbeddedServer.
    """

    def __init__(self, path: Path, *, run_as: Someone | None = None, **options: Any) -> None:
        who = Someone(sys.executable) if run_as is None else run_as
        self.process = subprocess.Popen(
            [who.python, "-m", __name__, json.dumps({"path": str(path), "linger": 0, **options})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            **who.run_as(),
        )
        self._answer: dict[str, Any] | None = None

    @property
    def answer(self) -> dict[str, Any]:
        """What it got: url, tcp_url and supervisor, or error and hint."""
        if self._answer is None:
            assert self.process.stdout is not None
            self._answer = json.loads(self.process.stdout.readline() or '{"error": "killed", "hint": null}')
        return self._answer

    def ready(self) -> Self:
        """Wait until it has the server."""
        assert "error" not in self.answer, self.answer
        return self

    @property
    def url(self) -> str:
        return str(self.ready().answer["url"])

    @property
    def tcp_url(self) -> str:
        return str(self.ready().answer["tcp_url"])

    @property
    def supervisor(self) -> int:
        return int(self.ready().answer["supervisor"])

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait() == 0
        self._close()

    def kill(self) -> None:
        """Kill it with all its process group, as a terminal or a container does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def main(options: dict[str, Any]) -> None:
    try:
        server = EmbeddedServer(options.pop("path"), **options).start()
    except EmbeddedError as error:
        answer: dict[str, Any] = {"error": error.message, "hint": error.hint}
    else:
        state = server.state
        answer = {"url": server.url, "tcp_url": server.tcp_url if state.tcp else None, "supervisor": state.supervisor}
    print(json.dumps(answer), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
