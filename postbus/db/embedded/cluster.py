"""The Postgres cluster in a data directory: made by initdb, configured, started and stopped by pg_ctl."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postbus.db.embedded.account import Account
from postbus.db.embedded.binaries import Binaries
from postbus.db.embedded.directory import Directory
from postbus.model.errors import EmbeddedError

ROLE: Final = "postbus"
_INCLUDE: Final = "\n# Written anew at each start. Your own settings: ALTER SYSTEM SET ….\ninclude = 'postbus.conf'\n"
_MIB: Final = 1024 * 1024
# Recovery after a crash may take minutes. pg_ctl gives up earlier if the server process ends.
_START_SECONDS: Final = 3600
_STOP_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Cluster:
    directory: Directory
    binaries: Binaries
    account: Account

    def prepare(self) -> None:
        """Make the cluster if there is none; refuse one of another version.

        Raises:
            EmbeddedError: The cluster belongs to another version, or initdb failed.
        """
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
        # Under another name first, so that an initdb that was killed leaves nothing that looks like a cluster.
        new = self.directory.path / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self.account.own(new)
        password_file = new.with_suffix(".password")
        password = secrets.token_urlsafe(24)
        password_file.write_text(password)
        self.account.own(password_file)
        try:
            self._run(
                "initdb", "--pgdata", str(new), "--username", ROLE, "--pwfile", str(password_file), "--encoding=UTF8",
                "--no-locale", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions", "--data-checksums",
            )  # fmt: skip
        finally:
            password_file.unlink()
        with (new / "postgresql.conf").open("a") as configuration:
            configuration.write(
                "\n# Written anew at each start. Your own settings: ALTER SYSTEM SET ….\ninclude = 'postbus.conf'\n"
            )
        self.directory.password.touch(mode=0o600)
        self.directory.password.write_text(password)
        new.rename(self.directory.cluster)

    def start(self, *, port: int, tcp: bool) -> Path:
        """Start the server, or find it running, and return the folder of its socket."""
        socket = self._socket_folder()
        if self.is_running():
            return socket
        self._configure(socket, port=port, tcp=tcp)
        self.directory.log.touch(mode=0o600)
        self.account.own(self.directory.log)
        try:
            self._pg_ctl("start", f"--timeout={_START_SECONDS}", f"--log={self.directory.log}")
        except EmbeddedError as error:
            raise EmbeddedError(f"{error.message}; its log ends with: {self._end_of_log()}", error.hint) from error
        return socket

    def stop(self) -> None:
        """Stop the server cleanly: sessions are ended, everything is written."""
        if self.is_running():
            self._pg_ctl("stop", "--mode=fast", f"--timeout={_STOP_SECONDS}")

    def is_running(self) -> bool:
        return self._command("pg_ctl", "status", f"--pgdata={self.directory.cluster}").returncode == 0

    def _socket_folder(self) -> Path:
        socket = self.directory.socket()
        socket.mkdir(mode=0o700, exist_ok=True)
        self.account.own(socket)
        found = socket.lstat()
        # The folder may lie in /tmp, where another user could have made it first.
        if found.st_uid != self.account.uid or socket.is_symlink():
            raise EmbeddedError(f"the folder {socket} for the socket belongs to somebody else")
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
            "max_locks_per_transaction": 256,
            "max_prepared_transactions": 20,
            "log_timezone": "UTC",
            "timezone": "UTC",
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

    def _end_of_log(self) -> str:
        lines = self.directory.log.read_text(errors="replace").splitlines()[-3:]
        return " / ".join(line.strip() for line in lines)


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
