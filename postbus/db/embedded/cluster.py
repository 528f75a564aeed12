"""The Postgres cluster in a data directory: made by initdb, configured, started and stopped by pg_ctl."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postbus.db.embedded.account import Account
from postbus.db.embedded.binaries import Binaries
from postbus.db.embedded.directory import Directory
from postbus.db.embedded.postmaster import Address, PidFile
from postbus.model.errors import EmbeddedError

ROLE: Final = "postbus"
_INCLUDE: Final = "\n# Rewritten at each start. Your own settings: ALTER SYSTEM SET ….\ninclude = 'postbus.conf'\n"
_MIB: Final = 1024 * 1024
# Postgres fills a new WAL file with zeros and flushes it while a commit waits: the usual 16 MB take 9 ms on an idle machine, 4 MB
# take 2.5 ms.
_WAL_FILE_MIB: Final = 4
# Recovery after a crash may take minutes. pg_ctl gives up earlier if the server process ends.
_START_SECONDS: Final = 3600
_STOP_SECONDS: Final = 120
# A backend notices the death of its server when its statement ends; until then no other server can start.
_ORPHAN_SECONDS: Final = 30
_POLL_SECONDS: Final = 0.05
_LOG_PREFIX: Final = re.compile(r"^\S+ \S+ UTC \[\d+\] \w+: +")
_LOG_NOISE: Final = ("starting PostgreSQL", "database system is shut down")


@dataclass(frozen=True, slots=True)
class Cluster:
    directory: Directory
    binaries: Binaries
    account: Account

    @property
    def pid_file(self) -> PidFile:
        return PidFile(self.directory.cluster)

    def prepare(self) -> None:
        """Make the cluster if there is none; refuse one of another version.

        Raises:
            EmbeddedError: The cluster belongs to another version, or initdb failed.
        """
        for leftover in self.directory.path.glob("postgres.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        version_file = self.directory.cluster / "PG_VERSION"
        if not version_file.exists():
            self._initialise()
        found = version_file.read_text().strip()
        if found != str(self.binaries.major):
            raise EmbeddedError(
                f"the data directory {self.directory.path} was made by PostgreSQL {found}, and this is PostgreSQL "
                f"{self.binaries.major}",
                f"choose another with POSTBUS_DATA_DIR or --data-dir; to carry the data over, dump it with PostgreSQL {found}",
            )

    def _initialise(self) -> None:
        # Under a name of its own first: an initdb that was killed leaves nothing that looks like a cluster, and one whose
        # supervisor was killed may still be writing to its own.
        new = self.directory.path / f"postgres.new-{secrets.token_hex(4)}"
        new.mkdir(mode=0o700)
        password = secrets.token_urlsafe(24)
        # Inside, where nobody else may look; initdb wants an empty folder.
        data, password_file = new / "data", new / "password"
        data.mkdir(mode=0o700)
        password_file.write_text(password)
        for path in (new, data, password_file):
            self.account.own(path)
        self._run(
            "initdb", "--pgdata", str(data), "--username", ROLE, "--pwfile", str(password_file), "--encoding=UTF8",
            "--no-locale", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions", "--data-checksums",
            f"--wal-segsize={_WAL_FILE_MIB}",
        )  # fmt: skip
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.write(_INCLUDE)
        self.directory.password.touch(mode=0o600)
        self.directory.password.write_text(password)
        data.rename(self.directory.cluster)
        shutil.rmtree(new, ignore_errors=True)

    def start(self, *, port: int, tcp: bool) -> Address:
        """Start the server, or find it running, and say where it is reached once it is ready.

        Raises:
            EmbeddedError: It does not start; the message has what it said.
        """
        while (address := self.pid_file.address()) is None:
            if self.pid_file.server() is None:
                self._launch(port=port, tcp=tcp)
            else:
                # Starting or stopping, on behalf of a supervisor that was killed.
                time.sleep(_POLL_SECONDS)
        return address

    def _launch(self, *, port: int, tcp: bool) -> None:
        socket = self._socket_folder()
        self._configure(socket, port=port, tcp=tcp)
        self.directory.log.touch(mode=0o600)
        self.account.own(self.directory.log)
        end = time.monotonic() + _ORPHAN_SECONDS
        while self.pid_file.server() is None:
            self.pid_file.remove_if_misleading(socket)
            log_size = self.directory.log.stat().st_size
            try:
                self._pg_ctl("start", f"--timeout={_START_SECONDS}", f"--log={self.directory.log}")
            except EmbeddedError as error:
                said = self._logged_since(log_size)
                if self.pid_file.server() is not None:
                    return  # Another start, of a supervisor that was killed, came first.
                if "shared memory block" not in said or time.monotonic() > end:
                    hint = f"choose another port than {port}" if "Address already in use" in said else error.hint
                    raise EmbeddedError(f"the server of {self.directory.path} does not start: {said}", hint) from error
                time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop the server cleanly: sessions are ended, everything is written."""
        if self.pid_file.server() is not None:
            self._pg_ctl("stop", "--mode=fast", f"--timeout={_STOP_SECONDS}")
        socket = self.directory.socket()
        if socket.parent != self.directory.path:
            with contextlib.suppress(OSError):
                socket.rmdir()

    def _socket_folder(self) -> Path:
        socket = self.directory.socket()
        try:
            socket.mkdir(mode=0o700)
        except FileExistsError:
            # The folder may lie in /tmp, where another user could have made it first.
            found = socket.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {self.account.uid, os.geteuid()}:
                raise EmbeddedError(
                    f"the folder {socket} for the socket belongs to somebody else",
                    "remove it, or choose a shorter path with POSTBUS_DATA_DIR or --data-dir",
                ) from None
            socket.chmod(0o700)
        self.account.own(socket)
        return socket

    def _configure(self, socket: Path, *, port: int, tcp: bool) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1" if tcp else "",
            "unix_socket_directories": socket,
            "unix_socket_permissions": "0700",
            "max_connections": 200,
            "shared_buffers": f"{min(max(memory // 8, 128), 1024)}MB",
            "effective_cache_size": f"{max(memory // 2, 256)}MB",
            "maintenance_work_mem": "128MB",
            "wal_level": "logical",
            "max_wal_size": "4GB",
            "wal_writer_delay": "20ms",
            "max_locks_per_transaction": 256,
            "max_prepared_transactions": 20,
            "log_timezone": "UTC",
            "timezone": "UTC",
            # Not "$user": the role is called like the schema of Postbus, and tables of users would land there.
            "search_path": "public",
        }
        lines = [f"{name} = '{str(value).replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items()]
        configuration = self.directory.cluster / "postbus.conf"
        configuration.write_text("".join(lines))
        self.account.own(configuration)

    def _pg_ctl(self, action: str, *arguments: str) -> None:
        self._run("pg_ctl", action, f"--pgdata={self.directory.cluster}", "--wait", "--silent", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        done = self._command(program, *arguments)
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split())
            raise EmbeddedError(f"{program} failed: {said}", f"see {self.directory.log}")

    def _command(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Output goes to files: a server that pg_ctl starts would hold a pipe open, and wait for ever would we.
        out, err = self.directory.path / f"{program}.out", self.directory.path / f"{program}.err"
        with out.open("w+") as stdout, err.open("w+") as stderr:
            done = subprocess.run(
                [self.binaries.program(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                # A folder that the server's user may be in; the libraries of the wheel, not of the machine.
                cwd="/",
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
                check=False,
                **self.account.run_as(),
            )
            stdout.seek(0)
            stderr.seek(0)
            answer = subprocess.CompletedProcess(done.args, done.returncode, stdout.read(), stderr.read())
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)
        return answer

    def _logged_since(self, size: int) -> str:
        """What the server has logged since its log had that size, in one line."""
        with self.directory.log.open("rb") as log:
            log.seek(size)
            lines = log.read().decode(errors="replace").splitlines()
        said = [_LOG_PREFIX.sub("", line).strip() for line in lines]
        return "; ".join(line for line in said if not line.startswith(_LOG_NOISE))


def reachable(binaries: Binaries, account: Account, directory: Directory) -> Binaries:
    """Binaries that the server's user may run: these, or a copy in the data directory if their folder is closed to it."""
    if account.can_reach(Path(binaries.program("postgres"))):
        return binaries
    copy = directory.path / f"postgresql-{binaries.release}"
    if not copy.exists():
        new = copy.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(binaries.home, new, symlinks=True)
        new.rename(copy)
    return Binaries(binaries.major, copy, binaries.release)
