"""`--as-curl` on every command that talks HTTP: what it prints does with curl what the command does.

Two buses start alike. Each step is done on one by the command, on the other by curl; then they have to be alike again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer

import postbus
from postbus.cli.main import build
from tests import servers
from tests.cli.shell import Shell
from tests.server.serving import Api, serving
from tools.cli_reference import commands

pytestmark = pytest.mark.newest_server

# Not about a bus, or about Postgres itself, or about a screen, or more than a few requests.
WITHOUT_HTTP = {
    "apply",
    "export",
    "up",
    "migrate",
    "observe",
    "doctor",
    "context",
    "pipeline",
    "completion",
    "source run",
}


@dataclass(frozen=True)
class Side:
    """A server with a token, and the bus behind it."""

    api: Api
    bus: postbus.Bus
    token: str

    def by_command(self, *arguments: str, input: str | None = None) -> list[Any]:
        return Shell(self.api.url).objects(*arguments, input=input)

    def by_curl(self, *arguments: str, input: str | None = None) -> list[Any]:
        printed = Shell(self.api.url)(*arguments, "--as-curl", input=input)
        assert self.token not in printed
        return [self._run(line) for line in printed.splitlines()]

    def _run(self, line: str) -> Any:
        assert '"Authorization: Bearer $POSTBUS_TOKEN"' in line
        return json.loads(self.output_of(f"{line} --silent --fail-with-body"))

    def output_of(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "POSTBUS_TOKEN": self.token},
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout

    def state(self) -> Any:
        """Everything that a step can change, but for what differs by nature; what comes due has come due."""
        self.bus.sweep()
        return json.loads(json.dumps([_stream(self.bus, info) for info in self.bus.list_streams()], default=str))


def _stream(bus: postbus.Bus, info: postbus.StreamInfo) -> Any:
    return {
        "settings": _alike(info, "id", "created_at", "message_estimate", "bytes", "next_scheduled_at"),
        "messages": [(m.seq, m.key, m.data, m.headers) for m in bus.scan(info.name)],
        "scheduled": [(s.key, s.data, s.ttl) for s in bus.list_scheduled(info.name)],
        "consumers": [_consumer(bus.consumer(info.name, each.name)) for each in bus.list_consumers(info.name)],
    }


def _consumer(consumer: postbus.Consumer) -> Any:
    return {
        "settings": _alike(consumer.info(), "id", "created_at"),
        "messages": [(p.seq, p.state, p.attempts, p.reason) for p in consumer.peek()],
        "history": [(h.seq, h.outcome) for h in consumer.history()],
    }


def _alike(value: Any, *different: str) -> dict[str, Any]:
    return {name: each for name, each in asdict(value).items() if name not in different}


@pytest.fixture
def sides(server: servers.Server) -> Iterator[tuple[Side, Side]]:
    with servers.database(server.url) as one, servers.database(server.url) as other:
        tokens = [json.loads(Shell(url)("token", "create", "test", "--json"))["token"] for url in (one, other)]
        with (
            serving(one, require_tokens=True) as first,
            serving(other, require_tokens=True) as second,
            postbus.connect(one) as bus,
            postbus.connect(other) as other_bus,
        ):
            yield Side(first, bus, tokens[0]), Side(second, other_bus, tokens[1])


def walk_sources(commanded: Side, curled: Side, step: Any) -> None:
    """Nobody reads the source, and each has a table of its own."""
    for side in (commanded, curled):
        with psycopg.connect(side.bus.url, autocommit=True) as sql:
            sql.execute("create table items (id int primary key)")
    step("source", "postgres", "add", "shop", "orders", "--table", "items", "--no-backfill")
    for verb in ("ls", "postgres ls", "postgres info shop"):
        ours, theirs = step("source", *verb.split())
        found = theirs[0]["data"]
        assert (found[0] if isinstance(found, list) else found)["state"] == ours[0]["state"] == "not_running"
    step("source", "postgres", "edit", "shop", "--format", "debezium", "--where", "items=id > 0")
    step("source", "postgres", "backfill", "shop")
    step("source", "postgres", "pause", "shop")
    step("source", "postgres", "resume", "shop")
    ours, theirs = step("source", "postgres", "rm", "shop", "--yes")
    assert theirs[0]["data"]["cleaned"] is ours[0]["cleaned"] is True
    step("source", "postgres", "add", "again", "orders", "--table", "items", "--no-backfill")
    step("source", "postgres", "restart", "again", "--no-backfill", "--yes")
    step("source", "postgres", "rm", "again", "--yes")


def test_the_printed_curl_command_does_what_the_command_does(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commanded, curled = sides
    walked: set[str] = set()

    def step(*arguments: str, input: str | None = None) -> tuple[list[Any], list[Any]]:
        """Do it both ways; what came of it, and what curl said."""
        is_deep = arguments[1:2] == ("push",) or arguments[0] == "source"
        length = 1 if arguments[0] == "receive" else 3 if is_deep else 2
        walked.add(" ".join(arguments[:length]))
        monkeypatch.setenv("POSTBUS_TOKEN", commanded.token)
        ours = commanded.by_command(*arguments, input=input)
        monkeypatch.setenv("POSTBUS_TOKEN", curled.token)
        theirs = curled.by_curl(*arguments, input=input)
        assert commanded.state() == curled.state(), arguments
        return ours, theirs

    def settle(verb: str, target: Sequence[str], *more: str) -> None:
        """Receive one message on both sides, and settle it by the ack ids that each has."""
        (ours,), (theirs,) = step(*(("queue", "receive", target[0]) if len(target) == 1 else ("receive", *target)))
        walked.add(f"{'queue' if len(target) == 1 else 'consumer'} {verb}")
        kind = "queue" if len(target) == 1 else "consumer"
        monkeypatch.setenv("POSTBUS_TOKEN", commanded.token)
        commanded.by_command(kind, verb, *target, ours["ack_id"], *more)
        monkeypatch.setenv("POSTBUS_TOKEN", curled.token)
        curled.by_curl(kind, verb, *target, theirs["data"][0]["ack_id"], *more)
        assert commanded.state() == curled.state(), verb

    step("stream", "add", "orders", "--partitions", "1", "--retain-up-to", "30d", "--dedup-window", "1m")
    step("stream", "edit", "orders", "--max-storage", "10M", "--unset", "retain-up-to")
    ours, theirs = step("stream", "ls")
    assert [each["name"] for each in theirs[0]["data"]] == [each["name"] for each in ours] == ["orders"]
    ours, theirs = step("stream", "info", "orders")
    assert theirs[0]["data"]["max_storage"] == ours[0]["max_storage"] == 10 * 2**20
    step("message", "send", "orders", "orders.a'b.1", '{"note": "it\'s $HOME `id` \\"ü\\""}', "--header", "type=new")
    step("message", "send", "orders", "orders.b.1", "-", "--ttl", "1h", "--dedup-id", "once", input="17")
    (tmp_path / "lines").write_text("".join(json.dumps({"key": f"orders.c.{n}", "data": n}) + "\n" for n in range(5)))
    step("message", "send", "orders", "--file", str(tmp_path / "lines"))
    ours, theirs = step("stream", "read", "orders", "--filter", "orders.>", "--from", "1h", "-n", "2")
    assert [each["message"]["seq"] if "message" in each else each["seq"] for each in theirs[0]["data"]][:2] == [1, 2]
    assert [each["seq"] for each in ours] == [1, 2]

    step("consumer", "add", "orders", "billing", "--order", "none", "--filter", "orders.>", "--keep-history", "1h")
    step("consumer", "edit", "orders", "billing", "--ack-wait", "2m", "--max-deliver", "3")
    ours, theirs = step("consumer", "ls", "orders")
    assert [each["name"] for each in theirs[0]["data"]] == ["billing"]
    ours, theirs = step("consumer", "info", "orders", "billing")
    assert theirs[1]["data"]["lag_estimate"] == ours[0]["stats"]["lag_estimate"] == 7
    settle("ack", ("orders", "billing"))
    settle("nack", ("orders", "billing"), "--delay", "1h", "--reason", "no luck")
    settle("defer", ("orders", "billing"), "--delay", "1h", "--state", '{"page": 7}')
    settle("extend", ("orders", "billing"), "--ack-wait", "1h")
    settle("terminate", ("orders", "billing"), "--reason", "broken")
    step("consumer", "receive", "orders", "billing")
    ours, theirs = step("consumer", "peek", "orders", "billing", "--state", "waiting")
    assert len(theirs[0]["data"]) == len(ours) == 2
    assert theirs[0]["data"][1]["info"]["saved_state"] == ours[1]["saved_state"] == {"page": 7}
    ours, theirs = step("consumer", "peek-at", "orders", "billing", "7")
    assert theirs[0]["data"]["message"]["seq"] == ours[0]["seq"] == 7
    ours, theirs = step("consumer", "wait", "orders", "billing", "999", "--timeout", "1s")
    assert (theirs[0]["data"], ours[0]["completion"]) == (None, "done")
    ours, theirs = step("consumer", "history", "orders", "billing")
    assert len(theirs[0]["data"]) == len(ours) > 0
    ours, theirs = step("dead", "ls", "orders", "billing")
    assert theirs[0]["data"][0]["reason"] == ours[0]["reason"] == "broken"
    step("dead", "redrive", "orders", "billing", "--background", "--rate", "0.001")
    ours, theirs = step("task", "ls", "orders")
    assert theirs[0]["data"][0]["id"] == ours[0]["id"] == 1
    step("task", "cancel", "orders", "1")
    step("dead", "redrive", "orders", "billing")
    settle("terminate", ("orders", "billing"))
    step("dead", "discard", "orders", "billing", "--yes")
    step("consumer", "pause", "orders", "billing")
    step("consumer", "resume", "orders", "billing")
    step("consumer", "replay", "orders", "billing", "--from", "1", "--to", "1")
    step("consumer", "seek", "orders", "billing", "3", "--yes")

    step("message", "send", "orders", "k", "1", "--delay", "1h")
    ours, theirs = step("schedule", "ls", "orders")
    number = str(ours[0]["id"])
    assert number == str(theirs[-1]["data"][0]["id"])
    step("schedule", "move", "orders", number, "--in", "2h")
    step("schedule", "cancel", "orders", number)
    step("schedule", "add", "orders", "nightly", "1", "--cron", "@daily")
    ours, theirs = step("schedule", "info", "orders", "nightly")
    assert theirs[0]["data"]["next_at"] == [each.replace("+00:00", "Z") for each in ours[0]["next_at"]]
    step("schedule", "edit", "orders", "nightly", "--data", "2", "--unset", "ttl")
    step("schedule", "pause", "orders", "nightly")
    step("schedule", "resume", "orders", "nightly")
    step("schedule", "run", "orders", "nightly")
    step("schedule", "rm", "orders", "nightly", "--yes")

    step("stream", "add", "customers", "--one-message-per-key", "--partitions", "1")
    step("message", "send", "customers", "a", "1")
    ours, theirs = step("stream", "state", "customers")
    assert len(theirs[0]["data"]) == len(ours) == 1
    step("message", "delete", "customers", "a")

    step("queue", "add", "emails", "--max-deliver", "5", "--partitions", "1")
    for number in ("1", "2"):
        step("queue", "send", "emails", number)
    ours, theirs = step("queue", "ls")
    assert [each["name"] for each in ours] == ["emails"]
    step("queue", "info", "emails")
    settle("ack", ("emails",))
    settle("nack", ("emails",), "--delay", "1h")
    step("queue", "send", "emails", "3")
    settle("defer", ("emails",), "--state", "null")
    step("queue", "rm", "emails", "--yes")

    step("stream", "add", "events", "--partitions", "1")
    step("message", "send", "events", "a", "1")
    step("group", "add", "events", "readers", "--from", "earliest")
    ours, theirs = step("group", "ls", "events")
    assert (
        [each["name"] for each in theirs[0]["data"] if each["is_group"]]
        == [each["name"] for each in ours]
        == ["readers"]
    )
    for verb in ("release", "commit"):
        (ours,), (theirs,) = step("group", "claim", "events", "readers", "--lease", "1h")
        walked.add(f"group {verb}")
        monkeypatch.setenv("POSTBUS_TOKEN", commanded.token)
        commanded.by_command("group", verb, "events", "readers", ours["token"])
        monkeypatch.setenv("POSTBUS_TOKEN", curled.token)
        curled.by_curl("group", verb, "events", "readers", theirs["data"][0]["token"])
    ours, theirs = step("group", "info", "events", "readers")
    assert theirs[0]["data"]["lag_estimate"] == ours[0]["lag_estimate"] == 0
    ours, theirs = step("group", "fetch", "events", "readers", "0", "1", "1")
    assert theirs[0]["data"][0]["data"] == ours[0]["data"] == 1
    step("group", "seek", "events", "readers", "earliest")
    step("group", "rm", "events", "readers", "--yes")

    ours, theirs = step("token", "create", "billing", "--scope", "consume")
    assert theirs[0]["data"]["scopes"] == ours[0]["scopes"] == ["consume"]
    ours, theirs = step("token", "ls")
    assert [each["name"] for each in theirs[0]["data"]] == [each["name"] for each in ours] == ["test", "billing"]
    step("token", "rm", str(ours[1]["id"]))

    walk_sources(commanded, curled, step)

    step("stream", "edit", "orders", "--dedup-window", "3d")
    ours, theirs = step("source", "webhook", "add", "gh", "orders", "--kind", "github", "--max-body", "5M")
    assert (ours[0]["secret"][:6], theirs[0]["data"]["secret"][:6]) == ("whsec_", "whsec_")
    step("source", "webhook", "edit", "gh", "--max-rate", "10", "--pause")
    ours, theirs = step("source", "webhook", "info", "gh")
    assert theirs[0]["data"]["max_rate"] == ours[0]["max_rate"] == 10
    ours, theirs = step("source", "webhook", "ls")
    assert len(theirs[0]["data"]) == len(ours) == 1
    step("source", "webhook", "rm", "gh", "--yes")

    step("stream", "add", "mail", "--channel-tokens", "1")
    step("channel", "set", "mail", "*", "--max-concurrency", "2", "--per", "60")
    step("channel", "pause", "mail", "acme.>")
    step("channel", "resume", "mail", "acme.>")
    ours, theirs = step("channel", "ls", "mail")
    assert [each["pattern"] for each in theirs[0]["data"]] == [each["pattern"] for each in ours] == ["*", "acme.>"]
    step("channel", "rm", "mail", "acme.>")
    step("stream", "rm", "mail", "--yes")

    push = ("orders", "billing")
    ours, theirs = step("consumer", "push", "set", *push, "https://example.com/hook", "-H", "X-A=1", "--timeout", "5s")
    assert (ours[0]["secret"][:6], theirs[0]["data"]["secret"][:6]) == ("whsec_", "whsec_")
    ours, theirs = step("consumer", "push", "info", *push)
    assert theirs[0]["data"]["header_names"] == ours[0]["header_names"] == ["X-A"]
    ours, theirs = step("push", "ls")
    assert len(theirs[0]["data"]) == len(ours) == 1
    step("consumer", "push", "pause", *push, "--reason", "maintenance")
    step("consumer", "push", "resume", *push)
    step("consumer", "push", "secret", *push)
    step("consumer", "push", "attempts", *push)
    step("consumer", "push", "resend", *push, "1")
    # Its result takes somebody who sends.
    walked.add("consumer push test")
    assert curled.by_curl("consumer", "push", "test", *push)[0]["data"] == {"test_id": 1}
    step("consumer", "push", "rm", *push, "--yes")
    ours, theirs = step("sqs", "expose", "orders", "billing", "--as", "orders-queue")
    assert theirs[0]["data"] == ours[0] == {"name": "orders-queue"}
    ours, theirs = step("sqs", "ls")
    assert [each["name"] for each in theirs[0]["data"]] == [each["name"] for each in ours] == ["orders-queue"]
    step("sqs", "hide", "orders-queue", "--yes")
    step("task", "move", "orders", "billing", "--to", "events")
    step("consumer", "rm", "orders", "billing", "--yes")
    step("stream", "purge", "orders", "--before", "3", "--yes")
    step("stream", "rm", "orders", "--yes")
    assert walked == _with_http()


@cache
def _with_http() -> set[str]:
    """Every command that has --as-curl."""
    found = {
        path.removeprefix("postbus ")
        for path, command in commands(typer.main.get_command(build()), "postbus")
        if any("--as-curl" in option.opts for option in command.params)
    }
    return {path for path in found if path.split()[0] not in WITHOUT_HTTP}


def test_every_command_has_as_curl_but_for_those_that_never_talk_http() -> None:
    for path, _ in commands(typer.main.get_command(build()), "postbus"):
        name = path.removeprefix("postbus ")
        names = {name, name.split()[0]}
        assert name in _with_http() or names & WITHOUT_HTTP or name == "push run", path


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("more", [(), ("--follow",)])
def test_receive_with_ack_prints_a_script_that_does_both(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    side, _ = sides
    monkeypatch.setenv("POSTBUS_TOKEN", side.token)
    queue = side.bus.create_queue("emails", partitions=1)
    queue.publish_many([postbus.Message(data=f"it's \\n {n}") for n in range(3)])
    script = Shell(side.api.url)("queue", "receive", "emails", "-n", "2", "--ack", *more, "--as-curl")
    assert side.token not in script
    assert queue.stats().lag_estimate == 3

    def run() -> list[Any]:
        return [json.loads(line) for line in side.output_of(script).splitlines()]

    received, acked = run()
    assert [each["message"]["data"] for each in received["data"]] == ["it's \\n 0", "it's \\n 1"]
    assert acked["success"] is True
    assert [(peeked.seq, peeked.state) for peeked in queue.peek()] == [(3, "available")]
    assert [len(answer.get("data", ())) for answer in run()] == [1, 0]
    (nothing,) = run()
    assert nothing["data"] == []
    assert queue.peek() == []


def test_nothing_is_sent_and_the_token_is_a_variable(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    side, _ = sides
    monkeypatch.setenv("POSTBUS_TOKEN", side.token)
    before = side.state()
    said = Shell(side.api.url).run("stream", "add", "orders", "--as-curl")
    assert side.state() == before
    assert re.match(
        r"curl '?http://127\.0\.0\.1:\d+/api/streams'? -H 'content-type: application/json' -H \"Auth", said.out
    )
    assert (side.token in said.out, said.err) == (False, "")


def test_as_curl_works_without_a_running_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Shell("http://127.0.0.1:1")("stream", "ls", "--as-curl") == "curl http://127.0.0.1:1/api/streams\n"
