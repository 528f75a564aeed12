"""Priorities from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import postbus
from tests.cli.shell import Shell


def test_what_is_sent_with_a_priority_comes_first_and_shows_it(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "orders")
    shell("consumer", "add", "orders", "billing")
    shell("message", "send", "orders", "a", "1")
    assert "PRIORITY" not in shell("stream", "read", "orders")
    shell("message", "send", "orders", "b", "2", "--priority", "9")
    shell("message", "send", "orders", "c", "3", "--priority", "0", "--delay", "1h")

    assert [each["priority"] for each in shell.objects("stream", "read", "orders")] == [4, 9]
    assert "PRIORITY" in shell("stream", "read", "orders")
    assert "PRIORITY" in shell("schedule", "ls", "orders")
    assert "messages of a higher priority go first" in shell("consumer", "peek", "orders", "billing")
    assert "9: 1, 4: 1" in shell("consumer", "info", "orders", "billing")
    (received,) = shell.objects("receive", "orders", "billing")
    assert (received["data"], received["priority"]) == (2, 9)


def test_a_file_has_priorities_of_its_own_or_takes_the_option(fresh_url: str, tmp_path: Path) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "orders")
    path = tmp_path / "orders.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in ({"data": 1, "priority": 7}, {"data": 2})))
    shell("message", "send", "orders", "--file", str(path), "--priority", "2")
    with postbus.connect(fresh_url) as bus:
        assert [each.priority for each in bus.scan("orders")] == [7, 2]


def test_queues_and_schedules_take_a_priority(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("queue", "add", "emails")
    shell("queue", "send", "emails", "1")
    shell("queue", "send", "emails", "2", "--priority", "8")
    shell("schedule", "add", "emails", "nightly", "3", "--every", "1h", "--priority", "9")
    shell("schedule", "edit", "emails", "nightly", "--priority", "6")
    shell("schedule", "run", "emails", "nightly")
    found = [shell.objects("queue", "receive", "emails", "--ack")[0] for _ in range(3)]
    assert [(each["data"], each["priority"]) for each in found] == [(2, 8), (3, 6), (1, 4)]


def test_a_priority_out_of_range_is_named(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "orders")
    said = shell.run("message", "send", "orders", "a", "1", "--priority", "10", status=2)
    assert "Invalid value for '--priority'" in said.err
    assert shell.run("stream", "read", "orders").err.strip() == "no messages"
