"""An embedded Postgres is there while somebody uses it, and no longer, however its users end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.db.embedded import EmbeddedServer
from postbus.db.embedded.directory import Directory
from postbus.db.embedded.locks import FileLock
from tests.integration.embedded.conftest import NewUser
from tests.integration.embedded.server_process import (
    execute,
    log_of,
    server_pid,
    wait_for_supervisor,
    wait_until_free,
)
from tests.processes import is_alive, wait_until_gone

CLEAN_END = "database system is shut down"


@pytest.mark.parametrize(
    "name",
    ["with two spaces", "it's, with a comma", "daten-größe", "/".join(["a-name-of-31-characters-in-all"] * 7)],
    ids=["spaces", "comma", "umlauts", "too-long-for-a-socket"],
)
def test_any_usual_path_will_do(folder: Path, name: str) -> None:
    path = folder / name
    with postbus.connect(data_dir=path) as bus:
        bus.create_stream("orders")
        seq = bus.publish("orders", key="a", data=1)

        assert [message.seq for message in bus.read("orders")] == [seq]

    wait_until_free(path)
    socket = Directory(path).socket()
    assert socket.parent == path or not socket.exists()


def test_the_write_ahead_log_of_a_new_server_lies_in_small_files(path: Path) -> None:
    with EmbeddedServer(path, linger=0) as server:
        assert execute(server.url, "show wal_segment_size") == [("4MB",)]


def test_two_processes_share_one_server(path: Path, new_user: NewUser) -> None:
    first = new_user().ready()
    pid = server_pid(path)
    second = new_user().ready()

    assert second.url == first.url
    assert server_pid(path) == pid
    assert second.supervisor == first.supervisor


def test_eight_processes_that_start_at_once_get_one_server(new_path: Path, new_user: NewUser) -> None:
    users = [new_user() for _ in range(8)]

    assert len({user.url for user in users}) == 1
    assert len({user.supervisor for user in users}) == 1
    assert log_of(new_path).count("ready to accept connections") == 1


def test_the_server_outlives_its_starter_while_another_uses_it(path: Path, new_user: NewUser) -> None:
    starter = new_user()
    with psycopg.connect(starter.url, autocommit=True) as session:
        other = new_user()
        assert other.supervisor == starter.supervisor

        starter.kill()
        newcomer = new_user()

        assert newcomer.supervisor == starter.supervisor
        assert session.execute("select 1").fetchone() == (1,)


def test_the_server_ends_cleanly_when_its_last_user_leaves(path: Path, new_user: NewUser) -> None:
    users = [new_user().ready(), new_user().ready()]
    pid = server_pid(path)

    users[0].leave()
    assert is_alive(pid)
    users[1].leave()

    wait_until_gone(pid)
    wait_until_free(path)
    assert CLEAN_END in log_of(path)


def test_the_server_ends_cleanly_when_all_its_users_are_killed(path: Path, new_user: NewUser) -> None:
    users = [new_user().ready(), new_user().ready()]
    pid = server_pid(path)

    for user in users:
        user.kill()

    wait_until_gone(pid)
    wait_until_free(path)
    assert CLEAN_END in log_of(path)


def test_the_server_ends_cleanly_when_its_only_user_is_killed_while_it_starts(
    new_path: Path, new_user: NewUser
) -> None:
    user = new_user()
    wait_for_supervisor(new_path)

    user.kill()

    wait_until_free(new_path)
    assert CLEAN_END in log_of(new_path)
    assert not (new_path / "postgres" / "postmaster.pid").exists()


def test_the_data_is_there_when_the_server_starts_again(path: Path, new_user: NewUser) -> None:
    first = new_user()
    execute(first.url, "create table kept as select 42 as answer")
    first.leave()
    wait_until_free(path)

    assert execute(new_user().url, "select answer from kept") == [(42,)]


def test_a_user_may_start_and_stop_twice(path: Path) -> None:
    server = EmbeddedServer(path, linger=0).start().start()
    supervisor = server.state.supervisor
    server.stop()
    server.stop()

    wait_until_gone(supervisor)
    server.start()
    assert execute(server.url, "select 1") == [(1,)]
    server.stop()


def test_a_forked_child_keeps_the_server_up_after_its_parent_left(path: Path) -> None:
    server = EmbeddedServer(path, linger=0).start()
    pid = server_pid(path)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    server.stop()
    try:
        assert not FileLock(path / "users.lock").try_acquire(shared=False)
        assert is_alive(pid)
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)
    wait_until_gone(pid)


def test_a_terminated_supervisor_stops_the_server_cleanly(path: Path, new_user: NewUser) -> None:
    user = new_user().ready()
    pid = server_pid(path)

    os.kill(user.supervisor, signal.SIGTERM)

    wait_until_gone(pid)
    wait_until_free(path)
    assert CLEAN_END in log_of(path)
    assert execute(new_user().url, "select 1") == [(1,)]
