from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from postbus.db.embedded import EmbeddedServer
from tests import servers
from tests.integration.embedded.server_process import wait_until_free
from tests.integration.embedded.user import Someone, User

NewUser = Callable[..., User]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for data directories. It is removed when no server in it runs any more."""
    with servers.data_directory() as folder:
        yield folder
        for lock in folder.glob("**/supervisor.lock"):
            wait_until_free(lock.parent)


@pytest.fixture(scope="session")
def initialised() -> Iterator[Path]:
    """A data directory as its first use leaves it."""
    with servers.data_directory() as folder:
        with EmbeddedServer(folder / "data", linger=0):
            pass
        wait_until_free(folder / "data")
        yield folder / "data"


@pytest.fixture
def new_path(folder: Path) -> Path:
    """A data directory that does not exist yet."""
    return folder / "data"


@pytest.fixture
def path(initialised: Path, new_path: Path) -> Path:
    """A data directory that has been used before: a copy takes a tenth of the time of a new one."""
    subprocess.run(["cp", "-a", initialised, new_path], check=True)
    return new_path


@pytest.fixture
def new_user(new_path: Path) -> Iterator[NewUser]:
    """Starts processes that use the data directory; they are ended after the test."""
    started: list[User] = []

    def start(path: Path = new_path, **options: Any) -> User:
        started.append(User(path, **options))
        return started[-1]

    yield start
    for user in started:
        user.end()


@pytest.fixture
def plain(folder: Path) -> Someone:
    """Somebody who is not root and owns the folder: us, or nobody if we are root."""
    if os.geteuid() != 0:
        return Someone(sys.executable, os.geteuid(), os.getegid())
    entry = pwd.getpwnam("nobody")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    # Ours may lie in root's home. A system's Python of the same version takes the same packages.
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        nobody = Someone(python, entry.pw_uid, entry.pw_gid)
        with suppress(OSError):
            subprocess.run([python, "-c", "import json"], cwd="/", check=True, **nobody.run_as())
            return nobody
    pytest.skip("no Python that a plain user may run")


@pytest.fixture
def port() -> int:
    """A TCP port that is free on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number: int = probe.getsockname()[1]
    return number
