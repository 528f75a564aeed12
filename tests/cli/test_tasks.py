"""`postbus task`, and --background."""

from __future__ import annotations

import pytest

import postbus
from postbus import Message
from tests.cli.shell import Shell


def test_a_redrive_in_the_background_is_started_followed_and_cancelled(fresh_url: str) -> None:
    shell = Shell(fresh_url)
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("returns")
        desk = bus.create_consumer("returns", "desk")
        bus.publish_many("returns", [Message(key=f"k.{n}", data=n) for n in range(5)])
        while batch := desk.receive(100):
            desk.terminate(batch, reason="closed")

        (started,) = shell.objects("dead", "redrive", "returns", "desk", "--background", "--rate", "0.01")
        (listed,) = shell.objects("task", "ls", "returns")
        assert (listed["id"], listed["state"], listed["total_estimate"]) == (started["id"], "running", 5)
        number = str(started["id"])
        assert shell.run("task", "cancel", "returns", number).err.strip() == f"cancelled task {number}"
        assert "had ended before" in shell.run("task", "cancel", "returns", number, status=1).err
        assert len(desk.dead_letters()) == 5

        shell("dead", "discard", "returns", "desk", "--background", "--yes")
        while bus.tasks.run():
            pass
        assert desk.dead_letters() == []
        assert "done" in shell("task", "ls")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("redrive", "returns", "desk", "--seq", "1", "--background"), "--seq does not go with --background"),
        (("discard", "returns", "desk", "--seq", "1", "--background", "--yes"), "--seq does not go with --background"),
        (("discard", "returns", "desk", "--rate", "5", "--yes"), "a rate goes with --background"),
    ],
)
def test_what_does_not_go_with_background_is_refused(fresh_url: str, arguments: tuple[str, ...], said: str) -> None:
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("returns")
        bus.create_consumer("returns", "desk")
    with pytest.raises(postbus.InvalidInput, match=said):
        Shell(fresh_url)("dead", *arguments)
