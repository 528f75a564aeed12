"""An embedded Postgres goes on when what runs it is killed, and gets over what a dead one left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.db.embedded import EmbeddedServer, account
from postbus.db.embedded.directory import Directory, State
from postbus.db.embedded.locks import FileLock
from tests.integration.embedded.conftest import NewUser
from tests.integration.embedded.server_process import (
    execute,
    log_of,
    server_pid,
    wait_for_another_server,
    wait_until_free,
)
from tests.processes import is_alive, wait_until_gone
from tests.waiting import until


@pytest.mark.parametrize("with_port", [False, True], ids=["socket", "tcp"])
def test_a_server_whose_supervisor_was_killed_is_taken_over_by_the_next_user(
    path: Path, new_user: NewUser, port: int, with_port: bool
) -> None:
    first = new_user(port=port if with_port else None)
    with psycopg.connect(first.url, autocommit=True) as session:
        os.kill(first.supervisor, signal.SIGKILL)
        wait_until_gone(first.supervisor)
        pid = server_pid(path)

        second = new_user()

        assert second.supervisor != first.supervisor
        assert second.url == first.url
        assert server_pid(path) == pid
        assert session.execute("select 1").fetchone() == (1,)

    first.leave()
    assert is_alive(pid)
    second.leave()
    wait_until_gone(pid)
    wait_until_free(path)
    assert "database system is shut down" in log_of(path)


def test_a_supervisor_killed_during_the_first_start_is_replaced_by_the_next_user(
    new_path: Path, new_user: NewUser
) -> None:
    first = new_user()
    until(lambda: list(new_path.glob("postgres.new-*/data/base")), "initdb is at work")
    kill_supervisor_of(new_path)

    assert first.answer["hint"] == f"see {new_path / 'supervisor.log'}"
    assert execute(new_user().url, "select 1") == [(1,)]


def test_leftovers_of_a_killed_first_start_are_removed(path: Path, new_user: NewUser) -> None:
    (path / "postgres.new-0123abcd" / "data").mkdir(parents=True)

    new_user().ready()

    assert list(path.glob("postgres.new-*")) == []


def test_a_killed_server_comes_back_under_its_users_with_all_data(path: Path) -> None:
    with postbus.connect(data_dir=path) as bus:
        bus.create_stream("orders")
        seqs = [bus.publish("orders", data=number) for number in range(10)]
        pid = server_pid(path)

        # A backend at work does not notice the end of its server, and keeps its memory from the next one.
        with busy_backend(bus.url):
            os.kill(pid, signal.SIGKILL)
            wait_until_gone(pid)
            wait_for_another_server(path, pid)

        assert [message.seq for message in bus.read("orders")] == seqs
        assert bus.publish("orders", data=10) > seqs[-1]


def test_a_server_that_is_stopped_under_its_users_comes_back_as_it_was(
    path: Path, new_user: NewUser, port: int
) -> None:
    user = new_user(port=port).ready()
    pid = server_pid(path)

    os.kill(pid, signal.SIGINT)
    wait_until_gone(pid)

    until(lambda: can_connect(user.tcp_url), "it comes back on its port")
    assert server_pid(path) != pid


def test_a_server_that_cannot_come_back_is_tried_again(path: Path, new_user: NewUser) -> None:
    user = new_user().ready()
    pid = server_pid(path)
    control = path / "postgres" / "global" / "pg_control"
    control.rename(path / "pg_control")
    os.kill(pid, signal.SIGKILL)
    until(lambda: "does not start" in (path / "supervisor.log").read_text(), "the supervisor has tried in vain")

    (path / "pg_control").rename(control)

    until(lambda: can_connect(user.url), "it comes back")


def test_stale_pid_files_that_name_another_process_are_ignored(path: Path, new_user: NewUser) -> None:
    who = account.choose()
    with subprocess.Popen(["sleep", "600"], **who.run_as()) as stranger:
        try:
            for left_behind in (path / "postgres" / "postmaster.pid", path / "socket" / ".s.PGSQL.5432.lock"):
                left_behind.write_text(f"{stranger.pid}\n{path / 'postgres'}\n1700000000\n5432\n\n\n\nready\n")
                who.own(left_behind)

            assert execute(new_user().url, "select 1") == [(1,)]
            assert is_alive(stranger.pid)
        finally:
            stranger.kill()


def test_the_report_of_a_dead_supervisor_is_not_trusted(path: Path) -> None:
    directory = Directory(path)
    directory.write_state(State(supervisor=1, socket="/nowhere", port=1, tcp=False, major=18)).release()
    starting = FileLock(directory.supervisor)
    assert starting.try_acquire(shared=False)
    server = EmbeddedServer(path, linger=0)
    user = threading.Thread(target=server.start)
    user.start()

    # It has seen the lock of a supervisor that has not told anything yet, and what the dead one had.
    user.join(timeout=0.3)
    assert user.is_alive()

    starting.release()
    user.join()
    assert execute(server.url, "select 1") == [(1,)]
    server.stop()


def test_a_server_whose_data_directory_is_deleted_is_stopped(new_path: Path, new_user: NewUser) -> None:
    user = new_user().ready()
    pid = server_pid(new_path)
    with (new_path / "postgres.log").open() as log:
        new_path.rename(new_path.with_name("deleted"))
        shutil.rmtree(new_path.with_name("deleted"), ignore_errors=True)

        wait_until_gone(pid)
        assert "received immediate shutdown request" in log.read()
    wait_until_gone(user.supervisor)


def can_connect(url: str) -> bool:
    with suppress(psycopg.OperationalError):
        return execute(url, "select 1") == [(1,)]
    return False


def kill_supervisor_of(path: Path) -> None:
    """Kill a supervisor that has not told its number yet."""
    ours = [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if b"postbus.db.embedded.supervisor" in arguments(process) and os.fsencode(path) in arguments(process)
    ]
    (pid,) = ours
    os.kill(pid, signal.SIGKILL)


def arguments(process: Path) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return (process / "cmdline").read_bytes()
    return b""


@contextmanager
def busy_backend(url: str) -> Iterator[None]:
    """A session that computes for some seconds, whatever happens to its server."""
    session = psycopg.connect(url, autocommit=True)

    def work() -> None:
        with suppress(psycopg.OperationalError), session:
            session.execute("select count(*) from generate_series(1, 10000000) as g order by sum(g)")

    worker = threading.Thread(target=work)
    worker.start()
    until(
        lambda: (
            execute(
                url, "select count(*) from pg_stat_activity where query like '%order by sum(g)' and state = 'active'"
            )
            == [(1,)]
        ),
        "the backend is at work",
    )
    yield
    worker.join()
