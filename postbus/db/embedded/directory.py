"""The folder in which an embedded Postgres lives: where things are in it, and who may enter."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from postbus.db.embedded.account import Account
from postbus.db.embedded.locks import FileLock, is_held
from postbus.model.errors import EmbeddedError

# A unix socket's path may have 107 bytes; 20 are for the name of the socket itself.
_LONGEST_SOCKET_FOLDER: Final = 87
# pg_ctl and initdb put the path between double quotes into a command for the shell.
_UNSAFE: Final = frozenset('"$`\\\n\r')


@dataclass(frozen=True, slots=True)
class State:
    """What a running supervisor tells the users of its server.

    Attributes:
        supervisor: Its process id.
        socket: The folder of the unix socket.
        port: The port, which is also part of the socket's name.
        tcp: Whether the port is open on loopback.
        major: The version of Postgres.
    """

    supervisor: int
    socket: str
    port: int
    tcp: bool
    major: int


@dataclass(frozen=True, slots=True)
class Directory:
    """A data directory. `users` is locked shared by each user, `supervisor` exclusively by the supervisor."""

    path: Path

    @property
    def cluster(self) -> Path:
        return self.path / "postgres"

    @property
    def users(self) -> Path:
        return self.path / "users.lock"

    @property
    def supervisor(self) -> Path:
        return self.path / "supervisor.lock"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def supervisor_log(self) -> Path:
        return self.path / "supervisor.log"

    @property
    def password(self) -> Path:
        return self.path / "password"

    @property
    def _state(self) -> Path:
        return self.path / "state.json"

    def socket(self) -> Path:
        """The folder of the unix socket: inside, unless that path is too long for one, or has the comma that parts hosts."""
        inside = self.path / "socket"
        if len(os.fsencode(inside)) <= _LONGEST_SOCKET_FOLDER and "," not in str(inside):
            return inside
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"postbus-{name}"

    def create(self) -> None:
        """Make the folder if it is not there.

        Raises:
            EmbeddedError: It cannot be made or written to, or has a name that Postgres cannot take.
        """
        if unsafe := _UNSAFE.intersection(str(self.path)):
            raise EmbeddedError(
                f"the data directory {str(self.path)!r} cannot be used: its path has {', '.join(map(repr, sorted(unsafe)))}",
                "choose another with POSTBUS_DATA_DIR or --data-dir",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.users.touch(mode=0o600)
        except OSError as error:
            raise EmbeddedError(
                f"the data directory {self.path} cannot be used: {error.strerror}",
                "choose another with POSTBUS_DATA_DIR or --data-dir, or make it writable",
            ) from error

    def admit(self, account: Account) -> None:
        """Let the server's user enter this folder, without opening any other.

        Raises:
            EmbeddedError: A folder above is closed to that user.
        """
        if not account.other:
            return
        self.path.chmod(self.path.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)
        closed = [folder for folder in self.path.parents if not folder.stat().st_mode & stat.S_IXOTH]
        if closed and not account.can_reach(self.path / "."):
            raise EmbeddedError(
                f"the data directory {self.path} is inside {closed[0]}, which is closed to other users, and as root "
                "Postgres has to run as another user",
                "choose another with POSTBUS_DATA_DIR or --data-dir (as root the default is /var/lib/postbus)",
            )

    def read_state(self) -> State | None:
        """What the live supervisor told; None until it has, and for what a dead one left behind."""
        try:
            state = State(**json.loads(self._state.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return state if is_held(self._state) else None

    def write_state(self, state: State) -> FileLock:
        """Tell users where the server is. They believe it while the returned lock is held."""
        new = self._state.with_suffix(".new")
        new.unlink(missing_ok=True)
        lock = FileLock(new)
        lock.try_acquire(shared=False)
        new.write_text(json.dumps(asdict(state)))
        new.replace(self._state)
        return lock

    def clear_state(self) -> None:
        self._state.unlink(missing_ok=True)


def default_path() -> Path:
    """Where the embedded Postgres lives unless told otherwise: POSTBUS_DATA_DIR, or the user's data folder.

    As root it is /var/lib/postbus: root's home is closed to the user that has to run the server.
    """
    if chosen := os.environ.get("POSTBUS_DATA_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/postbus")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "postbus"
