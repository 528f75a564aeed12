"""`postbus apply` and `postbus export`, as a user types them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import postbus
from tests.cli.shell import Shell

pytestmark = pytest.mark.newest_server

_FILE = """
[streams.orders]
partitions = 4

[streams.orders.consumers.billing]
max_deliver = 5

[queues.emails]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bus.toml"
    path.write_text(_FILE)
    return path


def test_a_file_is_applied_and_the_differences_are_shown(shell: Shell, file: Path) -> None:
    said = shell.run("apply", str(file), "--dry-run")
    assert said.out.splitlines() == [
        "create  stream orders            partitions 4",
        "create  consumer orders/billing  max_deliver 5",
        "create  queue emails",
    ]
    assert said.err == "3 to create; nothing was changed\n"
    assert shell.objects("stream", "ls") == []

    assert shell.run("apply", str(file)).err == "3 created\n"
    file.write_text(_FILE.replace("max_deliver = 5", "max_deliver = 6"))
    said = shell.run("apply", str(file))
    assert "change  consumer orders/billing  max_deliver 5 → 6" in said.out
    assert said.err == "1 changed, 2 the same\n"
    assert shell.objects("apply", str(file))[0] == {
        "action": "same",
        "kind": "stream",
        "stream": "orders",
        "name": "orders",
        "settings": {},
    }


def test_nothing_is_removed_but_with_prune_and_a_yes(shell: Shell, file: Path) -> None:
    shell("apply", str(file))
    shell("stream", "add", "old")
    shell("consumer", "add", "orders", "odd", "--defaults")

    said = shell.run("apply", str(file))
    assert "not in file  stream old" in said.out
    assert "not in file  consumer orders/odd" in said.out
    with pytest.raises(postbus.InvalidInput, match="stream old with all its messages") as caught:
        shell("apply", str(file), "--prune")
    assert "consumer orders/odd" in caught.value.message
    assert "emails" not in caught.value.message
    said = shell.run("apply", str(file), "--prune", "--yes")
    assert "remove  stream old" in said.out
    assert {each["name"] for each in shell.objects("stream", "ls")} == {"orders", "emails"}
    assert [each["name"] for each in shell.objects("consumer", "ls", "orders")] == ["billing"]


def test_what_is_exported_is_the_file(shell: Shell, file: Path, tmp_path: Path) -> None:
    shell("apply", str(file))
    assert shell("export").strip() == _FILE.strip()
    other = tmp_path / "other.toml"
    shell("export", "--output", str(other))
    assert shell.run("apply", str(other)).err == "3 the same\n"


def test_a_file_comes_from_stdin_too(shell: Shell) -> None:
    assert shell("apply", "-", input=_FILE).startswith("create")


def test_the_how_to_shows_what_is_printed(shell: Shell, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "declare-streams.md").read_text()
    (declared,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (printed,) = re.findall(r"--dry-run\n(.*?)\$ postbus apply", page, re.S)
    (tmp_path / "bus.toml").write_text(declared)
    said = shell.run("apply", str(tmp_path / "bus.toml"), "--dry-run")
    assert said.out + said.err == printed
