"""The server process of a cluster, as its file postmaster.pid tells of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROGRAMS: Final = {b"postgres", b"postmaster"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a running server is reached.

    Attributes:
        socket: The folder of its unix socket.
        port: Its port, which is also part of the socket's name.
        tcp: Whether the port is open on loopback.
    """

    socket: Path
    port: int
    tcp: bool


@dataclass(frozen=True, slots=True)
class PidFile:
    """The file that a running server keeps in its cluster.

    It outlives a server that was killed, and its number may be another process's by now: always so in a container, where the
    same few numbers are given out at each start.
    """

    cluster: Path

    @property
    def path(self) -> Path:
        return self.cluster / "postmaster.pid"

    def server(self) -> int | None:
        """The process id of the running server, or None if none runs."""
        pid = _living_process(self.path)
        return pid if pid is not None and _is_server_of(self.cluster, pid) else None

    def address(self) -> Address | None:
        """Where the server is reached, or None until it is ready."""
        lines = _lines(self.path)
        if self.server() is None or len(lines) < 8 or lines[7].strip() != "ready":
            return None
        return Address(socket=Path(lines[4]), port=int(lines[3]), tcp=lines[5] != "")

    def remove_if_misleading(self, socket: Path) -> None:
        """Remove this file, and its like beside the socket, if another process has the number of a dead server.

        Postgres would take that for the server, and not start. Also a zombie, which a container may have for ever.
        """
        for path in (self.path, *socket.glob(".s.PGSQL.*.lock")):
            pid = _living_process(path)
            if pid is not None and not _is_server_of(self.cluster, pid):
                path.unlink(missing_ok=True)


def _living_process(path: Path) -> int | None:
    """The number in the first line of a file, if a process has it."""
    try:
        pid = int(_lines(path)[0])
        os.kill(pid, 0)
    except (IndexError, ValueError, ProcessLookupError):
        return None
    except PermissionError:
        # Somebody else's process, or ours in a container that does not let root signal others.
        return pid
    return pid


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def _is_server_of(cluster: Path, pid: int) -> bool:
    """Whether a living process is a cluster's server, as far as the system tells: without /proc, it is believed to be."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return not Path("/proc/self/cmdline").exists()
    # A zombie has no arguments; the children of a server are called "postgres: …".
    if arguments[0].rpartition(b"/")[2] not in _PROGRAMS:
        return False
    folder = Path(os.fsdecode(arguments[arguments.index(b"-D") + 1])) if b"-D" in arguments else cluster
    return not folder.is_absolute() or (folder.exists() and folder.samefile(cluster))
