"""Every command, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

import postbus
from postbus.cli.main import ENTRIES, build
from tests.cli.shell import Shell
from tests.server.serving import serving
from tools.cli_reference import commands, reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

pytestmark = pytest.mark.newest_server


def test_the_reference_names_every_command_and_every_option() -> None:
    found = list(commands(typer.main.get_command(build()), "postbus"))
    assert len(found) > 40
    page = reference()
    assert REFERENCE.read_text() == page
    for path, command in found:
        section = page.partition(f"\n## `{path}`\n")[2].partition("\n## ")[0]
        assert section, path
        for option in command.params:
            names = [f"`{name}" for name in option.opts]
            assert option.param_type_name == "argument" or any(name in section for name in names), (path, option)


def test_every_command_has_an_example_and_every_option_says_what_it_is() -> None:
    for path, command in commands(typer.main.get_command(build()), "postbus"):
        assert "Example: postbus" in (command.help or ""), path
        assert path.split()[-1] in (command.help or ""), path
        assert all(option.help for option in command.params), path


def test_every_command_takes_json_and_quiet() -> None:
    for path, command in commands(typer.main.get_command(build()), "postbus"):
        options = {name for option in command.params for name in option.opts}
        expected: set[str] = (
            set() if path in ("postbus up", "postbus observe", "postbus push run") else {"--quiet", "--json"}
        )
        assert expected <= options, path


def test_the_short_help_says_the_same_whether_or_not_a_part_is_loaded() -> None:
    whole = typer.main.get_command(build())
    named = typer.main.get_command(build(only=()))
    for name in ENTRIES:
        assert whole.commands[name].get_short_help_str(80) == named.commands[name].get_short_help_str(80)  # type: ignore[attr-defined]


def test_a_walk_through_streams_messages_and_consumers(shell: Shell, tmp_path: Path) -> None:
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
    read = shell.objects("stream", "read", "orders", "--filter", "orders.>", "--from", "1h")
    assert [message["seq"] for message in read] == [1, 3, 4, 5]
    assert [m["seq"] for m in shell.objects("stream", "read", "orders", "--backwards", "-n", "2")] == [5, 4]

    shell("consumer", "add", "orders", "billing", "--filter", "orders.>", "--max-deliver", "2", "--backoff", "0s")
    (listed,) = shell.objects("consumer", "ls", "orders")
    assert (listed["name"], listed["filter_key_pattern"], listed["order"]) == ("billing", "orders.>", "key")
    (first,) = shell.objects("receive", "orders", "billing")
    (second,) = shell.objects("consumer", "receive", "orders", "billing")
    assert shell("consumer", "ack", "orders", "billing", first["ack_id"]) == "1\n"
    late = shell.run("consumer", "ack", "orders", "billing", first["ack_id"], status=1)
    assert late.out == "0\n"
    assert "already acked or nacked" in late.err
    assert shell("consumer", "extend", "orders", "billing", second["ack_id"], "--ack-wait", "1m") == "1\n"
    assert shell("consumer", "nack", "orders", "billing", second["ack_id"], "--reason", "no luck") == "1\n"
    assert len(shell.objects("consumer", "peek", "orders", "billing")) == 3
    assert shell.objects("consumer", "peek", "orders", "billing", "--pending", "--limit=1") == []
    shell("consumer", "edit", "orders", "billing", "--ack-wait", "2m", "--unset", "filter-key-pattern")
    shell("consumer", "pause", "orders", "billing")
    assert shell.objects("receive", "orders", "billing") == []
    shell("consumer", "resume", "orders", "billing")
    received = []
    while batch := shell.objects("receive", "orders", "billing", "--batch-size=10", "--ack"):
        received += batch
    assert {first["seq"], 1, 3, 4, 5} - {each["seq"] for each in received} == {first["seq"]}
    assert shell("consumer", "replay", "orders", "billing", "--from", "1", "--to", "3") != "0\n"
    (info,) = shell.objects("consumer", "info", "orders", "billing")
    assert info["settings"]["ack_wait"] == 120
    assert shell("consumer", "seek", "orders", "billing", "5") == "4\n"

    shell("consumer", "rm", "orders", "billing", "--yes")
    assert shell.objects("stream", "purge", "orders", "--yes") == [{"start_seq": 6}]
    assert shell.objects("stream", "rm", "orders", "--yes") == [{"removed": "orders"}]
    assert shell("stream", "ls") == ""


def test_a_walk_through_dead_letters_and_schedules(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("message", "send", "orders", "k", "1")
    shell("consumer", "add", "orders", "billing", "--defaults")
    for redrive in (True, False):
        (delivery,) = shell.objects("receive", "orders", "billing")
        shell("consumer", "terminate", "orders", "billing", delivery["ack_id"], "--reason", "broken")
        (letter,) = shell.objects("dead", "ls", "orders", "billing")
        assert letter["reason"] == "broken"
        if redrive:
            assert shell("dead", "redrive", "orders", "billing") == "1\n"
        else:
            assert shell("dead", "discard", "orders", "billing", "--yes") == "1\n"
    assert shell.objects("dead", "ls", "orders", "billing") == []

    (scheduled,) = shell.objects("message", "send", "orders", "k", "1", "--delay", "1h", "--ttl", "1h")
    assert len(shell.objects("schedule", "ls", "orders")) == 1
    assert shell("schedule", "move", "orders", str(scheduled["id"]), "--in", "2h") == "1\n"
    assert shell.objects("schedule", "cancel", "orders", str(scheduled["id"])) == [{"cancelled": 1}]


def test_a_walk_through_queues(shell: Shell, tmp_path: Path) -> None:
    shell("queue", "add", "emails", "--max-deliver", "5", "--backoff", "1s,10s")
    assert [each["name"] for each in shell.objects("queue", "ls")] == ["emails"]
    assert shell("queue", "send", "emails", '{"to": "ada@example.com"}') == "1\n"
    (tmp_path / "lines").write_text('{"data": 2}\n')
    assert shell("queue", "send", "emails", "--file", str(tmp_path / "lines")) == "1\n"
    (first, second) = shell.objects("queue", "receive", "emails", "-n", "10")
    assert sorted([json.dumps(first["data"]), json.dumps(second["data"])]) == ["2", '{"to": "ada@example.com"}']
    assert shell("queue", "ack", "emails", first["ack_id"]) == "1\n"
    assert shell("queue", "nack", "emails", second["ack_id"], "--delay", "1h") == "1\n"
    (info,) = shell.objects("queue", "info", "emails")
    assert (info["settings"]["max_deliver"], info["stats"]["waiting"]) == (5, 1)
    shell("queue", "rm", "emails", "--yes")
    assert shell.objects("queue", "ls") == []


def test_a_walk_through_tokens(shell: Shell) -> None:
    (created,) = shell.objects(
        "token", "create", "billing", "--scope", "consume", "--stream", "orders*", "--days", "90"
    )
    assert created["token"].startswith("pb_")
    (listed,) = shell.objects("token", "ls")
    assert (listed["name"], listed["scopes"], "digest" in listed) == ("billing", ["consume"], False)
    assert "billing" in shell("token", "ls")
    shell("token", "rm", str(listed["id"]))
    assert shell.objects("token", "ls") == []


def test_retention_can_be_set_changed_and_cleared(shell: Shell) -> None:
    given = ["--retain-up-to", "30d", "--retain-at-least", "1h", "--max-messages", "1000", "--max-storage", "10M"]
    (info,) = shell.objects("stream", "add", "orders", *given, "--when-full", "refuse", "--max-message-bytes", "64k")
    assert (info["retain_up_to"], info["retain_at_least"], info["max_messages"]) == (30 * 86400, 3600, 1000)
    assert (info["max_storage"], info["max_message_bytes"], info["when_full"]) == (10 * 2**20, 65536, "refuse")
    (info,) = shell.objects(
        "stream", "edit", "orders", "--retain-up-to", "7d", "--unset", "max-messages", "--until-acked"
    )
    assert (info["retain_up_to"], info["max_messages"], info["until_acked"]) == (7 * 86400, None, True)


def test_quiet_prints_results_only_and_options_may_stand_before_the_command(shell: Shell) -> None:
    said = shell.run("--quiet", "stream", "add", "orders")
    assert (said.out, said.err) == ("", "")
    said = shell.run("message", "send", "orders", "k", "1", "-q")
    assert (said.out, said.err) == ("1\n", "")
    assert json.loads(shell("--json", "stream", "ls"))["name"] == "orders"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(["s", "list"], "orders"), (["str", "show", "orders"], "orders"), (["con", "ls", "orders"], "billing")],
)
def test_short_and_other_names_of_commands_work(shell: Shell, arguments: list[str], name: str) -> None:
    shell("stream", "create", "orders")
    shell("c", "new", "orders", "billing", "--defaults")
    assert name in shell(*arguments)


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["stream", "info", "ordres"], '"ordres" does not exist', 'did you mean "orders"?'),
        (["stream", "info", "zzz"], '"zzz" does not exist', "postbus stream add zzz"),
        (["consumer", "info", "orders", "biling"], '"biling"', 'did you mean "billing"?'),
        (["message", "send", "orders", "k", "hello"], "not JSON", "quote a string"),
        (["message", "send", "orders", "k"], "no data", "postbus message send orders k"),
        (["message", "send", "k.1", '{"q": 4}'], "no data", """postbus message send STREAM k.1 '{"q": 4}'"""),
        (["message", "send", "orders", "--file", "/nowhere"], "/nowhere cannot be read", None),
        (["message", "send", "orders", "k", "--file", "-"], "keys and headers are in the file", "leave out"),
        (["stream", "rm", "orders"], "There is no terminal to ask on", "--yes"),
        (["stream", "add", "more", "--max-storage", "much"], '"much" is not a size', "10M"),
        (["receive", "orders", "billing", "--follow"], "without --ack", "postbus stream read orders --follow"),
        (["receive", "orders", "billing", "--wait", "soon"], '"soon" is not a duration', "30s"),
        (["consumer", "seek", "orders", "billing", "yesterday"], "is not a time", "10m"),
        (["consumer", "replay", "orders", "billing"], "no messages were selected", "--from"),
        (["message", "send", "orders", "k", "1", "--header", "x"], "NAME=VALUE", None),
        (["token", "create", "x", "--scope", "all"], "'all' is not a scope", "publish"),
        (["token", "rm", "99"], "token 99 does not exist", "postbus token ls"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(shell: Shell, arguments: list[str], what: str, hint: str | None) -> None:
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "billing", "--defaults")
    with pytest.raises(postbus.Error) as caught:
        shell(*arguments)
    assert what in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_a_file_that_breaks_off_names_the_line_and_can_be_gone_on_with(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postbus.cli.send_file._BATCH", 2)
    shell("stream", "add", "orders")
    file = tmp_path / "lines"
    lines = [json.dumps({"data": n}) for n in range(5)]
    file.write_text("\n".join([*lines[:3], "broken", *lines[4:]]))
    with pytest.raises(postbus.InvalidInput, match="line 4"):
        shell("message", "send", "orders", "--file", str(file))
    assert [m["data"] for m in shell.objects("stream", "read", "orders")] == [0, 1]

    file.write_text("\n".join(lines))
    assert shell("message", "send", "orders", "--file", str(file), "--skip", "2") == "3\n"
    assert [m["data"] for m in shell.objects("stream", "read", "orders")] == [0, 1, 2, 3, 4]
    assert shell("message", "send", "orders", "--file", "-", input="\n".join(lines)) == "5\n"


def test_numbers_in_a_file_stay_exact(shell: Shell, tmp_path: Path) -> None:
    shell("stream", "add", "orders")
    file = tmp_path / "lines"
    file.write_text(json.dumps({"data": {"n": 2**70, "x": 0.1}}))
    shell("message", "send", "orders", "--file", str(file))
    assert [m["data"] for m in shell.objects("stream", "read", "orders")] == [{"n": 2**70, "x": 0.1}]


def test_pipelines_are_listed_by_a_server_too(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        assert Shell(api.url).objects("pipeline", "ls") == []


def test_the_end_of_a_message_can_be_awaited(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("message", "send", "orders", "k", "1")
    shell("consumer", "add", "orders", "billing", "--defaults")
    (delivery,) = shell.objects("receive", "orders", "billing")
    late = shell.run("consumer", "wait", "orders", "billing", "1", "--timeout", "0s", status=1)
    assert late.err == "billing has not finished message 1 in time\n"

    shell("consumer", "ack", "orders", "billing", delivery["ack_id"])
    assert shell.objects("consumer", "wait", "orders", "billing", "1") == [{"seq": 1, "completion": "done"}]


def test_a_claim_without_a_lease_says_that_it_is_final(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("group", "add", "orders", "readers")
    for lease in ([], ["--lease", "1h"]):
        shell("message", "send", "orders", "k", "1")
        said = shell.run("group", "claim", "orders", "readers", *lease).err
        assert ("at most once" in said) == (not lease)


def test_a_range_is_committed_once(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("message", "send", "orders", "k", "1")
    shell("group", "add", "orders", "readers")
    (claim,) = shell.objects("group", "claim", "orders", "readers", "--lease", "1h")

    assert shell("group", "commit", "orders", "readers", claim["token"]) == "1\n"
    assert "committed 0 ranges of 1" in shell.run("group", "commit", "orders", "readers", claim["token"], status=1).err


def test_a_deferred_message_comes_back_with_its_state(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("message", "send", "orders", "k", "1")
    shell("consumer", "add", "orders", "billing", "--from", "earliest")
    (delivery,) = shell.objects("consumer", "receive", "orders", "billing")
    defer = ("consumer", "defer", "orders", "billing", delivery["ack_id"])

    with pytest.raises(postbus.InvalidInput, match="state is not JSON"):
        shell(*defer, "--state", "oops")
    with pytest.raises(postbus.InvalidInput, match="--until takes a time"):
        shell(*defer, "--until", "10m")
    assert shell(*defer, "--state", '{"line": 4000}') == "1\n"
    assert "deferred 0 of 1" in shell.run(*defer, status=1).err
    assert '{"line": 4000}' in shell("consumer", "peek", "orders", "billing")
    (again,) = shell.objects("consumer", "receive", "orders", "billing", "--wait", "5s")
    assert (again["attempt"], again["deferrals"], again["state"]) == (1, 1, {"line": 4000})
    shell("consumer", "terminate", "orders", "billing", again["ack_id"])
    assert '{"line": 4000}' in shell("dead", "ls", "orders", "billing")
