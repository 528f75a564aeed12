"""A real PgBouncer in transaction mode, between the tests and a Postgres."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from postbus.db.embedded import account
from tests import servers
from tests.waiting import until

POOL_SIZE: Final = 3
_CONFIGURATION: Final = """
[databases]
* = {server}

[pgbouncer]
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


def program() -> str | None:
    """Where PgBouncer is, or None."""
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")


@contextmanager
def running(url: str, *, pool_size: int = POOL_SIZE) -> Iterator[str]:
    """The URL of the same database through a PgBouncer of its own, which has so many connections to it."""
    settings = conninfo_to_dict(url)
    database = settings.pop("dbname")
    # It refuses to run as root, and a server that root started lets nobody in but its own user.
    who = account.choose()
    with servers.data_directory() as folder:
        who.own(folder)
        port = _free_port()
        configuration = folder / "pgbouncer.ini"
        server = " ".join(f"{name}={value}" for name, value in settings.items())
        configuration.write_text(_CONFIGURATION.format(server=server, pool_size=pool_size, port=port, folder=folder))
        command = [str(program()), "-q", str(configuration)]
        with subprocess.Popen(command, cwd=folder, **who.run_as()) as process:
            try:
                through = f"postgresql://anybody@127.0.0.1:{port}/{database}"
                until(lambda: process.poll() is not None or _answers(through), "PgBouncer answers")
                assert process.poll() is None, _log(folder)
                yield through
            finally:
                process.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def _answers(url: str) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


def _log(folder: Path) -> str:
    log = folder / "pgbouncer.log"
    return log.read_text() if log.exists() else "PgBouncer ended without a log"
