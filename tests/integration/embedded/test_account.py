"""Which system user runs the server when this process is root."""

from __future__ import annotations

import pwd
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postbus.db.embedded import account
from postbus.model.errors import EmbeddedError


class Users:
    """A list of users in a file, and a command that adds "postbus" to it.

    As useradd does, the command gives a user that was created meanwhile another number.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "passwd"
        self.failures = folder / "failures"
        self.lock = folder / "lock"
        script = folder / "add"
        script.write_text(
            f"""#!/bin/sh
if [ -s {self.failures} ]; then sed -i 1d {self.failures}; exit 1; fi
[ -e {self.file} ] && exit 9
sleep 0.2
echo $$ > {self.file}.$$
mv {self.file}.$$ {self.file}
"""
        )
        script.chmod(0o755)
        self.command = [str(script)]

    def by_name(self, name: str) -> pwd.struct_passwd:
        if not self.file.exists():
            raise KeyError(name)
        number = int(self.file.read_text())
        return pwd.struct_passwd((name, "x", number, number, "", "/", "/bin/sh"))

    def by_number(self, number: int) -> pwd.struct_passwd:
        entry = self.by_name(account.SYSTEM_USER)
        if entry.pw_uid != number:
            raise KeyError(number)
        return entry


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    users = Users(tmp_path)
    monkeypatch.setattr(pwd, "getpwnam", users.by_name)
    monkeypatch.setattr(pwd, "getpwuid", users.by_number)
    return users


def test_processes_that_create_the_user_at_once_agree_on_its_number(users: Users) -> None:
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(account.create, [users.command], lock=users.lock) for _ in range(4)]
        numbers = {call.result().pw_uid for call in calls}

    assert numbers == {int(users.file.read_text())}


def test_creating_the_user_is_tried_again_while_the_list_of_users_is_locked(users: Users) -> None:
    users.failures.write_text("cannot lock\ncannot lock\n")

    assert account.create([users.command], lock=users.lock).pw_uid == int(users.file.read_text())


def test_a_user_that_cannot_be_created_is_an_error_with_a_hint(users: Users) -> None:
    with pytest.raises(EmbeddedError, match="could not be created") as refused:
        account.create([["false"]], lock=users.lock, patience=0.2)

    assert "POSTBUS_URL" in str(refused.value.hint)


def test_without_a_folder_for_the_lock_the_user_is_created(users: Users, tmp_path: Path) -> None:
    created = account.create([users.command], lock=tmp_path / "missing" / "lock")

    assert created.pw_uid == int(users.file.read_text())
