"""What commands say to people: once, with what to do next, and about the bus that they have chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import postbus
from postbus.cli import elsewhere, output
from postbus.cli.main import build, called
from postbus.db.embedded.locks import FileLock
from tests import servers
from tests.cli.shell import Shell
from tests.server.serving import serving

pytestmark = pytest.mark.newest_server


@pytest.fixture
def terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(output, "is_for_people", lambda: True)
    return shell


def test_on_a_terminal_each_result_is_said_once(terminal: Shell, tmp_path: Path) -> None:
    terminal("stream", "add", "orders", "--partitions", "1")
    terminal("consumer", "add", "orders", "billing", "--max-deliver", "1", "--backoff", "0s")

    def said(*arguments: str) -> list[str]:
        result = terminal.run(*arguments)
        return [*result.out.splitlines(), *result.err.splitlines()]

    assert said("message", "send", "orders", "k", "1") == ["published as seq 1"]
    (scheduled,) = said("message", "send", "orders", "k", "2", "--deliver-in", "1h")
    assert scheduled.startswith("scheduled; cancel with: postbus schedule cancel orders ")
    number = scheduled.rpartition(" ")[2]
    assert said("schedule", "move", "orders", number, "--in", "2h") == ["moved 1 message"]
    assert said("schedule", "cancel", "orders", number) == ["cancelled 1 message"]
    (delivery,) = terminal.objects("receive", "orders", "billing")
    assert said("consumer", "terminate", "orders", "billing", delivery["ack_id"]) == ["terminated 1"]
    assert said("dead", "redrive", "orders", "billing") == ["redrove 1 dead letter"]
    (delivery,) = terminal.objects("receive", "orders", "billing")
    assert said("consumer", "ack", "orders", "billing", delivery["ack_id"]) == ["acked 1"]
    assert said("consumer", "replay", "orders", "billing", "--from", "1") == ["replayed 1 message"]
    file = tmp_path / "lines"
    file.write_text('{"data": 1}')
    (sent,) = said("message", "send", "orders", "--file", str(file))
    assert sent.startswith("published 1 message, ")


def test_what_did_not_count_is_said_with_status_1(terminal: Shell) -> None:
    terminal("stream", "add", "orders", "--partitions", "1")
    terminal("group", "add", "orders", "readers")
    assert terminal.run("schedule", "cancel", "orders", "17", status=1).out == (
        "cancelled 0 messages of 1; the others were published or cancelled before\n"
    )
    terminal("message", "send", "orders", "k", "1")
    (claim,) = terminal.objects("group", "claim", "orders", "readers", "--lease", "30s")
    assert terminal.run("group", "commit", "orders", "readers", claim["token"]).out == "committed 1 range\n"
    said = terminal.run("group", "commit", "orders", "readers", claim["token"], status=1)
    assert said.out.startswith("committed 0 ranges of 1; the others had been committed")


def test_data_that_is_a_json_string_is_shown_as_one(shell: Shell) -> None:
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "c", "--defaults")
    shell("message", "send", "orders", "k", '"{ 4 }"')
    assert '"{ 4 }"' in shell("stream", "read", "orders")
    assert '"{ 4 }"' in shell("receive", "orders", "c")
    shell("stream", "add", "notes", "--type", "text")
    shell("message", "send", "notes", "k", "{ 4 }")
    assert '"{ 4 }"' not in shell("stream", "read", "notes")


def test_a_postgres_that_is_started_for_a_command_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with servers.data_directory() as folder:
        data_dir = folder / "new"
        here = Shell(None)
        first = here.run("stream", "ls", "--data-dir", str(data_dir))
        assert f"no program uses the embedded Postgres of {data_dir}" in first.err
        assert "chosen by --data-dir" in first.err
        assert here.run("stream", "ls", "--data-dir", str(data_dir), "--quiet").err == ""
        with postbus.connect(data_dir=data_dir):
            assert "no program uses" not in here.run("stream", "ls", "--data-dir", str(data_dir)).err
        FileLock(data_dir / "supervisor.lock").acquire(shared=False, seconds=60)  # Until it has stopped.


def test_the_hint_for_a_missing_token_is_for_the_command_line(fresh_url: str) -> None:
    with serving(fresh_url, require_tokens=True) as api:
        with pytest.raises(postbus.NotAllowed) as caught:
            Shell(api.url)("stream", "ls")
        hint = caught.value.hint_for("command line") or ""
        assert "POSTBUS_TOKEN" in hint
        assert "postbus context create NAME --url" in hint


def test_a_token_that_nobody_asks_for_is_said_to_be_one(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        said = Shell(api.url).run("token", "create", "billing")
    assert "this server asks nobody for a token" in said.err
    assert "--require-tokens" in Shell(fresh_url).run("token", "create", "other").err


def test_a_refused_value_leads_to_the_help_of_the_command(fresh_url: str) -> None:
    with serving(fresh_url) as api:
        shell = Shell(api.url)
        shell("stream", "add", "orders")
        with pytest.raises(postbus.InvalidInput) as caught:
            shell("stream", "edit", "orders", "--partitions", "5000")
    assert "openapi" not in (caught.value.hint or "")


def test_a_claim_without_a_lease_says_that_it_is_final(shell: Shell) -> None:
    shell("stream", "add", "orders", "--partitions", "1")
    shell("group", "add", "orders", "readers")
    shell("message", "send", "orders", "k", "1")
    assert "claimed at most once" in shell.run("group", "claim", "orders", "readers").err
    shell("message", "send", "orders", "k", "2")
    assert shell.run("group", "claim", "orders", "readers", "--lease", "30s").err == ""


def test_a_command_that_is_elsewhere_is_named(shell: Shell) -> None:
    with pytest.raises(postbus.InvalidInput) as caught:
        shell("queue", "redrive", "emails")
    assert caught.value.message == 'postbus queue has no command "redrive"'
    assert caught.value.hint == "use: postbus dead redrive QUEUE"
    assert "Did you mean 'receive'?" in shell.run("queue", "recieve", "emails", status=2).err


@pytest.mark.parametrize("group", elsewhere.PLACES)
def test_places_are_commands_and_what_is_asked_for_is_none(group: str) -> None:
    for command, place in elsewhere.PLACES[group].items():
        wanted = [*group.split(), command, "--help"]
        with pytest.raises(postbus.InvalidInput):
            CliRunner().invoke(build(called(wanted)), wanted, catch_exceptions=False)
        words = [word for word in place.partition(" (")[0].split()[1:] if word.islower()]
        assert CliRunner().invoke(build(called(words)), [*words, "--help"]).exit_code == 0, place


def test_a_create_that_accepts_what_exists_does_not_claim_to_have_created(shell: Shell) -> None:
    for words in (
        ("stream", "add", "s"),
        ("queue", "add", "q"),
        ("consumer", "add", "s", "c"),
        ("group", "add", "s", "g"),
    ):
        assert shell.run(*words, "--exist-ok").err.startswith(f"{words[0]} {words[-1]}")
        assert "exists" in shell.run(*words, "--exist-ok").err


def test_the_dead_letters_of_a_queue_need_no_consumer(shell: Shell) -> None:
    shell("queue", "add", "emails", "--max-deliver", "1", "--backoff", "0s")
    for _ in range(2):
        shell("queue", "send", "emails", "1")
        (delivery,) = shell.objects("queue", "receive", "emails")
        shell("queue", "nack", "emails", delivery["ack_id"])
    assert shell("dead", "redrive", "emails", "--seq", "1") == "1\n"
    assert shell("dead", "discard", "emails", "--yes") == "1\n"
    shell("stream", "add", "orders")
    with pytest.raises(postbus.InvalidInput, match="name a consumer: stream orders is not a queue") as caught:
        shell("dead", "redrive", "orders")
    assert caught.value.hint == "see which have dead letters: postbus dead ls orders"
