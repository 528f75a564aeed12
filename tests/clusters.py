"""Postgres clusters of a test's own, without a supervisor: they may be killed, copied, promoted, restored or starved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg

from postbus.db.embedded import account, binaries
from tests import servers
from tests.processes import wait_until_gone
from tests.waiting import until

ROLE: Final = "postbus"
_SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "40",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "max_wal_size": "1GB",
    "max_locks_per_transaction": "256",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def binaries_of(server: str) -> binaries.Binaries:
    """The programs of a server, by its name in `servers.names()`."""
    return binaries.at(servers.FIFTEEN) if server == "pg15" else binaries.find(int(server[2:]))


class Cluster:
    """A cluster in a folder of its own. It is stopped when its block ends.

    Args:
        folder: Where it and its socket are. It may lie on a disk of its own.
        server: Which of `servers.names()`.
        environment: Further variables for the server's processes.
    """

    def __init__(self, folder: Path, server: str, *, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.server = server
        self.data = folder / "data"
        self._binaries = binaries_of(server)
        self._account = account.choose()
        self._environment = dict(environment or {})
        if not self._account.can_reach(Path(self._binaries.program("postgres"))):
            # Beside it: root's home is closed to the user that runs the server.
            copy = folder.parent / f"postgresql-{self._binaries.release}"
            if not copy.exists():
                shutil.copytree(self._binaries.home, copy, symlinks=True)
            self._binaries = binaries.Binaries(self._binaries.major, copy, self._binaries.release)

    @property
    def url(self) -> str:
        return f"postgresql://{ROLE}@/postgres?host={self.folder}"

    def create(self, *, wal: Path | None = None) -> Self:
        """Make a new one with initdb, its log perhaps on a disk of its own, and start it."""
        self.own(self.folder)
        elsewhere = []
        if wal is not None:
            self.own(wal)
            elsewhere.append(f"--waldir={wal}")
        self.run("initdb", f"--pgdata={self.data}", f"--username={ROLE}", "--auth=trust", "--encoding=UTF8", "--no-locale",
                 "--no-sync", "--no-instructions", "--wal-segsize=1", *elsewhere)  # fmt: skip
        self.set(**_SETTINGS)
        return self.start()

    def copy_of(self, other: Cluster, *options: str) -> Self:
        """Make a base backup of another one, and do not start it yet."""
        self.own(self.folder)
        self.run("pg_basebackup", f"--dbname={other.url}", f"--pgdata={self.data}", "--checkpoint=fast", *options)
        return self

    def set(self, **settings: str) -> None:
        """Settings for the next start; those that are given last count."""
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(lines)

    def start(self) -> Self:
        options = f"-c unix_socket_directories={self.folder}"
        self.run(
            "pg_ctl",
            "start",
            "--wait",
            "--timeout=60",
            f"--pgdata={self.data}",
            f"--log={self.folder / 'log'}",
            f"--options={options}",
        )
        return self

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "stop", "--wait", "--timeout=60", f"--pgdata={self.data}", f"--mode={mode}")

    def kill(self) -> None:
        """Kill the server and all its processes at once, as a machine does that loses its power."""
        pids = [self._pid(), *_children(self._pid())]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            wait_until_gone(pid)
        # They may name a process that nobody has reaped yet.
        for lock in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)

    def restart(self) -> None:
        """Start it again, whether it has ended by itself or not."""
        if self.is_running():
            with suppress(ProcessLookupError):
                self.kill()
        self.start()

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "--wait", "--timeout=60", f"--pgdata={self.data}")

    def wait_until_promoted(self) -> None:
        until(lambda: self.row("select pg_is_in_recovery()") == (False,), "recovery ends")

    def has_all_of(self, primary: Cluster) -> None:
        """Wait until this standby has replayed all that its primary has written."""
        (end,) = primary.row("select pg_current_wal_flush_lsn()")
        until(
            lambda: self.row(f"select coalesce(pg_last_wal_replay_lsn() >= '{end}', false)")[0], "the standby has all"
        )

    def row(self, statement: str) -> tuple[object, ...]:
        """The first row of a statement in a session of its own."""
        with psycopg.connect(self.url, autocommit=True) as session:
            cursor = session.execute(statement.encode())
            return (cursor.fetchone() or ()) if cursor.description else ()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def run(self, program: str, *arguments: str) -> None:
        # Output goes to a file: a server that pg_ctl starts would hold a pipe open.
        with (self.folder.parent / f"{self.folder.name}-{program}.out").open("w+") as out:
            done = subprocess.run(
                [self._binaries.program(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC", **self._environment},
                check=False,
                **self._account.run_as(),
            )
            out.seek(0)
            said = out.read()
        log = self.log()[-2000:] if done.returncode and (self.folder / "log").exists() else ""
        assert done.returncode == 0, f"{program} failed: {said}\n{log}"

    def is_running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    def _pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def own(self, folder: Path) -> None:
        """Make a folder that the server may use."""
        folder.mkdir(mode=0o700, exist_ok=True)
        self._account.own(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running():
            # One that is killed leaves its shared memory behind.
            with suppress(AssertionError):
                self.stop("immediate")


def _children(pid: int) -> list[int]:
    # The fourth field of stat is the parent; the second, a name in parentheses, may have spaces.
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(process.name))
    return found
