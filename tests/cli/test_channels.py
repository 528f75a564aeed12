"""`postbus channel`, and queues with channels."""

from __future__ import annotations

import postbus
from postbus import Message
from tests.cli.shell import Shell


def test_limits_are_set_shown_paused_and_removed(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("stream", "add", "mail", "--channel-tokens", "1", "--partitions", "1")
    shell("consumer", "add", "mail", "sender", "--order", "none", "--fair")
    assert "no limits" in shell.run("channel", "ls", "mail").err
    said = shell.run("channel", "set", "mail", "*", "--max-concurrency", "2", "--max-rate", "10", "--per", "60").err
    assert said.strip() == "set the limits of * in mail"
    shell("channel", "pause", "mail", "acme")
    found = {each["pattern"]: each for each in shell.objects("channel", "ls", "mail")}
    assert (found["*"]["max_concurrency"], found["*"]["max_rate"], found["*"]["paused"]) == (2, 10, False)
    # What is paused keeps the limits that it had by another pattern.
    assert (found["acme"]["max_concurrency"], found["acme"]["paused"]) == (2, True)

    with postbus.connect(fresh_url) as bus:
        bus.publish_many("mail", [Message(key=f"acme.{n}", data=n) for n in range(3)])
        assert not bus.consumer("mail", "sender").receive(10)
        (state,) = shell.objects("channel", "ls", "mail", "sender")
        assert (state["channel"], state["waiting"], state["limited_by"]) == ("acme", 3, "paused")
        assert "resumed acme" in shell.run("channel", "resume", "mail", "acme").err
        assert "was not paused" in shell.run("channel", "resume", "mail", "acme", status=1).err
        assert "removed" in shell.run("channel", "rm", "mail", "acme").err
        assert "had no limits" in shell.run("channel", "rm", "mail", "acme", status=1).err
        assert len(bus.consumer("mail", "sender").receive(10)) == 1


def test_a_queue_has_channels(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    shell("queue", "add", "mail", "--channel-tokens", "2", "--fair")
    with postbus.connect(fresh_url) as bus:
        assert bus.stream_info("mail").channel_tokens == 2
        assert bus.consumer("mail", "mail").info().fair
