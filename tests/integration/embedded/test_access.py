"""Who runs an embedded Postgres and who may reach it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from postbus.db.embedded import EmbeddedServer, account, binaries
from postbus.db.embedded.directory import Directory
from postbus.model.errors import EmbeddedError
from tests.integration.embedded.conftest import NewUser
from tests.integration.embedded.server_process import execute, server_pid
from tests.integration.embedded.user import Someone
from tests.processes import wait_until_gone

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def test_the_log_has_what_change_data_capture_needs(path: Path, new_user: NewUser) -> None:
    assert execute(new_user().url, "show wal_level") == [("logical",)]


def test_tables_of_users_are_apart_from_those_of_postbus(path: Path, new_user: NewUser) -> None:
    with psycopg.connect(new_user(path).url) as connection:
        connection.execute("create schema if not exists postbus")
        connection.execute("create table customer (id integer)")
        found = connection.execute("select 'customer'::regclass::oid = to_regclass('public.customer')::oid").fetchone()
        connection.rollback()
    assert found == (True,)


def test_without_a_port_nothing_listens_on_the_network(path: Path) -> None:
    with EmbeddedServer(path, linger=0) as server:
        assert execute(server.url, "show listen_addresses") == [("",)]
        with pytest.raises(EmbeddedError, match="no TCP port"):
            _ = server.tcp_url


def test_with_a_port_it_listens_on_loopback_alone(path: Path, new_user: NewUser, port: int) -> None:
    user = new_user(port=port)

    assert execute(user.tcp_url, "select inet_server_addr()::text, inet_server_port()") == [("127.0.0.1/32", port)]
    # Loopback too, but another address: who listens on all of them answers here.
    with pytest.raises(OSError, match=r"refused|assign|unreachable"):
        socket.create_connection(("127.0.0.2", port), timeout=5)


@pytest.mark.parametrize("password", ["", "wrong"])
def test_over_tcp_it_asks_for_its_password(path: Path, new_user: NewUser, port: int, password: str) -> None:
    url = make_conninfo(new_user(port=port).tcp_url, password=password, passfile="/dev/null")

    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url)


def test_each_data_directory_has_its_own_password(folder: Path, path: Path) -> None:
    with EmbeddedServer(folder / "other", linger=0) as other:
        assert other.directory.password.read_text() != Directory(path).password.read_text()
        assert len(other.directory.password.read_text()) >= 32


def test_nothing_is_open_to_others_and_no_folder_above_is_changed(folder: Path, new_user: NewUser) -> None:
    above = folder / "above"
    above.mkdir()
    above.chmod(0o751)
    path = above / "between" / "data"
    before = mode_of(folder)

    new_user(path).ready()

    assert (mode_of(folder), mode_of(above)) == (before, 0o751)
    assert mode_of(path) & ~0o011 == 0o700
    for private in (path / "postgres", path / "socket"):
        assert mode_of(private) == 0o700
    for private in (path / "password", path / "postgres.log"):
        assert mode_of(private) == 0o600


@as_root
def test_for_root_it_runs_as_the_system_user(path: Path, new_user: NewUser) -> None:
    user = new_user().ready()

    assert Path(f"/proc/{server_pid(path)}").stat().st_uid == pwd.getpwnam(account.SYSTEM_USER).pw_uid
    assert execute(user.url, "select 1") == [(1,)]


def test_for_a_plain_user_it_runs_as_that_user(new_path: Path, new_user: NewUser, plain: Someone) -> None:
    user = new_user(run_as=plain).ready()
    pid = server_pid(new_path)

    assert Path(f"/proc/{pid}").stat().st_uid == plain.uid
    assert mode_of(new_path) == 0o700
    assert execute(user.url, "select 1") == [(1,)]

    user.leave()
    wait_until_gone(pid)


@as_root
def test_another_user_of_the_machine_cannot_reach_roots_server(path: Path, new_user: NewUser, plain: Someone) -> None:
    owner = new_user().ready()
    psql = [binaries.find().program("psql"), owner.url, "-c", "select 1"]

    as_nobody = subprocess.run(psql, cwd="/", capture_output=True, text=True, check=False, **plain.run_as())
    stranger = new_user(run_as=plain)

    assert "Permission denied" in as_nobody.stderr
    assert "cannot be used: Permission denied" in stranger.answer["error"]


@as_root
def test_root_may_use_a_folder_that_is_open_to_the_system_user_alone(folder: Path, new_user: NewUser) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    account.choose().own(closed)

    assert execute(new_user(closed / "data").url, "select 1") == [(1,)]
    assert mode_of(closed) == 0o700


@as_root
def test_root_may_use_programs_in_a_folder_that_is_closed_to_others(
    path: Path, folder: Path, new_user: NewUser
) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(binaries.find().home, closed / "programs", symlinks=True)

    assert execute(new_user(home=str(closed / "programs")).url, "select 1") == [(1,)]
    assert mode_of(closed) == 0o700


@as_root
def test_a_folder_closed_to_the_system_user_is_refused_and_stays_closed(folder: Path, new_user: NewUser) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)

    answer = new_user(closed / "data").answer

    assert answer["error"].startswith(f"the data directory {closed / 'data'} is inside {closed}, which is closed")
    assert "POSTBUS_DATA_DIR" in answer["hint"]
    assert mode_of(closed) == 0o700


@as_root
def test_a_link_laid_out_for_the_socket_is_refused_and_not_followed(
    folder: Path, new_user: NewUser, long_path: Path
) -> None:
    target = folder / "target"
    target.mkdir()
    Directory(long_path).socket().symlink_to(target)

    assert "belongs to somebody else" in new_user(long_path).answer["error"]
    assert target.stat().st_uid == 0


@as_root
def test_a_socket_folder_made_by_another_user_is_refused(new_user: NewUser, long_path: Path) -> None:
    laid_out = Directory(long_path).socket()
    laid_out.mkdir()
    os.chown(laid_out, pwd.getpwnam("nobody").pw_uid, -1)

    answer = new_user(long_path).answer

    assert answer["error"] == f"the folder {laid_out} for the socket belongs to somebody else"
    assert "remove it" in answer["hint"]


@pytest.fixture
def long_path(folder: Path, initialised: Path) -> Iterator[Path]:
    """A data directory whose socket has to be elsewhere."""
    path = folder / ("long" * 25)
    subprocess.run(["cp", "-a", initialised, path], check=True)
    yield path
    elsewhere = Directory(path).socket()
    if elsewhere.is_symlink():
        elsewhere.unlink()
    else:
        shutil.rmtree(elsewhere, ignore_errors=True)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
