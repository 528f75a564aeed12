"""What the system tells of the processes behind a data directory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from postbus.db.embedded.directory import Directory
from postbus.db.embedded.locks import is_held
from tests.waiting import until


def server_pid(path: Path) -> int:
    """The process id that the server of a data directory has written down."""
    return int((Directory(path).cluster / "postmaster.pid").read_text().split()[0])


def wait_for_another_server(path: Path, pid: int) -> None:
    """Wait until a server other than this one has written down its process id."""

    def is_there() -> bool:
        # The file is made empty and filled a moment later.
        with suppress(FileNotFoundError, IndexError):
            return server_pid(path) != pid
        return False

    until(is_there, "a new server")


def wait_for_supervisor(path: Path) -> None:
    """Wait until a supervisor has taken a data directory."""
    lock = Directory(path).supervisor
    until(lambda: lock.exists() and is_held(lock), f"a supervisor takes {path}")


def wait_until_free(path: Path) -> None:
    """Wait until the supervisor of a data directory has ended."""
    lock = Directory(path).supervisor
    until(lambda: not lock.exists() or not is_held(lock), f"the supervisor of {path} ends")


def log_of(path: Path) -> str:
    return Directory(path).log.read_text()


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement in a session of its own."""
    with psycopg.connect(url, autocommit=True) as session:
        cursor = session.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
