"""Who runs the server: Postgres refuses to run as root, so root runs it as a system user of its own."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from postbus.model.errors import EmbeddedError

SYSTEM_USER: Final = "postbus"
_COMMANDS: Final = (
    ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER),
    ("adduser", "-S", "-D", "-H", SYSTEM_USER),
)
# Only root can write here, so nobody else can hold the lock.
_LOCK: Final = Path("/run/postbus-user.lock")
# useradd fails while another program changes the list of users, which may take it some seconds.
_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Account:
    """The user that runs the server.

    Attributes:
        uid: Its number.
        gid: Its group's.
        other: Whether it is another user than the one that runs this process.
    """

    uid: int
    gid: int
    other: bool

    def run_as(self) -> dict[str, Any]:
        """What subprocess needs to run a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.other else {}

    def own(self, path: Path) -> None:
        if self.other:
            os.chown(path, self.uid, self.gid)

    def can_reach(self, path: Path) -> bool:
        """Whether this user may read a file or enter a folder there."""
        if not self.other:
            return os.access(path, os.X_OK if path.is_dir() else os.R_OK)
        question = ["/bin/sh", "-c", 'test -d "$1" && test -x "$1" || test -r "$1"', "sh", str(path)]
        return subprocess.run(question, cwd="/", check=False, **self.run_as()).returncode == 0


def choose() -> Account:
    """The user that this process should run a server as.

    Raises:
        EmbeddedError: This is root, and no system user can be made.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), other=False)
    entry = _find() or create()
    return Account(entry.pw_uid, entry.pw_gid, other=True)


def create(
    commands: Sequence[Sequence[str]] = _COMMANDS, *, lock: Path = _LOCK, patience: float = _PATIENCE
) -> pwd.struct_passwd:
    """Create the system user, or find the one that another process has just created.

    Raises:
        EmbeddedError: No command could create it within `patience` seconds.
    """
    installed = [command for command in commands if shutil.which(command[0]) is not None]
    until = time.monotonic() + patience
    # Two useradds at once both succeed, and the second gives the user another number: the first caller's server would
    # run as a number that no user has.
    with _exclusive(lock):
        while (entry := _find()) is None:
            if not installed or time.monotonic() > until:
                raise EmbeddedError(
                    f'Postgres cannot run as root, and the system user "{SYSTEM_USER}" could not be created',
                    "create that user, run as another user, or name a Postgres of yours with POSTBUS_URL",
                )
            if not any(
                subprocess.run(command, check=False, capture_output=True).returncode == 0 for command in installed
            ):
                time.sleep(0.1)
    return entry


def _find() -> pwd.struct_passwd | None:
    """The system user, once it can be found by its number too, as Postgres looks for it."""
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
        pwd.getpwuid(entry.pw_uid)
    except KeyError:
        return None
    return entry


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        # A machine without /run, or one that may not be written to: there useradd alone decides.
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
