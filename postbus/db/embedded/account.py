"""Who runs the server: Postgres refuses to run as root, so root runs it as a system user of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from postbus.model.errors import EmbeddedError

SYSTEM_USER: Final = "postbus"
_CREATE: Final = (
    ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER),
    ("adduser", "-S", "-D", "-H", SYSTEM_USER),
)


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
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        entry = _create()
    return Account(entry.pw_uid, entry.pw_gid, other=True)


def _create() -> pwd.struct_passwd:
    for command in _CREATE:
        if shutil.which(command[0]) is None:
            continue
        # Two processes may try at once: what counts is that the user is there afterwards.
        subprocess.run(command, check=False, capture_output=True)
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            continue
    raise EmbeddedError(
        f'Postgres cannot run as root, and the system user "{SYSTEM_USER}" could not be made',
        f"create a user of that name, run as another user, or name a Postgres of yours with POSTBUS_URL ({SYSTEM_USER})",
    )
