"""Every command, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import postbus
from postbus.cli.main import app
from tools.cli_reference import commands, reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

pytestmark = pytest.mark.newest_server


class Shell:
    """Runs commands in this process, on one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: set[str] = set()

    def __call__(self, *arguments: str, input: str | None = None) -> str:
        self.seen.add(" ".join(arguments[:2]) if arguments[0] not in ("receive",) else arguments[0])
        result = CliRunner().invoke(app, [*arguments, "--url", self.url], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    def objects(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json").splitlines()]


@pytest.fixture
def shell(fresh_url: str) -> Shell:
    return Shell(fresh_url)


def test_the_reference_names_every_command() -> None:
    import typer

    names = [path for path, _ in commands(typer.main.get_command(app), "postbus")]
    assert len(names) > 20
    assert REFERENCE.read_text() == reference()
    assert all(f"## `{name}`" in reference() for name in names)


def test_every_command_has_an_example() -> None:
    import typer

    for path, command in commands(typer.main.get_command(app), "postbus"):
        assert "Example: postbus" in (command.help or ""), path


def test_a_walk_through_all_commands(shell: Shell, tmp_path: Path) -> None:
    assert shell("stream", "ls") == ""
    shell("stream", "add", "orders", "--partitions", "2")
    assert shell("message", "send", "orders", "orders.a.1", '{"quantity": 4}', "--header", "type=new") == "1\n"
    assert shell("message", "send", "orders", "-", "-", input="17") == "2\n"
    lines = [json.dumps({"key": f"orders.b.{n}", "data": n}) for n in range(5)]
    (tmp_path / "lines").write_text("\n".join(lines))
    assert shell("message", "send", "orders", "--file", str(tmp_path / "lines"), "--skip", "2") == "3\n"

    assert "orders" in shell("stream", "ls")
    (info,) = shell.objects("stream", "info", "orders")
    assert (info["partitions"], info["last_seq"]) == (2, 5)
    shell("stream", "edit", "orders", "--max-message-bytes", "1000")
    assert [m["seq"] for m in shell.objects("stream", "read", "orders", "--filter", "orders.>", "--from", "1h")] == [
        1,
        3,
        4,
        5,
    ]
    assert [m["seq"] for m in shell.objects("stream", "read", "orders", "--backwards", "-n", "2")] == [5, 4]

    shell("consumer", "add", "orders", "billing", "--filter", "orders.>", "--max-deliver", "2", "--backoff", "0s")
    (listed,) = shell.objects("consumer", "ls", "orders")
    assert (listed["name"], listed["filter_key_pattern"], listed["order"]) == ("billing", "orders.>", "key")
    (first,) = shell.objects("receive", "orders", "billing")
    (second,) = shell.objects("consumer", "receive", "orders", "billing")
    assert shell("consumer", "ack", "orders", "billing", first["ack_id"]) == "1\n"
    assert shell("consumer", "ack", "orders", "billing", first["ack_id"]) == "0\n"
    assert shell("consumer", "nack", "orders", "billing", second["ack_id"], "--reason", "no luck") == "1\n"
    assert len(shell.objects("consumer", "peek", "orders", "billing")) == 3
    shell("consumer", "edit", "orders", "billing", "--ack-wait", "2m", "--unset", "filter_key_pattern")
    shell("consumer", "pause", "orders", "billing")
    assert shell.objects("receive", "orders", "billing") == []
    shell("consumer", "resume", "orders", "billing")
    received = []
    while batch := shell.objects("receive", "orders", "billing", "-n", "10", "--ack"):
        received += batch
    assert {first["seq"], 1, 3, 4, 5} - {each["seq"] for each in received} == {first["seq"]}
    assert shell("consumer", "replay", "orders", "billing", "--from", "1", "--to", "3") != "0\n"
    (info,) = shell.objects("consumer", "info", "orders", "billing")
    assert info["settings"]["ack_wait"] == 120
    assert shell("consumer", "seek", "orders", "billing", "5") == "4\n"

    (last,) = shell.objects("receive", "orders", "billing")
    with postbus.connect(shell.url) as bus:
        bus.consumer("orders", "billing").terminate(last["ack_id"], reason="broken")
    (letter,) = shell.objects("dead", "ls", "orders", "billing")
    assert letter["reason"] == "broken"
    assert shell("dead", "redrive", "orders", "billing") == "1\n"
    (again,) = shell.objects("receive", "orders", "billing")
    with postbus.connect(shell.url) as bus:
        bus.consumer("orders", "billing").terminate(again["ack_id"])
    assert shell("dead", "discard", "orders", "billing", "--yes") == "1\n"

    number = shell("message", "send", "orders", "k", "1", "--deliver-in", "1h", "--ttl", "1h").strip()
    assert len(shell.objects("schedule", "ls", "orders")) == 1
    assert shell("schedule", "move", "orders", number, "--in", "2h") == "1\n"
    assert shell("schedule", "cancel", "orders", number) == "1\n"

    shell("consumer", "rm", "orders", "billing", "--yes")
    shell("stream", "purge", "orders", "--yes")
    shell("stream", "rm", "orders", "--yes")
    assert shell("stream", "ls") == ""


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["stream", "info", "ordres"], '"ordres" does not exist', 'did you mean "orders"?'),
        (["stream", "info", "zzz"], '"zzz" does not exist', "postbus stream add zzz"),
        (["consumer", "info", "orders", "biling"], '"biling"', 'did you mean "billing"?'),
        (["message", "send", "orders", "k", "hello"], "not JSON", "quote a string"),
        (["stream", "rm", "orders"], "Nobody is there to ask", "--yes"),
        (["receive", "orders", "billing", "--wait", "soon"], '"soon" is not a duration', "30s"),
        (["consumer", "seek", "orders", "billing", "yesterday"], "is not a time", "10m"),
        (["message", "send", "orders", "k", "1", "--header", "x"], "NAME=VALUE", None),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(shell: Shell, arguments: list[str], what: str, hint: str | None) -> None:
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "billing", "--defaults")
    with pytest.raises(postbus.Error) as caught:
        shell(*arguments)
    assert what in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_file_that_breaks_off_names_the_line(shell: Shell, tmp_path: Path) -> None:
    shell("stream", "add", "orders")
    lines = [json.dumps({"data": n}) for n in range(3)]
    (tmp_path / "lines").write_text("\n".join([*lines, "broken"]))
    with pytest.raises(postbus.InvalidInput, match="line 4"):
        shell("message", "send", "orders", "--file", str(tmp_path / "lines"))
