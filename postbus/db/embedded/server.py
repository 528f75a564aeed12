"""Keeps an embedded Postgres running for a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from postbus.db.embedded.binaries import DEFAULT_VERSION
from postbus.db.embedded.cluster import ROLE
from postbus.db.embedded.directory import Directory, State, default_path
from postbus.db.embedded.locks import FileLock, is_held
from postbus.db.embedded.request import Request
from postbus.model.errors import EmbeddedError

# Longer than the server takes to stop, which is what a newcomer may have to wait for.
_LOCK_SECONDS: Final = 150.0


class EmbeddedServer:
    """Keeps the Postgres of a data directory running while this object, and the process, live.

    Args:
        path: The data directory. None takes POSTBUS_DATA_DIR or the user's data folder.
        port: A TCP port to open on loopback, for programs that cannot use a unix socket. None opens none.
        version: The major version of Postgres: 18, or 16.
        home: The folder of other Postgres programs to run, such as /usr/lib/postgresql/15.
        linger: How many seconds the server stays up after its last user has left, if this is the user that starts it.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        port: int | None = None,
        version: int = DEFAULT_VERSION,
        home: Path | str | None = None,
        linger: float = 1.0,
    ) -> None:
        self.directory = Directory(
            Path(path).expanduser().absolute() if path is not None else default_path().absolute()
        )
        self._request = Request(
            path=str(self.directory.path),
            home=None if home is None else str(home),
            major=version,
            port=port,
            linger=linger,
        )
        self._lock = FileLock(self.directory.users)
        self._state: State | None = None

    def start(self) -> Self:
        """Hold the server, starting it if it does not run.

        Raises:
            EmbeddedError: It cannot be started; the message says why.
        """
        if self._state is not None:
            return self
        if sys.platform == "win32":
            raise EmbeddedError(
                "the embedded Postgres does not run on Windows", "name a Postgres of yours with POSTBUS_URL"
            )
        self.directory.create()
        if not self._lock.acquire(shared=True, seconds=_LOCK_SECONDS):
            raise EmbeddedError(
                f"the data directory {self.directory.path} is locked by another process",
                f"its server may be stopping: try again, or see {self.directory.log}",
            )
        try:
            self._state = self._find_or_spawn()
            self._check(self._state)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Release the server. It stops after its last user has released it."""
        self._lock.release()
        self._state = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether a process keeps it running now. This does not start it."""
        # The directory may not be there yet.
        lock = self.directory.supervisor
        return lock.exists() and is_held(lock) and self.directory.read_state() is not None

    @property
    def state(self) -> State:
        if self._state is None:
            raise EmbeddedError("the embedded Postgres is not started")
        return self._state

    @property
    def url(self) -> str:
        """The URL over the unix socket."""
        return f"postgresql://{ROLE}@/{ROLE}?host={quote(self.state.socket, safe='')}&port={self.state.port}"

    @property
    def tcp_url(self) -> str:
        """The URL over TCP, with its password, if a port was asked for."""
        if not self.state.tcp:
            raise EmbeddedError("the embedded Postgres has no TCP port open", "start it with a port")
        password = quote(self.directory.password.read_text(), safe="")
        return f"postgresql://{ROLE}:{password}@127.0.0.1:{self.state.port}/{ROLE}"

    def _find_or_spawn(self) -> State:
        """The state of a live supervisor: one that is there, or a new one.

        Several users may start one at once; one of them wins, and the others find the winner.
        """
        end = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < end:
            if not is_held(self.directory.supervisor):
                self._spawn()
            elif (state := self.directory.read_state()) is not None:
                return state
            time.sleep(0.02)
        raise EmbeddedError(f"the server of {self.directory.path} did not come up in time", f"see {self.directory.log}")

    def _spawn(self) -> None:
        with self.directory.supervisor_log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "postbus.db.embedded.supervisor", json.dumps(asdict(self._request))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                # Ctrl-C and a closed terminal are for us, not for the server that others use too.
                start_new_session=True,
            )
        assert process.stdout is not None  # noqa: S101
        said = process.stdout.read()
        process.stdout.close()
        answer = (
            json.loads(said)
            if said
            else {"error": "its supervisor ended", "hint": f"see {self.directory.supervisor_log}"}
        )
        if "ready" not in answer:
            process.wait()
        if "error" in answer:
            raise EmbeddedError(answer["error"], answer["hint"])
        # It runs on without us; without this, Python would warn of a child that nobody waits for.
        process.returncode = 0

    def _check(self, state: State) -> None:
        if state.major != self._request.major and self._request.home is None:
            raise EmbeddedError(
                f"the server of {self.directory.path} runs PostgreSQL {state.major}, not {self._request.major}",
                "choose another directory with POSTBUS_DATA_DIR or --data-dir",
            )
        port = self._request.port
        if port is not None and not (state.tcp and state.port == port):
            raise EmbeddedError(
                f"the server of {self.directory.path} runs already, without TCP port {port}",
                "end the programs that use it first, or give the port where it is started",
            )
